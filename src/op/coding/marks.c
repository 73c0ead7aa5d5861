#include "op/coding/marks.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "op/files.h"

enum {
	MARKS_BYTES = 1 << 30,
};

void marks_fini(struct marks *m)
{
	if (!m->refs || --*m->refs == 0) {
		free(m->refs);
		free(m->p);
	}
	*m = (struct marks){ 0 };
}

int marks_share(struct marks *m, struct marks *ret, struct err *e)
{
	if (!m->refs) {
		m->refs = malloc(sizeof(*m->refs));
		if (!m->refs)
			return err_set(e, ERR_LIMIT, "out of memory");
		*m->refs = 1;
	}
	++*m->refs;
	*ret = *m;
	return 0;
}

/* ---- tags ---------------------------------------------------------------------------------- */

/* Five bits of each byte are used. */
static void tag_make(char ret[REDACT_TAG + 1])
{
	static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";
	unsigned char raw[REDACT_TAG];
	ssize_t got;

	do {
		got = getrandom(raw, sizeof(raw), 0);
	} while (got < 0 && errno == EINTR);
	if (got != (ssize_t)sizeof(raw))
		abort(); /* nothing safe can follow */
	for (size_t i = 0; i < sizeof(raw); i++)
		ret[i] = digits[raw[i] & 31];
	ret[REDACT_TAG] = '\0';
}

/* ---- places -------------------------------------------------------------------------------- */

/* Calls add() for each line of each place. */
static int marks_each(struct str bytes, const struct redact_place *places, size_t n,
		      int (*add)(void *data, size_t at, size_t len, const char *kind,
				 struct err *e),
		      void *data, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		size_t at = places[i].at, stop = at + places[i].n;

		while (at < stop) {
			const char *end = memchr(bytes.p + at, '\n', stop - at);
			size_t next = end ? (size_t)(end - bytes.p) : stop;
			size_t len = next - at;

			if (end && len > 0 && end[-1] == '\r')
				len--;
			if (len > 0 && add(data, at, len, places[i].kind, e) < 0)
				return -1;
			at = next + (end != NULL);
		}
	}
	return 0;
}

struct marking {
	struct buf marks; /* of struct mark */
	const struct marks *old;
	size_t from; /* of old */
};

static int marking_add(void *data, size_t at, size_t len, const char *kind, struct err *e)
{
	struct marking *k = data;
	struct mark m = { .at = at, .n = len };
	const struct mark *was;

	snprintf(m.kind, sizeof(m.kind), "%s", kind);
	while (k->old && k->from < k->old->n && k->old->p[k->from].at < at)
		k->from++;
	was = k->old && k->from < k->old->n ? &k->old->p[k->from] : NULL;
	if (was && was->at == at && was->n == len)
		memcpy(m.tag, was->tag, sizeof(m.tag));
	else
		tag_make(m.tag);
	return buf_add(&k->marks, (const char *)&m, sizeof(m), e);
}

int marks_find(struct marks *ret, struct redactor *r, struct str bytes, const struct marks *old,
	       struct err *e)
{
	autofree struct redact_place *places = NULL;
	struct marking k = { .marks = BUF_INIT(MARKS_BYTES), .old = old };
	size_t n = 0;

	if (r && redact_find(r, bytes, &places, &n, e) < 0)
		return -1;
	if (marks_each(bytes, places, n, marking_add, &k, e) < 0) {
		buf_fini(&k.marks);
		return -1;
	}
	*ret = (struct marks){ (struct mark *)k.marks.p, k.marks.n / sizeof(struct mark), NULL };
	return 0;
}

int marks_show(const struct marks *m, struct str bytes, struct buf *to, struct text_span *spans,
	       struct err *e)
{
	size_t at = 0;

	for (size_t i = 0; i < m->n; i++) {
		const struct mark *x = &m->p[i];

		if (buf_add(to, bytes.p + at, x->at - at, e) < 0)
			return -1;
		spans[i].at = to->n;
		if (redact_mark_add(to, x->kind, x->tag, e) < 0)
			return -1;
		spans[i].n = to->n - spans[i].at;
		at = x->at + x->n;
	}
	return buf_add(to, bytes.p + at, bytes.n - at, e);
}

struct saying {
	struct buf *to;
	struct holes *holes; /* NULL: marks are shown */
	struct str all;
	size_t at, stop; /* what is left of the part */
};

static int hole_add(struct holes *h, const char *kind, struct buf *to, struct err *e);

