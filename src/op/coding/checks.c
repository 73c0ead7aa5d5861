/*
 * coding.test, .lint, .typecheck, .script, .retest and .failures.
 *
 *	names of files → which project → package.json → its command → read what it prints
 *
 * Each program is a job, whose output is read by a cursor as it comes: all of it is parsed, while
 * memory has the report, and a head and a tail of the output.
 */
#include <stdio.h>

#include "hub/core/output.h"
#include "json/document/json.h"
#include "op/coding/shell.h"

enum {
	TEST_TIMEOUT = 300,
	TEST_TIMEOUT_MAX = 1800,
	LINT_TIMEOUT = 120,
	LINT_TIMEOUT_MAX = 600,
	LOOK_TIMEOUT_MS = 30000, /* for the names of files, and package.json */
	NAMES_MAX = 256 << 10,
	RAW_MAX = 8 << 10, /* bytes of the output that are kept */
	REPORT_MAX = 4 << 20, /* of memory, for a report and what it is read from */
	PIECE_MAX = 64 << 10,
	RERUN_MAX = 200,
	RERUN_DEFAULT = 50,
	PATH_ARG_MAX = 1024,
};

const char *const check_verdict_names[CHECK_VERDICTS] = {
	[CHECK_PASSED] = "passed",	 [CHECK_FAILED] = "failed",
	[CHECK_NO_TESTS] = "no_tests",	 [CHECK_CLEAN] = "clean",
	[CHECK_FINDINGS] = "findings",	 [CHECK_UNPARSED] = "unparsed",
	[CHECK_TIMED_OUT] = "timed_out", [CHECK_MISSING] = "program_missing",
};

/* ---- tables -------------------------------------------------------------------------------- */

struct check_request {
	struct str name, language, path, workspace;
	uint32_t timeout, limit;
};
#define Q struct check_request
#define TIMEOUT_ROW(def_, max_)                                                                    \
	FIELD(Q, timeout, .min = 1, .max = (max_), .def = DEFAULT_INT(def_),                       \
	      .doc = "Seconds until it is killed with all that it started.")
#define PROJECT_ROWS_                                                                              \
	FIELD(Q, language, .min = 1, .max = 32,                                                    \
	      .doc = "go, rust, node, python, c or script, where there are several projects."),    \
		FIELD(Q, path, .flags = FIELD_PATH, .min = 1, .max = PATH_ARG_MAX,                 \
		      .doc = "Folder of the project, relative to the workspace."),                 \
		CODING_WORKSPACE_ROW(Q)
static const struct field test_fields[] = { TIMEOUT_ROW(TEST_TIMEOUT, TEST_TIMEOUT_MAX),
					    PROJECT_ROWS_ };
static const struct field lint_fields[] = { TIMEOUT_ROW(LINT_TIMEOUT, LINT_TIMEOUT_MAX),
					    PROJECT_ROWS_ };
static const struct field script_fields[] = {
	FIELD(Q, name, .flags = FIELD_REQUIRED, .min = 1, .max = 256,
	      .doc = "Name of a script in package.json, a make target, or a file in script/ "
		     "or scripts/."),
	TIMEOUT_ROW(TEST_TIMEOUT, TEST_TIMEOUT_MAX), PROJECT_ROWS_
};
static const struct field retest_fields[] = { FIELD(Q, limit, .min = 1, .max = RERUN_MAX,
						    .def = DEFAULT_INT(RERUN_DEFAULT),
						    .doc = "Maximum number of tests to run."),
					      TIMEOUT_ROW(TEST_TIMEOUT, TEST_TIMEOUT_MAX),
					      CODING_WORKSPACE_ROW(Q) };
static const struct field failures_fields[] = { FIELD(Q, limit, .min = 1, .max = TEST_FAILURES_MAX,
						      .def = DEFAULT_INT(RERUN_DEFAULT),
						      .doc = "Maximum number of failures to show."),
						CODING_WORKSPACE_ROW(Q) };
#undef Q
static const struct field_table test_table = FIELD_TABLE(struct check_request, test_fields);
static const struct field_table lint_table = FIELD_TABLE(struct check_request, lint_fields);
static const struct field_table script_table = FIELD_TABLE(struct check_request, script_fields);
static const struct field_table retest_table = FIELD_TABLE(struct check_request, retest_fields);
static const struct field_table failures_table = FIELD_TABLE(struct check_request, failures_fields);

