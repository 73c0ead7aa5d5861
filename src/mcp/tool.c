/* Tools, checked and compiled once: what of their schemas is needed at every call. */
#include <stdlib.h>

#include "mcp/core.h"
#include "mcp/tool.h"

enum { OUTPUT_DEPTH = 512 };

static bool is_name(const char *name)
{
	size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				"0123456789_.-");

	return n >= 1 && n <= 64 && name[n] == '\0';
}

/* Parses text, which is a JSON object on one line. */
static struct json_doc *parse(const char *what, const char *text, struct err *e)
{
	AUTO(json_free) struct json_doc *d = json_parse(str_of(text), NULL, e);

	if (!d) {
		err_wrap(e, "%s", what);
		return NULL;
	}
	if (json_type(json_root(d)) != JSON_OBJECT || strchr(text, '\n')) {
		err_set(e, ERR_BUG, "%s is not a JSON object on one line", what);
		return NULL;
	}
	return take_ptr(d);
}

/* --- x-mcp-header --- */

static bool is_token(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if ((c | 32) >= 'a' && (c | 32) <= 'z')
			continue;
		if ((c < '0' || c > '9') && (c == '\0' || !strchr("!#$%&'*+-.^_`|~", c)))
			return false;
	}
	return s.n > 0;
}

static bool same_name(struct str a, struct str b)
{
	return a.n == b.n && (a.n == 0 || strncasecmp(a.p, b.p, a.n) == 0);
}

static int add_param(struct mcp_prepared *p, const struct mcp_path *at,
		     const struct json_val *schema, struct err *e)
{
	const struct json_val *type = json_get(schema, "type");
	struct str name = json_str(json_get(schema, "x-mcp-header"));
	struct mcp_param *param;

	if (!is_token(name))
		return err_set(e, ERR_BUG, "x-mcp-header takes a token of RFC 9110");
	if (!str_is(json_str(type), "string") && !str_is(json_str(type), "integer") &&
	    !str_is(json_str(type), "boolean"))
		return err_set(e, ERR_BUG,
			       "x-mcp-header \"%.*s\" takes a string, integer or boolean",
			       STR_ARG(name));
	for (size_t i = 0; i < p->n; i++) {
		if (same_name(p->params[i].name, name))
			return err_set(e, ERR_BUG, "x-mcp-header \"%.*s\" stands twice",
				       STR_ARG(name));
	}
	if (p->n == MCP_PARAMS_MAX)
		return err_set(e, ERR_BUG, "more than %d x-mcp-header", MCP_PARAMS_MAX);
	param = realloc(p->params, (p->n + 1) * sizeof(*param));
	if (!param)
		return err_set(e, ERR_LIMIT, "out of memory");
	p->params = param;
	param = &p->params[p->n];
	*param = (struct mcp_param){ .name = name };
	for (; at; at = at->up) {
		if (param->depth == MCP_PARAM_DEPTH)
			return err_set(e, ERR_BUG, "x-mcp-header more than %d objects deep",
				       MCP_PARAM_DEPTH);
		memmove(&param->path[1], &param->path[0], param->depth * sizeof(param->path[0]));
		param->path[0] = at->key;
		param->depth++;
	}
	p->n++;
	return 0;
}

/* An annotation may stand on a property of a property of … the root. Anywhere else it makes the tool
 * unfit; `reachable` says which of the two a place is. What stands under a keyword that holds data
 * (default, const, enum, examples) is none. */
static int find_params(struct mcp_prepared *p, const struct mcp_path *at,
		       const struct json_val *schema, bool reachable, struct err *e)
{
	static const char *const data[] = { "default", "const", "enum", "examples" };
	struct json_iter it = json_iter(schema);

	if (json_type(schema) == JSON_OBJECT && json_get(schema, "x-mcp-header")) {
		if (!reachable || !at)
			return err_set(e, ERR_BUG,
				       "x-mcp-header stands where it can't be reached "
				       "by properties alone");
		if (add_param(p, at, schema, e) < 0)
			return -1;
	}
	while (json_next(&it)) {
		bool properties = it.key.p && str_is(it.key, "properties");
		struct json_iter members = json_iter(it.val);
		bool is_data = false;

		for (size_t i = 0; it.key.p && i < ARRAY_LEN(data); i++)
			is_data |= str_is(it.key, data[i]);
		if (is_data)
			continue;
		if (!properties || json_type(it.val) != JSON_OBJECT) {
			if (json_len(it.val) > 0 && find_params(p, at, it.val, false, e) < 0)
				return -1;
			continue;
		}
		while (json_next(&members)) {
			const struct mcp_path below = { .up = at, .key = members.key };

			if (find_params(p, &below, members.val, reachable, e) < 0)
				return -1;
		}
	}
	return 0;
}

