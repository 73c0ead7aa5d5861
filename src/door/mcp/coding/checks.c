/* run_tests, run_lint, run_typecheck, run_script, run_failing_tests and last_test_failures. */
#include <inttypes.h>

#include "door/mcp/tools.h"
#include "op/coding/shell.h"

enum {
	SHOWN_MAX = 24 << 10, /* bytes of failures or findings */
	MESSAGE_SHORT = 700, /* of a failure, among others */
};

static int add_verdict(const struct check_answer *a, struct buf *to, struct err *e)
{
	switch (a->verdict) {
	case CHECK_PASSED:
		return buf_addf(to, e, "passed");
	case CHECK_FAILED:
		return buf_addf(to, e, "FAILED");
	case CHECK_NO_TESTS:
		return buf_addf(to, e, "no test ran");
	case CHECK_CLEAN:
		return buf_addf(to, e, "0 findings");
	case CHECK_FINDINGS:
		return buf_addf(to, e, "%" PRIu64 " findings (%" PRIu64 " errors)",
				a->errors + a->warnings, a->errors);
	case CHECK_TIMED_OUT:
		return buf_addf(to, e, "timed out, and killed with all that it started");
	case CHECK_MISSING:
		return buf_addf(to, e, "%.*s is not installed. %.*s", STR_ARG(a->missing),
				STR_ARG(a->hint));
	case CHECK_UNPARSED:
	case CHECK_VERDICTS:
		break;
	}
	return buf_addf(to, e, "unparsed, exit %d: the output has no report that is known",
			a->exit_code);
}

static int add_failures(const struct check_answer *a, struct buf *to, uint64_t *hidden,
			struct err *e)
{
	for (size_t i = 0; i < a->failures.n; i++) {
		const struct check_failure *f = &a->failures.p[i];
		size_t n = a->failures.n > 1 && f->message.n > MESSAGE_SHORT ? MESSAGE_SHORT
									     : f->message.n;

		if (to->n > SHOWN_MAX) {
			*hidden += a->failures.n - i;
			return 0;
		}
		if (buf_addf(to, e, "\n%zu. %.*s\n", i + 1, STR_ARG(f->test)) < 0)
			return -1;
		if (f->file.n && buf_addf(to, e, "%.*s:%u\n", STR_ARG(f->file), f->line) < 0)
			return -1;
		if (n > 0 && (buf_add(to, f->message.p, n, e) < 0 ||
			      buf_addf(to, e, "%s\n", n < f->message.n ? " …" : "") < 0))
			return -1;
	}
	return 0;
}

static int add_findings(const struct check_answer *a, struct buf *to, uint64_t *hidden,
			struct err *e)
{
	for (size_t i = 0; i < a->findings.n; i++) {
		const struct check_finding *f = &a->findings.p[i];

		if (to->n > SHOWN_MAX) {
			*hidden += a->findings.n - i;
			return 0;
		}
		if (buf_addf(to, e, "%s%.*s:%u:%u: %.*s: %.*s", i ? "" : "\n", STR_ARG(f->file),
			     f->line, f->column, STR_ARG(f->severity), STR_ARG(f->message)) < 0 ||
		    (f->rule.n && buf_addf(to, e, " [%.*s]", STR_ARG(f->rule)) < 0) ||
		    buf_add(to, "\n", 1, e) < 0)
			return -1;
	}
	return 0;
}

