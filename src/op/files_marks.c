/*
 * What a client writes that was shown the file with marks, and knows no more of it. There is no
 * conversation that remembers marks by their tags (op/coding/marks.h), so a mark stands for the
 * secret that the file shows alike: by the same mark, behind the same text in its line, and where
 * that is shown twice, below the same line and before the same text. If all that is alike, the text
 * between such secrets must be unchanged.
 */
#include <stdlib.h>

#include "guard/redact/redact.h"
#include "op/files.h"

enum {
	SECRETS_MAX = 500, /* of a file */
	LOOKS_MAX = 2000, /* for secrets, each of which goes through all */
	BEFORE_MAX = 32, /* bytes before a mark that tell it from others */
	ABOVE_MAX = 1024, /* before a mark, of the line above */
	BELOW_MAX = 1024, /* behind a mark */
	BELOW_BYTES = 16 << 20, /* that are compared behind marks */
	STARS = 4, /* what stands in binary data for a secret that is shorter than a mark */
	MARKED_MAX = 256 << 20,
};

/* A secret of the file, as a client is shown it. */
struct shown {
	struct str above, before, mark; /* the line above, what is before it in its line, and it */
	struct str bytes; /* of the file */
	size_t at; /* of mark in the view */
	size_t twins; /* those of which all three are alike */
	size_t used; /* how often it was put back */
	size_t back_at; /* where in the text its last mark is */
	size_t moved; /* secrets up to it for which the text back to the one before is changed */
};

struct returning {
	struct redactor *redactor;
	bool by_agent;
	struct str old, text; /* the file as it is, and what is to be written */
	bool archive; /* where each mark has the length of its secret */
	bool part; /* of the file: what is not shown here may be shown in others */
	struct buf view; /* the file as it is shown */
	struct shown *p;
	size_t n;
	bool stars; /* some are shown as asterisks alone */
	struct redact_mark ahead; /* in the text, if it has a length */
	const char *star; /* the next of four or more in the text, or its end; NULL: at first */
	size_t looks; /* for secrets */
	size_t left; /* bytes of the file that may still be searched for what stays */
	size_t below; /* bytes behind marks that may still be compared */
	struct str stayed; /* the last that did */
	size_t likes; /* in the text outside of marks that were put back: redact_mark_likes() */
	const char *from; /* end of the last such mark */
	struct buf *to;
	struct redact_place *back; /* what was put back; kind is not used */
	size_t n_back;
};

bool files_has_marks(struct str text)
{
	bool found = text.n >= STARS && memmem(text.p, text.n, "****", STARS);

	return found || redact_mark_likes(text) > 0;
}

bool files_find_literal(struct str bytes, struct str said, size_t *left)
{
	size_t n = bytes.n < *left ? bytes.n : *left;
	const char *at = said.n <= n ? memmem(bytes.p, n, said.p, said.n) : NULL;

	*left -= at ? (size_t)(at - bytes.p) : n;
	return at;
}

/* What stands before `at` in its line, and the line above that: both as far as they are near. */
static void line_of(struct str text, size_t at, struct str *before, struct str *above)
{
	const char *top = text.p + (at > ABOVE_MAX ? at - ABOVE_MAX : 0), *here = text.p + at;
	const char *end = here > top ? memrchr(top, '\n', (size_t)(here - top)) : NULL;
	const char *line = end ? end + 1 : top,
		   *start = end && end > top ? memrchr(top, '\n', (size_t)(end - top)) : NULL;
	size_t n = (size_t)(here - line);

	n = n < BEFORE_MAX ? n : BEFORE_MAX;
	*before = (struct str){ here - n, n };
	start = start ? start + 1 : top;
	*above = end ? (struct str){ start, (size_t)(end - start) } : STR_LIT("");
}

static bool shown_alike(const struct shown *a, const struct shown *b, bool above)
{
	return str_eq(a->mark, b->mark) && str_eq(a->before, b->before) &&
	       (!above || str_eq(a->above, b->above));
}

/* Adds a place to the view as redaction shows it there. */
static int view_add(struct returning *r, struct redact_place *p, struct err *e)
{
	size_t at = r->view.n;

	if (r->archive)
		redact_place_fill(p);
	if (redact_place_show(p, &r->view, e) < 0)
		return -1;
	r->p[r->n++] = (struct shown){
		.bytes = { r->old.p + p->at, p->n }, .at = at, .mark.n = r->view.n - at, .twins = 1
	};
	return 0;
}

