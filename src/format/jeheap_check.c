/*
 * Two questions that only the sums can answer.
 *
 * Raw or bent? Raw counts (jemalloc <= 5.2, prof_unbias:false) add up exactly, from threads to
 * stacks to the header. Bent ones (>= 5.3) don't as soon as blocks have different sizes: the
 * header's bytes are then less than the sum of the stacks'. Where all sizes are equal both readings
 * give the same numbers.
 *
 * Whole or cut? jemalloc writes the stacks, an empty line, MAPPED_LIBRARIES. With the section
 * there, all stacks are; it may be missing by right (/proc not mounted), but 5.3.0 also leaves a
 * file cut short when a disk fills and calls it success. Raw counts then must add up to the
 * header's. Bent counts are known to half a block each, so what the header and the stacks stand for
 * are spans. One block that was sampled stands for at least R bytes: if the header's span minus the
 * stacks' can't hold R bytes, nothing is missing; if it is wholly above zero, something is.
 */
#include "format/jeheap.h"
#include "profile/estimate.h"

#include <math.h>
#include <stdlib.h>

static bool counts_zero(const struct counts *c)
{
	return (c->objects | c->bytes | c->accum_objects | c->accum_bytes) == 0;
}

#define SIZES_DIFFER 1.02       /* of two means, when their blocks are surely not of one size */

/* --- raw or bent ---------------------------------------------------------- */

/* Threads of the header with any count. */
static size_t busy_threads(const struct dump *d)
{
	size_t n = 0;
	for (size_t i = 0; i < d->n_threads; i++)
		n += d->threads[i].listed && !counts_zero(&d->threads[i].header);
	return n;
}

bool jeheap_is_raw(const struct dump *d)
{
	if (d->rate <= 1 || d->n_bent > 0 || !(d->most_objects > 0))
		return false;
	if (!counts_equal(&d->header, d->cut ? &d->header_threads : &d->stacks))
		return false;
	/*
	 * Different sizes added up: bent counts could not. A cut dump proves that only by its
	 * threads.
	 */
	if (d->greatest_mean > d->least_mean * SIZES_DIFFER && (!d->cut || busy_threads(d) > 1))
		return true;
	/* One size, or one line: bent counts of it would be known as such. */
	return d->eights && !estimate_block_size(d->header.objects, d->header.bytes, d->rate, true, NULL, NULL);
}

static void note_mean(uint64_t objects, uint64_t bytes, double *least, double *greatest)
{
	if (objects == 0 || bytes == 0)
		return;
	double mean = (double)bytes / (double)objects;
	*least = *least == 0 ? mean : fmin(*least, mean);
	*greatest = fmax(*greatest, mean);
}

bool jeheap_header_is_raw(const struct dump *d)
{
	double least = 0, greatest = 0, accum_least = 0, accum_greatest = 0;
	if (d->rate <= 1 || !counts_equal(&d->header, &d->header_threads))
		return false;
	for (size_t i = 0; i < d->n_threads; i++) {
		const struct counts *c = &d->threads[i].header;
		note_mean(c->objects, c->bytes, &least, &greatest);
		note_mean(c->accum_objects, c->accum_bytes, &accum_least, &accum_greatest);
	}
	return greatest > least * SIZES_DIFFER || accum_greatest > accum_least * SIZES_DIFFER;
}

/* --- whole or cut --------------------------------------------------------- */

struct span {
	double low, high;
};

/* What the line's bytes may stand for, given that both its counts were rounded. */
static struct span span_of(uint64_t objects, uint64_t bytes, double rate)
{
	double n = (double)objects, b = (double)bytes;
	if (objects == 0)
		return (struct span){ 0, 0 };
	double size_objects, size_bytes;
	if (estimate_block_size(objects, bytes, rate, true, &size_objects, &size_bytes))
		return (struct span){ size_bytes - n / 2 - 1, size_bytes + n / 2 + 1 };
	double least = fmax(b - 0.5, 0.5);
	return (struct span){
		least * estimate_scale(n - 0.5, least, rate),
		(b + 0.5) * estimate_scale(n + 0.5, b + 0.5, rate),
	};
}

/* One amount of the header's and the same of the stacks: in all, or of one thread. */
struct balance {
	struct span header, stacks;
	double variance;            /* of the rounding */
	bool listed;
};

static void widen(struct balance *b, struct span s)
{
	double width = s.high - s.low;
	b->stacks.low += s.low;
	b->stacks.high += s.high;
	b->variance += width * width / 12;
}

enum verdict { VERDICT_WHOLE, VERDICT_UNSURE, VERDICT_CUT };

