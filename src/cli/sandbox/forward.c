/* `holt forward`: makes ports of a sandbox reachable on this machine's loopback. */
#include <stdio.h>

#include "cli/link/ports.h"
#include "cli/common/safe.h"
#include "cli/link/ask.h"

enum { PORTS_MAX = 16 };

static const struct option_row rows[] = {
	ASK_OPTION(flags[0], OPTION_FLAG, "delete", .letter = 'd',
		   .doc = "End the forwards of these ports, or all, and their connections."),
	ASK_END,
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static int forward_make(struct hub_link *l, const char *name, const struct port_words *p, bool json,
			struct err *e)
{
	AUTO(json_free) struct json_doc *doc = NULL;

	if (ports_forward(l, name, p, &doc, e) < 0)
		return -1;
	if (json)
		return 0;
	safe_puts(stdout, json_str(json_get(json_root(doc), "host")));
	return 0;
}

/* port 0: all. */
static int forward_end(struct hub_link *l, const char *name, unsigned port, struct err *e)
{
	char more[64] = "/forward", path[256];

	if (port)
		snprintf(more, sizeof(more), "/forward?guest_port=%u", port);
	if (hub_link_path(path, sizeof(path), name, more, e) < 0)
		return -1;
	return hub_link_ask(l, "DELETE", path, STR_NONE, NULL, e);
}

static int forward_act(const struct verb_input *in, struct err *e)
{
	const struct ask_options *o = in->options;
	const char *name = in->operands[0];
	AUTO(hub_link_close) struct hub_link *l = NULL;
	struct port_words ports[PORTS_MAX];
	int n = in->n_operands - 1, result = 0;

	for (int i = 0; i < n; i++) {
		if (ports_read(in->operands[i + 1], &ports[i], e) < 0)
			return -1;
	}
	l = hub_link_open(e);
	if (!l || (o->flags[0] && n == 0))
		return l ? forward_end(l, name, 0, e) : -1;
	for (int i = 0; i < n && result == 0; i++)
		result = o->flags[0]
			       ? forward_end(l, name, ports[i].guest, e)
			       : forward_make(l, name, &ports[i], o->output == OUTPUT_JSON, e);
	return result;
}

/* Prints the list of forwards where nothing is changed, and for programs also after new ones. */
static int forward_run(const struct verb_input *in, struct err *e)
{
	const struct ask_options *o = in->options;

	if ((in->n_operands > 1 || o->flags[0]) && forward_act(in, e) < 0)
		return -1;
	if (o->flags[0] || (in->n_operands > 1 && o->output != OUTPUT_JSON))
		return 0;
	return hub_ask_run(in, e);
}

static const struct ask forwards = {
	.of = &ask_sandbox,
	.more = "/forward",
	.list = "forwards",
	ASK_COLUMNS({ "HOST", "host" }, { ">PORT", "guest_port", .unit = 1 },
		    { ">CONNECTIONS", "connections", .unit = 1 }),
};

const struct verb forward_verb = {
	.name = "forward",
	.usage = "[OPTION...] NAME [[HOST:]PORT...]",
	.doc = "Forward ports of a sandbox to 127.0.0.1, or list them.",
	.more = "Prints the address for each PORT of the sandbox. Whoever can connect to\n"
		"127.0.0.1 can use it. A forward ends with the sandbox or the hub.",
	.page = "holt-sandbox",
	.options = &options,
	.size = sizeof(struct ask_options),
	.min_operands = 1,
	.max_operands = 1 + PORTS_MAX,
	.ask = &forwards,
	.run = forward_run,
	.fail = hub_link_fail,
};