static int view_make(struct returning *r, struct redact_place *places, size_t n, struct err *e)
{
	size_t at = 0;

	if (n > SECRETS_MAX)
		return err_set(
			e, ERR_INVALID,
			"content: it has marks, or text that looks like one, and the file has "
			"more secrets than %d; change it by a program in the sandbox",
			SECRETS_MAX);
	for (size_t i = 0; i < n; i++) {
		if (buf_add(&r->view, r->old.p + at, places[i].at - at, e) < 0 ||
		    view_add(r, &places[i], e) < 0)
			return -1;
		at = places[i].at + places[i].n;
	}
	if (buf_add(&r->view, r->old.p + at, r->old.n - at, e) < 0)
		return -1;
	r->stars = r->part;
	for (size_t i = 0; i < n; i++) {
		struct shown *x = &r->p[i];

		x->mark.p = r->view.p + x->at;
		line_of(buf_str(&r->view), x->at, &x->before, &x->above);
		r->stars |= x->mark.n > 0 && x->mark.p[0] == '*';
		for (size_t k = 0; k < i; k++) {
			bool alike = shown_alike(&r->p[k], x, true);

			r->p[k].twins += alike;
			x->twins += alike;
		}
	}
	return 0;
}

/* How many bytes at this place of the text are those behind the secret, as it is shown. */
static size_t below_alike(struct returning *r, const struct shown *x, size_t at)
{
	size_t from = x->at + x->mark.n, n = 0;

	while (n < BELOW_MAX && from + n < r->view.n && at + n < r->text.n && r->below > 0 &&
	       r->view.p[from + n] == r->text.p[at + n]) {
		r->below--;
		n++;
	}
	return n;
}

/* Whether the text from this place on, where a mark ends, is rather that behind another secret
 * with the same text before it. Then what was between the two may be gone, with either of them. */
static bool below_differs(struct returning *r, const struct shown *x, size_t at)
{
	size_t n = below_alike(r, x, at);
	bool all = n == BELOW_MAX || at + n == r->text.n, differs = false;

	for (size_t i = 0; i < r->n && !all && !differs; i++) {
		const struct shown *other = &r->p[i];

		differs = other != x && shown_alike(other, x, false) &&
			  below_alike(r, other, at) > n;
	}
	return differs || r->below == 0;
}

/* The secret that is shown as this part of the text; NULL: none is, or it is not clear which. */
static struct shown *shown_find(struct returning *r, struct str mark)
{
	struct shown want = { .mark = mark }, *found = NULL;
	size_t alike = 0;

	r->looks++;
	line_of(r->text, (size_t)(mark.p - r->text.p), &want.before, &want.above);
	for (size_t i = 0; i < r->n; i++)
		alike += shown_alike(&r->p[i], &want, false);
	for (size_t i = 0; i < r->n && !found; i++) {
		struct shown *x = &r->p[i];

		if (shown_alike(x, &want, alike > 1) && (alike == 1 || x->used == 0))
			found = x;
	}
	if (found && alike > 1 && below_differs(r, found, (size_t)(mark.p + mark.n - r->text.p)))
		found = NULL;
	return found;
}

/* The next place of rest that may be shown for a secret. */
static bool next_mark(struct returning *r, struct str rest, struct redact_mark *m)
{
	const char *end = rest.p + rest.n, *star;

	if (r->star < rest.p) {
		star = r->stars && rest.n ? memmem(rest.p, rest.n, "****", STARS) : NULL;
		r->star = star ? star : end;
	}
	star = r->star;
	if (r->ahead.whole.p < rest.p && !redact_mark_next(rest, &r->ahead))
		r->ahead.whole = (struct str){ end, 0 };
	*m = r->ahead;
	if (star == end || star >= m->whole.p)
		return m->whole.n > 0;
	*m = (struct redact_mark){ .whole = { star, 1 } };
	while (star + m->whole.n < end && star[m->whole.n] == '*')
		m->whole.n++;
	return true;
}

static int mark_refuse(const struct returning *r, const struct redact_mark *m, struct err *e)
{
	if (!str_is(m->tag, REDACT_TAG_OUTPUT))
		return err_set(e, ERR_INVALID,
			       "content: %.*s stands for a secret that a conversation was shown by "
			       "Read; use Write or Edit there",
			       STR_CUT(m->whole, 80));
	if (r->n > 0)
		return err_set(
			e, ERR_INVALID,
			"content: %.*s stands for a secret of the file that is not shown, and "
			"it is not clear for which; leave the text before it, the line above, "
			"and what is between such marks as they are, or change the file by a "
			"program in the sandbox",
			STR_CUT(m->whole, 80));
	return err_set(
		e, ERR_INVALID,
		"content: %.*s stands for a secret that is not shown, of output or of another "
		"file; copy it by a program in the sandbox, or leave the secret out",
		STR_CUT(m->whole, 80));
}

