#pragma once
/*
 * sandbox.exec: a command in a sandbox, as a job (hub/sandbox/job.h). In the background it is
 * answered at once. Else it is answered at the command's end: with what it printed, or without that
 * where the door takes a stream and was told it as it came. A command that its timeout ended is an
 * answer like any other; a door may show it as a failure.
 */
#include "hub/core/report.h"
#include "op/job.h"
#include "op/ops.h"
#include "op/secret.h"

enum {
	EXEC_TIMEOUT_MAX = 86400, /* seconds */
	EXEC_TIMEOUT_DEFAULT = 30,
	EXEC_OUTPUT_MAX = 8 << 20, /* bytes of each stream in an answer */
	EXEC_SIDE_MAX = 9999, /* columns or rows of a terminal */
	EXEC_TERM_MAX = 64,
};

struct exec_tty {
	uint32_t cols, rows;
	struct str term;
};

struct exec_request {
	struct str sandbox, command;
	bool has_args;
	struct field_strs args;
	struct field_map env;
	struct secret_refs secrets;
	struct str cwd;
	struct exec_how how;
	uint32_t timeout_seconds;
	struct str input, input_base64; /* "stdin": normalized, only the first, as bytes */
	bool has_base64;
	uint32_t max_output_bytes;
	bool background;
	struct str exec_id;
	bool stdin_open, has_tty;
	struct exec_tty tty;
	uint64_t keep_bytes;
};

/* Of a text and, instead of it, base64: the bytes of either, in the arena. The members are name and
 * name_base64. */
int exec_decode_input(struct str *bytes, struct str *base64, bool *has_base64, const char *name,
		      struct arena *a, struct err *e) MUST_USE;

/* What its client may say while it runs (call_hear()), where it takes a stream. */
struct exec_word {
	enum { EXEC_WORD_INPUT, EXEC_WORD_INPUT_END, EXEC_WORD_RESIZE, EXEC_WORD_SIGNAL } kind;
	struct str bytes;
	uint32_t cols, rows;
	int32_t signal;
};

/* A size or a signal. */
int exec_obey(struct exec *x, const struct exec_word *w, struct err *e) MUST_USE;

/* What it tells: output as it comes, and last its end. */
struct exec_event {
	bool is_end;
	enum exec_stream stream;
	struct str bytes;
	/* Of the end. 124: its timeout; -1: it never ran, and error says why. */
	int32_t exit_code;
	double exec_time_ms;
	bool timed_out;
	struct str error;
	struct str dimension; /* the limit that it ran into; or STR_NONE */
	enum err_code failed; /* why it never ran or was lost; or ERR_NONE */
};
extern const struct field_table exec_event_table;
/* The end of one with a result, or of one with err. Borrows err. */
void exec_end_event(const struct exec_result *result, const struct err *err,
		    struct exec_event *ret);

/* report is first, so that a door can show that alone. */
struct exec_answer {
	struct report report; /* in the background: of it its id alone */
	bool has_job;
	struct job_view job; /* in the background */
};
extern const struct field_table exec_answer_table;

/* For an operation that runs a command as a part of its call: the request is as normalized, and
 * stays until the call ends. on_done: the report, borrowed until it returns, or err. */
typedef void (*exec_done_fn)(void *data, const struct report *report, const struct err *err);
void exec_for(struct call *c, const struct exec_request *q, exec_done_fn on_done, void *data);
