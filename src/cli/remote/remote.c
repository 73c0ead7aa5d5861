#include "cli/remote/internal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "cli/common/home.h"
#include "cli/common/verb.h"
#include "mcp/transport/stdio.h"

/* TOKEN_LEAST: what is shorter is no secret, and may stand in any text. */
enum { DRAIN_MS = 5000, PROBE_S = 5, EVERYWHERE = 6, TOKEN_LEAST = 8 };

/* ---- the tools ----------------------------------------------------------------------------- */

/* Members of exec_output: REST waits and kills by other routes. */
static const struct op_member output_members[] = {
	{ "exec", .doc = "Id of the exec, from sandbox_exec." },
	{ "offset", .doc = "Offset to read from: a next_offset, or 0 for the beginning." },
	{ "max_bytes", .doc = "Maximum number of bytes of output." },
	{ "stream", .in = OP_HIDDEN },
	{ "follow", .in = OP_HIDDEN },
	{ "wait_seconds", .in = OP_HIDDEN },
	{ "wait_for", .in = OP_HIDDEN },
	{ "wait_pattern", .in = OP_HIDDEN },
	{ "kill", .in = OP_HIDDEN },
};
static const struct op_members of_output = OP_MEMBERS(output_members);

/* Members of sandbox_list: REST has another name for where the next page begins. */
static const struct op_member list_members[] = {
	{ "limit", .min = 1, .def = DEFAULT_INT(100) },
	{ "cursor", .doc = "next_cursor of the previous page." },
	{ "after", .in = OP_HIDDEN },
	{ "label", .in = OP_HIDDEN },
};
static const struct op_members of_list = OP_MEMBERS(list_members);

static const struct op_member listed_members[] = {
	{ "path", .presence = OP_REQUIRED, .doc = "The directory, such as \".\"." },
	{ "limit", .def = DEFAULT_INT(128), .doc = "Maximum number of entries." },
};
static const struct op_members of_files = OP_MEMBERS(listed_members);

#define REST(tool_, route_, ...)                                                                   \
	{                                                                                          \
		.tool = &tool_##_tool, .run = rest_run, .route = (route_), __VA_ARGS__             \
	}

/* The first EVERYWHERE are served whatever the server is, the others by one of ours. */
const struct remote_row remote_rows[] = {
	{ .tool = &sandbox_create_tool, .run = six_create, .route = "sandboxes.create" },
	{ .tool = &sandbox_exec_tool, .run = six_exec, .route = "exec" },
	{ .tool = &sandbox_read_file_tool, .run = six_read, .route = "files.read" },
	{ .tool = &sandbox_write_file_tool, .run = six_write },
	{ .tool = &sandbox_fork_tool, .run = six_fork },
	{ .tool = &sandbox_terminate_tool, .run = six_terminate },
	REST(sandbox_list, "sandboxes.list", .members = &of_list),
	REST(sandbox_get, "sandboxes.get"),
	REST(sandbox_list_files, "files.list", .members = &of_files),
	REST(sandbox_move_file, "files.move"),
	REST(sandbox_remove_file, "files.remove"),
	REST(sandbox_pause, "pause"),
	REST(sandbox_resume, "resume"),
	REST(sandbox_set_timeout, "set_timeout"),
	REST(sandbox_processes, "sandboxes.processes"),
	REST(sandbox_signal, "sandboxes.signal"),
	REST(sandbox_exec_output, "execs.output", .members = &of_output),
	REST(sandbox_snapshot, "sandboxes.snapshot"),
	REST(sandbox_restore, "snapshots.restore"),
	REST(sandbox_diff, "sandboxes.diff"),
	REST(workspace_create, "workspaces.create", .workspace = true),
	REST(workspace_list, "workspaces.list", .workspace = true),
	REST(workspace_attach, "workspaces.attach", .workspace = true),
	REST(workspace_delete, "workspaces.delete", .workspace = true),
	REST(workspace_log, "workspaces.log", .workspace = true),
	REST(workspace_diff, "workspaces.diff", .workspace = true),
	REST(workspace_revert, "workspaces.revert", .workspace = true),
	REST(workspace_fork, "workspaces.fork", .workspace = true),
};
const size_t remote_rows_n = ARRAY_LEN(remote_rows);

static const struct api_route *route_by_id(const char *id)
{
	const struct api_route *r;

	for (size_t i = 0; (r = api_route_at(i)); i++) {
		if (r->kind == API_REST && strcmp(r->id, id) == 0)
			return r;
	}
	return NULL;
}

static enum mcp_hint hint(bool yes)
{
	return yes ? MCP_YES : MCP_NO;
}

