/* `holt mcp list`, `info`, `logs`. */
#include "cli/common/safe.h"
#include "cli/modules/modules.h"

const struct ask_noun modules = {
	.path = "/v1/modules",
	.noun = "module",
	.missing = ERR_MODULE_NOT_FOUND,
	.letters = ASK_LOWER ":",
	.max = 64,
};

static const char *stand_of(const struct json_val *m)
{
	if (json_bool(json_get(m, "disabled")))
		return "disabled";
	return json_bool(json_get(m, "approved")) ? "approved" : "not approved";
}

static const char *where_of(const struct json_val *m)
{
	struct str transport = json_str(json_get(m, "transport"));

	if (!str_is(transport, "stdio") && !str_is(transport, "code"))
		return "elsewhere";
	return json_bool(json_get(m, "sandboxed")) ? "sandbox" : "NOT SANDBOXED";
}

/* ---- list ------------------------------------------------------------------------------------ */

static void stand_cell(struct table *t, const struct json_val *m)
{
	table_str(t, str_of(stand_of(m)));
}

static void where_cell(struct table *t, const struct json_val *m)
{
	table_str(t, str_of(where_of(m)));
}

const struct verb mcp_list_verb = {
	.name = "mcp list",
	.usage = "[OPTION...]",
	.doc = "List the hub's modules: the MCP servers that it uses.",
	.page = "holt-mcp-modules",
	ASK(verb_output, .of = &modules, .list = "modules",
	    ASK_COLUMNS(
		    { "NAME", "module" }, { "STATE", "state" }, { "APPROVAL", .cell = stand_cell },
		    { "RUNS IN", .cell = where_cell }, { ">TOOLS", "tools_count", .unit = 1 },
		    { "NOT OFFERED", "tools_hidden", .cut = 80 }, { "CAUSE", "cause", .cut = 60 })),
};

/* ---- info ------------------------------------------------------------------------------------ */

static void show_str(const struct json_val *m, const char *name, const char *label)
{
	struct str s = json_str(json_get(m, name));

	if (!s.n)
		return;
	printf("%-14s", label);
	safe_puts(stdout, s);
}

/* Each argument on a line of its own, so that none can look like two. */
static void show_list(const struct json_val *m, const char *name, const char *label)
{
	struct json_iter it = json_iter(json_get(m, name));

	while (json_next(&it)) {
		printf("%-14s", it.index ? "" : label);
		safe_puts(stdout, json_str(it.val));
	}
}

/* Values of variables and headers are never sent here. */
static void show_names(const struct json_val *m, const char *name, const char *label)
{
	struct json_iter it = json_iter(json_get(m, name));

	while (json_next(&it)) {
		printf("%-14s", it.index ? "" : label);
		safe_line(stdout, json_str(it.val));
		puts("=***");
	}
}

static void show_change(const struct json_val *c, const char *name, char mark)
{
	if (!json_get(c, name))
		return;
	printf("      %c ", mark);
	safe_puts(stdout, json_str(json_get(c, name)));
}

static void show_warnings(const struct json_val *t)
{
	struct json_iter it = json_iter(json_get(t, "warnings"));

	while (json_next(&it)) {
		printf("    WARNING ");
		safe_line(stdout, json_str(json_get(it.val, "where")));
		printf(": ");
		safe_line(stdout, json_str(json_get(it.val, "text")));
		printf("\n      ");
		safe_puts(stdout, json_str(json_get(it.val, "excerpt")));
	}
}

static void show_tool(const struct json_val *t)
{
	struct str state = json_str(json_get(t, "state"));
	struct json_iter changes = json_iter(json_get(t, "changes"));

	printf("\n  ");
	safe_line(stdout, json_str(json_get(t, "name")));
	printf("  (");
	safe_line(stdout, json_str(json_get(t, "approval")));
	puts(json_bool(json_get(t, "read_only")) ? ", read-only)" : ")");
	if (!str_is(state, "approved"))
		printf("    QUARANTINED: %.*s\n", STR_CUT(state, 16));
	show_warnings(t);
	while (json_next(&changes)) {
		printf("    ");
		safe_line(stdout, json_str(json_get(changes.val, "where")));
		puts(" is another:");
		show_change(changes.val, "old", '-');
		show_change(changes.val, "now", '+');
	}
	safe_text(stdout, json_str(json_get(t, "description")), 4);
}

