/*
 * HTTP headers that repeat values of a modern message: Mcp-Method, Mcp-Name, Mcp-Param-*. Each must
 * equal the body's value, so that what is routed by headers is what is run. Integers are compared
 * as numbers.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "mcp/server/internal.h"
#include "mcp/message/header_text.h"

enum { VALUE_MAX = 64 << 10, NUMBER_MAX = 40, BAD_REQUEST = 400 };

static const double safe = 9007199254740991.0; /* 2^53 - 1: JavaScript's largest exact integer */

static int mismatch(struct rpc_fault *f)
{
	f->code = MCP_HEADER_MISMATCH;
	f->reason = err_info(ERR_MESSAGE);
	f->status = BAD_REQUEST;
	return -1;
}

/* --- Mcp-Method and Mcp-Name --- */

static int check_method(struct str head, struct str body, struct rpc_fault *f)
{
	if (!head.p)
		rpc_fault_set(f, 0, "the header Mcp-Method is missing");
	else if (!str_eq(head, body))
		rpc_fault_set(f, 0, "Mcp-Method is \"%.*s\" and the message says \"%.*s\"",
			      STR_ARG(mcp_shown(head)), STR_ARG(mcp_shown(body)));
	else
		return 0;
	return mismatch(f);
}

static int check_name(struct str head, const char *member, struct str body, struct rpc_fault *f)
{
	autobuf struct buf room = BUF_INIT(VALUE_MAX);
	struct str value;

	if (!head.p)
		rpc_fault_set(f, 0, "the header Mcp-Name is missing");
	else if (!mcp_header_decode(head, &room, &value))
		rpc_fault_set(f, 0, "Mcp-Name is no text: encode it as =?base64?…?=");
	else if (!str_eq(value, body))
		rpc_fault_set(f, 0, "Mcp-Name is \"%.*s\" and params.%s is \"%.*s\"",
			      STR_ARG(mcp_shown(value)), member, STR_ARG(mcp_shown(body)));
	else
		return 0;
	return mismatch(f);
}

int mcp_header_check(const struct mcp_http_head *head, const struct rpc_msg *m, struct rpc_fault *f)
{
	const struct mcp_method *method = mcp_method_find(m->method);
	const struct json_val *name;

	if (check_method(head->method, m->method, f) < 0)
		return -1;
	if (!method || !method->named)
		return 0;
	name = json_get(m->params, method->named);
	/* a missing or invalid name is left for the method to refuse */
	if (json_type(name) != JSON_STR)
		return 0;
	return check_name(head->name, method->named, json_str(name), f);
}

/* --- Mcp-Param-* --- */

/* Parses a decimal number, without forms that only strtod() accepts (inf, nan, 0x). */
static bool read_number(struct str s, double *ret)
{
	char text[NUMBER_MAX + 1];
	char *end;

	if (s.n == 0 || s.n > NUMBER_MAX)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		if (!strchr("0123456789+-.eE", s.p[i]) || s.p[i] == '\0')
			return false;
	}
	memcpy(text, s.p, s.n);
	text[s.n] = '\0';
	*ret = strtod(text, &end);
	return *end == '\0' && isfinite(*ret);
}

static bool same(struct str head, const struct json_val *body)
{
	double a, b = json_real(body);

	switch (json_type(body)) {
	case JSON_STR:
		return str_eq(head, json_str(body));
	case JSON_BOOL:
		return str_is(head, json_bool(body) ? "true" : "false");
	case JSON_INT:
	case JSON_REAL:
		return read_number(head, &a) && fabs(a) <= safe && fabs(b) <= safe && a == b;
	default:
		return false;
	}
}

static int check_param(const struct mcp_http_head *head, const struct mcp_param *p,
		       const struct json_val *body, struct rpc_fault *f)
{
	autobuf struct buf room = BUF_INIT(VALUE_MAX);
	struct str text = head->param ? head->param(head->data, p->name) : STR_NONE;
	struct str value;

	if (!text.p && !body)
		return 0;
	if (!text.p)
		rpc_fault_set(f, 0, "the header Mcp-Param-%.*s is missing", STR_ARG(p->name));
	else if (!body)
		rpc_fault_set(f, 0, "Mcp-Param-%.*s is there and its argument is not",
			      STR_ARG(p->name));
	else if (!mcp_header_decode(text, &room, &value))
		rpc_fault_set(f, 0, "Mcp-Param-%.*s is no text: encode it as =?base64?…?=",
			      STR_ARG(p->name));
	else if (!same(value, body))
		rpc_fault_set(f, 0, "Mcp-Param-%.*s is not what its argument is", STR_ARG(p->name));
	else
		return 0;
	return mismatch(f);
}

int mcp_header_check_params(const struct mcp_http_head *head, const struct mcp_tool *t,
			    const struct json_val *args, struct rpc_fault *f)
{
	for (size_t i = 0; head && i < t->prepared->params.n; i++) {
		const struct mcp_param *p = &t->prepared->params.p[i];

		if (check_param(head, p, mcp_param_value(p, args), f) < 0)
			return -1;
	}
	return 0;
}
