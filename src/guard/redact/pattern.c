/*
 * Patterns: Vectorscan looks for all expressions of the table in one pass. They are compiled when
 * Holt is built, for any processor (generate.c), and read when a text first needs them: compiling
 * takes 200 ms, reading 0.1. Where Vectorscan is of another version than the one of the build, they
 * are compiled anew.
 */
#include <hs/hs.h>
#include <stdlib.h>

#include "base/library.h"
#include "guard/redact/internal.h"

struct patterns {
	unsigned refs;
	bool none, loaded;
	bool *off; /* by row of the table */
	char (*kinds)[REDACT_KIND_MAX + 1]; /* of extra patterns */
	unsigned extra_width; /* bytes that the longest of them matches at most */
	hs_database_t *extra, *table;
	hs_scratch_t *scratch;
};

/* ---- extra patterns -------------------------------------------------------------------------- */

static int kind_check(struct str kind, struct err *e)
{
	for (size_t i = 0; i < kind.n; i++) {
		if (kind.p[i] != '-' && !(char_class(kind.p[i]) & (IS_LOWER | IS_DIGIT)))
			kind.n = 0;
	}
	if (kind.n == 0 || kind.n > REDACT_KIND_MAX)
		return err_set(e, ERR_INVALID, "the kind of a pattern: 1 to %d of a-z, 0-9 and -",
			       REDACT_KIND_MAX);
	return 0;
}

/* Bounded in what it matches, since a stream holds back as much. */
static int extra_check(struct patterns *p, const struct redact_pattern *x, struct err *e)
{
	hs_expr_info_t *info = NULL;
	hs_compile_error_t *why = NULL;
	char text[REDACT_EXTRA_BYTES + 1];
	int rc = 0;

	if (kind_check(x->kind, e) < 0)
		return -1;
	if (x->regex.n == 0 || x->regex.n > REDACT_EXTRA_BYTES || memchr(x->regex.p, 0, x->regex.n))
		return err_set(e, ERR_INVALID, "pattern %.*s: 1 to %d bytes", STR_ARG(x->kind),
			       REDACT_EXTRA_BYTES);
	memcpy(text, x->regex.p, x->regex.n);
	text[x->regex.n] = '\0';
	if (hs_expression_info(text, 0, &info, &why) != HS_SUCCESS)
		rc = err_set(e, ERR_INVALID, "pattern %.*s: %.120s", STR_ARG(x->kind),
			     why ? why->message : "it can't be used");
	else if (info->min_width < 4 || info->max_width > REDACT_EXTRA_BYTES)
		rc = err_set(e, ERR_INVALID,
			     "pattern %.*s: it must match 4 to %d bytes, as {m,n} and no * or +",
			     STR_ARG(x->kind), REDACT_EXTRA_BYTES);
	else if (info->max_width > p->extra_width)
		p->extra_width = info->max_width;
	hs_free_compile_error(why);
	free(info);
	return rc;
}

static int extra_compile(struct patterns *p, const struct redact_options *o, struct err *e)
{
	char texts[REDACT_EXTRA_MAX][REDACT_EXTRA_BYTES + 1];
	const char *expressions[REDACT_EXTRA_MAX];
	unsigned flags[REDACT_EXTRA_MAX], ids[REDACT_EXTRA_MAX];
	hs_compile_error_t *why = NULL;
	int rc = 0;

	for (unsigned i = 0; i < o->n_extra; i++) {
		memcpy(texts[i], o->extra[i].regex.p, o->extra[i].regex.n);
		texts[i][o->extra[i].regex.n] = '\0';
		expressions[i] = texts[i];
		flags[i] = HS_FLAG_SOM_LEFTMOST;
		ids[i] = i;
	}
	if (hs_compile_multi(expressions, flags, ids, (unsigned)o->n_extra, HS_MODE_BLOCK, NULL,
			     &p->extra, &why) != HS_SUCCESS)
		rc = err_set(e, ERR_INVALID, "extra patterns: %.150s",
			     why ? why->message : "they can't be used");
	hs_free_compile_error(why);
	return rc;
}

static int extra_load(struct patterns *p, const struct redact_options *o, struct err *e)
{
	if (o->n_extra > REDACT_EXTRA_MAX)
		return err_set(e, ERR_INVALID, "%d extra patterns at most", REDACT_EXTRA_MAX);
	p->kinds = calloc(o->n_extra, sizeof(*p->kinds));
	if (!p->kinds)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (library_load("hs", e) < 0)
		return -1;
	for (size_t i = 0; i < o->n_extra; i++) {
		if (extra_check(p, &o->extra[i], e) < 0)
			return -1;
		memcpy(p->kinds[i], o->extra[i].kind.p, o->extra[i].kind.n);
	}
	return extra_compile(p, o, e);
}

/* ---- the table ------------------------------------------------------------------------------- */

