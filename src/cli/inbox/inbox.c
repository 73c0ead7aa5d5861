#include "cli/inbox/inbox.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/common/safe.h"
#include "cli/common/table.h"

enum { PATH_SIZE = 160, CURSOR_MAX = 64, SHORT = 200, LINE = 1000 };

static int inbox_path(const struct inbox *x, char ret[PATH_SIZE], const char *id, const char *more,
		      struct err *e)
{
	size_t n = strlen(id);

	if (n == 0 || n > 64 || strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-_") != n)
		return err_set(e, x->missing, "no %s has the id \"%.80s\"", x->noun, id);
	snprintf(ret, PATH_SIZE, "%s/%s%s", x->path, id, more);
	return 0;
}

int inbox_ask(const struct inbox *x, struct hub_link *l, const char *method, const char *id,
	      const char *more, struct str body, struct json_doc **ret, struct err *e)
{
	char path[PATH_SIZE];

	if (inbox_path(x, path, id, more, e) < 0)
		return -1;
	if (hub_link_ask(l, method, path, body, ret, e) == 0)
		return 0;
	if (e->code == ERR_SANDBOX_NOT_FOUND) /* the only not_found that the link knows */
		e->code = x->missing;
	return -1;
}

/* ---- ls ------------------------------------------------------------------------------------ */

static const struct option_row ls_rows[] = {
	OPTION(struct inbox_ls, all, OPTION_FLAG, "all", .letter = 'a',
	       .doc = "Also list those that have ended."),
	OUTPUT_ROW(struct inbox_ls),
	HELP_ROW(struct inbox_ls),
};
const struct option_table inbox_ls_table = OPTION_TABLE(ls_rows, .mixed = true);

static void inbox_add_row(const struct inbox *x, struct table *t, const struct json_val *one)
{
	for (size_t i = 0; x->members[i]; i++)
		table_str(t, json_str(json_get(one, x->members[i])));
	table_short(t, x->text(one), SHORT);
}

static int inbox_list(const struct inbox *x, const struct inbox_ls *o, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(e);
	AUTO(json_free) struct json_doc *doc = NULL;
	AUTO(table_free) struct table *t = NULL;
	char path[PATH_SIZE];
	struct json_iter it;
	size_t n = 0;

	while (x->headings[n])
		n++;
	t = table_new(x->headings, n, e);
	snprintf(path, sizeof(path), "%s%s", x->path, o->all ? x->all : "");
	if (!l || !t || hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0)
		return -1;
	if (o->output == OUTPUT_JSON)
		return hub_link_print(json_get(json_root(doc), x->list), e);
	it = json_iter(json_get(json_root(doc), x->list));
	while (json_next(&it))
		inbox_add_row(x, t, it.val);
	table_print(t);
	return 0;
}

int inbox_ls(const struct inbox *x, const struct verb_input *in)
{
	struct err e = ERR_INIT;

	return inbox_list(x, in->options, &e) < 0 ? hub_link_fail(&e) : 0;
}

/* ---- show, and what ends some -------------------------------------------------------------- */

static const struct option_row bare_rows[] = { HELP_ROW(struct inbox_bare) };
const struct option_table inbox_bare_table = OPTION_TABLE(bare_rows, .mixed = true);

int inbox_show(const struct inbox *x, const struct verb_input *in)
{
	struct err e = ERR_INIT;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(&e);
	AUTO(json_free) struct json_doc *doc = NULL;

	if (!l || inbox_ask(x, l, "GET", in->operands[0], "", STR_NONE, &doc, &e) < 0 ||
	    hub_link_print(json_root(doc), &e) < 0)
		return hub_link_fail(&e);
	return 0;
}

int inbox_each(const struct inbox *x, const struct verb_input *in, const char *more,
	       struct str body)
{
	struct err e = ERR_INIT;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(&e);
	int status = l ? 0 : hub_link_fail(&e);

	for (int i = 0; l && i < in->n_operands; i++) {
		const char *id = in->operands[i];
		int failed = inbox_ask(x, l, "POST", id, more, body, NULL, &e) < 0
				   ? hub_link_fail(&e)
				   : 0;

		status = status ? status : failed;
	}
	return status;
}

/* ---- watch --------------------------------------------------------------------------------- */

static const struct option_row watch_rows[] = {
	OUTPUT_ROW(struct inbox_watch),
	HELP_ROW(struct inbox_watch),
};
const struct option_table inbox_watch_table = OPTION_TABLE(watch_rows, .mixed = true);

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
		snprintf(ret, PATH_SIZE, "%s?wait_seconds=60&after=%" PRIu64, x->path, number);
	else
		snprintf(ret, PATH_SIZE, "%s?wait_seconds=60&after=%.*s", x->path,
			 STR_CUT(text, CURSOR_MAX));
}

/* First what waits, then each change. */
static int inbox_follow(const struct inbox *x, struct hub_link *l, bool json, struct err *e)
{
	char path[PATH_SIZE];

	snprintf(path, sizeof(path), "%s", x->path);
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
	const struct inbox_watch *o = in->options;
	struct err e = ERR_INIT;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(&e);

	if (l)
		inbox_follow(x, l, o->output == OUTPUT_JSON, &e);
	return hub_link_fail(&e);
}
