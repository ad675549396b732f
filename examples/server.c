/*
 * A web server in C that opens heapgauge's endpoint for itself, and forgets something: it remembers every visit and
 * never looks at it again.
 *
 *     ./server &
 *     curl -s 'http://127.0.0.1:8080/visit/[1-2000]' >/dev/null
 *     curl -so heap.pb.gz http://127.0.0.1:6060/debug/pprof/heap
 *     heapgauge top heap.pb.gz
 *     curl -so heap.svg 'http://127.0.0.1:6060/debug/pprof/heap?format=svg'
 *
 * Usage: server [PORT [ADDRESS-OF-THE-ENDPOINT]]
 * Build: cc -O2 -g server.c -lheapgauge -ljemalloc -pthread
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <heapgauge.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Read by jemalloc when the program starts; MALLOC_CONF in the environment comes after it and may say otherwise. */
extern const char *malloc_conf;
const char *malloc_conf = "prof:true,lg_prof_sample:17";

struct visit {
	struct visit *next;
	time_t when;
	char path[64];
	char page[16000];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct visit *visits;    /* under lock */
static unsigned long count;     /* under lock */

/* The leak. */
__attribute__((noinline)) static unsigned long remember_visit(const char *path)
{
	struct visit *v = calloc(1, sizeof *v);
	if (!v)
		return 0;
	v->when = time(NULL);
	snprintf(v->path, sizeof v->path, "%s", path);
	snprintf(v->page, sizeof v->page, "<p>welcome to %s</p>", path);
	pthread_mutex_lock(&lock);
	v->next = visits;
	visits = v;
	unsigned long n = ++count;
	pthread_mutex_unlock(&lock);
	return n;
}

static void answer(int fd, int status, const char *text)
{
	char header[160];
	int n = snprintf(header, sizeof header, "HTTP/1.1 %d %s\r\nContent-Length: %zu\r\n\r\n", status,
	                 status == 200 ? "OK" : "Not Found", strlen(text));
	if (send(fd, header, (size_t)n, MSG_NOSIGNAL | MSG_MORE) == n)
		(void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
}

/* One request after another, until the client goes or says something else. */
static void *serve(void *argument)
{
	int fd = (int)(intptr_t)argument;
	char request[4096], path[64], text[64];
	size_t have = 0;
	for (;;) {
		ssize_t n = recv(fd, request + have, sizeof request - 1 - have, 0);
		if (n <= 0)
			break;
		have += (size_t)n;
		request[have] = '\0';
		char *end = strstr(request, "\r\n\r\n");
		if (!end) {
			if (have == sizeof request - 1)
				break;
			continue;
		}
		if (sscanf(request, "GET %63s HTTP/1.", path) == 1 && !strncmp(path, "/visit/", 7)) {
			snprintf(text, sizeof text, "visit %lu\n", remember_visit(path));
			answer(fd, 200, text);
		} else {
			answer(fd, 404, "try /visit/you\n");
		}
		have -= (size_t)(end + 4 - request);
		memmove(request, end + 4, have);
	}
	close(fd);
	return NULL;
}

static int listen_on(const char *port)
{
	unsigned number = 0;
	if (sscanf(port, "%u", &number) != 1 || number > 65535)
		return -1;
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)number),
	                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
	if (bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, 64) != 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &size) != 0)
		return -1;
	printf("listening on http://127.0.0.1:%u\n", ntohs(address.sin_port));
	return fd;
}

int main(int argc, char **argv)
{
	char why[256] = "";
	hg_agent *agent;
	hg_agent_options options = HG_AGENT_OPTIONS_INIT;
	options.listen = argc > 2 ? argv[2] : "127.0.0.1:6060";
	options.error = why;
	options.error_size = sizeof why;
	int result = hg_agent_start(&options, &agent);
	if (result == HG_OK)
		printf("heap profiles at %s/debug/pprof/heap\n", hg_agent_url(agent));
	else
		fprintf(stderr, "no heap profiles: %s\n", *why ? why : hg_strerror(result));

	int server = listen_on(argc > 1 ? argv[1] : "8080");
	if (server < 0) {
		perror("server: cannot listen");
		return 1;
	}
	fflush(stdout);
	for (;;) {
		int fd = accept4(server, NULL, NULL, SOCK_CLOEXEC);
		pthread_t thread;
		if (fd < 0)
			continue;
		if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) == 0)
			pthread_detach(thread);
		else
			close(fd);
	}
}
