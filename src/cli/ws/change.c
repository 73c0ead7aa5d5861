/* `holt ws create`, `attach`, `commit`, `rm`. */
#include "cli/common/safe.h"
#include "cli/ws/ws.h"

static int ws_try(const struct ws_ask *a, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	autobuf struct buf text = BUF_INIT(HUB_BODY_MAX);
	struct json_writer w = json_writer(&text);
	char path[WS_PATH_MAX] = "/v1/workspaces";

	json_write_object(&w);
	for (size_t i = 0; i < ARRAY_LEN(a->members); i++) {
		if (a->members[i].name)
			hub_link_text(&w, a->members[i].name, a->members[i].text);
	}
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0 || (a->name && ws_path(path, a->name, a->more, e) < 0))
		return -1;
	l = hub_link_open(e);
	if (!l || hub_link_ask(l, "POST", path, buf_str(&text), &doc, e) < 0)
		return -1;
	if (a->json)
		return hub_link_print(json_root(doc), e);
	safe_line(stdout, json_str(json_get(json_root(doc), a->prints)));
	putchar('\n');
	hub_link_tell_left_out(json_root(doc));
	return 0;
}

int ws_ask(const struct ws_ask *a)
{
	struct err e = ERR_INIT;

	return ws_try(a, &e) < 0 ? hub_link_fail(&e) : 0;
}

/* ---- create ---------------------------------------------------------------------------------- */

static int create_run(const struct verb_input *in)
{
	const struct ws_options *o = in->options;
	const struct ws_ask a = {
		.members = { { "name", in->operands[0] } },
		.prints = "workspace",
		.json = o->output == OUTPUT_JSON,
	};

	return ws_ask(&a);
}

const struct verb ws_create_verb = {
	.name = "ws create",
	.usage = "[OPTION...] NAME",
	.doc = "Make an empty workspace, and print its name.",
	.page = "holt-ws",
	.options = &ws_options,
	.size = sizeof(struct ws_options),
	.min_operands = 1,
	.max_operands = 1,
	.usage_exit = 2,
	.run = create_run,
};

/* ---- attach ---------------------------------------------------------------------------------- */

struct attach_options {
	struct verb_options common;
	bool copy;
	uint32_t output;
};

static const struct option_row attach_rows[] = {
	OPTION(struct attach_options, copy, OPTION_FLAG, "copy",
	       .doc = "Do not keep the sandbox's changes. Others may write meanwhile."),
	OUTPUT_ROW(struct attach_options),
	HELP_ROW(struct attach_options),
};
static const struct option_table attach_options = OPTION_TABLE(attach_rows, .mixed = true);

static int attach_run(const struct verb_input *in)
{
	const struct attach_options *o = in->options;
	const struct ws_ask a = {
		.name = in->operands[0],
		.more = "/attach",
		.members = { { "sandbox", in->operands[1] }, { "mode", o->copy ? "copy" : NULL } },
		.prints = "path",
		.json = o->output == OUTPUT_JSON,
	};

	return ws_ask(&a);
}

const struct verb ws_attach_verb = {
	.name = "ws attach",
	.usage = "[OPTION...] NAME SANDBOX",
	.doc = "Show its files at /workspace of a sandbox; print that path.",
	.more = "Nothing may run in the sandbox, and its /workspace must be empty. What it\n"
		"changes there becomes a revision when it ends.",
	.page = "holt-ws",
	.options = &attach_options,
	.size = sizeof(struct attach_options),
	.min_operands = 2,
	.max_operands = 2,
	.usage_exit = 2,
	.run = attach_run,
};

/* ---- commit ---------------------------------------------------------------------------------- */

struct commit_options {
	struct verb_options common;
	const char *message;
	uint32_t output;
};

static const struct option_row commit_rows[] = {
	OPTION(struct commit_options, message, OPTION_TEXT, "message", .letter = 'm', .arg = "TEXT",
	       .doc = "Description of the revision."),
	OUTPUT_ROW(struct commit_options),
	HELP_ROW(struct commit_options),
};
static const struct option_table commit_options = OPTION_TABLE(commit_rows, .mixed = true);

static int commit_run(const struct verb_input *in)
{
	const struct commit_options *o = in->options;
	const struct ws_ask a = {
		.name = in->operands[0],
		.more = "/commit",
		.members = { { "message", o->message } },
		.prints = "revision",
		.json = o->output == OUTPUT_JSON,
	};

	return ws_ask(&a);
}

const struct verb ws_commit_verb = {
	.name = "ws commit",
	.usage = "[OPTION...] NAME",
	.doc = "Make a revision of its sandbox's changes; print its id.",
	.more = "The sandbox stands still meanwhile and goes on.",
	.page = "holt-ws",
	.options = &commit_options,
	.size = sizeof(struct commit_options),
	.min_operands = 1,
	.max_operands = 1,
	.usage_exit = 2,
	.run = commit_run,
};

/* ---- rm -------------------------------------------------------------------------------------- */

struct rm_options {
	struct verb_options common;
};

static const struct option_row rm_rows[] = { HELP_ROW(struct rm_options) };
static const struct option_table rm_options = OPTION_TABLE(rm_rows, .mixed = true);

static int rm_one(struct hub_link *l, const char *name, struct err *e)
{
	char path[WS_PATH_MAX];

	return ws_path(path, name, "", e) < 0 ? -1
					      : hub_link_ask(l, "DELETE", path, STR_NONE, NULL, e);
}

/* Continues after a failure; the exit status is that of the first one. */
static int rm_run(const struct verb_input *in)
{
	struct err e = ERR_INIT;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(&e);
	int status = l ? 0 : hub_link_fail(&e);

	for (int i = 0; l && i < in->n_operands; i++) {
		int failed = rm_one(l, in->operands[i], &e) < 0 ? hub_link_fail(&e) : 0;

		status = status ? status : failed;
	}
	return status;
}

const struct verb ws_rm_verb = {
	.name = "ws rm",
	.usage = "NAME...",
	.doc = "Delete workspaces with their revisions; forks of them stay.",
	.page = "holt-ws",
	.options = &rm_options,
	.size = sizeof(struct rm_options),
	.min_operands = 1,
	.max_operands = 1024,
	.usage_exit = 2,
	.run = rm_run,
};
