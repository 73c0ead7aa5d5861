/*
 * Exec and ExecStream. Over HTTP/1.1 a client has sent all of its messages before it reads the first
 * answer, so Exec's standard input is what stands in the request; both can speak at once on a WebSocket, where
 * each message is a frame.
 */
#include "door/connect/connect.h"
#include "door/http/frame.h"
#include "door/http/talk.h"
#include "base/base64.h"
#include "json/document/json.h"

enum { BODY_MAX = 8 << 20, CHUNK_MAX = 4 << 20, TERM_MAX = 64, SIDE_MAX = 9999 };

/* ---- what is taken ------------------------------------------------------------------------- */

struct variable {
	struct str key, value;
};
static const struct field variable_fields[] = {
	FIELD(struct variable, key, .flags = FIELD_REQUIRED, .min = 1, .doc = "Its name."),
	FIELD(struct variable, value, .doc = "Its value."),
};
static const struct field_table variable_table = FIELD_TABLE(struct variable, variable_fields);

struct size {
	uint32_t cols, rows;
};
static const struct field size_fields[] = {
	FIELD(struct size, cols, .max = SIDE_MAX,
	      .doc = "Columns; of a terminal, 80 if absent or 0."),
	FIELD(struct size, rows, .max = SIDE_MAX, .doc = "Rows; of a terminal, 24 if absent or 0."),
};
static const struct field_table size_table = FIELD_TABLE(struct size, size_fields);

struct pty {
	struct str term;
	struct size size;
};
static const struct field pty_fields[] = {
	FIELD(struct pty, term, .max = TERM_MAX,
	      .doc = "The variable TERM; xterm-256color if absent or empty."),
	FIELD_OBJECT(struct pty, size, size_table, .doc = "Its size."),
};
static const struct field_table pty_table = FIELD_TABLE(struct pty, pty_fields);

struct open {
	struct str command;
	struct field_strs args;
	struct {
		const struct variable *p;
		size_t n;
	} env;
	struct str cwd;
	int32_t timeout_seconds;
	bool has_pty;
	struct pty pty;
};

#define OPEN_ROWS                                                                                  \
	FIELD(struct open, args, .max = EXEC_ARGS_MAX - 1,                                         \
	      .doc = "Runs command as a program with these arguments, without a shell."),          \
		FIELD_OBJECTS(struct open, env, variable_table, .max = API_ENV_MAX,                \
			      .doc = "Environment variables, over those of the sandbox."),         \
		FIELD(struct open, cwd, .max = API_PATH_MAX,                                       \
		      .doc = "Directory to start in; the sandbox's if absent or empty."),          \
		FIELD_NAMED(struct open, timeout_seconds, "timeoutSeconds",                        \
			    .doc = "At most 86400; 0 or less: 30.")

static const struct field open_fields[] = {
	FIELD(struct open, command, .flags = FIELD_REQUIRED, .min = 1, .max = EXEC_BYTES_MAX,
	      .doc = "Line for the shell; with args, the program to run."),
	OPEN_ROWS,
};
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

static int fill_wish(struct arena *a, const struct open *o, struct exec_wish *w, struct err *e)
{
	struct env_var *env = arena_array(a, o->env.n, sizeof(*env), e);

	if (!env)
		return -1;
	for (size_t i = 0; i < o->env.n; i++)
		env[i] = (struct env_var){ o->env.p[i].key, o->env.p[i].value };
	*w = (struct exec_wish){
		.command = o->command,
		.has_args = o->args.n > 0,
		.args = o->args,
		.env = env,
		.n_env = o->env.n,
		.cwd = o->cwd.n > 0 ? o->cwd : STR_NONE,
		.timeout_s = o->timeout_seconds > 0 ? (uint32_t)o->timeout_seconds : 0,
	};
	return 0;
}

static struct exec_wish *wish_of(struct call *c, struct str sandbox, const struct open *o,
				 struct err *e)
{
	struct exec_wish *w = arena_alloc(call_arena(c), sizeof(*w), e);

