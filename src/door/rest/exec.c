/* POST /v1/exec, which answers when the command has ended; /v1/exec/stream and /v1/run_code/stream,
 * which stream. */
#include "door/rest/exec_end.h"

#include "base/failure.h"

enum { BODY_MAX = 8 << 20 }; /* standard input among it */

#define RENAMED                                                                                    \
	{ "cwd", .as = "working_dir" },                                                            \
	{                                                                                          \
		"timeout_seconds", .as = "timeout"                                                 \
	}

#define FOREGROUND                                                                                 \
	{ "max_output_bytes", .in = OP_HIDDEN }, { "background", .in = OP_HIDDEN },                \
		{ "exec_id", .in = OP_HIDDEN }, { "stdin_open", .in = OP_HIDDEN },                 \
		{ "tty", .in = OP_HIDDEN },                                                        \
	{                                                                                          \
		"keep_bytes", .in = OP_HIDDEN                                                      \
	}

/* ---- answered at its end, or at once ------------------------------------------------------- */

/* One object for both, so that generated clients have one type: what it has in the background only,
 * and what only at its end, is absent else. */
#define A struct exec_answer
#define AT_END .has = FIELD_HAS(A, report.has_exit_code)
#define BACKGROUND .has = FIELD_HAS(A, has_job)
static const struct field answer_fields[] = {
	FIELD_NAMED(A, report.exec, "exec_id", .flags = FIELD_REQUIRED,
		    .doc = "Id of the exec, by which more of its output can be read."),
	FIELD_NAMED(
		A, report.exit_code, "exit_code", AT_END,
		.doc = "Exit code of the command: 128 plus the signal's number if a signal ended "
		       "it, 124 after its timeout. Absent in the background, as the output is."),
	FIELD_NAMED(
		A, report.out, "stdout", AT_END,
		.doc = "Standard output as text. Invalid UTF-8 is replaced; stdout_base64 has the "
		       "bytes then."),
	FIELD_NAMED(
		A, report.err, "stderr", AT_END,
		.doc = "Standard error as text. Invalid UTF-8 is replaced; stderr_base64 has the "
		       "bytes then."),
	FIELD_NAMED(A, report.wall_ms, "exec_time_ms", AT_END, .doc = "Duration in milliseconds."),
	FIELD_NAMED(A, report.signal, "signal", .has = FIELD_HAS(A, report.has_signal),
		    .doc = "Number of the signal that ended the command."),
	FIELD_NAMED(A, report.hit_memory, "hit_memory", AT_END,
		    .doc = "Whether a process of the command was killed because of the sandbox's "
			   "memory limit."),
	FIELD_NAMED(A, report.hit_pids, "hit_pids", AT_END,
		    .doc = "Whether the command could not start a process because of the sandbox's "
			   "process limit."),
	FIELD_NAMED(A, report.hit_disk, "hit_disk", AT_END,
		    .doc = "Whether the sandbox's disk was full when the command ended."),
	FIELD_NAMED(A, report.out_base64, "stdout_base64", .flags = FIELD_BYTES,
		    .doc = "Bytes of stdout, if they are not UTF-8."),
	FIELD_NAMED(A, report.err_base64, "stderr_base64", .flags = FIELD_BYTES,
		    .doc = "Bytes of stderr, if they are not UTF-8."),
	FIELD_NAMED(A, report.out_elided, "stdout_elided_bytes",
		    .has = FIELD_HAS(A, report.has_out_elided),
		    .doc = "Number of bytes left out in the middle of stdout."),
	FIELD_NAMED(A, report.err_elided, "stderr_elided_bytes",
		    .has = FIELD_HAS(A, report.has_err_elided),
		    .doc = "Number of bytes left out in the middle of stderr."),
	FIELD_NAMED(A, report.next_offset, "elided_offset", .has = FIELD_HAS(A, report.has_next),
		    .doc = "Offset of the first byte left out, for execs.output."),
	FIELD_NAMED(A, job.sandbox, "sandbox", BACKGROUND,
		    .doc = "In the background: id of the sandbox."),
	FIELD_NAMED(A, job.command, "command", BACKGROUND,
		    .doc = "In the background: the command, at most its first 512 bytes."),
	FIELD_NAMED_ENUM(
		A, job.state, "state", job_state_names, BACKGROUND,
		.doc = "In the background, like all members below: running, as in execs.get."),
	FIELD_NAMED(A, job.background, "background", BACKGROUND, .doc = "Always true."),
	FIELD_NAMED(A, job.tty, "tty", BACKGROUND, .doc = "Whether it has a terminal."),
	FIELD_NAMED(A, job.stdin_open, "stdin_open", BACKGROUND,
		    .doc = "Whether it accepts input."),
	FIELD_NAMED(A, job.started_at, "started_at", BACKGROUND, .doc = "Start time, RFC 3339."),
	FIELD_NAMED(A, job.first_offset, "first_offset", BACKGROUND,
		    .doc = "Offset of the oldest byte of output that is still kept."),
	FIELD_NAMED(A, job.next_offset, "next_offset", BACKGROUND,
		    .doc = "Offset after the newest byte of output."),
	FIELD_NAMED(A, job.stdout_bytes, "stdout_bytes", BACKGROUND,
		    .doc = "Number of bytes printed on stdout."),
	FIELD_NAMED(A, job.stderr_bytes, "stderr_bytes", BACKGROUND,
		    .doc = "Number of bytes printed on stderr."),
};
#undef BACKGROUND
#undef AT_END
#undef A
static const struct field_table shown_table = FIELD_TABLE(struct exec_answer, answer_fields);

