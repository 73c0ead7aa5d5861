/*
 * Reports as text, whose forms have been stable for years: cargo test, jest, meson test, ctest. And
 * the lines of our plugin for pytest (coding/command.c), which are JSON behind a mark.
 */
#include "coding/internal.h"
#include "json/document/json.h"

static struct test_id here(struct test_parser *p, struct str name)
{
	return (struct test_id){ name_str(&p->scope), name };
}

/* ---- cargo test ---------------------------------------------------------------------------- */

/*
 *	     Running unittests src/lib.rs (target/debug/deps/calc-c6626fb655a8d231)
 *	test tests::adds ... FAILED
 *	---- tests::adds stdout ----
 *	thread 'tests::adds' panicked at src/lib.rs:16:9:
 */
static void cargo_test(struct test_parser *p, struct str line)
{
	size_t n = str_find(line, " ... ");
	struct str name = str_upto(line, n), outcome = str_from(line, n + 5);

	if (n == line.n)
		return;
	if (str_ends(name, " - should panic"))
		name.n -= strlen(" - should panic");
	p->report.seen = true;
	if (str_starts(outcome, "FAILED"))
		test_parser_fail(p, here(p, name), STR_LIT(""));
	else if (str_starts(outcome, "ignored"))
		p->report.skipped++;
	else if (str_is(outcome, "ok") || str_starts(outcome, "ok ("))
		p->report.passed++;
}

static void cargo_scope(struct test_parser *p, struct str line)
{
	str_take(&line, "unittests ");
	name_set(&p->scope, str_upto(line, str_find(line, " (")));
}

/* "thread 'x' (7) panicked at src/lib.rs:16:9:"; until Rust 1.72 "panicked at 'text', src/…:16:9"
 */
static void cargo_place(struct test_parser *p, struct str line)
{
	struct str at = str_from(line, str_find(line, "' panicked at ")), file;
	unsigned number, column;
	const char *comma;

	if (!at.n)
		at = str_from(line, str_find(line, ") panicked at "));
	if (!at.n)
		return;
	at = str_from(at, strlen("' panicked at "));
	comma = at.n && at.p[0] == '\'' ? memrchr(at.p, ',', at.n) : NULL;
	if (comma)
		at = str_trim(str_from(at, (size_t)(comma + 1 - at.p)));
	if (place_parse(at, &file, &number, &column))
		test_failure_place(p, test_parser_find(p, here(p, name_str(&p->name))), file,
				   number);
}

void tests_cargo_line(struct test_parser *p, unsigned stream, struct str line)
{
	struct str s = str_trim(line);

	if (str_starts(line, "---- ") && str_ends(line, " stdout ----")) {
		tests_section_end(p);
		name_set(&p->name, str_upto(str_from(line, 5), line.n - 5 - 12));
		p->inside = true;
	} else if (p->inside && (str_is(line, "failures:") || str_starts(line, "test result: "))) {
		tests_section_end(p);
	} else if (p->inside) {
		cargo_place(p, line);
		note_line(&p->note, line);
	} else if (str_take(&line, "test ")) {
		if (str_starts(line, "result: "))
			p->report.seen = true;
		else
			cargo_test(p, line);
	} else if (str_take(&s, "Running ")) {
		cargo_scope(p, s);
	} else if (str_take(&s, "Doc-tests ")) {
		name_set(&p->scope, STR_LIT("doc"));
	} else if (str_find(s, "process didn't exit successfully") < s.n) {
		/* A test took its binary with it. */
		test_parser_fail(p, here(p, STR_LIT("")), s);
	}
}

/* ---- pytest -------------------------------------------------------------------------------- */

static unsigned number_of(const struct json_val *v)
{
	uint64_t u = 0;

	return json_uint64(v, &u) && u < 1u << 30 ? (unsigned)u : 0;
}

