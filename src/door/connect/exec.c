/*
 * Exec and ExecStream. Over HTTP/1.1 a client has sent all of its messages before it reads the
 * first answer, so all of Exec's standard input is in the request. Over a WebSocket, where each
 * message is a frame, both sides can send at once.
 */
#include "door/connect/connect.h"
#include "json/document/json.h"
#include "op/exec.h"

enum { BODY_MAX = 8 << 20 };

/* ---- what is taken ------------------------------------------------------------------------- */

struct variable {
	struct str key, value;
};
static const struct field variable_fields[] = {
	FIELD(struct variable, key, .flags = FIELD_REQUIRED, .min = 1,
	      .doc = "Name of the variable."),
	FIELD(struct variable, value, .doc = "Value of the variable."),
};
static const struct field_table variable_table = FIELD_TABLE(struct variable, variable_fields);

struct size {
	uint32_t cols, rows;
};
static const struct field size_fields[] = {
	FIELD(struct size, cols, .max = EXEC_SIDE_MAX,
	      .doc = "Width in columns; 80 for a terminal if absent or 0."),
	FIELD(struct size, rows, .max = EXEC_SIDE_MAX,
	      .doc = "Height in rows; 24 for a terminal if absent or 0."),
};
static const struct field_table size_table = FIELD_TABLE(struct size, size_fields);

struct pty {
	struct str term;
	struct size size;
};
static const struct field pty_fields[] = {
	FIELD(struct pty, term, .max = EXEC_TERM_MAX,
	      .doc = "Value of the variable TERM; xterm-256color if absent or empty."),
	FIELD_OBJECT(struct pty, size, size_table, .doc = "Initial size of the terminal."),
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
	struct exec_how how;
	bool has_pty;
	struct pty pty;
};

/* The order is that of protocol buffers, with command before them (door/http/proto.h). */
#define OPEN_ROWS                                                                                  \
	FIELD(struct open, args, .max = EXEC_ARGS_MAX - 1,                                         \
	      .doc = "Arguments. If present, command is run as a program, without a shell."),      \
		FIELD_OBJECTS(                                                                     \
			struct open, env, variable_table, .max = API_ENV_MAX,                      \
			.doc = "Environment variables, in addition to those of the sandbox."),     \
		FIELD(struct open, cwd, .max = API_PATH_MAX,                                       \
		      .doc = "Working directory; the sandbox's if absent or empty."),              \
		FIELD_NAMED(struct open, timeout_seconds, "timeoutSeconds",                        \
			    .doc = "Time limit in seconds, at most 86400; 0 or less means 30.")

static const struct field open_fields[] = {
	FIELD(struct open, command, .flags = FIELD_REQUIRED, .min = 1, .max = EXEC_BYTES_MAX,
	      .doc = "Command line for the shell; with args, the program to run."),
	OPEN_ROWS,
};
static const struct field_table open_table = FIELD_TABLE(struct open, open_fields);

/* Exactly one of its members is set. */
struct message {
	bool has_open, has_input, has_close;
	struct open open;
	struct str input;
	bool close;
};
static const struct field message_fields[] = {
	FIELD_OBJECT(struct message, open, open_table, .has = FIELD_HAS(struct message, has_open),
		     .doc = "The command to run; in the first message only."),
	FIELD_NAMED(struct message, input, "stdin", .has = FIELD_HAS(struct message, has_input),
		    .doc = "Bytes to write to standard input."),
	FIELD_NAMED(struct message, close, "stdinClose",
		    .has = FIELD_HAS(struct message, has_close),
		    .doc = "Closes standard input, as the end of the request does."),
};
static const struct field_table message_table = FIELD_TABLE(struct message, message_fields);

/* ---- the request ---------------------------------------------------------------------------- */

/* If a client sends a variable twice, the last one counts. */
static int fill_env(struct arena *a, const struct open *o, struct field_map *ret, struct err *e)
{
	struct field_pair *env = arena_array(a, o->env.n, sizeof(*env), e);
	size_t n = 0;

	if (!env)
		return -1;
	for (size_t i = 0; i < o->env.n; i++) {
		size_t k = 0;

		while (k < n && str_cmp(env[k].key, o->env.p[i].key) != 0)
			k++;
		env[k] = (struct field_pair){ o->env.p[i].key, o->env.p[i].value };
		n += k == n;
	}
	*ret = (struct field_map){ env, n };
	return 0;
}

static int fill_request(struct arena *a, const struct open *o, struct exec_request *q,
			struct err *e)
{
	q->command = o->command;
	q->has_args = o->args.n > 0;
	q->args = o->args;
	q->cwd = o->cwd.n > 0 ? o->cwd : STR_NONE;
	q->timeout_seconds = o->timeout_seconds > 0 ? (uint32_t)o->timeout_seconds : 0;
	q->how = o->how;
	q->has_tty = o->has_pty;
	q->tty = (struct exec_tty){ o->pty.size.cols, o->pty.size.rows, o->pty.term };
	return fill_env(a, o, &q->env, e);
}

/* ---- what is sent -------------------------------------------------------------------------- */

