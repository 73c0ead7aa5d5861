/* `holt ws verify`. */
#include <inttypes.h>

#include "cli/common/safe.h"
#include "cli/ws/ws.h"

enum { VERIFY_DAMAGED = 3 };

static void verify_print(const struct json_val *v)
{
	struct json_iter it = json_iter(json_get(v, "damages"));

	while (json_next(&it)) {
		printf("revision %.0f, /", json_real(json_get(it.val, "number")));
		safe_line(stdout, json_str(json_get(it.val, "path")));
		fputs(": ", stdout);
		safe_line(stdout, json_str(json_get(it.val, "why")));
		putchar('\n');
	}
	printf("%.0f revisions, %.0f objects, %.0f KiB of contents: %.0f damaged\n",
	       json_real(json_get(v, "revisions")), json_real(json_get(v, "objects")),
	       json_real(json_get(v, "bytes")) / 1024, json_real(json_get(v, "damaged")));
}

/* 1: something is damaged. */
static int verify_show(const char *name, bool json, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	char path[256];

	if (hub_ask_path(&workspaces, path, sizeof(path), name, "/verify", e) < 0)
		return -1;
	l = hub_link_open(e);
	if (!l || hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0 ||
	    (json && hub_link_print(json_root(doc), e) < 0))
		return -1;
	if (!json)
		verify_print(json_root(doc));
	return json_real(json_get(json_root(doc), "damaged")) > 0;
}

static int verify_run(const struct verb_input *in)
{
	const struct ask_options *o = in->options;
	struct err e = ERR_INIT;
	int result = verify_show(in->operands[0], o->output == OUTPUT_JSON, &e);

	return result < 0 ? hub_link_fail(&e) : result ? VERIFY_DAMAGED : 0;
}

const struct verb ws_verify_verb = {
	.name = "ws verify",
	.usage = "[OPTION...] NAME",
	.doc = "Read everything its revisions need; exit with 3 on damage.",
	.page = "holt-ws",
	.options = &ask_output,
	.size = sizeof(struct ask_options),
	.min_operands = 1,
	.max_operands = 1,
	.run = verify_run,
};
