/* Lists prompts. */
#include <stdio.h>

#include "cli/peer/peer.h"

struct prompts_options {
	struct verb_options common;
	struct peer_options peer;
};

static const struct option_row rows[] = {
	PEER_ROWS(struct prompts_options),
	HELP_ROW(struct prompts_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static void prompts_show(const struct json_val *prompt)
{
	struct json_iter it = json_iter(json_get(prompt, "arguments"));

	peer_show_head(json_str(json_get(prompt, "name")), prompt, "");
	while (json_next(&it))
		peer_show_argument(json_str(json_get(it.val, "name")), "string",
				   json_bool(json_get(it.val, "required")),
				   json_str(json_get(it.val, "description")), NULL);
}

static void on_prompts(struct peer *p, const struct mcp_listed *l)
{
	autobuf struct buf b = BUF_INIT(256 << 20);
	struct json_writer w = json_writer(&b);

	if (peer_options(p)->json) {
		json_write_object(&w);
		peer_write_list(&w, "prompts", l);
		json_write_object_end(&w);
		peer_print_written(p, &w);
		return;
	}
	for (size_t i = 0; i < l->n; i++)
		prompts_show(l->items[i]);
	if (l->n == 0)
		puts("The server has no prompts.");
	peer_end(p, PEER_OK);
}

static void on_ready(struct peer *p)
{
	peer_list(p, "prompts", on_prompts);
}

static int prompts_run(const struct verb_input *in)
{
	const struct prompts_options *o = in->options;

	return peer_run(in, &o->peer, on_ready, NULL);
}

const struct verb mcp_prompts_verb = {
	.name = "mcp prompts",
	.usage = "[OPTION...]",
	.doc = "List the prompts of an MCP server.",
	.more = PEER_MORE,
	.page = "holt-mcp-client",
	.options = &options,
	.size = sizeof(struct prompts_options),
	.usage_exit = 2,
	.run = prompts_run,
};
