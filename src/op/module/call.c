/* module.call, by which each call of a module's tool goes, module.test and module.disconnect. */
#include "op/module/module.h"

#include <stdio.h>

#include "call/profile.h"
#include "hub/sandbox/sandbox.h"
#include "json/document/raw.h"
#include "modules/code/clean.h"
#include "modules/code/names.h"
#include "op/ops.h"

enum {
	TOOL_MAX = 1024,
	ARGUMENTS_MAX = 4 << 20,
	MESSAGE_MAX = 400,
	LOG_MAX = 32 << 10, /* bytes of a log message that a client is told */
	LOGGER_MAX = 256,
	LOGGER_CHARS = 64,
};

static const char *const kind_names[UPSTREAM_KINDS] = {
	[UPSTREAM_CALL] = "tool",
	[UPSTREAM_READ] = "resource",
	[UPSTREAM_GET] = "prompt",
	[UPSTREAM_COMPLETE] = "completion",
};

static const struct field request_fields[] = {
	FIELD_ENUM(struct module_call_request, kind, kind_names, .def = DEFAULT_INT(UPSTREAM_CALL),
		   .doc = "What to ask for: a tool call, a resource, a prompt or a completion."),
	MODULE_NAME_ROW(struct module_call_request),
	FIELD(struct module_call_request, tool, .flags = FIELD_REQUIRED, .min = 1, .max = TOOL_MAX,
	      .doc = "Name of the tool, as its server gives it."),
	FIELD(struct module_call_request, arguments, .max = ARGUMENTS_MAX,
	      .doc = "Arguments of the tool, as its inputSchema says."),
	PROFILES_ROW(struct module_call_request),
	FIELD(struct module_call_request, sandbox, .max = SANDBOX_ID_MAX,
	      .doc = "Sandbox whose program makes the call; absent: a client does."),
};
static const struct field_table request_table = FIELD_TABLE(struct module_call_request,
							    request_fields);

static const struct field result_fields[] = {
	FIELD(struct module_result, result, .flags = FIELD_REQUIRED,
	      .doc = "The server's result: content, structuredContent, isError."),
};
static const struct field_table result_table = FIELD_TABLE(struct module_result, result_fields);

/* In the call's arena. */
struct calling {
	struct call *call;
	struct upstream_call out;
	module_connected_fn *then; /* where it is only connected */
};

/* What the program has asked for in vain may be why its call failed; "": nothing. */
static void calling_denied(const struct calling *k, char ret[UPSTREAM_DENIED_TEXT])
{
	struct upstream_info i;

	upstream_info(k->out.of, &i);
	*ret = '\0';
	if (i.n_denied)
		upstream_denied_text(k->out.of, &i.denied[i.n_denied - 1], ret);
}

/* A failure of the server, in its words. */
static void calling_refused(const struct calling *k, const struct mcp_answer *a, struct err *e)
{
	struct str message = json_str(json_get(a->fault, "message"));
	char denied[UPSTREAM_DENIED_TEXT];

	calling_denied(k, denied);
	err_set(e, ERR_MODULE_FAILED, "the module answered with error %d: %.*s%s%s", a->code,
		STR_CUT(message, *denied ? MESSAGE_MAX / 2 : MESSAGE_MAX), *denied ? "; " : "",
		denied);
}

/* The bytes of the result's content; STR_NONE: it has none. */
static struct str calling_content(const struct mcp_answer *a)
{
	struct json_iter it = json_iter(a->result);
	struct json_raw raw = json_raw(a->text);
	struct str value;

	while (json_next(&it) && json_raw_next(&raw, &value)) {
		if (str_is(it.key, "content") && json_type(it.val) == JSON_ARRAY)
			return value;
	}
	return STR_NONE;
}

/* The server's result. Where it is an error, what the program was denied stands behind its
 * content. */
static int calling_result(const struct calling *k, const struct mcp_answer *a, struct str *ret,
			  struct err *e)
{
	bool failed = json_bool(json_get(a->result, "isError"));
	struct str content = failed ? calling_content(a) : STR_NONE;
	autobuf struct buf b = BUF_INIT(UPSTREAM_RESULT_MAX + 8 * UPSTREAM_DENIED_TEXT);
	char denied[UPSTREAM_DENIED_TEXT] = "";
	struct json_writer w;
	size_t at;

