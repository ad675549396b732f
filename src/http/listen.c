/*
 * Where to listen, from a text: no names are looked up, and nothing opens beyond loopback by mistake. A socket file is made with its final
 * mode: on Linux the file that bind makes takes the mode of the socket's own inode, so no umask has to be changed.
 */
#include "http/server_private.h"

#include "base/text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Who finds this full on a unix socket is turned away at once. The system may lower it (somaxconn). */
#define BACKLOG 4096

/* A client that has vanished without a word is noticed after 15 + 3 * 5 s. Accepted sockets inherit all of this. */
#define KEEPALIVE_IDLE_S 15
#define KEEPALIVE_STEP_S 5
#define KEEPALIVE_STEPS 3

struct address {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
		struct sockaddr_un local;
	};
	socklen_t n;
	bool remote;
};

/* --- descriptors --- */

bool http_own(struct http_owned *o, int fd)
{
	struct stat st;
	*o = (struct http_owned){ .fd = -1 };
	if (fd < 0)
		return false;
	/* Who can't be told again would never be closed. */
	if (fstat(fd, &st) < 0) {
		close(fd);
		return false;
	}
	o->fd = fd;
	o->device = st.st_dev;
	o->inode = st.st_ino;
	return true;
}

bool http_owns(const struct http_owned *o)
{
	struct stat st;
	return o->fd >= 0 && fstat(o->fd, &st) == 0 && st.st_dev == o->device && st.st_ino == o->inode;
}

void http_disown(struct http_owned *o)
{
	if (http_owns(o))
		close(o->fd);
	o->fd = -1;
}

/* --- addresses --- */

static bool take_ip(const char *host, uint16_t port, struct address *ret)
{
	struct address a = { 0 };
	if (inet_pton(AF_INET, host, &a.v4.sin_addr) == 1) {
		a.v4.sin_family = AF_INET;
		a.v4.sin_port = htons(port);
		a.n = sizeof(a.v4);
		a.remote = ntohl(a.v4.sin_addr.s_addr) >> 24 != 127;
	} else if (host[0] == '[' && inet_pton(AF_INET6, host + 1, &a.v6.sin6_addr) == 1) {
		a.v6.sin6_family = AF_INET6;
		a.v6.sin6_port = htons(port);
		a.n = sizeof(a.v6);
		a.remote = !IN6_IS_ADDR_LOOPBACK(&a.v6.sin6_addr);
	} else {
		return false;
	}
	*ret = a;
	return true;
}

/* HOST:PORT, where HOST is an address (IPv6 in brackets) or localhost. */
static int parse_ip(const char *text, struct address *ret, struct error *err)
{
	char host[INET6_ADDRSTRLEN + 2];
	uint64_t port;
	const char *colon = strrchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : 0;
	if (!colon || n >= sizeof(host) || !text_parse_u64(colon + 1, strlen(colon + 1), 10, &port) || port > UINT16_MAX)
		goto refused;
	memcpy(host, text, n);
	host[n] = '\0';
	if (host[0] == '[') {
		if (host[n - 1] != ']')
			goto refused;
		host[n - 1] = '\0';
	}
	if (take_ip(strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, (uint16_t)port, ret))
		return E_OK;
refused:
	return error_set(err, E_USAGE, "can't listen on '%.100s': say unix:/path, 127.0.0.1:PORT, [::1]:PORT or localhost:PORT "
	                 "(port 0: any free one); names are not looked up", text);
}

static int parse_path(const char *path, struct address *ret, struct error *err)
{
	size_t n = strlen(path);
	if (path[0] != '/')
		return error_set(err, E_USAGE, "can't listen on unix:%.100s: the path has to begin with '/'", path);
	if (n >= sizeof(ret->local.sun_path) || path[n - 1] == '/')
		return error_set(err, E_USAGE, "can't listen on unix:%.120s: the path has to name a file, in less than %zu bytes", path,
		                 sizeof(ret->local.sun_path));
	*ret = (struct address){ .n = sizeof(ret->local) };
	ret->local.sun_family = AF_UNIX;
	memcpy(ret->local.sun_path, path, n);
	return E_OK;
}

/* --- the socket file --- */

static int make_parent(const char *path, struct error *err)
{
	char parent[sizeof(((struct sockaddr_un *)0)->sun_path)];
	size_t n = (size_t)(strrchr(path, '/') - path);
	memcpy(parent, path, n);
	parent[n] = '\0';
	if (n == 0 || mkdir(parent, 0700) == 0 || errno == EEXIST)
		return E_OK;
	return error_set(err, E_IO, "%s: can't make the folder for the socket: %s", parent, strerror(errno));
}