static const struct op_member exec_members[] = { RENAMED };

/* ---- as it goes ---------------------------------------------------------------------------- */

enum frame_kind { FRAME_CHUNK, FRAME_EXIT };
static const char *const kind_names[] = { [FRAME_CHUNK] = "chunk", [FRAME_EXIT] = "exit" };

struct frame {
	enum frame_kind kind;
	struct str stream, data, error, code, dimension;
	bool is_exit, fails;
	enum err_failure failure;
	int32_t exit_code;
	double exec_time_ms;
};
static const struct field frame_fields[] = {
	FIELD_ENUM(struct frame, kind, kind_names, .flags = FIELD_REQUIRED,
		   .doc = "Kind of the line; exit is the last one."),
	FIELD(struct frame, stream, .doc = "Stream of a chunk: stdout or stderr."),
	FIELD(struct frame, data, .flags = FIELD_BYTES, .doc = "Bytes of a chunk, in base64."),
	FIELD(struct frame, exit_code, .has = FIELD_HAS(struct frame, is_exit),
	      .doc = "In an exit: exit code of the command; 124 after its timeout, -1 if it did "
		     "not start."),
	FIELD(struct frame, exec_time_ms, .has = FIELD_HAS(struct frame, is_exit),
	      .doc = "In an exit: duration in milliseconds."),
	FIELD(struct frame, error,
	      .doc = "In an exit: what went wrong, if the command did not end normally."),
	FIELD(struct frame, code, .doc = "In an exit: the error code that exec would answer."),
	FIELD_ENUM(struct frame, failure, err_failure_names, .has = FIELD_HAS(struct frame, fails),
		   .doc = "In an exit: the class of that error."),
	FIELD(struct frame, dimension,
	      .doc = "In an exit: the limit that the command reached: memory, pids, disk or wall."),
};
static const struct field_table frame_table = FIELD_TABLE(struct frame, frame_fields);

static void exec_tell(struct call *c, const void *event)
{
	const struct exec_event *ev = event;
	const struct exit_view end = exit_view(ev);
	const struct frame chunk = { .kind = FRAME_CHUNK,
				     .stream = str_of(ev->stream == EXEC_STDOUT ? "stdout"
										: "stderr"),
				     .data = ev->bytes };
	const struct frame last = { .kind = FRAME_EXIT,
				    .is_exit = true,
				    .exit_code = end.exit_code,
				    .exec_time_ms = end.exec_time_ms,
				    .error = end.error,
				    .code = end.code,
				    .fails = end.fails,
				    .failure = end.failure,
				    .dimension = end.dimension };

	exchange_write(c, &frame_table, ev->is_end ? &last : &chunk);
}

