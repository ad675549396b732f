/* Addresses of targets, as people write them. */
#include "record/config.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

static bool has_blanks(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text <= ' ' || *text == '\177' || *text == '"' || *text == '\\')
			return true;
	return false;
}

/* "/path?query": each as far as it is there. */
static void take_rest(const char *rest, struct arena *a, struct config_address *ret)
{
	size_t n = strcspn(rest, "?#");
	if (n > 1 || (n == 1 && rest[1] != '?' && rest[1]))
		ret->path = arena_text(a, rest, n);
	if (rest[n] == '?')
		ret->query = arena_text(a, rest + n + 1, strcspn(rest + n + 1, "#"));
}

/* "host", "host:port", "[::1]:port". */
static int check_host(const char *text, const char *host, size_t n, struct error *err)
{
	const char *closed = *host == '[' ? memchr(host, ']', n) : NULL;
	const char *colon = closed ? closed + 1 : memchr(host, ':', n);
	size_t name = colon && colon < host + n ? (size_t)(colon - host) : n;
	uint64_t port = 80;
	if (memchr(host, '@', n))
		return error_set(err, E_USAGE, "%.200s: a password does not belong into an address: use basic_auth", text);
	if (name == 0 || (*host == '[' && !closed))
		return error_set(err, E_USAGE, "%.200s: there is no host in it", text);
	if (name < n && (*colon != ':' || !text_parse_u64(colon + 1, n - name - 1, 10, &port) || port == 0 || port > 65535))
		return error_set(err, E_USAGE, "%.200s: '%.*s' is no port", text, (int)(n - name - 1), colon + 1);
	return E_OK;
}

static int take_url(const char *text, struct arena *a, struct config_address *ret, struct error *err)
{
	bool secure = strncasecmp(text, "https", 5) == 0;
	const char *host = text + (secure ? 8 : 7);
	size_t n = strcspn(host, "/?#");
	int failed = check_host(text, host, n, err);
	if (failed)
		return failed;
	ret->scheme = secure ? "https" : "http";
	ret->address = arena_text(a, host, n);
	take_rest(host + n, a, ret);
	return E_OK;
}

/* "unix:/sock", "unix:/sock?query", "unix:/sock?/path?query". */
static int take_socket(const char *text, struct arena *a, struct config_address *ret, struct error *err)
{
	size_t n = strcspn(text, "?");
	if (n < 7 || text[5] != '/')
		return error_set(err, E_USAGE, "%.200s: give the full path of a socket, like unix:/run/app.sock", text);
	ret->address = arena_text(a, text, n);
	if (text[n] == '?')
		take_rest(text[n + 1] == '/' ? text + n + 1 : text + n, a, ret);
	return E_OK;
}

static int take_process(const char *text, struct arena *a, struct config_address *ret, struct error *err)
{
	uint64_t pid;
	if (!text_parse_u64(text + 4, strlen(text + 4), 10, &pid) || pid == 0 || pid > INT32_MAX)
		return error_set(err, E_USAGE, "%.60s: give the number of a process, like pid:1234", text);
	ret->address = arena_text(a, text, strlen(text));
	return E_OK;
}

int config_address(const char *text, struct arena *a, struct config_address *ret, struct error *err)
{
	struct config_address found = { .scheme = NULL };
	int failed;
	if (!*text || has_blanks(text))
		failed = error_set(err, E_USAGE, "'%.200s': an address has no blanks, quotes or backslashes, and isn't empty", text);
	else if (strncasecmp(text, "http://", 7) == 0 || strncasecmp(text, "https://", 8) == 0)
		failed = take_url(text, a, &found, err);
	else if (strncmp(text, "unix:", 5) == 0)
		failed = take_socket(text, a, &found, err);
	else if (strncmp(text, "pid:", 4) == 0)
		failed = take_process(text, a, &found, err);
	else if (strpbrk(text, "/?#"))
		failed = error_set(err, E_USAGE, "%.200s: this is no address like host:port, http://host:port/path, unix:/socket or pid:1234", text);
	else {
		failed = check_host(text, text, strlen(text), err);
		found.address = arena_text(a, text, strlen(text));
	}
	if (!failed && (a->failed || !found.address))
		failed = error_nomem(err, "an address");
	if (!failed)
		*ret = found;
	return failed;
}