#define F struct check_failure
static const struct field failure_fields[] = {
	FIELD(F, test, .flags = FIELD_REQUIRED, .doc = "Scope and name of the test."),
	FIELD(F, file, .doc = "File in which it failed."),
	FIELD(F, line, .doc = "Line in the file; 0: not known."),
	FIELD(F, message, .flags = FIELD_BYTES, .doc = "What the test runner reports."),
};
#undef F
static const struct field_table failure_table = FIELD_TABLE(struct check_failure, failure_fields);

#define F struct check_finding
static const struct field finding_fields[] = {
	FIELD(F, file, .doc = "File of the finding."),
	FIELD(F, line, .doc = "Line in the file; 0: not known."),
	FIELD(F, column, .doc = "Column in the line; 0: not known."),
	FIELD(F, severity, .flags = FIELD_REQUIRED, .doc = "error or warning."),
	FIELD(F, rule, .doc = "Name of the rule."),
	FIELD(F, message, .flags = FIELD_REQUIRED | FIELD_BYTES, .doc = "Message of the tool."),
};
#undef F
static const struct field_table finding_table = FIELD_TABLE(struct check_finding, finding_fields);

#define A struct check_answer
static const struct field answer_fields[] = {
	FIELD_ENUM(A, verdict, check_verdict_names, .flags = FIELD_REQUIRED,
		   .doc = "passed, failed or no_tests; clean or findings; unparsed: no report "
			  "explains the exit status; timed_out; program_missing."),
	FIELD(A, project, .doc = "Kind and folder of the project."),
	FIELD(A, exit_code, .has = FIELD_HAS(A, has_exit_code), .doc = "Exit code of the command."),
	FIELD(A, passed, .has = FIELD_HAS(A, has_counts), .doc = "Tests that passed."),
	FIELD(A, failed, .has = FIELD_HAS(A, has_counts), .doc = "Tests that failed."),
	FIELD(A, skipped, .has = FIELD_HAS(A, has_counts), .doc = "Tests that were skipped."),
	FIELD(A, errors, .has = FIELD_HAS(A, has_findings), .doc = "Findings that are errors."),
	FIELD(A, warnings, .has = FIELD_HAS(A, has_findings), .doc = "Findings that are warnings."),
	FIELD_OBJECTS(A, failures, failure_table, .doc = "The tests that failed."),
	FIELD_OBJECTS(A, findings, finding_table, .doc = "Findings of the tool."),
	FIELD(A, more, .doc = "How many failures or findings are not listed."),
	FIELD(A, lost, .doc = "Parts of the report that could not be read: more may have failed."),
	FIELD(A, missing, .doc = "The program that is missing."),
	FIELD(A, hint, .doc = "How to get the missing program."),
	FIELD(A, output, .flags = FIELD_BYTES, .doc = "Head and tail of the output."),
	FIELD(A, shell_id, .doc = "Shell id for BashOutput, which has all the output."),
	FIELD(A, everything, .doc = "All tests ran, because the runner can't run selected ones."),
	FIELD(A, not_run,
	      .doc = "Failed tests that were to run again and did not: renamed, skipped, or within "
		     "another. They stay with the failures, and the verdict is not passed."),
};
#undef A
static const struct field_table answer_table = FIELD_TABLE(struct check_answer, answer_fields);

/* ---- one on its way ------------------------------------------------------------------------ */

struct check {
	struct coding_work w; /* first */
	const struct check_request *q;
	enum check_kind { CHECK_TESTS, CHECK_LINT, CHECK_TYPES, CHECK_SCRIPT, CHECK_FAILING } kind;
	enum { CHECK_LOOKS, CHECK_READS_PACKAGE, CHECK_RUNS } phase;
	struct job *job; /* a reference; NULL: none runs */
	struct spool_cursor *cursor;
	struct buf text; /* of the first two phases */
	struct project project;
	struct json_doc *document;
	struct package *package;
	struct command command;
	char root[sizeof(CODING_ROOT) + 1 + PROJECT_DIR_MAX];
	struct test_parser *tests;
	struct findings_parser *findings;
	struct output raw;
	/* Failures that run again: which, and of which report. */
	size_t from, rerun, different; /* different: of those that run again, by name */
	uint64_t of_report;
};

