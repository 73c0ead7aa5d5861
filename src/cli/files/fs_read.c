#include <inttypes.h>
#include <unistd.h>

#include "base/base64.h"
#include "cli/common/file.h"
#include "cli/files/fs.h"

enum { PIECE = 1 << 20 };

static int ask_piece(struct hub_link *l, char **operands, uint64_t offset, struct json_doc **ret,
		     struct err *e)
{
	autobuf struct buf text = BUF_INIT(HUB_BODY_MAX);
	struct json_writer w = json_writer(&text);

	fs_begin(&w, operands);
	hub_link_text(&w, "encoding", "base64");
	json_write_key(&w, "offset");
	json_write_uint(&w, offset);
	json_write_key(&w, "limit");
	json_write_uint(&w, PIECE);
	return fs_ask(l, "read", &w, ret, e);
}

/* Counts the printed bytes. 1 if the file has more. */
static int print_piece(struct hub_link *l, char **operands, uint64_t *offset, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	autobuf struct buf bytes = BUF_INIT(PIECE);

	if (ask_piece(l, operands, *offset, &doc, e) < 0 ||
	    base64_decode(&bytes, json_str(json_get(json_root(doc), "content")), e) < 0 ||
	    file_write_fd(STDOUT_FILENO, "standard output", buf_str(&bytes), e) < 0)
		return -1;
	*offset += bytes.n;
	return bytes.n > 0 && !json_bool(json_get(json_root(doc), "eof"));
}

static int fs_read_run(const struct verb_input *in)
{
	struct err e = ERR_INIT;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(&e);
	uint64_t offset = 0;
	int more = l ? 1 : -1;

	while (more > 0)
		more = print_piece(l, in->operands, &offset, &e);
	return more < 0 ? hub_link_fail(&e) : 0;
}

const struct verb fs_read_verb = {
	.name = "fs read",
	.usage = "NAME PATH",
	.doc = "Print a file.",
	.more = "A file that changes meanwhile is printed in parts of different ages.",
	.page = "holt-sandbox",
	.options = &fs_options,
	.size = sizeof(struct fs_options),
	.min_operands = 2,
	.max_operands = 2,
	.run = fs_read_run,
};
