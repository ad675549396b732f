#include "store/sqlite_reads.h"

int sqlite_maintain(struct store *store, int64_t now_ms, bool *ret_more, struct error *err)
{
	(void)store; (void)now_ms; (void)err;
	*ret_more = false;
	return 0;
}
