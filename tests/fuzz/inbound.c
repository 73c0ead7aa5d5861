/*
 * Messages with HTTP's head, each as a POST of its own, and again in one session of lines: a server
 * with one of everything (tests/unit/mcp_full.h). An input is blocks with an empty line between
 * them; a block is lines of head ("v VERSION", "m METHOD", "n NAME", "p NAME=VALUE", "g": the
 * client goes away) and then the message. Whatever comes, each answer is a JSON-RPC message with a
 * status of the ladder, and a stream that is answered is done.
 *
 */
#include <string.h>
#include <strings.h>

#include "../unit/mcp_full.h"
#include "base/buf.h"
#include "fuzz.h"

enum { PARAMS_MAX = 8 };

struct post {
	struct mcp_http_head head;
	struct str params[PARAMS_MAX];
	size_t params_n;
	bool goes; /* the client closes its stream when it has sent */
	unsigned answers, done;
	bool has_stream;
};

static struct str param(void *data, struct str name)
{
	const struct post *p = data;

	for (size_t i = 0; i < p->params_n; i++) {
		struct str at = p->params[i];

		if (at.n > name.n && at.p[name.n] == '=' && strncasecmp(at.p, name.p, name.n) == 0)
			return (struct str){ at.p + name.n + 1, at.n - name.n - 1 };
	}
	return STR_NONE;
}

static bool is_status(int status)
{
	return status == 200 || status == 400 || status == 404 || status == 413 || status == 500;
}

static void check_one(const struct json_val *v, enum mcp_out_kind kind)
{
	bool is_response = kind == MCP_OUT_RESPONSE;

	MUST(str_is(json_str(json_get(v, "jsonrpc")), "2.0"));
	MUST(is_response == !json_get(v, "method"));
	MUST(!is_response || !json_get(v, "result") != !json_get(v, "error"));
	MUST(kind != MCP_OUT_REQUEST || json_get(v, "id"));
}

static void on_send(void *transport, void *stream, const struct mcp_out *m)
{
	struct post *p = transport;
	struct err e;
	AUTO(json_free) struct json_doc *d = json_parse(m->text, NULL, &e);
	struct json_iter it = json_iter(json_root(d));

	MUST(d && is_status(m->status));
	MUST(!p->has_stream || p->done == 0);
	if (json_type(json_root(d)) != JSON_ARRAY) {
		check_one(json_root(d), m->kind);
	} else {
		while (json_next(&it))
			check_one(it.val, m->kind);
	}
	p->answers += m->kind == MCP_OUT_RESPONSE;
}

static void on_done(void *transport, void *stream)
{
	((struct post *)transport)->done++;
}

static const struct mcp_transport transport = { .send = on_send, .stream_done = on_done };

/* The next line of *rest, without its end. */
static struct str next_line(struct str *rest)
{
	const char *end = rest->n > 0 ? memchr(rest->p, '\n', rest->n) : NULL;
	size_t n = end ? (size_t)(end - rest->p) : rest->n;
	struct str line = { rest->p, n };

	n += end != NULL;
	rest->p += n;
	rest->n -= n;
	return line;
}

/* True where the line is one of the head. */
static bool read_head(struct post *p, struct str line)
{
	struct str value = { line.p + 2, line.n - 2 };

	if (str_is(line, "g")) {
		p->goes = true;
		return true;
	}
	if (line.n < 2 || line.p[1] != ' ')
		return false;
	if (line.p[0] == 'v')
		p->head.protocol_version = value;
	else if (line.p[0] == 'm')
		p->head.method = value;
	else if (line.p[0] == 'n')
		p->head.name = value;
	else if (line.p[0] == 'p' && p->params_n < PARAMS_MAX)
		p->params[p->params_n++] = value;
	else
		return false;
	return true;
}

static void serve_post(struct mcp_server *srv, struct post *p, struct str text)
{
	struct mcp_inbound *in = mcp_inbound_new(srv, text, &p->head);
	struct mcp_session *s;
	bool listens;

	MUST(in);
	listens = mcp_inbound_is_listen(in);
	if (mcp_inbound_era(in) == MCP_LEGACY || !mcp_inbound_is_answered(in)) {
		mcp_inbound_free(in);
		return;
	}
	p->has_stream = true;
	s = mcp_session_new(srv, &transport, p, MCP_ROAD_POST, NULL);
	MUST(s);
	mcp_session_take(s, in, p);
	mcp_server_changed(srv, MCP_TOOLS | MCP_RESOURCES | MCP_PROMPTS);
	mcp_server_updated(srv, STR_LIT("mem:///note"));
	MUST(listens || (p->done == 1 && p->answers == 1));
	if (p->done == 0 && p->goes)
		mcp_session_cancel_stream(s, p);
	else if (p->done == 0)
		mcp_session_drain(s);
	MUST(p->goes || (p->done == 1 && p->answers == 1));
	MUST(mcp_session_open(s) == 0);
	mcp_session_close(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct mcp_server_options o = {
		.name = "f", .version = "1", .page = 2, .held_max = 1 << 16
	};
	struct str rest = { (const char *)data, n };
	struct post lines = { .answers = 0 };
	struct mcp_session *s;
	struct mcp_server *srv;
	struct err e;

	full_offer(&o);
	srv = mcp_server_new(&o, &e);
	MUST(srv);
	s = mcp_session_new(srv, &transport, &lines, MCP_ROAD_LINES, NULL);
	MUST(s);
	while (rest.n > 0) {
		struct post p = { .answers = 0 };
		struct str line;

		p.head.param = param;
		p.head.data = &p;
		do {
			line = next_line(&rest);
		} while (read_head(&p, line));
		serve_post(srv, &p, line);
		mcp_session_message(s, line);
	}
	mcp_session_close(s);
	mcp_server_free(srv);
	return 0;
}
