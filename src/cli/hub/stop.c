#include "cli/hub/hub.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/common/claim.h"
#include "cli/common/safe.h"
#include "cli/link/link.h"

/* Gigabytes of files are packed within that. */
enum { STOP_MS = 900000, PAUSE_US = 10000, EXIT_LEFT = 125 };

struct stop_options {
	struct verb_options common;
	bool remove;
};

static const struct option_row rows[] = {
	OPTION(struct stop_options, remove, OPTION_FLAG, "remove",
	       .doc = "Remove the sandboxes that run, with their files."),
	HELP_ROW(struct stop_options),
};
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

/* By name. What can't be told does not keep the hub from being ended. */
static void tell_removed(void)
{
	struct err e = ERR_INIT;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(&e);
	AUTO(json_free) struct json_doc *doc = NULL;
	struct json_iter it;

	if (!l || hub_link_ask(l, "GET", "/v1/sandboxes", STR_NONE, &doc, &e) < 0) {
		fprintf(stderr, "holt: which sandboxes are removed is not known: %s\n", e.msg);
		return;
	}
	it = json_iter(json_root(doc));
	while (json_next(&it)) {
		struct str state = json_str(json_get(it.val, "state"));

		if (!str_is(state, "running") && !str_is(state, "paused"))
			continue;
		fputs("holt: to be removed, with all files: ", stderr);
		safe_puts(stderr, json_str(json_get(it.val, "id")));
	}
}

static void stop_tell(const struct hub_counts *n, bool remove)
{
	char ends[HUB_ENDS_MAX];

	hub_counts_ends(n, ends);
	if (remove)
		tell_removed();
	else if (n->staying)
		fprintf(stderr,
			"holt: %" PRIu64 " sandbox%s to be stopped; the next call for one starts "
			"it again, with its files\n",
			n->staying, n->staying == 1 ? "" : "es");
	if (*ends)
		fprintf(stderr, "holt: %s end%s\n", ends,
			n->commands + n->forwards == 1 ? "s" : "");
}

static void tell_left(const char *text)
{
	fputs("holt: not stopped is sandbox ", stderr);
	safe_puts(stderr, str_of(text));
}

/* The exit status, by how the hub has ended. */
static int tell_end(void)
{
	struct err e = ERR_INIT;
	const int left = claim_left(tell_left, &e);

	if (left < 0)
		return cli_fail(&e);
	if (left == 0)
		return 0;
	fputs("      They run on for the next hub, for a day at most. Remove the cause, and stop "
	      "or remove them: holt stop, holt down.\n",
	      stderr);
	return EXIT_LEFT;
}

static int stop_run(const struct verb_input *in, struct err *e)
{
	const struct stop_options *o = in->options;
	struct hub_counts counts = { 0 };
	struct claim c;
	int held = claim_look(&c, e);

	if (held > 0) {
		hub_link_counts(c.socket, &counts);
		stop_tell(&counts, o->remove);
		held = claim_signal(o->remove ? SIGUSR2 : SIGTERM, e);
	}
	if (held < 0 || (held > 0 && await_end(&c, e) < 0))
		return -1;
	if (held > 0)
		return tell_end();
	fputs("no hub runs\n", stderr);
	return 0;
}

const struct verb hub_stop_verb = {
	.name = "hub stop",
	.usage = "[OPTION...]",
	.doc = "End the hub of the data folder. Its sandboxes are stopped.",
	.more = "Files of sandboxes are kept, and the next call for one starts it again; commands\n"
		"and forwards end. The files of one that is to end when it is not used (--idle)\n"
		"are kept for that time. What is in flight is finished first. A hub that a\n"
		"service manager keeps may be started anew by that.",
	.options = &options,
	.size = sizeof(struct stop_options),
	.run = stop_run,
};
