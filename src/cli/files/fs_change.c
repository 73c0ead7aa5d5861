/* `holt fs mkdir`, `rm` and `mv`. */
#include "cli/files/fs.h"

struct rm_options {
	struct verb_options common;
	bool recursive;
};

static const struct option_row rm_rows[] = {
	OPTION(struct rm_options, recursive, OPTION_FLAG, "recursive", .letter = 'r',
	       .doc = "Also remove the contents of a directory."),
	HELP_ROW(struct rm_options),
};
static const struct option_table rm_options = OPTION_TABLE(rm_rows, .mixed = true);

/* more: writes members beyond sandbox and path; may be NULL. */
static int fs_change_ask(const struct verb_input *in, const char *word,
			 void (*more)(const struct verb_input *in, struct json_writer *w))
{
	struct err e = ERR_INIT;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(&e);
	autobuf struct buf text = BUF_INIT(HUB_BODY_MAX);
	struct json_writer w = json_writer(&text);

	fs_begin(&w, in->operands);
	if (more)
		more(in, &w);
	return !l || fs_ask(l, word, &w, NULL, &e) < 0 ? hub_link_fail(&e) : 0;
}

static int run_mkdir(const struct verb_input *in)
{
	return fs_change_ask(in, "mkdir", NULL);
}

static void write_recursive(const struct verb_input *in, struct json_writer *w)
{
	const struct rm_options *o = in->options;

	json_write_key(w, "recursive");
	json_write_bool(w, o->recursive);
}

static int run_rm(const struct verb_input *in)
{
	return fs_change_ask(in, "remove", write_recursive);
}

static void write_to(const struct verb_input *in, struct json_writer *w)
{
	hub_link_text(w, "to", in->operands[2]);
}

static int run_mv(const struct verb_input *in)
{
	return fs_change_ask(in, "move", write_to);
}

const struct verb fs_mkdir_verb = {
	.name = "fs mkdir",
	.usage = "NAME PATH",
	.doc = "Make a directory and its parents.",
	.page = "holt-sandbox",
	.options = &fs_options,
	.size = sizeof(struct fs_options),
	.min_operands = 2,
	.max_operands = 2,
	.run = run_mkdir,
};

const struct verb fs_rm_verb = {
	.name = "fs rm",
	.usage = "[-r] NAME PATH",
	.doc = "Remove a file or an empty directory.",
	.page = "holt-sandbox",
	.options = &rm_options,
	.size = sizeof(struct rm_options),
	.min_operands = 2,
	.max_operands = 2,
	.run = run_rm,
};

const struct verb fs_mv_verb = {
	.name = "fs mv",
	.usage = "NAME PATH TO",
	.doc = "Move a file or directory; an existing file is replaced.",
	.page = "holt-sandbox",
	.options = &fs_options,
	.size = sizeof(struct fs_options),
	.min_operands = 3,
	.max_operands = 3,
	.run = run_mv,
};
