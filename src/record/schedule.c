#include "record/schedule.h"

int64_t schedule_first(uint64_t hash, int64_t interval_ms, int64_t now_ms)
{
	int64_t place = (int64_t)(hash % (uint64_t)interval_ms), at = now_ms % interval_ms;
	at += at < 0 ? interval_ms : 0;
	return place >= at ? place - at : place - at + interval_ms;
}

int64_t schedule_next(int64_t due_ms, int64_t interval_ms, int64_t now_ms, uint64_t *ret_missed)
{
	int64_t missed = now_ms > due_ms ? (now_ms - due_ms) / interval_ms : 0;
	*ret_missed = (uint64_t)missed;
	return due_ms + (missed + 1) * interval_ms;
}
