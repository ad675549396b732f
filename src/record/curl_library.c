#include "record/curl_library.h"

#include <dlfcn.h>
#include <stddef.h>

static struct curl_library curl;
static void *library;

#define FIND(name) ((curl.name = (__typeof__(curl.name))dlsym(library, "curl_" #name)))

static int find_all(const char *doing, struct error *err)
{
	if (FIND(global_init) && FIND(easy_init) && FIND(easy_setopt) && FIND(easy_perform) && FIND(easy_getinfo) && FIND(easy_cleanup) &&
	    FIND(easy_strerror) && FIND(slist_append) && FIND(slist_free_all) && FIND(multi_init) && FIND(multi_setopt) && FIND(multi_add_handle) &&
	    FIND(multi_remove_handle) && FIND(multi_perform) && FIND(multi_poll) && FIND(multi_wakeup) && FIND(multi_info_read) &&
	    FIND(multi_cleanup) && curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
		return E_OK;
	dlclose(library);
	library = NULL;
	return error_set(err, E_UNSUPPORTED, "the libcurl of this system lacks functions that %s needs (7.68 or newer has them)", doing);
}

int curl_library_load(const char *doing, const struct curl_library **ret, struct error *err)
{
	static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };
	int failed = E_OK;
	for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++) {
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
		if (library)
			failed = find_all(doing, err);
	}
	if (!library && !failed)
		return error_set(err, E_UNSUPPORTED, "%s needs libcurl, which is not installed (Debian: apt install libcurl4)", doing);
	*ret = &curl;
	return failed;
}
