#pragma once
/*
 * The operations of the tool set "coding" that run programs. Each program is a job of the session's
 * sandbox (hub/sandbox/job.h), so that others see it, and what it printed stays readable by offset.
 * A shell is such a job by its id.
 *
 *	coding.bash, .output, .kill	sandbox.exec, exec.output and exec.kill, in the session
 *	coding.test, .lint, …		find the project, run its command, read all that it prints
 *	coding.watch, .events		a background job, and what happened in its standard error
 *
 * A conversation remembers its last test run and its watches (coding_note()).
 */
#include "coding/command.h"
#include "coding/findings.h"
#include "op/coding/session.h"
#include "op/exec.h"
#include "op/exec_output.h"

/* ---- tests, lints, type checks, scripts ---------------------------------------------------- */

enum check_verdict {
	CHECK_PASSED, /* tests; a script that ended with 0 */
	CHECK_FAILED,
	CHECK_NO_TESTS,
	CHECK_CLEAN, /* a linter or type checker found nothing */
	CHECK_FINDINGS,
	CHECK_UNPARSED, /* the exit status has a reason that no report tells */
	CHECK_TIMED_OUT,
	CHECK_MISSING, /* a program that the command needs */
	CHECK_VERDICTS
};
extern const char *const check_verdict_names[CHECK_VERDICTS];

struct check_failure {
	struct str test, file;
	uint32_t line; /* 0: unknown */
	struct str message;
};
struct check_finding {
	struct str file;
	uint32_t line, column; /* 0: unknown */
	struct str severity, rule, message;
};
struct check_answer {
	enum check_verdict verdict;
	struct str project; /* kind and folder */
	bool has_exit_code;
	int32_t exit_code;
	bool has_counts; /* of tests */
	uint64_t passed, failed, skipped;
	bool has_findings;
	uint64_t errors, warnings;
	struct {
		const struct check_failure *p;
		size_t n;
	} failures;
	struct {
		const struct check_finding *p;
		size_t n;
	} findings;
	uint64_t more; /* failures or findings that are not in the list */
	uint64_t lost; /* pieces of the report that could not be read */
	struct str missing, hint;
	struct str
		output; /* head and tail of what was printed, where the report does not tell all */
	struct str shell_id; /* by which all of the output can be read */
	bool everything; /* a rerun could not be told which tests */
	uint64_t not_run; /* tests that were to run again and did not */
};

/* ---- watches ------------------------------------------------------------------------------- */

struct watch_started {
	struct str shell_id;
};
struct watch_event {
	uint64_t id;
	struct str at, kind; /* by RFC 3339; started, error, idle_timeout, exited, note */
	struct str pattern; /* of an error */
	struct str text;
};
struct watch_events {
	struct str shell_id, state;
	struct {
		const struct watch_event *p;
		size_t n;
	} events;
	uint64_t dropped; /* events that are not kept any more */
	uint64_t next_event_id;
};

/* ---- what a conversation remembers --------------------------------------------------------- */

struct watch;
struct shell_note {
	struct coding_note note; /* first: freed by this */
	struct watch *watches;
	/* The last test run; last NULL: none. Owned. */
	struct test_parser *last;
	const struct test_report *report; /* borrowed from it */
	uint64_t reports; /* how many there were: tells them apart */
	size_t from; /* failures before this were rerun and have passed; at most report->n */
	struct project project;
	char workspace[CODING_NAME_MAX + 1];
};
/* NULL without memory. */
struct shell_note *shell_note(struct coding_work *w, struct err *e);
/* Frees all of them, now or once the loop has closed their timers; NULL-safe. */
void watches_free(struct watch *first);

/* ---- secrets ------------------------------------------------------------------------------- */

struct secret_names {
	struct field_strs secrets;
};
