/*
 * GET /v1/sandboxes/{id}/exec, a WebSocket: a command with its standard input as it comes, on a
 * terminal if the client asks for one; GET /v1/pty, the same but always on a terminal. Bytes are
 * binary messages; a message before each says which stream it belongs to. Everything else is a text
 * with one member (docs/rest.md).
 */
#include "door/rest/exec_end.h"
#include "json/document/json.h"

enum { CHUNK_MAX = 4 << 20 };

/* ---- what the client says ------------------------------------------------------------------ */

static int read_open(struct call *c, void *request, struct err *e)
{
	bool is_text;
	struct str text = exchange_first(c, &is_text);
	const struct json_val *message = is_text ? exchange_parse_first(c, text, e) : NULL;
	struct json_iter it = json_iter(message);

	if (is_text && !message)
		return -1;
	if (!is_text || !json_next(&it) || !str_is(it.key, "open") || json_next(&it))
		return err_set(e, ERR_INVALID, "the first message has open, and nothing else");
	if (exchange_decode_body(c, json_get(message, "open"), request, e) < 0)
		return err_wrap(e, "open");
	return 0;
}

static int read_open_on_terminal(struct call *c, void *request, struct err *e)
{
	struct exec_request *q = request;

	if (read_open(c, q, e) < 0)
		return -1;
	q->has_tty = true;
	return 0;
}

/* ---- what it hears ------------------------------------------------------------------------- */

struct said {
	struct exit_view exit;
};
static const struct field said_fields[] = {
	FIELD_OBJECT(struct said, exit, exit_view_table, .flags = FIELD_REQUIRED,
		     .doc = "How the command ended. Only an error message may follow."),
};
static const struct field_table said_table = FIELD_TABLE(struct said, said_fields);

static void exec_socket_tell(struct call *c, const void *event)
{
	autobuf struct buf b = BUF_INIT(CHUNK_MAX);
	const struct exec_event *ev = event;

	if (ev->is_end)
		exchange_write(c, &said_table, &(struct said){ exit_view(ev) });
	else
		exchange_write_bytes(c, socket_output(ev->stream, ev->bytes, &b));
}

/* ---- the routes ---------------------------------------------------------------------------- */

#define OPENED                                                                                     \
	{ "command", .presence = OP_OPTIONAL,                                                      \
	  .doc = "Command line for the shell; with args, the program to run. With tty it "         \
		 "may be absent: a shell runs then." },                                            \
		{ "cwd", .as = "working_dir" },                                                    \
		{ "timeout_seconds", .as = "timeout", .def = DEFAULT_INT(EXEC_TIMEOUT_MAX),        \
		  .doc = "Time limit in seconds, at most 86400; 0 means 30. Then the command and " \
			 "its descendants are killed." },                                          \
		{ "stdin_open", .as = "stdin", .def = DEFAULT_BOOL(true),                          \
		  .doc = "Whether standard input is sent; if not, it is empty." },                 \
		{ "tty", .doc = "Runs the command on a terminal. All output is then stdout." },    \
		{ "stdin", .in = OP_HIDDEN }, { "stdin_base64", .in = OP_HIDDEN },                 \
		{ "max_output_bytes", .in = OP_HIDDEN }, { "background", .in = OP_HIDDEN },        \
		{ "exec_id", .in = OP_HIDDEN },                                                    \
	{                                                                                          \
		"keep_bytes", .in = OP_HIDDEN                                                      \
	}

static const struct op_member exec_members[] = { API_BY_PATH, OPENED };
static const struct op_member pty_members[] = { { "sandbox", .in = OP_QUERY }, OPENED };

#define SOCKET(id_, path_, members_, read_, doc_)                                                  \
	{                                                                                          \
		.id = (id_), .op = &sandbox_exec_op, .projected = true,                            \
		.members = OP_MEMBERS(members_), .answer = &said_table, .method = HTTP_GET,        \
		.path = (path_), .shape = API_LINES, .socket = "holt.exec.v1",                     \
		.heard = &socket_word_table, .read = (read_), .hear = socket_hear,                 \
		.tell = exec_socket_tell, .show = exec_show,                                       \
		.errors = API_MAY_SANDBOX | API_MAY(UPGRADE_REQUIRED) | API_MAY(TOO_MANY_STREAMS), \
		.doc = (doc_),                                                                     \
	}

static const struct api_route rows[] = {
	SOCKET("sandboxes.exec", "/v1/sandboxes/{id}/exec", exec_members, read_open,
	       "Runs a command over a WebSocket, with its standard input as it comes and on "
	       "a terminal "
	       "if asked for. Who reads slowly holds it; who goes away ends it."),
	SOCKET("pty", "/v1/pty", pty_members, read_open_on_terminal,
	       "As sandboxes.exec, on a terminal whether that is asked for or not; the query names "
	       "the sandbox."),
};
const struct api_resource api_exec_socket = API_RESOURCE(rows);
