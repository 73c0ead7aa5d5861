/* `holt fs`: files of a sandbox of the hub, without a command in it. */
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/base64.h"
#include "cli/common/file.h"
#include "cli/common/safe.h"
#include "cli/link/ask.h"

enum { PIECE = 1 << 20, CONTENT_MAX = 23 << 20 /* in base64 it is to fit a request */ };

static const struct ask_noun fs_files = { .path = "/v1/files" };

#define RECURSIVE_ROW(doc_)                                                                        \
	ASK_OPTION(flags[0], OPTION_FLAG, "recursive", .letter = 'r', .member = "recursive",       \
		   .doc = (doc_))

/* ---- ls, stat ------------------------------------------------------------------------------ */

static void print_entry(const struct json_val *entry, const char *name)
{
	static const char *const letters[] = { "d", "directory", "l", "symlink", "-", "file" };
	struct str type = json_str(json_get(entry, "type"));
	uint64_t mode = 0, size = 0, modified = 0;
	const char *letter = "?";
	char when[32] = "";
	time_t t;

	for (size_t i = 0; i < ARRAY_LEN(letters); i += 2) {
		if (str_is(type, letters[i + 1]))
			letter = letters[i];
	}
	json_uint64(json_get(entry, "mode"), &mode);
	json_uint64(json_get(entry, "size"), &size);
	json_uint64(json_get(entry, "modified_at"), &modified);
	t = (time_t)modified;
	strftime(when, sizeof(when), "%F %H:%M", localtime(&t));
	printf("%s %04" PRIo64 "  %12" PRIu64 "  %s  ", letter, mode & 07777, size, when);
	safe_puts(stdout, json_str(json_get(entry, name)));
}

static int fs_ls_show(const struct json_val *v, const char *name, struct err *e)
{
	print_entry(v, "name");
	return 0;
}

static const struct verb fs_ls_verb = {
	.name = "fs ls",
	.usage = "[OPTION...] NAME [PATH]",
	.doc = "List a directory; by default the sandbox's working directory.",
	ASK(verb_output, .of = &fs_files, .method = "POST", .more = "/list",
	    .operands = { "sandbox", "path=." }, .list = "entries", .show = fs_ls_show),
	.min_operands = 1,
	.max_operands = 2,
};

static int fs_stat_show(const struct json_val *v, const char *name, struct err *e)
{
	print_entry(v, "path");
	return 0;
}

static const struct verb fs_stat_verb = {
	.name = "fs stat",
	.usage = "[OPTION...] NAME PATH",
	.doc = "Show information about a path.",
	ASK(verb_output, .of = &fs_files, .method = "POST", .more = "/stat",
	    .operands = { "sandbox", "path" }, .show = fs_stat_show),
	.min_operands = 2,
};

/* ---- read, write --------------------------------------------------------------------------- */

/* Where it has come, and whether marks stand for something. */
struct fs_reading {
	struct hub_link *l;
	char **operands;
	bool raw, marked;
	uint64_t offset;
};

static int fs_ask_piece(const struct fs_reading *r, struct json_doc **ret, struct err *e)
{
	autobuf struct buf text = BUF_INIT(HUB_BODY_MAX);
	struct json_writer w = json_writer(&text);

	json_write_object(&w);
	hub_link_text(&w, "sandbox", r->operands[0]);
	hub_link_text(&w, "path", r->operands[1]);
	hub_link_text(&w, "encoding", "base64");
	json_write_key(&w, "offset");
	json_write_uint(&w, r->offset);
	json_write_key(&w, "limit");
	json_write_uint(&w, PIECE);
	json_write_key(&w, "raw");
	json_write_bool(&w, r->raw);
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0)
		return -1;
	return hub_link_ask(r->l, "POST", "/v1/files/read", buf_str(&text), ret, e);
}

/* 1 if the file has more. */
static int fs_print_piece(struct fs_reading *r, struct err *e)
{
	static const char mark[] = "[REDACTED:";
	AUTO(json_free) struct json_doc *doc = NULL;
	autobuf struct buf bytes = BUF_INIT(HUB_ANSWER_MAX);
	uint64_t next = 0;

	if (fs_ask_piece(r, &doc, e) < 0 ||
	    base64_decode(&bytes, json_str(json_get(json_root(doc), "content")), e) < 0 ||
	    file_write_fd(STDOUT_FILENO, "standard output", buf_str(&bytes), e) < 0)
		return -1;
	r->marked |= !r->raw && bytes.n && memmem(bytes.p, bytes.n, mark, sizeof(mark) - 1);
	if (!json_uint64(json_get(json_root(doc), "next_offset"), &next) || next <= r->offset)
		return 0;
	r->offset = next; /* a mark has another length than what it stands for */
	return 1;
}

static int fs_read_run(const struct verb_input *in, struct err *e)
{
	const struct ask_options *o = in->options;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(e);
	struct fs_reading r = { .l = l, .operands = in->operands, .raw = o->flags[0] };
	int more = l ? 1 : -1;

	while (more > 0)
		more = fs_print_piece(&r, e);
	if (r.marked && !isatty(STDOUT_FILENO))
		fputs("holt: marks stand for secrets of the file; holt cp, or --raw, has it as it "
		      "is\n",
		      stderr);
	return more;
}

