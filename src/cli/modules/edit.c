/* `holt mcp remove` and `allow`: changes of a server in the operator's file. */
#include <stdio.h>

#include "cli/common/home.h"
#include "cli/common/safe.h"
#include "cli/import/own.h"
#include "cli/modules/modules.h"
#include "net/wire/rule.h"

struct edit_options {
	struct verb_options common;
	const char *config;
};

static const struct option_row rows[] = {
	CONFIG_ROW(struct edit_options, config),
	HELP_ROW(struct edit_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

/* The operator's file, which has a server of this name. */
static struct config *edit_open(const struct verb_input *in, struct err *e)
{
	const struct edit_options *o = in->options;
	AUTO(config_unref) struct config *c = NULL;
	char path[PATH_MAX];
	bool must;

	c = home_config(o->config, path, &must, e) < 0 ? NULL : config_open(path, false, e);
	if (!c || config_server_find(config_file(c), str_of(in->operands[0])))
		return take_ptr(c);
	err_set(e, ERR_MODULE_NOT_FOUND, "the operator's file has no MCP server %.64s",
		in->operands[0]);
	return NULL;
}

static int edit_remove(const void *data, struct str text, struct buf *to, struct err *e)
{
	return config_remove(text, "mcpServers", str_of(data), to, e);
}

static int remove_run(const struct verb_input *in, struct err *e)
{
	const char *name = in->operands[0];
	AUTO(config_unref) struct config *c = edit_open(in, e);

	if (!c || own_edit(c, edit_remove, name, e) < 0)
		return -1;
	safe_line(stdout, str_of(config_path(c)));
	printf(": %s removed; its program, calls and approval end with it\n", name);
	return 0;
}

const struct verb mcp_remove_verb = {
	.name = "mcp remove",
	.alias = "mcp rm",
	.usage = "[OPTION...] NAME",
	.doc = "Remove an MCP server from the operator's file.",
	.more = "All else in the file stays, comments too. A running hub ends the module after\n"
		"the last call under way. Its secrets stay: holt secret rm deletes them.",
	.page = "holt-mcp-modules",
	.options = &options,
	.size = sizeof(struct edit_options),
	.min_operands = 1,
	.run = remove_run,
};

/* ---- allow ----------------------------------------------------------------------------------- */

struct edit_rule {
	struct str name;
	char rule[NET_RULE_TEXT];
};

static int edit_allow(const void *data, struct str text, struct buf *to, struct err *e)
{
	const struct edit_rule *r = data;

	return config_allow(text, r->name, str_of(r->rule), to, e);
}

static bool edit_has(const struct config *c, const struct edit_rule *r)
{
	const struct field_strs *have =
		&config_server_find(config_file(c), r->name)->sandbox.network;

	for (size_t i = 0; i < have->n; i++) {
		if (str_is(have->p[i], r->rule))
			return true;
	}
	return false;
}

/* HOST, at port 443 if it has none, or a preset of the file. */
static int edit_rule(struct edit_rule *ret, const struct config *c, const char *word, struct err *e)
{
	const struct config_network *n = &config_file(c)->network;
	struct net_rule r;
	char local[32] = "";

	for (size_t i = 0; i < n->presets.n; i++) {
		if (str_is(n->presets.p[i].name, word)) {
			snprintf(ret->rule, sizeof(ret->rule), "%s", word);
			return 0;
		}
	}
	if (net_is_service(str_of(word))) {
		snprintf(ret->rule, sizeof(ret->rule), "%.*s", NET_HOST_MAX, word);
		return 0;
	}
	if (strstr(word, "://"))
		return err_set(e, ERR_INVALID, "it takes HOST[:PORT], not the address %.120s",
			       word);
	/* what people call it; to the sandbox the name is itself */
	if (str_starts(str_of(word), "localhost:"))
		snprintf(local, sizeof(local), "127.0.0.1%.8s", word + strlen("localhost"));
	if (net_rule_parse(str_of(*local ? local : word), true, &r, e) < 0)
		return -1;
	if (!r.port && r.kind != NET_RULE_CIDR)
		r.port = 443;
	net_rule_print(&r, ret->rule);
	return 0;
}

static int allow_run(const struct verb_input *in, struct err *e)
{
	AUTO(config_unref) struct config *c = edit_open(in, e);

	for (int i = 1; c && i < in->n_operands; i++) {
		struct edit_rule r = { .name = str_of(in->operands[0]) };

		if (edit_rule(&r, c, in->operands[i], e) < 0)
			return -1;
		if (edit_has(c, &r)) {
			printf("%s: %s is granted already\n", in->operands[0], r.rule);
			continue;
		}
		if (own_edit(c, edit_allow, &r, e) < 0)
			return -1;
		printf("%s: %s is granted; next: holt mcp approve %s\n", in->operands[0], r.rule,
		       in->operands[0]);
		config_unref(c);
		c = edit_open(in, e);
	}
	return c ? 0 : -1;
}

const struct verb mcp_allow_verb = {
	.name = "mcp allow",
	.usage = "[OPTION...] NAME HOST[:PORT]...",
	.doc = "Let an MCP server of the operator's file reach a host.",
	.more = "HOST is a name, *.DOMAIN, an address, localhost:PORT of this host, a service\n"
		"(holt serve --service) or a preset of the file. Without PORT it is 443. All\n"
		"else in the file stays. The module has to be approved again.",
	.page = "holt-mcp-modules",
	.options = &options,
	.size = sizeof(struct edit_options),
	.min_operands = 2,
	.max_operands = 64,
	.run = allow_run,
};