/* Makes way for a new socket file: one that nobody listens on any more is removed. */
static int remove_stale(const struct address *a, struct error *err)
{
	const char *path = a->local.sun_path;
	struct stat st;
	if (lstat(path, &st) < 0)
		return errno == ENOENT ? E_OK : error_set(err, E_IO, "%s: %s", path, strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return error_set(err, E_IO, "%s is there and is no socket; name another path", path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_set(err, E_IO, "%s: no socket: %s", path, strerror(errno));
	int rc = connect(fd, &a->any, a->n), why = errno;
	close(fd);
	if (rc == 0 || why != ECONNREFUSED)
		return error_set(err, E_IO, "%s: another process listens there already", path);
	if (unlink(path) < 0 && errno != ENOENT)
		return error_set(err, E_IO, "%s: can't remove the old socket: %s", path, strerror(errno));
	return E_OK;
}

static int listen_path(const char *path, struct http_listener *l, struct error *err)
{
	struct address a;
	struct stat st;
	int rc = parse_path(path, &a, err);
	if (!rc)
		rc = make_parent(path, err);
	if (!rc)
		rc = remove_stale(&a, err);
	if (rc)
		return rc;
	l->local_socket = true;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (!http_own(&l->socket, fd) || fchmod(fd, 0600) < 0 || bind(fd, &a.any, a.n) < 0)
		return error_set(err, E_IO, "%s: can't make the socket: %s", path, strerror(errno));
	if (lstat(path, &st) < 0)
		return error_set(err, E_IO, "%s: the socket was removed as it was made: %s", path, strerror(errno));
	memcpy(l->path, a.local.sun_path, sizeof(l->path));
	l->device = st.st_dev;
	l->inode = st.st_ino;
	if (listen(fd, BACKLOG) < 0)
		return error_set(err, E_IO, "%s: can't listen: %s", path, strerror(errno));
	snprintf(l->url, sizeof(l->url), "unix:%s", path);
	return E_OK;
}

/* --- addresses again --- */

static bool set(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) == 0;
}

static void write_url(struct http_listener *l, const struct address *a)
{
	char host[INET6_ADDRSTRLEN] = "?";
	if (a->any.sa_family == AF_INET) {
		inet_ntop(AF_INET, &a->v4.sin_addr, host, sizeof(host));
		snprintf(l->url, sizeof(l->url), "http://%s:%u", host, ntohs(a->v4.sin_port));
	} else {
		inet_ntop(AF_INET6, &a->v6.sin6_addr, host, sizeof(host));
		snprintf(l->url, sizeof(l->url), "http://[%s]:%u", host, ntohs(a->v6.sin6_port));
	}
}

static int listen_ip(const char *text, bool allow_remote, bool has_token, struct http_listener *l, struct error *err)
{
	struct address a;
	int rc = parse_ip(text, &a, err);
	if (rc)
		return rc;
	if (a.remote && !allow_remote)
		return error_set(err, E_UNSUPPORTED, "%s can be reached from other machines: allow that explicitly (and give a token), or listen on "
		                 "127.0.0.1", text);
	if (a.remote && !has_token)
		return error_set(err, E_UNSUPPORTED, "%s can be reached from other machines: it needs a token", text);
	l->remote = a.remote;
	int fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool good = http_own(&l->socket, fd) && set(fd, SOL_SOCKET, SO_REUSEADDR, 1) && set(fd, SOL_SOCKET, SO_KEEPALIVE, 1) &&
	            set(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S) && set(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_STEP_S) &&
	            set(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_STEPS) &&
	            (a.any.sa_family == AF_INET || set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1)) && bind(fd, &a.any, a.n) == 0 &&
	            listen(fd, BACKLOG) == 0 && getsockname(fd, &a.any, &a.n) == 0;
	if (!good)
		return error_set(err, E_IO, "can't listen on %s: %s", text, strerror(errno));
	write_url(l, &a);
	return E_OK;
}

int http_listen(const char *text, bool allow_remote, bool has_token, struct http_listener *ret, struct error *err)
{
	struct http_listener l = { .socket.fd = -1 };
	int rc = strncmp(text, "unix:", 5) == 0 ? listen_path(text + 5, &l, err)
	                                        : listen_ip(text, allow_remote, has_token, &l, err);
	if (rc)
		http_listener_close(&l, true);
	else
		*ret = l;
	return rc;
}

void http_listener_close(struct http_listener *l, bool remove_file)
{
	struct stat st;
	/* While the socket is open no other file gets its number. */
	if (remove_file && l->path[0] && lstat(l->path, &st) == 0 && st.st_dev == l->device && st.st_ino == l->inode)
		unlink(l->path);
	http_disown(&l->socket);
}
