/* POST /v1/exec, which answers when the command has ended, and /v1/exec/stream and /v1/run_code/stream, which tell as it
 * goes. */
#include "door/rest/jobs.h"
#include "door/http/talk.h"
#include "base/base64.h"

enum {
	OUTPUT_MAX = 8 << 20,
	OUTPUT_DEFAULT = 1 << 20,
	OUTPUT_LEAST = 1024,
	BODY_MAX = 8 << 20, /* standard input among it */
	CHUNK_MAX = 4 << 20, /* of a stream, in base64 */
};

/* ---- what is taken ------------------------------------------------------------------------- */

struct exec_body {
	struct str sandbox, command, working_dir, input;
	bool has_args;
	struct field_strs args;
	struct field_map env;
	uint32_t timeout, max_output_bytes;
	bool background, stdin_open, has_tty;
	struct talk_tty tty;
	struct str exec_id;
	uint64_t keep_bytes;
};

#define ROWS                                                                                       \
	API_SANDBOX_ROW(struct exec_body),                                                         \
		FIELD(struct exec_body, command, .flags = FIELD_REQUIRED, .min = 1,                \
		      .max = EXEC_BYTES_MAX,                                                       \
		      .doc = "Line for the shell; with args, the program to run."),                \
		FIELD(struct exec_body, args, .max = EXEC_ARGS_MAX - 1,                            \
		      .has = FIELD_HAS(struct exec_body, has_args),                                \
		      .doc = "Runs command as a program with these arguments, without a shell."),  \
		FIELD(struct exec_body, working_dir, .min = 1, .max = API_PATH_MAX,                \
		      .doc = "Directory to start in; the sandbox's if absent."),                   \
		FIELD(struct exec_body, env, .max = API_ENV_MAX,                                   \
		      .doc = "Environment variables, over those of the sandbox."),                 \
		FIELD(struct exec_body, timeout,                                                   \
		      .doc = "Seconds, at most 86400; then it is killed with all its "             \
			     "descendants. 0: 30, or none in the background."),                    \
		FIELD_NAMED(struct exec_body, input, "stdin", .flags = FIELD_NUL_OK,               \
			    .doc = "Text for its standard input, which is empty if absent.")

static const struct field exec_fields[] = {
	ROWS,
	FIELD(struct exec_body, max_output_bytes, .min = OUTPUT_LEAST, .max = OUTPUT_MAX,
	      .def = DEFAULT_INT(OUTPUT_DEFAULT),
	      .doc = "How much of stdout and of stderr to keep; of more, the head and the tail."),
	FIELD(struct exec_body, background,
	      .doc = "Answers as soon as it runs; it goes on until it ends by itself, with the sandbox, or by "
		     "a DELETE of /v1/sandboxes/{id}/execs/{exec}."),
	FIELD(struct exec_body, exec_id, .min = 1, .max = API_ID_MAX,
	      .doc = "In the background: its id, as of a sandbox; one is made if absent."),
	FIELD(struct exec_body, stdin_open,
	      .doc = "In the background: more input follows, by …/execs/{exec}/stdin."),
	FIELD_OBJECT(
		struct exec_body, tty, talk_tty_table, .has = FIELD_HAS(struct exec_body, has_tty),
		.doc = "In the background: runs it on a terminal, whose output is all stdout, and whose "
		       "input stays open."),
	FIELD(struct exec_body, keep_bytes, .min = JOB_OUTPUT_LEAST, .max = (int64_t)JOB_OUTPUT_MAX,
	      .def = DEFAULT_INT(JOB_OUTPUT_DEFAULT),
	      .doc = "In the background: how much of its output to keep on disk; of more, the newest."),
};
static const struct field_table exec_body = FIELD_TABLE(struct exec_body, exec_fields);
static const struct field stream_fields[] = { ROWS };
static const struct field_table stream_body = FIELD_TABLE(struct exec_body, stream_fields);

struct exec_params {
	struct exec_body body;
};
static const struct field exec_parts[] = {
	FIELD_OBJECT(struct exec_params, body, exec_body, .flags = FIELD_REQUIRED,
		     .doc = "What to run."),
};
static const struct field_table exec_input = FIELD_TABLE(struct exec_params, exec_parts);
static const struct field stream_parts[] = {
	FIELD_OBJECT(struct exec_params, body, stream_body, .flags = FIELD_REQUIRED,
		     .doc = "What to run."),
};
static const struct field_table stream_input = FIELD_TABLE(struct exec_params, stream_parts);

/* NULL: the call has failed. */
static const struct exec_wish *wish_of(struct call *c, const struct exec_body *p)
{
	struct err e = ERR_INIT;
	struct exec_wish *w = arena_alloc(call_arena(c), sizeof(*w), &e);

	if (w)
		*w = (struct exec_wish){
			.sandbox = p->sandbox,
			.command = p->command,
			.has_args = p->has_args,
			.args = p->args,
			.n_env = p->env.n,
			.cwd = p->working_dir,
			.timeout_s = p->timeout,
			.input = p->input,
			.terminal = p->has_tty
					  ? talk_terminal(p->tty.cols, p->tty.rows, p->tty.term)
					  : (struct exec_terminal){ 0 },
		};
	if (!w || api_env(call_arena(c), &p->env, &w->env, &e) < 0) {
		call_fail(c, &e);
		return NULL;
	}
	return exec_refuses(c, w) ? NULL : w;
}

