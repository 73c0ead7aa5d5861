#include "mcp/message/question.h"

#include <stdio.h>

#include "json/document/put.h"
#include "json/schema/schema.h"

static bool is_object(const struct json_val *v)
{
	return json_type(v) == JSON_OBJECT;
}

/* --- what a client can --- */

static void put_empty(struct json_writer *w, const char *key)
{
	json_put_object(w, key);
	json_write_object_end(w);
}

static void put_extensions(struct json_writer *w, bool tasks, const struct mcp_can_more *more)
{
	size_t n = more ? more->n : 0;

	if (!tasks && n == 0)
		return;
	json_put_object(w, "extensions");
	if (tasks)
		put_empty(w, MCP_EXTENSION_TASKS);
	for (size_t i = 0; i < n; i++) {
		json_put_raw(w, more->extensions[i].name, str_of(more->extensions[i].settings));
	}
	json_write_object_end(w);
}

void mcp_can_write(struct json_writer *w, unsigned can, const struct mcp_can_more *more)
{
	json_write_object(w);
	if (can & (MCP_CAN_FORM | MCP_CAN_URL)) {
		json_put_object(w, "elicitation");
		if (can & MCP_CAN_FORM)
			put_empty(w, "form");
		if (can & MCP_CAN_URL)
			put_empty(w, "url");
		json_write_object_end(w);
	}
	if (can & (MCP_CAN_SAMPLING | MCP_CAN_SAMPLING_TOOLS)) {
		json_put_object(w, "sampling");
		if (can & MCP_CAN_SAMPLING_TOOLS)
			put_empty(w, "tools");
		json_write_object_end(w);
	}
	if (can & MCP_CAN_ROOTS) {
		json_put_object(w, "roots");
		if (more && more->roots_change)
			json_put_bool(w, "listChanged", true);
		json_write_object_end(w);
	}
	put_extensions(w, can & MCP_CAN_TASKS, more);
	json_write_object_end(w);
}

/* --- the requests --- */

enum { MEMBERS = 2 };

/* Required members of the parameters and of the result. */
static const struct kind {
	const char *method, *lack;
	unsigned needs;
	struct member {
		const char *name;
		enum json_type type;
	} params[MEMBERS];
} kinds[] = {
	[MCP_ASK_FORM] = { "elicitation/create",
			   "the client does not show forms (elicitation)",
			   MCP_CAN_FORM,
			   { { "message", JSON_STR }, { "requestedSchema", JSON_OBJECT } } },
	[MCP_ASK_URL] = { "elicitation/create",
			  "the client opens no addresses (elicitation.url)",
			  MCP_CAN_URL,
			  { { "message", JSON_STR }, { "url", JSON_STR } } },
	[MCP_ASK_SAMPLING] = { "sampling/createMessage",
			       "the client offers no such model (sampling)",
			       MCP_CAN_SAMPLING,
			       { { "messages", JSON_ARRAY }, { "maxTokens", JSON_INT } } },
	[MCP_ASK_ROOTS] = { "roots/list",
			    "the client names no folders (roots)",
			    MCP_CAN_ROOTS,
			    { { 0 } } },
};

unsigned mcp_question_needs(enum mcp_ask_kind kind, const struct json_val *params)
{
	bool tools = kind == MCP_ASK_SAMPLING &&
		     (json_get(params, "tools") || json_get(params, "toolChoice"));

	return kinds[kind].needs | (tools ? MCP_CAN_SAMPLING_TOOLS : 0u);
}

const char *mcp_question_method(enum mcp_ask_kind kind)
{
	return kinds[kind].method;
}

const char *mcp_question_lack(enum mcp_ask_kind kind)
{
	return kinds[kind].lack;
}

int mcp_fault_missing(struct rpc_fault *f, unsigned needs)
{
	enum { BAD_REQUEST = 400 };
	autobuf struct buf b = BUF_INIT(RPC_DATA_MAX / 2);
	struct json_writer w = json_writer(&b);
	struct err e;

	mcp_can_write(&w, needs, NULL);
	if (json_write_done(&w, &e) < 0)
		return mcp_fault_of(f, &e);
	rpc_fault_set(f, MCP_MISSING_CAPABILITY, "this needs what the client did not declare: %s",
		      b.p);
	f->status = BAD_REQUEST;
	f->reason = err_info(ERR_CLIENT_CANT);
	snprintf(f->data, sizeof(f->data), "{\"requiredCapabilities\":%s}", b.p);
	return -1;
}

int mcp_fault_of(struct rpc_fault *f, const struct err *e)
{
	rpc_fault_set(f, err_info(e->code)->jsonrpc, "%s", e->msg);
	f->reason = err_info(e->code);
	return -1;
}

int mcp_question_check(enum mcp_ask_kind kind, const struct json_val *params, struct err *e)
{
	const struct kind *k;

	if ((size_t)kind >= ARRAY_LEN(kinds))
		return err_set(e, ERR_BUG, "there is no question of kind %d", (int)kind);
	k = &kinds[kind];
	if (params && !is_object(params))
		return err_set(e, ERR_BUG, "params of %s take an object", k->method);
	for (size_t i = 0; i < MEMBERS && k->params[i].name; i++) {
		const struct member *m = &k->params[i];
		enum json_type is = json_type(json_get(params, m->name));

		if (is != m->type)
			return err_set(e, ERR_BUG, "%s: %s takes %s, not %s", k->method, m->name,
				       json_type_name(m->type), json_type_name(is));
	}
	return 0;
}

