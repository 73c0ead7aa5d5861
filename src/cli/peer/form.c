/*
 * Shows the server's question to the user at the terminal: a form field by field, each with type,
 * choices and default, then a confirmation; or a link to accept. End of input at any line means no.
 */
#include <stdio.h>
#include <string.h>

#include "cli/common/args.h"
#include "cli/peer/internal.h"
#include "cli/common/safe.h"
#include "json/schema/schema.h"
#include "json/document/write.h"

enum { CONTENT_MAX = 1 << 20 };

struct peer_form {
	struct peer *p;
	struct mcp_question *q;
	const struct json_val *schema; /* NULL: an address */
	struct json_iter field; /* that is being asked for */
	bool confirming; /* all fields were asked for */
	struct buf content; /* members of an object so far */
};

/* ---- choices ------------------------------------------------------------------------------- */

/* In order, one pass: there may be very many. */
struct choices {
	struct json_iter values; /* of enum; or objects with const and title */
	struct json_iter names; /* enumNames */
	bool titled;
};

struct choice {
	size_t number; /* from 1 */
	const struct json_val *value;
	struct str title;
};

static bool choices_of(const struct json_val *field, struct choices *ret)
{
	const struct json_val *values = json_get(field, "enum"), *titled = json_get(field, "oneOf");

	if (!titled)
		titled = json_get(field, "anyOf");
	*ret = (struct choices){ .values = json_iter(values ? values : titled),
				 .names = json_iter(json_get(field, "enumNames")),
				 .titled = !values };
	return json_len(values ? values : titled) > 0;
}

static bool next_choice(struct choices *c, struct choice *ret)
{
	const struct json_val *v, *name = json_next(&c->names) ? c->names.val : NULL;

	if (!json_next(&c->values))
		return false;
	v = c->values.val;
	*ret = (struct choice){ .number = c->values.index + 1,
				.value = c->titled ? json_get(v, "const") : v,
				.title = json_str(c->titled ? json_get(v, "title") : name) };
	return true;
}

/* By number, else by value or title. The numbers are ours, whatever the server's texts. */
static const struct json_val *form_choose(struct choices c, struct str typed)
{
	const struct json_val *found = NULL;
	struct choice one;
	char number[24];

	while (typed.n > 0 && next_choice(&c, &one)) {
		snprintf(number, sizeof(number), "%zu", one.number);
		if (str_is(typed, number))
			return one.value;
		if (!found && (str_eq(typed, json_str(one.value)) || str_eq(typed, one.title)))
			found = one.value;
	}
	return found;
}

static void show_choices(struct choices c)
{
	struct choice one;
	struct err e;

	while (next_choice(&c, &one)) {
		fprintf(stderr, "    %zu) ", one.number);
		if (one.title.n > 0)
			safe_short(stderr, one.title, 200);
		else if (safe_json(stderr, one.value, &e) < 0)
			fputs(e.msg, stderr);
		fputc('\n', stderr);
	}
}

/* ---- one field ----------------------------------------------------------------------------- */

static bool is_list(const struct json_val *field)
{
	return str_is(json_str(json_get(field, "type")), "array");
}

static bool is_bool(const struct json_val *field)
{
	return str_is(json_str(json_get(field, "type")), "boolean");
}

static void show_field(struct peer_form *f)
{
	const struct json_val *field = f->field.val, *usual = json_get(field, "default");
	struct str title = json_str(json_get(field, "title"));
	struct choices c;
	char type[80];
	struct err e;

	args_type_name(field, f->schema, type, sizeof(type));
	fputs("\n  ", stderr);
	safe_short(stderr, f->field.key, 100);
	fprintf(stderr, " (%s%s)", is_bool(field) ? "yes or no" : type,
		args_required(f->schema, f->field.key) ? ", required" : "");
	if (title.n > 0) {
		fputs("  ", stderr);
		safe_short(stderr, title, 200);
	}
	fputc('\n', stderr);
	safe_text(stderr, json_str(json_get(field, "description")), 4);
	if (choices_of(is_list(field) ? json_get(field, "items") : field, &c))
		show_choices(c);
	if (is_list(field))
		fputs("    several, with commas between them\n", stderr);
	if (usual) {
		fputs("    [", stderr);
		if (safe_json(stderr, usual, &e) < 0)
			fputs(e.msg, stderr);
		fputs("]\n", stderr);
	}
	fputs("  > ", stderr);
}

static int write_bool(struct str typed, struct json_writer *w, struct err *e)
{
	static const char *const yes[] = { "y", "yes", "true", "1" };
	static const char *const no[] = { "n", "no", "false", "0" };

	for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
		if (str_is(typed, yes[i]) || str_is(typed, no[i])) {
			json_write_bool(w, str_is(typed, yes[i]));
			return 0;
		}
	}
	return err_set(e, ERR_INVALID, "yes or no?");
}

static int write_choice(const struct choices *c, struct str typed, struct json_writer *w,
			struct err *e)
{
	const struct json_val *v = form_choose(*c, typed);

	if (!v)
		return err_set(e, ERR_INVALID, "this is not one of the choices");
	json_write_val(w, v);
	return 0;
}

static int write_list(const struct json_val *field, struct str typed, struct json_writer *w,
		      struct err *e)
{
	const struct json_val *items = json_get(field, "items");
	struct choices c;
	bool chosen = choices_of(items, &c);

	json_write_array(w);
	while (typed.p) {
		const char *comma = typed.n ? memchr(typed.p, ',', typed.n) : NULL;
		size_t n = comma ? (size_t)(comma - typed.p) : typed.n;
		struct str one = str_trim((struct str){ typed.p, n });

		if (!chosen)
			json_write_str(w, one);
		else if (write_choice(&c, one, w, e) < 0)
			return -1;
		typed = comma ? (struct str){ comma + 1, typed.n - n - 1 } : STR_NONE;
	}
	json_write_array_end(w);
	return 0;
}