struct exit {
	int32_t exit_code;
	double exec_time_ms;
	struct str error;
};
static const struct field exit_fields[] = {
	FIELD_NAMED(
		struct exit, exit_code, "exitCode", .flags = FIELD_REQUIRED,
		.doc = "Exit code of the command; 124 after its timeout, -1 if it did not start."),
	FIELD_NAMED(struct exit, exec_time_ms, "execTimeMs", .flags = FIELD_REQUIRED,
		    .doc = "Duration in milliseconds."),
	FIELD(struct exit, error, .doc = "What went wrong, if the command did not end normally."),
};
static const struct field_table exit_table = FIELD_TABLE(struct exit, exit_fields);

struct said {
	struct str out, err;
	bool has_exit;
	struct exit exit;
};
static const struct field said_fields[] = {
	FIELD_NAMED(struct said, out, "stdout", .flags = FIELD_BYTES,
		    .doc = "Bytes of standard output."),
	FIELD_NAMED(struct said, err, "stderr", .flags = FIELD_BYTES,
		    .doc = "Bytes of standard error."),
	FIELD_OBJECT(struct said, exit, exit_table, .has = FIELD_HAS(struct said, has_exit),
		     .doc = "How the command ended; in the last message only."),
};
static const struct field_table said_table = FIELD_TABLE(struct said, said_fields);

static void exec_tell(struct call *c, const void *event)
{
	const struct exec_event *ev = event;
	struct said s = {
		.has_exit = ev->is_end,
		.exit = { ev->exit_code, ev->exec_time_ms, ev->error },
	};

	/* Clients of mitos take a text there for a command that never ran; 124 says enough. */
	if (ev->timed_out && exchange_mitos(c))
		s.exit.error = STR_NONE;

	if (!ev->is_end)
		*(ev->stream == EXEC_STDOUT ? &s.out : &s.err) = ev->bytes;
	exchange_write(c, &said_table, &s);
}

/* The command's own timeout is a normal end of the call, not a missed deadline. */
static const void *show(struct call *c, const void *result, const struct field_table **t,
			struct err *e)
{
	const struct exec_request *q = call_request(c);
	const struct exec_answer *a = result;
	uint64_t waits_ms = call_timeout_ms(c);

	if (!a->report.timed_out || waits_ms == 0 || waits_ms > q->timeout_seconds * 1000ull)
		return result;
	api_exec_timeout(c, e);
	return NULL;
}

/* ---- the methods --------------------------------------------------------------------------- */

