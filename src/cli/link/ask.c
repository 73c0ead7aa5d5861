#include "cli/link/ask.h"

#include <stdio.h>
#include <string.h>

#include "cli/common/safe.h"

enum { PATH_SIZE = 16 << 10, WORDS_MAX = 256 };

const struct ask_noun ask_sandbox = {
	.path = "/v1/sandboxes",
	.noun = "sandbox",
	.missing = ERR_SANDBOX_NOT_FOUND,
	.letters = ASK_LETTERS,
	.max = 200,
};

static const struct option_row output_rows[] = { ASK_END };
const struct option_table ask_output = OPTION_TABLE(output_rows, .mixed = true);

int hub_ask_path(const struct ask_noun *of, char *ret, size_t size, const char *name,
		 const char *more, struct err *e)
{
	size_t n = strlen(name);

	if (n == 0 || n > of->max || strspn(name, of->letters) != n ||
	    (of->not_first && strchr(of->not_first, name[0])) ||
	    snprintf(ret, size, "%s/%s%s", of->path, name, more) >= (int)size)
		return err_set(e, of->missing, "no %s can be called \"%.80s\"", of->noun, name);
	return 0;
}

/* ---- the request --------------------------------------------------------------------------- */

struct asking {
	const struct ask *ask;
	const struct verb_input *in;
	struct hub_link *link; /* opened when there is something to ask */
	char path[PATH_SIZE];
	struct buf body; /* empty: what goes along is in the path */
	struct json_writer w;
	bool query;
};

/* NULL: none. raw: JSON, as it stands. */
static int put(struct asking *a, const char *member, const char *text, bool raw, struct err *e)
{
	if (!text)
		return 0;
	if (a->query)
		return hub_link_query(a->path, sizeof(a->path), member, text, e);
	json_write_key(&a->w, member);
	if (raw)
		json_write_raw(&a->w, str_of(text));
	else
		json_write_text(&a->w, text);
	return 0;
}

static int put_number(struct asking *a, const char *member, uint64_t v, struct err *e)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	return put(a, member, v ? text : NULL, true, e);
}

static int put_flag(struct asking *a, const struct option_row *o, bool on, struct err *e)
{
	const char *value = !on ? o->off : o->on ? o->on : "true";

	return put(a, o->member, value,
		   value && (!strcmp(value, "true") || !strcmp(value, "false")), e);
}

static int put_option(struct asking *a, const struct option_row *o, struct err *e)
{
	const char *at = (const char *)a->in->options + o->at;

	switch (o->kind) {
	case OPTION_FLAG:
		return put_flag(a, o, *(const bool *)at, e);
	case OPTION_TEXT:
		return put(a, o->member, *(const char *const *)at, false, e);
	case OPTION_SECONDS:
		return put_number(a, o->member, (*(const uint64_t *)at + 999) / 1000, e);
	default:
		return put_number(a, o->member, *(const uint32_t *)at, e);
	}
}

/* Where `more` has a '%', the second operand is part of the path. */
static int write_path(struct asking *a, const char *name, const char *more, struct err *e)
{
	const char *at = strchr(more, '%'), *part = at ? a->in->operands[1] : "";
	char whole[256];

	if (strspn(part, ASK_LETTERS) != strlen(part) || strlen(part) > 128)
		return err_set(e, a->ask->of->missing, "nothing there can be called \"%.80s\"",
			       part);
	snprintf(whole, sizeof(whole), "%.*s%s%s", at ? (int)(at - more) : (int)strlen(more), more,
		 part, at ? at + 1 : "");
	return hub_ask_path(a->ask->of, a->path, sizeof(a->path), name, whole, e);
}

