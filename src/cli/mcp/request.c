/* Sends any request, unchecked: for people who test servers. */
#include <stdio.h>

#include "cli/common/args.h"
#include "cli/peer/peer.h"
#include "cli/common/safe.h"

struct request_options {
	struct verb_options common;
	struct peer_options peer;
};

static const struct option_row rows[] = {
	PEER_ROWS(struct request_options),
	HELP_ROW(struct request_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static void on_result(struct peer *p, const struct json_val *result)
{
	struct err e = ERR_INIT;

	if (peer_options(p)->json) {
		peer_print_json(p, result, PEER_OK);
	} else if (safe_json_lines(stdout, result, 0, &e) < 0) {
		peer_fail(p, PEER_OWN, &e);
	} else {
		putchar('\n');
		peer_end(p, PEER_OK);
	}
}

static void on_ready(struct peer *p)
{
	const struct verb_input *in = peer_input(p);
	autobuf struct buf params = BUF_INIT(ARGS_TEXT_MAX);
	struct err e = ERR_INIT;

	if (args_build(peer_arguments(p), NULL, &params, &e) < 0)
		peer_fail(p, PEER_USAGE, &e);
	else
		peer_request(p, in->operands[0], in->n_operands > 1 ? buf_str(&params) : STR_NONE,
			     on_result);
}

static int request_run(const struct verb_input *in)
{
	const struct request_options *o = in->options;

	return peer_run_with(in, &o->peer, 1, on_ready);
}

const struct verb mcp_request_verb = {
	.name = "mcp request",
	.usage = "[OPTION...] METHOD [NAME=TEXT... | JSON | -]",
	.doc = "Send any request to an MCP server, with unchecked parameters.",
	.more = PEER_MORE,
	.page = "holt-mcp-client",
	.options = &options,
	.size = sizeof(struct request_options),
	.min_operands = 1,
	.max_operands = 1000,
	.usage_exit = 2,
	.run = request_run,
};