void tests_pytest_line(struct test_parser *p, unsigned stream, struct str line)
{
	AUTO(json_free) struct json_doc *d = NULL;
	const struct json_val *v;
	struct err e;

	if (!str_take(&line, "#holt-test "))
		return;
	d = json_parse(line, NULL, &e);
	v = json_root(d);
	if (json_get(v, "id")) {
		struct test_id test = test_id_parse(json_str(json_get(v, "id")));
		struct test_failure *f;

		/* The id of a file that can't be imported has no test. */
		if (!test.scope.n)
			test = (struct test_id){ test.name, STR_LIT("") };
		f = test_parser_fail(p, test, json_str(json_get(v, "text")));
		test_failure_place(p, f, json_str(json_get(v, "file")),
				   number_of(json_get(v, "line")));
	} else if (json_get(v, "passed")) {
		p->report.seen = true;
		p->report.passed = number_of(json_get(v, "passed"));
		p->report.skipped = number_of(json_get(v, "skipped"));
	} else {
		p->report.lost++;
	}
}

/* ---- jest ---------------------------------------------------------------------------------- */

/* Names of groups are joined as other runners do it. */
static void jest_begin(struct test_parser *p, struct str title)
{
	static const char apart[] = " \xe2\x80\xba "; /* U+203A */
	struct name full = { .n = 0 };

	while (title.n > 0 && full.n + title.n < sizeof(full.text)) {
		size_t n = str_find(title, apart);

		memcpy(full.text + full.n, title.p, n);
		full.n += n;
		title = str_from(title, n + sizeof(apart) - 1);
		if (title.n > 0) {
			memcpy(full.text + full.n, " > ", 3);
			full.n += 3;
		}
	}
	if (str_is(name_str(&full), "Test suite failed to run"))
		full.n = 0;
	p->name = full;
	test_parser_fail(p, here(p, name_str(&full)), STR_LIT(""));
	p->inside = true;
}

/* "Tests:       1 failed, 1 skipped, 1 passed, 3 total" */
static void jest_counts(struct test_parser *p, struct str s)
{
	unsigned n;

	p->report.seen = true;
	while (s.n > 0) {
		s = str_trim(s);
		if (!str_take_number(&s, &n))
			return;
		s = str_trim(s);
		if (str_starts(s, "passed"))
			p->report.passed = n;
		else if (str_starts(s, "failed"))
			p->counts.failed = n;
		else if (str_starts(s, "skipped") || str_starts(s, "todo"))
			p->report.skipped += n;
		s = str_from(s, str_find(s, ",") + 1);
	}
}

/* "at Object.toBe (test/sum.test.js:3:78)" */
static void jest_place(struct test_parser *p, struct str s)
{
	size_t open = str_find(s, "(");
	unsigned line, column;
	struct str file;

	if (!str_take(&s, "at "))
		return;
	s = open < s.n ? str_from(s, open - 2) : s;
	if (place_parse(s, &file, &line, &column) && str_find(file, "node_modules/") == file.n)
		test_failure_place(p, test_parser_find(p, here(p, name_str(&p->name))), file, line);
}

void tests_jest_line(struct test_parser *p, unsigned stream, struct str line)
{
	struct str s = str_trim(line);

	if (p->counts.summary && !str_starts(line, "Tests:"))
		return;
	if (str_starts(line, "FAIL ") || str_starts(line, "PASS ")) {
		tests_section_end(p);
		s = str_from(line, 5);
		name_set(&p->scope, str_upto(s, str_find(s, " ")));
		p->report.seen = true;
	} else if (str_take(&s, "\xe2\x97\x8f ")) { /* U+25CF */
		tests_section_end(p);
		jest_begin(p, s);
	} else if (str_starts(line, "Summary of all failing tests") ||
		   str_starts(line, "Test Suites:")) {
		tests_section_end(p);
		p->counts.summary = true;
	} else if (str_take(&line, "Tests:")) {
		jest_counts(p, line);
	} else if (p->inside) {
		jest_place(p, s);
		note_line(&p->note, s);
	}
}

void tests_jest_end(struct test_parser *p)
{
	tests_section_end(p);
	if (p->counts.failed > p->report.failed)
		p->report.failed = p->counts.failed;
}

/* ---- meson test ---------------------------------------------------------------------------- */

static const char *const meson_words[] = { "OK",      "EXPECTEDFAIL",	"SKIP",	 "FAIL",
					   "TIMEOUT", "UNEXPECTEDPASS", "ERROR", "INTERRUPT" };
enum { MESON_OK = 0, MESON_EXPECTEDFAIL, MESON_SKIP };

