/* `holt hub`: the hub of whoever runs this, started by hand, by a service manager or by itself.
 * No word of it starts one. By itself it tells the status. */
#include "cli/hub/hub.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/common/claim.h"
#include "cli/common/safe.h"
#include "json/document/write.h"

enum { EXIT_NONE = 1, JSON_MAX = 16 << 10 };

struct status_options {
	struct verb_options common;
	uint32_t output;
};

static const struct option_row rows[] = {
	OUTPUT_ROW(struct status_options),
	HELP_ROW(struct status_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static int print_json(bool runs, const struct claim *c, struct err *e)
{
	autobuf struct buf text = BUF_INIT(JSON_MAX);
	struct json_writer w = json_writer(&text);
	char since[CLAIM_TIME_MAX];

	json_write_object(&w);
	json_write_key(&w, "running");
	json_write_bool(&w, runs);
	if (runs && c->pid) {
		json_write_key(&w, "pid");
		json_write_int(&w, c->pid);
	}
	if (runs && *c->socket) {
		claim_time(c, since);
		json_write_key(&w, "since");
		json_write_text(&w, since);
		json_write_key(&w, "socket");
		json_write_text(&w, c->socket);
		json_write_key(&w, "yields");
		json_write_bool(&w, c->yields);
	}
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0)
		return -1;
	printf("%.*s\n", STR_ARG(buf_str(&text)));
	return 0;
}

static int run_status(const struct verb_input *in)
{
	const struct status_options *o = in->options;
	struct err e = ERR_INIT;
	char text[CLAIM_TEXT_MAX];
	struct claim c;
	int runs = claim_look(&c, &e);

	if (runs < 0 || (o->output == OUTPUT_JSON && print_json(runs, &c, &e) < 0))
		return cli_fail(&e);
	if (o->output != OUTPUT_JSON && runs) {
		claim_text(&c, text);
		safe_line(stdout, str_of(text));
		puts(c.yields ? "\nIt started by itself, and yields to holt serve." : "");
	} else if (o->output != OUTPUT_JSON) {
		puts("no hub runs");
	}
	return runs ? 0 : EXIT_NONE;
}

#define STATUS                                                                                     \
	.usage = "[OPTION...]", .doc = "Tell which hub has the data folder: pid, socket, since.",  \
	.more = "The exit status is 1 where there is none.", .page = "holt-hub",                   \
	.options = &options, .size = sizeof(struct status_options), .usage_exit = 2,               \
	.run = run_status

static const struct verb hub_status_verb = { .name = "hub status", STATUS };

/* A file and a row each. */
static const struct verb *const words[] = { &hub_status_verb, &hub_stop_verb, &hub_logs_verb,
					    NULL };

const struct verb hub_verb = { .name = "hub", STATUS, .words = words };
