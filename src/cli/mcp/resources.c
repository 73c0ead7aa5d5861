/* Lists resources and their templates. */
#include <stdio.h>

#include "cli/peer/peer.h"
#include "cli/common/safe.h"

struct resources_options {
	struct verb_options common;
	struct peer_options peer;
};

static const struct option_row rows[] = {
	PEER_ROWS(struct resources_options),
	HELP_ROW(struct resources_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

/* The first list, kept until the second has arrived. */
struct listing {
	struct buf text;
	struct json_writer w;
	size_t n;
};

static void resources_show(const struct json_val *v, const char *key)
{
	struct str mime = json_str(json_get(v, "mimeType")), name = json_str(json_get(v, "name"));
	struct str title = json_str(json_get(v, "title"));
	int64_t size;

	safe_short(stdout, json_str(json_get(v, key)), 2048);
	fputs("  ", stdout);
	safe_short(stdout, title.n > 0 ? title : name, 200);
	if (mime.n > 0) {
		fputs("  [", stdout);
		safe_short(stdout, mime, 100);
		if (json_int64(json_get(v, "size"), &size))
			printf(", %lld bytes", (long long)size);
		putchar(']');
	}
	putchar('\n');
	safe_text(stdout, json_str(json_get(v, "description")), 4);
}

static void on_templates(struct peer *p, const struct mcp_listed *l)
{
	struct listing *g = peer_state(p);

	if (peer_options(p)->json) {
		peer_write_list(&g->w, "resourceTemplates", l);
		json_write_object_end(&g->w);
		peer_print_written(p, &g->w);
		return;
	}
	for (size_t i = 0; i < l->n; i++)
		resources_show(l->items[i], "uriTemplate");
	if (g->n + l->n == 0)
		puts("The server has no resources.");
	peer_end(p, PEER_OK);
}

static void on_resources(struct peer *p, const struct mcp_listed *l)
{
	struct listing *g = peer_state(p);

	g->n = l->n;
	json_write_object(&g->w);
	if (peer_options(p)->json)
		peer_write_list(&g->w, "resources", l);
	else
		for (size_t i = 0; i < l->n; i++)
			resources_show(l->items[i], "uri");
	peer_list(p, "resourceTemplates", on_templates);
}

static void on_ready(struct peer *p)
{
	peer_list(p, "resources", on_resources);
}

static int resources_run(const struct verb_input *in)
{
	const struct resources_options *o = in->options;
	struct listing g = { .text = BUF_INIT(256 << 20) };
	int status;

	g.w = json_writer(&g.text);
	status = peer_run(in, &o->peer, on_ready, &g);
	buf_fini(&g.text);
	return status;
}

const struct verb mcp_resources_verb = {
	.name = "mcp resources",
	.usage = "[OPTION...]",
	.doc = "List the resources of an MCP server, and their templates.",
	.more = PEER_MORE,
	.page = "holt-mcp-client",
	.options = &options,
	.size = sizeof(struct resources_options),
	.usage_exit = 2,
	.run = resources_run,
};