/* Its results are texts: another server need not have all that an output schema promises. */
static int tool_init(struct remote_tool *t, const struct remote_row *row, struct err *e)
{
	const struct tool *tool = row->tool;
	enum op_effect effect = tool->op->effect;

	t->row = row;
	if (op_shape_init(&t->shape, tool->op, row->members ? *row->members : tool->members, e) < 0)
		return -1;
	if (row->route) {
		t->route = route_by_id(row->route);
		if (!t->route)
			return err_set(e, ERR_BUG, "there is no route %s", row->route);
		if (op_shape_init(&t->asked, tool->op, api_members(t->route), e) < 0)
			return -1;
	}
	t->mcp = (struct mcp_tool){
		.name = tool->name,
		.title = tool->title,
		.description = tool->doc,
		.input_schema = field_schema_text(&t->shape.places[OP_BODY], e),
		.meta = "{\"holt/schemaVersion\":\"" TOOL_SCHEMA_VERSION "\"}",
		.read_only = hint(effect == OP_READ),
		.destructive = hint(effect == OP_EXECUTE || effect == OP_DESTROY ||
				    tool->op->flags & OP_REPLACES),
		.idempotent = hint(effect == OP_READ || tool->op->flags & OP_IDEMPOTENT),
		.open_world = MCP_NO,
		.row = t,
	};
	return t->mcp.input_schema ? mcp_tool_prepare(&t->mcp, e) : -1;
}

static int tools_init(struct remote *r, struct err *e)
{
	r->tools = calloc(remote_rows_n, sizeof(*r->tools));
	r->list = calloc(remote_rows_n, sizeof(*r->list));
	if (!r->tools || !r->list)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (size_t i = 0; i < remote_rows_n; i++) {
		if (tool_init(&r->tools[i], &remote_rows[i], e) < 0)
			return err_wrap(e, "tool %s", remote_rows[i].tool->name);
	}
	return 0;
}

static void tools_fini(struct remote *r)
{
	for (size_t i = 0; r->tools && i < remote_rows_n; i++) {
		op_shape_fini(&r->tools[i].shape);
		op_shape_fini(&r->tools[i].asked);
		mcp_tool_release(&r->tools[i].mcp);
		free((char *)r->tools[i].mcp.input_schema);
	}
	free(r->tools);
	free(r->list);
}

static const struct mcp_tool *const *list_tools(void *owner, struct mcp_session *s, size_t *ret_n)
{
	struct remote *r = owner;
	size_t n = 0;

	for (size_t i = 0; i < remote_rows_n; i++) {
		if ((i < EVERYWHERE || r->is_ours) &&
		    (!remote_rows[i].workspace || r->o->workspaces))
			r->list[n++] = &r->tools[i].mcp;
	}
	*ret_n = n;
	return r->list;
}

/* ---- calls --------------------------------------------------------------------------------- */

struct arena *remote_arena(struct remote_call *c)
{
	return mcp_call_arena(c->mc);
}

static void call_free(struct remote_call *c)
{
	if (c->free_state)
		c->free_state(c->state);
	json_free(c->answer);
	buf_fini(&c->came);
	free(c->request);
	free(c);
}

/* Bytes of the token's beginning at the end of a text: messages are cut. */
static size_t token_tail(struct str text, struct str token)
{
	size_t n = text.n < token.n ? text.n : token.n - 1;

	while (n >= TOKEN_LEAST && memcmp(text.p + text.n - n, token.p, n) != 0)
		n--;
	return n >= TOKEN_LEAST ? n : 0;
}

/* A server that says what it was sent says the token to nobody else. Returns text itself if it has
 * nothing of the token. */
static struct str hide_token(const struct remote *r, struct str text, struct buf *to)
{
	static const char mark[] = "[token]";
	struct str token = r->token ? secret_expose(r->token, "searched for in an answer")
				    : STR_NONE;
	struct err e = ERR_INIT;
	const char *at;
	size_t tail;

	if (token.n < TOKEN_LEAST || !text.n ||
	    (!memmem(text.p, text.n, token.p, token.n) && !token_tail(text, token)))
		return text;
	while (e.code == ERR_NONE && text.n > 0 &&
	       (at = memmem(text.p, text.n, token.p, token.n))) {
		size_t n = (size_t)(at - text.p);

		if (buf_add(to, text.p, n, &e) < 0 || buf_add(to, mark, sizeof(mark) - 1, &e) < 0)
			break;
		text = (struct str){ at + token.n, text.n - n - token.n };
	}
	tail = token_tail(text, token);
	if (e.code != ERR_NONE || buf_add(to, text.p, text.n - tail, &e) < 0 ||
	    (tail && buf_add(to, mark, sizeof(mark) - 1, &e) < 0))
		return str_of(mark);
	return buf_str(to);
}

