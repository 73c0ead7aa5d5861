/* `holt fs`: files of a sandbox of the hub, without a command in it. */
#include "cli/files/fs.h"

const struct option_table fs_options =
	OPTION_TABLE(((const struct option_row[]){ HELP_ROW(struct fs_options) }), .mixed = true);

void fs_begin(struct json_writer *w, char **operands)
{
	json_write_object(w);
	hub_link_text(w, "sandbox", operands[0]);
	hub_link_text(w, "path", operands[1]);
}

int fs_ask(struct hub_link *l, const char *word, struct json_writer *w, struct json_doc **ret,
	   struct err *e)
{
	char path[64];

	json_write_object_end(w);
	if (json_write_done(w, e) < 0)
		return -1;
	snprintf(path, sizeof(path), "/v1/files/%s", word);
	return hub_link_ask(l, "POST", path, buf_str(w->buf), ret, e);
}

extern const struct verb fs_ls_verb, fs_stat_verb, fs_read_verb, fs_write_verb, fs_mkdir_verb,
	fs_rm_verb, fs_mv_verb, fs_watch_verb;

/* A row each. */
static const struct verb *const words[] = {
	&fs_ls_verb, &fs_stat_verb, &fs_read_verb,  &fs_write_verb, &fs_mkdir_verb,
	&fs_rm_verb, &fs_mv_verb,   &fs_watch_verb, NULL,
};

const struct verb fs_verb = {
	.name = "fs",
	.usage = "WORD NAME PATH...",
	.doc = "Read, write and list files of a sandbox of the hub.",
	.page = "holt-sandbox",
	.options = &fs_options,
	.size = sizeof(struct fs_options),
	.words = words,
};
