/* Completes an argument of a prompt or of a resource template. */
#include <stdio.h>

#include "cli/common/args.h"
#include "cli/peer/peer.h"
#include "cli/common/safe.h"

struct complete_options {
	struct verb_options common;
	struct peer_options peer;
};

static const struct option_row rows[] = {
	PEER_ROWS(struct complete_options),
	HELP_ROW(struct complete_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static void on_result(struct peer *p, const struct json_val *result)
{
	struct json_iter it = json_iter(json_get(json_get(result, "completion"), "values"));

	if (peer_options(p)->json) {
		peer_print_json(p, result, PEER_OK);
		return;
	}
	while (json_next(&it)) {
		safe_line(stdout, json_str(it.val));
		putchar('\n');
	}
	if (json_bool(json_get(json_get(result, "completion"), "hasMore")))
		puts("…");
	peer_end(p, PEER_OK);
}

/* A name is a prompt's; with braces or a colon it is a template. */
static void write_ref(struct json_writer *w, const char *ref)
{
	bool template = strchr(ref, '{') || strstr(ref, "://");

	json_write_key(w, "ref");
	json_write_object(w);
	json_write_key(w, "type");
	json_write_text(w, template ? "ref/resource" : "ref/prompt");
	json_write_key(w, template ? "uri" : "name");
	json_write_text(w, ref);
	json_write_object_end(w);
}

/* NAME=TYPED, then the other arguments so far. */
static int write_params(const struct peer *p, struct buf *to, struct err *e)
{
	const struct verb_input *in = peer_input(p);
	const char *typed = strchr(in->operands[1], '=');
	autobuf struct buf others = BUF_INIT(ARGS_TEXT_MAX);
	struct json_writer w = json_writer(to);

	if (!typed || typed == in->operands[1])
		return err_set(e, ERR_INVALID, "the argument to complete is written NAME=TYPED");
	if (args_build(peer_arguments(p), NULL, &others, e) < 0)
		return -1;
	json_write_object(&w);
	write_ref(&w, in->operands[0]);
	json_write_key(&w, "argument");
	json_write_object(&w);
	json_write_key(&w, "name");
	json_write_str(&w, (struct str){ in->operands[1], (size_t)(typed - in->operands[1]) });
	json_write_key(&w, "value");
	json_write_text(&w, typed + 1);
	json_write_object_end(&w);
	if (in->n_operands > 2) {
		json_write_key(&w, "context");
		json_write_object(&w);
		json_write_key(&w, "arguments");
		json_write_raw(&w, buf_str(&others));
		json_write_object_end(&w);
	}
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

static void on_ready(struct peer *p)
{
	autobuf struct buf params = BUF_INIT(2 * ARGS_TEXT_MAX);
	struct err e = ERR_INIT;

	if (write_params(p, &params, &e) < 0)
		peer_fail(p, PEER_USAGE, &e);
	else
		peer_request(p, "completion/complete", buf_str(&params), on_result);
}

static int complete_run(const struct verb_input *in)
{
	const struct complete_options *o = in->options;

	return peer_run_with(in, &o->peer, 2, on_ready);
}

const struct verb mcp_complete_verb = {
	.name = "mcp complete",
	.usage = "[OPTION...] PROMPT|TEMPLATE NAME=TYPED [NAME=VALUE...]",
	.doc = "Complete an argument of a prompt or a resource template.",
	.more = "The other arguments are those that have a value already.\n\n" PEER_MORE,
	.page = "holt-mcp-client",
	.options = &options,
	.size = sizeof(struct complete_options),
	.min_operands = 2,
	.max_operands = 1000,
	.usage_exit = 2,
	.run = complete_run,
};
