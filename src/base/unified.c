/*
 * Marks lines that only one text has, by the greedy algorithm of Myers ("An O(ND) difference
 * algorithm and its variations", 1986) on what is between the equal lines at both ends. The
 * furthest points of each round are kept to find the way back.
 */
#include "base/unified.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS_LEAST = 1000000, STEPS_A_LINE = 16 };

struct unified_line {
	struct str text; /* with its line break */
	uint64_t hash;
};

struct unified_side {
	struct unified_line *lines;
	bool *changed; /* only this text has the line */
	size_t n;
};

static void side_fini(struct unified_side *s)
{
	free(s->lines);
	free(s->changed);
}

static struct str next_line(struct str *text)
{
	const char *end = memchr(text->p, '\n', text->n);
	struct str line = { text->p, end ? (size_t)(end + 1 - text->p) : text->n };

	text->p += line.n;
	text->n -= line.n;
	return line;
}

static uint64_t line_hash(struct str line)
{
	uint64_t h = 0xcbf29ce484222325;

	for (size_t i = 0; i < line.n; i++)
		h = (h ^ (uint8_t)line.p[i]) * 0x100000001b3;
	return h;
}

static int side_read(struct unified_side *s, struct str text, struct err *e)
{
	struct str rest = text;
	size_t n = 0;

	while (rest.n) {
		next_line(&rest);
		n++;
	}
	s->lines = calloc(n + 1, sizeof(*s->lines));
	s->changed = calloc(n + 1, sizeof(*s->changed));
	if (!s->lines || !s->changed)
		return err_set(e, ERR_LIMIT, "out of memory");
	while (text.n) {
		struct str line = next_line(&text);

		s->lines[s->n++] = (struct unified_line){ line, line_hash(line) };
	}
	return 0;
}

static bool same_line(const struct unified_side *a, size_t i, const struct unified_side *b,
		      size_t k)
{
	return a->lines[i].hash == b->lines[k].hash && str_eq(a->lines[i].text, b->lines[k].text);
}

/* ---- the shortest edit ----------------------------------------------------------------------- */

/* The middle of both texts, from `at` on. Diagonal k has the points x, x - k. */
struct unified_search {
	struct unified_side *a, *b;
	size_t at;
	int32_t n, m;
	int64_t steps; /* that may be taken still */
	int32_t *furthest; /* x of each diagonal of round d, from d * (d + 1) / 2 on; -1: none */
};

static int32_t *furthest_of(const struct unified_search *s, int32_t d, int32_t k)
{
	return &s->furthest[(size_t)d * ((size_t)d + 1) / 2 + (size_t)((k + d) / 2)];
}

/* Where round d begins on diagonal k, behind its one insertion or deletion. */
static int32_t search_enter(const struct unified_search *s, int32_t d, int32_t k, bool *ret_down)
{
	int32_t down = k + 1 <= d - 1 ? *furthest_of(s, d - 1, k + 1) : -1;
	int32_t right = k - 1 >= -(d - 1) ? *furthest_of(s, d - 1, k - 1) : -1;

	if (down >= 0 && down - k > s->m)
		down = -1;
	right = right >= 0 && right < s->n ? right + 1 : -1;
	*ret_down = down >= right;
	return down >= right ? down : right;
}

static int32_t search_slide(struct unified_search *s, int32_t x, int32_t k)
{
	const int32_t from = x;

	while (x < s->n && x - k < s->m &&
	       same_line(s->a, s->at + (size_t)x, s->b, s->at + (size_t)(x - k)))
		x++;
	s->steps -= 1 + x - from;
	return x;
}

/* The rounds it takes; -1: it takes too long. */
static int32_t search_forward(struct unified_search *s)
{
	for (int32_t d = 0; d <= UNIFIED_EDITS_MAX && s->steps > 0; d++) {
		for (int32_t k = -d; k <= d; k += 2) {
			bool down;
			int32_t x = d ? search_enter(s, d, k, &down) : 0;

			if (x >= 0)
				x = search_slide(s, x, k);
			*furthest_of(s, d, k) = x;
			if (k == s->n - s->m && x == s->n)
				return d;
		}
	}
	return -1;
}

static void search_back(const struct unified_search *s, int32_t d)
{
	int32_t k = s->n - s->m;

	for (; d > 0; d--) {
		bool down;
		int32_t x = search_enter(s, d, k, &down);

		if (down)
			s->b->changed[s->at + (size_t)(x - k - 1)] = true;
		else
			s->a->changed[s->at + (size_t)(x - 1)] = true;
		k += down ? 1 : -1;
	}
}

