/* `holt hub`: the hub of whoever runs this, started by hand, by a service manager or by itself.
 * No word of it starts one. By itself it tells the status. */
#include "cli/hub/hub.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/common/claim.h"
#include "cli/common/safe.h"
#include "cli/link/link.h"
#include "json/document/write.h"

enum { EXIT_NONE = 1, JSON_MAX = 16 << 10 };

/* Members of /readyz, and how they are shown to people. */
static const struct {
	const char *name, *text;
} members[] = {
	{ "cause", "It refuses calls: " },
	{ "config", "An earlier configuration holds: " },
};

/* NULL with *e: it does not answer. */
static struct json_doc *hub_ask(const struct claim *c, struct err *e)
{
	if (*c->socket && strcmp(c->socket, "none") != 0)
		return hub_link_state(c->socket, e);
	err_set(e, ERR_TRANSPORT, "it has no socket");
	return NULL;
}

static int print_json(bool runs, const struct claim *c, const struct json_val *state, struct err *e)
{
	autobuf struct buf text = BUF_INIT(JSON_MAX);
	struct json_writer w = json_writer(&text);
	char since[CLAIM_TIME_MAX];
	int64_t step_ms;

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
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		struct str said = json_str(json_get(state, members[i].name));

		if (!said.p)
			continue;
		json_write_key(&w, members[i].name);
		json_write_str(&w, said);
	}
	if (json_int64(json_get(state, "longest_step_ms"), &step_ms)) {
		json_write_key(&w, "longest_step_ms");
		json_write_int(&w, step_ms);
	}
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0)
		return -1;
	printf("%.*s\n", STR_ARG(buf_str(&text)));
	return 0;
}

static void print_text(const struct claim *c, const struct json_val *state, const struct err *why)
{
	char text[CLAIM_TEXT_MAX];
	int64_t step_ms;

	claim_text(c, text);
	safe_line(stdout, str_of(text));
	puts(c->yields ? "\nIt started by itself, and yields to holt serve." : "");
	if (!state) {
		fputs("It does not answer: ", stdout);
		safe_puts(stdout, str_of(why->msg));
	}
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		struct str said = json_str(json_get(state, members[i].name));

		if (!said.p)
			continue;
		fputs(members[i].text, stdout);
		safe_puts(stdout, said);
	}
	if (json_int64(json_get(state, "longest_step_ms"), &step_ms))
		printf("Longest step of its loop: %" PRId64 " ms\n", step_ms);
}

static int run_status(const struct verb_input *in, struct err *e)
{
	const struct verb_output *o = in->options;
	struct claim c;
	int runs = claim_look(&c, e);
	AUTO(json_free) struct json_doc *state = runs > 0 ? hub_ask(&c, e) : NULL;

	if (runs < 0 || (o->output == OUTPUT_JSON && print_json(runs, &c, json_root(state), e) < 0))
		return -1;
	if (o->output != OUTPUT_JSON && runs) {
		print_text(&c, json_root(state), e);
	} else if (o->output != OUTPUT_JSON) {
		puts("no hub runs");
	}
	return runs ? 0 : EXIT_NONE;
}

#define STATUS                                                                                     \
	.usage = "[OPTION...]",                                                                    \
	.doc = "Show the hub of the data folder: pid, socket, start time.",                        \
	.more = "The exit status is 1 where there is none.", .page = "holt-hub",                   \
	.options = &verb_output, .size = sizeof(struct verb_output), .run = run_status

static const struct verb hub_status_verb = { .name = "hub status", STATUS };

/* A file and a row each. */
static const struct verb *const words[] = { &hub_status_verb, &hub_stop_verb, &hub_logs_verb,
					    NULL };

const struct verb hub_verb = { .name = "hub", STATUS, .words = words };