/* "bad one   FAIL            0.01s   exit status 1": where the word of the outcome begins. */
static size_t meson_outcome(struct str s, size_t *ret_word)
{
	for (size_t i = 1; i + 1 < s.n; i++) {
		if (s.p[i - 1] != ' ')
			continue;
		for (size_t k = 0; k < ARRAY_LEN(meson_words); k++) {
			struct str rest = str_from(s, i);
			unsigned n;

			if (!str_take(&rest, meson_words[k]) || !str_starts(rest, " "))
				continue;
			rest = str_trim(rest);
			if (!str_take_number(&rest, &n) || !str_starts(rest, "."))
				continue;
			*ret_word = k;
			return i;
		}
	}
	return s.n;
}

/* "calc:unit / good" is the test good of the project calc. */
static struct test_id meson_id(struct str s)
{
	size_t slash = str_find(s, " / ");
	struct str scope = slash < s.n ? str_upto(s, slash) : STR_LIT("");

	return (struct test_id){ str_upto(scope, str_find(scope, ":")),
				 slash < s.n ? str_from(s, slash + 3) : s };
}

static bool numbered(struct str *s)
{
	unsigned n;

	*s = str_trim(*s);
	return str_take_number(s, &n) && str_take(s, "/") && str_take_number(s, &n) &&
	       str_take(s, " ");
}

void tests_meson_line(struct test_parser *p, unsigned stream, struct str line)
{
	static const char rule[] = "\xe2\x80\x95\xe2\x80\x95"; /* U+2015, twice */
	struct str s = line;
	struct test_id id;
	size_t word = 0, at;

	if (str_starts(line, rule)) {
		if (!p->inside && p->name.n > 0)
			p->inside = true;
		else
			tests_section_end(p);
		return;
	}
	if (p->inside) {
		note_line(&p->note, line);
		return;
	}
	if (str_starts(line, "Summary of Failures:"))
		p->counts.summary = true;
	if (p->counts.summary || !numbered(&s) || (at = meson_outcome(s, &word)) == s.n)
		return;
	id = meson_id(str_trim(str_upto(s, at)));
	tests_section_end(p);
	p->report.seen = true;
	if (word == MESON_OK || word == MESON_EXPECTEDFAIL) {
		p->report.passed++;
	} else if (word == MESON_SKIP) {
		p->report.skipped++;
	} else {
		test_parser_fail(p, id, STR_LIT(""));
		name_set(&p->scope, id.scope);
		name_set(&p->name, id.name);
		note_line(&p->note, str_from(s, at));
	}
}

/* ---- ctest --------------------------------------------------------------------------------- */

/*
 *	2/5 Test #2: bad.one ..........................***Failed    0.00 sec
 *	1/5 Test #1: good .............................   Passed    0.00 sec
 */
static bool ctest_result(struct test_parser *p, struct str s)
{
	size_t colon, dots;
	struct str name, outcome;

	if (!numbered(&s) || !str_take(&s, "Test ") || (colon = str_find(s, ": ")) == s.n ||
	    !str_ends(s, " sec"))
		return false;
	s = str_trim(str_from(s, colon + 2));
	dots = str_find(s, " ..");
	name = str_upto(s, dots);
	outcome = str_from(s, dots + 1);
	while (str_starts(outcome, "."))
		outcome = str_from(outcome, 1);
	outcome = str_trim(outcome);
	tests_section_end(p);
	p->report.seen = true;
	if (str_starts(outcome, "Passed")) {
		p->report.passed++;
	} else if (str_starts(outcome, "***Skipped") ||
		   str_find(outcome, "(Disabled)") < outcome.n) {
		p->report.skipped++;
	} else {
		test_parser_fail(p, (struct test_id){ STR_LIT(""), name }, STR_LIT(""));
		name_set(&p->name, name);
		p->inside = true;
		note_line(&p->note, outcome);
	}
	return true;
}

void tests_ctest_line(struct test_parser *p, unsigned stream, struct str line)
{
	struct str s = str_trim(line);

	if (ctest_result(p, line))
		return;
	if (str_starts(s, "Start ") || str_find(s, "% tests passed") < s.n)
		tests_section_end(p);
	else if (str_is(line, "No tests were found!!!"))
		p->report.seen = true;
	else if (p->inside)
		note_line(&p->note, line);
}
