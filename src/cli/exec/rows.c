/* `holt execs`, `kill`, `wait`: requests about execs of a sandbox. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cli/exec/job.h"
#include "cli/link/ask.h"

enum { EXIT_HOLT = 125, EXIT_NOT_SEEN = 1, EXIT_OVER = 124 };

static const struct ask_noun execs = {
	.noun = "exec",
	.missing = ERR_PROCESS_NOT_FOUND,
	.letters = ASK_LETTERS,
	.max = JOB_ID_MAX,
};

const struct verb execs_verb = {
	.name = "execs",
	.usage = "[OPTION...] NAME",
	.doc = "List the execs of a sandbox, newest first.",
	.page = "holt-sandbox",
	ASK(verb_output, .of = &ask_sandbox, .more = "/execs", .list = "",
	    ASK_COLUMNS({ "EXEC", "exec_id" }, { "STATE", "state" },
			{ ">EXIT", "exit_code", .unit = 1 }, { ">BYTES", "next_offset", .unit = 1 },
			{ "COMMAND", "command", .cut = 60 })),
	.min_operands = 1,
};

/* ---- kill ---------------------------------------------------------------------------------- */

static const struct option_row kill_rows[] = {
	ASK_OPTION(texts[0], OPTION_TEXT, "signal", .letter = 's', .arg = "SIGNAL",
		   .doc = "Signal, by name or number, such as SIGINT, INT or 2; TERM by default."),
	HELP_ROW(struct ask_options),
};
static const struct option_table kill_options = OPTION_TABLE(kill_rows, .mixed = true);

static int kill_number(const struct verb_input *in, struct err *e)
{
	const char *said = ((const struct ask_options *)in->options)->texts[0];
	const char *text = said ? said : "TERM";
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

static int kill_write(const struct verb_input *in, struct json_writer *w, struct err *e)
{
	json_write_key(w, "signal");
	json_write_int(w, kill_number(in, e));
	return 0;
}

const struct verb kill_verb = {
	.name = "kill",
	.usage = "[OPTION...] NAME EXEC",
	.doc = "Send a signal to an exec of a sandbox.",
	.page = "holt-sandbox",
	.check = kill_number,
	ASK(kill_options, .of = &ask_sandbox, .method = "POST", .more = "/execs/%/signal",
	    .part = &execs, .write = kill_write),
	.min_operands = 2,
};

/* ---- wait ---------------------------------------------------------------------------------- */

static const struct option_row wait_rows[] = {
	ASK_OPTION(texts[0], OPTION_TEXT, "text", .arg = "TEXT", .member = "text",
		   .doc = "Also stop waiting when it has printed this text."),
	ASK_OPTION(texts[1], OPTION_TEXT, "pattern", .arg = "REGEX", .member = "pattern",
		   .doc = "Also stop waiting when a line matches this regular expression."),
	ASK_OPTION(texts[2], OPTION_TEXT, "since-offset", .arg = "N",
		   .doc = "Search from this offset of both streams; by default 0."),
	ASK_OPTION(counts[0], OPTION_CHOICE, "stream", .arg = "stdout|stderr", .member = "stream",
		   .doc = "Search only this stream."),
	ASK_OPTION(times[0], OPTION_SECONDS, "timeout", .letter = 't', .arg = "TIME", .min = 1,
		   .max = 86400000,
		   .doc = "Time limit for waiting; by default none. The exec continues."),
	HELP_ROW(struct ask_options),
};
static const struct option_table wait_options = OPTION_TABLE(wait_rows, .mixed = true);

/* Without a time it is 0: the hub has a default of its own. */
static int wait_write(const struct verb_input *in, struct json_writer *w, struct err *e)
{
	const struct ask_options *o = in->options;
	uint64_t offset;

	if (job_offset(o->texts[2], &offset, e) < 0)
		return -1;
	json_write_key(w, "offset");
	json_write_uint(w, offset);
	json_write_key(w, "timeout_seconds");
	json_write_uint(w, (o->times[0] + 999) / 1000);
	return 0;
}

static int wait_status(const struct verb_input *in, const struct json_val *v)
{
	const struct ask_options *o = in->options;
	struct str result = json_str(json_get(v, "result"));
	int64_t code;

	if (str_is(result, "matched"))
		return 0;
	if (str_is(result, "timeout"))
		return EXIT_OVER;
	if (o->texts[0] || o->texts[1])
		return EXIT_NOT_SEEN;
	return json_int64(json_get(v, "exit_code"), &code) ? (int)code : EXIT_HOLT;
}

/* By default for the newest. */
static int wait_run(const struct verb_input *in, struct err *e)
{
	char exec[JOB_ID_MAX + 1], *operands[] = { in->operands[0], exec };
	struct verb_input newest = *in;
	AUTO(hub_link_close) struct hub_link *l = NULL;

	if (in->n_operands > 1)
		return hub_ask_run(in, e);
	l = hub_link_open(e);
	if (!l || job_choose(l, in->operands[0], NULL, exec, e) < 0)
		return -1;
	newest.operands = operands;
	newest.n_operands = 2;
	return hub_ask_run(&newest, e);
}

static const struct ask wait_ask = { .of = &ask_sandbox,
				     .method = "POST",
				     .more = "/execs/%/wait",
				     .part = &execs,
				     .write = wait_write,
				     .status = wait_status };

const struct verb wait_verb = {
	.name = "wait",
	.usage = "[OPTION...] NAME [EXEC]",
	.doc = "Wait until an exec of a sandbox has ended.",
	.more = "The exit status is the command's, 124 if the wait timed out, 125 if the exec\n"
		"never ran or was lost. With --text or --pattern: 0 if that was printed,\n"
		"1 if the exec ended without it.",
	.page = "holt-sandbox",
	.options = &wait_options,
	.size = sizeof(struct ask_options),
	.min_operands = 1,
	.max_operands = 2,
	.usage_exit = EXIT_HOLT,
	.ask = &wait_ask,
	.run = wait_run,
	.fail = hub_link_fail,
};