	if (!w || fill_wish(call_arena(c), o, w, e) < 0)
		return NULL;
	w->sandbox = sandbox;
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

static const struct exec_voice voice = { say_chunk, say_end, .timeout_is_end = true };

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

/* ---- on a WebSocket ------------------------------------------------------------------------ */

static const struct field talk_open_fields[] = {
	FIELD(struct open, command, .max = EXEC_BYTES_MAX,
	      .doc = "Line for the shell; with args, the program to run. May be absent with pty: the shell."),
	OPEN_ROWS,
	FIELD_OBJECT(struct open, pty, pty_table, .has = FIELD_HAS(struct open, has_pty),
		     .doc = "Runs it on a terminal, whose output is all stdout."),
};
static const struct field_table talk_open_table = FIELD_TABLE(struct open, talk_open_fields);

struct heard {
	bool has_open, has_input, has_resize, has_close;
	struct open open;
	struct str input;
	struct size resize;
	bool close;
};
static const struct field heard_fields[] = {
	FIELD_OBJECT(struct heard, open, talk_open_table, .has = FIELD_HAS(struct heard, has_open),
		     .doc = "The command; in the first message."),
	FIELD_NAMED(struct heard, input, "stdin", .has = FIELD_HAS(struct heard, has_input),
		    .doc = "Bytes for its standard input."),
	FIELD_OBJECT(struct heard, resize, size_table, .has = FIELD_HAS(struct heard, has_resize),
		     .doc = "The new size of its terminal."),
	FIELD_NAMED(
		struct heard, close, "stdinClose", .has = FIELD_HAS(struct heard, has_close),
		.doc = "The end of its standard input; of a terminal, its end-of-file character."),
};
static const struct field_table heard_table = FIELD_TABLE(struct heard, heard_fields,
							  .doc = "One member in each message.");

/* A binary message is one frame. */
static int unpack(bool is_text, struct str message, struct str *ret, struct err *e)
{
	struct frames f = { .left = message };

	if (is_text || message.n == 0)
		return err_set(e, ERR_INVALID, "a message is binary, and holds a frame");
	if (frame_next(&f, ret, e) < 0)
		return -1;
	return f.left.n ? err_set(e, ERR_INVALID, "a message holds one frame") : 0;
}

static int take_bytes(struct arena *a, struct str base64, struct str *ret, struct err *e)
{
	autobuf struct buf bytes = BUF_INIT(BODY_MAX);
	char *copy;

	if (connect_bytes(&bytes, "stdin", base64, e) < 0)
		return -1;
	copy = arena_dup(a, buf_str(&bytes), e);
	*ret = (struct str){ copy, bytes.n };
	return copy ? 0 : -1;
}

static int take_heard(struct arena *a, const struct heard *h, struct talk_word *w, struct err *e)
{
	if (h->has_open + h->has_input + h->has_resize + h->has_close != 1)
		return err_set(e, ERR_INVALID,
			       "a message has one of open, stdin, resize, stdinClose");
	w->kind = h->has_open	? TALK_OPEN
		: h->has_input	? TALK_STDIN
		: h->has_resize ? TALK_RESIZE
				: TALK_STDIN_CLOSE;
	w->columns = h->resize.cols;
	w->rows = h->resize.rows;
	if (h->has_input)
		return take_bytes(a, h->input, &w->bytes, e);
	if (!h->has_open)
		return 0;
	if (fill_wish(a, &h->open, &w->open, e) < 0)
		return -1;
	w->open.stdin_open = true;
	if (h->open.has_pty)
		w->open.terminal = talk_terminal(h->open.pty.size.cols, h->open.pty.size.rows,
						 h->open.pty.term);
	return talk_default_command(&w->open, e);
}

static int read_message(struct arena *scratch, bool is_text, struct str message,
			struct talk_word *ret, struct err *e)
{
	struct heard *h = arena_alloc(scratch, sizeof(*h), e);
	struct str text;

