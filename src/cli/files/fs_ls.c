/* `holt fs ls` and `stat`. */
#include <inttypes.h>
#include <time.h>

#include "cli/files/fs.h"
#include "cli/common/safe.h"

struct ls_options {
	struct verb_options common;
	uint32_t output;
};

static const struct option_row rows[] = {
	OUTPUT_ROW(struct ls_options),
	HELP_ROW(struct ls_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

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
	safe_line(stdout, json_str(json_get(entry, name)));
	putchar('\n');
}

static int fs_ls_list(const struct json_val *answer, bool json, struct err *e)
{
	const struct json_val *all = json_get(answer, "entries");
	struct json_iter it = json_iter(all);

	if (json)
		return hub_link_print(all, e);
	while (json_next(&it))
		print_entry(it.val, "name");
	if (json_bool(json_get(answer, "truncated")))
		fputs("holt: the directory has more entries than these\n", stderr);
	return 0;
}

static int fs_ls_show(const struct json_val *answer, bool json, struct err *e)
{
	if (json)
		return hub_link_print(answer, e);
	print_entry(answer, "path");
	return 0;
}

static int fs_ls_ask(const struct verb_input *in, const char *word,
		     int (*print)(const struct json_val *answer, bool json, struct err *e))
{
	const struct ls_options *o = in->options;
	struct err e = ERR_INIT;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(&e);
	AUTO(json_free) struct json_doc *doc = NULL;
	autobuf struct buf text = BUF_INIT(HUB_BODY_MAX);
	struct json_writer w = json_writer(&text);

	fs_begin(&w, (char *[]){ in->operands[0], in->n_operands > 1 ? in->operands[1] : "." });
	if (!l || fs_ask(l, word, &w, &doc, &e) < 0 ||
	    print(json_root(doc), o->output == OUTPUT_JSON, &e) < 0)
		return hub_link_fail(&e);
	return 0;
}

static int run_ls(const struct verb_input *in)
{
	return fs_ls_ask(in, "list", fs_ls_list);
}

static int run_stat(const struct verb_input *in)
{
	return fs_ls_ask(in, "stat", fs_ls_show);
}

const struct verb fs_ls_verb = {
	.name = "fs ls",
	.usage = "[OPTION...] NAME [PATH]",
	.doc = "List a directory; by default the sandbox's working directory.",
	.page = "holt-sandbox",
	.options = &options,
	.size = sizeof(struct ls_options),
	.min_operands = 1,
	.max_operands = 2,
	.run = run_ls,
};

const struct verb fs_stat_verb = {
	.name = "fs stat",
	.usage = "[OPTION...] NAME PATH",
	.doc = "Show information about a path.",
	.page = "holt-sandbox",
	.options = &options,
	.size = sizeof(struct ls_options),
	.min_operands = 2,
	.max_operands = 2,
	.run = run_stat,
};
