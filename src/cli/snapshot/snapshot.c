/* `holt snapshot`: saved files of the hub's sandboxes. Without a subcommand it lists them. */
#include "cli/snapshot/snapshot.h"

#include "cli/common/safe.h"
#include "cli/common/table.h"

struct ls_options {
	struct verb_options common;
	uint32_t output;
};

static const struct option_row rows[] = {
	OUTPUT_ROW(struct ls_options),
	HELP_ROW(struct ls_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

int snapshot_path(char *ret, size_t size, const char *id, const char *more, struct err *e)
{
	char path[256];
	const char *front = "/v1/sandboxes/";

	if (hub_link_path(path, sizeof(path), id, more, e) < 0 ||
	    snprintf(ret, size, "/v1/snapshots/%s", path + strlen(front)) >= (int)size)
		return err_set(e, ERR_SNAPSHOT_NOT_FOUND, "no snapshot can be called \"%.80s\"",
			       id);
	return 0;
}

static void snapshot_row(struct table *t, const struct json_val *s)
{
	table_str(t, json_str(json_get(s, "id")));
	table_number(t, json_get(s, "bytes"), 1024, 0);
	table_str(t, json_str(json_get(s, "created_at")));
	table_str(t, json_str(json_get(s, "template_id")));
	table_str(t, json_str(json_get(s, "source")));
	table_str(t, json_str(json_get(s, "name")));
}

/* A page after the other; as JSON one array. */
static int snapshot_list(bool json, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(e);
	autobuf struct buf text = BUF_INIT(HUB_ANSWER_MAX);
	AUTO(table_free)
	struct table *t = TABLE(e, "ID", ">KiB", "CREATED", "TEMPLATE", "SOURCE", "NAME");
	struct json_writer w = json_writer(&text);
	char path[256] = "/v1/snapshots?limit=1000";
	struct str cursor = STR_NONE;

	if (!l || !t)
		return -1;
	json_write_array(&w);
	do {
		AUTO(json_free) struct json_doc *doc = NULL;
		struct json_iter it;

		if (hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0)
			return -1;
		it = json_iter(json_get(json_root(doc), "snapshots"));
		while (json_next(&it)) {
			if (json)
				json_write_val(&w, it.val);
			else
				snapshot_row(t, it.val);
		}
		cursor = json_str(json_get(json_root(doc), "next_cursor"));
		snprintf(path, sizeof(path), "/v1/snapshots?limit=1000&cursor=%.*s",
			 STR_CUT(cursor, 64));
	} while (cursor.p);
	json_write_array_end(&w);
	if (!json) {
		table_print(t);
		return 0;
	}
	if (json_write_done(&w, e) < 0)
		return -1;
	safe_json_text(stdout, buf_str(&text));
	putchar('\n');
	return 0;
}

static int run_list(const struct verb_input *in)
{
	const struct ls_options *o = in->options;
	struct err e = ERR_INIT;

	return snapshot_list(o->output == OUTPUT_JSON, &e) < 0 ? hub_link_fail(&e) : 0;
}

#define LIST                                                                                       \
	.usage = "[OPTION...]", .doc = "List the snapshots that the hub keeps.",                   \
	.page = "holt-snapshot", .options = &options, .size = sizeof(struct ls_options),           \
	.usage_exit = 2, .run = run_list

extern const struct verb snapshot_create_verb, snapshot_restore_verb, snapshot_rm_verb,
	snapshot_export_verb, snapshot_import_verb;
static const struct verb snapshot_ls_verb = { .name = "snapshot ls", LIST };

/* A file and a row each. */
static const struct verb *const words[] = {
	&snapshot_ls_verb,
	&snapshot_create_verb,
	&snapshot_restore_verb,
	&snapshot_rm_verb,
	&snapshot_export_verb,
	&snapshot_import_verb,
	NULL,
};

const struct verb snapshot_verb = { .name = "snapshot", LIST, .words = words };
