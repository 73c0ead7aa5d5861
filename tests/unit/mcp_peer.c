#include "mcp_peer.h"

#include <stdlib.h>

#include "test.h"

enum { TEXT_MAX = 1 << 16, TEXTS = 32 };

uint64_t peer_clock = 1000000;

/* --- the server --- */

static uint64_t now_ms(void)
{
	return peer_clock;
}

static struct str principal(void *owner, void *data)
{
	return str_of(((const struct peer *)data)->principal);
}

struct mcp_server *peer_server(const struct mcp_server_options *o)
{
	struct mcp_server_options all = *o;
	struct mcp_server *srv;
	struct err e;

	all.name = "peer";
	all.version = "1";
	all.now_ms = now_ms;
	all.wall_ms = now_ms;
	all.principal = principal;
	srv = mcp_server_new(&all, &e);
	if (!srv)
		print_error("%s\n", e.msg);
	return srv;
}

/* --- the session --- */

static void send(void *transport, void *stream, const struct mcp_out *m)
{
	struct peer *p = transport;
	struct peer_sent *to = &p->sent[p->sent_n];
	struct err e;

	assert_in_range(p->sent_n, 0, PEER_SENT - 1);
	*to = (struct peer_sent){ .kind = m->kind, .status = m->status, .stream = stream };
	to->doc = json_parse(m->text, NULL, &e);
	p->sent_n += to->doc != NULL;
}

static const struct mcp_transport transport = { .send = send };

static bool init(struct peer *p, struct mcp_server *srv, const char *name, enum mcp_road road)
{
	*p = (struct peer){ .server = srv, .principal = name, .caps = "{}" };
	p->session = mcp_session_new(srv, &transport, p, road, p);
	return p->session != NULL;
}

bool peer_init(struct peer *p, struct mcp_server *srv, const char *name)
{
	return init(p, srv, name, MCP_ROAD_LINES);
}

bool peer_init_http(struct peer *p, struct mcp_server *srv, const char *name)
{
	return init(p, srv, name, MCP_ROAD_HTTP);
}

void peer_fini(struct peer *p)
{
	mcp_session_close(take_ptr(p->session));
	while (p->sent_n > 0)
		json_free(p->sent[--p->sent_n].doc);
}

static PRINTF_LIKE(1, 0) char *print(const char *fmt, va_list ap)
{
	static char texts[TEXTS][TEXT_MAX];
	static unsigned next;
	char *to = texts[next++ % TEXTS];

	assert_in_range(vsnprintf(to, TEXT_MAX, fmt, ap), 0, TEXT_MAX - 1);
	return to;
}

void peer_say(struct peer *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	mcp_session_message(p->session, str_of(print(fmt, ap)));
	va_end(ap);
}

void peer_initialize(struct peer *p, const char *version, const char *caps)
{
	peer_say(p,
		 "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
		 "\"protocolVersion\":\"%s\",\"capabilities\":%s,"
		 "\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}}",
		 version, caps);
	assert_string_equal(text_at(peer_response(p, 0), "result|protocolVersion"), version);
	peer_say(p, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
}

const struct json_val *peer_modern(struct peer *p, const char *method, const char *fmt, ...)
{
	const char *params;
	va_list ap;

	va_start(ap, fmt);
	params = print(fmt, ap);
	va_end(ap);
	p->ids++;
	peer_say(p,
		 "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"%s\",\"params\":{%s%s\"_meta\":{"
		 "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
		 "\"io.modelcontextprotocol/clientCapabilities\":%s}}}",
		 p->ids, method, params, *params ? "," : "", p->caps);
	return peer_response(p, p->ids);
}

const struct json_val *peer_legacy(struct peer *p, const char *method, const char *fmt, ...)
{
	va_list ap;

	p->ids++;
	va_start(ap, fmt);
	peer_say(p, "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"%s\",\"params\":{%s}}", p->ids,
		 method, print(fmt, ap));
	va_end(ap);
	return peer_response(p, p->ids);
}

/* --- what was sent --- */

const struct json_val *peer_response(const struct peer *p, unsigned id)
{
	for (unsigned i = p->sent_n; i-- > 0;) {
		const struct json_val *root = json_root(p->sent[i].doc);

		if (p->sent[i].kind == MCP_OUT_RESPONSE && int_at(root, "id") == id)
			return root;
	}
	return NULL;
}

const struct json_val *peer_sent(const struct peer *p, const char *method, unsigned n)
{
	for (unsigned i = p->sent_n; i-- > 0;) {
		const struct json_val *root = json_root(p->sent[i].doc);

		if (str_is(json_str(json_get(root, "method")), method) && n-- == 0)
			return root;
	}
	return NULL;
}

unsigned peer_count(const struct peer *p, const char *method)
{
	unsigned n = 0;

	while (peer_sent(p, method, n))
		n++;
	return n;
}

const struct json_val *at(const struct json_val *v, const char *path)
{
	while (v && *path) {
		size_t n = strcspn(path, "|");

		v = json_get_str(v, (struct str){ path, n });
		path += n + (path[n] == '|');
	}
	return v;
}

const char *text_at(const struct json_val *v, const char *path)
{
	static char texts[TEXTS][TEXT_MAX];
	static unsigned next;
	struct str s = json_str(at(v, path));
	char *to = texts[next++ % TEXTS];

	snprintf(to, TEXT_MAX, "%.*s", STR_ARG(s));
	return to;
}

int64_t int_at(const struct json_val *v, const char *path)
{
	int64_t i;

	return json_int64(at(v, path), &i) ? i : INT64_MIN;
}

const char *content_of(const struct json_val *response)
{
	struct json_iter it = json_iter(at(response, "result|content"));

	return json_next(&it) ? text_at(it.val, "text") : "";
}
