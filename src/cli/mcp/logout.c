/* Deletes the stored tokens of a server. The server is not told. */
#include "cli/peer/peer.h"

static const struct option_row rows[] = {
	OPTION(struct peer_verb, peer.url, OPTION_TEXT, "url", .arg = "URL",
	       .doc = "Address of the server at log-in."),
	HELP_ROW(struct peer_verb),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static int logout_run(const struct verb_input *in, struct err *e)
{
	const struct peer_verb *o = in->options;

	return peer_logout(in, &o->peer);
}

const struct verb mcp_logout_verb = {
	.name = "mcp logout",
	.usage = "--url URL",
	.doc = "Delete the stored log-in to an MCP server.",
	.page = "holt-mcp-client",
	.options = &options,
	.size = sizeof(struct peer_verb),
	.run = logout_run,
};
