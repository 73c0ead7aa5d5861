/* `holt inspect`, `ps`, `fork`, `pause`, `resume`, `stop`, `down`: requests about sandboxes of the
 * hub. */
#include "cli/common/safe.h"
#include "cli/link/copies.h"

const struct verb inspect_verb = {
	.name = "inspect",
	.usage = "NAME",
	.doc = "Print everything about a sandbox of the hub, as JSON.",
	.page = "holt-sandbox",
	ASK(verb_bare, .of = &ask_sandbox, .json = true),
	.min_operands = 1,
};

const struct verb ps_verb = {
	.name = "ps",
	.usage = "[OPTION...] NAME",
	.doc = "List the processes in a sandbox of the hub.",
	.page = "holt-sandbox",
	ASK(verb_output, .of = &ask_sandbox, .more = "/processes", .list = "processes",
	    ASK_COLUMNS({ ">PID", "pid", .unit = 1 }, { ">PARENT", "parent", .unit = 1 },
			{ "S", "state" }, { ">CPU s", "cpu_ms", .unit = 1000, .digits = 2 },
			{ ">MEM KiB", "memory_bytes", .unit = 1024 },
			{ ">AGE s", "age_ms", .unit = 1000 }, { "COMMAND", "command" })),
	.min_operands = 1,
};

const struct verb fork_verb = {
	.name = "fork",
	.usage = "[OPTION...] NAME",
	.doc = "Copy a sandbox of the hub, and print the copies' names.",
	.more = "A copy has the files as they are now, and its own processes; all are made,\n"
		"or none.",
	.page = "holt-sandbox",
	ASK_COPIES(.of = &ask_sandbox, .more = "/fork"),
	.min_operands = 1,
};

/* ---- each of some, or all ------------------------------------------------------------------ */

#define ALL_ROW                                                                                    \
	ASK_OPTION(flags[0], OPTION_FLAG, "all", .letter = 'a',                                    \
		   .doc = "All sandboxes of the hub, instead of names.")

static const struct option_row rows[] = { ALL_ROW, HELP_ROW(struct ask_options) };
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static const struct option_row down_rows[] = {
	ALL_ROW,
	ASK_OPTION(flags[1], OPTION_FLAG, "discard", .member = "discard",
		   .doc = "Make no last revision of a workspace: its changes since the one before "
			  "are lost."),
	ASK_OPTION(flags[2], OPTION_FLAG, "force", .letter = 'f',
		   .doc = "Changes nothing: running sandboxes are always removed."),
	HELP_ROW(struct ask_options),
};
static const struct option_table down_options = OPTION_TABLE(down_rows, .mixed = true);

static int all_check(const struct verb_input *in, struct err *e)
{
	const struct ask_options *o = in->options;

	return o->flags[0] == (in->n_operands > 0) ? err_set(e, ERR_INVALID, "say names, or --all")
						   : 0;
}

static int tell_lacks(const struct json_val *v, const char *name, struct err *e)
{
	struct json_iter it = json_iter(json_get(v, "volumes_gone"));
	const struct json_val *cause = json_get(v, "cause");

	if (cause) {
		fprintf(stderr, "holt: %s was lost: ", name);
		safe_puts(stderr, json_str(cause));
	}
	while (json_next(&it)) {
		fprintf(stderr,
			"holt: %s starts without its volume, which is gone or can not be given: ",
			name);
		safe_puts(stderr, json_str(it.val));
	}
	return 0;
}

#define EACH(name_, alias_, doc_, options_, ...)                                                   \
	const struct verb name_##_verb = {                                                         \
		.name = #name_,                                                                    \
		.alias = (alias_),                                                                 \
		.usage = "NAME...|--all",                                                          \
		.doc = (doc_),                                                                     \
		.page = "holt-sandbox",                                                            \
		.check = all_check,                                                                \
		ASK(options_, .each = true, .all = true, __VA_ARGS__),                             \
		.max_operands = ASK_NAMES_MAX,                                                     \
	}

static const struct ask_noun pauses = { .path = "/v1/pause" }, resumes = { .path = "/v1/resume" };

EACH(pause, NULL, "Pause sandboxes of the hub; memory and files stay.", options, .of = &pauses,
     .method = "POST", .operands = { "sandbox" });
EACH(resume, "start", "Continue paused sandboxes of the hub, and start stopped ones.", options,
     .of = &resumes, .method = "POST", .operands = { "sandbox" }, .show = tell_lacks);
EACH(stop, NULL, "Stop sandboxes: their processes end, their files stay.", options,
     .of = &ask_sandbox, .method = "POST", .more = "/stop");
EACH(down, "rm", "Remove sandboxes of the hub, with processes and files.", down_options,
     .of = &ask_sandbox, .method = "DELETE");