static void check_free(struct check *k)
{
	spool_cursor_close(take_ptr(k->cursor));
	job_unref(take_ptr(k->job));
	buf_fini(&k->text);
	json_free(take_ptr(k->document));
	command_fini(&k->command);
	test_parser_free(take_ptr(k->tests));
	findings_parser_free(take_ptr(k->findings));
	output_fini(&k->raw);
}

static void check_fail(struct check *k, const struct err *e)
{
	check_free(k);
	coding_fail(&k->w, e);
}

/* The answer borrows from k's report. */
static void check_answer(struct check *k, const struct check_answer *a)
{
	struct check was = *k;

	coding_answer(&k->w, a);
	check_free(&was);
}

static void check_take(struct check *k, const struct spool_piece *p)
{
	struct err e;

	if (k->phase != CHECK_RUNS) {
		if (p->stream == 0 && buf_add(&k->text, p->bytes.p, p->bytes.n, &e) < 0)
			return; /* what is too long is cut */
		return;
	}
	output_add(&k->raw, p->bytes.p, p->bytes.n);
	if (k->tests)
		test_parser_feed(k->tests, p->stream, p->bytes);
	if (k->findings)
		findings_parser_feed(k->findings, p->stream, p->bytes);
}

static void check_ended(struct check *k);

static void check_on_more(void *arg)
{
	struct check *k = arg;
	struct spool_piece p;

	for (;;) {
		switch (spool_cursor_next(k->cursor, 3, PIECE_MAX, &p)) {
		case SPOOL_PIECE:
			check_take(k, &p);
			break;
		case SPOOL_LOST:
			if (k->tests)
				test_parser_lost(k->tests);
			if (k->findings)
				findings_parser_lost(k->findings);
			break;
		case SPOOL_LATER:
			return;
		case SPOOL_END:
			check_ended(k);
			return;
		}
	}
}

/* Its end follows. */
static void check_on_cancel(void *data)
{
	struct check *k = data;

	if (k->job && job_exec(k->job))
		exec_kill(job_exec(k->job));
}

static void check_start(struct check *k, struct str line, const char *cwd, uint64_t timeout_ms)
{
	struct err e = ERR_INIT;
	const struct job_spec spec = {
		.command = line,
		.exec = { .shell = line, .cwd = str_of(cwd), .timeout_ms = timeout_ms },
		.keep = k->phase == CHECK_RUNS ? JOB_OUTPUT_DEFAULT : 0,
	};
	struct job *j = job_start(k->w.hs, &spec, &e);

	if (!j) {
		check_fail(k, &e);
		return;
	}
	k->job = job_ref(j);
	k->cursor = spool_cursor_new(job_output(j), 0, check_on_more, k, &e);
	if (!k->cursor) {
		check_fail(k, &e);
		return;
	}
	call_on_cancel(k->w.call, check_on_cancel, k);
	check_on_more(k);
}

/* ---- the report ---------------------------------------------------------------------------- */

static struct str check_text(struct check *k, const char *text, size_t n)
{
	struct err e;
	char *copy = arena_dup(call_arena(k->w.call), (struct str){ text, n }, &e);

	return copy ? (struct str){ copy, n } : STR_LIT("");
}

static void add_failures(struct check *k, const struct test_report *r, size_t from, size_t limit,
			 struct check_answer *a)
{
	struct arena *arena = call_arena(k->w.call);
	size_t left = r->n > from ? r->n - from : 0, n = left < limit ? left : limit;
	struct err e;
	struct check_failure *to = arena_array(arena, n, sizeof(*to), &e);

	for (size_t i = 0; to && i < n; i++) {
		const struct test_failure *f = &r->failures[from + i];
		autobuf struct buf id = BUF_INIT(TEST_ID_MAX + 2);

		if (test_id_text(f->id, &id, &e) < 0)
			id.n = 0;
		to[i] = (struct check_failure){
			.test = check_text(k, buf_str(&id).p, id.n),
			/* The report may go with its conversation before the answer leaves. */
			.file = check_text(k, f->file.p, f->file.n),
			.line = f->line,
			.message = check_text(k, f->message.p, f->message.n),
		};
	}
	a->failures.p = to;
	a->failures.n = to ? n : 0;
	a->more = r->failed - from - a->failures.n;
}

