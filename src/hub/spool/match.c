#include "hub/spool/match.h"

#include <stdlib.h>
#include <string.h>

#include "json/schema/regex.h"
#include "json/document/utf8.h"

enum { STREAMS = 2, UNKNOWN_BYTE = 0x1a };

struct line {
	bool cut; /* its beginning is lost */
	size_t n;
	char p[JOB_LINE_MAX];
};

struct job_match {
	struct regex *regex;
	struct line lines[STREAMS];
	char text[JOB_LINE_MAX]; /* of a line as it is searched */
};

struct job_match *job_match_new(struct str pattern, struct err *e)
{
	AUTO(job_match_free) struct job_match *m = calloc(1, sizeof(*m));

	if (!m)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	m->regex = regex_new(pattern, e);
	return m->regex ? take_ptr(m) : NULL;
}

void job_match_free(struct job_match *m)
{
	if (!m)
		return;
	regex_free(m->regex);
	free(m);
}

void job_match_gap(struct job_match *m)
{
	for (size_t i = 0; i < STREAMS; i++) {
		m->lines[i].n = 0;
		m->lines[i].cut = true;
	}
}

/* Converts to valid UTF-8 of the same length, so that offsets stay the same. */
static struct str match_clean(struct job_match *m, struct str line)
{
	size_t n;

	for (size_t at = 0; at < line.n; at += n) {
		if (utf8_next((struct str){ line.p + at, line.n - at }, &n))
			memcpy(m->text + at, line.p + at, n);
		else
			memset(m->text + at, UNKNOWN_BYTE, n);
	}
	return (struct str){ m->text, line.n };
}

/* ret_left: bytes of the line after the match. */
static int match_search(struct job_match *m, const struct line *l, bool ended, uint64_t *steps,
			size_t *ret_left, struct err *e)
{
	unsigned part = (l->cut ? REGEX_PART_BEHIND : 0u) | (ended ? 0u : REGEX_PART_BEFORE);
	struct str line = { l->p, l->n };
	size_t end = 0;
	int found;

	if (ended && line.n > 0 && line.p[line.n - 1] == '\r')
		line.n--;
	found = regex_find(m->regex, match_clean(m, line), part, steps, &end, e);
	*ret_left = l->n - end;
	if (found < 0 && e->code == ERR_TOO_LARGE)
		err_set(e, ERR_INVALID, "pattern: it takes too long for what was printed");
	return found;
}

int job_match_feed(struct job_match *m, unsigned stream, struct str bytes, size_t *ret_n,
		   struct err *e)
{
	struct line *l = &m->lines[stream];
	uint64_t steps = JOB_MATCH_STEPS;
	size_t done = 0, left;
	int found = 0;

	while (done < bytes.n && !found) {
		const char *p = bytes.p + done, *end = memchr(p, '\n', bytes.n - done);
		size_t n = end ? (size_t)(end - p) : bytes.n - done;
		bool full = n > JOB_LINE_MAX - l->n;

		if (full)
			n = JOB_LINE_MAX - l->n;
		memcpy(l->p + l->n, p, n);
		l->n += n;
		done += n;
		found = match_search(m, l, end && !full, &steps, &left, e);
		/* A match that a later byte completed may end before these bytes. */
		if (found > 0)
			*ret_n = done > left ? done - left : 0;
		if (full) {
			/* Continues with the second half, as a line without its beginning. */
			memmove(l->p, l->p + JOB_LINE_MAX / 2, JOB_LINE_MAX / 2);
			l->n = JOB_LINE_MAX / 2;
			l->cut = true;
		} else if (end) {
			done++;
			l->n = 0;
			l->cut = false;
		}
	}
	return found;
}

int job_match_end(struct job_match *m, struct err *e)
{
	uint64_t steps = JOB_MATCH_STEPS;
	size_t left;
	int found = 0;

	for (size_t i = 0; i < STREAMS && !found; i++) {
		if (m->lines[i].n > 0)
			found = match_search(m, &m->lines[i], true, &steps, &left, e);
	}
	return found;
}
