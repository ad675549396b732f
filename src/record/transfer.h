/* One request to a target by libcurl: what is sent, what may come back, and what it means when it doesn't. */
#ifndef RECORD_TRANSFER_H
#define RECORD_TRANSFER_H

#include "record/config.h"
#include "record/counters.h"
#include "record/curl_library.h"

#define REDIRECTS_MAX 3

struct transfer {
	const struct curl_library *curl;
	CURL *easy;
	struct curl_slist *headers, *connect_to;
	struct buf *to;                     /* the body of a 200; its max is the limit */
	struct buf reason;                  /* of anything else, its beginning */
	_Atomic uint64_t *body_bytes;       /* all there are at hand: BODY_BYTES_MAX */
	uint64_t counted_bytes;             /* in it, for to */
	unsigned redirects;
	int64_t deadline_ms;                /* CLOCK_MONOTONIC */
	long status;
	bool done, too_much, shed;
	CURLcode code;
	void *owner;
	char url[2048];                     /* of the request under way */
	char error[CURL_ERROR_SIZE];
};

struct transfer_request {
	const char *url, *socket;           /* socket NULL: none */
	const struct config_access *access;
	int64_t timeout_ms;
	const char *accept;
};

/* The easy handle is ready to be added. E_IO: a file of its access can't be read, and the like. transfer_finish in any case. */
int transfer_init(struct transfer *t, const struct curl_library *curl, const struct transfer_request *q, struct buf *to,
                  _Atomic uint64_t *body_bytes, void *owner, struct error *err);
void transfer_finish(struct transfer *t);

/* It has ended with code. True: it was sent elsewhere on the same host, and the handle goes there when it is added again. */
bool transfer_ended(struct transfer *t, CURLcode code);
/* 0: to has the body; else a sentence (without the address), and why. */
int transfer_result(struct transfer *t, enum failure *ret_why, struct error *err);

#endif