static void add_findings(struct check *k, const struct findings *f, struct check_answer *a)
{
	struct err e;
	struct check_finding *to = arena_array(call_arena(k->w.call), f->n, sizeof(*to), &e);

	for (size_t i = 0; to && i < f->n; i++)
		to[i] = (struct check_finding){
			.file = f->p[i].file,
			.line = f->p[i].line,
			.column = f->p[i].column,
			.severity = f->p[i].warning ? STR_LIT("warning") : STR_LIT("error"),
			.rule = f->p[i].rule,
			.message = f->p[i].text,
		};
	a->findings.p = to;
	a->findings.n = to ? f->n : 0;
	a->more = f->errors + f->warnings - a->findings.n;
}

static enum check_verdict verdict_of(const struct exec_result *result, const struct test_report *r,
				     const struct findings *f)
{
	static const enum check_verdict of_tests[] = {
		[TESTS_PASSED] = CHECK_PASSED,
		[TESTS_FAILED] = CHECK_FAILED,
		[TESTS_NONE] = CHECK_NO_TESTS,
		[TESTS_UNPARSED] = CHECK_UNPARSED,
	};
	static const enum check_verdict of_findings[] = {
		[FINDINGS_CLEAN] = CHECK_CLEAN,
		[FINDINGS_SOME] = CHECK_FINDINGS,
		[FINDINGS_UNPARSED] = CHECK_UNPARSED,
	};

	if (result->end == EXEC_TIMED_OUT)
		return CHECK_TIMED_OUT;
	if ((r && r->missing.n) || (f && f->missing.n))
		return CHECK_MISSING;
	if (r)
		return of_tests[test_report_verdict(r, result->exit_code)];
	if (f)
		return of_findings[findings_verdict(f, result->exit_code)];
	return result->exit_code == 0 ? CHECK_PASSED : CHECK_FAILED;
}

/* Whether the failures are those that the rerun began with: another run may have ended since. */
static bool check_is_current(const struct check *k, const struct shell_note *s)
{
	return k->of_report == s->reports && k->from == s->from;
}

/* A runner passes over names that it does not find, and says nothing. */
static uint64_t check_not_run(const struct check *k, const struct test_report *r)
{
	uint64_t ran = r->passed + r->failed;

	return k->kind == CHECK_FAILING && ran < k->different ? k->different - ran : 0;
}

/* The conversation keeps what can be rerun; the report goes there. */
static void check_remember(struct check *k, const struct test_report *r, enum check_verdict verdict)
{
	struct err e;
	struct shell_note *s = shell_note(&k->w, &e);
	bool again = k->kind == CHECK_FAILING;

	if (!s || (verdict != CHECK_PASSED && verdict != CHECK_FAILED))
		return;
	if (again && !check_is_current(k, s))
		return; /* it says nothing about what is remembered now */
	if (check_not_run(k, r))
		return; /* which of them ran is not known */
	/* A run of some failures: those that pass now are done, else they all stay. */
	if (again && k->rerun < s->report->failed - s->from) {
		s->from += verdict == CHECK_PASSED ? k->rerun : 0;
		return;
	}
	test_parser_free(s->last);
	s->last = take_ptr(k->tests);
	s->report = r;
	s->reports++;
	s->from = 0;
	s->project = k->project;
	snprintf(s->workspace, sizeof(s->workspace), "%.*s", STR_ARG(k->q->workspace));
}

/* Nothing that was printed is needed where the report says it all. */
static bool tells_all(enum check_verdict v, uint64_t lost)
{
	return !lost && (v == CHECK_PASSED || v == CHECK_FAILED || v == CHECK_CLEAN ||
			 v == CHECK_FINDINGS || v == CHECK_MISSING);
}

/* Those that there are, where there is no script of the name that was asked for. */
static struct str scripts_there(struct check *k)
{
	static const char mark[] = "#holt-scripts ";
	struct str said = buf_str(&k->raw.head);

