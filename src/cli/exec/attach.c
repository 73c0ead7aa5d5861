/* `holt attach`: connects to a running exec of the hub (session.h). */
#include <inttypes.h>
#include <stdio.h>

#include "cli/exec/detach.h"
#include "cli/exec/session.h"
#include "cli/exec/job.h"
#include "cli/common/verb.h"

enum { EXIT_HOLT = 125 };

struct attach_options {
	struct verb_options common;
	const char *since, *leave;
	bool no_stdin;
};

static const struct option_row rows[] = {
	OPTION(struct attach_options, since, OPTION_TEXT, "since-offset", .arg = "N",
	       .doc = "Also print earlier output from this offset; by default only new output."),
	OPTION(struct attach_options, no_stdin, OPTION_FLAG, "no-stdin", .doc = "Send no input."),
	OPTION(struct attach_options, leave, OPTION_TEXT, "detach-keys", .arg = "KEYS",
	       .doc = "Keys that detach from its terminal; " DETACH_KEYS_DEFAULT " by default."),
	HELP_ROW(struct attach_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static int attach(const struct verb_input *in, const struct detach *leave, struct err *e)
{
	const struct attach_options *o = in->options;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(e);
	char exec[JOB_ID_MAX + 1], path[JOB_WORDS_MAX], more[64] = "/attach";
	struct exec_session_spec spec = { .path = path, .input = !o->no_stdin, .leave = leave };
	uint64_t offset;

	if (!l ||
	    job_choose(l, in->operands[0], in->n_operands > 1 ? in->operands[1] : NULL, exec, e) <
		    0 ||
	    job_offset(o->since, &offset, e) < 0)
		return -1;
	if (!o->since && !o->no_stdin && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) &&
	    job_seen(l, in->operands[0], exec, &spec.seen, e) < 0)
		return -1;
	if (o->since || spec.seen)
		snprintf(more, sizeof(more), "/attach?offset=%" PRIu64, offset);
	if (job_path(path, in->operands[0], exec, more, e) < 0)
		return -1;
	return exec_session(l, &spec, e);
}

static int attach_run(const struct verb_input *in, struct err *e)
{
	const struct attach_options *o = in->options;
	struct detach leave;

	if (detach_parse(o->leave ? o->leave : DETACH_KEYS_DEFAULT, &leave, e) < 0)
		return cli_wrong_usage(in->verb, e);
	return attach(in, &leave, e);
}

const struct verb attach_verb = {
	.name = "attach",
	.usage = "[OPTION...] NAME [EXEC]",
	.doc = "Connect to a running exec of a sandbox.",
	.more = "Its output comes here, and input goes to it if it was started with -i or\n"
		"-t. If it has a terminal, that is connected to this one; ctrl-p ctrl-q detaches.\n"
		"Otherwise Ctrl-C sends it SIGINT, and Ctrl-\\ detaches. The exit\n"
		"status is the command's.",
	.page = "holt-sandbox",
	.options = &options,
	.size = sizeof(struct attach_options),
	.min_operands = 1,
	.max_operands = 2,
	.usage_exit = EXIT_HOLT,
	.run = attach_run,
	.fail = hub_link_fail,
};