static void show_count(const struct json_val *m, const char *name, const char *label)
{
	printf("%-14s%.0f\n", label, json_real(json_get(m, name)));
}

/* Texts in it are its publisher's. */
static void show_package(const struct json_val *p)
{
	printf("%-14s", "Package");
	safe_line(stdout, json_str(json_get(p, "kind")));
	putchar(' ');
	safe_line(stdout, json_str(json_get(p, "name")));
	putchar('@');
	safe_puts(stdout, json_str(json_get(p, "version")));
	show_str(p, "author", "  author");
	show_list(p, "maintainers", "  maintainers");
	show_str(p, "license", "  licence");
	show_str(p, "repository", "  repository");
	printf("%-14s%.1f MB in %.0f files\n", "  size", json_real(json_get(p, "bytes")) / 1e6,
	       json_real(json_get(p, "files")));
	show_count(p, "dependencies", "  packages");
	show_list(p, "scripts",
		  json_bool(json_get(p, "scripts_run")) ? "  scripts run" : "  NOT RUN");
	show_str(p, "lock", "  lock");
	show_list(p, "changes", "  changes");
}

static void show_packages(const struct json_val *m)
{
	const struct json_val *now = json_get(m, "package"), *update = json_get(m, "update");
	struct str wanted = json_str(json_get(m, "wanted"));

	if (!wanted.n)
		return;
	if (now)
		show_package(now);
	if (now && update)
		puts("\nFetched, and to be approved:");
	if (update)
		show_package(update);
	if (now || update)
		return;
	printf("%-14s", "Package");
	safe_line(stdout, wanted);
	puts(", not fetched: holt mcp approve");
}

int module_show(const struct json_val *m, const char *name, struct err *e)
{
	struct json_iter it = json_iter(json_get(m, "tools"));

	show_str(m, "module", "Module");
	show_str(m, "state", "State");
	printf("%-14s%s\n", "Approval", stand_of(m));
	show_str(m, "approved_by", "Approved by");
	show_str(m, "approved_at", "Approved at");
	printf("%-14s%s\n", "Runs in", where_of(m));
	if (str_is(json_str(json_get(m, "transport")), "stdio") &&
	    !json_bool(json_get(m, "sandboxed")))
		printf("%-14s%s\n", "Warning",
		       "it is NOT sandboxed: it can do all that the hub's user can");
	show_str(m, "tools_hidden", "Not offered");
	show_str(m, "cause", "Cause");
	show_str(m, "description", "Description");
	show_str(m, "command", "Command");
	show_list(m, "args", "Arguments");
	show_names(m, "env", "Environment");
	show_str(m, "cwd", "Folder");
	show_str(m, "url", "Address");
	show_names(m, "headers", "Headers");
	show_str(m, "template", "Template");
	show_list(m, "read", "Reads");
	show_list(m, "write", "Writes");
	show_list(m, "network", "Network");
	show_list(m, "advice", "Advice");
	show_list(m, "denied", "Asked for");
	if (json_len(json_get(m, "denied")))
		printf("%-14snot granted: holt mcp allow %.64s HOST[:PORT]\n", "", name);
	show_packages(m);
	show_str(m, "server", "Calls itself");
	show_str(m, "revision", "MCP");
	if (json_len(json_get(m, "tools")))
		printf("\nTools, in its own words:\n");
	while (json_next(&it))
		show_tool(it.val);
	if (json_get(m, "source"))
		printf("\nSource\n");
	safe_text(stdout, json_str(json_get(m, "source")), 2);
	return 0;
}

const struct verb mcp_info_verb = {
	.name = "mcp info",
	.alias = "mcp get",
	.usage = "[OPTION...] NAME",
	.doc = "Show a module's program, tools and approval.",
	.page = "holt-mcp-modules",
	ASK(verb_output, .of = &modules, .show = module_show),
	.min_operands = 1,
};

/* ---- logs ------------------------------------------------------------------------------------ */

static int show_log(const struct json_val *v, const char *name, struct err *e)
{
	safe_text(stdout, json_str(json_get(v, "text")), 0);
	return 0;
}

const struct verb mcp_logs_verb = {
	.name = "mcp logs",
	.usage = "[OPTION...] NAME",
	.doc = "Show the end of a module's standard error.",
	.page = "holt-mcp-modules",
	ASK(verb_output, .of = &modules, .more = "/logs", .show = show_log),
	.min_operands = 1,
};