static const struct option_row read_rows[] = {
	ASK_OPTION(flags[0], OPTION_FLAG, "raw",
		   .doc = "Print secrets in it, too, instead of marks."),
	HELP_ROW(struct ask_options),
};
static const struct option_table read_options = OPTION_TABLE(read_rows, .mixed = true);

static const struct verb fs_read_verb = {
	.name = "fs read",
	.usage = "[OPTION...] NAME PATH",
	.doc = "Print a file.",
	.more = "A file that changes meanwhile is printed in parts of different ages.",
	.options = &read_options,
	.size = sizeof(struct ask_options),
	.min_operands = 2,
	.run = fs_read_run,
	.fail = hub_link_fail,
};

static const struct option_row write_rows[] = {
	ASK_OPTION(texts[0], OPTION_TEXT, "mode", .arg = "OCTAL",
		   .doc = "Permissions of a new file, such as 755; by default 644."),
	HELP_ROW(struct ask_options),
};
static const struct option_table write_options = OPTION_TABLE(write_rows, .mixed = true);

static int fs_write_more(const struct verb_input *in, struct json_writer *w, struct err *e)
{
	const char *text = ((const struct ask_options *)in->options)->texts[0];
	autobuf struct buf bytes = BUF_INIT(CONTENT_MAX);
	char *end;

	if (text) {
		unsigned long mode = strtoul(text, &end, 8);

		if (end == text || *end || mode > 07777)
			return err_set(e, ERR_INVALID,
				       "--mode takes octal digits such as 755, not '%.20s'", text);
		json_write_key(w, "mode");
		json_write_uint(w, mode);
	}
	if (file_read_fd(STDIN_FILENO, "standard input", &bytes, e) < 0)
		return -1;
	hub_link_text(w, "encoding", "base64");
	json_write_key(w, "content");
	json_write_base64(w, buf_str(&bytes));
	return 0;
}

static const struct verb fs_write_verb = {
	.name = "fs write",
	.usage = "[OPTION...] NAME PATH",
	.doc = "Write standard input to a file, at most 23 MiB.",
	.more = "The file is replaced as a whole and keeps its permissions. Parents are created.",
	ASK(write_options, .of = &fs_files, .method = "POST", .more = "/write",
	    .operands = { "sandbox", "path" }, .write = fs_write_more),
	.min_operands = 2,
};

/* ---- mkdir, rm, mv ------------------------------------------------------------------------- */

static const struct verb fs_mkdir_verb = {
	.name = "fs mkdir",
	.usage = "NAME PATH",
	.doc = "Make a directory and its parents.",
	ASK(verb_bare, .of = &fs_files, .method = "POST", .more = "/mkdir",
	    .operands = { "sandbox", "path" }),
	.min_operands = 2,
};

static const struct option_row rm_rows[] = {
	RECURSIVE_ROW("Also remove the contents of a directory."),
	HELP_ROW(struct ask_options),
};
static const struct option_table rm_options = OPTION_TABLE(rm_rows, .mixed = true);

static const struct verb fs_rm_verb = {
	.name = "fs rm",
	.usage = "[-r] NAME PATH",
	.doc = "Remove a file or an empty directory.",
	ASK(rm_options, .of = &fs_files, .method = "POST", .more = "/remove",
	    .operands = { "sandbox", "path" }),
	.min_operands = 2,
};

static const struct verb fs_mv_verb = {
	.name = "fs mv",
	.usage = "NAME PATH TO",
	.doc = "Move a file or directory; an existing file is replaced.",
	ASK(verb_bare, .of = &fs_files, .method = "POST", .more = "/move",
	    .operands = { "sandbox", "path", "to" }),
	.min_operands = 3,
};

/* ---- watch --------------------------------------------------------------------------------- */

static const struct option_row watch_rows[] = {
	RECURSIVE_ROW("Include all directories below it."),
	ASK_END,
};
static const struct option_table watch_options = OPTION_TABLE(watch_rows, .mixed = true);

static int fs_watch_show(const struct json_val *line, const char *name, struct err *e)
{
	struct str path = json_str(json_get(line, "path"));

	printf("%-10.*s ", STR_CUT(json_str(json_get(line, "kind")), 20));
	safe_line(stdout, path);
	puts(json_bool(json_get(line, "is_dir")) && path.n ? "/" : "");
	return 0;
}

static const struct verb fs_watch_verb = {
	.name = "fs watch",
	.usage = "[OPTION...] NAME [PATH]",
	.doc = "Print the changes in a directory until interrupted.",
	.more = "The first line is \"ready\". \"overflow\" means that events were lost.",
	ASK(watch_options, .of = &ask_sandbox, .follow = "/watch", .operands = { NULL, "path=." },
	    .list = "", .show = fs_watch_show),
	.min_operands = 1,
	.max_operands = 2,
};

static const struct verb *const words[] = {
	&fs_ls_verb, &fs_stat_verb, &fs_read_verb,  &fs_write_verb, &fs_mkdir_verb,
	&fs_rm_verb, &fs_mv_verb,   &fs_watch_verb, NULL,
};

const struct verb fs_verb = {
	.name = "fs",
	.usage = "WORD NAME PATH...",
	.doc = "Read, write and list files of a sandbox of the hub.",
	.page = "holt-sandbox",
	.options = &verb_bare,
	.size = sizeof(struct verb_options),
	.words = words,
};
