/* Requests of owners, checked against the revision and the server's capabilities. */
#include "mcp/client/internal.h"

static int check_ready(const struct mcp_client *c, struct err *e)
{
	if (c->state == MCP_CLIENT_READY || c->state == MCP_CLIENT_REOPENS)
		return 0;
	return err_set(e, ERR_TRANSPORT, "%s",
		       c->state == MCP_CLIENT_OVER ? "the connection to the server is over"
						   : "the server has not answered yet");
}

static int check_method(const struct mcp_client *c, const char *name, struct err *e)
{
	const struct mcp_method *m = mcp_method_find(str_of(name));

	if (strcmp(name, "initialize") == 0 || strcmp(name, "subscriptions/listen") == 0)
		return err_set(e, ERR_INVALID, "%s is the client's own to send", name);
	if (m && !mcp_method_in(m, c->profile))
		return err_set(e, ERR_INVALID, "revision %s has no %s", c->profile->version, name);
	return 0;
}

int mcp_client_may_ask(const struct mcp_client *c, const char *method, struct err *e)
{
	if (check_ready(c, e) < 0 || check_method(c, method, e) < 0)
		return -1;
	if (c->pendings_n >= c->o.pending_max)
		return err_set(e, ERR_LIMIT, "%u requests have no answer yet", c->pendings_n);
	return 0;
}

bool mcp_request_can_task(const struct mcp_pending *p)
{
	const struct mcp_client *c = p->client;
	const struct json_val *can = json_get(json_get(c->about, "capabilities"), "tasks");

	return c->profile->old_tasks && strcmp(p->method, "tools/call") == 0 &&
	       json_get(json_get(json_get(can, "requests"), "tools"), "call");
}

/* A tool that requires a task gets one if that is possible; any other only if the owner asks for it
 * and the tool is not known to lack support. */
static bool wants_task(const struct mcp_pending *p)
{
	const struct mcp_client *c = p->client;
	int tool;

	if (!mcp_request_can_task(p))
		return false;
	tool = mcp_tool_tasking(c, json_str(json_get(json_root(p->params), "name")));
	if (tool == MCP_TASK_REQUIRED)
		return p->task_ttl_ms > 0 || (c->o.can & MCP_CAN_TASKS);
	return p->task_ttl_ms > 0 && tool != MCP_TASK_NEVER;
}

static struct mcp_pending *request(struct mcp_client *c, const struct mcp_request_spec *s,
				   const char *method, struct str params, size_t members,
				   struct err *e)
{
	AUTO(mcp_client_leave) struct mcp_client *inside = mcp_client_enter(c);
	AUTO(mcp_pending_free) struct mcp_pending *p = NULL;

	if (mcp_client_may_ask(inside, method, e) < 0)
		return NULL;
	p = mcp_pending_new(c, method, params, e);
	if (!p)
		return NULL;
	if (members > 0 && json_len(json_root(p->params)) != members)
		return err_set(e, ERR_INVALID, "arguments take one JSON object"), NULL;
	if (s->timeout_ms)
		p->timeout_ms = s->timeout_ms;
	if (s->log_level > 0)
		p->level = (unsigned)s->log_level - 1;
	p->task_ttl_ms = s->task_ttl_ms;
	p->on_progress = s->on_progress;
	p->on_task = s->on_task;
	p->on_done = s->on_done;
	p->owner = s->owner;
	p->wants_task = wants_task(p);
	return mcp_pending_start(p, e) < 0 ? NULL : take_ptr(p);
}

struct mcp_pending *mcp_client_request(struct mcp_client *c, const struct mcp_request_spec *s,
				       struct err *e)
{
	return request(c, s, s->method, s->params, 0, e);
}

struct mcp_pending *mcp_client_call(struct mcp_client *c, const char *tool, struct str arguments,
				    const struct mcp_request_spec *s, struct err *e)
{
	autobuf struct buf params = BUF_INIT(MCP_PARAMS_BYTES_MAX);
	struct json_writer w = json_writer(&params);

	json_write_object(&w);
	json_put_text(&w, "name", tool);
	if (arguments.p)
		json_put_raw(&w, "arguments", arguments);
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0)
		return NULL;
	return request(c, s, "tools/call", buf_str(&params), arguments.p ? 2 : 1, e);
}

int mcp_client_notify(struct mcp_client *c, const char *method, struct str params, struct err *e)
{
	AUTO(mcp_client_leave) struct mcp_client *inside = mcp_client_enter(c);
	const struct json_options o = { .bytes = MCP_PARAMS_BYTES_MAX, .depth = MCP_PARAMS_DEPTH };
	AUTO(json_free) struct json_doc *d = NULL;
	autobuf struct buf line = BUF_INIT(MCP_PARAMS_BYTES_MAX);
	struct json_writer w = json_writer(&line);

	if (check_ready(inside, e) < 0)
		return -1;
	if (c->state == MCP_CLIENT_REOPENS)
		return err_set(e, ERR_TRANSPORT, "the session is being begun anew");
	if (c->era == MCP_MODERN && strcmp(method, "notifications/roots/list_changed") == 0)
		return err_set(e, ERR_INVALID, "revision %s has no %s", c->profile->version,
			       method);
	if (!params.p)
		return mcp_send_notification(c, method, STR_NONE, e);
	d = json_parse(params, &o, e);
	if (!d)
		return err_wrap(e, "params");
	if (json_type(json_root(d)) != JSON_OBJECT)
		return err_set(e, ERR_INVALID, "params take an object");
	mcp_write_line(&w, params, json_root(d));
	if (json_write_done(&w, e) < 0)
		return -1;
	return mcp_send_notification(c, method, buf_str(&line), e);
}

void mcp_pending_set_data(struct mcp_pending *p, void *data)
{
	p->data = data;
}

void *mcp_pending_data(const struct mcp_pending *p)
{
	return p->data;
}
