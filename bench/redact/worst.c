#include "worst.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../tests/redact/unit.h"
#include "base/mem.h"
#include "guard/redact/redact.h"

enum {
	LOOK_BYTES = 8 << 10, /* of a first look */
	SURE_BYTES = 64 << 10, /* of a second: the first may have been disturbed */
	ROW_BYTES = 4 << 20,
	PIECE = 64 << 10,
	KEPT = 24, /* units that are altered */
	FILE_MAX = 64, /* units of the file */
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void worst_die(const char *what)
{
	fprintf(stderr, "bench: %s\n", what);
	exit(1);
}

double worst_time(struct redactor *r, struct str unit, size_t n, size_t piece)
{
	autofree char *text = malloc(n);
	autobuf struct buf to = BUF_INIT(SIZE_MAX / 2);
	struct err e;
	AUTO(redact_stream_free) struct redact_stream *s = redact_stream_new(r, false, &e);
	double begin;

	if (!text || !s || !buf_reserve(&to, redact_grown(2 * piece), &e))
		worst_die("out of memory");
	for (size_t i = 0; i < n; i++)
		text[i] = unit.p[i % unit.n];
	begin = now();
	for (size_t at = 0; at < n; at += piece) {
		struct str part = { text + at, n - at < piece ? n - at : piece };

		to.n = 0;
		if (redact_stream_add(s, part, at + part.n < n ? REDACT_MORE : REDACT_END, &to,
				      &e) < 0)
			worst_die(e.msg);
	}
	return now() - begin;
}

/* ---- units as lines -------------------------------------------------------------------------- */

static void unit_show(FILE *to, const struct unit *u)
{
	for (size_t i = 0; i < u->n; i++) {
		unsigned char c = (unsigned char)u->text[i];

		if (isprint(c) && c != '\\' && c != '|')
			putc(c, to);
		else
			fprintf(to, "\\x%02x", c);
	}
}

static struct unit unit_read(const char *line)
{
	struct unit u = { .n = 0 };

	for (; *line && *line != '\n'; line++) {
		char hex[3] = { 0 }, c = *line;

		if (!strncmp(line, "\\x", 2) && line[2] && line[3]) {
			memcpy(hex, line + 2, 2);
			c = (char)strtoul(hex, NULL, 16);
			line += 3;
		}
		unit_add(&u, &c, 1);
	}
	return u;
}

static void unit_row(struct redactor *r, const char *name, const struct unit *u)
{
	const struct str text = { u->text, u->n };
	double best = 1e9;

	for (int i = 0; i < 3; i++) {
		double took = worst_time(r, text, ROW_BYTES, PIECE);

		best = took < best ? took : best;
	}
	printf("| %s`", name);
	unit_show(stdout, u);
	printf("` | %.0f |\n", ROW_BYTES / 1e6 / best);
	fflush(stdout);
}

/* ---- the search ------------------------------------------------------------------------------ */

static struct redactor *redactor;
static struct unit worst[KEPT]; /* the worst first; work: picoseconds for a byte */

static uint64_t unit_work(const struct unit *u, size_t n)
{
	double took = worst_time(redactor, (struct str){ u->text, u->n }, n, n);

	return (uint64_t)(took * 1e12 / (double)n);
}

static void unit_try(struct unit *u)
{
	size_t at = KEPT;

	if (u->n == 0)
		return;
	u->work = unit_work(u, LOOK_BYTES);
	if (u->work <= worst[KEPT - 1].work)
		return;
	for (int i = 0; i < 3; i++) {
		uint64_t again = unit_work(u, SURE_BYTES);

		u->work = again < u->work ? again : u->work;
	}
	for (size_t i = 0; i < KEPT; i++) {
		if (worst[i].n == u->n && !memcmp(worst[i].text, u->text, u->n))
			return;
	}
	for (; at > 0 && worst[at - 1].work < u->work; at--) {
		if (at < KEPT)
			worst[at] = worst[at - 1];
	}
	if (at < KEPT)
		worst[at] = *u;
}

/* Without n bytes from `at` on. */
static void unit_cut(struct unit *u, size_t at, size_t n)
{
	memmove(u->text + at, u->text + at + n, u->n - at - n);
	u->n -= n;
}

static void unit_alter(struct unit *u)
{
	size_t at = unit_below((unsigned)u->n), n = 1 + unit_below((unsigned)(u->n - at));
	const struct unit was = *u, *other = &worst[unit_below(KEPT)];

	switch (unit_below(6)) {
	case 0:
		if (n < u->n)
			unit_cut(u, at, n);
		break;
	case 1:
		if (u->n > 1)
			unit_cut(u, at, 1);
		break;
	case 2:
		u->text[at] = (char)(unit_below(8) ? 32 + unit_below(95) : unit_below(256));
		break;
	case 3: /* a piece in the middle */
		u->n = at;
		unit_any(u);
		unit_add(u, was.text + at, was.n - at);
		break;
	case 4: /* a part twice */
		u->n = at + n;
		unit_add(u, was.text + at, was.n - at);
		break;
	default:
		u->n = at;
		unit_add(u, other->text, other->n);
	}
}

static size_t units_read(const char *file, struct unit units[FILE_MAX])
{
	char line[5 * UNIT_BYTES];
	FILE *f = fopen(file, "re");
	size_t n = 0;

	if (!f)
		worst_die(file);
	while (n < FILE_MAX && fgets(line, sizeof(line), f)) {
		units[n] = unit_read(line);
		n += units[n].n > 0;
	}
	fclose(f);
	return n;
}

void worst_measure(struct redactor *r, const char *file, int seconds, bool keep)
{
	static struct unit units[FILE_MAX];
	size_t n = units_read(file, units);
	double end;
	FILE *f;

	redactor = r;
	for (size_t i = 0; i < n; i++) {
		unit_row(r, "", &units[i]);
		unit_try(&units[i]);
	}
	units_of_tables(unit_try);
	for (end = now() + seconds; now() < end;) {
		struct unit u = worst[unit_below(KEPT)];

		if (u.n == 0)
			unit_any(&u);
		else
			unit_alter(&u);
		unit_try(&u);
	}
	unit_row(r, "**the worst found:** ", &worst[0]);
	for (size_t i = 0; i < n; i++)
		keep &= worst[0].n != units[i].n ||
			memcmp(worst[0].text, units[i].text, units[i].n);
	f = keep ? fopen(file, "ae") : NULL;
	if (f) {
		unit_show(f, &worst[0]);
		putc('\n', f);
		fclose(f);
	}
}
