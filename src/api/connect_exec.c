/*
 * Exec and ExecStream. Over HTTP/1.1 a client has sent all of its messages before it reads the first
 * answer, so Exec's standard input is what stands in the request.
 */
#include "api/connect.h"
#include "api/exec_run.h"
#include "base/base64.h"

enum { BODY_MAX = 8 << 20, CHUNK_MAX = 4 << 20 };

/* ---- what is taken ------------------------------------------------------------------------- */

struct variable {
	struct str key, value;
};
static const struct field variable_fields[] = {
	FIELD(struct variable, key, .flags = FIELD_REQUIRED, .min = 1, .doc = "Its name."),
	FIELD(struct variable, value, .doc = "Its value."),
};
static const struct field_table variable_table = FIELD_TABLE(struct variable, variable_fields);

struct open {
	struct str command;
	struct field_strs args;
	struct {
		const struct variable *p;
		size_t n;
	} env;
	struct str cwd;
	int32_t timeout_seconds;
};

#define OPEN_ROWS                                                                                  \
	FIELD(struct open, command, .flags = FIELD_REQUIRED, .min = 1, .max = EXEC_BYTES_MAX,      \
	      .doc = "Line for the shell; with args, the program to run."),                        \
		FIELD(struct open, args, .max = EXEC_ARGS_MAX - 1,                                 \
		      .doc = "Runs command as a program with these arguments, without a shell."),  \
		FIELD_OBJECTS(struct open, env, variable_table, .max = API_ENV_MAX,                \
			      .doc = "Environment variables, over those of the sandbox."),         \
		FIELD(struct open, cwd, .max = API_PATH_MAX,                                       \
		      .doc = "Directory to start in; the sandbox's if absent or empty."),          \
		FIELD_NAMED(struct open, timeout_seconds, "timeoutSeconds",                        \
			    .doc = "At most 86400; 0 or less: 30.")

static const struct field open_fields[] = { OPEN_ROWS };
static const struct field_table open_table = FIELD_TABLE(struct open, open_fields);

/* One of its members is set. */
struct message {
	bool has_open, has_input, has_close;
	struct open open;
	struct str input;
	bool close;
};
static const struct field message_fields[] = {
	FIELD_OBJECT(struct message, open, open_table, .has = FIELD_HAS(struct message, has_open),
		     .doc = "The command; in the first message."),
	FIELD_NAMED(struct message, input, "stdin", .has = FIELD_HAS(struct message, has_input),
		    .doc = "Bytes for its standard input."),
	FIELD_NAMED(struct message, close, "stdinClose",
		    .has = FIELD_HAS(struct message, has_close),
		    .doc = "The end of them; so is the request's."),
};
static const struct field_table message_table = FIELD_TABLE(struct message, message_fields);

struct exec_params {
	struct connect_header header;
	struct message body;
};
static const struct field exec_parts[] = {
	CONNECT_HEADER(struct exec_params),
	CONNECT_BODY(struct exec_params, message_table, "The first message."),
};
static const struct field_table exec_input = FIELD_TABLE(struct exec_params, exec_parts);

struct stream_params {
	struct connect_header header;
	struct open body;
};
static const struct field stream_parts[] = {
	CONNECT_HEADER(struct stream_params),
	CONNECT_BODY(struct stream_params, open_table, "The command."),
};
static const struct field_table stream_input = FIELD_TABLE(struct stream_params, stream_parts);

static struct exec_wish *wish_of(struct call *c, struct str sandbox, const struct open *o,
				 struct err *e)
{
	struct exec_wish *w = arena_alloc(call_arena(c), sizeof(*w), e);
	struct env_var *env = arena_array(call_arena(c), o->env.n, sizeof(*env), e);

	if (!w || !env)
		return NULL;
	for (size_t i = 0; i < o->env.n; i++)
		env[i] = (struct env_var){ o->env.p[i].key, o->env.p[i].value };
	*w = (struct exec_wish){
		.sandbox = sandbox,
		.command = o->command,
		.has_args = o->args.n > 0,
		.args = o->args,
		.env = env,
		.n_env = o->env.n,
		.cwd = o->cwd.n > 0 ? o->cwd : STR_NONE,
		.timeout_s = o->timeout_seconds > 0 ? (uint32_t)o->timeout_seconds : 0,
	};
	return w;
}

/* ---- what is sent -------------------------------------------------------------------------- */

struct exit {
	int32_t exit_code;
	double exec_time_ms;
	struct str error;
};
static const struct field exit_fields[] = {
	FIELD_NAMED(struct exit, exit_code, "exitCode", .flags = FIELD_REQUIRED,
		    .doc = "124 where the timeout ended it, -1 where it never ran."),
	FIELD_NAMED(struct exit, exec_time_ms, "execTimeMs", .flags = FIELD_REQUIRED,
		    .doc = "How long it ran."),
	FIELD(struct exit, error, .doc = "What went wrong, if it was no plain end."),
};
static const struct field_table exit_table = FIELD_TABLE(struct exit, exit_fields);

