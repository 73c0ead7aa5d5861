/*
 * A window of a stream: bytes that have left, for what depends on what stands before, then bytes
 * that are held back, then new ones. All of it is searched; what is decided leaves. A match is
 * decided by bytes that are at most LOOK_BACK before it and HOLD_MAX behind where it begins, so it
 * does not matter how the stream is cut: with fewer bytes it is held back. What is longer than that
 * leaves as its mark, and the rest is dropped as it comes.
 */
#include <stdlib.h>

#include "base/secret.h"
#include "guard/redact/internal.h"

enum {
	KEPT = LOOK_BACK, /* of what has left */
	/* Held back at most: the longest spelling of a value, and what overlaps it. */
	HELD_MAX = 1 << 20,
	WINDOW_MAX = 1 << 30,
	MARK_MAX = sizeof("[REDACTED::]") + REDACT_KIND_MAX + REDACT_TAG,
};

struct redactor {
	struct patterns *patterns;
	size_t around; /* of the longest value, encoded */
	struct hs_scratch *scratch; /* of redactor_share() */
	bool nothing; /* is replaced */
	struct value *list;
	size_t n_values;
	struct values *values; /* what is built of the list; NULL: not yet, or there is none */
	struct span *spans; /* room for what is found */
	size_t cap;
};

/* How far a text or stream has come. Offsets count from where it begins. */
struct state {
	bool keep_length;
	size_t done; /* bytes of the window that have left */
	uint64_t base; /* where the window begins */
	uint64_t covered; /* end of the last match: what overlaps it continues it */
	uint64_t replaced; /* matches */
	/* Bytes that are dropped, behind a match that goes on. */
	enum span_more more;
	char quote;
	bool escaped; /* the last byte was a backslash */
	struct armour armour;
	/* How its replacement goes on, where its length is kept. */
	bool fills;
	size_t filled;
	char mark[MARK_MAX + 1];
	size_t whole; /* bytes of the mark; 0: there is no room for it */
};

struct redact_stream {
	struct redactor *r;
	struct buf window;
	struct state state;
};

int redactor_prepare(struct redactor *r, struct err *e)
{
	if (r->list && !r->values)
		r->values = values_build(r->list, e);
	return r->list && !r->values ? -1 : 0;
}

/* ---- the redactor ---------------------------------------------------------------------------- */

struct redactor *redactor_new(const struct redact_options *o, struct err *e)
{
	struct redactor *r = calloc(1, sizeof(*r));

	if (r)
		r->patterns = patterns_new(o, e);
	else
		err_set(e, ERR_LIMIT, "out of memory");
	if (r && !r->patterns)
		free(take_ptr(r));
	if (r)
		r->nothing = o && o->nothing;
	return r;
}

int redactor_set(struct redactor *r, const struct redact_options *o, struct err *e)
{
	struct patterns *p = patterns_new(o, e);

	if (!p)
		return -1;
	patterns_free(r->patterns);
	r->patterns = p;
	r->nothing = o && o->nothing;
	return 0;
}

struct redactor *redactor_share(struct redactor *r, struct err *e)
{
	AUTO(redactor_free) struct redactor *s = calloc(1, sizeof(*s));

	if (!s) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	s->nothing = r->nothing;
	s->around = r->around;
	s->patterns = patterns_ref(r->patterns, &s->scratch, e);
	if (!s->patterns || redactor_prepare(r, e) < 0)
		return NULL;
	s->values = values_ref(r->values);
	return take_ptr(s);
}

void redactor_free(struct redactor *r)
{
	if (!r)
		return;
	while (r->list) {
		struct value *v = r->list;

		r->list = v->next;
		value_unref(v);
	}
	values_free(r->values);
	patterns_free(r->patterns);
	scratch_free(r->scratch);
	free(r->spans);
	free(r);
}

