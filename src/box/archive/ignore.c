/*
 * A pattern is compiled into steps. All matches are followed in parallel, one character of the path
 * at a time. A pattern that matches a folder also matches everything below it.
 */
#include "box/archive/ignore.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum kind {
	ONE, /* the character */
	ANY, /* any but a slash */
	CLASS, /* one of the ranges, or none of them */
	STAR, /* any number of what is no slash */
	FOLDERS, /* nothing, or what IN_FOLDERS takes and a slash */
	IN_FOLDERS,
	ALL, /* any number of any characters */
};

struct step {
	enum kind kind;
	bool negated;
	uint32_t c; /* of ONE */
	uint16_t first, n; /* of CLASS: among the ranges */
};

struct range {
	uint32_t from, to;
};

struct pattern {
	bool exception;
	size_t n_steps, n_ranges;
	struct step *steps;
	struct range *ranges;
};

struct ignore {
	size_t n;
	struct pattern patterns[IGNORE_PATTERNS_MAX];
};

/* ---- text ------------------------------------------------------------------------------------ */

/* The next character. Bytes that are not UTF-8 count as characters of their own, above all
 * others. */
static uint32_t next_char(struct str *text)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *p = (const unsigned char *)text->p;
	size_t n = p[0] < 0x80 ? 1 : p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc0 ? 2 : 0;
	uint32_t c = n > 1 ? p[0] & (0x7fu >> n) : p[0];

	for (size_t i = 1; i < n; i++) {
		if (i >= text->n || (p[i] & 0xc0) != 0x80)
			n = 0;
		else
			c = c << 6 | (p[i] & 0x3f);
	}
	if (n == 0 || c < least[n]) { /* no UTF-8, or more of it than needed */
		n = 1;
		c = 0x200000u + p[0];
	}
	text->p += n;
	text->n -= n;
	return c;
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct str ignore_trim(struct str s)
{
	while (s.n > 0 && is_blank(s.p[0])) {
		s.p++;
		s.n--;
	}
	while (s.n > 0 && is_blank(s.p[s.n - 1]))
		s.n--;
	return s;
}

size_t ignore_clean(char *path)
{
	size_t root = path[0] == '/', n = root,
	       up = root; /* what is before `up` is ".." that stays */

	for (const char *at = path; *at;) {
		size_t size = strcspn(at, "/");

		if (size == 2 && memcmp(at, "..", 2) == 0 && n > up) {
			while (n > up && path[n - 1] != '/')
				n--;
			n -= n > up;
		} else if (size == 2 && memcmp(at, "..", 2) == 0 && root) {
			; /* nothing is above the root */
		} else if (size > 0 && !(size == 1 && *at == '.')) {
			bool climbs = size == 2 && memcmp(at, "..", 2) == 0;

			if (n > root)
				path[n++] = '/';
			memmove(path + n, at, size);
			n += size;
			if (climbs)
				up = n;
		}
		at += size;
		at += *at == '/';
	}
	if (n == 0)
		path[n++] = '.';
	path[n] = '\0';
	return n;
}

/* ---- compiling ------------------------------------------------------------------------------- */

/* A character of a class: 0 where there is none. */
static bool class_char(struct str *text, uint32_t *ret)
{
	if (text->n == 0 || *text->p == '-' || *text->p == ']')
		return false;
	if (*text->p == '\\') {
		text->p++;
		text->n--;
	}
	if (text->n == 0)
		return false;
	*ret = next_char(text);
	return true;
}

static bool add_range(struct pattern *p, struct step *s, struct str *text)
{
	struct range r;

	if (!class_char(text, &r.from))
		return false;
	r.to = r.from;
	if (text->n > 0 && *text->p == '-') {
		text->p++;
		text->n--;
		if (!class_char(text, &r.to) || r.to < r.from)
			return false;
	}
	p->ranges[p->n_ranges++] = r;
	s->n++;
	return true;
}