int remote_end(struct remote_call *c, struct str text, struct str note)
{
	autobuf struct buf hidden = BUF_INIT(2 * REMOTE_TEXT_MAX), hidden_note = BUF_INIT(4096);
	const struct mcp_content content[] = {
		{ .type = MCP_TEXT, .text = hide_token(c->r, text, &hidden) },
		{ .type = MCP_TEXT, .text = hide_token(c->r, note, &hidden_note) },
	};

	mcp_call_done(c->mc,
		      &(struct mcp_result){ .content = content, .content_n = note.n ? 2 : 1 });
	call_free(c);
	return 0;
}

static remote_step probed;

void remote_fail(struct remote_call *c, const struct err *e)
{
	struct buf hidden = BUF_INIT(4096), pointer = BUF_INIT(4096);
	struct err shown = *e;
	struct str text = hide_token(c->r, str_of(e->msg), &hidden);
	bool unsure = c->acts && e->code == ERR_TRANSPORT &&
		      (c->status ? c->status < 300 : c->sent);

	snprintf(shown.msg, sizeof(shown.msg), "%.*s", STR_ARG(text));
	if (hide_token(c->r, str_of(e->pointer), &pointer).p != e->pointer)
		shown.pointer[0] = '\0'; /* with a mark it would lead elsewhere */
	buf_fini(&hidden);
	buf_fini(&pointer);
	if (unsure)
		err_unsure(&shown);
	if (c->mc)
		mcp_call_fail(c->mc, &shown);
	else
		log_warn("%s", shown.msg);
	if (c->mc)
		call_free(c);
	else
		probed(c, &shown);
}

static void on_cancel(struct mcp_call *mc, void *data)
{
	struct remote_call *c = data;
	struct err e;

	if (c->x)
		http_exchange_cancel(take_ptr(c->x));
	err_set(&e, ERR_CANCELLED, "the call was cancelled");
	remote_fail(c, &e);
}

static struct remote_call *call_new(struct remote *r, struct mcp_call *mc)
{
	struct remote_call *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->r = r;
	c->mc = mc;
	c->came = BUF_INIT(REMOTE_ANSWER_MAX);
	return c;
}

static int call_decode(struct remote_call *c, struct err *e)
{
	const struct op *op = c->tool->row->tool->op;

	c->args = mcp_call_args(c->mc);
	c->request = calloc(1, op->request->size);
	if (!c->request)
		return err_set(e, ERR_LIMIT, "out of memory");
	op_shape_defaults(&c->tool->shape, op, c->request);
	return field_decode_members(&c->tool->shape.places[OP_BODY], c->args, remote_arena(c),
				    c->request, e);
}

static remote_step ask_who;

static void call_tool(void *owner, struct mcp_call *mc)
{
	struct remote *r = owner;
	struct remote_call *c = call_new(r, mc);
	struct err e = ERR_INIT;

	if (!c) {
		err_set(&e, ERR_LIMIT, "out of memory");
		mcp_call_fail(mc, &e);
		return;
	}
	c->tool = mcp_call_tool(mc)->row;
	if (mcp_call_cancelled(mc))
		err_set(&e, ERR_CANCELLED, "the call was cancelled");
	else
		mcp_call_on_cancel(mc, on_cancel, c);
	if (e.code != ERR_NONE || call_decode(c, &e) < 0 ||
	    (r->asked_who ? c->tool->row->run : ask_who)(c, &e) < 0)
		remote_fail(c, &e);
}

static const struct mcp_handler handler = { .tools = list_tools, .call = call_tool };

/* ---- which server it is -------------------------------------------------------------------- */

/* Ours says its name. Any other has the six tools. One that is not ready yet is asked again. */
static void note_who(struct remote_call *c)
{
	struct remote *r = c->r;
	bool was_ours = r->is_ours;

	r->asked_who = c->status < 500 && c->status != 429;
	r->is_ours = c->status == 200 &&
		     str_is(json_str(json_get(remote_document(c), "name")), "holt");
	if (r->is_ours != was_ours && r->stdio)
		mcp_server_changed(r->server, MCP_TOOLS);
}

static int told_who(struct remote_call *c, struct err *e)
{
	note_who(c);
	return c->tool->row->run(c, e);
}

static const struct remote_question who = { .method = "GET",
					    .path = "/version",
					    .seconds = PROBE_S };

