/* `holt pause`, `resume`, `stop`, `down`: act on each given sandbox, and continue after
 * failures. */
#include <stdio.h>

#include "cli/link/link.h"
#include "cli/common/safe.h"
#include "cli/common/verb.h"

struct each_options {
	struct verb_options common;
	bool all, discard;
};

#define ALL_ROW                                                                                    \
	OPTION(struct each_options, all, OPTION_FLAG, "all", .letter = 'a',                        \
	       .doc = "All sandboxes of the hub, instead of names.")

static const struct option_row rows[] = { ALL_ROW, HELP_ROW(struct each_options) };
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static const struct option_row down_rows[] = {
	ALL_ROW,
	OPTION(struct each_options, discard, OPTION_FLAG, "discard",
	       .doc = "Make no last revision of a workspace: its changes since the one before are "
		      "lost."),
	HELP_ROW(struct each_options),
};
static const struct option_table down_options = OPTION_TABLE(down_rows, .mixed = true);

enum { NAMES_MAX = 1024 };

typedef int (*each_fn)(struct hub_link *l, const char *name, struct err *e);

static int do_one(struct hub_link *l, const char *name, each_fn f, int status)
{
	struct err e = ERR_INIT;
	int failed = f(l, name, &e) < 0 ? hub_link_fail(&e) : 0;

	return status ? status : failed;
}

static int do_all(struct hub_link *l, each_fn f)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	struct err e = ERR_INIT;
	struct json_iter it;
	int status = 0;

	if (hub_link_ask(l, "GET", "/v1/sandboxes", STR_NONE, &doc, &e) < 0)
		return hub_link_fail(&e);
	it = json_iter(json_root(doc));
	while (json_next(&it)) {
		struct str id = json_str(json_get(it.val, "id"));
		char name[256];

		snprintf(name, sizeof(name), "%.*s", (int)id.n, id.p);
		status = do_one(l, name, f, status);
	}
	return status;
}

static int for_each(const struct verb_input *in, each_fn f)
{
	const struct each_options *o = in->options;
	AUTO(hub_link_close) struct hub_link *l = NULL;
	struct err e = ERR_INIT;
	int status = 0;

	if (o->all == (in->n_operands > 0)) {
		err_set(&e, ERR_INVALID, "say names, or --all");
		return cli_wrong_usage(in->verb, &e);
	}
	l = hub_link_open(&e);
	if (!l)
		return hub_link_fail(&e);
	if (o->all)
		return do_all(l, f);
	for (int i = 0; i < in->n_operands; i++)
		status = do_one(l, in->operands[i], f, status);
	return status;
}

static int post(struct hub_link *l, const char *path, const char *name, struct json_doc **ret,
		struct err *e)
{
	autobuf struct buf text = BUF_INIT(HUB_BODY_MAX);
	struct json_writer w = json_writer(&text);

	json_write_object(&w);
	hub_link_text(&w, "sandbox", name);
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0)
		return -1;
	return hub_link_ask(l, "POST", path, buf_str(&text), ret, e);
}

static int pause_one(struct hub_link *l, const char *name, struct err *e)
{
	return post(l, "/v1/pause", name, NULL, e);
}

static int resume_one(struct hub_link *l, const char *name, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	struct json_iter it;

	if (post(l, "/v1/resume", name, &doc, e) < 0)
		return -1;
	it = json_iter(json_get(json_root(doc), "volumes_gone"));
	while (json_next(&it)) {
		fprintf(stderr, "holt: %s starts without its volume, which is gone: ", name);
		safe_line(stderr, json_str(it.val));
		fputc('\n', stderr);
	}
	return 0;
}

static int stop_one(struct hub_link *l, const char *name, struct err *e)
{
	char path[256];

	if (hub_link_path(path, sizeof(path), name, "/stop", e) < 0)
		return -1;
	return hub_link_ask(l, "POST", path, STR_LIT("{}"), NULL, e);
}

static int end_at(struct hub_link *l, const char *name, const char *query, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	char path[256];

	if (hub_link_path(path, sizeof(path), name, query, e) < 0 ||
	    hub_link_ask(l, "DELETE", path, STR_NONE, &doc, e) < 0)
		return -1;
	hub_link_tell_left_out(json_root(doc));
	return 0;
}

static int end_one(struct hub_link *l, const char *name, struct err *e)
{
	return end_at(l, name, "", e);
}

static int discard_one(struct hub_link *l, const char *name, struct err *e)
{
	return end_at(l, name, "?discard=true", e);
}

static int run_down(const struct verb_input *in)
{
	const struct each_options *o = in->options;

	return for_each(in, o->discard ? discard_one : end_one);
}

#define VERB(name_, alias_, doc_, options_)                                                        \
	const struct verb name_##_verb = {                                                         \
		.name = #name_,                                                                    \
		.alias = (alias_),                                                                 \
		.usage = "NAME...|--all",                                                          \
		.doc = (doc_),                                                                     \
		.page = "holt-sandbox",                                                            \
		.options = &(options_),                                                            \
		.size = sizeof(struct each_options),                                               \
		.max_operands = NAMES_MAX,                                                         \
		.usage_exit = 2,                                                                   \
		.run = run_##name_,                                                                \
	}

#define EACH(name_, alias_, doc_, f)                                                               \
	static int run_##name_(const struct verb_input *in)                                        \
	{                                                                                          \
		return for_each(in, f);                                                            \
	}                                                                                          \
	VERB(name_, alias_, doc_, options)

EACH(pause, NULL, "Pause sandboxes of the hub; memory and files stay.", pause_one);
EACH(resume, "start", "Continue paused sandboxes of the hub, and start stopped ones.", resume_one);
EACH(stop, NULL, "Stop sandboxes: their processes end, their files stay.", stop_one);
VERB(down, "rm", "Remove sandboxes of the hub, with processes and files.", down_options);
