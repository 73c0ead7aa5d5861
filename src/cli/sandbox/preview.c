/* `holt preview`: a link by which a browser sees what a server in a sandbox shows. */
#include <stdio.h>

#include "cli/link/ports.h"
#include "cli/common/safe.h"
#include "cli/common/verb.h"

struct preview_options {
	struct verb_options common;
	uint64_t ttl_ms;
	uint32_t output;
};

static const struct option_row rows[] = {
	OPTION(struct preview_options, ttl_ms, OPTION_SECONDS, "ttl", .arg = "TIME", .min = 1000,
	       .max = 7 * 86400000,
	       .doc = "How long the link is valid, at most 7d; by default an hour."),
	OUTPUT_ROW(struct preview_options),
	HELP_ROW(struct preview_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static int preview_write(const struct verb_input *in, struct json_writer *w, struct err *e)
{
	const struct preview_options *o = in->options;
	struct port_words port;

	if (ports_read(in->operands[1], &port, e) < 0)
		return -1;
	if (port.host)
		return err_set(e, ERR_INVALID, "%.40s: the port is one number, that in the sandbox",
			       in->operands[1]);
	json_write_object(w);
	hub_link_text(w, "sandbox", in->operands[0]);
	json_write_key(w, "port");
	json_write_uint(w, port.guest);
	if (o->ttl_ms) {
		json_write_key(w, "ttl_seconds");
		json_write_uint(w, (o->ttl_ms + 999) / 1000);
	}
	json_write_object_end(w);
	return json_write_done(w, e);
}

static int preview_ask(const struct verb_input *in, struct err *e)
{
	const struct preview_options *o = in->options;
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	autobuf struct buf text = BUF_INIT(HUB_BODY_MAX);
	struct json_writer w = json_writer(&text);

	if (preview_write(in, &w, e) < 0 || !(l = hub_link_open(e)) ||
	    hub_link_ask(l, "POST", "/v1/preview", buf_str(&text), &doc, e) < 0)
		return -1;
	if (o->output == OUTPUT_JSON)
		return hub_link_print(json_root(doc), e);
	safe_line(stdout, json_str(json_get(json_root(doc), "url")));
	putchar('\n');
	return 0;
}

static int preview_run(const struct verb_input *in)
{
	struct err e = ERR_INIT;

	return preview_ask(in, &e) < 0 ? hub_link_fail(&e) : 0;
}

const struct verb preview_verb = {
	.name = "preview",
	.usage = "[OPTION...] NAME PORT",
	.doc = "Print a link to a server in a sandbox, for a browser.",
	.more = "Whoever has the link sees what the server on PORT shows, until its time is over\n"
		"or the hub ends. The hub must have been started with holt serve --preview.",
	.page = "holt-sandbox",
	.options = &options,
	.size = sizeof(struct preview_options),
	.min_operands = 2,
	.max_operands = 2,
	.run = preview_run,
};