/* What only means something in the background is refused, not passed over. */
static const struct exec_wish *foreground_wish(struct call *c, const struct exec_body *p)
{
	struct err e;

	if (!p->exec_id.p && !p->stdin_open && !p->has_tty)
		return wish_of(c, p);
	err_set(&e, ERR_INVALID, "body: %s is for the background",
		p->has_tty	? "tty"
		: p->stdin_open ? "stdin_open"
				: "exec_id");
	call_fail(c, &e);
	return NULL;
}

static void run_exec(struct call *c, const void *params)
{
	const struct exec_body *p = &((const struct exec_params *)params)->body;
	const struct exec_wish *w = p->background ? wish_of(c, p) : foreground_wish(c, p);

	/* Without a wish the call has ended, and p with it. */
	if (w && p->background)
		exec_detach(c, w, &(struct job_wish){ p->exec_id, p->stdin_open, p->keep_bytes });
	else if (w)
		exec_collect(c, w, p->max_output_bytes);
}

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
	FIELD(struct frame, data, .doc = "Of a chunk: its bytes in base64."),
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

static void say_chunk(struct call *c, enum exec_stream stream, struct str bytes)
{
	autobuf struct buf text = BUF_INIT(CHUNK_MAX);
	struct frame f = { .kind = FRAME_CHUNK,
			   .stream = str_of(stream == EXEC_STDOUT ? "stdout" : "stderr") };
	struct err e;

	if (base64_encode(&text, bytes, &e) < 0)
		return;
	f.data = buf_str(&text);
	ask_send(c, &frame_table, &f);
}

static void say_end(struct call *c, const struct exec_end_view *end)
{
	const struct frame f = { .kind = FRAME_EXIT,
				 .is_exit = true,
				 .exit_code = end->exit_code,
				 .exec_time_ms = end->wall_ms,
				 .error = end->error,
				 .code = end->code,
				 .dimension = end->dimension };

	ask_send(c, &frame_table, &f);
}

static const struct exec_voice voice = { say_chunk, say_end };

static void run_stream(struct call *c, const void *params)
{
	const struct exec_wish *w = wish_of(c, &((const struct exec_params *)params)->body);

	if (w)
		exec_speak(c, w, &voice);
}

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

struct code_params {
	struct code_body body;
};
static const struct field code_parts[] = {
	FIELD_OBJECT(struct code_params, body, code_body, .flags = FIELD_REQUIRED,
		     .doc = "What to run."),
};
static const struct field_table code_input = FIELD_TABLE(struct code_params, code_parts);

static void run_code(struct call *c, const void *params)
{
	const struct code_body *p = &((const struct code_params *)params)->body;
	struct err e = ERR_INIT;
	struct exec_wish *w = arena_alloc(call_arena(c), sizeof(*w), &e);
	struct str *words = w ? arena_array(call_arena(c), 2, sizeof(*words), &e) : NULL;

	if (!words) {
		call_fail(c, &e);
		return;
	}
	words[0] = interpreters[p->language].option;
	words[1] = p->code;
	*w = (struct exec_wish){ .sandbox = p->sandbox,
				 .command = interpreters[p->language].program,
				 .has_args = true,
				 .args = { words, 2 },
				 .timeout_s = p->timeout ? p->timeout : CODE_TIMEOUT_S };
	if (!exec_refuses(c, w))
		exec_speak(c, w, &voice);
}

#define MAY (API_MAY_SANDBOX | API_MAY(EXEC_FAILED) | API_MAY(TIMEOUT_TOO_LARGE))

static const struct api_route rows[] = {
	{ .id = "exec",
	  .op = &(const struct
		  op){ .action = "sandbox.exec",
		       .doc = "Runs a command in a sandbox, and answers when it has ended; or runs it in the "
			      "background, and answers at once with what there is to know of it.",
		       .effect = OP_EXECUTE,
		       .request = &exec_input,
		       .target = OP_TARGET(struct exec_params, body.sandbox),
		       .result = &exec_answer_table,
		       .run = run_exec },
	  .page = &job_view_table,
	  .method = HTTP_POST,
	  .path = "/v1/exec",
	  .body_max = BODY_MAX,
	  .errors = MAY | API_MAY(EXEC_TIMEOUT) },
	{ .id = "exec.stream",
	  .op = &(const struct
		  op){ .action = "sandbox.exec",
		       .doc = "Runs a command in a sandbox, and tells what it prints as it comes. Who reads "
			      "slowly holds the command; who goes away ends it.",
		       .effect = OP_EXECUTE,
		       .request = &stream_input,
		       .target = OP_TARGET(struct exec_params, body.sandbox),
		       .result = &frame_table,
		       .run = run_stream },
	  .method = HTTP_POST,
	  .path = "/v1/exec/stream",
	  .body_max = BODY_MAX,
	  .shape = API_LINES,
	  .errors = MAY | API_MAY(TOO_MANY_STREAMS) },
	{ .id = "run_code.stream",
	  .op = &(const struct
		  op){ .action = "sandbox.exec",
		       .doc = "Runs a program's text in a sandbox, and tells what it prints as exec.stream does.",
		       .effect = OP_EXECUTE,
		       .request = &code_input,
		       .target = OP_TARGET(struct code_params, body.sandbox),
		       .result = &frame_table,
		       .run = run_code },
	  .method = HTTP_POST,
	  .path = "/v1/run_code/stream",
	  .shape = API_LINES,
	  .errors = MAY | API_MAY(TOO_MANY_STREAMS) },
};
const struct api_resource api_exec = API_RESOURCE(rows);
