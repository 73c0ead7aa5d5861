/* `holt mcp search`. */
#include "cli/modules/modules.h"

static const struct ask_noun tools = { .path = "/v1/tools" };

static const struct option_row rows[] = {
	ASK_OPTION(counts[0], OPTION_COUNT, "limit", .letter = 'n', .arg = "COUNT", .min = 1,
		   .max = 50, .member = "limit", .doc = "Maximum number of tools; 10 by default."),
	ASK_END,
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

const struct verb mcp_search_verb = {
	.name = "mcp search",
	.usage = "[OPTION...] WORD...",
	.doc = "Search the approved tools of all modules, best match first.",
	.page = "holt-mcp-modules",
	ASK(options, .of = &tools, .operands = { "query..." }, .list = "tools", .whole = true,
	    ASK_COLUMNS({ "MODULE", "module" }, { "TOOL", "name" }, { "CALLS", "approval" },
			{ "DESCRIPTION", "description", .cut = 80 })),
	.min_operands = 1,
	.max_operands = 16,
};
