/* HTTP headers beside a modern message: Mcp-Name and Mcp-Param-*. MCP 2026-07-28,
 * basic/transports/streamable-http. */
#include "mcp/client/head.h"

#include <stdlib.h>

#include "mcp/client/internal.h"
#include "mcp/message/header_text.h"

enum { VALUE_MAX = MCP_HEADER_TEXT_MAX + 64 };

static void free_const(const void *p)
{
	free((void *)(uintptr_t)p);
}

void mcp_head_release(struct mcp_client_out *m)
{
	for (size_t i = 0; i < m->params_n; i++) {
		free(m->params[i].name);
		free(m->params[i].value);
	}
	free_const(m->params);
	free_const(m->name);
	m->params = NULL;
	m->params_n = 0;
	m->name = NULL;
}

static bool is_headed(const struct mcp_client *c)
{
	return c->profile->modern && c->t->streams;
}

int mcp_head_name(struct mcp_client_out *m, const struct mcp_client *c, struct str name,
		  struct err *e)
{
	if (!is_headed(c) || !name.p)
		return 0;
	m->name = mcp_header_encode(name, e);
	return m->name ? 0 : err_wrap(e, "Mcp-Name");
}

/* The value as text. Anything but a string, number or boolean can't be encoded, and is left for the
 * server to refuse. */
static int write_value(struct buf *to, const struct json_val *v, struct err *e)
{
	struct str s = json_str(v);
	struct json_writer w = json_writer(to);
	int64_t i;

	if (s.p)
		return buf_add(to, s.p, s.n, e);
	if (json_int64(v, &i)) /* 2.0 is an integer, and must be written as one */
		json_write_int(&w, i);
	else
		json_write_val(&w, v);
	return json_write_done(&w, e);
}

static int add_param(struct mcp_client_param *to, const struct mcp_param *p,
		     const struct json_val *v, struct err *e)
{
	autobuf struct buf text = BUF_INIT(VALUE_MAX);

	to->value = write_value(&text, v, e) < 0 ? NULL : mcp_header_encode(buf_str(&text), e);
	if (!to->value)
		return err_wrap(e, "Mcp-Param-%.*s", STR_ARG(p->name));
	to->name = strndup(p->name.p, p->name.n);
	if (to->name)
		return 0;
	free(take_ptr(to->value));
	return err_set(e, ERR_LIMIT, "out of memory");
}

int mcp_head_params(struct mcp_client_out *m, const struct mcp_params *known,
		    const struct json_val *arguments, struct err *e)
{
	struct mcp_client_param *to;

	if (!known || known->n == 0)
		return 0;
	to = calloc(known->n, sizeof(*to));
	if (!to)
		return err_set(e, ERR_LIMIT, "out of memory");
	m->params = to;
	for (size_t i = 0; i < known->n; i++) {
		const struct json_val *v = mcp_param_value(&known->p[i], arguments);

		if (!v || json_type(v) == JSON_OBJECT || json_type(v) == JSON_ARRAY)
			continue;
		if (add_param(&to[m->params_n], &known->p[i], v, e) < 0)
			return -1;
		m->params_n++;
	}
	return 0;
}

int mcp_head_fill(struct mcp_client_out *m, const struct mcp_client *c, const char *method,
		  const struct json_val *params, struct err *e)
{
	const struct mcp_method *row = mcp_method_find(str_of(method));

	if (!is_headed(c) || !row || !row->named)
		return 0;
	if (mcp_head_name(m, c, json_str(json_get(params, row->named)), e) < 0)
		return -1;
	if (strcmp(method, "tools/call") != 0)
		return 0;
	return mcp_head_params(m, mcp_tool_params(c, json_str(json_get(params, "name"))),
			       json_get(params, "arguments"), e);
}
