/* `holt kill`: a signal to an exec. */
#include <signal.h>
#include <stdio.h>

#include "cli/exec/job.h"
#include "cli/common/verb.h"

struct kill_options {
	struct verb_options common;
	uint32_t signal;
};

static const struct option_row rows[] = {
	OPTION(struct kill_options, signal, OPTION_COUNT, "signal", .letter = 's', .arg = "N",
	       .min = 1, .max = 64, .doc = "The number of the signal; 15 if not said."),
	HELP_ROW(struct kill_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);
static const struct kill_options defaults = { .signal = SIGTERM };

static int run(const struct verb_input *in)
{
	const struct kill_options *o = in->options;
	AUTO(hub_link_close) struct hub_link *l = NULL;
	char path[JOB_WORDS_MAX], body[32];
	struct err e = ERR_INIT;

	snprintf(body, sizeof(body), "{\"signal\":%u}", o->signal);
	if (job_path(path, in->operands[0], in->operands[1], "/signal", &e) < 0 ||
	    !(l = hub_link_open(&e)) || hub_link_ask(l, "POST", path, str_of(body), NULL, &e) < 0)
		return hub_link_fail(&e);
	return 0;
}

const struct verb kill_verb = {
	.name = "kill",
	.usage = "[OPTION...] NAME EXEC",
	.doc = "Send a signal to an exec of a sandbox.",
	.page = "holt-sandbox",
	.options = &options,
	.defaults = &defaults,
	.size = sizeof(struct kill_options),
	.min_operands = 2,
	.max_operands = 2,
	.usage_exit = 2,
	.run = run,
};
