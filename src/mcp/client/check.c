/*
 * Checks results: their kind must be possible for the request, the members that the method requires
 * must be there, and the tool's output schema must match. Unknown members are kept.
 */
#include "mcp/client/internal.h"

static bool is_object(const struct json_val *v)
{
	return json_type(v) == JSON_OBJECT;
}

static bool has_text(const struct json_val *v, const char *key)
{
	return json_type(json_get(v, key)) == JSON_STR;
}

/* --- its kind --- */

static const struct {
	const char *method;
	bool asks; /* may be input_required */
	bool tasks; /* may become a task */
} kinds[] = {
	{ "tools/call", true, true },
	{ "resources/read", true, false },
	{ "prompts/get", true, false },
};

static bool may(const struct mcp_pending *p, bool task)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (strcmp(p->method, kinds[i].method) == 0)
			return task ? kinds[i].tasks : kinds[i].asks;
	}
	return false;
}

static int modern_type(const struct mcp_pending *p, const struct json_val *type, struct err *e)
{
	char room[MCP_SAID_MAX];

	if (!type || str_is(json_str(type), "complete"))
		return MCP_RESULT_COMPLETE;
	if (str_is(json_str(type), "input_required") && may(p, false))
		return MCP_RESULT_INPUT;
	if (str_is(json_str(type), "task") && may(p, true) && (p->client->can & MCP_CAN_TASKS))
		return MCP_RESULT_TASK;
	if (json_type(type) != JSON_STR)
		return err_set(e, ERR_INVALID, "resultType is %s", json_type_name(json_type(type)));
	return err_set(e, ERR_INVALID, "the result of %s is of the type \"%.*s\"", p->method,
		       STR_ARG(mcp_said(json_str(type), room)));
}

int mcp_result_type(const struct mcp_pending *p, const struct json_val *result, struct err *e)
{
	if (p->client->profile->modern)
		return modern_type(p, json_get(result, "resultType"), e);
	if (p->wants_task && is_object(json_get(result, "task")))
		return MCP_RESULT_TASK;
	return MCP_RESULT_COMPLETE;
}

/* --- its members --- */

static bool is_content(const struct json_val *v)
{
	return is_object(v) && has_text(v, "type");
}

static bool is_contents(const struct json_val *v)
{
	return has_text(v, "uri") && (has_text(v, "text") || has_text(v, "blob"));
}

static bool is_message(const struct json_val *v)
{
	return has_text(v, "role") && is_content(json_get(v, "content"));
}

static bool is_string(const struct json_val *v)
{
	return json_type(v) == JSON_STR;
}

/* The main member of a method's result. Some servers send null for an empty array. */
static const struct shape {
	const char *method, *member;
	bool optional;
	bool (*fits)(const struct json_val *v); /* checks each element; NULL: any value */
	const char *takes;
} shapes[] = {
	/* a result may be structured only; servers then leave the rest out, although they must
	 * not */
	{ "tools/call", "content", true, is_content, "objects with a type" },
	{ "resources/read", "contents", false, is_contents,
	  "objects with a uri, and a text or a blob" },
	{ "prompts/get", "messages", false, is_message, "objects with a role and content" },
	{ "tools/list", "tools", false, NULL, NULL },
	{ "resources/list", "resources", false, NULL, NULL },
	{ "resources/templates/list", "resourceTemplates", false, NULL, NULL },
	{ "prompts/list", "prompts", false, NULL, NULL },
	{ "tasks/list", "tasks", false, NULL, NULL },
	{ "server/discover", "supportedVersions", false, is_string, "strings" },
};

static int check_array(const struct json_val *v, const struct shape *s, struct err *e)
{
	struct json_iter it = json_iter(v);

	if ((!v && s->optional) || json_type(v) == JSON_NULL)
		return 0;
	if (json_type(v) != JSON_ARRAY)
		return err_set(e, ERR_INVALID, "the result of %s: %s takes an array, not %s",
			       s->method, s->member, json_type_name(json_type(v)));
	while (s->fits && json_next(&it)) {
		if (!s->fits(it.val))
			return err_set(e, ERR_INVALID, "the result of %s: %s/%zu: it takes %s",
				       s->method, s->member, it.index, s->takes);
	}
	return 0;
}

static int check_call(struct mcp_pending *p, const struct json_val *result, struct err *e)
{
	const struct json_val *is_error = json_get(result, "isError");

	if (is_error && json_type(is_error) != JSON_BOOL && json_type(is_error) != JSON_NULL)
		return err_set(e, ERR_INVALID, "the result of tools/call: isError takes a boolean");
	return mcp_tool_check_result(p->client, json_str(json_get(json_root(p->params), "name")),
				     result, e);
}

int mcp_result_check(struct mcp_pending *p, const struct json_val *result, struct err *e)
{
	static const struct shape values = { "completion/complete", "values", false, is_string,
					     "strings" };

	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		const struct shape *s = &shapes[i];

		if (strcmp(p->method, s->method) == 0 &&
		    check_array(json_get(result, s->member), s, e) < 0)
			return -1;
	}
	if (strcmp(p->method, "completion/complete") == 0)
		return check_array(json_get(json_get(result, "completion"), "values"), &values, e);
	if (strcmp(p->method, "tools/call") == 0 && p->params)
		return check_call(p, result, e);
	return 0;
}