/* As it can be shown. */
static void value_name(char to[REDACT_KIND_MAX + 1], struct str name)
{
	size_t n = name.n < REDACT_KIND_MAX ? name.n : REDACT_KIND_MAX;

	for (size_t i = 0; i < n; i++)
		to[i] = (char_class(name.p[i]) & (URL64 | IS_DOT)) ? name.p[i] : '-';
	to[n] = '\0';
	if (n == 0)
		memcpy(to, "secret", sizeof("secret"));
}

int redact_value_add(struct redactor *r, struct str name, struct str value, struct err *e)
{
	struct value *v;

	if (value.n < REDACT_VALUE_MIN || value.n > REDACT_VALUE_MAX)
		return err_set(e, ERR_INVALID,
			       "a secret has %d to %d bytes: others can't be found in output",
			       REDACT_VALUE_MIN, REDACT_VALUE_MAX);
	for (v = r->list; v; v = v->next) {
		if (secret_is(v->bytes, value))
			return 0;
	}
	if (r->n_values >= REDACT_VALUES_MAX)
		return err_set(e, ERR_LIMIT, "%d values are redacted already", REDACT_VALUES_MAX);
	v = calloc(1, sizeof(*v));
	if (!v)
		return err_set(e, ERR_LIMIT, "out of memory");
	v->bytes = secret_new(value, e);
	if (!v->bytes) {
		free(v);
		return -1;
	}
	v->refs = 1;
	value_name(v->name, name);
	v->next = r->list;
	r->list = v;
	r->n_values++;
	values_free(take_ptr(r->values));
	/* The longest encoding is that of URLs. */
	if (r->around < 3 * value.n)
		r->around = 3 * value.n;
	return 0;
}

size_t redactor_around(const struct redactor *r)
{
	/* Patterns find blocks in ASCII armour, which are as long as this. */
	enum { AROUND_MIN = 64 << 10 };

	if (!r)
		return 0;
	return r->around > AROUND_MIN ? r->around : AROUND_MIN;
}

void redact_value_remove(struct redactor *r, struct str name)
{
	char shown[REDACT_KIND_MAX + 1];

	value_name(shown, name);
	for (struct value **at = &r->list; *at;) {
		struct value *v = *at;

		if (strcmp(v->name, shown) != 0) {
			at = &v->next;
			continue;
		}
		*at = v->next;
		r->n_values--;
		value_unref(v);
		values_free(take_ptr(r->values));
	}
}

/* ---- the search ------------------------------------------------------------------------------ */

