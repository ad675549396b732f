/*
 * Addresses are given to units: by .debug_aranges, by the ranges in the units' own entries, or, when a unit tells no ranges at all, by
 * walking it. The first unit that claims an address gets it; the next, when that one turns out to have no function there.
 * Units are worked on by threads, biggest first; nothing is shared between them but what is only read, and places, of which each
 * belongs to one unit at a time.
 */
#include <pthread.h>
#include <stdlib.h>

#include "symbol/dwarf.h"

#define ROUNDS_MAX 8
#define CLAIMS_PER_ADDRESS 16
#define CLAIMS_BASE ((size_t)1 << 20)
#define BUDGET_BASE 300000000u
#define BUDGET_PER_ADDRESS 20000u
#define ARENA_BLOCK ((size_t)64 << 10)
#define THREAD_STACK ((size_t)2 << 20)
#define THREADS_MAX 64
#define UNIT_NONE UINT32_MAX
#define TEXTS_MAX ((size_t)1 << 28)
#define KEPT_CLAIMS 256                          /* more units have the same address in no real file */
#define KEPT_LIMIT ((uint64_t)64 << 20)

/* --- memory of the result --- */

struct arena_block {
	struct arena_block *next;
	size_t used;
	_Alignas(8) char bytes[];
};

void *worker_memory(struct dwarf_worker *w, size_t bytes)
{
	bytes = (bytes + 7) & ~(size_t)7;
	if (bytes > w->arena_left) {
		size_t room = bytes > ARENA_BLOCK ? bytes : ARENA_BLOCK;
		struct arena_block *b = malloc(sizeof(*b) + room);
		if (!b) {
			w->no_memory = true;
			return NULL;
		}
		*b = (struct arena_block){ .next = w->arena };
		w->arena = b;
		w->arena_left = room;
	}
	void *taken = w->arena->bytes + w->arena->used;
	w->arena->used += bytes;
	w->arena_left -= bytes;
	return taken;
}

uint32_t worker_text(struct dwarf_worker *w, const char *at, bool is_name)
{
	struct dwarf_text *slot = ARRAY_PUSH(w->texts, w->n_texts, w->texts_capacity, TEXTS_MAX);
	if (!slot) {
		w->no_memory = true;
		return DWARF_NO_TEXT;
	}
	*slot = (struct dwarf_text){ at, is_name };
	return (uint32_t)(w->n_texts - 1);
}

struct wanted_text {
	const struct dwarf_worker *worker;
	const char *at;
};

static bool same_text(const void *context, uint32_t item)
{
	const struct wanted_text *t = context;
	return t->worker->texts[item].at == t->at;
}

uint32_t worker_name(struct dwarf_worker *w, const char *at)
{
	uint64_t hash = hash_u64((uintptr_t)at);
	uint32_t text = index_find(&w->text_index, hash, same_text, &(struct wanted_text){ w, at });
	if (text != INDEX_NONE)
		return text;
	text = worker_text(w, at, true);
	if (text != DWARF_NO_TEXT && index_reserve(&w->text_index))
		index_insert(&w->text_index, hash, text);
	return text;
}

bool join_has_code(const struct dwarf_join *j, uint64_t address)
{
	return elf_file_has_code(j->dwarf->in.binary, address);
}

bool join_is_function(const struct dwarf_join *j, size_t i)
{
	return !j->dwarf->in.have_symtab || j->question->symbols[i].name;
}

/* --- who gets an address --- */

/* A further unit that claims an address. */
struct claim {
	uint32_t index, unit;
};

struct claims {
	struct dwarf_join *join;
	struct intervals *keeping;           /* not NULL: claims are only kept */
	uint32_t *owner;                     /* per address: the unit that has it now, or UNIT_NONE */
	struct claim *more;      size_t n_more, capacity;
	struct budget budget;
	bool no_memory;
};

static void give_address(struct claims *c, size_t at, uint32_t unit)
{
	if (c->owner[at] == UNIT_NONE) {
		c->owner[at] = unit;
	} else if (c->owner[at] != unit) {
		struct claim *slot = ARRAY_PUSH(c->more, c->n_more, c->capacity, CLAIMS_BASE + CLAIMS_PER_ADDRESS * c->join->n);
		if (slot)
			*slot = (struct claim){ (uint32_t)at, unit };
	}
}

