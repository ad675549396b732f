/* C functions of every shape a symbolizer trips over: inlines in inlines, statics, cold parts, recursion. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
	struct node *next;
	int value;
};

static inline __attribute__((always_inline)) int twice(int x)
{
	return x * 2 + (x > 100 ? abs(x) : 1);
}

static inline __attribute__((always_inline)) int fourfold(int x)
{
	return twice(twice(x)) + twice(x + 1);
}

static __attribute__((noinline)) struct node *push(struct node *head, int value)
{
	struct node *n = malloc(sizeof(*n));
	if (!n) {
		fprintf(stderr, "no memory\n");
		abort();
	}
	n->next = head;
	n->value = fourfold(value);
	return n;
}

__attribute__((noinline)) int sum(const struct node *head)
{
	int total = 0;
	for (; head; head = head->next)
		total += twice(head->value);
	return total;
}

__attribute__((cold, noinline)) static void complain(const char *what)
{
	fprintf(stderr, "%s\n", what);
}

__attribute__((noinline)) int descend(int depth)
{
	if (depth <= 0) {
		complain("bottom");
		return 0;
	}
	if (__builtin_expect(depth == 77777, 0)) {
		complain("strange depth");
		exit(3);
	}
	return descend(depth - 1) + fourfold(depth);
}

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) void sort(int *values, size_t n)
{
	qsort(values, n, sizeof(*values), compare);
}

int main(int argc, char **argv)
{
	struct node *head = NULL;
	int values[16];
	for (int i = 0; i < 16; i++) {
		head = push(head, i + argc);
		values[i] = twice(head->value) % 7;
	}
	sort(values, 16);
	printf("%d %d %d %zu\n", sum(head), descend(argc), values[3], strlen(argv[0]));
	return 0;
}