static const struct op_member stream_members[] = { RENAMED, FOREGROUND };

/* ---- code ---------------------------------------------------------------------------------- */

enum { CODE_TIMEOUT_S = 60 };

enum language { LANGUAGE_PYTHON, LANGUAGE_BASH, LANGUAGE_JAVASCRIPT };
static const char *const language_names[] = { "python", "bash", "javascript" };
static const struct {
	struct str program, option;
} interpreters[] = {
	[LANGUAGE_PYTHON] = { STR_LIT("python3"), STR_LIT("-c") },
	[LANGUAGE_BASH] = { STR_LIT("bash"), STR_LIT("-c") },
	[LANGUAGE_JAVASCRIPT] = { STR_LIT("node"), STR_LIT("-e") },
};
static_assert(ARRAY_LEN(interpreters) == ARRAY_LEN(language_names), "a program for each language");

struct code_body {
	struct str sandbox, code;
	enum language language;
	uint32_t timeout;
};
static const struct field code_fields[] = {
	API_SANDBOX_ROW(struct code_body),
	FIELD(struct code_body, code, .flags = FIELD_REQUIRED, .min = 1, .max = EXEC_BYTES_MAX,
	      .doc = "Source text of the program."),
	FIELD_ENUM(struct code_body, language, language_names, .def = DEFAULT_ENUM(LANGUAGE_PYTHON),
		   .doc = "Language of the program. The template must have its interpreter."),
	FIELD(struct code_body, timeout,
	      .doc = "Time limit in seconds, at most 86400; 0 means 60. Then the program and its "
		     "descendants are killed."),
};
static const struct field_table code_body = FIELD_TABLE(struct code_body, code_fields);

static int read_code(struct call *c, void *request, struct err *e)
{
	struct exec_request *q = request;
	struct str *words = arena_array(call_arena(c), 2, sizeof(*words), e);
	struct code_body b;

	if (!words)
		return -1;
	if (field_decode(&code_body, exchange_body(c), call_arena(c), &b, e) < 0)
		return err_wrap(e, "body");
	words[0] = interpreters[b.language].option;
	words[1] = b.code;
	q->sandbox = b.sandbox;
	q->command = interpreters[b.language].program;
	q->has_args = true;
	q->args = (struct field_strs){ words, 2 };
	q->timeout_seconds = b.timeout ? b.timeout : CODE_TIMEOUT_S;
	return 0;
}

#define MAY (API_MAY_SANDBOX | API_MAY(EXEC_FAILED) | API_MAY(TIMEOUT_TOO_LARGE))
#define STREAM                                                                                     \
	.op = &sandbox_exec_op, .projected = true, .answer = &frame_table, .tell = exec_tell,      \
	.show = exec_show, .method = HTTP_POST, .shape = API_LINES,                                \
	.errors = MAY | API_MAY(TOO_MANY_STREAMS)

static const struct api_route rows[] = {
	{ .id = "exec",
	  .op = &sandbox_exec_op,
	  .projected = true,
	  .members = OP_MEMBERS(exec_members),
	  .answer = &shown_table,
	  .failed = &shown_table,
	  .show = exec_show,
	  .method = HTTP_POST,
	  .path = "/v1/exec",
	  .body_max = BODY_MAX,
	  .errors = MAY | API_MAY(EXEC_TIMEOUT) },
	{ .id = "exec.stream",
	  .doc = "Runs a command in a sandbox and streams its output. A slow reader blocks the "
		 "command; a disconnect ends it.",
	  .members = OP_MEMBERS(stream_members),
	  .path = "/v1/exec/stream",
	  .body_max = BODY_MAX,
	  STREAM },
	{ .id = "run_code.stream",
	  .doc = "Runs a program's source text in a sandbox and streams its output, as exec.stream "
		 "does.",
	  .body = &code_body,
	  .read = read_code,
	  .path = "/v1/run_code/stream",
	  STREAM },
};
const struct api_resource api_exec = API_RESOURCE(rows);