	if (content.n)
		calling_denied(k, denied);
	*ret = a->text;
	if (*denied) {
		at = (size_t)(content.p - a->text.p) + content.n - 1;
		if (buf_add(&b, a->text.p, at, e) < 0 ||
		    buf_addf(&b, e, "%s{\"type\":\"text\",\"text\":",
			     json_len(json_get(a->result, "content")) ? "," : "") < 0)
			return -1;
		json_writer_init(&w, &b);
		json_write_text(&w, denied);
		if (json_write_done(&w, e) < 0 || buf_addf(&b, e, "}") < 0 ||
		    buf_add(&b, a->text.p + at, a->text.n - at, e) < 0)
			return -1;
		*ret = buf_str(&b);
	}
	*ret = (struct str){ arena_dup(call_arena(k->call), *ret, e), ret->n };
	return ret->p ? 0 : -1;
}

/* Only a tool acts. */
static void calling_unanswered(const struct calling *k, struct err *e)
{
	if (k->out.kind == UPSTREAM_CALL)
		call_say_done(k->call, NULL, NULL, e);
}

/* That of a request which the server has had is never the caller's fault, and nothing to try again:
 * a tool may have acted before its server was lost, or its answer could not be taken. */
static void calling_failed(const struct calling *k, const struct mcp_answer *a, struct err *e)
{
	*e = *a->e;
	if (a->sent && e->code == ERR_INVALID) {
		e->code = ERR_MODULE_FAILED;
	} else if (a->sent && e->code == ERR_TIMEOUT) {
		err_wrap(e,
			 "timeoutSeconds of the module's entry, or the call's own limit, is over");
	} else if (a->sent && e->code == ERR_TRANSPORT) {
		e->code = ERR_UNSURE;
		err_wrap(e, "the module was lost in the middle of the call, and may have acted");
	} else if (a->sent && (e->code == ERR_TOO_LARGE || e->code == ERR_LIMIT)) {
		calling_unanswered(k, e);
	}
}

static void calling_end(struct calling *k, const struct mcp_answer *a)
{
	struct module_result r = { .result = { STR_NONE } };
	struct err e = ERR_INIT;
	int failed = 0;

	if (a->e)
		calling_failed(k, a, &e);
	else if (a->fault)
		calling_refused(k, a, &e);
	else if (a->text.n <= UPSTREAM_RESULT_MAX)
		failed = calling_result(k, a, &r.result.text, &e);
	else if (k->out.kind != UPSTREAM_CALL)
		err_set(&e, ERR_TOO_LARGE, "the module's answer has %zu bytes; at most %d pass",
			a->text.n, UPSTREAM_RESULT_MAX);
	else if (module_result_keep(k->call, a, &r, &e) < 0)
		r.result.text = STR_NONE;
	if (!a->e && !a->fault && !r.result.text.p)
		calling_unanswered(k, &e);
	if (r.result.text.p && failed == 0)
		call_answer(k->call, &r);
	else
		call_fail(k->call, &e);
}

static void calling_on_done(void *owner, const struct mcp_answer *a)
{
	struct calling *k = owner;

	call_on_cancel(k->call, NULL, NULL);
	calling_end(k, a);
}

static void calling_on_progress(void *owner, const struct mcp_progress *p)
{
	struct calling *k = owner;
	char message[MESSAGE_MAX];

	snprintf(message, sizeof(message), "%.*s", STR_ARG(p->message));
	call_progress(k->call, p->progress, p->total, p->message.p ? message : NULL);
}

static void calling_on_log(void *owner, const struct mcp_log_message *m)
{
	struct calling *k = owner;
	autobuf struct buf data = BUF_INIT(LOG_MAX), logger = BUF_INIT(LOGGER_MAX);
	struct err e;

	if (clean_json(&data, m->data, CLEAN_TEXT, &e) < 0 ||
	    clean_text(&logger, m->logger, CLEAN_LINE, LOGGER_CHARS, &e) < 0)
		return;
	call_log(k->call, m->level, buf_str(&logger), buf_str(&data));
}