	if (k->kind != CHECK_SCRIPT || !str_starts(said, mark))
		return STR_NONE;
	said = (struct str){ said.p + strlen(mark), said.n - strlen(mark) };
	while (said.n > 0 && said.p[said.n - 1] == '\n')
		said.n--;
	return check_text(k, said.p, said.n);
}

static void check_has_no_script(struct check *k, struct str there)
{
	struct err e;

	err_set(&e, ERR_INVALID, "there is no script \"%.*s\"; those that exist follow",
		STR_CUT(k->q->name, 64));
	call_about(k->w.call)->detail = there;
	check_fail(k, &e);
}

static void check_report(struct check *k, const struct job_info *i)
{
	const struct test_report *r = k->tests ? test_parser_end(k->tests) : NULL;
	const struct findings *f = k->findings ? findings_parser_end(k->findings) : NULL;
	autobuf struct buf raw = BUF_INIT(output_text_max(RAW_MAX));
	char project[PROJECT_DIR_MAX + 32];
	uint64_t elided;
	struct err e;
	struct check_answer a = {
		.verdict = verdict_of(&i->result, r, f),
		.has_exit_code = true,
		.exit_code = i->result.exit_code,
		.shell_id = check_text(k, i->id.p, i->id.n),
		.missing = r ? r->missing
			 : f ? f->missing
			     : STR_LIT(""),
		.lost = r ? r->lost
		      : f ? f->lost
			  : 0,
		.has_counts = r != NULL,
		.has_findings = f != NULL,
		.everything = k->command.everything,
		.output = STR_LIT(""),
		.hint = STR_LIT(""),
	};

	snprintf(project, sizeof(project), "%s in %s", project_kind_names[k->project.kind],
		 k->project.dir[0] ? k->project.dir : ".");
	a.project = check_text(k, project, strlen(project));
	if (a.missing.n)
		a.hint = str_of(program_hint(a.missing));
	if (r) {
		a.passed = r->passed;
		a.failed = r->failed;
		a.skipped = r->skipped;
		a.not_run = check_not_run(k, r);
		if (a.not_run && a.verdict == CHECK_PASSED)
			a.verdict = CHECK_FAILED;
		add_failures(k, r, 0, RERUN_DEFAULT, &a);
	}
	if (f) {
		a.errors = f->errors;
		a.warnings = f->warnings;
		add_findings(k, f, &a);
	}
	if ((!tells_all(a.verdict, a.lost) || k->kind == CHECK_SCRIPT) &&
	    output_text(&k->raw, &raw, &elided, &e) == 0)
		a.output = buf_str(&raw);
	if (r)
		check_remember(k, r, a.verdict);
	check_answer(k, &a);
}

/* ---- the phases ---------------------------------------------------------------------------- */

static int check_command(struct check *k, struct err *e)
{
	struct test_id ids[RERUN_MAX];
	struct shell_note *s;
	size_t left;

	switch (k->kind) {
	case CHECK_TESTS:
		return command_for(&k->project, k->package, TASK_TEST, &k->command, e);
	case CHECK_LINT:
		return command_for(&k->project, k->package, TASK_LINT, &k->command, e);
	case CHECK_TYPES:
		return command_for(&k->project, k->package, TASK_TYPECHECK, &k->command, e);
	case CHECK_SCRIPT:
		return command_script(&k->project, k->package, k->q->name, &k->command, e);
	case CHECK_FAILING:
		break;
	}
	s = shell_note(&k->w, e);
	if (!s)
		return -1;
	if (!check_is_current(k, s)) /* the failures may be another project's */
		return err_set(e, ERR_CONFLICT, "another test run has ended meanwhile");
	left = s->report->n - k->from;
	k->rerun = left < k->q->limit ? left : k->q->limit;
	for (size_t i = 0; i < k->rerun; i++) {
		size_t before = 0;

		ids[i] = s->report->failures[k->from + i].id;
		while (before < i && !test_id_eq(ids[before], ids[i]))
			before++;
		k->different += before == i;
	}
	return command_rerun(&k->project, k->package, ids, k->rerun, &k->command, e);
}

