/* `holt fs watch`: prints the changes in a directory of a sandbox, one per line, until it is
 * ended. */
#include <errno.h>
#include <stdio.h>

#include "cli/files/fs.h"
#include "cli/common/safe.h"

struct watch_options {
	struct verb_options common;
	bool recursive;
	uint32_t output;
};

static const struct option_row rows[] = {
	OPTION(struct watch_options, recursive, OPTION_FLAG, "recursive", .letter = 'r',
	       .doc = "Include all directories below it."),
	OUTPUT_ROW(struct watch_options),
	HELP_ROW(struct watch_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static int fs_watch_take(void *arg, const struct json_val *line, struct err *e)
{
	const struct watch_options *o = arg;
	struct str path = json_str(json_get(line, "path"));

	if (o->output == OUTPUT_JSON) {
		if (hub_link_print(line, e) < 0)
			return -1;
	} else {
		printf("%-10.*s ", STR_CUT(json_str(json_get(line, "kind")), 20));
		safe_line(stdout, path);
		puts(json_bool(json_get(line, "is_dir")) && path.n ? "/" : "");
	}
	return fflush(stdout) == EOF ? err_sys(e, errno, "standard output") : 0;
}

static int fs_watch_run(const struct verb_input *in)
{
	const struct watch_options *o = in->options;
	AUTO(hub_link_close) struct hub_link *l = NULL;
	struct err e = ERR_INIT;
	char url[16 << 10];
	int rc = -1;

	if (hub_link_path(url, sizeof(url), in->operands[0], "/watch", &e) == 0 &&
	    hub_link_query(url, sizeof(url), "path", in->n_operands > 1 ? in->operands[1] : ".",
			   &e) == 0)
		l = hub_link_open(&e);
	if (l) {
		if (o->recursive)
			strncat(url, "&recursive=true", sizeof(url) - strlen(url) - 1);
		rc = hub_link_follow(l, url, fs_watch_take, (void *)o, &e);
	}
	return rc < 0 ? hub_link_fail(&e) : 0;
}

const struct verb fs_watch_verb = {
	.name = "fs watch",
	.usage = "[OPTION...] NAME [PATH]",
	.doc = "Print the changes in a directory until interrupted.",
	.more = "The first line is \"ready\". \"overflow\" means that events were lost.",
	.page = "holt-sandbox",
	.options = &options,
	.size = sizeof(struct watch_options),
	.min_operands = 1,
	.max_operands = 2,
	.run = fs_watch_run,
};
