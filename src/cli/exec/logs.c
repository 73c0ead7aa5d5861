/* `holt logs`: prints what an exec has printed, and follows it on request. */
#include "cli/exec/job.h"
#include "cli/common/verb.h"

struct logs_options {
	struct verb_options common;
	bool follow;
	const char *since;
	uint32_t stream;
};

static const char *const streams[] = { NULL, "stdout", "stderr" };

static const struct option_row rows[] = {
	OPTION(struct logs_options, follow, OPTION_FLAG, "follow", .letter = 'f',
	       .doc = "Continue until the exec ends."),
	OPTION(struct logs_options, since, OPTION_TEXT, "since-offset", .arg = "N",
	       .doc = "Start at this offset of both streams; by default 0."),
	OPTION(struct logs_options, stream, OPTION_CHOICE, "stream", .arg = "stdout|stderr",
	       .doc = "Only this stream; by default both."),
	HELP_ROW(struct logs_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static int logs_show(const struct verb_input *in, struct hub_link *l, struct err *e)
{
	const struct logs_options *o = in->options;
	char exec[JOB_ID_MAX + 1];
	struct job_look k = { .name = in->operands[0], .exec = exec, .stream = streams[o->stream] };
	int64_t ignored;

	if (job_offset(o->since, &k.offset, e) < 0 ||
	    job_choose(l, in->operands[0], in->n_operands > 1 ? in->operands[1] : NULL, exec, e) <
		    0)
		return -1;
	if (!o->follow)
		return job_print(l, &k, e);
	if (job_follow(l, &k, &ignored, e) == 0)
		return 0;
	/* How it ended is not what was asked for. */
	return e->code == ERR_COMMAND_NOT_RUN ? 0 : -1;
}

static int logs_run(const struct verb_input *in, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(e);

	return !l || logs_show(in, l, e) < 0 ? -1 : 0;
}

const struct verb logs_verb = {
	.name = "logs",
	.usage = "[OPTION...] NAME [EXEC]",
	.doc = "Print the output of an exec of a sandbox.",
	.more = "EXEC is an id from holt exec -d or holt execs; by default the newest exec.\n"
		"Of a foreground exec only the end of the output is kept.",
	.page = "holt-sandbox",
	.options = &options,
	.size = sizeof(struct logs_options),
	.min_operands = 1,
	.max_operands = 2,
	.run = logs_run,
	.fail = hub_link_fail,
};
