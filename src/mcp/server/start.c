/* Requests that a handler answers: tools/call, resources/read, prompts/get, completion/complete. */
#include "base/log.h"
#include "json/document/near.h"
#include "mcp/server/internal.h"

/* --- tools --- */

static void run_tool(struct mcp_call *c)
{
	const struct mcp_server_options *o = &c->server->o;
	static const struct err none = { ERR_BUG, "nothing runs this tool" };

	if (c->tool->run)
		c->tool->run(c);
	else if (o->handler && o->handler->call)
		o->handler->call(o->owner, c);
	else
		mcp_call_fail(c, &none);
}

static const struct mcp_tool *find_tool(struct mcp_session *s, struct str name,
					const struct mcp_tool **ret_near)
{
	const struct mcp_tool *const *tools;
	unsigned best;
	size_t n = 0;

	*ret_near = NULL;
	tools = mcp_tools_of(s, &n);
	for (size_t i = 0; i < n; i++) {
		if (str_is(name, tools[i]->name))
			return tools[i];
	}
	best = near_enough(name) + 1;
	for (size_t i = 0; i < n; i++) {
		unsigned distance = near_distance(name, str_of(tools[i]->name));

		if (distance < best) {
			best = distance;
			*ret_near = tools[i];
		}
	}
	return NULL;
}

static const struct mcp_tool *read_tool(const struct mcp_request *q, struct rpc_fault *f)
{
	const struct json_val *name = json_get(q->m->params, "name");
	const struct mcp_tool *near, *tool;

	if (json_type(name) != JSON_STR) {
		mcp_takes("name", "a string", name, f);
		return NULL;
	}
	tool = find_tool(q->s, json_str(name), &near);
	if (!tool) {
		rpc_fault_set(f, RPC_INVALID_PARAMS, "unknown tool \"%.*s\"%s%s%s",
			      STR_ARG(mcp_shown(json_str(name))), near ? "; did you mean \"" : "",
			      near ? near->name : "", near ? "\"?" : "");
		f->reason = err_info(ERR_NOT_OFFERED);
	} else if (!tool->prepared)
		rpc_fault_set(f, RPC_INTERNAL_ERROR, "tool %s was not prepared", tool->name);
	return tool && tool->prepared ? tool : NULL;
}

int mcp_tools_call(const struct mcp_request *q, struct rpc_fault *f)
{
	const struct json_val *args = json_get(q->m->params, "arguments");
	const struct mcp_tool *tool;
	struct mcp_call *c;

	if (args && json_type(args) != JSON_OBJECT)
		return mcp_takes("arguments", "an object", args, f);
	tool = read_tool(q, f);
	if (!tool ||
	    (q->profile->modern && mcp_header_check_params(q->in->head, tool, args, f) < 0))
		return -1;
	c = mcp_call_begin(q, MCP_CALL_TOOL, f);
	if (!c)
		return -1;
	c->tool = tool;
	mcp_call_hold(c, true);
	c->args = args;
	c->run = run_tool;
	log_debug("mcp: tools/call %s", tool->name);
	return mcp_call_go(c, f);
}

/* --- resources --- */

static void run_resource(struct mcp_call *c)
{
	c->resource->run(c);
}

static void run_template(struct mcp_call *c)
{
	c->template->run(c);
}

static void run_read(struct mcp_call *c)
{
	const struct mcp_server_options *o = &c->server->o;

	if (o->handler->read)
		o->handler->read(o->owner, c);
	else
		mcp_call_not_found(c);
}

/* Chooses who reads the URI: the resource itself, a template that matches it, or the handler. */
static void find_reader(struct mcp_call *c, struct mcp_session *s, struct str uri)
{
	const struct mcp_resource *const *resources;
	const struct mcp_template *const *templates;
	size_t n;

	c->run = run_read;
	resources = mcp_resources_of(s, &n);
	for (size_t i = 0; i < n; i++) {
		if (!str_is(uri, resources[i]->uri) || !resources[i]->run)
			continue;
		c->resource = resources[i];
		c->run = run_resource;
		return;
	}
	templates = mcp_templates_of(s, &n);
	for (size_t i = 0; i < n; i++) {
		if (!mcp_uri_match(templates[i]->uri_template, uri, c->uri_values, MCP_URI_VALUES))
			continue;
		if (!templates[i]->run)
			return;
		c->template = templates[i];
		c->run = run_template;
		return;
	}
}

int mcp_resources_read(const struct mcp_request *q, struct rpc_fault *f)
{
	const struct json_val *uri = json_get(q->m->params, "uri");
	struct mcp_call *c;

	if (json_type(uri) != JSON_STR)
		return mcp_takes("uri", "a string", uri, f);
	c = mcp_call_begin(q, MCP_CALL_READ, f);
	if (!c)
		return -1;
	find_reader(c, q->s, json_str(uri));
	return mcp_call_go(c, f);
}

/* --- prompts --- */

static void run_prompt(struct mcp_call *c)
{
	const struct mcp_server_options *o = &c->server->o;
	static const struct err none = { ERR_BUG, "nothing runs this prompt" };

	if (c->prompt->run)
		c->prompt->run(c);
	else if (o->handler && o->handler->get)
		o->handler->get(o->owner, c);
	else
		mcp_call_fail(c, &none);
}

static const struct mcp_prompt *find_prompt(struct mcp_session *s, struct str name)
{
	size_t n = 0;
	const struct mcp_prompt *const *all = mcp_prompts_of(s, &n);

	for (size_t i = 0; i < n; i++) {
		if (str_is(name, all[i]->name))
			return all[i];
	}
	return NULL;
}

