/* `holt events`: shows the events of the hub's sandboxes. */
#include <inttypes.h>

#include "cli/link/link.h"
#include "cli/common/safe.h"
#include "cli/common/verb.h"

struct events_options {
	struct verb_options common;
	uint32_t output;
	bool follow;
	const char *after;
};

static const struct option_row rows[] = {
	OPTION(struct events_options, follow, OPTION_FLAG, "follow", .letter = 'f',
	       .doc = "Continue with new events."),
	OPTION(struct events_options, after, OPTION_TEXT, "after", .arg = "NUMBER",
	       .doc = "Only events with a higher number; by default all."),
	OUTPUT_ROW(struct events_options),
	HELP_ROW(struct events_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

struct printer {
	bool json;
};

static uint64_t number(const struct json_val *v, const char *name)
{
	uint64_t n = 0;

	json_uint64(json_get(v, name), &n);
	return n;
}

static void print_event(const struct json_val *v)
{
	struct str detail = json_str(json_get(v, "detail"));

	printf("%8" PRIu64 "  ", number(v, "seq"));
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
}

/* One object per line, in every case: keep-alives are for programs, too. */
static int events_print(void *arg, const struct json_val *v, struct err *e)
{
	const struct printer *p = arg;

	if (p->json)
		return hub_link_print(v, e);
	if (!str_is(json_str(json_get(v, "kind")), "alive"))
		print_event(v);
	return 0;
}

static int print_now(void *arg, const struct json_val *v, struct err *e)
{
	if (events_print(arg, v, e) < 0)
		return -1;
	return fflush(stdout) == 0 ? 0 : err_set(e, ERR_IO, "standard output is closed");
}

/* Page after page, until one has nothing. */
static int print_pages(struct hub_link *l, const struct events_options *o, const char *sandbox,
		       struct err *e)
{
	struct printer p = { o->output == OUTPUT_JSON };
	uint64_t after = o->after ? strtoull(o->after, NULL, 10) : 0;
	bool more = true;

	while (more) {
		AUTO(json_free) struct json_doc *doc = NULL;
		struct json_iter it;
		char path[256];

		snprintf(path, sizeof(path), "/v1/events?limit=1000&after=%" PRIu64 "%s%s", after,
			 sandbox ? "&sandbox=" : "", sandbox ? sandbox : "");
		if (hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0)
			return -1;
		it = json_iter(json_get(json_root(doc), "events"));
		for (more = false; json_next(&it); more = true) {
			if (events_print(&p, it.val, e) < 0)
				return -1;
		}
		after = number(json_root(doc), "next");
	}
	return 0;
}

static int follow(struct hub_link *l, const struct events_options *o, const char *sandbox,
		  struct err *e)
{
	struct printer p = { o->output == OUTPUT_JSON };
	char path[256];

	snprintf(path, sizeof(path), "/v1/events?follow=true%s%s%s%s", o->after ? "&after=" : "",
		 o->after ? o->after : "", sandbox ? "&sandbox=" : "", sandbox ? sandbox : "");
	return hub_link_follow(l, path, print_now, &p, e);
}

static int events_check(const struct events_options *o, const char *sandbox, struct err *e)
{
	char path[256];

	if (o->after &&
	    (!*o->after || strlen(o->after) > 18 || o->after[strspn(o->after, "0123456789")]))
		return err_set(e, ERR_INVALID, "--after takes the number of an event");
	return sandbox ? hub_link_path(path, sizeof(path), sandbox, "", e) : 0;
}

static int events_run(const struct verb_input *in)
{
	const struct events_options *o = in->options;
	const char *sandbox = in->operands[0];
	struct err e = ERR_INIT;
	AUTO(hub_link_close) struct hub_link *l = NULL;

	if (events_check(o, sandbox, &e) < 0)
		return e.code == ERR_INVALID ? cli_wrong_usage(in->verb, &e) : hub_link_fail(&e);
	l = hub_link_open(&e);
	if (!l || (o->follow ? follow(l, o, sandbox, &e) : print_pages(l, o, sandbox, &e)) < 0)
		return hub_link_fail(&e);
	return 0;
}

const struct verb events_verb = {
	.name = "events",
	.usage = "[OPTION...] [NAME]",
	.doc = "Show the events of the hub's sandboxes.",
	.page = "holt-sandbox",
	.options = &options,
	.size = sizeof(struct events_options),
	.max_operands = 1,
	.run = events_run,
};