struct said {
	struct str out, err;
	bool has_exit;
	struct exit exit;
};
static const struct field said_fields[] = {
	FIELD_NAMED(struct said, out, "stdout", .doc = "Bytes of standard output."),
	FIELD_NAMED(struct said, err, "stderr", .doc = "Bytes of standard error."),
	FIELD_OBJECT(struct said, exit, exit_table, .has = FIELD_HAS(struct said, has_exit),
		     .doc = "The end; in the last message."),
};
static const struct field_table said_table = FIELD_TABLE(struct said, said_fields);

static void say_chunk(struct call *c, enum exec_stream stream, struct str bytes)
{
	autobuf struct buf text = BUF_INIT(CHUNK_MAX);
	struct said s = { .has_exit = false };
	struct err e;

	if (base64_encode(&text, bytes, &e) < 0)
		return;
	if (stream == EXEC_STDOUT)
		s.out = buf_str(&text);
	else
		s.err = buf_str(&text);
	ask_send(c, &said_table, &s);
}

static void say_end(struct call *c, const struct exec_end_view *end)
{
	const struct said s = {
		.has_exit = true,
		.exit = { end->exit_code, end->wall_ms, end->error },
	};

	ask_send(c, &said_table, &s);
}

static const struct exec_voice voice = { say_chunk, say_end };

/* ---- the methods --------------------------------------------------------------------------- */

static void run_stream(struct call *c, const void *params)
{
	const struct stream_params *p = params;
	struct err e = ERR_INIT;
	const struct exec_wish *w = wish_of(c, p->header.sandbox, &p->body, &e);

	if (!w)
		call_fail(c, &e);
	else if (!exec_refuses(c, w))
		exec_speak(c, w, &voice);
}

static int take_message(const struct message *m, struct buf *input, bool *closed, struct err *e)
{
	if (m->has_open + m->has_input + m->has_close != 1 || m->has_open)
		return err_set(e, ERR_INVALID,
			       "behind the first message, each has stdin or stdinClose");
	if (*closed)
		return err_set(e, ERR_INVALID, "a message stands behind stdinClose");
	*closed = m->has_close && m->close;
	return m->has_input ? connect_bytes(input, "stdin", m->input, e) : 0;
}

/* All of the standard input, in the call's arena. */
static int read_input(struct call *c, struct str *ret, struct err *e)
{
	autobuf struct buf input = BUF_INIT(BODY_MAX);
	const struct json_val *v;
	struct message m;
	bool closed = false;
	char *copy;

	while ((v = ask_next_message(c, e))) {
		if (field_decode(&message_table, v, call_arena(c), &m, e) < 0 ||
		    take_message(&m, &input, &closed, e) < 0)
			return -1;
	}
	if (e->code != ERR_NONE)
		return -1;
	copy = arena_dup(call_arena(c), buf_str(&input), e);
	*ret = (struct str){ copy, input.n };
	return copy ? 0 : -1;
}

static void run_exec(struct call *c, const void *params)
{
	const struct exec_params *p = params;
	struct err e = ERR_INIT;
	struct exec_wish *w = NULL;

	if (!p->body.has_open || p->body.has_input || p->body.has_close)
		err_set(&e, ERR_INVALID, "the first message has open, and nothing else");
	else
		w = wish_of(c, p->header.sandbox, &p->body.open, &e);
	if (!w || read_input(c, &w->input, &e) < 0)
		call_fail(c, &e);
	else if (!exec_refuses(c, w))
		exec_speak(c, w, &voice);
}

#define MAY                                                                                        \
	(API_MAY_SANDBOX | API_MAY(EXEC_FAILED) | API_MAY(TIMEOUT_TOO_LARGE) |                     \
	 API_MAY(TOO_MANY_STREAMS))

static const struct api_route rows[] = {
	{ .tool = { .name = "Exec",
		    .doc = "Runs a command with what stands in the request as its standard input.",
		    .input = &exec_input,
		    .output = &said_table,
		    .run = run_exec },
	  .kind = API_CONNECT,
	  .method = HTTP_POST,
	  .path = CONNECT_PATH "Exec",
	  .body_max = BODY_MAX,
	  .shape = API_FRAMES,
	  .messages = true,
	  .errors = MAY },
	{ .tool = { .name = "ExecStream",
		    .doc = "Runs a command, and tells what it prints as it comes.",
		    .input = &stream_input,
		    .output = &said_table,
		    .run = run_stream },
	  .kind = API_CONNECT,
	  .method = HTTP_POST,
	  .path = CONNECT_PATH "ExecStream",
	  .body_max = API_BODY_MAX,
	  .shape = API_FRAMES,
	  .errors = MAY },
};
const struct api_resource api_connect_exec = API_RESOURCE(rows);
