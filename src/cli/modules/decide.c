/* `holt mcp approve`, `update`, `revoke`, `enable`, `disable`, `test`, `disconnect`. */
#include <unistd.h>

#include "cli/common/safe.h"
#include "cli/modules/modules.h"

static const struct option_row approve_rows[] = {
	ASK_OPTION(flags[0], OPTION_FLAG, "yes", .letter = 'y',
		   .doc = "Approve it as it is now, without asking."),
	ASK_END,
};
static const struct option_table approve_options = OPTION_TABLE(approve_rows, .mixed = true);

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

static int decide_show(const struct json_val *m, const char *name, struct err *e)
{
	struct str hidden = json_str(json_get(m, "tools_hidden"));

	safe_puts(stdout, json_str(json_get(m, "state")));
	if (hidden.n) {
		fprintf(stderr, "Tools that are not offered (holt mcp info %s): ", name);
		safe_puts(stderr, hidden);
	}
	return 0;
}

/* Besides its state: how many tools it has, or why they are not known. */
static void approve_tell(const struct json_val *m, const char *name)
{
	struct str cause = json_str(json_get(m, "cause"));
	uint64_t tools;

	if (cause.n) {
		fputs("It is approved, and could not be connected: ", stderr);
		safe_puts(stderr, cause);
	} else if (json_uint64(json_get(m, "tools_count"), &tools)) {
		fprintf(stderr, "%llu tools can be called.\n", (unsigned long long)tools);
	}
}

static int approve_fetch(struct hub_link *l, const char *name, const struct json_val *seen,
			 struct json_doc **ret, struct err *e)
{
	char path[256];

	fprintf(stderr, "fetching ");
	safe_line(stderr, json_str(json_get(seen, "wanted")));
	fprintf(stderr, ", which may take a minute\n");
	if (hub_ask_path(&modules, path, sizeof(path), name, "/update", e) < 0)
		return -1;
	if (hub_link_ask(l, "POST", path, STR_LIT("{}"), ret, e) == 0)
		return 0;
	if (e->code == ERR_MODULE_FAILED) /* the registry's word, not the module's */
		e->code = ERR_PACKAGE;
	return -1;
}

/* The digest makes sure that what is approved is what was shown. */
static int approve_shown(const struct verb_input *in, struct hub_link *l,
			 const struct json_val *seen, struct err *e)
{
	const struct ask_options *o = in->options;
	const char *name = in->operands[0];
	AUTO(json_free) struct json_doc *doc = NULL;
	autobuf struct buf body = BUF_INIT(1024);
	struct json_writer w = json_writer(&body);
	char path[256];

	if (!o->flags[0] && (module_show(seen, name, e) < 0 || approve_ask(name, e) < 0))
		return -1;
	json_write_object(&w);
	json_write_key(&w, "digest");
	json_write_str(&w, json_str(json_get(seen, "digest")));
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0 ||
	    hub_ask_path(&modules, path, sizeof(path), name, "/approve", e) < 0 ||
	    hub_link_ask(l, "POST", path, buf_str(&body), &doc, e) < 0)
		return -1;
	if (o->output == OUTPUT_JSON)
		return hub_link_print(json_root(doc), e);
	approve_tell(json_root(doc), name);
	return decide_show(json_root(doc), name, e);
}

/* A package that was not fetched yet has to be, before anybody can look at it. */
static int approve_run(const struct verb_input *in, struct err *e)
{
	const char *name = in->operands[0];
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *seen = NULL;
	AUTO(json_free) struct json_doc *fetched = NULL;
	const struct json_val *m;
	char path[256];

	if (hub_ask_path(&modules, path, sizeof(path), name, "", e) < 0 ||
	    !(l = hub_link_open(e)) || hub_link_ask(l, "GET", path, STR_NONE, &seen, e) < 0)
		return -1;
	m = json_root(seen);
	if (json_get(m, "wanted") && !json_get(m, "package") && !json_get(m, "update")) {
		if (approve_fetch(l, name, m, &fetched, e) < 0)
			return -1;
		m = json_root(fetched);
	}
	return approve_shown(in, l, m, e);
}

const struct verb mcp_approve_verb = {
	.name = "mcp approve",
	.usage = "[OPTION...] NAME",
	.doc = "Show a module, ask, and let the hub use it.",
	.page = "holt-mcp-modules",
	.options = &approve_options,
	.size = sizeof(struct ask_options),
	.min_operands = 1,
	.run = approve_run,
	.fail = hub_link_fail,
};

/* ---- update ---------------------------------------------------------------------------------- */

static int update_run(const struct verb_input *in, struct err *e)
{
	const char *name = in->operands[0];
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *seen = NULL;
	AUTO(json_free) struct json_doc *fetched = NULL;
	char path[256];

	if (hub_ask_path(&modules, path, sizeof(path), name, "", e) < 0 ||
	    !(l = hub_link_open(e)) || hub_link_ask(l, "GET", path, STR_NONE, &seen, e) < 0)
		return -1;
	if (!json_get(json_root(seen), "wanted"))
		return err_set(e, ERR_INVALID, "module %.64s runs no package that is fetched",
			       name);
	if (approve_fetch(l, name, json_root(seen), &fetched, e) < 0)
		return -1;
	if (json_get(json_root(fetched), "update"))
		return approve_shown(in, l, json_root(fetched), e);
	puts("nothing has changed");
	return 0;
}

const struct verb mcp_update_verb = {
	.name = "mcp update",
	.usage = "[OPTION...] NAME",
	.doc = "Fetch a module's package again, and ask to use it.",
	.page = "holt-mcp-modules",
	.options = &approve_options,
	.size = sizeof(struct ask_options),
	.min_operands = 1,
	.run = update_run,
	.fail = hub_link_fail,
};

/* ---- the others ------------------------------------------------------------------------------ */

#define DECIDES(word, doc_)                                                                        \
	const struct verb mcp_##word##_verb = {                                                    \
		.name = "mcp " #word,                                                              \
		.usage = "[OPTION...] NAME",                                                       \
		.doc = doc_,                                                                       \
		.page = "holt-mcp-modules",                                                        \
		ASK(verb_output, .of = &modules, .method = "POST", .more = "/" #word,              \
		    .show = decide_show),                                                          \
		.min_operands = 1,                                                                 \
	}

DECIDES(revoke, "Withdraw the approval of a module, and end it.");
DECIDES(enable, "Allow calls of a disabled module again.");
DECIDES(disable, "End a module, and refuse its calls until it is enabled.");
DECIDES(test, "Connect a module and list its tools; print its state.");
DECIDES(disconnect, "End a module without running calls, until its next call.");