/* The text before a place, and then its mark, as far as the part has them. */
static int saying_add(void *data, size_t at, size_t len, const char *kind, struct err *e)
{
	struct saying *s = data;
	size_t end = at + len;

	if (end <= s->at || at >= s->stop)
		return 0;
	if (at > s->at && buf_add(s->to, s->all.p + s->at, at - s->at, e) < 0)
		return -1;
	s->at = end < s->stop ? end : s->stop;
	return s->holes ? hole_add(s->holes, kind, s->to, e)
			: redact_mark_add(s->to, kind, REDACT_TAG_OUTPUT, e);
}

static int marks_part(struct redactor *r, const struct redact_part *part, struct holes *holes,
		      struct buf *to, struct err *e)
{
	autofree struct redact_place *places = NULL;
	autowipe struct buf all = BUF_INIT(MARKS_BYTES);
	struct saying s = { .to = to, .holes = holes, .at = part->before.n };
	size_t n = 0;

	s.stop = part->before.n + part->text.n;
	if (buf_add(&all, part->before.p, part->before.n, e) < 0 ||
	    buf_add(&all, part->text.p, part->text.n, e) < 0 ||
	    buf_add(&all, part->after.p, part->after.n, e) < 0)
		return -1;
	s.all = buf_str(&all);
	if (r && redact_find(r, s.all, &places, &n, e) < 0)
		return -1;
	if (marks_each(s.all, places, n, saying_add, &s, e) < 0)
		return -1;
	return buf_add(to, s.all.p + s.at, s.stop - s.at, e);
}

int marks_say(struct redactor *r, const struct redact_part *part, struct buf *to, struct err *e)
{
	return marks_part(r, part, NULL, to, e);
}

/* ---- what is searched ---------------------------------------------------------------------- */

/* 0xfe, and the number of the kind in two digits of seven: bytes that no UTF-8 text has, and no
 * byte order mark. */
enum { HOLE = 0xfe, HOLE_DIGIT = 0xf8, HOLE_BASE = 7 };
static_assert(HOLE_KINDS == HOLE_BASE * HOLE_BASE, "the two digits tell all kinds apart");

int marks_any(struct redactor *r, struct str bytes, struct err *e)
{
	autofree struct redact_place *places = NULL;
	size_t n = 0;

	if (r && redact_find(r, bytes, &places, &n, e) < 0)
		return -1;
	return n > 0;
}

/* The last number is that of all kinds for which there is no other. */
static int hole_add(struct holes *h, const char *kind, struct buf *to, struct err *e)
{
	size_t i = 0;
	char bytes[HOLE_BYTES];

	while (i < h->n && strcmp(h->kinds[i], kind) != 0)
		i++;
	if (i == h->n) {
		bool last = i + 1 >= HOLE_KINDS;

		i = last ? HOLE_KINDS - 1 : i;
		h->n = i + 1;
		snprintf(h->kinds[i], sizeof(h->kinds[i]), "%s", last ? "secret" : kind);
	}
	bytes[0] = (char)HOLE;
	bytes[1] = (char)(HOLE_DIGIT + i / HOLE_BASE);
	bytes[2] = (char)(HOLE_DIGIT + i % HOLE_BASE);
	return buf_add(to, bytes, sizeof(bytes), e);
}

int holes_make(struct holes *h, struct redactor *r, const struct redact_part *part, struct buf *to,
	       struct err *e)
{
	return marks_part(r, part, h, to, e);
}

const char *holes_at(const struct holes *h, struct str text)
{
	const unsigned char *p = (const unsigned char *)text.p;
	size_t i;

	if (text.n < HOLE_BYTES || p[0] != HOLE || p[1] < HOLE_DIGIT || p[2] < HOLE_DIGIT)
		return NULL;
	i = (size_t)(p[1] - HOLE_DIGIT) * HOLE_BASE + p[2] - HOLE_DIGIT;
	return p[2] - HOLE_DIGIT < HOLE_BASE && i < h->n ? h->kinds[i] : NULL;
}

int holes_show(const struct holes *h, struct str line, size_t max, struct buf *to, struct err *e)
{
	struct str rest = line;

	max += to->n;
	while (rest.n > 0 && to->n < max) {
		const char *kind = holes_at(h, rest), *hole = memchr(rest.p + 1, HOLE, rest.n - 1);
		size_t n = hole ? (size_t)(hole - rest.p) : rest.n, room = max - to->n;

		n = kind ? HOLE_BYTES : n < room ? n : room;
		if (kind ? redact_mark_add(to, kind, REDACT_TAG_OUTPUT, e) < 0
			 : buf_add(to, rest.p, n, e) < 0)
			return -1;
		rest.p += n;
		rest.n -= n;
	}
	return rest.n == 0;
}

/* ---- what is written ----------------------------------------------------------------------- */

static int by_tag(const void *a, const void *b)
{
	return strcmp((*(const struct mark *const *)a)->tag, (*(const struct mark *const *)b)->tag);
}

