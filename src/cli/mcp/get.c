/* Gets a prompt. Its arguments, all strings, are listed first. */
#include <stdio.h>

#include "cli/common/args.h"
#include "cli/peer/peer.h"
#include "cli/common/safe.h"

struct get_options {
	struct verb_options common;
	struct peer_options peer;
};

static const struct option_row rows[] = {
	PEER_ROWS(struct get_options),
	PEER_OUT_ROW(struct get_options),
	HELP_ROW(struct get_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static int get_show(struct peer *p, const struct json_val *result, struct err *e)
{
	struct json_iter it = json_iter(json_get(result, "messages"));

	safe_text(stdout, json_str(json_get(result, "description")), 0);
	while (json_next(&it)) {
		fputs("\n", stdout);
		safe_short(stdout, json_str(json_get(it.val, "role")), 40);
		fputs(":\n", stdout);
		if (peer_show_content(p, json_get(it.val, "content"), e) < 0)
			return -1;
	}
	return 0;
}

static void on_result(struct peer *p, const struct json_val *result)
{
	struct err e = ERR_INIT;

	if (peer_options(p)->json)
		peer_print_json(p, result, PEER_OK);
	else if (get_show(p, result, &e) < 0)
		peer_fail(p, PEER_OWN, &e);
	else
		peer_end(p, PEER_OK);
}

static void write_property(struct json_writer *w, const struct json_val *argument)
{
	json_write_key_str(w, json_str(json_get(argument, "name")));
	json_write_object(w);
	json_write_key(w, "type");
	json_write_text(w, "string");
	json_write_key(w, "description");
	json_write_str(w, json_str(json_get(argument, "description")));
	json_write_object_end(w);
}

/* The arguments of a prompt as a schema. NULL if they are invalid, such as a name twice; then
 * nothing is checked. */
static struct json_doc *schema_of(const struct json_val *prompt)
{
	struct json_iter all = json_iter(json_get(prompt, "arguments")), again = all;
	autobuf struct buf b = BUF_INIT(16 << 20);
	struct json_writer w = json_writer(&b);
	struct err e;

	json_write_object(&w);
	json_write_key(&w, "properties");
	json_write_object(&w);
	while (json_next(&all))
		write_property(&w, all.val);
	json_write_object_end(&w);
	json_write_key(&w, "required");
	json_write_array(&w);
	while (json_next(&again)) {
		if (json_bool(json_get(again.val, "required")))
			json_write_val(&w, json_get(again.val, "name"));
	}
	json_write_array_end(&w);
	json_write_object_end(&w);
	return json_write_done(&w, &e) < 0 ? NULL : json_parse(buf_str(&b), NULL, &e);
}

static int write_params(const struct peer *p, const struct json_val *prompt, struct buf *to,
			struct err *e)
{
	autobuf struct buf arguments = BUF_INIT(ARGS_TEXT_MAX);
	AUTO(json_free) struct json_doc *schema = schema_of(prompt);
	struct json_writer w = json_writer(to);

	if (args_build(peer_arguments(p), json_root(schema), &arguments, e) < 0 ||
	    args_check(buf_str(&arguments), json_root(schema), e) < 0)
		return -1;
	json_write_object(&w);
	json_write_key(&w, "name");
	json_write_text(&w, peer_input(p)->operands[0]);
	json_write_key(&w, "arguments");
	json_write_raw(&w, buf_str(&arguments));
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

static void on_prompts(struct peer *p, const struct mcp_listed *l)
{
	autobuf struct buf params = BUF_INIT(2 * ARGS_TEXT_MAX);
	struct err e = ERR_INIT;
	const struct json_val *prompt = peer_find(l, "prompt", peer_input(p)->operands[0], &e);

	if (!prompt || write_params(p, prompt, &params, &e) < 0)
		peer_fail(p, PEER_USAGE, &e);
	else
		peer_request(p, "prompts/get", buf_str(&params), on_result);
}

static void on_ready(struct peer *p)
{
	peer_list(p, "prompts", on_prompts);
}

static int get_run(const struct verb_input *in)
{
	const struct get_options *o = in->options;

	return peer_run_with(in, &o->peer, 1, on_ready);
}

const struct verb mcp_get_verb = {
	.name = "mcp get",
	.usage = "[OPTION...] PROMPT [NAME=VALUE... | JSON | -]",
	.doc = "Get a prompt of an MCP server.",
	.more = PEER_MORE,
	.page = "holt-mcp-client",
	.options = &options,
	.size = sizeof(struct get_options),
	.min_operands = 1,
	.max_operands = 1000,
	.usage_exit = 2,
	.run = get_run,
};