static bool mark_is_shown(const struct returning *r, struct str mark)
{
	bool found = false;

	for (size_t i = 0; i < r->n && !found; i++)
		found = str_eq(r->p[i].mark, mark);
	return found;
}

/* Whether the part of the old file has the same text, with what is before it in its line. */
static bool is_in_part(struct returning *r, struct str mark)
{
	struct str before, above, said;
	size_t at;

	line_of(r->text, (size_t)(mark.p - r->text.p), &before, &above);
	said = (struct str){ mark.p - before.n, before.n + mark.n };
	at = (size_t)(said.p - r->text.p);
	return (at + said.n <= r->old.n && memcmp(r->old.p + at, said.p, said.n) == 0) ||
	       files_find_literal(r->old, said, &r->left);
}

/* A mark that stands for nothing here. Who is no agent may write what it was told into a file
 * without secrets, such as a log. So may anybody in an archive: a project has such files. Of
 * asterisks only as many as stand for a secret of an archive are no text. */
static int mark_stays(struct returning *r, const struct redact_mark *m, struct err *e)
{
	bool told = r->archive || (str_is(m->tag, REDACT_TAG_OUTPUT) && !r->by_agent);

	if (r->part) /* another one may have the secret */
		return is_in_part(r, m->whole) ? 0 : mark_refuse(r, m, e);
	if ((told && r->n == 0) || str_eq(m->whole, r->stayed) ||
	    (!m->exact && !(r->archive && mark_is_shown(r, m->whole))))
		return 0;
	if (!files_find_literal(r->old, m->whole, &r->left))
		return mark_refuse(r, m, e);
	r->stayed = m->whole;
	return 0;
}

static int put_back(struct returning *r, struct shown *x, struct str mark, struct err *e)
{
	if (r->n_back == SECRETS_MAX)
		return err_set(e, ERR_INVALID, "content: it has more than %d marks", SECRETS_MAX);
	x->used++;
	x->back_at = (size_t)(mark.p - r->text.p);
	r->likes += redact_mark_likes((struct str){ r->from, (size_t)(mark.p - r->from) });
	r->from = mark.p + mark.n;
	r->back[r->n_back++] = (struct redact_place){ .at = r->to->n, .n = x->bytes.n };
	return buf_add(r->to, x->bytes.p, x->bytes.n, e);
}

/* The secret that a mark stands for, which in binary data is as long as the secret. */
static struct shown *mark_find(struct returning *r, struct str *mark)
{
	const char *end = r->text.p + r->text.n;
	struct str longer = *mark;
	struct shown *x;

	while (longer.p + longer.n < end && longer.p[longer.n] == '*')
		longer.n++;
	x = shown_find(r, longer);
	if (x)
		*mark = longer;
	return x || longer.n == mark->n ? x : shown_find(r, *mark);
}

static int put_all_back(struct returning *r, struct err *e)
{
	struct str rest = r->text;
	struct redact_mark m;

	while (next_mark(r, rest, &m)) {
		const char *at = m.whole.p, *end = rest.p + rest.n;
		struct shown *x = mark_find(r, &m.whole);

		if (r->n > 0 && r->looks > LOOKS_MAX)
			return err_set(
				e, ERR_INVALID,
				"content: it has more than %d marks and groups of asterisks, "
				"and the file has secrets; change it by a program in the "
				"sandbox",
				LOOKS_MAX);
		if (buf_add(r->to, rest.p, (size_t)(at - rest.p), e) < 0)
			return -1;
		if (x ? put_back(r, x, m.whole, e) < 0
		      : mark_stays(r, &m, e) < 0 || buf_add(r->to, at, m.whole.n, e) < 0)
			return -1;
		rest.p = at + m.whole.n;
		rest.n = (size_t)(end - rest.p);
	}
	r->likes += redact_mark_likes(
		(struct str){ r->from, (size_t)(r->text.p + r->text.n - r->from) });
	return buf_add(r->to, rest.p, rest.n, e);
}

