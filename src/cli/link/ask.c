#include "cli/link/ask.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/common/safe.h"

enum { PATH_SIZE = 16 << 10, WORDS_MAX = 256, MEMBER_MAX = 32 };

const struct ask_noun ask_sandbox = {
	.path = "/v1/sandboxes",
	.noun = "sandbox",
	.missing = ERR_SANDBOX_NOT_FOUND,
	.letters = ASK_LETTERS,
	.max = 200,
};

static_assert(offsetof(struct ask_options, output) == offsetof(struct verb_output, output),
	      "verb_output is a table of verbs that ask, too");

static int ask_check_name(const struct ask_noun *of, const char *name, struct err *e)
{
	size_t n = strlen(name);

	if (n == 0 || n > of->max || strspn(name, of->letters) != n ||
	    (of->not_first && strchr(of->not_first, name[0])))
		return err_set(e, of->missing, "no %s can be called \"%.80s\"", of->noun, name);
	return 0;
}

int hub_ask_path(const struct ask_noun *of, char *ret, size_t size, const char *name,
		 const char *more, struct err *e)
{
	if (ask_check_name(of, name, e) < 0)
		return -1;
	if (snprintf(ret, size, "%s/%s%s", of->path, name, more) >= (int)size)
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
	struct json_writer *w; /* NULL: as parameters */
	struct str object; /* that is open: of "limits.pids" */
	bool stream;
};

/* Opens and closes the object that the member is of; "": of none. Returns its own name. */
static const char *open_object(struct asking *a, const char *member)
{
	const char *dot = strchr(member, '.');
	struct str of = { member, dot ? (size_t)(dot - member) : 0 };

	if (a->object.n && !str_eq(a->object, of))
		json_write_object_end(a->w);
	if (of.n && !str_eq(a->object, of)) {
		json_write_key_str(a->w, of);
		json_write_object(a->w);
	}
	a->object = of;
	return dot ? dot + 1 : member;
}

/* NULL: none. raw: JSON, as it stands. */
static int ask_put(struct asking *a, const char *member, const char *text, bool raw, struct err *e)
{
	if (!text)
		return 0;
	if (!a->w)
		return hub_link_query(a->path, sizeof(a->path), member, text, e);
	json_write_key(a->w, open_object(a, member));
	if (raw)
		json_write_raw(a->w, str_of(text));
	else
		json_write_text(a->w, text);
	return 0;
}

/* 0: none. */
static int put_number(struct asking *a, const struct option_row *o, uint64_t v, struct err *e)
{
	const uint64_t unit = o->unit			? o->unit
			    : o->kind == OPTION_SECONDS ? 1000
			    : o->kind == OPTION_SIZE	? 1 << 20
							: 1;
	char text[32];

	if (o->kind == OPTION_MILLI)
		snprintf(text, sizeof(text), "%" PRIu64 ".%03" PRIu64, v / 1000, v % 1000);
	else
		snprintf(text, sizeof(text), "%" PRIu64, (v + unit - 1) / unit);
	return ask_put(a, o->member, v ? text : NULL, true, e);
}

static int put_flag(struct asking *a, const struct option_row *o, bool on, struct err *e)
{
	const char *value = !on ? o->off : o->on ? o->on : "true";

	return ask_put(a, o->member, value,
		       value && (!strcmp(value, "true") || !strcmp(value, "false")), e);
}

static int put_choice(struct asking *a, const struct option_row *o, uint32_t number, struct err *e)
{
	char text[MEMBER_MAX];

	if (!number)
		return 0;
	snprintf(text, sizeof(text), "%.*s", STR_CUT(option_choice(o, number), MEMBER_MAX));
	return ask_put(a, o->member, text, false, e);
}

/* An array, where there is any. */
static void put_list(struct asking *a, const struct option_row *o, const struct option_list *l)
{
	if (!l->n)
		return;
	json_write_key(a->w, open_object(a, o->member));
	json_write_array(a->w);
	for (size_t i = 0; i < l->n; i++)
		json_write_text(a->w, l->p[i]);
	json_write_array_end(a->w);
}

