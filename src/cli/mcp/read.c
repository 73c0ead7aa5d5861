/* Reads a resource. */
#include <stdio.h>

#include "cli/peer/peer.h"

static void on_result(struct peer *p, const struct json_val *result)
{
	struct json_iter it = json_iter(json_get(result, "contents"));
	struct err e = ERR_INIT;

	if (peer_options(p)->json) {
		peer_print_json(p, result, PEER_OK);
		return;
	}
	while (json_next(&it)) {
		if (peer_show_resource(p, it.val, &e) < 0) {
			peer_fail(p, PEER_OWN, &e);
			return;
		}
	}
	peer_end(p, PEER_OK);
}

static void on_ready(struct peer *p)
{
	autobuf struct buf b = BUF_INIT(1 << 20);
	struct json_writer w = json_writer(&b);
	struct err e = ERR_INIT;

	json_write_object(&w);
	json_write_key(&w, "uri");
	json_write_text(&w, peer_input(p)->operands[0]);
	json_write_object_end(&w);
	if (json_write_done(&w, &e) < 0)
		peer_fail(p, PEER_OWN, &e);
	else
		peer_request(p, "resources/read", buf_str(&b), on_result);
}

static int read_run(const struct verb_input *in, struct err *e)
{
	const struct peer_verb *o = in->options;

	return peer_run(in, &o->peer, on_ready, NULL);
}

const struct verb mcp_read_verb = {
	.name = "mcp read",
	.usage = "[OPTION...] URI",
	.doc = "Read a resource of an MCP server.",
	.more = "Control characters are shown as escapes; --out saves the resource\n"
		"unchanged.\n\n" PEER_MORE,
	.page = "holt-mcp-client",
	.options = &peer_content,
	.size = sizeof(struct peer_verb),
	.min_operands = 1,
	.run = read_run,
};