/* Before 2025-11-25 there was only one mode, without a name. elicitationId was new in 2025-11-25
 * and is in no later revision. */
void mcp_question_write(struct json_writer *w, enum mcp_ask_kind kind, const struct mcp_profile *p,
			const struct json_val *params, const char *id)
{
	bool elicits = kind == MCP_ASK_FORM || kind == MCP_ASK_URL;
	bool has_id = kind == MCP_ASK_URL && !p->modern;
	struct json_iter it = json_iter(params);

	if (elicits && p->url)
		json_put_text(w, "mode", kind == MCP_ASK_URL ? "url" : "form");
	if (has_id && !json_get(params, "elicitationId"))
		json_put_text(w, "elicitationId", id);
	while (json_next(&it)) {
		if (str_is(it.key, "_meta") || (elicits && str_is(it.key, "mode")) ||
		    (elicits && !has_id && str_is(it.key, "elicitationId")))
			continue;
		json_write_key_str(w, it.key);
		json_write_val(w, it.val);
	}
}

/* --- the answers --- */

static int takes(const char *where, const char *what, const struct json_val *v, struct err *e)
{
	return err_set(e, ERR_INVALID, "%s takes %s, not %s", where, what,
		       json_type_name(json_type(v)));
}

static bool is_one_of(struct str s, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (str_is(s, words[i]))
			return true;
	}
	return false;
}

/* A string, number, boolean or list of strings: forms have no other fields. */
static bool is_field(const struct json_val *v)
{
	struct json_iter it = json_iter(v);
	enum json_type type = json_type(v);

	if (type != JSON_ARRAY)
		return type == JSON_STR || type == JSON_INT || type == JSON_REAL ||
		       type == JSON_BOOL;
	while (json_next(&it)) {
		if (json_type(it.val) != JSON_STR)
			return false;
	}
	return true;
}

static int check_content(const struct json_val *requested, const struct json_val *content,
			 struct err *e)
{
	const struct schema_options formats = { .formats = true };
	AUTO(schema_free) struct schema *s = NULL;
	struct json_iter it = json_iter(content);

	if (!is_object(content))
		return takes("/content", "an object", content, e);
	while (json_next(&it)) {
		if (!is_field(it.val))
			return takes("/content", "strings, numbers, booleans and lists of strings",
				     it.val, e);
	}
	s = schema_new(requested, &formats, e);
	if (!s) {
		e->code = e->code == ERR_LIMIT ? ERR_LIMIT : ERR_BUG;
		return err_wrap(e, "requestedSchema");
	}
	return schema_check(s, content, NULL, e) < 0 ? err_wrap(e, "/content") : 0;
}

static int check_elicited(const struct json_val *requested, const struct json_val *v, struct err *e)
{
	static const char *const actions[] = { "accept", "decline", "cancel" };
	struct str action = json_str(json_get(v, "action"));

	if (!is_one_of(action, actions, ARRAY_LEN(actions)))
		return err_set(e, ERR_INVALID, "/action takes accept, decline or cancel");
	if (!requested || !str_is(action, "accept"))
		return 0;
	return check_content(requested, json_get(v, "content"), e);
}

static int check_block(const struct json_val *v, struct err *e)
{
	if (!is_object(v) || json_type(json_get(v, "type")) != JSON_STR)
		return takes("/content", "objects with a type", v, e);
	return 0;
}

static int check_sample(const struct json_val *v, struct err *e)
{
	static const char *const roles[] = { "user", "assistant" };
	const struct json_val *content = json_get(v, "content");
	struct json_iter it = json_iter(content);

	if (!is_one_of(json_str(json_get(v, "role")), roles, ARRAY_LEN(roles)))
		return err_set(e, ERR_INVALID, "/role takes user or assistant");
	if (json_type(json_get(v, "model")) != JSON_STR)
		return takes("/model", "a string", json_get(v, "model"), e);
	if (json_type(content) != JSON_ARRAY)
		return check_block(content, e);
	while (json_next(&it)) {
		if (check_block(it.val, e) < 0)
			return -1;
	}
	return 0;
}

static int check_roots(const struct json_val *v, struct err *e)
{
	const struct json_val *roots = json_get(v, "roots");
	struct json_iter it = json_iter(roots);

	if (json_type(roots) != JSON_ARRAY)
		return takes("/roots", "an array", roots, e);
	while (json_next(&it)) {
		if (!str_starts(json_str(json_get(it.val, "uri")), "file://"))
			return err_set(e, ERR_INVALID, "/roots/%zu/uri takes a file: URI",
				       it.index);
	}
	return 0;
}

int mcp_answer_check(enum mcp_ask_kind kind, const struct json_val *params,
		     const struct json_val *v, struct err *e)
{
	if (!is_object(v))
		return takes("the answer", "an object", v, e);
	switch (kind) {
	case MCP_ASK_FORM:
		return check_elicited(json_get(params, "requestedSchema"), v, e);
	case MCP_ASK_URL:
		return check_elicited(NULL, v, e);
	case MCP_ASK_SAMPLING:
		return check_sample(v, e);
	case MCP_ASK_ROOTS:
		return check_roots(v, e);
	}
	return err_set(e, ERR_BUG, "there is no question of kind %d", (int)kind);
}