static int unified_mark(struct unified_side *a, struct unified_side *b, struct err *e)
{
	const size_t rounds = UNIFIED_EDITS_MAX + 1;
	struct unified_search s = { .a = a, .b = b };
	size_t tail = 0, least = a->n < b->n ? a->n : b->n;
	int32_t d = -1;

	while (s.at < least && same_line(a, s.at, b, s.at))
		s.at++;
	while (tail < least - s.at && same_line(a, a->n - 1 - tail, b, b->n - 1 - tail))
		tail++;
	if (a->n > INT32_MAX || b->n > INT32_MAX)
		return err_set(e, ERR_TOO_LARGE, "a text has too many lines");
	s.n = (int32_t)(a->n - s.at - tail);
	s.m = (int32_t)(b->n - s.at - tail);
	s.steps = STEPS_LEAST + STEPS_A_LINE * ((int64_t)s.n + s.m);
	s.furthest = malloc(rounds * (rounds + 1) / 2 * sizeof(*s.furthest));
	if (!s.furthest)
		return err_set(e, ERR_LIMIT, "out of memory");
	d = search_forward(&s);
	if (d >= 0) {
		search_back(&s, d);
	} else {
		memset(a->changed + s.at, true, (size_t)s.n);
		memset(b->changed + s.at, true, (size_t)s.m);
	}
	free(s.furthest);
	return 0;
}

/* ---- hunks ----------------------------------------------------------------------------------- */

struct unified_writer {
	const struct unified_side *a, *b;
	struct buf *to;
	bool full;
};

static void unified_put(struct unified_writer *w, struct str front, struct str text)
{
	static const char none[] = "\n\\ No newline at end of file\n";
	struct err ignored = ERR_INIT;
	bool open = text.n && text.p[text.n - 1] != '\n';
	size_t n = front.n + text.n + (open ? sizeof(none) - 1 : 0);

	if (w->full || n > w->to->max - w->to->n || !buf_reserve(w->to, n, &ignored)) {
		w->full = true;
		return;
	}
	memcpy(w->to->p + w->to->n, front.p, front.n);
	if (text.n)
		memcpy(w->to->p + w->to->n + front.n, text.p, text.n);
	if (open)
		memcpy(w->to->p + w->to->n + front.n + text.n, none, sizeof(none) - 1);
	buf_advance(w->to, n);
}

/* From line i of a and k of b on: behind the changes that stand together. */
static void hunk_end(const struct unified_writer *w, size_t *i, size_t *k)
{
	size_t same = 0;

	while (same <= 2 * UNIFIED_CONTEXT) {
		if (*i < w->a->n && w->a->changed[*i]) {
			++*i;
			same = 0;
		} else if (*k < w->b->n && w->b->changed[*k]) {
			++*k;
			same = 0;
		} else if (*i < w->a->n) {
			++*i;
			++*k;
			same++;
		} else {
			break;
		}
	}
	/* what is the same at the end is context, and no more */
	if (same > UNIFIED_CONTEXT) {
		*i -= same - UNIFIED_CONTEXT;
		*k -= same - UNIFIED_CONTEXT;
	}
}

/* An empty range begins at the line before it. */
static void hunk_put(struct unified_writer *w, size_t i, size_t k, size_t i_end, size_t k_end)
{
	char head[128];
	int n = snprintf(head, sizeof(head), "@@ -%zu,%zu +%zu,%zu @@\n", i + (i_end > i),
			 i_end - i, k + (k_end > k), k_end - k);

	unified_put(w, (struct str){ head, (size_t)n }, STR_LIT(""));
	while (i < i_end || k < k_end) {
		if (i < i_end && w->a->changed[i]) {
			unified_put(w, STR_LIT("-"), w->a->lines[i++].text);
		} else if (k < k_end && w->b->changed[k]) {
			unified_put(w, STR_LIT("+"), w->b->lines[k++].text);
		} else {
			unified_put(w, STR_LIT(" "), w->a->lines[i++].text);
			k++;
		}
	}
}

static void write_hunks(struct unified_writer *w)
{
	size_t i = 0, k = 0;

	while (!w->full && (i < w->a->n || k < w->b->n)) {
		size_t same = 0, i_end, k_end;

		while (i < w->a->n && !w->a->changed[i] && !(k < w->b->n && w->b->changed[k])) {
			i++;
			k++;
			same++;
		}
		if (i == w->a->n && k == w->b->n)
			break;
		same = same < UNIFIED_CONTEXT ? same : UNIFIED_CONTEXT;
		i_end = i;
		k_end = k;
		hunk_end(w, &i_end, &k_end);
		hunk_put(w, i - same, k - same, i_end, k_end);
		i = i_end;
		k = k_end;
	}
}

int unified_diff(struct str a, struct str b, struct buf *to, struct err *e)
{
	struct unified_side sides[2] = { { .n = 0 }, { .n = 0 } };
	struct unified_writer w = { &sides[0], &sides[1], to, false };
	int result = -1;

	if (side_read(&sides[0], a, e) == 0 && side_read(&sides[1], b, e) == 0 &&
	    unified_mark(&sides[0], &sides[1], e) == 0) {
		write_hunks(&w);
		result = w.full;
	}
	side_fini(&sides[0]);
	side_fini(&sides[1]);
	return result;
}