static int put_option(struct asking *a, const struct option_row *o, struct err *e)
{
	const char *at = (const char *)a->in->options + o->at;

	switch (o->kind) {
	case OPTION_FLAG:
		return put_flag(a, o, *(const bool *)at, e);
	case OPTION_TEXT:
		return ask_put(a, o->member, *(const char *const *)at, false, e);
	case OPTION_LIST:
		put_list(a, o, (const struct option_list *)at);
		return 0;
	case OPTION_CHOICE:
		return put_choice(a, o, *(const uint32_t *)at, e);
	case OPTION_SECONDS:
	case OPTION_SIZE:
		return put_number(a, o, *(const uint64_t *)at, e);
	default:
		return put_number(a, o, *(const uint32_t *)at, e);
	}
}

static int put_options(struct asking *a, struct err *e)
{
	const struct option_table *t = a->in->verb->options;

	for (size_t i = 0; i < t->n; i++) {
		if (t->rows[i].member && put_option(a, &t->rows[i], e) < 0)
			return -1;
	}
	if (a->w)
		open_object(a, "");
	return 0;
}

int hub_ask_members(const struct verb_input *in, struct json_writer *w, struct err *e)
{
	return put_options(&(struct asking){ .in = in, .w = w }, e);
}

/* name: in place of the first operand; else NULL where that is not there. */
static int put_operand(struct asking *a, int i, const char *name, struct err *e)
{
	const struct verb_input *in = a->in;
	const char *member = a->ask->operands[i], *more = member + strcspn(member, "=.");
	const char *text = i == 0	      ? name
			 : i < in->n_operands ? in->operands[i]
			 : *more == '='	      ? more + 1
					      : NULL;
	autobuf struct buf words = BUF_INIT(WORDS_MAX);
	char own[MEMBER_MAX];

	snprintf(own, sizeof(own), "%.*s", (int)(more - member), member);
	if (*more != '.')
		return ask_put(a, own, text, false, e);
	for (int k = i; k < in->n_operands; k++) {
		if (buf_addf(&words, e, "%s%s", k > i ? " " : "", in->operands[k]) < 0)
			return err_wrap(e, "the words");
	}
	return ask_put(a, own, words.p, false, e);
}

/* Where `more` has a '%', the second operand is part of the path. */
static int write_path(struct asking *a, const char *name, struct err *e)
{
	const struct ask *ask = a->ask;
	const struct ask_options *o = a->in->options;
	const char *more = ask->more ? ask->more : "";
	const char *at, *part;
	char whole[256];

	a->stream = ask->follow && (o->flags[0] || !ask->more);
	if (a->stream)
		more = ask->follow;
	at = strchr(more, '%');
	part = at ? a->in->operands[1] : "";
	if (at && ask_check_name(ask->part, part, e) < 0)
		return -1;
	snprintf(whole, sizeof(whole), "%.*s%s%s", at ? (int)(at - more) : (int)strlen(more), more,
		 part, at ? at + 1 : "");
	if (name && !ask->operands[0])
		return hub_ask_path(ask->of, a->path, sizeof(a->path), name, whole, e);
	snprintf(a->path, sizeof(a->path), "%s%s", ask->of->path, whole);
	return 0;
}