static void check_run_command(struct check *k)
{
	struct err e = ERR_INIT;

	k->phase = CHECK_RUNS;
	if (check_command(k, &e) < 0 || call_reserve(k->w.call, REPORT_MAX, &e) < 0) {
		check_fail(k, &e);
		return;
	}
	if (k->kind == CHECK_TESTS || k->kind == CHECK_FAILING)
		k->tests = test_parser_new(k->command.format, str_of(k->root), &e);
	else if (k->kind != CHECK_SCRIPT)
		k->findings = findings_parser_new(str_of(k->root), &e);
	if (!k->tests && !k->findings && k->kind != CHECK_SCRIPT)
		check_fail(k, &e);
	else
		check_start(k, buf_str(&k->command.line), k->root, k->q->timeout * 1000ull);
}

static void check_found(struct check *k)
{
	snprintf(k->root, sizeof(k->root), "%s%s%s", CODING_ROOT, k->project.dir[0] ? "/" : "",
		 k->project.dir);
	if (k->project.kind != PROJECT_NODE) {
		check_run_command(k);
		return;
	}
	k->phase = CHECK_READS_PACKAGE;
	k->text.n = 0;
	k->text.max = PACKAGE_BYTES_MAX;
	check_start(k, STR_LIT("head -c 1048577 package.json"), k->root, LOOK_TIMEOUT_MS);
}

/* The folder of a project as lists of projects have it: relative, and empty for the workspace. */
static struct str check_folder(struct str path)
{
	const size_t root = strlen(CODING_ROOT);

	if (!path.p || str_is(path, CODING_ROOT))
		return (struct str){ path.p, 0 };
	return str_starts(path, CODING_ROOT "/")
		     ? (struct str){ path.p + root + 1, path.n - root - 1 }
		     : path;
}

static void check_choose(struct check *k)
{
	struct err e = ERR_INIT;
	struct projects *all = malloc(sizeof(*all));
	const struct project *p = NULL;

	if (all) {
		projects_find(buf_str(&k->text), all);
		p = projects_choose(all, k->q->language, check_folder(k->q->path), &e);
	} else {
		err_set(&e, ERR_LIMIT, "out of memory");
	}
	if (p)
		k->project = *p;
	free(all);
	if (p)
		check_found(k);
	else
		check_fail(k, &e);
}

static void check_read_package(struct check *k)
{
	struct err e = ERR_INIT;

	k->document = json_parse(buf_str(&k->text), NULL, &e);
	if (k->document)
		k->package = arena_alloc(call_arena(k->w.call), sizeof(*k->package), &e);
	if (!k->package) {
		err_wrap(&e, "package.json");
		check_fail(k, &e);
		return;
	}
	package_read(json_root(k->document), k->package);
	check_run_command(k);
}

static void check_ended(struct check *k)
{
	struct job *j = k->job;
	struct job_info i;
	struct err e = ERR_INIT;

	job_info(j, &i);
	spool_cursor_close(take_ptr(k->cursor));
	call_on_cancel(k->w.call, NULL, NULL);
	if (call_cancelled(k->w.call))
		err_set(&e, ERR_CANCELLED, "the call was cancelled and its program killed");
	else if (!i.has_result && i.why)
		e = *i.why;
	else if (!i.has_result)
		err_set(&e, ERR_BUG, "a program has no end");
	if (e.code != ERR_NONE) {
		check_fail(k, &e);
		return;
	}
	if (k->phase == CHECK_RUNS) {
		struct str there = scripts_there(k);

		if (there.p && i.result.exit_code == 127)
			check_has_no_script(k, there);
		else
			check_report(k, &i);
		return;
	}
	job_unref(take_ptr(k->job));
	if (k->phase == CHECK_LOOKS)
		check_choose(k);
	else
		check_read_package(k);
}

static void check_begin(struct coding_work *w)
{
	check_start((struct check *)w, str_of(project_names_command), CODING_ROOT, LOOK_TIMEOUT_MS);
}

/* The last test run of the conversation in this workspace, with failures; else the call has failed.
 */
static struct shell_note *check_last(struct check *k)
{
	struct err e = ERR_INIT;
	struct shell_note *s = shell_note(&k->w, &e);