static bool claim(void *context, struct unit *u, uint64_t low, uint64_t high)
{
	struct claims *c = context;
	const struct dwarf_join *j = c->join;
	uint32_t number = (uint32_t)(u - j->main->units);
	if (!spend(&c->budget, 8))
		return false;
	if (c->keeping) {
		c->no_memory |= low < high && join_has_code(j, low) && !intervals_add(c->keeping, low, high, number);
		return !c->no_memory;
	}
	if (j->n == 0 || high <= j->addresses[0] || low > j->addresses[j->n - 1] || !join_has_code(j, low))
		return true;
	for (size_t at = lower_bound_u64(j->addresses, j->n, low); at < j->n && j->addresses[at] < high; at++) {
		if (!spend(&c->budget, 4))
			return false;
		give_address(c, at, number);
	}
	return true;
}

static bool may_have_code(const struct unit *u)
{
	return u->type == UNIT_COMPILE || u->type == UNIT_SKELETON;
}

static void claim_by_root(struct claims *c, struct unit *u)
{
	struct range_list l;
	uint64_t low, high;
	unit_root(u);
	for (ranges_begin(&l, u, &u->low_pc, &u->high_pc, &u->ranges); spend(&c->budget, 8) && ranges_next(&l, &low, &high);)
		if (low < high && !claim(c, u, low, high))
			return;
}

static bool any_unclaimed(const struct claims *c)
{
	for (size_t i = 0; i < c->join->n; i++)
		if (c->owner[i] == UNIT_NONE && join_is_function(c->join, i))
			return true;
	return false;
}

/* By .debug_aranges, and of units that aren't there by themselves. */
static void claim_by_table(struct claims *c)
{
	struct dwarf_file *f = c->join->main;
	dwarf_aranges(f, claim, c);
	for (size_t i = 0; i < f->n_units; i++)
		if (!f->units[i].in_aranges && may_have_code(&f->units[i]))
			claim_by_root(c, &f->units[i]);
}

/* A table of address ranges need not be complete. */
static void claim_past_table(struct claims *c)
{
	struct dwarf_file *f = c->join->main;
	for (size_t i = 0; i < f->n_units; i++)
		if (f->units[i].in_aranges && may_have_code(&f->units[i]))
			claim_by_root(c, &f->units[i]);
}

static void claim_all(struct claims *c)
{
	claim_by_table(c);
	if (any_unclaimed(c))
		claim_past_table(c);
}

/* --- the same for a few addresses --- */

static bool keep_claims(struct claims *c, int past_table)
{
	struct kept *k = &c->join->dwarf->kept;
	struct intervals *x = &k->claims[past_table];
	if (k->claimed[past_table])
		return true;
	c->keeping = x;
	if (past_table)
		claim_past_table(c);
	else
		claim_by_table(c);
	c->keeping = NULL;
	k->claimed[past_table] = !c->no_memory && !c->budget.exceeded;
	k->cannot_claim = !k->claimed[past_table];
	k->bytes += x->capacity * sizeof(*x->items);
	intervals_sort(x);
	return k->claimed[past_table];
}

static int compare_orders(const void *a, const void *b)
{
	const struct interval *const *x = a, *const *y = b;
	return (*x)->order < (*y)->order ? -1 : (*x)->order > (*y)->order;
}

static void claim_by_kept(struct claims *c, const struct intervals *x)
{
	const struct dwarf_join *j = c->join;
	const struct interval *found[KEPT_CLAIMS], *next;
	for (size_t i = 0; i < j->n; i++) {
		size_t n = 0, at = intervals_before(x, j->addresses[i]);
		while (n < KEPT_CLAIMS && spend(&c->budget, 4) && (next = intervals_next(x, &at, j->addresses[i])) != NULL)
			found[n++] = next;
		qsort(found, n, sizeof(*found), compare_orders);
		for (size_t k = 0; k < n; k++)
			give_address(c, i, found[k]->value);
	}
}

/* False when claims can't be kept. */
static bool claim_few(struct claims *c)
{
	const struct kept *k = &c->join->dwarf->kept;
	if (k->cannot_claim || !keep_claims(c, 0))
		return false;
	claim_by_kept(c, &k->claims[0]);
	if (!any_unclaimed(c))
		return true;
	if (!keep_claims(c, 1))
		return false;
	claim_by_kept(c, &k->claims[1]);
	return true;
}

