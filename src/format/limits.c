/* What readers take from anybody: far more than any profile has, far less than what a machine would choke on. */
#include "format/format.h"

const struct read_limits read_limits_default = {
	.input_bytes = (size_t)4 << 30,
	.profile_bytes = (size_t)8 << 30,
	.depth = PROFILE_MAX_DEPTH,
	.gzip_ratio = 200,
	.gzip_ratio_from = (size_t)64 << 20,
	.partial = false,
};
