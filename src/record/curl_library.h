/*
 * libcurl, loaded when something is asked for over HTTP: linked, it would cost every command its start-up time. The functions that are used, in a table.
 */
#ifndef RECORD_CURL_LIBRARY_H
#define RECORD_CURL_LIBRARY_H

#include <curl/curl.h>

#include "base/error.h"

struct curl_library {
	__typeof__(&curl_global_init) global_init;
	__typeof__(&curl_easy_init) easy_init;
	__typeof__(&curl_easy_setopt) easy_setopt;
	__typeof__(&curl_easy_perform) easy_perform;
	__typeof__(&curl_easy_getinfo) easy_getinfo;
	__typeof__(&curl_easy_cleanup) easy_cleanup;
	__typeof__(&curl_easy_strerror) easy_strerror;
	__typeof__(&curl_slist_append) slist_append;
	__typeof__(&curl_slist_free_all) slist_free_all;
	__typeof__(&curl_multi_init) multi_init;
	__typeof__(&curl_multi_setopt) multi_setopt;
	__typeof__(&curl_multi_add_handle) multi_add_handle;
	__typeof__(&curl_multi_remove_handle) multi_remove_handle;
	__typeof__(&curl_multi_perform) multi_perform;
	__typeof__(&curl_multi_poll) multi_poll;
	__typeof__(&curl_multi_wakeup) multi_wakeup;
	__typeof__(&curl_multi_info_read) multi_info_read;
	__typeof__(&curl_multi_cleanup) multi_cleanup;
};

/* The table, the same each time; E_UNSUPPORTED says what is missing for doing ("fetching"). Not from several threads at once. */
int curl_library_load(const char *doing, const struct curl_library **ret, struct error *err);

#endif