/* Marks of a file by their tags, and how many bytes of it may still be searched. */
struct lookup {
	const struct mark **p;
	size_t n, bytes;
};

static int lookup_init(struct lookup *k, const struct marks *m, struct err *e)
{
	k->p = malloc((m->n + 1) * sizeof(struct mark *));
	if (!k->p)
		return err_set(e, ERR_LIMIT, "out of memory");
	k->bytes = FILES_LITERAL_BYTES;
	for (k->n = 0; k->n < m->n; k->n++)
		k->p[k->n] = &m->p[k->n];
	qsort(k->p, k->n, sizeof(*k->p), by_tag);
	return 0;
}

/* tag: REDACT_TAG bytes. */
static const struct mark *lookup_tag(const struct lookup *k, const char *tag)
{
	struct mark key = { 0 };
	const struct mark *want = &key, **found;

	for (size_t i = 0; i < REDACT_TAG; i++)
		key.tag[i] = (char)(tag[i] | (tag[i] >= 'A' && tag[i] <= 'Z' ? 32 : 0));
	found = bsearch(&want, k->p, k->n, sizeof(*k->p), by_tag);
	return found ? *found : NULL;
}

static const struct mark *lookup_find(const struct lookup *k, const struct redact_mark *x)
{
	const struct mark *found = x->exact && x->tag.n == REDACT_TAG ? lookup_tag(k, x->tag.p)
								      : NULL;

	return found && str_is(x->kind, found->kind) ? found : NULL;
}

/* The text there, up to a bracket nearby that ends it on its line. */
static struct str mark_text(struct str rest, const struct redact_mark *x)
{
	enum { LOOK = 80 };
	size_t before = (size_t)(x->whole.p - rest.p), n = rest.n - before;
	const char *end;

	n = n < LOOK ? n : LOOK;
	end = memchr(x->whole.p, ']', n);
	if (end && !memchr(x->whole.p, '\n', (size_t)(end - x->whole.p)))
		n = (size_t)(end + 1 - x->whole.p);
	else
		n = x->whole.n;
	return (struct str){ x->whole.p, n };
}

/* Whether text that looks like a mark may be written: it is in the file already, or can't be
 * one that somebody was shown. In a file with secrets, one that was altered isn't, either. */
static int mark_may_stay(const struct marks_text *t, struct lookup *k, struct str rest,
			 const struct redact_mark *x, struct err *e)
{
	struct str said = mark_text(rest, x);

	if (!x->exact && t->marks->n == 0)
		return 0;
	if (files_find_literal(t->bytes, said, &k->bytes))
		return 0;
	if (x->exact && str_is(x->tag, REDACT_TAG_OUTPUT))
		return err_set(
			e, ERR_INVALID,
			"%s: %.*s stands for a secret that is not shown, in output whose file "
			"is not known; Read the file, and use the marks that this shows, or "
			"leave the secret out",
			t->argument, STR_CUT(said, 80));
	return err_set(e, ERR_INVALID,
		       "%s: %.*s stands for a secret that is not shown, but not for one that this "
		       "conversation was shown in this file as it is now; Read the file again, and "
		       "copy marks unchanged",
		       t->argument, STR_CUT(said, 80));
}

/* Whether what was put back at m[i] is recognised as itself: the place has marks at both of its
 * ends. Else a text beside a mark would ask whether both together look like a secret. */
static bool mark_is_whole(const struct marks *m, size_t i, struct str bytes,
			  const struct redact_place *p)
{
	const struct mark *x = &m->p[i];
	size_t end = p->at + p->n, after = x->at + x->n;
	bool first = i == 0 || m->p[i - 1].at < p->at;
	bool last = i + 1 == m->n || m->p[i + 1].at >= end;

	if (p->at > x->at || after > end)
		return false;
	while (last && after < end && memchr("\r\n", bytes.p[after], 2))
		after++; /* of several lines */
	return (!first || p->at == x->at) && (!last || after == end);
}

/* The bytes that were put back are recognised where they are now, so that nobody reads a secret by
 * moving its mark. */
