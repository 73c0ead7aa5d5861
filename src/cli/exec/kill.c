/* `holt kill`: a signal to an exec. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/exec/job.h"
#include "cli/common/verb.h"

struct kill_options {
	struct verb_options common;
	const char *signal;
};

static const struct option_row rows[] = {
	OPTION(struct kill_options, signal, OPTION_TEXT, "signal", .letter = 's', .arg = "SIGNAL",
	       .doc = "Signal, by name or number, such as SIGINT, INT or 2; TERM by default."),
	HELP_ROW(struct kill_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);
static const struct kill_options defaults = { .signal = "TERM" };

static int signal_number(const char *text, struct err *e)
{
	const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
	char *end;
	long number = strtol(text, &end, 10);

	if (end != text && !*end && number > 0 && number < NSIG)
		return (int)number;
	for (int i = 1; i < NSIG; i++) {
		if (sigabbrev_np(i) && strcasecmp(sigabbrev_np(i), name) == 0)
			return i;
	}
	return err_set(e, ERR_INVALID, "-s takes a signal's name or number, not '%.40s'", text);
}

static int kill_run(const struct verb_input *in)
{
	const struct kill_options *o = in->options;
	AUTO(hub_link_close) struct hub_link *l = NULL;
	char path[JOB_WORDS_MAX], body[32];
	struct err e = ERR_INIT;
	int number = signal_number(o->signal, &e);

	if (number < 0)
		return cli_wrong_usage(in->verb, &e);
	snprintf(body, sizeof(body), "{\"signal\":%d}", number);
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
	.run = kill_run,
};
