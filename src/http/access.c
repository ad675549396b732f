/*
 * The checks in the order that tells a stranger least: is this the name of somebody else's server, is it another page that asks,
 * and only then the token.
 */
#include "http/access.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define WRONG_MAX 10
#define WRONG_MS 60000

/* --- names --- */

struct host {
	struct http_text name;          /* brackets included */
	struct http_text port;          /* digits, or empty */
};

static bool in_name(char c, bool bracketed)
{
	if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.')
		return true;
	return bracketed ? c == ':' : c == '-' || c == '_';
}

/* NAME, NAME:PORT, [ADDRESS] or [ADDRESS]:PORT; false when it is none of them. */
static bool split_host(struct http_text value, struct host *ret)
{
	size_t i = 0;
	bool bracketed = value.n && value.at[0] == '[';
	for (i = bracketed; i < value.n && in_name(value.at[i], bracketed); i++)
		;
	if (i == bracketed || (bracketed && (i == value.n || value.at[i++] != ']')))
		return false;
	ret->name = (struct http_text){ value.at, i };
	ret->port = (struct http_text){ value.at + i, 0 };
	if (i == value.n)
		return true;
	if (value.at[i++] != ':' || value.n - i > 5)
		return false;
	ret->port = (struct http_text){ value.at + i, value.n - i };
	for (; i < value.n; i++) {
		if (value.at[i] < '0' || value.at[i] > '9')
			return false;
	}
	return true;
}