static int compare_claims(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;
	if (x->index != y->index)
		return x->index < y->index ? -1 : 1;
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

/* Addresses whose unit had no function go to the next that claims them; the others to nobody. False when that's all. */
static bool next_claims(struct claims *c)
{
	const struct dwarf_join *j = c->join;
	size_t kept = 0, given = 0;
	for (size_t i = 0; i < j->n; i++)
		c->owner[i] = UNIT_NONE;
	for (size_t i = 0; i < c->n_more; i++) {
		struct claim m = c->more[i];
		if (j->places[m.index].node != NODE_NONE || !join_is_function(j, m.index))
			continue;
		if (c->owner[m.index] == UNIT_NONE) {
			c->owner[m.index] = m.unit;
			given++;
		} else if (c->owner[m.index] != m.unit) {
			c->more[kept++] = m;
		}
	}
	c->n_more = kept;
	return given > 0;
}

/* --- work --- */

struct task {
	struct unit *unit;
	uint64_t cost;
	int parts;
};

struct crew {
	struct dwarf_join *join;
	struct dwarf_worker *workers;
	size_t n_workers;
	struct task *tasks;      size_t n_tasks;
	atomic_size_t next;                  /* relaxed: it only hands out numbers */
};

void mark_used(struct dwarf_worker *w, const struct asked *asked, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct place *place = &w->join->places[asked[i].index];
		if (place->thread != w->number)
			continue;
		for (uint32_t node = place->node; node != NODE_NONE && !w->nodes[node].used; node = w->nodes[node].parent)
			w->nodes[node].used = true;
	}
}

static void work_on_tree(struct dwarf_worker *w, struct unit *u, struct line_table *lines)
{
	const struct asked *asked = w->join->asked + u->first_asked;
	size_t first = w->n_nodes;
	const struct unit *tree = u->split_name && u->id ? split_unit(w, u) : u;
	if (!tree)
		tree = u;
	scan_unit(w, tree, asked, u->n_asked);
	mark_used(w, asked, u->n_asked);
	names_of_nodes(w, first, lines);
}

static void work_on_unit(struct dwarf_worker *w, const struct task *t)
{
	struct unit *u = t->unit;
	struct line_table lines;
	unit_root(u);
	if (w->join->question->few && kept_work(w, u, t->parts))
		return;
	bool has_lines = lines_begin(w, u, &lines);
	if (t->parts & WORK_TREE)
		work_on_tree(w, u, has_lines ? &lines : NULL);
	if (has_lines && t->parts & WORK_LINES)
		lines_run(w, &lines, w->join->asked + u->first_asked, u->n_asked);
	line_table_finish(&lines);
}

struct hand {
	struct crew *crew;
	struct dwarf_worker *worker;
};

static void *work(void *context)
{
	struct hand *h = context;
	for (;;) {
		size_t i = atomic_fetch_add_explicit(&h->crew->next, 1, memory_order_relaxed);
		if (i >= h->crew->n_tasks || h->worker->no_memory || h->worker->budget.exceeded)
			return NULL;
		work_on_unit(h->worker, &h->crew->tasks[i]);
	}
}

