/* `holt events`: shows the events of the hub's sandboxes. */
#include <inttypes.h>

#include "cli/common/safe.h"
#include "cli/link/ask.h"

static const struct ask_noun events = { .path = "/v1/events" };

static const struct option_row rows[] = {
	ASK_OPTION(flags[0], OPTION_FLAG, "follow", .letter = 'f',
		   .doc = "Continue with new events."),
	ASK_OPTION(texts[0], OPTION_TEXT, "after", .arg = "NUMBER", .member = "after",
		   .doc = "Only events with a higher number; by default all."),
	ASK_END,
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static int events_check(const struct verb_input *in, struct err *e)
{
	const char *after = ((const struct ask_options *)in->options)->texts[0];
	char path[256];

	if (after && (!*after || strlen(after) > 18 || after[strspn(after, "0123456789")]))
		return err_set(e, ERR_INVALID, "--after takes the number of an event");
	return in->n_operands
		     ? hub_ask_path(&ask_sandbox, path, sizeof(path), in->operands[0], "", e)
		     : 0;
}

static int events_show(const struct json_val *v, const char *name, struct err *e)
{
	struct str detail = json_str(json_get(v, "detail"));
	uint64_t seq = 0;

	if (str_is(json_str(json_get(v, "kind")), "alive"))
		return 0;
	json_uint64(json_get(v, "seq"), &seq);
	printf("%8" PRIu64 "  ", seq);
	safe_line(stdout, json_str(json_get(v, "at")));
	fputs("  ", stdout);
	safe_line(stdout, json_str(json_get(v, "sandbox")));
	fputs("  ", stdout);
	safe_line(stdout, json_str(json_get(v, "kind")));
	if (detail.n) {
		fputs(": ", stdout);
		safe_line(stdout, detail);
	}
	putchar('\n');
	return 0;
}

/* Keep-alives are for programs, too. */
const struct verb events_verb = {
	.name = "events",
	.usage = "[OPTION...] [NAME]",
	.doc = "Show the events of the hub's sandboxes.",
	.page = "holt-sandbox",
	.check = events_check,
	ASK(options, .of = &events, .operands = { "sandbox" }, .more = "?limit=1000",
	    .next = "next", .after = "after", .follow = "?follow=true", .list = "events",
	    .show = events_show, .lines = true),
	.max_operands = 1,
};