/* All arguments must be strings, and the required ones present. */
static int check_args(const struct mcp_prompt *p, const struct json_val *args, struct rpc_fault *f)
{
	struct json_iter it = json_iter(args);

	if (args && json_type(args) != JSON_OBJECT)
		return mcp_takes("arguments", "an object", args, f);
	while (json_next(&it)) {
		if (json_type(it.val) != JSON_STR)
			return rpc_fault_set(
				f, RPC_INVALID_PARAMS, "arguments.%.*s takes a string, not %s",
				STR_ARG(mcp_shown(it.key)), json_type_name(json_type(it.val)));
	}
	for (size_t i = 0; i < p->args_n; i++) {
		if (p->args[i].required && !json_get(args, p->args[i].name))
			return rpc_fault_set(f, RPC_INVALID_PARAMS, "arguments.%s is missing",
					     p->args[i].name);
	}
	return 0;
}

static int no_prompt(const struct json_val *name, struct rpc_fault *f)
{
	rpc_fault_set(f, RPC_INVALID_PARAMS, "unknown prompt \"%.*s\"",
		      STR_ARG(mcp_shown(json_str(name))));
	f->reason = err_info(ERR_NOT_OFFERED);
	return -1;
}

int mcp_prompts_get(const struct mcp_request *q, struct rpc_fault *f)
{
	const struct json_val *name = json_get(q->m->params, "name");
	const struct json_val *args = json_get(q->m->params, "arguments");
	const struct mcp_prompt *p;
	struct mcp_call *c;

	if (json_type(name) != JSON_STR)
		return mcp_takes("name", "a string", name, f);
	p = find_prompt(q->s, json_str(name));
	if (!p)
		return no_prompt(name, f);
	if (check_args(p, args, f) < 0)
		return -1;
	c = mcp_call_begin(q, MCP_CALL_GET, f);
	if (!c)
		return -1;
	c->prompt = p;
	c->args = args;
	c->run = run_prompt;
	return mcp_call_go(c, f);
}

/* --- completions --- */

static void run_complete(struct mcp_call *c)
{
	const struct mcp_server_options *o = &c->server->o;

	o->handler->complete(o->owner, c);
}

static int check_ref(struct mcp_session *s, const struct json_val *ref, struct rpc_fault *f)
{
	struct str type = json_str(json_get(ref, "type"));
	const struct json_val *name = json_get(ref, "name"), *uri = json_get(ref, "uri");

	if (str_is(type, "ref/resource"))
		return json_type(uri) == JSON_STR ? 0 : mcp_takes("ref.uri", "a string", uri, f);
	if (!str_is(type, "ref/prompt"))
		return rpc_fault_set(f, RPC_INVALID_PARAMS,
				     "ref.type takes \"ref/prompt\" or \"ref/resource\"");
	if (json_type(name) != JSON_STR)
		return mcp_takes("ref.name", "a string", name, f);
	return find_prompt(s, json_str(name)) ? 0 : no_prompt(name, f);
}

static int check_argument(const struct json_val *argument, struct rpc_fault *f)
{
	const struct json_val *name = json_get(argument, "name");
	const struct json_val *value = json_get(argument, "value");

	if (json_type(name) != JSON_STR)
		return mcp_takes("argument.name", "a string", name, f);
	if (json_type(value) != JSON_STR)
		return mcp_takes("argument.value", "a string", value, f);
	return 0;
}

static int check_context(const struct json_val *context, struct rpc_fault *f)
{
	const struct json_val *args = json_get(context, "arguments");
	struct json_iter it = json_iter(args);

	if (context && json_type(context) != JSON_OBJECT)
		return mcp_takes("context", "an object", context, f);
	if (args && json_type(args) != JSON_OBJECT)
		return mcp_takes("context.arguments", "an object", args, f);
	while (json_next(&it)) {
		if (json_type(it.val) != JSON_STR)
			return mcp_takes("each of context.arguments", "a string", it.val, f);
	}
	return 0;
}

int mcp_complete(const struct mcp_request *q, struct rpc_fault *f)
{
	const struct json_val *params = q->m->params;
	const struct json_val *context = q->profile->context ? json_get(params, "context") : NULL;
	struct mcp_call *c;

	if (check_ref(q->s, json_get(params, "ref"), f) < 0 ||
	    check_argument(json_get(params, "argument"), f) < 0 || check_context(context, f) < 0)
		return -1;
	c = mcp_call_begin(q, MCP_CALL_COMPLETE, f);
	if (!c)
		return -1;
	c->run = run_complete;
	return mcp_call_go(c, f);
}

struct mcp_completion mcp_call_completion(const struct mcp_call *c)
{
	const struct json_val *ref = json_get(c->params, "ref");
	const struct json_val *argument = json_get(c->params, "argument");
	struct mcp_completion ret = { .is_prompt = false };

	if (c->kind != MCP_CALL_COMPLETE)
		return ret;
	ret.is_prompt = str_is(json_str(json_get(ref, "type")), "ref/prompt");
	ret.ref = json_str(json_get(ref, ret.is_prompt ? "name" : "uri"));
	ret.argument = json_str(json_get(argument, "name"));
	ret.value = json_str(json_get(argument, "value"));
	if (c->profile->context)
		ret.context = json_get(json_get(c->params, "context"), "arguments");
	return ret;
}