	if (!h || unpack(is_text, message, &text, e) < 0)
		return -1;
	ret->doc = json_parse(text, NULL, e);
	if (!ret->doc || field_decode(&heard_table, json_root(ret->doc), scratch, h, e) < 0)
		return -1;
	return take_heard(scratch, h, ret, e);
}

static const struct talk_form form = { read_message,
				       { say_chunk, say_end, .timeout_is_end = true } };

/* Clients of Connect name the sandbox in a header, those of mitos in the query. */
struct socket_name {
	struct str sandbox;
};
static const struct field socket_header_fields[] = {
	FIELD_NAMED(struct socket_name, sandbox, "X-Sandbox-Id", .min = 1, .max = API_ID_MAX,
		    .doc = "Id of the sandbox; or in the query."),
};
static const struct field_table socket_header_table = FIELD_TABLE(struct socket_name,
								  socket_header_fields);
static const struct field socket_query_fields[] = {
	FIELD(struct socket_name, sandbox, .min = 1, .max = API_ID_MAX,
	      .doc = "Id of the sandbox; or in the header."),
};
static const struct field_table socket_query_table = FIELD_TABLE(struct socket_name,
								 socket_query_fields);

struct socket_params {
	struct socket_name header, query;
};
static const struct field socket_parts[] = {
	FIELD_OBJECT(struct socket_params, header, socket_header_table,
		     .doc = "The sandbox that is meant."),
	FIELD_OBJECT(struct socket_params, query, socket_query_table, .doc = "Likewise."),
};
static const struct field_table socket_input = FIELD_TABLE(struct socket_params, socket_parts);

static void run_socket(struct call *c, const void *params)
{
	const struct socket_params *p = params;
	struct err e;

	if ((p->header.sandbox.p != NULL) == (p->query.sandbox.p != NULL)) {
		err_set(&e, ERR_INVALID, "X-Sandbox-Id or sandbox in the query names the sandbox");
		call_fail(c, &e);
		return;
	}
	talk_start(c, p->header.sandbox.p ? p->header.sandbox : p->query.sandbox, &form);
}

#define MAY                                                                                        \
	(API_MAY_SANDBOX | API_MAY(EXEC_FAILED) | API_MAY(TIMEOUT_TOO_LARGE) |                     \
	 API_MAY(TOO_MANY_STREAMS))

static const struct api_route rows[] = {
	{ .id = "Exec",
	  .op = &(const struct
		  op){ .action = "sandbox.exec",
		       .doc = "Runs a command with what stands in the request as its standard input.",
		       .effect = OP_EXECUTE,
		       .request = &exec_input,
		       .target = OP_TARGET(struct exec_params, header.sandbox),
		       .result = &said_table,
		       .run = run_exec },
	  .kind = API_CONNECT,
	  .method = HTTP_POST,
	  .path = CONNECT_PATH "Exec",
	  .body_max = BODY_MAX,
	  .shape = API_FRAMES,
	  .messages = true,
	  .errors = MAY },
	{ .id = "ExecSocket",
	  .op = &(const struct
		  op){ .action = "sandbox.exec",
		       .doc = "Exec over a WebSocket, with its standard input as it comes and on a terminal if "
			      "asked for.",
		       .effect = OP_EXECUTE,
		       .flags = OP_WAITS,
		       .request = &socket_input,
		       .result = &said_table,
		       .run = run_socket },
	  .kind = API_CONNECT,
	  .method = HTTP_GET,
	  .path = CONNECT_PATH "Exec",
	  .shape = API_FRAMES,
	  .socket = "connect.sandbox.v1",
	  .heard = &heard_table,
	  .errors = API_MAY_SANDBOX | API_MAY(UPGRADE_REQUIRED) | API_MAY(TOO_MANY_STREAMS) },
	{ .id = "ExecStream",
	  .op = &(const struct op){ .action = "sandbox.exec",
				    .doc = "Runs a command, and tells what it prints as it comes.",
				    .effect = OP_EXECUTE,
				    .request = &stream_input,
				    .target = OP_TARGET(struct stream_params, header.sandbox),
				    .result = &said_table,
				    .run = run_stream },
	  .kind = API_CONNECT,
	  .method = HTTP_POST,
	  .path = CONNECT_PATH "ExecStream",
	  .body_max = API_BODY_MAX,
	  .shape = API_FRAMES,
	  .errors = MAY },
};
const struct api_resource api_connect_exec = API_RESOURCE(rows);
