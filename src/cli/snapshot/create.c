/* `holt snapshot create`: stores the files that a sandbox of the hub has changed. */
#include "cli/common/safe.h"
#include "cli/snapshot/snapshot.h"

struct create_options {
	struct verb_options common;
	const char *name;
	uint64_t ttl_ms;
	uint32_t output;
};

static const struct option_row rows[] = {
	OPTION(struct create_options, name, OPTION_TEXT, "name", .letter = 'n', .arg = "TEXT",
	       .doc = "A name for people."),
	OPTION(struct create_options, ttl_ms, OPTION_SECONDS, "ttl", .arg = "TIME", .min = 1000,
	       .doc = "Delete it after this time; by default never."),
	OUTPUT_ROW(struct create_options),
	HELP_ROW(struct create_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static int create_create(const struct verb_input *in, struct err *e)
{
	const struct create_options *o = in->options;
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	autobuf struct buf text = BUF_INIT(HUB_BODY_MAX);
	struct json_writer w = json_writer(&text);
	char path[256];

	json_write_object(&w);
	hub_link_text(&w, "name", o->name);
	if (o->ttl_ms) {
		json_write_key(&w, "ttl_seconds");
		json_write_uint(&w, o->ttl_ms / 1000);
	}
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0 ||
	    hub_link_path(path, sizeof(path), in->operands[0], "/snapshots", e) < 0)
		return -1;
	l = hub_link_open(e);
	if (!l || hub_link_ask(l, "POST", path, buf_str(&text), &doc, e) < 0)
		return -1;
	if (o->output == OUTPUT_JSON)
		return hub_link_print(json_root(doc), e);
	safe_line(stdout, json_str(json_get(json_root(doc), "id")));
	putchar('\n');
	return 0;
}

static int create_run(const struct verb_input *in)
{
	struct err e = ERR_INIT;

	return create_create(in, &e) < 0 ? hub_link_fail(&e) : 0;
}

const struct verb snapshot_create_verb = {
	.name = "snapshot create",
	.usage = "[OPTION...] NAME",
	.doc = "Keep the files of a sandbox, and print the snapshot's id.",
	.more = "The sandbox is frozen meanwhile.",
	.page = "holt-snapshot",
	.options = &options,
	.size = sizeof(struct create_options),
	.min_operands = 1,
	.max_operands = 1,
	.usage_exit = 2,
	.run = create_run,
};
