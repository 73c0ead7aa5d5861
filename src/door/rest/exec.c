/* POST /v1/exec, which answers when the command has ended, and /v1/exec/stream and /v1/run_code/stream, which tell as it
 * goes. */
#include "door/rest/exec_end.h"

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

static const struct field answer_fields[] = {
	FIELD(struct report, exit_code, .flags = FIELD_REQUIRED,
	      .doc = "Of the command; 128 and its number where a signal ended it."),
	FIELD_NAMED(struct report, out, "stdout", .flags = FIELD_REQUIRED,
		    .doc = "As text: what is not UTF-8 is replaced, see stdout_base64."),
	FIELD_NAMED(struct report, err, "stderr", .flags = FIELD_REQUIRED, .doc = "Likewise."),
	FIELD_NAMED(struct report, wall_ms, "exec_time_ms", .flags = FIELD_REQUIRED,
		    .doc = "How long it ran."),
	FIELD(struct report, signal, .has = FIELD_HAS(struct report, has_signal),
	      .doc = "The signal that ended it."),
	FIELD(struct report, hit_memory, .flags = FIELD_REQUIRED,
	      .doc = "A process of it was killed for the sandbox's memory limit."),
	FIELD(struct report, hit_pids, .flags = FIELD_REQUIRED,
	      .doc = "It could not start a process for the sandbox's limit of them."),
	FIELD(struct report, hit_disk, .flags = FIELD_REQUIRED,
	      .doc = "The sandbox's disk was full when it ended."),
	FIELD_NAMED(struct report, out_base64, "stdout_base64", .flags = FIELD_BYTES,
		    .doc = "The bytes of stdout, where they are not UTF-8."),
	FIELD_NAMED(struct report, err_base64, "stderr_base64", .flags = FIELD_BYTES,
		    .doc = "The bytes of stderr, where they are not UTF-8."),
	FIELD_NAMED(struct report, out_elided, "stdout_elided_bytes",
		    .has = FIELD_HAS(struct report, has_out_elided),
		    .doc = "How much of the middle of stdout is left out."),
	FIELD_NAMED(struct report, err_elided, "stderr_elided_bytes",
		    .has = FIELD_HAS(struct report, has_err_elided),
		    .doc = "How much of the middle of stderr is left out."),
};
static const struct field_table shown_table = FIELD_TABLE(struct report, answer_fields);

static const void *show(struct call *c, const void *result, const struct field_table **t,
			struct err *e)
{
	const struct exec_answer *a = exec_show(c, result, t, e);

	if (!a)
		return NULL;
	*t = a->has_job ? &job_view_table : &shown_table;
	return a->has_job ? (const void *)&a->job : &a->report;
}

static const struct op_member exec_members[] = { RENAMED };

/* ---- as it goes ---------------------------------------------------------------------------- */

enum frame_kind { FRAME_CHUNK, FRAME_EXIT };
static const char *const kind_names[] = { [FRAME_CHUNK] = "chunk", [FRAME_EXIT] = "exit" };

struct frame {
	enum frame_kind kind;
	struct str stream, data, error, code, dimension;
	bool is_exit;
	int32_t exit_code;
	double exec_time_ms;
};
static const struct field frame_fields[] = {
	FIELD_ENUM(struct frame, kind, kind_names, .flags = FIELD_REQUIRED,
		   .doc = "exit is the last."),
	FIELD(struct frame, stream, .doc = "Of a chunk: stdout or stderr."),
	FIELD(struct frame, data, .flags = FIELD_BYTES, .doc = "Of a chunk: its bytes in base64."),
	FIELD(struct frame, exit_code, .has = FIELD_HAS(struct frame, is_exit),
	      .doc = "Of the command; 124 where its timeout ended it, -1 where it never ran."),
	FIELD(struct frame, exec_time_ms, .has = FIELD_HAS(struct frame, is_exit),
	      .doc = "How long it ran."),
	FIELD(struct frame, error, .doc = "Of an exit: what went wrong, if it was no plain end."),
	FIELD(struct frame, code,
	      .doc = "Of an exit: the code that exec fails with then, of the table of errors."),
	FIELD(struct frame, dimension,
	      .doc = "Of an exit: the limit that it ran into: memory, pids, disk or wall."),
};
static const struct field_table frame_table = FIELD_TABLE(struct frame, frame_fields);

static void tell(struct call *c, const void *event)
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
	      .doc = "The program's text."),
	FIELD_ENUM(struct code_body, language, language_names, .def = DEFAULT_ENUM(LANGUAGE_PYTHON),
		   .doc = "What it is written in; the template must have what runs it."),
	FIELD(struct code_body, timeout,
	      .doc = "Seconds, at most 86400; then it is killed with all its descendants. 0: 60."),
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
	.op = &sandbox_exec_op, .projected = true, .answer = &frame_table, .tell = tell,           \
	.show = exec_show, .method = HTTP_POST, .shape = API_LINES,                                \
	.errors = MAY | API_MAY(TOO_MANY_STREAMS)

static const struct api_route rows[] = {
	{ .id = "exec",
	  .op = &sandbox_exec_op,
	  .projected = true,
	  .members = OP_MEMBERS(exec_members),
	  .answer = &shown_table,
	  .page = &job_view_table,
	  .show = show,
	  .method = HTTP_POST,
	  .path = "/v1/exec",
	  .body_max = BODY_MAX,
	  .errors = MAY | API_MAY(EXEC_TIMEOUT) },
	{ .id = "exec.stream",
	  .doc = "Runs a command in a sandbox, and tells what it prints as it comes. Who "
		 "reads slowly "
		 "holds the command; who goes away ends it.",
	  .members = OP_MEMBERS(stream_members),
	  .path = "/v1/exec/stream",
	  .body_max = BODY_MAX,
	  STREAM },
	{ .id = "run_code.stream",
	  .doc = "Runs a program's text in a sandbox, and tells what it prints as "
		 "exec.stream does.",
	  .body = &code_body,
	  .read = read_code,
	  .path = "/v1/run_code/stream",
	  STREAM },
};
const struct api_resource api_exec = API_RESOURCE(rows);