static int marks_hidden(const struct marks_text *t, struct redactor *r, struct str bytes,
			const struct marks *m, struct err *e)
{
	autofree struct redact_place *places = NULL;
	size_t n = 0, k = 0;

	if (m->n == 0 || !r)
		return 0;
	if (redact_find(r, bytes, &places, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < m->n; i++) {
		const struct mark *x = &m->p[i];

		while (k < n && places[k].at + places[k].n <= x->at)
			k++;
		if (k == n || !mark_is_whole(m, i, bytes, &places[k]))
			return err_set(e, ERR_INVALID,
				       "%s: what [REDACTED:%s:%s] stands for would be shown, or be "
				       "part of another secret, where it stands now; keep its name "
				       "and quotes, put nothing directly beside it, or let a "
				       "person change the file",
				       t->argument, x->kind, x->tag);
	}
	return 0;
}

/* The text between two marks, in the file or in the new text. */
static struct str marks_between(const char *from, const char *to)
{
	return (struct str){ from, (size_t)(to - from) };
}

/* How many parts of a text look like marks, or are the tag of one of the file: nobody chose that,
 * so it is what is left of a mark. */
static size_t marks_likes(const struct lookup *k, struct str text)
{
	size_t likes = redact_mark_likes(text), n = 0;

	for (size_t i = 0; k->n > 0 && i <= text.n; i++) {
		if (i < text.n && isalnum((unsigned char)text.p[i])) {
			n++;
			continue;
		}
		likes += n == REDACT_TAG && lookup_tag(k, text.p + i - n);
		n = 0;
	}
	return likes;
}

/* Where a mark of the file is gone, no text that looks like one may be new: it may be that mark,
 * altered, and the secret would be lost. */
static int marks_kept(const struct marks_text *t, const struct lookup *k, const bool *used,
		      size_t likes, struct err *e)
{
	const char *from = t->bytes.p;
	const struct mark *lost = NULL;
	size_t had = 0;

	for (size_t i = 0; i < t->marks->n; i++) {
		const struct mark *x = &t->marks->p[i];

		had += marks_likes(k, marks_between(from, t->bytes.p + x->at));
		from = t->bytes.p + x->at + x->n;
		lost = lost || used[i] ? lost : x;
	}
	if (!lost || likes <= had + marks_likes(k, marks_between(from, t->bytes.p + t->bytes.n)))
		return 0;
	return err_set(e, ERR_INVALID,
		       "%s: [REDACTED:%s:%s] is gone, and there is new text that looks like a mark "
		       "that was altered; copy marks unchanged, or use neither the word "
		       "REDACTED nor a mark's tag where a secret is removed",
		       t->argument, lost->kind, lost->tag);
}

int marks_put_back(const struct marks_text *t, struct redactor *r, struct buf *to,
		   struct marks *ret, struct err *e)
{
	autofree const struct mark **found = NULL;
	autofree bool *used = calloc(t->marks->n + 1, sizeof(*used));
	const char *from = t->text.p; /* what is behind the last mark that was put back */
	size_t likes = 0;
	struct lookup k = { 0 };
	struct buf marks = BUF_INIT(MARKS_BYTES);
	struct str rest = t->text;
	struct redact_mark x;
	int rc = lookup_init(&k, t->marks, e);

	found = k.p;
	if (rc == 0 && !used)
		rc = err_set(e, ERR_LIMIT, "out of memory");
	while (rc == 0 && redact_mark_next(rest, &x)) {
		const struct mark *was = lookup_find(&k, &x);
		size_t before = (size_t)(x.whole.p - rest.p);
		struct mark now;

		rc = buf_add(to, rest.p, before, e);
		if (rc == 0 && was) {
			now = *was;
			now.at = to->n;
			used[was - t->marks->p] = true;
			likes += marks_likes(&k, marks_between(from, x.whole.p));
			from = x.whole.p + x.whole.n;
			rc = buf_add(&marks, (const char *)&now, sizeof(now), e) < 0
				   ? -1
				   : buf_add(to, t->bytes.p + was->at, was->n, e);
		} else if (rc == 0) {
			rc = mark_may_stay(t, &k, rest, &x, e) < 0
				   ? -1
				   : buf_add(to, x.whole.p, x.whole.n, e);
		}
		rest.p += before + x.whole.n;
		rest.n -= before + x.whole.n;
	}
	*ret = (struct marks){ (struct mark *)marks.p, marks.n / sizeof(struct mark), NULL };
	likes += marks_likes(&k, marks_between(from, t->text.p + t->text.n));
	if (rc == 0 && buf_add(to, rest.p, rest.n, e) == 0 &&
	    marks_kept(t, &k, used, likes, e) == 0 && marks_hidden(t, r, buf_str(to), ret, e) == 0)
		return 0;
	marks_fini(ret);
	return -1;
}

int marks_check(const struct marks_text *t, struct err *e)
{
	struct lookup k = { 0 };
	autofree const struct mark **found = NULL;
	struct str rest = t->text;
	struct redact_mark x;

	if (lookup_init(&k, t->marks, e) < 0)
		return -1;
	found = k.p;
	while (redact_mark_next(rest, &x)) {
		size_t past = (size_t)(x.whole.p - rest.p) + x.whole.n;

		if (!lookup_find(&k, &x) && mark_may_stay(t, &k, rest, &x, e) < 0)
			return -1;
		rest.p += past;
		rest.n -= past;
	}
	return 0;
}