static void calling_on_asked(void *owner, struct upstream_question *q)
{
	struct calling *k = owner;

	module_ask(k->call, q);
}

static void calling_on_unasked(void *owner, struct upstream_question *q)
{
	module_unask(q);
}

static void calling_on_cancel(void *data)
{
	struct calling *k = data;
	struct err e;

	upstream_call_cancel(&k->out);
	err_set(&e, ERR_CANCELLED, "%s was cancelled", call_op(k->call)->action);
	call_fail(k->call, &e);
}

/* err: why there is no u. */
static void calling_start(struct call *c, struct upstream *u, const struct upstream_call *out,
			  module_connected_fn *then, const struct err *err)
{
	struct err e = *err;
	unsigned least;
	struct calling *k = u ? arena_alloc(call_arena(c), sizeof(*k), &e) : NULL;

	if (k) {
		*k = (struct calling){ c, *out, then };
		k->out.owner = k;
		k->out.on_log = call_wants_log(c, &least) ? calling_on_log : NULL;
		k->out.level = (enum mcp_level)least;
	}
	if (k && upstream_call_start(u, &k->out, &e) == 0)
		call_on_cancel(c, calling_on_cancel, k);
	else if (u && then)
		then(c, &e);
	else
		call_fail(c, &e);
}

/* What happens to it by the profiles that hold for it. */
static int call_by_profiles(struct call *c, const struct module_call_request *q,
			    enum config_then *ret, struct err *e)
{
	struct config_profile p;
	bool any;

	*ret = CONFIG_ALLOW;
	if (profile_of(c, &q->profiles, &p, &any, e) < 0)
		return -1;
	if (!any)
		return 0;
	if (profile_check_server(&p, q->module, e) < 0)
		return -1;
	*ret = p.has_approval ? p.approval : CONFIG_ALLOW;
	return *ret == CONFIG_DENY
		     ? err_set(e, ERR_DENIED, "a profile of this call denies calls of modules")
		     : 0;
}

/* What was chosen by the door is a part of the request, which policy, approval and audit see; so
 * are the names of the operator's file and of the server. */
static int call_expand(struct call *c, void *request, struct err *e)
{
	struct module_call_request *q = request;
	enum config_then then;
	struct err none;
	struct upstream *u;

	if (module_expand(c, &q->module, e) < 0)
		return -1;
	u = q->kind == UPSTREAM_CALL ? module_find(c, q->module, &none) : NULL;
	if (u)
		q->tool = upstream_tool_spelled(u, q->tool, call_arena(c), e);
	if (!q->tool.p)
		return -1;
	return profile_names(c, &q->profiles, e) < 0 ? -1 : call_by_profiles(c, q, &then, e);
}

