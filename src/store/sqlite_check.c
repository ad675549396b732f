#include "store/sqlite_reads.h"

int sqlite_info(struct store *s, struct store_info *ret, struct error *err)
{
	(void)s; (void)ret;
	return error_set(err, E_UNSUPPORTED, "not yet");
}
int sqlite_check(struct store *s, struct buf *findings, uint64_t *ret_profiles, struct error *err)
{
	(void)s; (void)findings; (void)ret_profiles;
	return error_set(err, E_UNSUPPORTED, "not yet");
}
int sqlite_compact(struct store *s, struct error *err)
{
	(void)s;
	return error_set(err, E_UNSUPPORTED, "not yet");
}
