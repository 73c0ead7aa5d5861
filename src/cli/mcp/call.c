/* Calls a tool. Its schema is fetched first, to give arguments their types and to report
 * mistakes before anything is sent. */
#include <stdio.h>

#include "cli/common/args.h"
#include "cli/peer/peer.h"
#include "cli/common/safe.h"

enum { TEXT_MAX = 64 << 20 };

/* Servers also send structured content as text, for older clients: the whole, or its only
 * member. Both are serialized once and compared with each text. */
struct known {
	struct str plain; /* of a string */
	struct buf json; /* empty: there is none */
};

static int know(struct known *k, const struct json_val *v, struct err *e)
{
	struct json_writer w = json_writer(&k->json);

	k->plain = json_str(v);
	json_write_val(&w, v);
	return json_write_done(&w, e);
}

static bool says(const struct json_val *block, const struct known *k)
{
	autobuf struct buf b = BUF_INIT(TEXT_MAX);
	struct json_writer w = json_writer(&b);
	struct str text = json_str(json_get(block, "text"));
	AUTO(json_free) struct json_doc *doc = NULL;
	struct err e = ERR_INIT;

	if (k->json.n == 0 || !str_is(json_str(json_get(block, "type")), "text"))
		return false;
	if (k->plain.p && str_eq(k->plain, text))
		return true;
	doc = json_parse(text, NULL, &e);
	if (!doc)
		return false;
	json_write_val(&w, json_root(doc));
	return json_write_done(&w, &e) == 0 && str_eq(buf_str(&k->json), buf_str(&b));
}

static int show_blocks(struct peer *p, const struct json_val *result, const struct known *whole,
		       const struct known *member, struct err *e)
{
	const struct json_val *structured = json_get(result, "structuredContent");
	struct json_iter it = json_iter(json_get(result, "content"));
	bool shown = !structured || json_type(structured) == JSON_NULL;

	while (json_next(&it)) {
		if (says(it.val, whole))
			continue;
		shown = shown || says(it.val, member);
		if (peer_show_content(p, it.val, e) < 0)
			return -1;
	}
	if (shown)
		return 0;
	if (safe_json_lines(stdout, structured, 0, e) < 0)
		return -1;
	putchar('\n');
	return 0;
}

static int call_show(struct peer *p, const struct json_val *result, struct err *e)
{
	const struct json_val *structured = json_get(result, "structuredContent");
	struct json_iter only = json_iter(structured);
	struct known whole = { .json = BUF_INIT(TEXT_MAX) }, member = whole;
	int r = structured ? know(&whole, structured, e) : 0;

	if (r == 0 && json_type(structured) == JSON_OBJECT && json_len(structured) == 1 &&
	    json_next(&only))
		r = know(&member, only.val, e);
	if (r == 0)
		r = show_blocks(p, result, &whole, &member, e);
	buf_fini(&whole.json);
	buf_fini(&member.json);
	return r;
}

static void on_result(struct peer *p, const struct json_val *result)
{
	enum peer_end how = json_bool(json_get(result, "isError")) ? PEER_TOOL : PEER_OK;
	struct err e = ERR_INIT;

	if (peer_options(p)->json)
		peer_print_json(p, result, how);
	else if (call_show(p, result, &e) < 0)
		peer_fail(p, PEER_OWN, &e);
	else
		peer_end(p, how);
}

static void on_tools(struct peer *p, const struct mcp_listed *l)
{
	const struct verb_input *in = peer_input(p);
	autobuf struct buf arguments = BUF_INIT(ARGS_TEXT_MAX);
	struct err e = ERR_INIT;
	const struct json_val *tool = peer_find(p, l, in->operands[0], &e);
	const struct json_val *schema = json_get(tool, "inputSchema");
	const char *name = tool ? json_str(json_get(tool, "name")).p : NULL;
	struct str task = json_str(json_get(json_get(tool, "execution"), "taskSupport"));

	if (!tool || args_build(peer_arguments(p), schema, &arguments, &e) < 0 ||
	    args_check(buf_str(&arguments), schema, &e) < 0)
		peer_fail(p, PEER_USAGE, &e);
	else
		peer_call(p, name, buf_str(&arguments), str_is(task, "required"), on_result);
}

static void on_ready(struct peer *p)
{
	peer_tools(p, on_tools);
}

static int call_run(const struct verb_input *in, struct err *e)
{
	struct peer_verb o;
	struct verb_input left;

	peer_name_module(in, &o, &left);
	if (left.n_operands == 0) {
		err_set(e, ERR_INVALID, "which server, or which tool of the module %.64s",
			in->operands[0]);
		return cli_wrong_usage(in->verb, e);
	}
	return peer_run_with(&left, &o.peer, 1, on_ready);
}

const struct verb mcp_call_verb = {
	.name = "mcp call",
	.usage = "[OPTION...] [MODULE] TOOL [NAME=VALUE... | JSON | -]",
	.doc = "Call a tool of an MCP server or a module.",
	.more = "NAME=VALUE takes its type from the tool's schema; arrays and objects are written\n"
		"as JSON. NAME:=JSON is always JSON. NAME=@FILE and NAME:=@FILE read a file.\n"
		"A JSON object gives all arguments at once; - reads it.\n\n" PEER_MORE,
	.page = "holt-mcp-client",
	.options = &peer_content,
	.size = sizeof(struct peer_verb),
	.min_operands = 1,
	.max_operands = 1000,
	.run = call_run,
};