static int write_request(struct asking *a, const char *name, struct err *e)
{
	const struct ask *ask = a->ask;
	struct json_writer w = json_writer(&a->body);

	a->w = !ask->method || strcmp(ask->method, "DELETE") == 0 ? NULL : &w;
	a->body.n = 0;
	if (write_path(a, name, e) < 0)
		return -1;
	if (a->w)
		json_write_object(a->w);
	for (int i = 0; i < (ask->each ? 1 : ASK_OPERANDS); i++) {
		if (ask->operands[i] && put_operand(a, i, name, e) < 0)
			return -1;
	}
	if (put_options(a, e) < 0)
		return -1;
	if (!a->w)
		return ask->query ? ask->query(a->in, a->path, sizeof(a->path), e) : 0;
	if (ask->write && ask->write(a->in, &w, e) < 0)
		return -1;
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

static int ask_once(struct asking *a, struct json_doc **ret, struct err *e)
{
	const struct ask *ask = a->ask;

	if (!a->link && !(a->link = hub_link_open(e)))
		return -1;
	if (hub_link_ask(a->link, ask->method ? ask->method : "GET", a->path, buf_str(&a->body),
			 ret, e) == 0)
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

static int print_answer(const struct asking *a, const char *name, const struct json_val *root,
			struct err *e)
{
	const struct ask *ask = a->ask;

	if (((const struct ask_options *)a->in->options)->output == OUTPUT_JSON)
		return hub_link_print(root, e);
	if (ask->json) {
		if (safe_json_lines(stdout, root, 0, e) < 0)
			return -1;
		putchar('\n');
		return 0;
	}
	if (ask->prints)
		safe_puts(stdout, json_str(json_get(root, ask->prints)));
	if (ask->show && ask->show(root, name, e) < 0)
		return -1;
	hub_link_tell_left_out(root);
	if (ask->said)
		fprintf(stderr, "holt: %s\n", ask->said);
	return 0;
}

/* ---- rows ---------------------------------------------------------------------------------- */

struct listing {
	const struct ask *ask;
	struct table *t; /* NULL: none */
	struct json_writer *json; /* an array; NULL: not as JSON, or in lines */
	size_t n, max; /* max 0: any */
	bool as_json;
};

static int take_row(void *arg, const struct json_val *row, struct err *e)
{
	struct listing *l = arg;
	const struct ask *ask = l->ask;

	l->n++;
	if (l->json)
		json_write_val(l->json, row);
	else if (l->as_json)
		return hub_link_print(row, e);
	else if (ask->show)
		return ask->show(row, NULL, e);
	else if (!l->t)
		safe_puts(stdout, json_str(json_get(row, ask->prints)));
	for (size_t i = 0; l->t && !l->as_json && i < ask->n_columns; i++)
		put_cell(l->t, &ask->columns[i], row);
	return 0;
}

/* A row as it comes. */
static int take_line(void *arg, const struct json_val *row, struct err *e)
{
	if (take_row(arg, row, e) < 0)
		return -1;
	return fflush(stdout) == 0 ? 0 : err_sys(e, errno, "standard output");
}

/* The next page begins where this one ended. path_n: of the path without that. */
static bool turn_page(struct asking *a, size_t path_n, const struct json_val *root)
{
	const struct json_val *v = a->ask->next ? json_get(root, a->ask->next) : NULL;
	struct str cursor = json_str(v);
	char number[24];
	uint64_t n;

	if (json_uint64(v, &n))
		cursor = (struct str){ number,
				       (size_t)snprintf(number, sizeof(number), "%" PRIu64, n) };
	if (!cursor.p)
		return false;
	a->path[path_n] = '\0';
	snprintf(a->path + path_n, sizeof(a->path) - path_n, "%c%s=%.*s",
		 strchr(a->path, '?') ? '&' : '?', a->ask->after, STR_CUT(cursor, 64));
	return true;
}

/* Why a list has less than it might have. */
static void tell_cause(const struct json_val *root)
{
	struct str cause = json_str(json_get(root, "cause"));

	if (cause.n) {
		fputs("holt: ", stderr);
		safe_puts(stderr, cause);
	}
}

static int ask_pages(struct asking *a, struct listing *l, struct err *e)
{
	const struct ask *ask = a->ask;
	char after[MEMBER_MAX] = "";
	const char *at = NULL;
	bool more, cut;
	size_t path_n;

	if (ask->next) /* where the first page begins */
		at = (snprintf(after, sizeof(after), "%s=", ask->after), strstr(a->path, after));
	path_n = at ? (size_t)(at - a->path) - 1 : strlen(a->path);
	do {
		AUTO(json_free) struct json_doc *doc = NULL;
		struct json_iter it;
		size_t had = l->n;

		if (ask_once(a, &doc, e) < 0)
			return -1;
		if (l->as_json && ask->whole)
			return hub_link_print(json_root(doc), e);
		it = json_iter(*ask->list ? json_get(json_root(doc), ask->list) : json_root(doc));
		while ((!l->max || l->n < l->max) && json_next(&it)) {
			if (take_row(l, it.val, e) < 0)
				return -1;
		}
		if (ask->endless && fflush(stdout) != 0)
			return err_set(e, ERR_IO, "standard output is closed");
		cut = json_bool(json_get(json_root(doc), "truncated"));
		if (!l->as_json)
			tell_cause(json_root(doc));
		more = (ask->endless || l->n > had) && turn_page(a, path_n, json_root(doc));
	} while (more && (!l->max || l->n < l->max));
	if (cut && !l->as_json)
		fprintf(stderr, "holt: there are more %s than these\n", ask->list);
	return 0;
}

static int ask_rows(struct asking *a, struct err *e)
{
	const struct ask *ask = a->ask;
	const struct ask_options *o = a->in->options;
	const char *headings[TABLE_COLUMNS_MAX] = { 0 };
	autobuf struct buf text = BUF_INIT(HUB_ANSWER_MAX);
	struct json_writer w = json_writer(&text);
	AUTO(table_free) struct table *t = NULL;
	struct listing l = { .ask = ask,
			     .max = ask->first ? o->counts[0] : 0,
			     .as_json = o->output == OUTPUT_JSON };

	for (size_t i = 0; i < ask->n_columns; i++)
		headings[i] = ask->columns[i].heading;
	if (ask->n_columns && !(ask->prints && o->flags[0]) &&
	    !(l.t = t = table_new(headings, ask->n_columns, e)))
		return -1;
	if (a->stream)
		return a->link || (a->link = hub_link_open(e))
			     ? hub_link_follow(a->link, a->path, take_line, &l, e)
			     : -1;
	l.json = l.as_json && !ask->lines && !ask->whole ? &w : NULL;
	json_write_array(&w);
	if (ask_pages(a, &l, e) < 0)
		return -1;
	json_write_array_end(&w);
	if (l.json) {
		if (json_write_done(&w, e) < 0)
			return -1;
		safe_json_puts(stdout, buf_str(&text));
	} else if (t && !l.as_json) {
		table_print(t);
	}
	return 0;
}

/* ---- the verbs ----------------------------------------------------------------------------- */

/* Its exit status; -1 with *e. */
static int ask_about(struct asking *a, const char *name, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = NULL;

	if (write_request(a, name, e) < 0)
		return -1;
	if (a->ask->list)
		return ask_rows(a, e);
	if (ask_once(a, &doc, e) < 0 || print_answer(a, name, json_root(doc), e) < 0)
		return -1;
	return a->ask->status ? a->ask->status(a->in, json_root(doc)) : 0;
}

/* The exit status is that of the first failure. */
static int try_one(struct asking *a, const char *name, int status)
{
	struct err e = ERR_INIT;
	int now = ask_about(a, name, &e);

	if (now < 0)
		now = hub_link_fail(&e);
	return status ? status : now;
}

static int try_all(struct asking *a, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	struct json_iter it;
	int status = 0;

	a->link = hub_link_open(e);
	if (!a->link || hub_link_ask(a->link, "GET", ask_sandbox.path, STR_NONE, &doc, e) < 0)
		return -1;
	it = json_iter(json_root(doc));
	while (json_next(&it)) {
		struct str id = json_str(json_get(it.val, "id"));
		char name[256];

		snprintf(name, sizeof(name), "%.*s", STR_CUT(id, 255));
		status = try_one(a, name, status);
	}
	return status;
}

int hub_ask_run(const struct verb_input *in, struct err *e)
{
	const struct ask *ask = in->verb->ask;
	const struct ask_options *o = in->options;
	struct asking a = { .ask = ask, .in = in, .body = BUF_INIT(HUB_BODY_MAX) };
	int status = 0;

	if (ask->all && o->flags[0])
		status = try_all(&a, e);
	else if (!ask->each)
		status = ask_about(&a, in->n_operands ? in->operands[0] : NULL, e);
	for (int i = 0; ask->each && i < in->n_operands; i++)
		status = try_one(&a, in->operands[i], status);
	buf_fini(&a.body);
	hub_link_close(a.link);
	return status;
}
