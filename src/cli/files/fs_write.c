#include <stdlib.h>
#include <unistd.h>

#include "cli/common/file.h"
#include "cli/files/fs.h"

enum { CONTENT_MAX = 23 << 20 }; /* in base64 it is to fit a request */

struct write_options {
	struct verb_options common;
	const char *mode;
};

static const struct option_row rows[] = {
	OPTION(struct write_options, mode, OPTION_TEXT, "mode", .arg = "OCTAL",
	       .doc = "Permissions of a new file, such as 755; by default 644."),
	HELP_ROW(struct write_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static int read_mode(const char *text, uint64_t *ret, struct err *e)
{
	char *end;

	*ret = strtoul(text, &end, 8);
	if (end == text || *end || *ret > 07777)
		return err_set(e, ERR_INVALID, "--mode takes octal digits such as 755, not '%.20s'",
			       text);
	return 0;
}

static int fs_write_put(const struct verb_input *in, struct err *e)
{
	const struct write_options *o = in->options;
	AUTO(hub_link_close) struct hub_link *l = NULL;
	autobuf struct buf text = BUF_INIT(HUB_BODY_MAX), bytes = BUF_INIT(CONTENT_MAX);
	struct json_writer w = json_writer(&text);
	uint64_t mode = 0;

	if ((o->mode && read_mode(o->mode, &mode, e) < 0) ||
	    file_read_fd(STDIN_FILENO, "standard input", &bytes, e) < 0)
		return -1;
	fs_begin(&w, in->operands);
	hub_link_text(&w, "encoding", "base64");
	if (o->mode) {
		json_write_key(&w, "mode");
		json_write_uint(&w, mode);
	}
	json_write_key(&w, "content");
	json_write_base64(&w, buf_str(&bytes));
	l = hub_link_open(e);
	return l ? fs_ask(l, "write", &w, NULL, e) : -1;
}

static int fs_write_run(const struct verb_input *in)
{
	struct err e = ERR_INIT;

	return fs_write_put(in, &e) < 0 ? hub_link_fail(&e) : 0;
}

const struct verb fs_write_verb = {
	.name = "fs write",
	.usage = "[OPTION...] NAME PATH",
	.doc = "Write standard input to a file, at most 23 MiB.",
	.more = "The file is replaced as a whole and keeps its permissions. Parents are created.",
	.page = "holt-sandbox",
	.options = &options,
	.size = sizeof(struct write_options),
	.min_operands = 2,
	.max_operands = 2,
	.run = fs_write_run,
};