/* Sets `moved`. */
static void count_moved(struct returning *r)
{
	for (size_t i = 1; i < r->n; i++) {
		const struct shown *a = &r->p[i - 1];
		struct shown *b = &r->p[i];
		size_t n = b->at - a->at; /* with the mark of a */
		bool same = a->used == 1 && b->used == 1 && a->back_at + n == b->back_at;

		same = same && memcmp(r->view.p + a->at, r->text.p + a->back_at, n) == 0;
		b->moved = a->moved + !same;
	}
}

/* Of secrets that are shown alike either all were put back or none, and nothing between them is
 * changed: else it is not clear which is which. */
static int check_twins(struct returning *r, struct err *e)
{
	count_moved(r);
	for (size_t i = 0; i < r->n; i++) {
		const struct shown *x = &r->p[i];
		const struct redact_mark m = { .whole = x->mark,
					       .tag = STR_LIT(REDACT_TAG_OUTPUT) };
		size_t used = 0;
		bool moved = false;

		for (size_t k = 0; x->twins > 1 && k < r->n; k++) {
			bool alike = shown_alike(x, &r->p[k], true);

			used += alike ? r->p[k].used : 0;
			moved |= alike && r->p[k].moved != x->moved;
		}
		if (used > 0 && (used != x->twins || moved))
			return mark_refuse(r, &m, e);
	}
	return 0;
}

/* Where a secret is gone, no text that looks like a mark may be new: it may be that mark, altered,
 * and the secret would be lost. */
static int check_altered(const struct returning *r, struct err *e)
{
	const char *from = r->old.p;
	bool lost = false;
	size_t had = 0;

	for (size_t i = 0; i < r->n; i++) {
		const struct str *bytes = &r->p[i].bytes;

		had += redact_mark_likes((struct str){ from, (size_t)(bytes->p - from) });
		from = bytes->p + bytes->n;
		lost |= r->p[i].used == 0;
	}
	if (!lost)
		return 0;
	had += redact_mark_likes((struct str){ from, (size_t)(r->old.p + r->old.n - from) });
	if (r->likes <= had)
		return 0;
	return err_set(e, ERR_INVALID,
		       "content: a mark of the file is gone, and there is new text that looks like "
		       "a mark that was altered and stands for a secret; copy marks unchanged, or "
		       "do not use the word REDACTED where a secret is removed");
}

/* Checks that values which were put back are found again at their new places. */
static int check_back(const struct returning *r, struct err *e)
{
	autofree struct redact_place *places = NULL;
	size_t n = 0, k = 0;

	if (r->n_back == 0)
		return 0;
	if (redact_find(r->redactor, buf_str(r->to), &places, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < r->n_back; i++) {
		while (k < n && places[k].at < r->back[i].at)
			k++;
		if (k == n || places[k].at != r->back[i].at || places[k].n != r->back[i].n)
			return err_set(
				e, ERR_INVALID,
				"content: a mark stands for a secret that would be shown, or "
				"be part of another one, where it stands now; put nothing "
				"directly beside it");
	}
	return 0;
}

int files_put_back(struct redactor *redactor, const struct files_marked *t, struct buf *to,
		   struct err *e)
{
	autofree struct redact_place *places = NULL;
	autofree struct redact_place *back = calloc(SECRETS_MAX, sizeof(*back));
	autofree struct shown *shown = NULL;
	struct returning r = { .redactor = redactor,
			       .by_agent = t->by_agent,
			       .old = t->old,
			       .text = t->text,
			       .from = t->text.p,
			       .archive = t->archive,
			       .part = t->part,
			       .view = BUF_INIT(MARKED_MAX),
			       .left = FILES_LITERAL_BYTES,
			       .below = BELOW_BYTES,
			       .to = to,
			       .back = back };
	size_t n = 0;
	int rc = 0;

	if (!r.redactor)
		return buf_add(to, t->text.p, t->text.n, e);
	if (redact_find(r.redactor, t->old, &places, &n, e) < 0)
		return -1;
	r.p = shown = calloc(n + 1, sizeof(*shown));
	if (!shown || !back)
		return err_set(e, ERR_LIMIT, "out of memory");
	rc = view_make(&r, places, n, e);
	if (rc == 0)
		rc = put_all_back(&r, e);
	if (rc == 0)
		rc = check_twins(&r, e);
	if (rc == 0)
		rc = check_altered(&r, e);
	if (rc == 0)
		rc = check_back(&r, e);
	buf_fini(&r.view);
	return rc;
}