static bool loopback_name(struct http_text name)
{
	char copy[INET_ADDRSTRLEN];
	struct in_addr address;
	if (http_text_same(name, http_text_of("localhost")) || http_text_same(name, http_text_of("[::1]")))
		return true;
	if (name.n >= sizeof(copy))
		return false;
	memcpy(copy, name.at, name.n);
	copy[name.n] = '\0';
	return inet_pton(AF_INET, copy, &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

/* Is it, or its name alone, one of those between the commas? */
static bool listed(const char *hosts, struct http_text value, const struct host *h)
{
	while (*hosts) {
		struct http_text one = { hosts, strcspn(hosts, ",") };
		hosts += one.n + (hosts[one.n] == ',');
		while (one.n && one.at[0] == ' ')
			one.at++, one.n--;
		while (one.n && one.at[one.n - 1] == ' ')
			one.n--;
		if (http_text_same(one, value) || http_text_same(one, h->name))
			return true;
	}
	return false;
}

static int check_host(const struct http_access *a, const struct http_request *r)
{
	struct host h;
	if (!r->has_host || !split_host(r->host, &h))
		return 400;
	if (loopback_name(h.name) || listed(a->hosts, r->host, &h) || (a->remote && !a->hosts[0]))
		return 0;
	return 421;
}

/* A page's own server is the one it names in Host, with TLS put before it or not. */
static int check_origin(const struct http_request *r)
{
	static const char *const schemes[] = { "http://", "https://" };
	if (r->fetch_site.n && !http_text_is(r->fetch_site, "same-origin") && !http_text_is(r->fetch_site, "none"))
		return 403;
	if (!r->has_origin)
		return 0;
	for (size_t i = 0; i < 2; i++) {
		size_t n = strlen(schemes[i]);
		if (r->origin.n < n || memcmp(r->origin.at, schemes[i], n) != 0)
			continue;
		if (http_text_same((struct http_text){ r->origin.at + n, r->origin.n - n }, r->host))
			return 0;
	}
	return 403;
}

/* --- the token --- */

/* Takes as long for every text of that length, whatever the token is. */
static bool same_token(const char *token, const char *text, size_t n)
{
	size_t length = strlen(token);
	unsigned different = n != length;
	for (size_t i = 0; i < n; i++)
		different |= (unsigned char)(token[i < length ? i : length] ^ text[i]);
	return !different;
}

static int base64_digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decoded bytes, or 0 when it is malformed or longer than room. */
static size_t base64(struct http_text t, char *to, size_t room)
{
	size_t n = 0;
	unsigned bits = 0, held = 0;
	while (t.n && t.at[t.n - 1] == '=')
		t.n--;
	for (size_t i = 0; i < t.n; i++) {
		int digit = base64_digit(t.at[i]);
		if (digit < 0)
			return 0;
		held = held << 6 | (unsigned)digit;
		bits += 6;
		if (bits >= 8) {
			if (n == room)
				return 0;
			bits -= 8;
			to[n++] = (char)(held >> bits);
		}
	}
	return n;
}

/* What stands behind "Bearer " or "Basic "; false when the scheme is another. */
static bool behind_scheme(struct http_text value, const char *scheme, struct http_text *ret)
{
	size_t n = strlen(scheme);
	if (value.n <= n || !http_text_same((struct http_text){ value.at, n }, http_text_of(scheme)) || value.at[n] != ' ')
		return false;
	while (n < value.n && value.at[n] == ' ')
		n++;
	*ret = (struct http_text){ value.at + n, value.n - n };
	return true;
}

static bool right_token(const struct http_access *a, struct http_text authorization)
{
	struct http_text given;
	char pair[HTTP_TOKEN_MAX + 128];
	if (behind_scheme(authorization, "Bearer", &given))
		return same_token(a->token, given.at, given.n);
	if (!behind_scheme(authorization, "Basic", &given))
		return false;
	size_t n = base64(given, pair, sizeof(pair));
	const char *colon = memchr(pair, ':', n);
	return colon && same_token(a->token, colon + 1, (size_t)(pair + n - colon - 1));
}

static int check_token(struct http_access *a, const struct http_request *r, int64_t now_ms)
{
	if (!a->token[0])
		return 0;
	if (r->authorization.n == 0)
		return 401;
	if (right_token(a, r->authorization))
		return 0;
	if (a->wrong == 0 || now_ms - a->wrong_since_ms > WRONG_MS) {
		a->wrong = 0;
		a->wrong_since_ms = now_ms;
	}
	if (a->wrong >= WRONG_MAX)
		return 429;
	a->wrong++;
	return 401;
}

int http_check_access(struct http_access *a, const struct http_request *r, int64_t now_ms)
{
	int status = 0;
	if (!a->local_socket) {
		status = check_host(a, r);
		if (!status)
			status = check_origin(r);
	}
	return status ? status : check_token(a, r, now_ms);
}

/* The first line of what is in the file, into to. */
static int take_token(const char *path, const char *bytes, size_t n, char *to, struct error *err)
{
	size_t length = 0;
	while (length < n && bytes[length] != '\n' && bytes[length] != '\r')
		length++;
	if (length < HTTP_TOKEN_MIN || length > HTTP_TOKEN_MAX)
		return error_set(err, E_USAGE, "%s: a token has %d to %d characters; make one with: openssl rand -hex 32", path,
		                 HTTP_TOKEN_MIN, HTTP_TOKEN_MAX);
	for (size_t i = 0; i < length; i++) {
		if (bytes[i] <= ' ' || bytes[i] >= 0x7f)
			return error_set(err, E_USAGE, "%s: character %zu of the token is not visible ASCII", path, i + 1);
	}
	memcpy(to, bytes, length);
	to[length] = '\0';
	return E_OK;
}

int http_read_token(const char *path, char to[HTTP_TOKEN_MAX + 1], struct error *err)
{
	char bytes[HTTP_TOKEN_MAX + 2];
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return error_set(err, E_IO, "%s: can't read the token: %s", path, strerror(errno));
	int rc = E_OK;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		rc = error_set(err, E_USAGE, "%s: the token has to be in a regular file", path);
	else if ((st.st_mode & 077) != 0 || (st.st_uid != geteuid() && st.st_uid != 0))
		rc = error_set(err, E_USAGE, "%s: others can read this token; chmod 600, and have it owned by who runs this", path);
	ssize_t n = 0;
	while (!rc && (n = read(fd, bytes, sizeof(bytes))) < 0) {
		if (errno != EINTR)
			rc = error_set(err, E_IO, "%s: can't read the token: %s", path, strerror(errno));
	}
	close(fd);
	return rc ? rc : take_token(path, bytes, (size_t)n, to, err);
}

bool http_peer_allowed(int fd)
{
	struct ucred peer;
	socklen_t n = sizeof(peer);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
		return false;
	return peer.uid == geteuid() || peer.uid == 0;
}
