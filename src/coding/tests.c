#include "coding/internal.h"

/* Failures with their texts: 500 of 3 KiB at most, and growth of the list. */
enum { ARENA_MAX = 2 << 20 };

static const struct {
	void (*line)(struct test_parser *p, unsigned stream, struct str line);
	void (*end)(struct test_parser *p);
	bool needs_lines; /* a line that was cut may hide a failure */
} formats[TEST_FORMATS] = {
	[TESTS_GO] = { tests_go_line, tests_go_end, true },
	[TESTS_CARGO] = { tests_cargo_line, tests_section_end },
	[TESTS_PYTEST] = { tests_pytest_line, .needs_lines = true },
	[TESTS_JEST] = { tests_jest_line, tests_jest_end },
	[TESTS_MESON] = { tests_meson_line, tests_section_end },
	[TESTS_CTEST] = { tests_ctest_line, tests_section_end },
	[TESTS_ANY] = { tests_any_line, tests_any_end },
};

void note_line(struct note *n, struct str line)
{
	size_t room = sizeof(n->text) - n->n;

	if ((n->n == 0 && str_trim(line).n == 0) || room < 2)
		return;
	line = str_upto(line, room - 1);
	memcpy(n->text + n->n, line.p, line.n);
	n->n += line.n;
	n->text[n->n++] = '\n';
}

void name_set(struct name *n, struct str s)
{
	n->n = s.n <= sizeof(n->text) ? s.n : 0;
	if (n->n)
		memcpy(n->text, s.p, n->n);
}

bool str_take_number(struct str *s, unsigned *ret)
{
	unsigned v = 0;
	size_t n = 0;

	while (n < s->n && n < 9 && s->p[n] >= '0' && s->p[n] <= '9')
		v = v * 10 + (unsigned)(s->p[n++] - '0');
	if (n == 0)
		return false;
	*s = str_from(*s, n);
	*ret = v;
	return true;
}

/* ":LINE" or ":LINE:COLUMN" at the front of s. */
static bool place_numbers(struct str s, unsigned *ret_line, unsigned *ret_column)
{
	unsigned line, column = 0;
	struct str rest;

	if (!str_take(&s, ":") || !str_take_number(&s, &line))
		return false;
	rest = s;
	if (str_take(&rest, ":") && str_take_number(&rest, &column))
		s = rest;
	if (s.n > 0 && s.p[0] != ':' && s.p[0] != ')' && s.p[0] != ',' && s.p[0] != ' ' &&
	    s.p[0] != '\n')
		return false;
	*ret_line = line;
	*ret_column = column;
	return true;
}

bool place_parse(struct str s, struct str *ret_file, unsigned *ret_line, unsigned *ret_column)
{
	for (size_t i = 1; i < s.n; i++) {
		if (s.p[i] != ':' || !place_numbers(str_from(s, i), ret_line, ret_column))
			continue;
		*ret_file = str_trim(str_upto(s, i));
		return true;
	}
	return false;
}

/* ---- the report ---------------------------------------------------------------------------- */

static struct str test_parser_keep(struct test_parser *p, struct str s)
{
	struct err e;
	char *copy = s.n ? arena_dup(&p->arena, s, &e) : NULL;

	return copy ? (struct str){ copy, s.n } : STR_LIT("");
}

struct test_failure *test_parser_find(struct test_parser *p, struct test_id id)
{
	for (size_t i = 0; i < p->report.n; i++) {
		if (test_id_eq(p->report.failures[i].id, id))
			return &p->report.failures[i];
	}
	return NULL;
}

void test_failure_say(struct test_parser *p, struct test_failure *f, struct str message)
{
	if (f && !f->message.n)
		f->message = test_parser_keep(p, str_upto(message, TEST_MESSAGE_MAX));
}

struct test_failure *test_parser_fail(struct test_parser *p, struct test_id id, struct str message)
{
	struct test_report *r = &p->report;
	struct test_failure *f;

	r->seen = true;
	if (test_parser_find(p, id))
		return NULL;
	r->failed++;
	/* A name that was cut can't be rerun. */
	if (r->n == TEST_FAILURES_MAX || id.scope.n + id.name.n == 0 ||
	    id.scope.n + id.name.n > TEST_ID_MAX)
		return NULL;
	f = &r->failures[r->n++];
	*f = (struct test_failure){
		.id = { test_parser_keep(p, id.scope), test_parser_keep(p, id.name) },
		.file = STR_LIT(""),
		.message = STR_LIT(""),
	};
	test_failure_say(p, f, message);
	return f;
}

struct str test_parser_relative(const struct test_parser *p, struct str file)
{
	struct str root = name_str(&p->root);

	str_take(&file, "file://");
	if (root.n && file.n > root.n && memcmp(file.p, root.p, root.n) == 0 &&
	    file.p[root.n] == '/')
		return str_from(file, root.n + 1);
	return file;
}

void test_failure_place(struct test_parser *p, struct test_failure *f, struct str file,
			unsigned line)
{
	if (!f || f->line || file.n > TEST_ID_MAX)
		return;
	f->file = test_parser_keep(p, test_parser_relative(p, file));
	f->line = line;
}

/* Ends the section of a failure: what was noted is its message. */
void tests_section_end(struct test_parser *p)
{
	struct test_failure *f =
		test_parser_find(p, (struct test_id){ name_str(&p->scope), name_str(&p->name) });

	test_failure_say(p, f, note_str(&p->note));
	p->note.n = 0;
	p->name.n = 0;
	p->inside = false;
}

enum test_verdict test_report_verdict(const struct test_report *r, int exit_code)
{
	if (r->failed > 0)
		return TESTS_FAILED;
	if (exit_code == 0 && r->seen)
		return r->passed > 0 ? TESTS_PASSED : TESTS_NONE;
	return TESTS_UNPARSED;
}

/* ---- the parser ---------------------------------------------------------------------------- */

static void test_parser_on_line(void *arg, unsigned stream, struct str line, bool cut)
{
	struct test_parser *p = arg;
	struct str missing = line;

	if (cut && formats[p->format].needs_lines) {
		p->report.lost++;
		return;
	}
	if (str_take(&missing, "#holt-missing "))
		p->report.missing = test_parser_keep(p, str_upto(missing, 64));
	else
		formats[p->format].line(p, stream, line);
}

struct test_parser *test_parser_new(enum test_format format, struct str root, struct err *e)
{
	struct test_parser *p = calloc(1, sizeof(*p));

	if (!p)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	p->format = format;
	p->report.missing = STR_LIT("");
	arena_init(&p->arena, ARENA_MAX);
	lines_init(&p->lines, test_parser_on_line, p);
	name_set(&p->root, root);
	p->report.failures = arena_array(&p->arena, TEST_FAILURES_MAX, sizeof(*p->report.failures),
					 e);
	if (!p->report.failures) {
		test_parser_free(p);
		return NULL;
	}
	return p;
}

void test_parser_free(struct test_parser *p)
{
	if (!p)
		return;
	if (p->format == TESTS_GO)
		tests_go_free(p);
	lines_fini(&p->lines);
	arena_fini(&p->arena);
	free(p);
}

void test_parser_feed(struct test_parser *p, unsigned stream, struct str bytes)
{
	lines_feed(&p->lines, stream, bytes);
}

void test_parser_lost(struct test_parser *p)
{
	p->report.lost++;
}

const struct test_report *test_parser_end(struct test_parser *p)
{
	lines_end(&p->lines);
	if (formats[p->format].end)
		formats[p->format].end(p);
	return &p->report;
}
