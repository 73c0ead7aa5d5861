/* Deletes the stored tokens of a server. The server is not told. */
#include "cli/peer/peer.h"

struct logout_options {
	struct verb_options common;
	struct peer_options peer;
};

static const struct option_row rows[] = {
	OPTION(struct logout_options, peer.url, OPTION_TEXT, "url", .arg = "URL",
	       .doc = "Address of the server at log-in."),
	HELP_ROW(struct logout_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static int logout_run(const struct verb_input *in, struct err *e)
{
	const struct logout_options *o = in->options;

	return peer_logout(in, &o->peer);
}

const struct verb mcp_logout_verb = {
	.name = "mcp logout",
	.usage = "--url URL",
	.doc = "Delete the stored log-in to an MCP server.",
	.page = "holt-mcp-client",
	.options = &options,
	.size = sizeof(struct logout_options),
	.run = logout_run,
};