static int compare_tasks(const void *a, const void *b)
{
	const struct task *x = a, *y = b;
	if (x->cost != y->cost)
		return x->cost > y->cost ? -1 : 1;
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

/* Of a unit that is most of the work, tree and lines are done side by side. */
static void share_giant(struct crew *c)
{
	uint64_t all = 0;
	for (size_t i = 0; i < c->n_tasks; i++)
		all += c->tasks[i].cost;
	struct task *biggest = &c->tasks[0];
	if (c->n_workers < 2 || biggest->cost < all / 2 || biggest->cost < (1 << 20))
		return;
	struct task lines = *biggest;
	lines.parts = WORK_LINES;
	biggest->parts = WORK_TREE;
	memmove(c->tasks + 2, c->tasks + 1, (c->n_tasks - 1) * sizeof(*c->tasks));
	c->tasks[1] = lines;
	c->n_tasks++;
}

/* One task for each unit that got addresses, and asked in the units' order. */
static void share_out(struct crew *c, const uint32_t *owner, bool first_round)
{
	struct dwarf_join *j = c->join;
	size_t at = 0;
	for (size_t i = 0; i < j->main->n_units; i++)
		j->main->units[i].n_asked = 0;
	for (size_t i = 0; i < j->n; i++)
		if (owner[i] != UNIT_NONE)
			j->main->units[owner[i]].n_asked++;
	c->n_tasks = 0;
	for (size_t i = 0; i < j->main->n_units; i++) {
		struct unit *u = &j->main->units[i];
		u->first_asked = at;
		at += u->n_asked;
		if (u->n_asked)
			c->tasks[c->n_tasks++] = (struct task){ u, u->end - u->offset, WORK_TREE | WORK_LINES };
		u->n_asked = 0;
	}
	for (size_t i = 0; i < j->n; i++)
		if (owner[i] != UNIT_NONE) {
			struct unit *u = &j->main->units[owner[i]];
			j->asked[u->first_asked + u->n_asked++] = (struct asked){ j->addresses[i], (uint32_t)i };
			/* Another unit's line was there in its stead. */
			if (!first_round)
				j->places[i].has_line = false;
		}
	qsort(c->tasks, c->n_tasks, sizeof(*c->tasks), compare_tasks);
	if (first_round && c->n_tasks)
		share_giant(c);
}

static void run_tasks(struct crew *c)
{
	pthread_t threads[THREADS_MAX];
	struct hand hands[THREADS_MAX];
	size_t n = c->n_workers < c->n_tasks ? c->n_workers : c->n_tasks, started = 1;
	pthread_attr_t attributes;
	atomic_store_explicit(&c->next, 0, memory_order_relaxed);
	if (n > 1 && pthread_attr_init(&attributes) == 0) {
		pthread_attr_setstacksize(&attributes, THREAD_STACK);
		for (; started < n; started++) {
			hands[started] = (struct hand){ c, &c->workers[started] };
			if (pthread_create(&threads[started], &attributes, work, &hands[started]))
				break;
		}
		pthread_attr_destroy(&attributes);
	}
	hands[0] = (struct hand){ c, &c->workers[0] };
	work(&hands[0]);
	for (size_t i = 1; i < started; i++)
		pthread_join(threads[i], NULL);
}

/* Addresses of code that nobody has; their number. */
static size_t without_function(struct dwarf_join *j)
{
	size_t n = 0;
	for (size_t i = 0; i < j->n; i++)
		if (j->places[i].node == NODE_NONE && join_is_function(j, i))
			j->asked[n++] = (struct asked){ j->addresses[i], (uint32_t)i };
	return n;
}

/* Compile units that tell no ranges at all are walked for every address that nobody has. */
static void walk_unknown(struct crew *c)
{
	struct dwarf_join *j = c->join;
	struct dwarf_worker *w = &c->workers[0];
	size_t n = without_function(j);
	for (size_t i = 0; i < j->main->n_units && n && !w->budget.exceeded && !w->no_memory; i++) {
		struct unit *u = &j->main->units[i];
		size_t nodes = w->n_nodes;
		if (u->in_aranges || !may_have_code(u) || u->is_partial || u->ranges.form || (u->low_pc.form && u->high_pc.form))
			continue;
		u->first_asked = 0;
		u->n_asked = n;
		if (!spend(&w->budget, 4 * n))          /* the addresses are gone through for each */
			break;
		work_on_unit(w, &(struct task){ u, 0, WORK_TREE });
		if (w->n_nodes == nodes)
			continue;
		work_on_unit(w, &(struct task){ u, 0, WORK_LINES });
		n = without_function(j);
	}
}

/* --- the result --- */

/* What the workers made and the result still needs. */
struct storage {
	struct arena_block *arena;
	struct place *places;
	struct node **nodes;                 /* of each thread */
	size_t n_threads;
};

static const struct node *node_of(const struct storage *s, const struct place *p, uint32_t node)
{
	return node == NODE_NONE ? NULL : &s->nodes[p->thread][node];
}

size_t dwarf_frames(const struct dwarf_result *r, size_t i, struct dwarf_frame *ret)
{
	const struct storage *s = r->storage;
	const struct place *p = &s->places[i];
	struct dwarf_frame at = { .file_table = p->line_thread, .name = DWARF_NO_TEXT, .scope = DWARF_NO_TEXT, .file = DWARF_NO_TEXT };
	size_t n = 0;
	if (p->has_line) {
		at.file = p->path;
		at.line = p->line;
		at.column = p->column;
	}
	for (const struct node *node = node_of(s, p, p->node); node && n < DWARF_FRAMES_MAX; node = node_of(s, p, node->parent)) {
		ret[n++] = (struct dwarf_frame){
			.table = p->thread, .file_table = at.file_table, .is_linkage = node->is_linkage, .name = node->name, .scope = node->scope,
			.file = at.file, .line = at.line, .column = at.column, .start_line = node->start_line,
			.entry = node->is_linkage ? 0 : node->code,
		};
		at.file_table = p->thread;
		at.file = node->call_path;
		at.line = node->call_line;
		at.column = node->call_column;
	}
	if (n || !p->has_line)
		return n;
	ret[0] = at;
	return 1;
}

bool dwarf_names_function(const struct dwarf_result *r, size_t i)
{
	const struct storage *s = r->storage;
	const struct place *p = &s->places[i];
	const struct node *node = node_of(s, p, p->node);
	for (size_t n = 1; node && node->parent != NODE_NONE && n < DWARF_FRAMES_MAX; n++)
		node = node_of(s, p, node->parent);
	return node && node->name != DWARF_NO_TEXT;
}

void dwarf_result_finish(struct dwarf_result *r)
{
	if (!r)
		return;
	struct storage *s = r->storage;
	while (s && s->arena) {
		struct arena_block *next = s->arena->next;
		free(s->arena);
		s->arena = next;
	}
	for (size_t i = 0; s && i < s->n_threads; i++)
		free(s->nodes[i]);
	if (s) {
		free(s->places);
		free(s->nodes);
	}
	free(s);
	for (size_t i = 0; i < r->n_texts; i++)
		free(r->texts[i].items);
	free(r->texts);
	free(r->entries);
	*r = (struct dwarf_result){ 0 };
}

static int collect_entries(const struct crew *c, struct dwarf_result *ret, struct error *err)
{
	size_t n = 0;
	for (int pass = 0; pass < 2; pass++) {
		n = 0;
		for (size_t i = 0; i < c->n_workers; i++)
			for (size_t k = 0; k < c->workers[i].n_nodes; k++) {
				const struct node *node = &c->workers[i].nodes[k];
				if (!node->used || node->is_linkage || !node->code || node->name == DWARF_NO_TEXT)
					continue;
				if (ret->entries)
					ret->entries[n] = node->code;
				n++;
			}
		if (pass == 0)
			ret->entries = malloc((n + 1) * sizeof(*ret->entries));
		if (!ret->entries)
			return error_nomem(err, "function names");
	}
	ret->n_entries = n;
	return 0;
}

/* What a worker made stays with the result; the rest goes. */
static void finish_worker(struct dwarf_worker *w, struct storage *s, struct dwarf_result *ret)
{
	struct arena_block **end = &w->arena;
	while (*end)
		end = &(*end)->next;
	*end = s->arena;
	s->arena = w->arena;
	s->nodes[w->number] = w->nodes;
	ret->texts[w->number] = (struct dwarf_texts){ w->texts, w->n_texts };
	ret->damaged |= w->damaged || w->budget.exceeded;
	for (size_t i = 0; i < w->n_others; i++)
		abbrevs_finish(&w->others[i]);
	abbrevs_finish(&w->abbrevs);
	free(w->others);
	free(w->names);
	free(w->concretes);
	index_finish(&w->other_index);
	index_finish(&w->name_index);
	index_finish(&w->text_index);
}

static int begin_crew(struct crew *c, struct dwarf_result *ret, struct error *err)
{
	struct dwarf_join *j = c->join;
	struct storage *s = ret->storage;
	size_t wanted = j->question->few ? 1 : j->question->threads;
	size_t n = wanted == 0 ? 1 : wanted > THREADS_MAX ? THREADS_MAX : wanted;
	s->nodes = calloc(n, sizeof(*s->nodes));
	ret->texts = calloc(n, sizeof(*ret->texts));
	c->workers = calloc(n, sizeof(*c->workers));
	c->tasks = calloc(j->main->n_units + 2, sizeof(*c->tasks));
	if (!s->nodes || !ret->texts || !c->workers || !c->tasks)
		return error_nomem(err, "debug information");
	c->n_workers = s->n_threads = ret->n_texts = n;
	for (size_t i = 0; i < n; i++) {
		c->workers[i].join = j;
		c->workers[i].number = (uint16_t)i;
		c->workers[i].budget.left = BUDGET_BASE + BUDGET_PER_ADDRESS * (uint64_t)j->n + 8 * (j->main->info.n + j->main->line.n + j->main->abbrev.n);
	}
	return 0;
}

static int run_rounds(struct crew *c, struct claims *claims, struct dwarf_result *ret, struct error *err)
{
	claims->budget.left = c->workers[0].budget.left;
	if (!c->join->question->few || !claim_few(claims))
		claim_all(claims);
	if (claims->n_more)
		qsort(claims->more, claims->n_more, sizeof(*claims->more), compare_claims);
	for (int round = 0; round < ROUNDS_MAX; round++) {
		share_out(c, claims->owner, round == 0);
		run_tasks(c);
		if (!next_claims(claims))
			break;
	}
	walk_unknown(c);
	ret->damaged |= claims->budget.exceeded || c->join->main->roots.exceeded;
	for (size_t i = 0; i < c->n_workers; i++)
		if (c->workers[i].no_memory)
			return error_nomem(err, "debug information");
	return collect_entries(c, ret, err);
}

/* The storage is the result's from the beginning, so that one call frees all that was had when something is missing. */
static int begin(struct dwarf_join *j, struct claims *claims, struct dwarf_result *ret, struct error *err)
{
	struct storage *s = calloc(1, sizeof(*s));
	*ret = (struct dwarf_result){ .storage = s };
	j->asked = calloc(j->n + 1, sizeof(*j->asked));
	claims->owner = malloc((j->n + 1) * sizeof(*claims->owner));
	if (s)
		s->places = j->places = calloc(j->n + 1, sizeof(*j->places));
	if (!s || !j->asked || !claims->owner || !j->places)
		return error_nomem(err, "debug information");
	for (size_t i = 0; i < j->n; i++) {
		j->places[i].node = NODE_NONE;
		j->places[i].path = DWARF_NO_TEXT;
		claims->owner[i] = UNIT_NONE;
	}
	return 0;
}

int dwarf_join(struct dwarf *d, const struct dwarf_question *q, struct dwarf_result *ret, struct error *err)
{
	struct dwarf_join j = { .dwarf = d, .question = q, .main = &d->main, .addresses = q->addresses, .n = q->n };
	struct crew crew = { .join = &j };
	struct claims claims = { .join = &j };
	kept_trim(d);
	d->kept.serial++;
	int rc = begin(&j, &claims, ret, err);
	if (rc == 0)
		rc = begin_crew(&crew, ret, err);
	if (rc == 0)
		rc = run_rounds(&crew, &claims, ret, err);
	for (size_t i = 0; i < crew.n_workers; i++)
		finish_worker(&crew.workers[i], ret->storage, ret);
	ret->too_big = split_files_too_big(d->split);
	free(crew.workers);
	free(crew.tasks);
	free(claims.owner);
	free(claims.more);
	free(j.asked);
	if (rc)
		dwarf_result_finish(ret);
	return rc;
}

int dwarf_open(struct dwarf **ret, const struct dwarf_input *in, struct error *err)
{
	struct dwarf *d = calloc(1, sizeof(*d));
	if (!d)
		return error_nomem(err, "debug information");
	d->in = *in;
	d->kept.limit = in->kept_limit && in->kept_limit < KEPT_LIMIT ? in->kept_limit : KEPT_LIMIT;
	d->split = split_files_new();
	int rc = d->split ? dwarf_file_open(&d->main, in->sections, err) : error_nomem(err, "debug information");
	if (rc == 0 && in->alt) {
		rc = dwarf_file_open(&d->alt, in->alt, err);
		d->main.alt = &d->alt;
	}
	if (rc)
		dwarf_close(d);
	else
		*ret = d;
	return rc;
}

void dwarf_close(struct dwarf *d)
{
	if (!d)
		return;
	kept_forget(d);
	split_files_free(d->split);
	dwarf_file_close(&d->main);
	dwarf_file_close(&d->alt);
	free(d);
}