static enum verdict judge(const struct balance *b, double rate)
{
	double least = b->header.low - b->stacks.high, most = b->header.high - b->stacks.low;
	if (least > 1 + 1e-9 * b->header.low)
		return VERDICT_CUT;
	return most < 0.9 * rate ? VERDICT_WHOLE : VERDICT_UNSURE;
}

/* balances: one in all, then one a thread. */
static void weigh(const struct dump *d, bool accum, struct balance *balances)
{
	struct counts h = d->header;
	double rate = d->rate;
	balances[0].header = accum ? span_of(h.accum_objects, h.accum_bytes, rate) : span_of(h.objects, h.bytes, rate);
	balances[0].listed = true;
	for (size_t i = 0; i < d->n_threads; i++) {
		h = d->threads[i].header;
		balances[i + 1].header =
		    accum ? span_of(h.accum_objects, h.accum_bytes, rate) : span_of(h.objects, h.bytes, rate);
		balances[i + 1].listed = d->threads[i].listed;
	}
	for (size_t i = 0; i < d->n_lines; i++) {
		struct counts c = dump_line(d, i);
		struct span s = accum ? span_of(c.accum_objects, c.accum_bytes, rate) : span_of(c.objects, c.bytes, rate);
		uint32_t thread = d->lines[i].thread;
		if (thread == STAR || (thread & ALONE))
			widen(&balances[0], s);
		if (thread != STAR)
			widen(&balances[1 + (thread & ~ALONE)], s);
	}
}

/*
 * Judges one pair of columns. *ret_loss: bytes that may be missing, at most, in a case of doubt
 * (rounding errors taken as independent: four standard deviations).
 */
static int judge_columns(const struct dump *d, bool accum, enum verdict *ret, double *ret_loss,
                         struct error *err)
{
	struct balance *balances = calloc(d->n_threads + 1, sizeof(*balances));
	if (!balances)
		return error_nomem(err, "checking the dump's sums");
	weigh(d, accum, balances);
	const struct balance *all = &balances[0];
	enum verdict total = judge(all, d->rate), threads = VERDICT_WHOLE;
	size_t listed = 0;
	for (size_t i = 1; i <= d->n_threads; i++) {
		enum verdict v = balances[i].listed ? judge(&balances[i], d->rate) : VERDICT_WHOLE;
		threads = v > threads ? v : threads;
		listed += balances[i].listed;
	}
	*ret = total;
	if (total == VERDICT_UNSURE && listed > 0 && threads == VERDICT_WHOLE)
		*ret = VERDICT_WHOLE;
	if (threads == VERDICT_CUT)
		*ret = VERDICT_CUT;
	double middle = (all->header.low + all->header.high - all->stacks.low - all->stacks.high) / 2;
	double width = all->header.high - all->header.low;
	*ret_loss = fmax(middle, 0) + 4 * sqrt(all->variance + width * width / 12);
	free(balances);
	return E_OK;
}

/*
 * For raw counts, or what may be some: more in the header than in the stacks, in every column that
 * differs.
 */
static bool header_has_more(const struct dump *d)
{
	const struct counts *h = &d->header, *s = &d->stacks;
	return h->objects >= s->objects && h->bytes >= s->bytes && h->accum_objects >= s->accum_objects &&
	       h->accum_bytes >= s->accum_bytes;
}

/*
 * What can be said without spans: true when it settled the matter in *ret.
 */
static bool judge_raw(const struct dump *d, enum verdict *ret)
{
	bool threads_add_up = d->n_threads == 0 || counts_equal(&d->header, &d->header_threads);
	if (d->header_threads.objects + d->header_threads.accum_objects > 0 && d->last_alone) {
		/* The thread lines of the last stack are missing. */
		*ret = VERDICT_CUT;
		return true;
	}
	if (counts_equal(&d->header, &d->stacks)) {
		bool middle = d->n_bent == 1 && d->last_bent && threads_add_up && d->rate > 1;
		*ret = middle ? VERDICT_CUT : VERDICT_WHOLE;
		return true;
	}
	/* The cut may have left the last stack with some of its threads. */
	bool adds_up = d->n_bent == d->last_bent && threads_add_up;
	bool may_be_raw = d->rate <= 1 || (adds_up && (busy_threads(d) > 1 || d->eights));
	if (may_be_raw && header_has_more(d)) {
		*ret = VERDICT_CUT;
		return true;
	}
	return false;
}

/*
 * One pair of columns that the sums could not settle: E_TRUNCATED if more than a hundredth may be
 * missing.
 */