static int off_mark(struct patterns *p, struct str kind, struct err *e)
{
	bool found = false;

	for (size_t i = 0; i < pattern_count; i++) {
		if (str_is(kind, pattern_table[i].kind))
			p->off[i] = found = true;
	}
	return found ? 0
		     : err_set(e, ERR_INVALID, "no pattern has the kind %.*s",
			       STR_CUT(kind, REDACT_KIND_MAX));
}

struct patterns *patterns_new(const struct redact_options *o, struct err *e)
{
	AUTO(patterns_free) struct patterns *p = calloc(1, sizeof(*p));

	if (p) {
		p->refs = 1;
		p->off = calloc(pattern_count, sizeof(*p->off));
	}
	if (!p || !p->off) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	if (!o)
		return take_ptr(p);
	p->none = o->no_patterns;
	for (size_t i = 0; i < o->n_off; i++) {
		if (off_mark(p, o->off[i], e) < 0)
			return NULL;
	}
	if (o->n_extra > 0 && extra_load(p, o, e) < 0)
		return NULL;
	return take_ptr(p);
}

void scratch_free(struct hs_scratch *s)
{
	if (s)
		hs_free_scratch(s);
}

void patterns_free(struct patterns *p)
{
	if (!p || --p->refs > 0)
		return;
	if (p->extra)
		hs_free_database(p->extra);
	if (p->table)
		hs_free_database(p->table);
	scratch_free(p->scratch);
	free(p->kinds);
	free(p->off);
	free(p);
}

static int patterns_load(struct patterns *p, struct err *e)
{
	if (library_load("hs", e) < 0)
		return -1;
	if (!p->none &&
	    hs_deserialize_database(pattern_database, pattern_database_size, &p->table) !=
		    HS_SUCCESS &&
	    patterns_compile(&p->table, e) < 0)
		return -1;
	if ((p->table && hs_alloc_scratch(p->table, &p->scratch) != HS_SUCCESS) ||
	    (p->extra && hs_alloc_scratch(p->extra, &p->scratch) != HS_SUCCESS))
		return err_set(e, ERR_LIMIT, "out of memory");
	p->loaded = true;
	return 0;
}

struct patterns *patterns_ref(struct patterns *p, struct hs_scratch **ret, struct err *e)
{
	hs_scratch_t *scratch = NULL;

	if ((!p->none || p->extra) && !p->loaded && patterns_load(p, e) < 0)
		return NULL;
	if (p->scratch && hs_clone_scratch(p->scratch, &scratch) != HS_SUCCESS) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	*ret = scratch;
	p->refs++;
	return p;
}

/* ---- the search ------------------------------------------------------------------------------ */

struct search {
	struct patterns *patterns;
	struct finder *f;
};

static int on_table(unsigned id, unsigned long long from, unsigned long long to, unsigned flags,
		    void *data)
{
	struct search *s = data;

	s->f->rank = id + 1;
	if (!s->patterns->off[id])
		pattern_table[id].judge(s->f, &pattern_table[id], (size_t)to);
	return s->f->failed;
}

static int on_extra(unsigned id, unsigned long long from, unsigned long long to, unsigned flags,
		    void *data)
{
	struct search *s = data;

	finder_add(s->f, (struct span){ (size_t)from, (size_t)(to - from), s->patterns->kinds[id],
					SPAN_ENDS, '\0', 0 });
	return s->f->failed;
}

/* Where a word begins that the window's end may cut: no token has a space or a quote. */
static void hold_word(struct finder *f)
{
	size_t at = f->n, least = f->n > HOLD_MAX ? f->n - HOLD_MAX : 0;

	while (at > least && (unsigned char)f->p[at - 1] > ' ' && f->p[at - 1] != '"' &&
	       f->p[at - 1] != '\'' && f->p[at - 1] != '`')
		at--;
	finder_open(f, at);
}

int patterns_find(struct patterns *p, struct hs_scratch *scratch, struct finder *f, struct err *e)
{
	struct search s = { p, f };

	if (p->none && !p->extra)
		return 0;
	if (!p->loaded && patterns_load(p, e) < 0)
		return -1;
	scratch = scratch ? scratch : p->scratch;
	if (!f->final && !p->none) {
		hold_word(f);
		hold_armour(f);
	}
	if (!f->final && p->extra)
		finder_open(f, f->n > p->extra_width ? f->n - p->extra_width : 0);
	if ((p->table &&
	     hs_scan(p->table, f->p, (unsigned)f->n, 0, scratch, on_table, &s) < HS_SUCCESS &&
	     !f->failed) ||
	    (p->extra &&
	     hs_scan(p->extra, f->p, (unsigned)f->n, 0, scratch, on_extra, &s) < HS_SUCCESS &&
	     !f->failed))
		return err_set(e, ERR_BUG, "the search for patterns failed");
	return 0;
}