static int read_stream(struct call *c, void *request, struct err *e)
{
	struct open o;

	if (field_decode(&open_table, exchange_body(c), call_arena(c), &o, e) < 0)
		return err_wrap(e, "body");
	return fill_request(call_arena(c), &o, request, e);
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

/* Collects all of the standard input in the call's arena. */
static int read_input(struct call *c, struct str *ret, struct err *e)
{
	autobuf struct buf input = BUF_INIT(BODY_MAX);
	const struct json_val *v;
	struct message m;
	bool closed = false;
	char *copy;

	while ((v = exchange_next_message(c, e))) {
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

static int read_exec(struct call *c, void *request, struct err *e)
{
	struct exec_request *q = request;
	struct message m;

	if (field_decode(&message_table, exchange_body(c), call_arena(c), &m, e) < 0)
		return err_wrap(e, "body");
	if (!m.has_open || m.has_input || m.has_close)
		return err_set(e, ERR_INVALID, "the first message has open, and nothing else");
	if (fill_request(call_arena(c), &m.open, q, e) < 0)
		return -1;
	return read_input(c, &q->input, e);
}

/* ---- on a WebSocket ------------------------------------------------------------------------ */

static const struct field socket_open_fields[] = {
	FIELD(struct open, command, .max = EXEC_BYTES_MAX,
	      .doc = "Command line for the shell; with args, the program to run. With pty it may "
		     "be absent: a shell runs then."),
	OPEN_ROWS,
	FIELD_OBJECT(struct open, pty, pty_table, .has = FIELD_HAS(struct open, has_pty),
		     .doc = "Runs the command on a terminal. All output is then stdout."),
};
static const struct field_table socket_open_table = FIELD_TABLE(struct open, socket_open_fields);

struct heard {
	bool has_open, has_input, has_resize, has_close;
	struct open open;
	struct str input;
	struct size resize;
	bool close;
};
static const struct field heard_fields[] = {
	FIELD_OBJECT(struct heard, open, socket_open_table,
		     .has = FIELD_HAS(struct heard, has_open),
		     .doc = "The command to run; in the first message only."),
	FIELD_NAMED(struct heard, input, "stdin", .has = FIELD_HAS(struct heard, has_input),
		    .doc = "Bytes to write to standard input."),
	FIELD_OBJECT(struct heard, resize, size_table, .has = FIELD_HAS(struct heard, has_resize),
		     .doc = "New size of the terminal."),
	FIELD_NAMED(
		struct heard, close, "stdinClose", .has = FIELD_HAS(struct heard, has_close),
		.doc = "Closes standard input; on a terminal, sends its end-of-file character."),
};
static const struct field_table heard_table =
	FIELD_TABLE(struct heard, heard_fields, .doc = "Each message has exactly one member.");

static int take_heard(struct arena *scratch, const struct json_val *v, struct heard *h,
		      struct err *e)
{
	if (!v || field_decode(&heard_table, v, scratch, h, e) < 0)
		return -1;
	if (h->has_open + h->has_input + h->has_resize + h->has_close != 1)
		return err_set(e, ERR_INVALID,
			       "a message has one of open, stdin, resize, stdinClose");
	return 0;
}

static int read_first(struct call *c, void *request, struct err *e)
{
	struct exec_request *q = request;
	bool is_text;
	struct str text, message = exchange_first(c, &is_text);
	struct heard h;

	if (connect_unpack(is_text, message, &text, e) < 0 ||
	    take_heard(call_arena(c), exchange_parse_first(c, text, e), &h, e) < 0)
		return -1;
	if (!h.has_open)
		return err_set(e, ERR_INVALID, "the first message has open");
	q->stdin_open = true;
	return fill_request(call_arena(c), &h.open, q, e);
}

static int exec_hear(struct call *c, struct arena *scratch, bool is_text, struct str message,
		     struct err *e)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	autobuf struct buf input = BUF_INIT(BODY_MAX);
	struct exec_word w = { .kind = EXEC_WORD_INPUT };
	struct heard h;
	struct str text;

	if (connect_unpack(is_text, message, &text, e) < 0 || !(doc = json_parse(text, NULL, e)) ||
	    take_heard(scratch, json_root(doc), &h, e) < 0)
		return -1;
	if (h.has_open)
		return err_set(e, ERR_INVALID, "only the first message has open");
	if (h.has_input && connect_bytes(&input, "stdin", h.input, e) < 0)
		return -1;
	w.kind = h.has_resize		? EXEC_WORD_RESIZE
	       : h.has_close && h.close ? EXEC_WORD_INPUT_END
					: EXEC_WORD_INPUT;
	w.bytes = buf_str(&input);
	w.cols = h.resize.cols;
	w.rows = h.resize.rows;
	return call_hear(c, &w, e);
}

/* Clients of Connect name the sandbox in a header, clients of mitos in the query. */
static const struct op_member socket_members[] = {
	{ "sandbox", .as = "X-Sandbox-Id", .in = OP_HEADER, .or_query = "sandbox" },
};
static const struct op_member members[] = { CONNECT_BY_HEADER };

#define MAY                                                                                        \
	(API_MAY_SANDBOX | API_MAY(EXEC_FAILED) | API_MAY(TIMEOUT_TOO_LARGE) |                     \
	 API_MAY(TOO_MANY_STREAMS))
#define EXEC                                                                                       \
	.op = &sandbox_exec_op, .projected = true, .kind = API_CONNECT, .shape = API_FRAMES,       \
	.answer = &said_table, .tell = exec_tell, .show = show

static const struct api_route rows[] = {
	{ .id = "Exec",
	  .doc = "Runs a command with the standard input that the request contains, and streams "
		 "its output.",
	  EXEC,
	  .members = OP_MEMBERS(members),
	  .body = &message_table,
	  .read = read_exec,
	  .method = HTTP_POST,
	  .path = CONNECT_PATH "Exec",
	  .body_max = BODY_MAX,
	  .messages = true,
	  .errors = MAY },
	{ .id = "ExecSocket",
	  .doc = "Exec over a WebSocket, with streamed standard input, and on a terminal if "
		 "requested.",
	  EXEC,
	  .members = OP_MEMBERS(socket_members),
	  .body = &socket_open_table,
	  .read = read_first,
	  .hear = exec_hear,
	  .method = HTTP_GET,
	  .path = CONNECT_PATH "Exec",
	  .socket = "connect.sandbox.v1",
	  .heard = &heard_table,
	  .errors = API_MAY_SANDBOX | API_MAY(UPGRADE_REQUIRED) | API_MAY(TOO_MANY_STREAMS) },
	{ .id = "ExecStream",
	  .doc = "Runs a command and streams its output.",
	  EXEC,
	  .members = OP_MEMBERS(members),
	  .body = &open_table,
	  .read = read_stream,
	  .proto = &open_table,
	  .method = HTTP_POST,
	  .path = CONNECT_PATH "ExecStream",
	  .body_max = API_BODY_MAX,
	  .errors = MAY },
};
const struct api_resource api_connect_exec = API_RESOURCE(rows);

/* As the gateway of mitos has it. */
static const struct op_member by_path[] = { API_BY_PATH };
static const struct api_route mitos_rows[] = {
	{ .id = "Exec",
	  .doc = "Exec in the sandbox that the path names.",
	  EXEC,
	  .members = OP_MEMBERS(by_path),
	  .body = &message_table,
	  .read = read_exec,
	  .method = HTTP_POST,
	  .path = "/v1/sandboxes/{id}/exec",
	  .body_max = BODY_MAX,
	  .messages = true,
	  .errors = MAY },
};
const struct api_resource api_mitos_exec = API_RESOURCE(mitos_rows);
