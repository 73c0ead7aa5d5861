/*
 * GET /v1/sandboxes/{id}/exec, a WebSocket: a command with its standard input as it comes, on a terminal if that is
 * asked for; GET /v1/pty, the same always on one. Bytes are binary messages behind one that says which stream they are
 * of, all else is a text with one member; docs/rest.md has them.
 */
#include "door/http/talk.h"
#include "json/document/json.h"

enum {
	CHUNK_MAX = 4 << 20,
};

/* ---- what the client says ------------------------------------------------------------------ */

struct open {
	struct str command, working_dir;
	bool has_args;
	struct field_strs args;
	struct field_map env;
	uint32_t timeout;
	bool input, has_tty;
	struct talk_tty tty;
};
static const struct field open_fields[] = {
	FIELD(struct open, command, .max = EXEC_BYTES_MAX,
	      .doc = "Line for the shell; with args, the program to run. May be absent with tty: the shell."),
	FIELD(struct open, args, .max = EXEC_ARGS_MAX - 1, .has = FIELD_HAS(struct open, has_args),
	      .doc = "Runs command as a program with these arguments, without a shell."),
	FIELD(struct open, working_dir, .min = 1, .max = API_PATH_MAX,
	      .doc = "Directory to start in; the sandbox's if absent."),
	FIELD(struct open, env, .max = API_ENV_MAX,
	      .doc = "Environment variables, over those of the sandbox."),
	FIELD(struct open, timeout, .def = DEFAULT_INT(EXEC_TIMEOUT_MAX),
	      .doc = "Seconds, at most 86400; then it is killed with all its descendants. 0: 30."),
	FIELD_NAMED(struct open, input, "stdin", .def = DEFAULT_BOOL(true),
		    .doc = "Whether its standard input comes; else that is empty."),
	FIELD_OBJECT(struct open, tty, talk_tty_table, .has = FIELD_HAS(struct open, has_tty),
		     .doc = "Runs it on a terminal, whose output is all stdout."),
};
static const struct field_table open_table = FIELD_TABLE(struct open, open_fields);

struct heard {
	bool has_open, has_resize, has_signal, has_close;
	struct open open;
	struct talk_size resize;
	int32_t signal;
	bool stdin_close;
};
static const struct field heard_fields[] = {
	FIELD_OBJECT(struct heard, open, open_table, .has = FIELD_HAS(struct heard, has_open),
		     .doc = "What to run; in the first message."),
	TALK_HEARD_ROWS(struct heard),
};
static const struct field_table heard_table = FIELD_TABLE(struct heard, heard_fields,
							  .doc = "One member in each text.");

static int take_open(struct arena *a, bool on_terminal, const struct open *o, struct talk_word *w,
		     struct err *e)
{
	w->kind = TALK_OPEN;
	w->open = (struct exec_wish){
		.command = o->command,
		.has_args = o->has_args,
		.args = o->args,
		.n_env = o->env.n,
		.cwd = o->working_dir,
		.timeout_s = o->timeout,
		.stdin_open = o->input,
	};
	if (o->has_tty)
		w->open.terminal = talk_terminal(o->tty.cols, o->tty.rows, o->tty.term);
	else if (on_terminal)
		w->open.terminal = talk_terminal(0, 0, STR_LIT(""));
	return api_env(a, &o->env, &w->open.env, e) < 0 ? -1 : talk_default_command(&w->open, e);
}

static int take_text(struct arena *a, bool on_terminal, const struct heard *h, struct talk_word *w,
		     struct err *e)
{
	if (h->has_open + h->has_resize + h->has_signal + h->has_close != 1)
		return err_set(e, ERR_INVALID,
			       "a text has one of open, resize, signal, stdin_close");
	if (h->has_open)
		return take_open(a, on_terminal, &h->open, w, e);
	w->kind = h->has_resize ? TALK_RESIZE : h->has_signal ? TALK_SIGNAL : TALK_STDIN_CLOSE;
	w->columns = h->resize.cols;
	w->rows = h->resize.rows;
	w->signal = h->signal;
	if (h->has_close && !h->stdin_close)
		return err_set(e, ERR_INVALID, "stdin_close can only be true");
	return 0;
}

int talk_bytes(struct str message, struct str *ret, struct err *e)
{
	if (message.n == 0 || message.p[0] != TALK_CHANNEL_STDIN)
		return err_set(e, ERR_INVALID,
			       "a binary message begins with the byte %d, for standard input",
			       TALK_CHANNEL_STDIN);
	*ret = (struct str){ message.p + 1, message.n - 1 };
	return 0;
}

/* on_terminal: also where none is asked for. */
static int read_message(struct arena *scratch, bool on_terminal, bool is_text, struct str message,
			struct talk_word *ret, struct err *e)
{
	struct heard *h;

	if (!is_text) {
		ret->kind = TALK_STDIN;
		return talk_bytes(message, &ret->bytes, e);
	}
	h = arena_alloc(scratch, sizeof(*h), e);
	ret->doc = h ? json_parse(message, NULL, e) : NULL;
	if (!ret->doc || field_decode(&heard_table, json_root(ret->doc), scratch, h, e) < 0)
		return -1;
	return take_text(scratch, on_terminal, h, ret, e);
}

/* ---- what it hears ------------------------------------------------------------------------- */