/* The input as JSON; the default if it is empty. */
static int write_typed(struct peer_form *f, struct str typed, struct buf *to, struct err *e)
{
	const struct json_val *field = f->field.val, *usual = json_get(field, "default");
	struct json_writer w = json_writer(to);
	struct choices c;
	int r = 0;

	if (typed.n == 0)
		json_write_val(&w, usual);
	else if (is_list(field))
		r = write_list(field, typed, &w, e);
	else if (choices_of(field, &c))
		r = write_choice(&c, typed, &w, e);
	else if (is_bool(field))
		r = write_bool(typed, &w, e);
	else
		return args_value("it", typed, field, f->schema, to, e);
	return r < 0 ? -1 : json_write_done(&w, e);
}

static int check_field(const struct json_val *field, struct str value, struct err *e)
{
	static const struct schema_options formats = { .formats = true };
	AUTO(json_free) struct json_doc *doc = json_parse(value, NULL, e);
	AUTO(schema_free) struct schema *s = NULL;
	struct schema_fault fault;
	struct schema_faults faults = { .p = &fault, .max = 1 };

	s = doc ? schema_new(field, &formats, e) : NULL;
	if (!s)
		return -1;
	if (schema_check(s, json_root(doc), &faults, e) < 0)
		return e->code == ERR_INVALID ? err_set(e, ERR_INVALID, "it %s", fault.says) : -1;
	return 0;
}

static int add_member(struct peer_form *f, struct str value, struct err *e)
{
	struct json_writer w = json_writer(&f->content);

	if (f->content.n > 0 && buf_add(&f->content, ",", 1, e) < 0)
		return -1;
	json_write_str(&w, f->field.key);
	return json_write_done(&w, e) < 0 || buf_add(&f->content, ":", 1, e) < 0
		     ? -1
		     : buf_add(&f->content, value.p, value.n, e);
}

static int take_field(struct peer_form *f, struct str typed, struct err *e)
{
	autobuf struct buf value = BUF_INIT(CONTENT_MAX);

	if (typed.n == 0 && !json_get(f->field.val, "default"))
		return args_required(f->schema, f->field.key)
			     ? err_set(e, ERR_INVALID, "it is required")
			     : 0;
	if (write_typed(f, typed, &value, e) < 0 ||
	    check_field(f->field.val, buf_str(&value), e) < 0)
		return -1;
	return add_member(f, buf_str(&value), e);
}

/* ---- the whole ----------------------------------------------------------------------------- */

static void show_next(struct peer_form *f)
{
	if (f->schema && json_next(&f->field)) {
		show_field(f);
		return;
	}
	f->confirming = true;
	fputs(f->schema ? "\n  Send it to the server? [Y/n] " : "  Do you agree? [y/N] ", stderr);
}

struct peer_form *peer_form_start(struct peer *p, struct mcp_question *q, struct err *e)
{
	struct peer_form *f = calloc(1, sizeof(*f));
	const struct json_val *params = mcp_question_params(q);

	if (!f) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	f->p = p;
	f->q = q;
	f->content = BUF_INIT(CONTENT_MAX);
	peer_ask_head(p, q);
	if (mcp_question_kind(q) == MCP_ASK_FORM) {
		f->schema = json_get(params, "requestedSchema");
		f->field = json_iter(json_get(f->schema, "properties"));
	} else {
		fputs("It wants you to open this address yourself; nobody has opened it yet:\n\n  ",
		      stderr);
		safe_line(stderr, json_str(json_get(params, "url")));
		fputs("\n\n", stderr);
	}
	show_next(f);
	return f;
}

void peer_form_free(struct peer_form *f)
{
	if (f)
		buf_fini(&f->content);
	free(f);
}

static void send_form(struct peer_form *f)
{
	autobuf struct buf b = BUF_INIT(2 * CONTENT_MAX);
	struct err e = ERR_INIT;

	if (buf_addf(&b, &e, "{\"action\":\"accept\",\"content\":{") == 0 &&
	    buf_add(&b, buf_str(&f->content).p, f->content.n, &e) == 0 &&
	    buf_add(&b, "}}", 2, &e) == 0 && mcp_question_answer(f->q, buf_str(&b), &e) == 0)
		return;
	fputs("It can't be sent: ", stderr);
	safe_puts(stderr, str_of(e.msg));
	peer_answer_action(f->p, f->q, "decline");
}

/* Enter means the answer in capitals. */
static void confirm(struct peer_form *f, struct str typed)
{
	struct peer *p = f->p;
	bool yes = typed.n > 0 ? *typed.p == 'y' || *typed.p == 'Y' : f->schema != NULL;

	if (!yes)
		peer_answer_action(p, f->q, "decline");
	else if (f->schema)
		send_form(f);
	else
		peer_answer_action(p, f->q, "accept");
	peer_ask_next(p);
}

void peer_form_line(struct peer_form *f, struct str line)
{
	struct str typed = str_trim(line);
	struct err e = ERR_INIT;

	if (f->confirming) {
		confirm(f, typed);
	} else if (take_field(f, typed, &e) < 0) {
		fputs("  ", stderr);
		safe_line(stderr, str_of(e.msg));
		fputs("\n  > ", stderr);
	} else {
		show_next(f);
	}
}

void peer_form_end(struct peer_form *f)
{
	struct peer *p = f->p;

	fputc('\n', stderr);
	peer_answer_action(p, f->q, "cancel");
	peer_ask_next(p);
}