/* By where they begin; of those that begin alike, the longest first. */
static int by_place(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	if (x->n != y->n)
		return x->n > y->n ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Forgets what was found from the n-th on inside of marks. */
static void drop_marks(struct finder *f, size_t n)
{
	size_t kept = n;

	for (size_t i = n; i < f->n_spans; i++) {
		if (!is_in_mark((struct str){ f->p, f->n }, f->spans[i].at))
			f->spans[kept++] = f->spans[i];
	}
	f->n_spans = kept;
}

static int find_all(struct redactor *r, struct finder *f, struct err *e)
{
	bool sorted = true;
	size_t values;
	int rc = 0;

	f->open = f->firm = f->n;
	if (r->nothing)
		return 0;
	if (redactor_prepare(r, e) < 0)
		return -1;
	f->spans = r->spans;
	f->cap = r->cap;
	if (r->values)
		values_find(r->values, f);
	values = f->n_spans;
	if (!f->values_only)
		rc = patterns_find(r->patterns, r->scratch, f, e);
	drop_marks(f, values);
	r->spans = f->spans;
	r->cap = f->cap;
	if (rc == 0 && f->failed)
		rc = err_set(e, ERR_LIMIT, "out of memory");
	for (size_t i = 1; i < f->n_spans && sorted; i++)
		sorted = by_place(&f->spans[i - 1], &f->spans[i]) <= 0;
	if (!sorted)
		qsort(f->spans, f->n_spans, sizeof(*f->spans), by_place);
	return rc;
}

/* ---- what leaves ----------------------------------------------------------------------------- */

/* A window while it is written; what stands at or behind `clip` is looked at only. */
struct writing {
	struct state *s;
	const char *p;
	size_t n, clip;
	struct buf *to;
	struct buf *places; /* instead of `to`: of struct redact_place */
	struct err *e;
};

static int write_text(struct writing *w, size_t from, size_t to)
{
	to = to < w->clip ? to : w->clip;
	return from < to && w->to ? buf_add(w->to, w->p + from, to - from, w->e) : 0;
}

/* n bytes of a replacement that has the length of what it replaces. */
static int write_fill(struct writing *w, size_t n)
{
	struct state *s = w->s;

	for (; n > 0; n--, s->filled++) {
		if (buf_add(w->to, s->filled < s->whole ? &s->mark[s->filled] : "*", 1, w->e) < 0)
			return -1;
	}
	return 0;
}

/* From..to is dropped. */
static int write_dropped(struct writing *w, size_t from, size_t to)
{
	to = to < w->clip ? to : w->clip;
	return w->s->fills && from < to ? write_fill(w, to - from) : 0;
}

/* How a match is replaced. */
static void mark_begin(struct writing *w, const struct span *span)
{
	struct state *s = w->s;
	size_t before = span->at < REDACT_NEAR ? span->at : REDACT_NEAR;

	s->filled = 0;
	s->fills = s->keep_length || is_binary(w->p + span->at - before, before);
	/* A kind has REDACT_KIND_MAX bytes at most. */
	s->whole = (size_t)(stpcpy(stpcpy(stpcpy(s->mark, "[REDACTED:"), span->kind),
				   ":" REDACT_TAG_OUTPUT "]") -
			    s->mark);
	if (s->whole > span->n)
		s->whole = 0;
}

/* A match that begins there, or goes on to there. */
static int write_place(struct writing *w, const struct span *span, size_t to, bool goes_on)
{
	struct redact_place p = { span->at, to - span->at, span->kind }, *last;

	if (!goes_on) {
		mark_begin(w, span);
		p.fills = w->s->fills;
		p.whole = w->s->whole > 0;
		return buf_add(w->places, (const char *)&p, sizeof(p), w->e);
	}
	last = (struct redact_place *)(w->places->p + w->places->n) - 1;
	last->n = to > last->at + last->n ? to - last->at : last->n;
	return 0;
}

/* The replacement of a match that begins at `at`; its first byte that is not yet out is `from`. */
static int write_mark(struct writing *w, const struct span *span, size_t from)
{
	struct state *s = w->s;

	mark_begin(w, span);
	if (s->fills || from >= w->clip)
		return 0;
	return buf_add(w->to, s->mark, strlen(s->mark), w->e);
}

/* How many of the bytes belong to what is being dropped. */
static size_t state_eat(struct state *s, const char *p, size_t n)
{
	bool done = false;
	size_t i = 0;

	if (s->more == SPAN_PEM) {
		i = armour_eat(&s->armour, p, n, &done);
	} else if (s->more == SPAN_TOKEN) {
		while (i < n && (char_class(p[i]) & (URL64 | IS_DOT | IS_BASE64)))
			i++;
		done = i < n;
	} else if (s->more == SPAN_QUOTED) {
		for (; i < n && !done; i++) {
			if (p[i] == '\n' || (p[i] == s->quote && !s->escaped))
				break;
			s->escaped = p[i] == '\\' && !s->escaped;
		}
		done = i < n;
	}
	if (done)
		s->more = SPAN_ENDS;
	return i;
}

/* One match: what stands before it, its mark, and what goes on behind it. *pos is behind what is
 * out. */
static int write_span(struct writing *w, const struct span *span, size_t *pos)
{
	struct state *s = w->s;
	size_t stop = span->at + span->n, from = span->at > *pos ? span->at : *pos;
	bool goes_on = s->base + span->at < s->covered;
	bool again = goes_on && s->base + stop <= s->covered;

	if (again)
		return 0;
	if (!goes_on) {
		if (write_text(w, *pos, span->at) < 0)
			return -1;
		s->replaced++;
		s->more = span->more;
		s->quote = span->quote;
		s->escaped = false;
		s->armour = (struct armour){ .gap = true };
		if (s->more != SPAN_ENDS)
			stop += state_eat(s, w->p + stop, w->n - stop);
	}
	s->covered = s->base + stop;
	if (stop <= *pos && s->more == SPAN_ENDS)
		return 0;
	if (w->places) {
		*pos = stop > *pos ? stop : *pos;
		return write_place(w, span, *pos, goes_on);
	}
	if ((!goes_on && write_mark(w, span, from) < 0) || write_dropped(w, from, stop) < 0)
		return -1;
	*pos = stop > *pos ? stop : *pos;
	return 0;
}

/* Up to where no match can begin that is not known yet, unless too much is held back already. */
static size_t decided(const struct finder *f, const struct state *s, size_t limit)
{
	if (f->n - limit > HELD_MAX)
		limit = f->n - HELD_MAX;
	return limit > s->done ? limit : s->done;
}

/* Writes what has been decided of a window: the matches that begin before the limit, whole. What
 * overlaps one continues it, so nothing that comes later changes what is written of it.
 * 1: something was replaced. */
static int write_window(struct writing *w, const struct finder *f, size_t limit)
{
	size_t pos = w->s->done, was = w->to ? w->to->n : 0;
	bool replaced = false;

	for (size_t i = 0; i < f->n_spans && f->spans[i].at < limit; i++) {
		if (write_span(w, &f->spans[i], &pos) < 0)
			return -1;
		replaced |= w->s->base + pos == w->s->covered && pos > w->s->done;
		if (w->s->more != SPAN_ENDS)
			break; /* to the end of the window */
	}
	if (write_text(w, pos, limit) < 0)
		return -1;
	w->s->done = pos > limit ? pos : limit;
	return replaced || (w->to && w->to->n - was != w->s->done);
}

/* ---- one text -------------------------------------------------------------------------------- */

/* window: t->text with what stands around it; t->text begins at `begin`. */
static int redact_window(struct redactor *r, const struct redact_part *t, struct str window,
			 size_t begin, struct buf *to, struct err *e)
{
	const char *p = window.p;
	size_t n = window.n, end = begin + t->text.n;
	struct finder f = { .p = p,
			    .n = n,
			    .final = true,
			    .whole = true,
			    .values_only = t->values_only,
			    .quotes = t->quotes };
	struct state s = { .keep_length = t->keep_length, .done = begin };
	struct writing w = { .s = &s, .p = p, .n = n, .clip = end, .to = to, .e = e };

	if (find_all(r, &f, e) < 0)
		return -1;
	if (f.n_spans == 0)
		return 0;
	return write_window(&w, &f, n) < 0 ? -1 : 1;
}

int redact_text(struct redactor *r, const struct redact_part *t, struct buf *to, struct err *e)
{
	autowipe struct buf all = BUF_INIT(WINDOW_MAX);
	struct str before = t->before, after = t->after;
	size_t around = redactor_around(r);

	if (t->text.n == 0)
		return 0;
	if (before.n == 0 && after.n == 0)
		return redact_window(r, t, t->text, 0, to, e);
	if (before.n > around)
		before = (struct str){ before.p + before.n - around, around };
	after.n = after.n < around ? after.n : around;
	if (!buf_reserve(&all, before.n + t->text.n + after.n, e) ||
	    buf_add(&all, before.p, before.n, e) < 0 ||
	    buf_add(&all, t->text.p, t->text.n, e) < 0 || buf_add(&all, after.p, after.n, e) < 0)
		return -1;
	return redact_window(r, t, buf_str(&all), before.n, to, e);
}

int redact_find(struct redactor *r, struct str text, struct redact_place **ret, size_t *ret_n,
		struct err *e)
{
	struct buf places = BUF_INIT(WINDOW_MAX);
	struct finder f = { .p = text.p, .n = text.n, .final = true, .whole = true };
	struct state s = { .keep_length = false };
	struct writing w = {
		.s = &s, .p = text.p, .n = text.n, .clip = text.n, .places = &places, .e = e
	};

	if (text.n > 0 && (find_all(r, &f, e) < 0 || write_window(&w, &f, text.n) < 0)) {
		buf_fini(&places);
		return -1;
	}
	*ret = (struct redact_place *)places.p;
	*ret_n = places.n / sizeof(**ret);
	return 0;
}

void redact_place_fill(struct redact_place *p)
{
	p->fills = true;
	p->whole = strlen("[REDACTED::" REDACT_TAG_OUTPUT "]") + strlen(p->kind) <= p->n;
}

int redact_place_show(const struct redact_place *p, struct buf *to, struct err *e)
{
	size_t end = to->n + p->n;

	if ((!p->fills || p->whole) && redact_mark_add(to, p->kind, REDACT_TAG_OUTPUT, e) < 0)
		return -1;
	while (p->fills && to->n < end) {
		if (buf_add(to, "*", 1, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- streams --------------------------------------------------------------------------------- */

struct redact_stream *redact_stream_new(struct redactor *r, bool keep_length, struct err *e)
{
	struct redact_stream *s = calloc(1, sizeof(*s));

	if (!s) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	s->r = r;
	s->window = BUF_INIT(WINDOW_MAX);
	s->state.keep_length = keep_length;
	return s;
}

void redact_stream_free(struct redact_stream *s)
{
	if (!s)
		return;
	buf_wipe(&s->window);
	free(s);
}

int redact_stream_before(struct redact_stream *s, struct str bytes, struct err *e)
{
	size_t around = redactor_around(s->r);

	if (bytes.n > around)
		bytes = (struct str){ bytes.p + bytes.n - around, around };
	s->state.done += bytes.n;
	return buf_add(&s->window, bytes.p, bytes.n, e);
}

/* Forgets what has left, but for what may decide about what comes. */
static void stream_trim(struct redact_stream *s)
{
	size_t n = s->state.done > KEPT ? s->state.done - KEPT : 0;

	/* Not for a few bytes at a time. */
	if (n < KEPT && n < s->window.n)
		return;
	buf_drop(&s->window, n);
	s->state.done -= n;
	s->state.base += n;
}

int redact_stream_add(struct redact_stream *s, struct str bytes, enum redact_flush flush,
		      struct buf *to, struct err *e)
{
	struct state *st = &s->state;
	struct writing w = { .s = st, .clip = SIZE_MAX, .to = to, .e = e };
	struct finder f = { .final = flush == REDACT_END };
	size_t limit, eaten;

	if (buf_add(&s->window, bytes.p, bytes.n, e) < 0)
		return -1;
	w.p = f.p = s->window.p;
	w.n = f.n = s->window.n;
	if (st->more != SPAN_ENDS && st->done < f.n) {
		eaten = state_eat(st, f.p + st->done, f.n - st->done);
		if (write_dropped(&w, st->done, st->done + eaten) < 0)
			return -1;
		st->done += eaten;
		st->covered = st->base + st->done;
	}
	if (st->done < f.n) {
		if (find_all(s->r, &f, e) < 0)
			return -1;
		limit = flush == REDACT_MORE ? f.open : flush == REDACT_QUIET ? f.firm : f.n;
		limit = decided(&f, st, limit);
		if (write_window(&w, &f, limit) < 0)
			return -1;
	}
	stream_trim(s);
	return 0;
}

size_t redact_stream_held(const struct redact_stream *s)
{
	return s->window.n - s->state.done;
}

uint64_t redact_stream_replaced(const struct redact_stream *s)
{
	return s->state.replaced;
}
