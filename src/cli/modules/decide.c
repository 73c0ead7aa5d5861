/* `holt mcp approve`, `revoke`, `enable`, `disable`, `test`, `disconnect`. */
#include <unistd.h>

#include "cli/common/safe.h"
#include "cli/modules/modules.h"

static const struct option_row approve_rows[] = {
	OPTION(struct module_options, yes, OPTION_FLAG, "yes", .letter = 'y',
	       .doc = "Approve it as it is now, without asking."),
	OUTPUT_ROW(struct module_options),
	HELP_ROW(struct module_options),
};
static const struct option_table approve_options = OPTION_TABLE(approve_rows, .mixed = true);

/* Prints the module's state after it. */
static int decided(const struct json_val *m, bool json, struct err *e)
{
	if (json)
		return hub_link_print(m, e);
	safe_line(stdout, json_str(json_get(m, "state")));
	putchar('\n');
	return 0;
}

/* ---- approve --------------------------------------------------------------------------------- */

static int approve_ask(const char *name, struct err *e)
{
	char line[16] = "";

	if (!isatty(STDIN_FILENO))
		return err_set(e, ERR_INVALID,
			       "there is no terminal to ask at: give --yes to approve %.64s as "
			       "it is",
			       name);
	fprintf(stderr, "\nApprove this module? [y/N] ");
	if (!fgets(line, sizeof(line), stdin) || (line[0] != 'y' && line[0] != 'Y'))
		return err_set(e, ERR_CANCELLED, "it was not approved");
	return 0;
}

/* What was shown is what is approved. */
static int approve(const char *name, const struct module_options *o, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *seen = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	autobuf struct buf body = BUF_INIT(1024);
	struct json_writer w = json_writer(&body);
	char path[MODULE_PATH_MAX];

	if (module_path(path, name, "", e) < 0 || !(l = hub_link_open(e)) ||
	    hub_link_ask(l, "GET", path, STR_NONE, &seen, e) < 0)
		return -1;
	if (!o->yes && (module_show(json_root(seen), e) < 0 || approve_ask(name, e) < 0))
		return -1;
	json_write_object(&w);
	json_write_key(&w, "digest");
	json_write_str(&w, json_str(json_get(json_root(seen), "digest")));
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0 || module_path(path, name, "/approve", e) < 0 ||
	    hub_link_ask(l, "POST", path, buf_str(&body), &doc, e) < 0)
		return -1;
	return decided(json_root(doc), o->output == OUTPUT_JSON, e);
}

static int approve_run(const struct verb_input *in)
{
	struct err e = ERR_INIT;

	return approve(in->operands[0], in->options, &e) < 0 ? hub_link_fail(&e) : 0;
}

const struct verb mcp_approve_verb = {
	.name = "mcp approve",
	.usage = "[OPTION...] NAME",
	.doc = "Show a module, ask, and let the hub use it.",
	.page = "holt-mcp-modules",
	.options = &approve_options,
	.size = sizeof(struct module_options),
	.min_operands = 1,
	.max_operands = 1,
	.usage_exit = 2,
	.run = approve_run,
};

/* ---- the others ------------------------------------------------------------------------------ */

static int decide(const struct verb_input *in, const char *what)
{
	const struct module_options *o = in->options;
	struct err e = ERR_INIT;
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	char path[MODULE_PATH_MAX];

	if (module_path(path, in->operands[0], what, &e) < 0 || !(l = hub_link_open(&e)) ||
	    hub_link_ask(l, "POST", path, STR_LIT("{}"), &doc, &e) < 0 ||
	    decided(json_root(doc), o->output == OUTPUT_JSON, &e) < 0)
		return hub_link_fail(&e);
	return 0;
}

#define DECIDES(word, doc_)                                                                        \
	static int word##_run(const struct verb_input *in)                                         \
	{                                                                                          \
		return decide(in, "/" #word);                                                      \
	}                                                                                          \
	const struct verb mcp_##word##_verb = {                                                    \
		.name = "mcp " #word,                                                              \
		.usage = "[OPTION...] NAME",                                                       \
		.doc = doc_,                                                                       \
		.page = "holt-mcp-modules",                                                        \
		.options = &module_options,                                                        \
		.size = sizeof(struct module_options),                                             \
		.min_operands = 1,                                                                 \
		.max_operands = 1,                                                                 \
		.usage_exit = 2,                                                                   \
		.run = word##_run,                                                                 \
	}

DECIDES(revoke, "Withdraw the approval of a module, and end it.");
DECIDES(enable, "Allow calls of a disabled module again.");
DECIDES(disable, "End a module, and refuse its calls until it is enabled.");
DECIDES(test, "Connect a module and list its tools; print its state.");
DECIDES(disconnect, "End a module without running calls, until its next call.");