static const struct field exit_fields[] = {
	FIELD(struct talk_exit, exit_code, .flags = FIELD_REQUIRED,
	      .doc = "Of the command; 124 where its timeout ended it, -1 where it never ran."),
	FIELD(struct talk_exit, exec_time_ms, .flags = FIELD_REQUIRED, .doc = "How long it ran."),
	FIELD(struct talk_exit, error, .doc = "What went wrong, if it was no plain end."),
	FIELD(struct talk_exit, code, .doc = "Its code, of the table of errors, if it has one."),
	FIELD(struct talk_exit, dimension,
	      .doc = "The limit of the sandbox that it ran into, if any."),
};
const struct field_table talk_exit_table = FIELD_TABLE(struct talk_exit, exit_fields);

struct talk_exit talk_exit(const struct exec_end_view *end)
{
	return (struct talk_exit){ end->exit_code, end->wall_ms, end->error, end->code,
				   end->dimension };
}

struct said {
	struct talk_exit exit;
};
static const struct field said_fields[] = {
	FIELD_OBJECT(struct said, exit, talk_exit_table, .flags = FIELD_REQUIRED,
		     .doc = "The end; behind it only the error comes, if it is one."),
};
static const struct field_table said_table = FIELD_TABLE(struct said, said_fields);

static void say_chunk(struct call *c, enum exec_stream stream, struct str bytes)
{
	autobuf struct buf b = BUF_INIT(CHUNK_MAX);
	char channel = stream == EXEC_STDOUT ? TALK_CHANNEL_STDOUT : TALK_CHANNEL_STDERR;
	struct err e;

	if (buf_add(&b, &channel, 1, &e) == 0 && buf_add(&b, bytes.p, bytes.n, &e) == 0)
		ask_socket_bytes(c, buf_str(&b));
}

static void say_end(struct call *c, const struct exec_end_view *end)
{
	const struct said s = { talk_exit(end) };

	ask_send(c, &said_table, &s);
}

static int read_v1(struct arena *scratch, bool is_text, struct str message, struct talk_word *ret,
		   struct err *e)
{
	return read_message(scratch, false, is_text, message, ret, e);
}

const struct talk_form talk_v1 = { read_v1, { say_chunk, say_end } };

static int read_of_pty(struct arena *scratch, bool is_text, struct str message,
		       struct talk_word *ret, struct err *e)
{
	return read_message(scratch, true, is_text, message, ret, e);
}

static const struct talk_form of_pty = { read_of_pty, { say_chunk, say_end } };

/* ---- the route ----------------------------------------------------------------------------- */

struct exec_socket_params {
	struct id_path path;
};
static const struct field parts[] = { API_ID_PATH(struct exec_socket_params) };
static const struct field_table input = FIELD_TABLE(struct exec_socket_params, parts);

static void run(struct call *c, const void *params)
{
	talk_start(c, ((const struct exec_socket_params *)params)->path.id, &talk_v1);
}

struct pty_query {
	struct str sandbox;
};
static const struct field query_fields[] = { API_SANDBOX_ROW(struct pty_query) };
static const struct field_table query_table = FIELD_TABLE(struct pty_query, query_fields);

struct pty_params {
	struct pty_query query;
};
static const struct field pty_parts[] = {
	FIELD_OBJECT(struct pty_params, query, query_table, .flags = FIELD_REQUIRED,
		     .doc = "The sandbox."),
};
static const struct field_table pty_input = FIELD_TABLE(struct pty_params, pty_parts);

static void run_pty(struct call *c, const void *params)
{
	talk_start(c, ((const struct pty_params *)params)->query.sandbox, &of_pty);
}

#define MAY (API_MAY_SANDBOX | API_MAY(UPGRADE_REQUIRED) | API_MAY(TOO_MANY_STREAMS))

static const struct api_route rows[] = {
	{ .id = "sandboxes.exec",
	  .op = &(const struct
		  op){ .action = "sandbox.exec",
		       .doc = "Runs a command over a WebSocket, with its standard input as it comes and on "
			      "a terminal if asked for. Who reads slowly holds it; who goes away ends it.",
		       .effect = OP_EXECUTE,
		       .flags = OP_WAITS,
		       .request = &input,
		       .target = OP_TARGET(struct exec_socket_params, path.id),
		       .result = &said_table,
		       .run = run },
	  .method = HTTP_GET,
	  .path = "/v1/sandboxes/{id}/exec",
	  .shape = API_LINES,
	  .socket = "holt.exec.v1",
	  .heard = &heard_table,
	  .errors = MAY },
	{ .id = "pty",
	  .op = &(const struct
		  op){ .action = "sandbox.exec",
		       .doc = "As sandboxes.exec, on a terminal whether that is asked for or not; the "
			      "query names the sandbox.",
		       .effect = OP_EXECUTE,
		       .flags = OP_WAITS,
		       .request = &pty_input,
		       .target = OP_TARGET(struct pty_params, query.sandbox),
		       .result = &said_table,
		       .run = run_pty },
	  .method = HTTP_GET,
	  .path = "/v1/pty",
	  .shape = API_LINES,
	  .socket = "holt.exec.v1",
	  .heard = &heard_table,
	  .errors = MAY },
};
const struct api_resource api_exec_socket = API_RESOURCE(rows);