/* Adds the class whose bracket was just read. */
static bool add_class(struct pattern *p, struct str *text)
{
	struct step s = { .kind = CLASS, .first = (uint16_t)p->n_ranges };

	s.negated = text->n > 0 && *text->p == '^';
	if (s.negated) {
		text->p++;
		text->n--;
	}
	do {
		if (!add_range(p, &s, text))
			return false;
	} while (text->n > 0 && *text->p != ']');
	if (text->n == 0)
		return false;
	text->p++;
	text->n--;
	p->steps[p->n_steps++] = s;
	return true;
}

/* Adds the star that was just read, or the two. */
static void add_star(struct pattern *p, struct str *text)
{
	if (text->n == 0 || *text->p != '*') {
		p->steps[p->n_steps++] = (struct step){ .kind = STAR };
		return;
	}
	text->p++;
	text->n--;
	if (text->n > 0 && *text->p == '/') {
		text->p++;
		text->n--;
	}
	if (text->n == 0) {
		p->steps[p->n_steps++] = (struct step){ .kind = ALL };
	} else {
		p->steps[p->n_steps++] = (struct step){ .kind = FOLDERS };
		p->steps[p->n_steps++] = (struct step){ .kind = IN_FOLDERS };
	}
}

static bool compile(struct pattern *p, struct str text)
{
	while (text.n > 0) {
		uint32_t c = next_char(&text);

		if (c == '*') {
			add_star(p, &text);
		} else if (c == '?') {
			p->steps[p->n_steps++] = (struct step){ .kind = ANY };
		} else if (c == '[') {
			if (!add_class(p, &text))
				return false;
		} else {
			if (c == '\\' && text.n == 0)
				return false;
			if (c == '\\')
				c = next_char(&text);
			p->steps[p->n_steps++] = (struct step){ .kind = ONE, .c = c };
		}
	}
	return true;
}

/* ---- the list -------------------------------------------------------------------------------- */

static int add_pattern(struct ignore *g, struct str text, struct err *e)
{
	struct pattern *p = &g->patterns[g->n];
	char path[IGNORE_PATTERN_MAX + 2];
	size_t n;

	if (g->n == IGNORE_PATTERNS_MAX)
		return err_set(e, ERR_INVALID, "over %d patterns", IGNORE_PATTERNS_MAX);
	p->exception = text.p[0] == '!';
	if (p->exception)
		text = ignore_trim((struct str){ text.p + 1, text.n - 1 });
	if (text.n == 0 || text.n > IGNORE_PATTERN_MAX || memchr(text.p, '\0', text.n))
		return err_set(e, ERR_INVALID, "a pattern of 1 to %d characters",
			       IGNORE_PATTERN_MAX);
	memcpy(path, text.p, text.n);
	path[text.n] = '\0';
	n = ignore_clean(path);
	p->steps = calloc(n + 1, sizeof(*p->steps)); /* a character makes at most one step */
	p->ranges = calloc(n + 1, sizeof(*p->ranges));
	g->n++;
	if (!p->steps || !p->ranges)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (!compile(p, n > 1 && path[0] == '/' ? str_of(path + 1) : str_of(path)))
		return err_set(e, ERR_INVALID, "no pattern: %.80s", path);
	return 0;
}

static int read_lines(struct ignore *g, struct str text, struct err *e)
{
	size_t number = 1;

	if (text.n > IGNORE_BYTES_MAX)
		return err_set(e, ERR_INVALID, "over %d bytes", IGNORE_BYTES_MAX);
	if (str_starts(text, "\xef\xbb\xbf")) {
		text.p += 3;
		text.n -= 3;
	}
	for (; text.n > 0; number++) {
		const char *end = memchr(text.p, '\n', text.n);
		struct str line = { text.p, end ? (size_t)(end - text.p) : text.n };
		size_t used = line.n + (end != NULL);
		struct str pattern = ignore_trim(line);

		if (pattern.n > 0 && line.p[0] != '#' && add_pattern(g, pattern, e) < 0)
			return err_wrap(e, "line %zu", number);
		text.p += used;
		text.n -= used;
	}
	return 0;
}

struct ignore *ignore_new(struct str text, struct err *e)
{
	AUTO(ignore_free) struct ignore *g = calloc(1, sizeof(*g));

