/*
 * src/coding: which projects a folder holds, what runs for them, and what is read in true outputs
 * of the tools, tests/coding/NAME.out and .err. However the output is cut into pieces, NAME.want
 * is what the parser finds. HOLT_UPDATE=1 writes that.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "coding/command.h"
#include "coding/findings.h"
#include "coding/lines.h"
#include "json/document/json.h"
#include "test.h"

enum { FILE_MAX = 1 << 20 };

static const char *folder;

/* ---- outputs --------------------------------------------------------------------------------- */

static const struct row {
	const char *name;
	int format; /* -1: findings */
	int exit_code;
} rows[] = {
	{ "go", TESTS_GO, 2 },
	{ "go-1.24", TESTS_GO, 1 },
	{ "cargo", TESTS_CARGO, 101 },
	{ "cargo-abort", TESTS_CARGO, 101 },
	{ "pytest", TESTS_PYTEST, 1 },
	{ "node", TESTS_ANY, 1 },
	{ "vitest", TESTS_ANY, 1 },
	{ "jest", TESTS_JEST, 1 },
	{ "meson", TESTS_MESON, 3 },
	{ "ctest", TESTS_CTEST, 8 },
	{ "make", TESTS_ANY, 2 },
	{ "automake", TESTS_ANY, 1 },
	{ "cmocka", TESTS_ANY, 1 },
	{ "gtest", TESTS_ANY, 1 },
	{ "none", TESTS_ANY, 0 },
	{ "missing", TESTS_PYTEST, 127 },
	{ "vet", -1, 1 },
	{ "clippy", -1, 101 },
	{ "ruff", -1, 1 },
	{ "mypy", -1, 1 },
	{ "tsc", -1, 2 },
	{ "eslint", -1, 1 },
	{ "npmlint", -1, 1 },
	{ "npmlint-unknown", -1, 1 },
	{ "cppcheck", -1, 1 },
	{ "gcc", -1, 1 },
	{ "clang", -1, 1 },
	{ "mesoncompile", -1, 0 },
	{ "clean", -1, 0 },
};

static struct str read_file(const char *name, const char *end)
{
	static char rooms[3][FILE_MAX];
	static unsigned turn;
	char path[512], *room = rooms[turn++ % 3];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.%s", folder, name, end);
	f = fopen(path, "re");
	if (f) {
		n = fread(room, 1, FILE_MAX, f);
		fclose(f);
	}
	return (struct str){ room, n };
}

static void dump_tests(const struct test_report *r, int exit_code, struct buf *to)
{
	static const char *const verdicts[] = { "passed", "failed", "none", "unparsed" };
	struct err e;

	assert_return_code(buf_addf(to, &e, "%s: %u passed, %u failed, %u skipped, %u lost%s%.*s\n",
				    verdicts[test_report_verdict(r, exit_code)],
				    (unsigned)r->passed, (unsigned)r->failed, (unsigned)r->skipped,
				    (unsigned)r->lost, r->missing.n ? ", missing " : "",
				    STR_ARG(r->missing)),
			   0);
	for (size_t i = 0; i < r->n; i++) {
		const struct test_failure *f = &r->failures[i];
		autobuf struct buf id = BUF_INIT(2048);

		assert_int_equal(test_id_text(f->id, &id, &e), 0);
		assert_true(test_id_eq(test_id_parse(buf_str(&id)), f->id));
		assert_int_equal(buf_addf(to, &e, "\n%s\nat %.*s:%u\n%.*s\n", id.p,
					  STR_ARG(f->file), f->line, STR_ARG(f->message)),
				 0);
	}
}

static void dump_findings(const struct findings *f, int exit_code, struct buf *to)
{
	static const char *const verdicts[] = { "clean", "some", "unparsed" };
	struct err e;

	assert_int_equal(buf_addf(to, &e, "%s: %u errors, %u warnings, %u lost%s%.*s\n",
				  verdicts[findings_verdict(f, exit_code)], (unsigned)f->errors,
				  (unsigned)f->warnings, (unsigned)f->lost,
				  f->missing.n ? ", missing " : "", STR_ARG(f->missing)),
			 0);
	for (size_t i = 0; i < f->n; i++) {
		const struct finding *p = &f->p[i];

		assert_int_equal(buf_addf(to, &e, "%.*s:%u:%u: %s: %.*s [%.*s]\n", STR_ARG(p->file),
					  p->line, p->column, p->warning ? "warning" : "error",
					  STR_ARG(p->text), STR_ARG(p->rule)),
				 0);
	}
}