/* The file may be another since then. */
static void call_run(struct call *c, const void *request)
{
	const struct module_call_request *q = request;
	enum config_then then;
	struct err e = ERR_INIT;

	if (call_by_profiles(c, q, &then, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	calling_start(c, module_find(c, q->module, &e),
		      &(struct upstream_call){
			      .kind = q->kind,
			      .tool = q->tool,
			      .arguments = q->arguments.text.n ? q->arguments.text : STR_LIT("{}"),
			      .timeout_ms = call_timeout_ms(c),
			      .who = call_owner(c),
			      .on_done = calling_on_done,
			      .on_progress = calling_on_progress,
			      .on_asked = q->kind == UPSTREAM_CALL ? calling_on_asked : NULL,
			      .on_unasked = calling_on_unasked,
		      },
		      NULL, &e);
}

/* What can't run anyway fails without a question. The operator's own calls are his word. */
static bool call_asks(struct call *c, const void *request)
{
	const struct module_call_request *q = request;
	enum config_then then;
	struct err none;
	struct upstream *u = module_find(c, q->module, &none);
	struct upstream_info i;

	if (!u || call_is_operator(c) || q->kind == UPSTREAM_COMPLETE ||
	    (q->kind == UPSTREAM_CALL ? upstream_check(u, q->tool, &none)
				      : upstream_check_kind(u, q->kind, &none)) < 0)
		return false;
	upstream_info(u, &i);
	return config_server_approval(i.server, q->tool) == CONFIG_ASK ||
	       (call_by_profiles(c, q, &then, &none) == 0 && then == CONFIG_ASK);
}

/* One that is not listed has the name that it would get alone. */
static const char *call_tool(struct call *c, const void *request)
{
	const struct module_call_request *q = request;
	struct tool_name alone = { .gateway = STR_NONE };
	struct err none;
	struct upstream *u = module_find(c, q->module, &none);
	struct str listed = u && q->kind == UPSTREAM_CALL ? upstream_listed(u, q->tool) : STR_NONE;

	if (q->kind != UPSTREAM_CALL)
		return arena_printf(call_arena(c), &none, "%.*s__%s", STR_ARG(q->module),
				    upstream_kind_methods[q->kind]);
	if (listed.p)
		return arena_dup(call_arena(c), listed, &none);
	return names_make(q->module, &q->tool, 1, call_arena(c), &alone, &none) < 0
		     ? NULL
		     : alone.gateway.p;
}

const struct op module_call_op = {
	.action = "module.call",
	.doc = "Calls a tool of a module.",
	.effect = OP_EXECUTE,
	.request = &request_table,
	.target = OP_TARGET(struct module_call_request, sandbox),
	.result = &result_table,
	.asks = call_asks,
	.tool = call_tool,
	.expand = call_expand,
	.run = call_run,
};

/* ---- module.test, module.disconnect ------------------------------------------------------ */

static const char *const action_names[MODULE_ACTIONS] = {
	[MODULE_CONNECT] = "connect",
	[MODULE_DISCONNECT] = "disconnect",
};
#define Q struct module_manage_request
static const struct field manage_fields[] = {
	MODULE_NAME_ROW(Q),
	FIELD_ENUM(Q, action, action_names, .doc = "What to do."),
};
#undef Q
static const struct field_table manage_table = FIELD_TABLE(struct module_manage_request,
							   manage_fields);

static void connect_on_done(void *owner, const struct mcp_answer *a)
{
	struct calling *k = owner;

	call_on_cancel(k->call, NULL, NULL);
	k->then(k->call, a ? a->e : NULL);
}

void module_connect(struct call *c, struct upstream *u, bool waits, module_connected_fn *then)
{
	const struct err none = ERR_INIT;

	calling_start(c, u,
		      &(struct upstream_call){
			      .tool = STR_NONE, .waits = waits, .on_done = connect_on_done },
		      then, &none);
}

static void test_then(struct call *c, const struct err *err)
{
	const struct module_manage_request *q = call_request(c);
	struct module_view view;
	struct err e = err ? *err : (struct err)ERR_INIT;
	struct upstream *u = err ? NULL : module_of(c, q->module, &e);

	if (!u || module_view(c, u, &view, &e) < 0)
		call_fail(c, &e);
	else
		call_answer(c, &view);
}

static void test_run(struct call *c, const void *request)
{
	const struct module_manage_request *q = request;
	struct err e = ERR_INIT;
	struct upstream *u = module_of(c, q->module, &e);

	if (u)
		module_connect(c, u, q->imports, test_then);
	else
		call_fail(c, &e);
}

const struct op module_test_op = {
	.action = "module.test",
	.doc = "Connects a module, even after it failed too often, and lists its tools.",
	.effect = OP_EXECUTE,
	.request = &manage_table,
	.result = &module_view_table,
	.expand = module_expand,
	.run = test_run,
};

static void disconnect_run(struct call *c, const void *request)
{
	const struct module_manage_request *q = request;
	struct module_view view;
	struct err e = ERR_INIT;
	struct upstream *u = module_of(c, q->module, &e);

	if (!u || upstream_disconnect(u, &e) < 0 || module_view(c, u, &view, &e) < 0)
		call_fail(c, &e);
	else
		call_answer(c, &view);
}

const struct op module_disconnect_op = {
	.action = "module.disconnect",
	.doc = "Disconnects a module that nobody calls, and ends its program.",
	.effect = OP_EXECUTE,
	.flags = OP_IDEMPOTENT,
	.request = &manage_table,
	.result = &module_view_table,
	.expand = module_expand,
	.run = disconnect_run,
};
