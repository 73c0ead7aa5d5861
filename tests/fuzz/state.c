/*
 * requestState, and the answers beside it. The first byte says what the rest is:
 *
 *	t	the text itself, as a client would send it: refused, or the call's own
 *	p	a text that this server, or another version with the same keys, could have sealed:
 *		opened, then sealed and opened again to the same
 *	else	inputResponses of a call that asks for one of each kind: every request has one
 *		answer
 */
#include <string.h>

#include "mcp/server/internal.h"
#include "base/seal.h"
#include "fuzz.h"

enum { TEXT_MAX = 1 << 20 };

static const unsigned char key[1][MCP_KEY_BYTES] = { { 1 } };
static unsigned answers, faults;

static void run_asking(struct mcp_call *c)
{
	const struct mcp_ask asks[] = {
		{ "f", MCP_ASK_FORM,
		  STR_LIT("{\"message\":\"\",\"requestedSchema\":{\"type\":\"object\","
			  "\"properties\":"
			  "{\"n\":{\"type\":\"string\",\"format\":\"email\"},"
			  "\"e\":{\"enum\":[\"a\"]}}}}") },
		{ "u", MCP_ASK_URL, STR_LIT("{\"message\":\"\",\"url\":\"x:\"}") },
		{ "s", MCP_ASK_SAMPLING, STR_LIT("{\"messages\":[],\"maxTokens\":1}") },
		{ "r", MCP_ASK_ROOTS, STR_NONE },
	};
	struct err e;

	if (mcp_call_answer(c, "f"))
		mcp_call_text(c, STR_LIT("done"));
	else if (mcp_call_ask(c, asks, ARRAY_LEN(asks), STR_LIT("state"), &e) < 0)
		mcp_call_fail(c, &e);
}

static void sent(void *transport, void *stream, const struct mcp_out *m)
{
	struct err e;
	AUTO(json_free) struct json_doc *d = json_parse(m->text, NULL, &e);

	MUST(d && m->kind == MCP_OUT_RESPONSE);
	MUST(!json_get(json_root(d), "result") != !json_get(json_root(d), "error"));
	answers++;
	faults += json_get(json_root(d), "error") != NULL;
}

static const struct mcp_transport transport = { .send = sent };

/* member is of params; its value is JSON, or a string of any bytes. */
static void call(const char *member, struct str value, bool is_json)
{
	static struct mcp_tool tool = { .name = "t",
					.description = "d",
					.input_schema = "{\"type\":\"object\"}",
					.run = run_asking };
	const struct mcp_server_options o = { .name = "f",
					      .version = "1",
					      .offer = { .tools = &tool, .tools_n = 1 },
					      .keys = key,
					      .keys_n = 1 };
	autobuf struct buf text = BUF_INIT(TEXT_MAX);
	struct json_writer w = json_writer(&text);
	struct err e;
	AUTO(mcp_server_free) struct mcp_server *srv = mcp_server_new(&o, &e);
	AUTO(mcp_session_close)
	struct mcp_session *s = srv ? mcp_session_new(srv, &transport, NULL, MCP_ROAD_LINES, NULL)
				    : NULL;

	MUST(s);
	json_write_object(&w);
	json_write_key(&w, member);
	if (is_json)
		json_write_raw(&w, value);
	else
		json_write_str(&w, value);
	json_write_key(&w, "name");
	json_write_text(&w, "t");
	json_write_key(&w, "_meta");
	json_write_raw(&w,
		       STR_LIT("{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
			       "\"io.modelcontextprotocol/clientCapabilities\":{\"sampling\":{},"
			       "\"elicitation\":{\"form\":{},\"url\":{}},\"roots\":{}}}"));
	json_write_object_end(&w);
	if (json_write_done(&w, &e) < 0)
		return;
	MUST(buf_add(&text, "}", 1, &e) == 0);
	{
		static const char head[] =
			"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":";
		autobuf struct buf line = BUF_INIT(2 * TEXT_MAX);

		MUST(buf_add(&line, head, sizeof(head) - 1, &e) == 0);
		MUST(buf_add(&line, text.p, text.n, &e) == 0);
		answers = faults = 0;
		mcp_session_message(s, buf_str(&line));
	}
	MUST(answers == 1);
}

static void open_plain(struct str plain)
{
	autobuf struct buf text = BUF_INIT(TEXT_MAX), again = BUF_INIT(TEXT_MAX);
	struct mcp_asking a = { 0 }, b = { 0 };
	struct err e;
	AUTO(seal_ring_free) struct seal_ring *ring = seal_ring_new(&e);

	MUST(ring && seal(ring, &text, plain, STR_LIT("c"), 9, &e) == 0);
	if (mcp_asking_open(&a, ring, STR_LIT("c"), 9, buf_str(&text), &e) == 0) {
		MUST(mcp_asking_seal(&a, ring, STR_LIT("c"), 9, &again, &e) == 0);
		MUST(mcp_asking_open(&b, ring, STR_LIT("c"), 9, buf_str(&again), &e) == 0);
		MUST(a.n == b.n && a.open == b.open && a.state_n == b.state_n);
	}
	mcp_asking_fini(&a);
	mcp_asking_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const struct str rest = { (const char *)data + 1, n - 1 };

	if (n == 0 || n > TEXT_MAX / 8)
		return 0;
	if (data[0] == 't') {
		call("requestState", rest, false);
		MUST(faults == 1);
	} else if (data[0] == 'p') {
		open_plain(rest);
	} else if (!memchr(rest.p, '\n', rest.n)) {
		call("inputResponses", rest, true);
	}
	return 0;
}