static struct str piece_of(struct str *s, size_t piece)
{
	struct str p = { s->p, s->n < piece ? s->n : piece };

	*s = (struct str){ s->p + p.n, s->n - p.n };
	return p;
}

static void parse(const struct row *row, size_t piece, struct buf *to)
{
	struct str streams[2] = { read_file(row->name, "out"), read_file(row->name, "err") };
	bool tests = row->format >= 0;
	struct err e;
	AUTO(test_parser_free)
	struct test_parser *t = tests ? test_parser_new((enum test_format)row->format,
							str_of("/workspace"), &e)
				      : NULL;
	AUTO(findings_parser_free)
	struct findings_parser *f = tests ? NULL : findings_parser_new(str_of("/workspace"), &e);

	assert_true(t || f);
	for (unsigned i = 2; i-- > 0;) {
		while (streams[i].n > 0) {
			struct str p = piece_of(&streams[i], piece);

			if (t)
				test_parser_feed(t, i, p);
			else
				findings_parser_feed(f, i, p);
		}
	}
	if (t)
		dump_tests(test_parser_end(t), row->exit_code, to);
	else
		dump_findings(findings_parser_end(f), row->exit_code, to);
}

static void outputs_are_read(void **state)
{
	static const size_t pieces[] = { FILE_MAX, 1, 7, 4096 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (size_t k = 0; k < ARRAY_LEN(pieces); k++) {
			autobuf struct buf b = BUF_INIT(FILE_MAX);
			struct str want;

			parse(&rows[i], pieces[k], &b);
			if (getenv("HOLT_UPDATE") && k == 0) {
				char path[512];
				FILE *f;

				snprintf(path, sizeof(path), "%s/%s.want", folder, rows[i].name);
				f = fopen(path, "we");
				assert_non_null(f);
				fwrite(b.p, 1, b.n, f);
				fclose(f);
			}
			want = read_file(rows[i].name, "want");
			if (!str_eq(want, buf_str(&b)))
				print_error("%s in pieces of %zu:\n%s", rows[i].name, pieces[k],
					    b.p);
			assert_true(str_eq(want, buf_str(&b)));
		}
	}
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static void a_long_line_is_lost_and_told(void **state)
{
	struct err e;
	AUTO(test_parser_free) struct test_parser *p = test_parser_new(TESTS_GO, STR_NONE, &e);
	static char line[CODING_LINE_MAX + 1];
	const struct test_report *r;

	(void)state;
	memset(line, 'x', sizeof(line));
	line[0] = '{';
	test_parser_feed(p, 0, (struct str){ line, sizeof(line) });
	test_parser_feed(p, 0,
			 STR_LIT("\n{\"Action\":\"fail\",\"Package\":\"a\",\"Test\":\"T\"}\n"));
	r = test_parser_end(p);
	assert_int_equal(r->lost, 1);
	assert_int_equal(r->failed, 1);
	assert_true(str_is(r->failures[0].id.name, "T"));
}

static void all_failures_are_counted(void **state)
{
	struct err e;
	AUTO(test_parser_free) struct test_parser *p = test_parser_new(TESTS_ANY, STR_NONE, &e);
	const struct test_report *r;

	(void)state;
	for (unsigned i = 0; i < 3000; i++) {
		char line[64];

		snprintf(line, sizeof(line), "not ok %u - test %u\n", i + 1, i);
		test_parser_feed(p, 0, str_of(line));
	}
	r = test_parser_end(p);
	assert_int_equal(r->failed, 3000);
	assert_int_equal(r->n, TEST_FAILURES_MAX);
}

/* ---- projects -------------------------------------------------------------------------------- */

static const struct {
	const char *names; /* separated by blanks */
	const char *language, *dir;
	const char *want; /* "kind dir", or a part of the error */
} projects[] = {
	{ "./go.mod ./go.sum", NULL, NULL, "go " },
	{ "./a/go.mod ./a/b/go.mod", NULL, NULL, "go a" },
	{ "./a/go.mod ./a/b/go.mod", NULL, "a/b", "no project found" },
	{ "./a/go.mod ./b/package.json", NULL, NULL, "go in a, node in b" },
	{ "./a/go.mod ./b/package.json", "javascript", NULL, "node b" },
	{ "./a/go.mod ./b/package.json", NULL, "./b/", "node b" },
	{ "./go.mod ./b/package.json", NULL, NULL, "go " },
	{ "./go.mod ./b/package.json", "node", NULL, "node b" },
	{ "./go.mod ./Makefile", NULL, NULL, "go " },
	{ "./meson.build ./src/meson.build ./CMakeLists.txt ./Makefile", NULL, NULL, "meson " },
	{ "./CMakeLists.txt ./Makefile", "c", NULL, "cmake " },
	{ "./Makefile ./t.c", NULL, NULL, "make " },
	{ "./Makefile", "rust", NULL, "no project of language \"rust\"" },
	{ "./tests/test_a.py ./a.py", NULL, NULL, "python " },
	{ "./x/pyproject.toml ./x/tests/test_a.py", NULL, NULL, "python x" },
	{ "./script/test", NULL, NULL, "script " },
	{ "./x/test.sh", NULL, NULL, "script x" },
	{ "./package.json ./scripts/test", NULL, NULL, "node " },
	{ "./package.json ./Cargo.toml", NULL, NULL, "rust in ., node in ." },
	{ "./readme", NULL, NULL, "no project found" },
	{ "", NULL, NULL, "no project found" },
};

static void projects_are_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(projects); i++) {
		char names[512], found[PROJECT_DIR_MAX + 16] = "";
		static struct projects all;
		const struct project *p;
		struct err e = ERR_INIT;
		size_t n = strlen(projects[i].names);

		memcpy(names, projects[i].names, n + 1);
		for (size_t k = 0; k < n; k++)
			names[k] = names[k] == ' ' ? '\0' : names[k];
		projects_find((struct str){ names, n ? n + 1 : 0 }, &all);
		p = projects_choose(&all, str_of(projects[i].language), str_of(projects[i].dir),
				    &e);
		if (p)
			snprintf(found, sizeof(found), "%s %s", project_kind_names[p->kind],
				 p->dir);
		if (p ? strcmp(found, projects[i].want) != 0 : !strstr(e.msg, projects[i].want))
			fail_msg("%s: %s %s", projects[i].names, found, e.msg);
	}
}