static int ask_who(struct remote_call *c, struct err *e)
{
	return remote_ask(c, &who, NULL, told_who, e);
}

/* ---- the program --------------------------------------------------------------------------- */

static void on_stdio_closed(void *owner)
{
	struct remote *r = owner;

	r->stopping = true;
	mcp_stdio_free(take_ptr(r->stdio));
	http_client_close(take_ptr(r->http), NULL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(r->signals); i++)
		uv_close((uv_handle_t *)&r->signals[i], NULL);
}

static void on_signal(uv_signal_t *h, int number)
{
	struct remote *r = h->data;

	if (r->stopping || !r->stdio)
		_exit(128 + number);
	r->stopping = true;
	mcp_stdio_stop(r->stdio);
}

/* The question at the start has a whole answer, or none in time: then each call asks it again. */
static int probed(struct remote_call *c, struct err *unused)
{
	struct remote *r = c->r;
	struct mcp_stdio_options o = { .drain_ms = DRAIN_MS,
				       .on_closed = on_stdio_closed,
				       .owner = r };
	struct err e = ERR_INIT;

	if (c->status && c->err.code == ERR_NONE)
		note_who(c);
	call_free(c);
	if (mcp_stdio_claim(&o.in_fd, &o.out_fd, &e) == 0)
		r->stdio = mcp_stdio_start(&r->loop, r->server, &o, &e);
	if (r->stdio)
		return 0;
	cli_fail(&e);
	_exit(err_info(e.code)->exit);
}

static const char instructions[] =
	"Sandboxes on another host: small Linux systems. sandbox_create gives an id that the other "
	"tools take. Files persist between calls until sandbox_terminate. sandbox_fork copies a "
	"sandbox, so try risky steps in a fork. A failure has a cause and a remediation; read them "
	"before trying again.";

static void warn_of_plain(const struct remote *r)
{
	static const char *const ours[] = { "http://127.0.0.1", "http://localhost",
					    "http://[::1]" };

	if (strncmp(r->url, "http://", 7) != 0 || !r->token)
		return;
	for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
		size_t n = strlen(ours[i]);

		if (strncmp(r->url, ours[i], n) == 0 && strchr(":/", r->url[n]))
			return;
	}
	log_warn("%.100s is plain HTTP: whoever is on the way reads the token", r->url);
}

static int remote_start(struct remote *r, struct err *e)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	struct remote_call *c;

	r->url = server_url(r->o->server, &r->o->tls, &r->known, e);
	if (!r->url || token_find(&r->o->token, r->url, &r->token, &r->token_from, e) < 0 ||
	    tools_init(r, e) < 0)
		return -1;
	warn_of_plain(r);
	fprintf(stderr, "holt: sandboxes of %s, token %s%s%s\n", r->url, r->token ? "set" : "unset",
		r->token ? " by " : "", r->token ? r->token_from : "");
	r->server = mcp_server_new(&(struct mcp_server_options){ .name = "holt",
								 .title = "Holt",
								 .version = HOLT_VERSION,
								 .instructions = instructions,
								 .handler = &handler,
								 .changes = MCP_TOOLS,
								 .owner = r },
				   e);
	r->http = r->server ? http_client_new(&r->loop, &r->known, e) : NULL;
	c = r->http ? call_new(r, NULL) : NULL;
	if (!c)
		return r->http ? err_set(e, ERR_LIMIT, "out of memory") : -1;
	for (size_t i = 0; i < ARRAY_LEN(r->signals); i++) {
		uv_signal_init(&r->loop, &r->signals[i]);
		r->signals[i].data = r;
		uv_signal_start(&r->signals[i], on_signal, numbers[i]);
	}
	signal(SIGPIPE, SIG_IGN);
	if (remote_ask(c, &who, NULL, probed, e) < 0)
		remote_fail(c, e);
	return 0;
}

int remote_run(const struct remote_options *o)
{
	struct remote r = { .o = o, .came = { .max = REMOTE_CAME_MAX } };
	struct err e = ERR_INIT;
	int status = 0;

	if (uv_loop_init(&r.loop) < 0) {
		err_set(&e, ERR_LIMIT, "no event loop");
		return cli_fail(&e);
	}
	if (remote_start(&r, &e) < 0) {
		status = cli_fail(&e);
		if (r.http)
			http_client_close(take_ptr(r.http), NULL, NULL);
	}
	uv_run(&r.loop, UV_RUN_DEFAULT);
	uv_loop_close(&r.loop);
	mcp_server_free(r.server);
	tools_fini(&r);
	secret_free(r.token);
	free(r.url);
	return status;
}