/* name: in place of the first operand. */
static int write_request(struct asking *a, const char *name, struct err *e)
{
	const struct verb_input *in = a->in;
	const struct option_table *t = in->verb->options;
	const struct ask *ask = a->ask;
	const char *more = ask->more ? ask->more : "";

	a->query = !ask->method || strcmp(ask->method, "DELETE") == 0;
	a->w = json_writer(&a->body);
	a->body.n = 0;
	if (name && !ask->operands[0]) {
		if (write_path(a, name, more, e) < 0)
			return -1;
	} else {
		snprintf(a->path, sizeof(a->path), "%s%s", ask->of->path, more);
	}
	if (!a->query)
		json_write_object(&a->w);
	for (int i = 0; i < (ask->each || ask->joined ? 1 : in->n_operands); i++) {
		const char *member = ask->operands[i];

		if (member && put(a, member, i ? in->operands[i] : name, false, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < t->n; i++) {
		if (t->rows[i].member && put_option(a, &t->rows[i], e) < 0)
			return -1;
	}
	if (a->query)
		return 0;
	if (ask->write && ask->write(in, &a->w, e) < 0)
		return -1;
	json_write_object_end(&a->w);
	return json_write_done(&a->w, e);
}

static int ask_once(struct asking *a, struct json_doc **ret, struct err *e)
{
	const struct ask *ask = a->ask;

	if (!a->link && !(a->link = hub_link_open(e)))
		return -1;
	if (hub_link_ask(a->link, ask->method ? ask->method : "GET", a->path,
			 a->query ? STR_NONE : buf_str(&a->body), ret, e) == 0)
		return 0;
	if (e->code == ERR_SANDBOX_NOT_FOUND && ask->of->alone) /* the link knows no other one */
		e->code = ask->of->missing;
	return -1;
}

/* ---- the answer ---------------------------------------------------------------------------- */

static void put_cell(struct table *t, const struct ask_column *c, const struct json_val *row)
{
	const struct json_val *v = c->member ? json_get(row, c->member) : NULL;
	struct str s = json_str(v);

	if (c->cell)
		c->cell(t, row);
	else if (c->unit > 0)
		table_number(t, v, c->unit, c->digits);
	else if (c->id)
		table_str(t, (struct str){ s.p, s.n < c->cut ? s.n : c->cut });
	else if (c->cut)
		table_short(t, s, c->cut);
	else
		table_str(t, s);
}

static void print_line(struct str text)
{
	safe_line(stdout, text);
	putchar('\n');
}

static const struct json_val *rows_of(const struct ask *ask, const struct json_val *root)
{
	return *ask->list ? json_get(root, ask->list) : root;
}

static int print_row(const struct ask *ask, const struct json_val *row, struct table *t,
		     struct err *e)
{
	if (ask->show)
		return ask->show(row, NULL, e);
	if (!t)
		print_line(json_str(json_get(row, ask->prints)));
	for (size_t i = 0; t && i < ask->n_columns; i++)
		put_cell(t, &ask->columns[i], row);
	return 0;
}

static int print_answer(const struct asking *a, const char *name, const struct json_val *root,
			struct err *e)
{
	const struct ask *ask = a->ask;

	if (ask->json) {
		if (safe_json_lines(stdout, root, 0, e) < 0)
			return -1;
		putchar('\n');
		return 0;
	}
	if (ask->prints)
		print_line(json_str(json_get(root, ask->prints)));
	if (ask->show && ask->show(root, name, e) < 0)
		return -1;
	hub_link_tell_left_out(root);
	if (ask->said)
		fprintf(stderr, "holt: %s\n", ask->said);
	return 0;
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* The next page begins where this one ended. */
static bool turn_page(struct asking *a, size_t path_n, const struct json_val *root)
{
	struct str cursor = json_str(json_get(root, "next_cursor"));

	a->path[path_n] = '\0';
	if (!a->ask->pages || !cursor.p)
		return false;
	snprintf(a->path + path_n, sizeof(a->path) - path_n, "%ccursor=%.*s",
		 strchr(a->path, '?') ? '&' : '?', STR_CUT(cursor, 64));
	return true;
}

static int ask_rows(struct asking *a, bool json, struct err *e)
{
	const struct ask *ask = a->ask;
	const char *headings[TABLE_COLUMNS_MAX] = { 0 };
	autobuf struct buf text = BUF_INIT(HUB_ANSWER_MAX);
	struct json_writer w = json_writer(&text);
	AUTO(table_free) struct table *t = NULL;
	const uint32_t max = ask->first ? ((const struct ask_options *)a->in->options)->counts[0]
					: 0;
	size_t path_n = strlen(a->path), n = 0;
	bool more, cut;

	for (size_t i = 0; i < ask->n_columns; i++)
		headings[i] = ask->columns[i].heading;
	if (ask->n_columns && !(t = table_new(headings, ask->n_columns, e)))
		return -1;
	json_write_array(&w);
	do {
		AUTO(json_free) struct json_doc *doc = NULL;
		struct json_iter it;

		if (ask_once(a, &doc, e) < 0)
			return -1;
		if (json && ask->whole)
			return hub_link_print(json_root(doc), e);
		it = json_iter(rows_of(ask, json_root(doc)));
		while ((!max || n < max) && json_next(&it)) {
			n++;
			if (json)
				json_write_val(&w, it.val);
			else if (print_row(ask, it.val, t, e) < 0)
				return -1;
		}
		cut = json_bool(json_get(json_root(doc), "truncated"));
		more = turn_page(a, path_n, json_root(doc));
	} while (more && (!max || n < max));
	json_write_array_end(&w);
	if (json && json_write_done(&w, e) < 0)
		return -1;
	if (json) {
		safe_json_text(stdout, buf_str(&text));
		putchar('\n');
		return 0;
	}
	if (t)
		table_print(t);
	if (cut)
		fprintf(stderr, "holt: there are more %s than these\n", ask->list);
	return 0;
}

/* ---- the verbs ----------------------------------------------------------------------------- */

static int ask_about(struct asking *a, const char *name, struct err *e)
{
	const struct ask_options *o = a->in->options;
	AUTO(json_free) struct json_doc *doc = NULL;

	if (write_request(a, name, e) < 0)
		return -1;
	if (a->ask->list)
		return ask_rows(a, o->output == OUTPUT_JSON, e);
	if (ask_once(a, &doc, e) < 0)
		return -1;
	return o->output == OUTPUT_JSON ? hub_link_print(json_root(doc), e)
					: print_answer(a, name, json_root(doc), e);
}

/* The exit status is that of the first failure. */
static int try_one(struct asking *a, const char *name, int status)
{
	struct err e = ERR_INIT;
	int failed = ask_about(a, name, &e) < 0 ? hub_link_fail(&e) : 0;

	return status ? status : failed;
}

static int try_all(struct asking *a)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	struct err e = ERR_INIT;
	struct json_iter it;
	int status = 0;

	a->link = hub_link_open(&e);
	if (!a->link || hub_link_ask(a->link, "GET", ask_sandbox.path, STR_NONE, &doc, &e) < 0)
		return hub_link_fail(&e);
	it = json_iter(json_root(doc));
	while (json_next(&it)) {
		struct str id = json_str(json_get(it.val, "id"));
		char name[256];

		snprintf(name, sizeof(name), "%.*s", STR_CUT(id, 255));
		status = try_one(a, name, status);
	}
	return status;
}

int hub_ask_run(const struct verb_input *in)
{
	const struct ask *ask = in->verb->ask;
	const struct ask_options *o = in->options;
	struct asking a = { .ask = ask, .in = in, .body = BUF_INIT(HUB_BODY_MAX) };
	autobuf struct buf words = BUF_INIT(WORDS_MAX);
	struct err e = ERR_INIT;
	int status = 0;

	for (int i = 0; ask->joined && i < in->n_operands; i++) {
		if (buf_addf(&words, &e, "%s%s", i ? " " : "", in->operands[i]) < 0) {
			err_wrap(&e, "the words");
			return hub_link_fail(&e);
		}
	}

	if (ask->all && o->flags[0] == (in->n_operands > 0)) {
		err_set(&e, ERR_INVALID, "say names, or --all");
		return cli_wrong_usage(in->verb, &e);
	}
	if (ask->all && o->flags[0])
		status = try_all(&a);
	else if (!ask->each)
		status = try_one(&a,
				 words.p	  ? words.p
				 : in->n_operands ? in->operands[0]
						  : NULL,
				 0);
	for (int i = 0; ask->each && i < in->n_operands; i++)
		status = try_one(&a, in->operands[i], status);
	buf_fini(&a.body);
	hub_link_close(a.link);
	return status;
}