/* ---- commands -------------------------------------------------------------------------------- */

static const struct {
	enum project_kind kind;
	const char *package; /* of package.json */
	const char *ids; /* separated by |; NULL: the task of all */
	const char *end; /* of the command */
	bool everything;
} reruns[] = {
	{ PROJECT_GO, NULL, NULL, "go test -json -count=1 ./..." },
	{ PROJECT_GO, NULL, "ex.com/a::TestA/b.c|ex.com/a::TestB|ex.com/c::TestA",
	  "go test -json -count=1 -run '^(TestA|TestB|TestA)$' 'ex.com/a' 'ex.com/c'" },
	{ PROJECT_GO, NULL, "ex.com/a::", "go test -json -count=1 'ex.com/a'" },
	{ PROJECT_RUST, NULL, "src/lib.rs::tests::adds|doc::src/lib.rs - add (line 2)",
	  "cargo test --no-fail-fast -- --exact 'tests::adds' 'src/lib.rs - add (line 2)'" },
	{ PROJECT_RUST, NULL, "src/lib.rs::", "cargo test --no-fail-fast", true },
	{ PROJECT_PYTHON, NULL, "t/test_a.py::TestX::test_y[it's]|t/test_b.py::",
	  " 't/test_a.py::TestX::test_y[it'\\''s]' 't/test_b.py'" },
	{ PROJECT_MESON, NULL, "calc::bad one|x", " 'calc:bad one' 'x'" },
	{ PROJECT_CMAKE, NULL, "bad.one|::A::b", " -R '^(bad\\.one|A::b)$'" },
	{ PROJECT_MAKE, NULL, "x", "make test", true },
	{ PROJECT_NODE, "{}", NULL, "node --test --test-reporter=tap" },
	{ PROJECT_NODE, "{\"scripts\":{\"test\":\"node --test test/*.js\"}}",
	  "test/a.js::outer > adds 1",
	  "node --test --test-reporter=tap --test-name-pattern='^outer( > | )adds 1$|^adds 1$' "
	  "test/*.js" },
	{ PROJECT_NODE, "{\"scripts\":{\"test\":\"node --test\"}}",
	  "test/a.js::", "node --test --test-reporter=tap" },
	{ PROJECT_NODE, "{\"scripts\":{\"test\":\"jest --coverage\"}}", "a.test.js::outer > x",
	  "jest --coverage -t '^outer( > | )x$' 'a.test.js'" },
	{ PROJECT_NODE, "{\"devDependencies\":{\"vitest\":\"1\"}}", "a.test.js::x",
	  "vitest run --reporter=tap-flat -t '^x$' 'a.test.js'" },
	{ PROJECT_NODE, "{\"scripts\":{\"test\":\"mocha\"}}", "x", "npm run --silent -- 'test'",
	  true },
};

