/* `holt ws`: workspaces of the hub. Without a subcommand it lists them. */
#include "cli/ws/ws.h"

#include "cli/common/safe.h"
#include "cli/common/table.h"

static const struct option_row rows[] = {
	OUTPUT_ROW(struct ws_options),
	HELP_ROW(struct ws_options),
};
const struct option_table ws_options = OPTION_TABLE(rows, .mixed = true);

int ws_path(char ret[WS_PATH_MAX], const char *name, const char *more, struct err *e)
{
	char path[256];
	const char *front = "/v1/sandboxes/";

	if (hub_link_path(path, sizeof(path), name, more, e) < 0 ||
	    snprintf(ret, WS_PATH_MAX, "/v1/workspaces/%s", path + strlen(front)) >= WS_PATH_MAX)
		return err_set(e, ERR_WORKSPACE_NOT_FOUND, "no workspace can be called \"%.80s\"",
			       name);
	return 0;
}

static void ws_row(struct table *t, const struct json_val *w)
{
	struct str revision = json_str(json_get(w, "revision"));

	table_str(t, json_str(json_get(w, "workspace")));
	table_str(t, (struct str){ revision.p, revision.n < 12 ? revision.n : 12 });
	table_number(t, json_get(w, "files"), 1, 0);
	table_number(t, json_get(w, "bytes"), 1024, 0);
	table_str(t, json_str(json_get(w, "changed_at")));
	table_str(t, json_str(json_get(w, "sandbox")));
}

/* A page after the other; as JSON one array. */
static int ws_list(bool json, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(e);
	autobuf struct buf text = BUF_INIT(HUB_ANSWER_MAX);
	AUTO(table_free)
	struct table *t = TABLE(e, "NAME", "REVISION", ">FILES", ">KiB", "CHANGED", "SANDBOX");
	struct json_writer w = json_writer(&text);
	char path[256] = "/v1/workspaces?limit=1000";
	struct str cursor = STR_NONE;

	if (!l || !t)
		return -1;
	json_write_array(&w);
	do {
		AUTO(json_free) struct json_doc *doc = NULL;
		struct json_iter it;

		if (hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0)
			return -1;
		it = json_iter(json_get(json_root(doc), "workspaces"));
		while (json_next(&it)) {
			if (json)
				json_write_val(&w, it.val);
			else
				ws_row(t, it.val);
		}
		cursor = json_str(json_get(json_root(doc), "next_cursor"));
		snprintf(path, sizeof(path), "/v1/workspaces?limit=1000&cursor=%.*s",
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
	const struct ws_options *o = in->options;
	struct err e = ERR_INIT;

	return ws_list(o->output == OUTPUT_JSON, &e) < 0 ? hub_link_fail(&e) : 0;
}

#define LIST                                                                                       \
	.usage = "[OPTION...]", .doc = "List workspaces: files that outlive sandboxes.",           \
	.page = "holt-ws", .options = &ws_options, .size = sizeof(struct ws_options),              \
	.usage_exit = 2, .run = run_list

static const struct verb ws_ls_verb = { .name = "ws ls", LIST };

static const struct verb *const words[] = {
	&ws_ls_verb,	 &ws_create_verb, &ws_attach_verb, &ws_commit_verb, &ws_log_verb,
	&ws_diff_verb,	 &ws_revert_verb, &ws_fork_verb,   &ws_rm_verb,	    &ws_import_verb,
	&ws_export_verb, &ws_gc_verb,	  &ws_verify_verb, &ws_apply_verb,  NULL,
};

const struct verb ws_verb = { .name = "ws", LIST, .words = words };
