/* Reads the header fields that Streamable HTTP uses, in one pass. */
#include "base/mem.h"
#include "http/message/head.h"
#include "mcp/transport/internal.h"

static const struct {
	struct str name;
	size_t at;
} once[] = {
	{ STR_LIT("Mcp-Session-Id"), offsetof(struct mcp_head, session) },
	{ STR_LIT("MCP-Protocol-Version"), offsetof(struct mcp_head, version) },
	{ STR_LIT("Mcp-Method"), offsetof(struct mcp_head, method) },
	{ STR_LIT("Mcp-Name"), offsetof(struct mcp_head, name) },
	{ STR_LIT("Last-Event-ID"), offsetof(struct mcp_head, last) },
};

static void take_field(void *data, struct str name, struct str value)
{
	struct mcp_head *head = data;

	for (size_t i = 0; i < ARRAY_LEN(once); i++) {
		struct str *to = (struct str *)((char *)head + once[i].at);

		if (!http_same(name, once[i].name))
			continue;
		head->repeated |= to->p != NULL;
		*to = value;
		return;
	}
	if (http_same(name, STR_LIT("Accept")) && head->accepts++ == 0)
		head->accept = value;
}

void mcp_head_read(struct http_request *q, struct mcp_head *ret)
{
	*ret = (struct mcp_head){ .q = q };
	http_request_each_header(q, take_field, ret);
}

/* --- Accept --- */

/* Cuts the part before the first `at` off *s. */
static struct str http_head_cut(struct str *s, char at)
{
	const char *end = memchr(s->p, at, s->n);
	struct str front = { s->p, end ? (size_t)(end - s->p) : s->n };
	size_t used = front.n + (end != NULL);

	s->p += used;
	s->n -= used;
	return str_trim(front);
}

/* q=0, q=0.0 … refuse a type. */
static bool is_refused(struct str parameters)
{
	while (parameters.n > 0) {
		struct str p = http_head_cut(&parameters, ';');

		if (p.n >= 3 && (p.p[0] == 'q' || p.p[0] == 'Q') && p.p[1] == '=')
			return strspn(p.p + 2, "0.") >= p.n - 2;
	}
	return false;
}

static const struct {
	struct str name;
	unsigned means;
} ranges[] = {
	{ STR_LIT("application/json"), MCP_TAKES_JSON },
	{ STR_LIT("text/event-stream"), MCP_TAKES_EVENTS },
	{ STR_LIT("*/*"), MCP_TAKES_JSON | MCP_TAKES_EVENTS },
	{ STR_LIT("application/*"), MCP_TAKES_JSON },
	{ STR_LIT("text/*"), MCP_TAKES_EVENTS },
};

/* Only the first of several fields was kept, so several count as accepting everything. */
unsigned mcp_head_takes(const struct mcp_head *head)
{
	struct str all = head->accept;
	unsigned means = head->accepts > 1 ? MCP_TAKES_JSON | MCP_TAKES_EVENTS : 0;

	if (str_is(all, "application/json, text/event-stream")) /* as the specification writes it */
		return MCP_TAKES_JSON | MCP_TAKES_EVENTS;
	while (all.n > 0) {
		struct str range = http_head_cut(&all, ',');
		struct str name = range.n > 0 ? http_head_cut(&range, ';') : range;

		for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
			if (http_same(name, ranges[i].name) && !is_refused(range))
				means |= ranges[i].means;
		}
	}
	return means;
}