static void commands_name_the_tests(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(reruns); i++) {
		struct project p = { .kind = reruns[i].kind };
		struct package package = { .n = 0 };
		struct test_id ids[8];
		struct str rest = str_of(reruns[i].ids);
		size_t n = 0;
		struct err e = ERR_INIT;
		AUTO(json_free)
		struct json_doc *d = reruns[i].package
					   ? json_parse(str_of(reruns[i].package), NULL, &e)
					   : NULL;
		struct command c;

		package_read(json_root(d), &package);
		while (rest.n > 0) {
			const char *bar = memchr(rest.p, '|', rest.n);
			size_t len = bar ? (size_t)(bar - rest.p) : rest.n;

			ids[n++] = test_id_parse((struct str){ rest.p, len });
			rest = bar ? str_of(bar + 1) : STR_NONE;
		}
		command_init(&c);
		assert_int_equal(n ? command_rerun(&p, &package, ids, n, &c, &e)
				   : command_for(&p, &package, TASK_TEST, &c, &e),
				 0);
		if (!str_ends(buf_str(&c.line), reruns[i].end))
			fail_msg("%s is not the end of %s", reruns[i].end, c.line.p);
		assert_int_equal(c.everything, reruns[i].everything);
		command_fini(&c);
	}
}

static void scripts_are_checked(void **state)
{
	static const char *const bad[] = { "-f", "../x", "a/b", "x=1", "a\nb" };
	struct project p = { .kind = PROJECT_MAKE };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err e = ERR_INIT;
		struct command c;

		command_init(&c);
		assert_int_equal(command_script(&p, NULL, str_of(bad[i]), &c, &e), -1);
		assert_int_equal(e.code, ERR_INVALID);
		command_fini(&c);
	}
}

/* Who works in a workspace's sandbox is not root. */
static void hints_are_of_use(void **state)
{
	static const char *const programs[] = { "pytest", "ruff",   "mypy",  "eslint",	    "tsc",
						"jest",	  "vitest", "cargo", "go",	    "node",
						"npm",	  "pnpm",   "yarn",  "cargo-clippy" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		const char *hint = program_hint(str_of(programs[i]));

		assert_non_null(hint);
		if (strstr(hint, "apt-get"))
			assert_non_null(strstr(hint, "on the host"));
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hints_are_of_use),
		cmocka_unit_test(outputs_are_read),
		cmocka_unit_test(a_long_line_is_lost_and_told),
		cmocka_unit_test(all_failures_are_counted),
		cmocka_unit_test(projects_are_found),
		cmocka_unit_test(commands_name_the_tests),
		cmocka_unit_test(scripts_are_checked),
	};

	assert(argc == 2);
	folder = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
