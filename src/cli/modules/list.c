/* `holt mcp list`, `info`, `logs`. */
#include "cli/common/safe.h"
#include "cli/common/table.h"
#include "cli/modules/modules.h"

static const struct option_row rows[] = {
	OUTPUT_ROW(struct module_options),
	HELP_ROW(struct module_options),
};
const struct option_table module_options = OPTION_TABLE(rows, .mixed = true);

int module_path(char ret[MODULE_PATH_MAX], const char *name, const char *more, struct err *e)
{
	size_t n = strlen(name);

	if (n == 0 || n > 64 || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-:") != n)
		return err_set(e, ERR_MODULE_NOT_FOUND, "no module can be called \"%.80s\"", name);
	snprintf(ret, MODULE_PATH_MAX, "/v1/modules/%s%s", name, more);
	return 0;
}

static const char *module_stand(const struct json_val *m)
{
	if (json_bool(json_get(m, "disabled")))
		return "disabled";
	return json_bool(json_get(m, "approved")) ? "approved" : "not approved";
}

static const char *module_where(const struct json_val *m)
{
	struct str transport = json_str(json_get(m, "transport"));

	if (!str_is(transport, "stdio") && !str_is(transport, "code"))
		return "elsewhere";
	return json_bool(json_get(m, "sandboxed")) ? "sandbox" : "NOT SANDBOXED";
}

/* ---- list ------------------------------------------------------------------------------------ */

static int list(bool json, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(e);
	AUTO(json_free) struct json_doc *doc = NULL;
	AUTO(table_free)
	struct table *t = TABLE(e, "NAME", "STATE", "APPROVAL", "RUNS IN", ">TOOLS", "CAUSE");
	struct json_iter it;

	if (!l || !t || hub_link_ask(l, "GET", "/v1/modules", STR_NONE, &doc, e) < 0)
		return -1;
	if (json)
		return hub_link_print(json_get(json_root(doc), "modules"), e);
	it = json_iter(json_get(json_root(doc), "modules"));
	while (json_next(&it)) {
		table_str(t, json_str(json_get(it.val, "module")));
		table_str(t, json_str(json_get(it.val, "state")));
		table_cell(t, "%s", module_stand(it.val));
		table_cell(t, "%s", module_where(it.val));
		table_number(t, json_get(it.val, "tools_count"), 1, 0);
		table_short(t, json_str(json_get(it.val, "cause")), 60);
	}
	table_print(t);
	return 0;
}

static int list_run(const struct verb_input *in)
{
	const struct module_options *o = in->options;
	struct err e = ERR_INIT;

	return list(o->output == OUTPUT_JSON, &e) < 0 ? hub_link_fail(&e) : 0;
}

const struct verb mcp_list_verb = {
	.name = "mcp list",
	.usage = "[OPTION...]",
	.doc = "List the hub's modules: the MCP servers that it uses.",
	.page = "holt-mcp-modules",
	.options = &module_options,
	.size = sizeof(struct module_options),
	.usage_exit = 2,
	.run = list_run,
};

/* ---- info ------------------------------------------------------------------------------------ */

static void show_str(const struct json_val *m, const char *name, const char *label)
{
	struct str s = json_str(json_get(m, name));

	if (!s.n)
		return;
	printf("%-14s", label);
	safe_line(stdout, s);
	putchar('\n');
}

/* Each argument on a line of its own, so that none can look like two. */
static void show_list(const struct json_val *m, const char *name, const char *label)
{
	struct json_iter it = json_iter(json_get(m, name));

	while (json_next(&it)) {
		printf("%-14s", it.index ? "" : label);
		safe_line(stdout, json_str(it.val));
		putchar('\n');
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
	safe_line(stdout, json_str(json_get(c, name)));
	putchar('\n');
}

static void show_changes(const struct json_val *t)
{
	struct json_iter it = json_iter(json_get(t, "changes"));

	while (json_next(&it)) {
		printf("    ");
		safe_line(stdout, json_str(json_get(it.val, "where")));
		puts(" is another:");
		show_change(it.val, "old", '-');
		show_change(it.val, "now", '+');
	}
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
		safe_line(stdout, json_str(json_get(it.val, "excerpt")));
		putchar('\n');
	}
}

static void show_tool(const struct json_val *t)
{
	struct str state = json_str(json_get(t, "state"));

	printf("\n  ");
	safe_line(stdout, json_str(json_get(t, "name")));
	printf("  (");
	safe_line(stdout, json_str(json_get(t, "approval")));
	puts(json_bool(json_get(t, "read_only")) ? ", read-only)" : ")");
	if (!str_is(state, "approved"))
		printf("    QUARANTINED: %.*s\n", STR_CUT(state, 16));
	show_warnings(t);
	show_changes(t);
	safe_text(stdout, json_str(json_get(t, "description")), 4);
}

int module_show(const struct json_val *m, struct err *e)
{
	struct json_iter it = json_iter(json_get(m, "tools"));

	show_str(m, "module", "Module");
	show_str(m, "state", "State");
	printf("%-14s%s\n", "Approval", module_stand(m));
	show_str(m, "approved_by", "Approved by");
	show_str(m, "approved_at", "Approved at");
	printf("%-14s%s\n", "Runs in", module_where(m));
	if (str_is(json_str(json_get(m, "transport")), "stdio") &&
	    !json_bool(json_get(m, "sandboxed")))
		printf("%-14s%s\n", "Warning",
		       "it is NOT sandboxed: it can do all that the hub's user can");
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

static int info(const char *name, bool json, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	char path[MODULE_PATH_MAX];

	if (module_path(path, name, "", e) < 0 || !(l = hub_link_open(e)) ||
	    hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0)
		return -1;
	return json ? hub_link_print(json_root(doc), e) : module_show(json_root(doc), e);
}

static int info_run(const struct verb_input *in)
{
	const struct module_options *o = in->options;
	struct err e = ERR_INIT;

	return info(in->operands[0], o->output == OUTPUT_JSON, &e) < 0 ? hub_link_fail(&e) : 0;
}

const struct verb mcp_info_verb = {
	.name = "mcp info",
	.usage = "[OPTION...] NAME",
	.doc = "Show a module's program, tools and approval.",
	.page = "holt-mcp-modules",
	.options = &module_options,
	.size = sizeof(struct module_options),
	.min_operands = 1,
	.max_operands = 1,
	.usage_exit = 2,
	.run = info_run,
};

/* ---- logs ------------------------------------------------------------------------------------ */

static int logs(const char *name, bool json, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	char path[MODULE_PATH_MAX];

	if (module_path(path, name, "/logs", e) < 0 || !(l = hub_link_open(e)) ||
	    hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0)
		return -1;
	if (json)
		return hub_link_print(json_root(doc), e);
	safe_text(stdout, json_str(json_get(json_root(doc), "text")), 0);
	return 0;
}

static int logs_run(const struct verb_input *in)
{
	const struct module_options *o = in->options;
	struct err e = ERR_INIT;

	return logs(in->operands[0], o->output == OUTPUT_JSON, &e) < 0 ? hub_link_fail(&e) : 0;
}

const struct verb mcp_logs_verb = {
	.name = "mcp logs",
	.usage = "[OPTION...] NAME",
	.doc = "Show the end of a module's standard error.",
	.page = "holt-mcp-modules",
	.options = &module_options,
	.size = sizeof(struct module_options),
	.min_operands = 1,
	.max_operands = 1,
	.usage_exit = 2,
	.run = logs_run,
};
