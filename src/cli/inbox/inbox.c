#include "cli/inbox/inbox.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/common/safe.h"

enum { PATH_SIZE = 160, CURSOR_MAX = 64, LINE = 1000 };

static void inbox_print_line(const struct inbox *x, const struct json_val *one)
{
	for (size_t i = 0; x->line[i]; i++) {
		safe_line(stdout, json_str(json_get(one, x->line[i])));
		fputs("  ", stdout);
	}
	safe_short(stdout, x->text(one), LINE);
	putchar('\n');
}

static int inbox_print_all(const struct inbox *x, const struct json_val *list, bool json,
			   struct err *e)
{
	struct json_iter it = json_iter(list);

	while (json_next(&it)) {
		if (!json)
			inbox_print_line(x, it.val);
		else if (hub_link_print(it.val, e) < 0)
			return -1;
	}
	return fflush(stdout) == 0 ? 0 : err_set(e, ERR_IO, "standard output is closed");
}

/* A number, or a text without anything that a query could take for more. */
static void inbox_next_path(const struct inbox *x, const struct json_val *cursor,
			    char ret[PATH_SIZE])
{
	struct str text = json_str(cursor);
	uint64_t number = 0;

	if (!text.p && json_uint64(cursor, &number))
		snprintf(ret, PATH_SIZE, "%s?wait_seconds=60&after=%" PRIu64, x->of->path, number);
	else
		snprintf(ret, PATH_SIZE, "%s?wait_seconds=60&after=%.*s", x->of->path,
			 STR_CUT(text, CURSOR_MAX));
}

/* First what waits, then each change. */
static int inbox_follow(const struct inbox *x, struct hub_link *l, bool json, struct err *e)
{
	char path[PATH_SIZE];

	snprintf(path, sizeof(path), "%s", x->of->path);
	for (;;) {
		AUTO(json_free) struct json_doc *doc = NULL;

		if (hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0 ||
		    inbox_print_all(x, json_get(json_root(doc), x->list), json, e) < 0)
			return -1;
		inbox_next_path(x, json_get(json_root(doc), x->cursor), path);
	}
}

int inbox_watch(const struct inbox *x, const struct verb_input *in)
{
	const struct ask_options *o = in->options;
	struct err e = ERR_INIT;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(&e);

	if (l)
		inbox_follow(x, l, o->output == OUTPUT_JSON, &e);
	return hub_link_fail(&e);
}