/* --- tools --- */

static void prepared_free(struct mcp_prepared *p)
{
	if (!p)
		return;
	json_free(p->input);
	free(p->params);
	schema_free(p->output);
	free(p);
}
AUTO_DEFINE(prepared_free, struct mcp_prepared)

static int prepare_output(const struct mcp_tool *t, struct mcp_prepared *p, struct err *e)
{
	AUTO(json_free) struct json_doc *d = NULL;

	if (!t->output_schema)
		return 0;
	d = parse("output_schema", t->output_schema, e);
	if (!d)
		return -1;
	p->object_output = str_is(json_str(json_get(json_root(d), "type")), "object");
	p->output = schema_parse(str_of(t->output_schema), NULL, e);
	return p->output ? 0 : err_wrap(e, "output_schema");
}

static int check_meta(const struct mcp_tool *t, struct err *e)
{
	AUTO(json_free) struct json_doc *d = NULL;

	if (!t->meta)
		return 0;
	d = parse("meta", t->meta, e);
	return d ? 0 : -1;
}

static struct mcp_prepared *prepare(const struct mcp_tool *t, struct err *e)
{
	AUTO(prepared_free) struct mcp_prepared *p = calloc(1, sizeof(*p));

	if (!p) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	p->input = parse("input_schema", t->input_schema, e);
	if (!p->input)
		return NULL;
	if (!str_is(json_str(json_get(json_root(p->input), "type")), "object")) {
		err_set(e, ERR_BUG, "input_schema is not of type object");
		return NULL;
	}
	if (find_params(p, NULL, json_root(p->input), true, e) < 0 || prepare_output(t, p, e) < 0 ||
	    check_meta(t, e) < 0 || mcp_icons_check(&t->icons, e) < 0)
		return NULL;
	if (p->n == 0)
		json_free(take_ptr(p->input));
	return take_ptr(p);
}

int mcp_tool_prepare(struct mcp_tool *t, struct err *e)
{
	if (!t->name || !is_name(t->name))
		return err_set(e, ERR_BUG, "a tool's name takes 1 to 64 of A-Z a-z 0-9 _ . -");
	if (!t->description || !*t->description || !t->input_schema)
		return err_set(e, ERR_BUG, "%s: no description or no input_schema", t->name);
	if (t->prepared)
		return 0;
	t->prepared = prepare(t, e);
	if (!t->prepared) {
		if (e->code != ERR_LIMIT)
			e->code = ERR_BUG;
		return err_wrap(e, "%s", t->name);
	}
	return 0;
}

void mcp_tool_release(struct mcp_tool *t)
{
	prepared_free(take_ptr(t->prepared));
}

bool mcp_tool_is_structured(const struct mcp_tool *t, const struct mcp_profile *p)
{
	if (!t->output_schema)
		return false;
	return p->any_structured || (p->structured && t->prepared && t->prepared->object_output);
}

int mcp_tool_check_output(const struct mcp_tool *t, struct str structured, struct err *e)
{
	/* as large as an answer may be, which is more than a message of a client */
	const struct json_options o = { .bytes = structured.n + 1,
					.values = structured.n + 1,
					.depth = OUTPUT_DEPTH };
	AUTO(json_free) struct json_doc *d = json_parse(structured, &o, e);
	int rc = d ? schema_check(t->prepared->output, json_root(d), NULL, e) : -1;

	if (rc == 0)
		return 0;
	if (e->code == ERR_INVALID)
		e->code = ERR_BUG;
	return err_wrap(e, "%s gave what its output schema refuses", t->name);
}
