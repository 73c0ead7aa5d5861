/* Lists the tools, or shows one with its schemas. */
#include <stdio.h>

#include "cli/common/args.h"
#include "cli/peer/peer.h"
#include "cli/common/safe.h"

/* Arguments shown per tool; more is not for human readers. */
enum { ARGUMENTS_MAX = 200 };

static const struct option_row rows[] = {
	PEER_ROWS(struct peer_verb),
	HELP_ROW(struct peer_verb),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static const struct {
	const char *key, *yes;
} hints[] = {
	{ "readOnlyHint", "reads only" },
	{ "destructiveHint", "may destroy" },
	{ "idempotentHint", "repeatable" },
	{ "openWorldHint", "reaches out" },
};

/* The server's own claims; nobody has verified them. */
static void write_hints(const struct json_val *tool, char *ret, size_t size)
{
	const struct json_val *says = json_get(tool, "annotations");
	size_t n = 0;

	*ret = '\0';
	for (size_t i = 0; i < ARRAY_LEN(hints); i++) {
		if (json_bool(json_get(says, hints[i].key)) && n < size)
			n += (size_t)snprintf(ret + n, size - n, "%s%s", n ? ", " : "  [",
					      hints[i].yes);
	}
	if (n > 0 && n < size)
		snprintf(ret + n, size - n, "]");
}

static void show_tool(const struct peer *p, const struct json_val *tool)
{
	struct str name = peer_own_name(p, tool);
	const struct json_val *schema = json_get(tool, "inputSchema");
	struct json_iter it = json_iter(json_get(schema, "properties"));
	size_t n = json_len(json_get(schema, "properties"));
	char notes[128], type[80];

	write_hints(tool, notes, sizeof(notes));
	peer_show_head(name.p ? name : json_str(json_get(tool, "name")), tool, notes);
	for (size_t i = 0; i < ARGUMENTS_MAX && json_next(&it); i++) {
		args_type_name(it.val, schema, type, sizeof(type));
		peer_show_argument(it.key, type, args_required(schema, it.key),
				   json_str(json_get(it.val, "description")),
				   json_get(it.val, "enum"));
	}
	if (n > ARGUMENTS_MAX)
		printf("      … %zu more\n", n - ARGUMENTS_MAX);
}

static int show_schema(const struct json_val *tool, const char *key, const char *title,
		       struct err *e)
{
	const struct json_val *schema = json_get(tool, key);

	if (!schema)
		return 0;
	printf("\n%s: ", title);
	if (safe_json_lines(stdout, schema, 0, e) < 0)
		return -1;
	putchar('\n');
	return 0;
}

static void show_one(struct peer *p, const struct mcp_listed *l, const char *name)
{
	struct err e = ERR_INIT;
	const struct json_val *tool = peer_find(p, l, name, &e);

	if (!tool) {
		peer_fail(p, PEER_USAGE, &e);
		return;
	}
	if (peer_options(p)->json) {
		peer_print_json(p, tool, PEER_OK);
		return;
	}
	show_tool(p, tool);
	if (show_schema(tool, "inputSchema", "Input schema", &e) < 0 ||
	    show_schema(tool, "outputSchema", "Output schema", &e) < 0)
		peer_fail(p, PEER_OWN, &e);
	else
		peer_end(p, PEER_OK);
}

static void print_json(struct peer *p, const struct mcp_listed *l)
{
	autobuf struct buf b = BUF_INIT(256 << 20);
	struct json_writer w = json_writer(&b);

	json_write_object(&w);
	json_write_key(&w, "tools");
	json_write_array(&w);
	for (size_t i = 0; i < l->n; i++)
		if (peer_own_name(p, l->items[i]).p)
			json_write_val(&w, l->items[i]);
	json_write_array_end(&w);
	json_write_object_end(&w);
	peer_print_written(p, &w);
}

static void on_tools(struct peer *p, const struct mcp_listed *l)
{
	const struct verb_input *in = peer_input(p);

	if (in->n_operands > 0) {
		show_one(p, l, in->operands[0]);
	} else if (peer_options(p)->json) {
		print_json(p, l);
	} else {
		size_t shown = 0;

		for (size_t i = 0; i < l->n; i++) {
			if (!peer_own_name(p, l->items[i]).p)
				continue;
			show_tool(p, l->items[i]);
			shown++;
		}
		if (shown == 0)
			puts("The server has no tools.");
		peer_end(p, PEER_OK);
	}
}

static void on_ready(struct peer *p)
{
	peer_tools(p, on_tools);
}

static int tools_run(const struct verb_input *in, struct err *e)
{
	struct peer_verb o;
	struct verb_input left;

	peer_name_module(in, &o, &left);
	return peer_run(&left, &o.peer, on_ready, NULL);
}

const struct verb mcp_tools_verb = {
	.name = "mcp tools",
	.usage = "[OPTION...] [MODULE] [TOOL]",
	.doc = "List the tools of an MCP server or a module, or show one.",
	.more = PEER_MORE,
	.page = "holt-mcp-client",
	.options = &options,
	.size = sizeof(struct peer_verb),
	.max_operands = 2,
	.run = tools_run,
};