	if (!g)
		err_set(e, ERR_LIMIT, "out of memory");
	return g && read_lines(g, text, e) == 0 ? take_ptr(g) : NULL;
}

void ignore_free(struct ignore *g)
{
	for (size_t i = 0; g && i < g->n; i++) {
		free(g->patterns[i].steps);
		free(g->patterns[i].ranges);
	}
	free(g);
}

/* ---- matching -------------------------------------------------------------------------------- */

/* at[i]: a match has reached step i; at[n_steps]: the end. */
struct ways {
	bool at[IGNORE_PATTERN_MAX + 3];
};

static void reach(const struct pattern *p, struct ways *w, size_t i)
{
	while (i <= p->n_steps && !w->at[i]) {
		w->at[i] = true;
		if (i == p->n_steps)
			return;
		if (p->steps[i].kind == FOLDERS) {
			w->at[i + 1] = true;
			i += 2;
		} else if (p->steps[i].kind == STAR || p->steps[i].kind == ALL) {
			i++;
		} else {
			return;
		}
	}
}

static bool in_class(const struct pattern *p, const struct step *s, uint32_t c)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct range *r = &p->ranges[s->first + i];

		if (c >= r->from && c <= r->to)
			return !s->negated;
	}
	return s->negated;
}

/* How many steps this character advances from here, or -1. */
static int ignore_take(const struct pattern *p, const struct step *s, uint32_t c)
{
	switch (s->kind) {
	case ONE:
		return s->c == c ? 1 : -1;
	case ANY:
		return c != '/' ? 1 : -1;
	case CLASS:
		return c != '/' && in_class(p, s, c) ? 1 : -1;
	case STAR:
		return c != '/' ? 0 : -1;
	case IN_FOLDERS:
	case ALL:
		return 0;
	case FOLDERS:
		break; /* its way is that of IN_FOLDERS */
	}
	return -1;
}

static void go_on(const struct pattern *p, const struct ways *now, struct ways *next, uint32_t c)
{
	memset(next->at, 0, p->n_steps + 1);
	for (size_t i = 0; i < p->n_steps; i++) {
		int steps = now->at[i] ? ignore_take(p, &p->steps[i], c) : -1;

		if (steps >= 0)
			reach(p, next, i + (size_t)steps);
		if (steps >= 0 && c == '/' && p->steps[i].kind == IN_FOLDERS)
			reach(p, next, i + 1);
	}
}

/* Runs the pattern over the path. Returns the remaining states, or one at the end if a folder
 * above the path matches. */
static void ignore_follow(const struct pattern *p, struct str path, struct ways *ret)
{
	struct ways other;
	struct ways *now = ret, *next = &other;

	memset(now->at, 0, p->n_steps + 1);
	reach(p, now, 0);
	while (path.n > 0) {
		uint32_t c = next_char(&path);
		struct ways *was = now;

		if (c == '/' && now->at[p->n_steps])
			break;
		go_on(p, now, next, c);
		now = next;
		next = was;
	}
	if (now != ret)
		memcpy(ret->at, now->at, p->n_steps + 1);
}

static bool ignore_matches(const struct pattern *p, struct str path)
{
	struct ways ways;

	ignore_follow(p, path, &ways);
	return ways.at[p->n_steps];
}

/* Whether the pattern matches the path or could match something below it. */
static bool may_match_below(const struct pattern *p, struct str path)
{
	struct ways ways, below;

	ignore_follow(p, path, &ways);
	if (ways.at[p->n_steps])
		return true;
	go_on(p, &ways, &below, '/');
	return memchr(below.at, true, p->n_steps + 1) != NULL;
}

bool ignore_has(const struct ignore *g, struct str path)
{
	for (size_t i = g->n; i > 0; i--) {
		if (ignore_matches(&g->patterns[i - 1], path))
			return !g->patterns[i - 1].exception;
	}
	return false;
}

bool ignore_has_exceptions(const struct ignore *g, struct str path)
{
	for (size_t i = 0; i < g->n; i++) {
		if (g->patterns[i].exception && may_match_below(&g->patterns[i], path))
			return true;
	}
	return false;
}
