#include "cli/hub/hub.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/common/claim.h"

enum { STOP_MS = 30000, PAUSE_US = 10000 };

struct stop_options {
	struct verb_options common;
};

static const struct option_row rows[] = { HELP_ROW(struct stop_options) };
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

/* Until that hub is gone; another may have come at once. */
static int await_end(const struct claim *was, struct err *e)
{
	const uint64_t until = clock_ms() + STOP_MS;
	struct claim now;
	int held;

	while ((held = claim_look(&now, e)) > 0 && now.pid == was->pid) {
		if (clock_ms() > until)
			return err_set(e, ERR_TIMEOUT, "the hub (pid %d) does not end",
				       (int)was->pid);
		usleep(PAUSE_US);
	}
	return held < 0 ? -1 : 0;
}

static int run(const struct verb_input *in)
{
	struct err e = ERR_INIT;
	struct claim c;
	int held = claim_look(&c, &e);

	if (held > 0)
		held = claim_signal(SIGTERM, &e);
	if (held < 0 || (held > 0 && await_end(&c, &e) < 0))
		return cli_fail(&e);
	if (held == 0)
		fputs("no hub runs\n", stderr);
	return 0;
}

const struct verb hub_stop_verb = {
	.name = "hub stop",
	.usage = "",
	.doc = "End the hub of the data folder, and its sandboxes.",
	.more = "It finishes what is in flight first. One that a service manager keeps may be\n"
		"started anew by that.",
	.page = "holt-hub",
	.options = &options,
	.size = sizeof(struct stop_options),
	.usage_exit = 2,
	.run = run,
};