static int doubt(const struct dump *d, double loss, uint64_t objects, uint64_t bytes, struct read_report *report,
                 struct error *err)
{
	double all = (double)bytes * estimate_scale((double)objects, (double)bytes, d->rate);
	double percent = 100 * loss / all;
	if (percent > 1)
		return error_set(err, E_TRUNCATED,
		    "%s: the dump has no MAPPED_LIBRARIES, so its end may be missing, and its "
		    "sums are too coarse to tell (%.1f%%, %.0f KiB)", d->name, percent, loss / 1024);
	if (report)
		buf_printf(&report->warnings,
		    "%s: no MAPPED_LIBRARIES, so its end may be missing: up to %.2f%%, %.0f KiB\n",
		    d->name, percent, loss / 1024);
	return E_OK;
}

static int check_spans(struct dump *d, struct read_report *report, enum verdict *ret, struct error *err)
{
	const struct counts *h = &d->header;
	enum verdict inuse, accum = VERDICT_WHOLE;
	double loss, accum_loss = 0;
	int rc = judge_columns(d, false, &inuse, &loss, err);
	if (rc == E_OK && h->accum_objects > 0)
		rc = judge_columns(d, true, &accum, &accum_loss, err);
	if (rc)
		return rc;
	*ret = inuse > accum ? inuse : accum;
	if (inuse == VERDICT_CUT || accum == VERDICT_CUT)
		return E_OK;
	/* No live block is missing if none that ever was is. */
	if (inuse == VERDICT_UNSURE && !(h->accum_objects > 0 && accum == VERDICT_WHOLE))
		rc = doubt(d, loss, h->objects, h->bytes, report, err);
	if (rc == E_OK && accum == VERDICT_UNSURE)
		rc = doubt(d, accum_loss, h->accum_objects, h->accum_bytes, report, err);
	return rc;
}

static int check_stacks(struct dump *d, struct read_report *report, struct error *err)
{
	enum verdict verdict;
	bool settled = judge_raw(d, &verdict);
	if (!settled && d->n_lines == 0 && d->n_stacks > 0)     /* the sink has taken them */
		return error_set(err, E_TRUNCATED,
		    "%s: the dump has no MAPPED_LIBRARIES, so its end may be missing", d->name);
	int rc = settled ? E_OK : check_spans(d, report, &verdict, err);
	if (rc == E_OK && verdict == VERDICT_CUT)
		rc = error_set(err, E_TRUNCATED,
		    "%s: the dump's end is missing: its stacks come to less than its header counts",
		    d->name);
	return rc;
}

int jeheap_check_end(struct dump *d, struct read_report *report, struct error *err)
{
	if (!d->has_header)
		return error_set(err, E_TRUNCATED,
		    "%s: the dump ends before its totals (\"t*: ...\")", d->name);
	if (d->section == SECTION_MAPS)
		return maps_check_end(d->maps, d->name, d->frames.addresses, d->frames.n, err);
	return d->gap ? E_OK : check_stacks(d, report, err);
}

void jeheap_warn(const struct dump *d, bool raw, struct read_report *report)
{
	if (!report)
		return;
	struct buf *w = &report->warnings;
	double header = (double)d->header.bytes *
	                estimate_scale((double)d->header.objects, (double)d->header.bytes, d->rate);
	if (d->cut) {
		/*
		 * Raw counts are compared as they are, since the header's mixed sizes have no
		 * estimate.
		 */
		double part = raw ? (double)d->stacks.bytes / (double)d->header.bytes : d->total_bytes / header;
		if (d->header.bytes > 0)
			buf_printf(w,
			    "%s: what was kept is %.0f%% of the bytes in use that the header "
			    "counts\n", d->name, 100 * part);
		return;
	}
	if (d->section != SECTION_MAPS && d->profile->n_frames > 0)
		buf_printf(w,
		    "%s: no MAPPED_LIBRARIES: which binary a frame belongs to is unknown\n", d->name);
	if (d->skipped > 0)
		buf_printf(w,
		    "%s: %zu lines of MAPPED_LIBRARIES are no mappings and were passed over\n",
		    d->name, d->skipped);
	/* Each rounding is uniform within half a block, which stands for R/2 bytes at most. */
	double rounding = d->rate * sqrt((d->mixed_lines + 1) / 12);
	if (!raw && header - d->total_bytes > 0.01 * header + 6 * rounding)
		buf_printf(w,
		    "%s: the stacks account for %.0f of the %.0f KiB that the dump's header "
		    "counts\n", d->name, d->total_bytes / 1024, header / 1024);
}
