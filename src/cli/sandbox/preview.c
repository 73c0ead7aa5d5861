/* `holt preview`: a link by which a browser sees what a server in a sandbox shows. */
#include "cli/link/ask.h"
#include "cli/link/ports.h"

static const struct ask_noun previews = { .path = "/v1/preview" };

static const struct option_row rows[] = {
	ASK_OPTION(times[0], OPTION_SECONDS, "ttl", .arg = "TIME", .min = 1000, .max = 7 * 86400000,
		   .member = "ttl_seconds",
		   .doc = "How long the link is valid, at most 7d; by default an hour."),
	ASK_END,
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static int preview_write(const struct verb_input *in, struct json_writer *w, struct err *e)
{
	struct port_words port;

	if (ports_read(in->operands[1], &port, e) < 0)
		return -1;
	if (port.host)
		return err_set(e, ERR_INVALID, "%.40s: the port is one number, that in the sandbox",
			       in->operands[1]);
	json_write_key(w, "port");
	json_write_uint(w, port.guest);
	return 0;
}

const struct verb preview_verb = {
	.name = "preview",
	.usage = "[OPTION...] NAME PORT",
	.doc = "Print a link to a server in a sandbox, for a browser.",
	.more = "Whoever has the link sees what the server on PORT shows, until its time is over\n"
		"or the hub ends. The hub must have been started with holt serve --preview.",
	.page = "holt-sandbox",
	ASK(options, .of = &previews, .method = "POST", .operands = { "sandbox" },
	    .write = preview_write, .prints = "url"),
	.min_operands = 2,
};
