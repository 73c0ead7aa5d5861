/* `holt forward`: makes ports of a sandbox reachable on this machine's loopback. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/link/ports.h"
#include "cli/common/safe.h"
#include "cli/common/table.h"
#include "cli/common/verb.h"

enum { PORTS_MAX = 16 };

struct forward_options {
	struct verb_options common;
	bool end;
	uint32_t output;
};

static const struct option_row rows[] = {
	OPTION(struct forward_options, end, OPTION_FLAG, "delete", .letter = 'd',
	       .doc = "End the forwards of these ports, or all, and their connections."),
	OUTPUT_ROW(struct forward_options),
	HELP_ROW(struct forward_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

struct forward_request {
	const char *name;
	struct port_words ports[PORTS_MAX];
	size_t n;
	bool json;
};

static int forward_list(struct hub_link *l, const struct forward_request *w, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	const struct json_val *all;
	AUTO(table_free) struct table *t = NULL;
	struct json_iter it;
	char path[256];

	if (hub_link_path(path, sizeof(path), w->name, "/forward", e) < 0 ||
	    hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0)
		return -1;
	all = json_get(json_root(doc), "forwards");
	if (w->json)
		return hub_link_print(all, e);
	t = TABLE(e, "HOST", ">PORT", ">CONNECTIONS");
	if (!t)
		return -1;
	it = json_iter(all);
	while (json_next(&it)) {
		table_str(t, json_str(json_get(it.val, "host")));
		table_number(t, json_get(it.val, "guest_port"), 1, 0);
		table_number(t, json_get(it.val, "connections"), 1, 0);
	}
	table_print(t);
	return 0;
}

static int forward(struct hub_link *l, const struct forward_request *w, struct err *e)
{
	for (size_t i = 0; i < w->n; i++) {
		AUTO(json_free) struct json_doc *doc = NULL;

		if (ports_forward(l, w->name, &w->ports[i], &doc, e) < 0)
			return -1;
		if (w->json)
			continue;
		safe_line(stdout, json_str(json_get(json_root(doc), "host")));
		putchar('\n');
	}
	return w->json ? forward_list(l, w, e) : 0;
}

static int forward_end(struct hub_link *l, const struct forward_request *w, struct err *e)
{
	char more[64], path[256];

	for (size_t i = 0; i < w->n || i == 0; i++) {
		more[0] = '\0';
		if (w->n)
			snprintf(more, sizeof(more), "?guest_port=%u", w->ports[i].guest);
		if (hub_link_path(path, sizeof(path), w->name, "/forward", e) < 0)
			return -1;
		strncat(path, more, sizeof(path) - strlen(path) - 1);
		if (hub_link_ask(l, "DELETE", path, STR_NONE, NULL, e) < 0)
			return -1;
	}
	return 0;
}

static int act(const struct verb_input *in, struct err *e)
{
	const struct forward_options *o = in->options;
	AUTO(hub_link_close) struct hub_link *l = NULL;
	struct forward_request w = { .name = in->operands[0], .json = o->output == OUTPUT_JSON };

	for (int i = 1; i < in->n_operands; i++) {
		if (ports_read(in->operands[i], &w.ports[w.n++], e) < 0)
			return -1;
	}
	l = hub_link_open(e);
	if (!l)
		return -1;
	return o->end ? forward_end(l, &w, e) : w.n ? forward(l, &w, e) : forward_list(l, &w, e);
}

static int forward_run(const struct verb_input *in)
{
	struct err e = ERR_INIT;

	return act(in, &e) < 0 ? hub_link_fail(&e) : 0;
}

const struct verb forward_verb = {
	.name = "forward",
	.usage = "[OPTION...] NAME [[HOST:]PORT...]",
	.doc = "Forward ports of a sandbox to 127.0.0.1, or list them.",
	.more = "Prints the address for each PORT of the sandbox. Whoever can connect to\n"
		"127.0.0.1 can use it. A forward ends with the sandbox or the hub.",
	.page = "holt-sandbox",
	.options = &options,
	.size = sizeof(struct forward_options),
	.min_operands = 1,
	.max_operands = 1 + PORTS_MAX,
	.run = forward_run,
};
