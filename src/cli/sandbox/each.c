/* `holt pause`, `resume`, `stop`, `down`: what is done to each of some sandboxes of the hub, past those that fail. */
#include "cli/link/link.h"
#include "cli/common/verb.h"

struct each_options {
	struct verb_options common;
};

static const struct option_row rows[] = { HELP_ROW(struct each_options) };
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

enum { NAMES_MAX = 1024 };

typedef int (*each_fn)(struct hub_link *l, const char *name, struct err *e);

static int for_each(const struct verb_input *in, each_fn f)
{
	struct err e = ERR_INIT;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(&e);
	int status = l ? 0 : hub_link_fail(&e);

	for (int i = 0; l && i < in->n_operands; i++) {
		int failed = f(l, in->operands[i], &e) < 0 ? hub_link_fail(&e) : 0;

		status = status ? status : failed;
	}
	return status;
}

static int post(struct hub_link *l, const char *path, const char *name, struct err *e)
{
	autobuf struct buf text = BUF_INIT(HUB_BODY_MAX);
	struct json_writer w = json_writer(&text);

	json_write_object(&w);
	hub_link_text(&w, "sandbox", name);
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0)
		return -1;
	return hub_link_ask(l, "POST", path, buf_str(&text), NULL, e);
}

static int pause_one(struct hub_link *l, const char *name, struct err *e)
{
	return post(l, "/v1/pause", name, e);
}

static int resume_one(struct hub_link *l, const char *name, struct err *e)
{
	return post(l, "/v1/resume", name, e);
}

static int stop_one(struct hub_link *l, const char *name, struct err *e)
{
	char path[256];

	if (hub_link_path(path, sizeof(path), name, "/stop", e) < 0)
		return -1;
	return hub_link_ask(l, "POST", path, STR_LIT("{}"), NULL, e);
}

static int end_one(struct hub_link *l, const char *name, struct err *e)
{
	char path[256];

	if (hub_link_path(path, sizeof(path), name, "", e) < 0)
		return -1;
	return hub_link_ask(l, "DELETE", path, STR_NONE, NULL, e);
}

#define EACH(name_, doc_, f)                                                                       \
	static int run_##name_(const struct verb_input *in)                                        \
	{                                                                                          \
		return for_each(in, f);                                                            \
	}                                                                                          \
	const struct verb name_##_verb = {                                                         \
		.name = #name_,                                                                    \
		.usage = "NAME...",                                                                \
		.doc = (doc_),                                                                     \
		.page = "holt-sandbox",                                                            \
		.options = &options,                                                               \
		.size = sizeof(struct each_options),                                               \
		.min_operands = 1,                                                                 \
		.max_operands = NAMES_MAX,                                                         \
		.usage_exit = 2,                                                                   \
		.run = run_##name_,                                                                \
	}

EACH(pause, "Stop all that runs in sandboxes of the hub; memory and files stay.", pause_one);
EACH(resume, "Let paused sandboxes of the hub continue, and start stopped ones.", resume_one);
EACH(stop, "End what runs in sandboxes of the hub, and keep their files.", stop_one);
EACH(down, "End sandboxes of the hub, with all that runs and is in them.", end_one);
