#include "mcp/message/param.h"

#include <stdlib.h>
#include <strings.h>

/* The place of a property in a schema, innermost first. */
struct path {
	const struct path *up;
	struct str key;
};

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

static int set_path(struct mcp_param *p, const struct path *at, struct err *e)
{
	for (; at; at = at->up) {
		if (p->depth == MCP_PARAM_DEPTH)
			return err_set(e, ERR_BUG, "x-mcp-header more than %d objects deep",
				       MCP_PARAM_DEPTH);
		memmove(&p->path[1], &p->path[0], p->depth * sizeof(p->path[0]));
		p->path[0] = at->key;
		p->depth++;
	}
	return 0;
}

static int param_check(const struct mcp_params *all, struct str name, struct str type,
		       struct err *e)
{
	if (!is_token(name))
		return err_set(e, ERR_BUG, "x-mcp-header takes a token of RFC 9110");
	if (!str_is(type, "string") && !str_is(type, "integer") && !str_is(type, "boolean"))
		return err_set(e, ERR_BUG,
			       "x-mcp-header \"%.*s\" takes a string, integer or boolean",
			       STR_ARG(name));
	for (size_t i = 0; i < all->n; i++) {
		if (same_name(all->p[i].name, name))
			return err_set(e, ERR_BUG, "x-mcp-header \"%.*s\" stands twice",
				       STR_ARG(name));
	}
	if (all->n == MCP_PARAMS_MAX)
		return err_set(e, ERR_BUG, "more than %d x-mcp-header", MCP_PARAMS_MAX);
	return 0;
}

static int param_add(struct mcp_params *all, const struct path *at, const struct json_val *schema,
		     struct err *e)
{
	struct str name = json_str(json_get(schema, "x-mcp-header"));
	struct mcp_param *more;

	if (param_check(all, name, json_str(json_get(schema, "type")), e) < 0)
		return -1;
	more = realloc(all->p, (all->n + 1) * sizeof(*more));
	if (!more)
		return err_set(e, ERR_LIMIT, "out of memory");
	all->p = more;
	more[all->n] = (struct mcp_param){ .name = name };
	if (set_path(&more[all->n], at, e) < 0)
		return -1;
	all->n++;
	return 0;
}

/* Keywords that hold data: x-mcp-header below them is no annotation. */
static bool is_data(struct str key)
{
	static const char *const data[] = { "default", "const", "enum", "examples" };

	for (size_t i = 0; key.p && i < ARRAY_LEN(data); i++) {
		if (str_is(key, data[i]))
			return true;
	}
	return false;
}

/* An annotation may only be on a property of a property of … the root. Anywhere else it makes the
 * tool invalid. `reachable` tells whether this place is allowed. */
static int param_find(struct mcp_params *all, const struct path *at, const struct json_val *schema,
		      bool reachable, struct err *e)
{
	struct json_iter it = json_iter(schema);

	if (json_type(schema) == JSON_OBJECT && json_get(schema, "x-mcp-header")) {
		if (!reachable || !at)
			return err_set(e, ERR_BUG,
				       "x-mcp-header stands where it can't be reached "
				       "by properties alone");
		if (param_add(all, at, schema, e) < 0)
			return -1;
	}
	while (json_next(&it)) {
		bool properties = it.key.p && str_is(it.key, "properties");
		struct json_iter members = json_iter(it.val);

		if (is_data(it.key))
			continue;
		if (!properties || json_type(it.val) != JSON_OBJECT) {
			if (json_len(it.val) > 0 && param_find(all, at, it.val, false, e) < 0)
				return -1;
			continue;
		}
		while (json_next(&members)) {
			const struct path below = { .up = at, .key = members.key };

			if (param_find(all, &below, members.val, reachable, e) < 0)
				return -1;
		}
	}
	return 0;
}

int mcp_params_find(const struct json_val *schema, struct mcp_params *ret, struct err *e)
{
	*ret = (struct mcp_params){ .n = 0 };
	return param_find(ret, NULL, schema, true, e);
}

void mcp_params_fini(struct mcp_params *p)
{
	free(p->p);
	*p = (struct mcp_params){ .n = 0 };
}

const struct json_val *mcp_param_value(const struct mcp_param *p, const struct json_val *args)
{
	for (size_t i = 0; i < p->depth && args; i++)
		args = json_get_str(args, p->path[i]);
	return json_type(args) == JSON_NULL ? NULL : args;
}