	if (s && !s->last)
		err_set(&e, ERR_INVALID, "there was no test run in this session yet: run_tests");
	else if (s && !str_is(k->q->workspace.p ? k->q->workspace : STR_LIT(""), s->workspace))
		err_set(&e, ERR_INVALID, "the last test run was in another workspace: run_tests");
	if (e.code == ERR_NONE)
		return s;
	check_fail(k, &e);
	return NULL;
}

static void check_begin_again(struct coding_work *w)
{
	struct check *k = (struct check *)w;
	struct shell_note *s = check_last(k);
	struct err e = ERR_INIT;

	if (!s)
		return;
	if (s->report->n == s->from) {
		err_set(&e, ERR_INVALID, "no test of the last run failed%s: run_tests",
			s->report->failed > s->from ? " that can be named" : "");
		check_fail(k, &e);
		return;
	}
	k->project = s->project;
	k->of_report = s->reports;
	k->from = s->from;
	check_found(k);
}

static void check_show(struct coding_work *w)
{
	struct check *k = (struct check *)w;
	struct shell_note *s = check_last(k);
	struct check_answer a = { .has_counts = true };

	if (!s)
		return;
	a.passed = s->report->passed;
	a.failed = s->report->failed - s->from;
	a.skipped = s->report->skipped;
	a.verdict = a.failed ? CHECK_FAILED : CHECK_PASSED;
	add_failures(k, s->report, s->from, k->q->limit, &a);
	check_answer(k, &a);
}

static void check_enter(struct call *c, const struct check_request *q, enum check_kind kind,
			void (*then)(struct coding_work *w))
{
	struct err e = ERR_INIT;
	struct check *k = arena_alloc(call_arena(c), sizeof(*k), &e);

	if (!k) {
		call_fail(c, &e);
		return;
	}
	k->q = q;
	k->kind = kind;
	k->text = BUF_INIT(NAMES_MAX);
	command_init(&k->command);
	output_init(&k->raw, RAW_MAX);
	coding_enter(&k->w, c, q->workspace, then);
}

static void test_run(struct call *c, const void *request)
{
	check_enter(c, request, CHECK_TESTS, check_begin);
}

static void lint_run(struct call *c, const void *request)
{
	check_enter(c, request, CHECK_LINT, check_begin);
}

static void types_run(struct call *c, const void *request)
{
	check_enter(c, request, CHECK_TYPES, check_begin);
}

static void script_run(struct call *c, const void *request)
{
	check_enter(c, request, CHECK_SCRIPT, check_begin);
}

static void retest_run(struct call *c, const void *request)
{
	check_enter(c, request, CHECK_FAILING, check_begin_again);
}

static void failures_run(struct call *c, const void *request)
{
	check_enter(c, request, CHECK_FAILING, check_show);
}

#define CHECK_OP(name_, action_, doc_, effect_, table_, run_)                                      \
	const struct op name_ = {                                                                  \
		.action = action_,                                                                 \
		.doc = doc_,                                                                       \
		.effect = effect_,                                                                 \
		.flags = (effect_) == OP_EXECUTE ? OP_COMMANDS : 0,                                \
		.request = &(table_),                                                              \
		.expand = coding_expand,                                                           \
		.path = coding_spell_path,                                                         \
		.result = &answer_table,                                                           \
		.run = run_,                                                                       \
	}
CHECK_OP(coding_test_op, "coding.test", "Runs the tests of a project.", OP_EXECUTE, test_table,
	 test_run);
CHECK_OP(coding_lint_op, "coding.lint", "Runs the linter of a project.", OP_EXECUTE, lint_table,
	 lint_run);
CHECK_OP(coding_typecheck_op, "coding.typecheck", "Checks a project's types, or compiles it.",
	 OP_EXECUTE, lint_table, types_run);
CHECK_OP(coding_script_op, "coding.script", "Runs a script of a project by its name.", OP_EXECUTE,
	 script_table, script_run);
CHECK_OP(coding_retest_op, "coding.retest", "Runs the tests that failed again.", OP_EXECUTE,
	 retest_table, retest_run);
CHECK_OP(coding_failures_op, "coding.failures", "The failures of the last test run.", OP_READ,
	 failures_table, failures_run);
