/*
 * A little web shop that leaks, to try heapgauge on. Worker threads answer requests: each opens or
 * finds a visitor's session, puts something into its cart, renders a page and writes the audit
 * log. What happens to the memory:
 *
 *   load_catalogue   allocates once at the start: big and harmless
 *   render_page      allocates much and frees it all: nothing in use at the end
 *   audit_append     grows until its ring is full, then stays
 *   cart_add         is the leak: session_close frees a session but forgets the cart's items
 *
 * Usage: leaky [REQUESTS]   (of each of the three workers; default 40000)
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE     /* pthread_setname_np */
#endif
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKERS 3
#define SESSIONS 512        /* open ones, of each worker */
#define AUDIT_LINES 4096
#define PRODUCTS 60000

struct item {
	struct item *next;
	unsigned product;
	char note[84];
};

struct session {
	unsigned visitor;
	struct item *cart;
	char *language;
};

struct shop {
	char *catalogue[PRODUCTS];
};

struct worker {
	pthread_t thread;
	unsigned number;
	unsigned requests;
	uint64_t random;
	const struct shop *shop;
	struct session *sessions[SESSIONS];
	char *audit[AUDIT_LINES];
	unsigned long audited, bytes_sent;
};

static void *need(void *memory)
{
	if (!memory) {
		fputs("leaky: out of memory\n", stderr);
		exit(1);
	}
	return memory;
}

static inline unsigned next_random(struct worker *w)
{
	w->random = w->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(w->random >> 33);
}

static void load_catalogue(struct shop *shop)
{
	for (unsigned i = 0; i < PRODUCTS; i++) {
		shop->catalogue[i] = need(malloc(200));
		snprintf(shop->catalogue[i], 200, "product %u: %0120u", i, i);
	}
}

static struct session *session_open(unsigned visitor)
{
	struct session *s = need(calloc(1, sizeof *s));
	s->visitor = visitor;
	s->language = need(strdup(visitor % 3 ? "en-GB" : "pt-BR"));
	return s;
}

/* The bug: the items of s->cart are nobody's from here on. */
static void session_close(struct session *s)
{
	free(s->language);
	free(s);
}

static struct session *session_find(struct worker *w, unsigned visitor)
{
	struct session **slot = &w->sessions[visitor % SESSIONS];
	if (*slot && (*slot)->visitor != visitor) {
		session_close(*slot);
		*slot = NULL;
	}
	if (!*slot)
		*slot = session_open(visitor);
	return *slot;
}

/* Small enough for the compiler to build it into its caller; reports show it all the same. */
static inline struct item *item_new(unsigned product)
{
	struct item *i = need(malloc(sizeof *i));
	i->product = product;
	i->note[0] = '\0';
	return i;
}

__attribute__((noinline)) static void cart_add(struct session *s, unsigned product)
{
	struct item *i = item_new(product);
	i->next = s->cart;
	s->cart = i;
}

__attribute__((noinline)) static unsigned long render_page(const struct worker *w, const struct session *s)
{
	size_t room = 16384, length = 0;
	char *page = need(malloc(room));
	for (const struct item *i = s->cart; i && length < room - 256; i = i->next)
		length += (size_t)snprintf(page + length, room - length, "<li>%s%s</li>",
		                           w->shop->catalogue[i->product], i->note);
	free(page);
	return length;
}

__attribute__((noinline)) static void audit_append(struct worker *w, unsigned visitor, unsigned product)
{
	char line[128];
	snprintf(line, sizeof line, "worker %u: visitor %u wants product %u", w->number, visitor, product);
	char **slot = &w->audit[w->audited++ % AUDIT_LINES];
	free(*slot);
	*slot = need(strdup(line));
}

static void handle_request(struct worker *w)
{
	unsigned visitor = next_random(w) % 100000, product = next_random(w) % PRODUCTS;
	struct session *s = session_find(w, visitor);
	for (unsigned n = next_random(w) % 4; n > 0; n--)
		cart_add(s, product);
	w->bytes_sent += render_page(w, s);
	audit_append(w, visitor, product);
}

static void *worker_main(void *argument)
{
	struct worker *w = argument;
	char name[16];
	snprintf(name, sizeof name, "shop-%u", w->number);
	pthread_setname_np(pthread_self(), name);
	for (unsigned i = 0; i < w->requests; i++)
		handle_request(w);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned requests = 40000;
	char rest;
	if (argc > 1 && sscanf(argv[1], "%9u%c", &requests, &rest) != 1) {
		fputs("usage: leaky [REQUESTS]\n", stderr);
		return 2;
	}
	static struct shop shop;
	static struct worker workers[WORKERS];
	load_catalogue(&shop);
	for (unsigned i = 0; i < WORKERS; i++) {
		workers[i].number = i;
		workers[i].requests = requests;
		workers[i].random = i + 1;
		workers[i].shop = &shop;
		if (pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]) != 0)
			return 1;
	}
	unsigned long sent = 0;
	for (unsigned i = 0; i < WORKERS; i++) {
		pthread_join(workers[i].thread, NULL);
		sent += workers[i].bytes_sent;
	}
	printf("leaky: %u requests answered, %lu bytes sent\n", WORKERS * requests, sent);
	return 0;
}
