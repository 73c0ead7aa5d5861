/* `holt ws gc` and `verify`. */
#include <inttypes.h>

#include "cli/common/safe.h"
#include "cli/ws/ws.h"

/* ---- gc -------------------------------------------------------------------------------------- */

static int gc_show(bool json, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(e);
	AUTO(json_free) struct json_doc *doc = NULL;
	const struct json_val *v;

	if (!l || hub_link_ask(l, "DELETE", "/v1/workspaces-garbage", STR_NONE, &doc, e) < 0)
		return -1;
	v = json_root(doc);
	if (json)
		return hub_link_print(v, e);
	printf("Removed %.0f objects (%.0f KiB); %.0f (%.0f KiB) are in use\n",
	       json_real(json_get(v, "removed")), json_real(json_get(v, "removed_bytes")) / 1024,
	       json_real(json_get(v, "kept")), json_real(json_get(v, "kept_bytes")) / 1024);
	return 0;
}

static int gc_run(const struct verb_input *in)
{
	const struct ws_options *o = in->options;
	struct err e = ERR_INIT;

	return gc_show(o->output == OUTPUT_JSON, &e) < 0 ? hub_link_fail(&e) : 0;
}

const struct verb ws_gc_verb = {
	.name = "ws gc",
	.usage = "[OPTION...]",
	.doc = "Remove from the disk what no revision needs.",
	.more = "This also happens by itself, soon after a workspace was deleted.",
	.page = "holt-ws",
	.options = &ws_options,
	.size = sizeof(struct ws_options),
	.usage_exit = 2,
	.run = gc_run,
};

/* ---- verify ---------------------------------------------------------------------------------- */

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
	char path[WS_PATH_MAX];

	if (ws_path(path, name, "/verify", e) < 0)
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
	const struct ws_options *o = in->options;
	struct err e = ERR_INIT;
	int result = verify_show(in->operands[0], o->output == OUTPUT_JSON, &e);

	return result < 0 ? hub_link_fail(&e) : result ? VERIFY_DAMAGED : 0;
}

const struct verb ws_verify_verb = {
	.name = "ws verify",
	.usage = "[OPTION...] NAME",
	.doc = "Read everything its revisions need; exit with 3 on damage.",
	.page = "holt-ws",
	.options = &ws_options,
	.size = sizeof(struct ws_options),
	.min_operands = 1,
	.max_operands = 1,
	.usage_exit = 2,
	.run = verify_run,
};