static int check_text(const void *result, struct buf *to, struct err *e)
{
	const struct check_answer *a = result;
	uint64_t hidden = a->more;

	if (a->project.n && buf_addf(to, e, "%.*s: ", STR_ARG(a->project)) < 0)
		return -1;
	if (add_verdict(a, to, e) < 0)
		return -1;
	if (a->has_counts && a->verdict != CHECK_MISSING &&
	    buf_addf(to, e, "; %" PRIu64 " passed, %" PRIu64 " failed, %" PRIu64 " skipped",
		     a->passed, a->failed, a->skipped) < 0)
		return -1;
	if (a->not_run && buf_addf(to, e,
				   "; %" PRIu64 " did not run again (renamed, skipped, or within "
				   "another): they stay with the failures, run_tests runs all",
				   a->not_run) < 0)
		return -1;
	if (a->has_exit_code && buf_addf(to, e, "; exit: %d", a->exit_code) < 0)
		return -1;
	if (a->everything && buf_addf(to, e, "; its runner can't be told which, so all ran") < 0)
		return -1;
	if (buf_add(to, "\n", 1, e) < 0 || add_failures(a, to, &hidden, e) < 0 ||
	    add_findings(a, to, &hidden, e) < 0)
		return -1;
	if (hidden && buf_addf(to, e, "\n%" PRIu64 " more are not shown.\n", hidden) < 0)
		return -1;
	if (a->lost && buf_addf(to, e,
				"\nParts of the report could not be read, so this may not "
				"be all.\n") < 0)
		return -1;
	if (!a->output.n)
		return 0;
	return buf_addf(to, e, "\n%.*s", STR_ARG(a->output));
}

static int check_note(const void *result, struct buf *to, struct err *e)
{
	const struct check_answer *a = result;

	if (!a->shell_id.n || a->verdict == CHECK_CLEAN || a->verdict == CHECK_MISSING)
		return 0;
	return buf_addf(to, e, "All of the output: BashOutput with shell_id %.*s.",
			STR_ARG(a->shell_id));
}

#define A struct check_answer
static const struct field facts_fields[] = {
	FIELD_ENUM(A, verdict, check_verdict_names, .doc = "Outcome."),
	FIELD(A, exit_code, .has = FIELD_HAS(A, has_exit_code), .doc = "Exit code of the command."),
	FIELD(A, passed, .has = FIELD_HAS(A, has_counts), .doc = "Tests that passed."),
	FIELD(A, failed, .has = FIELD_HAS(A, has_counts), .doc = "Tests that failed."),
	FIELD(A, skipped, .has = FIELD_HAS(A, has_counts), .doc = "Tests that were skipped."),
	FIELD(A, not_run, .doc = "Failed tests that did not run again."),
	FIELD(A, errors, .has = FIELD_HAS(A, has_findings), .doc = "Findings that are errors."),
	FIELD(A, warnings, .has = FIELD_HAS(A, has_findings), .doc = "Findings that are warnings."),
	FIELD(A, lost, .doc = "Pieces of the report that could not be read."),
	FIELD(A, missing, .doc = "The program that is missing."),
	FIELD(A, shell_id, .doc = "Shell id for BashOutput."),
};
#undef A
static const struct field_table facts = FIELD_TABLE(struct check_answer, facts_fields);

#define CHECK_TOOL(var, op_, name_, title_, doc_)                                                  \
	const struct tool var = {                                                                  \
		.op = &(op_),                                                                      \
		.name = name_,                                                                     \
		.title = title_,                                                                   \
		.doc = doc_,                                                                       \
		.text = check_text,                                                                \
		.note = check_note,                                                                \
		.facts = &facts,                                                                   \
	}
CHECK_TOOL(coding_test_tool, coding_test_op, "run_tests", "Run the tests",
	   "Runs the tests of the project (Go, Rust, Node, Python, C, or script/test) and shows "
	   "those that failed.");
CHECK_TOOL(coding_lint_tool, coding_lint_op, "run_lint", "Run the linter",
	   "Runs the project's linter and shows what it found.");
CHECK_TOOL(coding_typecheck_tool, coding_typecheck_op, "run_typecheck", "Check types",
	   "Runs the project's type checker, or compiles it, and shows what it found.");
CHECK_TOOL(coding_script_tool, coding_script_op, "run_script", "Run a script",
	   "Runs a script of the project by its name; an unknown name shows those that exist.");
CHECK_TOOL(coding_retest_tool, coding_retest_op, "run_failing_tests", "Run failed tests again",
	   "Runs only those tests again that failed in the last run.");
CHECK_TOOL(coding_failures_tool, coding_failures_op, "last_test_failures", "Show failed tests",
	   "Shows the failures of the last test run, without running anything.");
