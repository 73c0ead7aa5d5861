/* Checks questions before they are asked, and answers to them. */
#include "ask/question_internal.h"

#include <stdio.h>

#include "json/document/json.h"
#include "json/schema/schema.h"

enum { FORM_DEPTH = 8, FORM_VALUES = 4096, NAME_MAX_ = 64 };

/* Each kind: how many options it has, and what an answer may be instead of one. */
static const struct question_rule {
	unsigned min, max;
	bool may_text; /* where it allows a free text */
	bool text, form;
} rules[QUESTION_KINDS] = {
	[QUESTION_YES_NO] = { 2, 2 },
	[QUESTION_BUTTONS] = { 1, 4, .may_text = true },
	[QUESTION_SELECT] = { 1, 10, .may_text = true },
	[QUESTION_PERMISSION] = { 1, QUESTION_OPTIONS_MAX },
	[QUESTION_FORM] = { .form = true },
	[QUESTION_TEXTBOX] = { .text = true },
	[QUESTION_NOTIFY] = { 1, 1 },
};

/* ---- forms --------------------------------------------------------------------------------- */

/* What a schema of a form may say of a member, by its type, beside what all may. */
static const struct form_type {
	const char *type;
	const char *words[7];
} form_types[] = {
	{ "string", { "enum", "enumNames", "oneOf", "minLength", "maxLength", "format" } },
	{ "number", { "minimum", "maximum" } },
	{ "integer", { "minimum", "maximum" } },
	{ "boolean", { NULL } },
	{ "array", { "items", "minItems", "maxItems", "uniqueItems" } },
};
static const char *const form_common[] = { "type", "title", "description", "default", NULL };
static const char *const form_root[] = { "type",       "title",	   "description",
					 "properties", "required", "additionalProperties",
					 "$schema",    NULL };
static const char *const form_items[] = { "type", "enum", "anyOf", NULL };
static const char *const form_choice[] = { "const", "title", NULL };

static bool form_has_word(const char *const *words, struct str key)
{
	while (*words && !str_is(key, *words))
		words++;
	return *words;
}

/* All members are among the words, and titles and descriptions are texts. */
static int form_check_words(const struct json_val *v, const char *const *words,
			    const char *const *more, const char *what, struct err *e)
{
	struct json_iter it = json_iter(v);

	if (json_type(v) != JSON_OBJECT)
		return err_set(e, ERR_INVALID, "schema: %s is no object", what);
	while (json_next(&it)) {
		bool shown = str_is(it.key, "title") || str_is(it.key, "description");

		if (!form_has_word(words, it.key) && !(more && form_has_word(more, it.key)))
			return err_set(e, ERR_INVALID, "schema: %s of a form can't have \"%.*s\"",
				       what, STR_CUT(it.key, NAME_MAX_));
		if (shown && json_type(it.val) != JSON_STR)
			return err_set(e, ERR_INVALID, "schema: a %.*s is a text", STR_ARG(it.key));
	}
	return 0;
}

static int form_check_choices(const struct json_val *list, struct err *e)
{
	struct json_iter it = json_iter(list);

	while (json_next(&it)) {
		if (form_check_words(it.val, form_choice, NULL, "a choice", e) < 0)
			return -1;
		if (json_type(json_get(it.val, "const")) != JSON_STR)
			return err_set(e, ERR_INVALID, "schema: a choice has a text as its const");
	}
	return 0;
}

static int form_check_member(struct str name, const struct json_val *v, struct err *e)
{
	const struct json_val *items = json_get(v, "items");
	struct str type = json_str(json_get(v, "type"));
	size_t i = 0;

	if (name.n == 0 || name.n > NAME_MAX_)
		return err_set(e, ERR_INVALID, "schema: a name has 1 to %d bytes", NAME_MAX_);
	while (i < ARRAY_LEN(form_types) && !str_is(type, form_types[i].type))
		i++;
	if (i == ARRAY_LEN(form_types))
		return err_set(e, ERR_INVALID,
			       "schema: \"%.*s\" is a string, number, integer, boolean or array",
			       STR_ARG(name));
	if (form_check_words(v, form_common, form_types[i].words, "a member", e) < 0 ||
	    form_check_choices(json_get(v, "oneOf"), e) < 0)
		return -1;
	if (!str_is(type, "array"))
		return 0;
	if (form_check_words(items, form_items, NULL, "a list", e) < 0 ||
	    form_check_choices(json_get(items, "anyOf"), e) < 0)
		return -1;
	return json_get(items, "enum") || json_get(items, "anyOf")
		     ? 0
		     : err_set(e, ERR_INVALID, "schema: \"%.*s\" does not say what to choose from",
			       STR_ARG(name));
}

static struct schema *form_schema(struct str text, struct err *e)
{
	const struct schema_options o = { .formats = true };

	return schema_parse(text, &o, e);
}

static int form_check(struct str text, struct err *e)
{
	const struct json_options o = { .depth = FORM_DEPTH, .values = FORM_VALUES };
	AUTO(json_free) struct json_doc *doc = json_parse(text, &o, e);
	AUTO(schema_free) struct schema *schema = doc ? form_schema(text, e) : NULL;
	const struct json_val *root = json_root(doc), *members = json_get(root, "properties");
	struct json_iter it = json_iter(members);

	if (!schema)
		return err_wrap(e, "schema");
	if (form_check_words(root, form_root, NULL, "the object", e) < 0)
		return -1;
	if (!str_is(json_str(json_get(root, "type")), "object") || json_len(members) == 0 ||
	    json_len(members) > QUESTION_FIELDS_MAX)
		return err_set(e, ERR_INVALID, "schema: a form is an object of 1 to %d members",
			       QUESTION_FIELDS_MAX);
	while (json_next(&it)) {
		if (form_check_member(it.key, it.val, e) < 0)
			return -1;
	}
	return 0;
}

static int form_check_values(struct str schema_text, struct str text, struct err *e)
{
	AUTO(json_free) struct json_doc *form = json_parse(schema_text, NULL, e);
	AUTO(json_free) struct json_doc *doc = form ? json_parse(text, NULL, e) : NULL;
	AUTO(schema_free) struct schema *schema = doc ? form_schema(schema_text, e) : NULL;
	const struct json_val *members = json_get(json_root(form), "properties");
	struct json_iter it = json_iter(json_root(doc));

	if (!schema)
		return -1;
	while (json_next(&it)) {
		if (!json_get_str(members, it.key))
			return err_set(e, ERR_INVALID, "the form has no \"%.*s\"",
				       STR_CUT(it.key, NAME_MAX_));
	}
	return schema_check(schema, json_root(doc), NULL, e);
}

/* ---- what is asked ------------------------------------------------------------------------- */

static int check_options(enum question_kind kind, const struct question_spec *s, struct err *e)
{
	const struct question_rule *r = &rules[kind];

	if (s->options.n < r->min || s->options.n > r->max)
		return err_set(e, ERR_INVALID, "options: %s takes %u to %u of them",
			       question_kind_names[kind], r->min, r->max);
	for (size_t i = 0; i < s->options.n; i++) {
		const struct question_option *o = &s->options.p[i];

		for (size_t k = 0; k < i; k++) {
			const struct question_option *other = &s->options.p[k];

			if (str_eq(o->id, other->id) ||
			    (kind != QUESTION_PERMISSION && str_eq(o->label, other->label)))
				return err_set(e, ERR_INVALID, "options: two are \"%.*s\"",
					       STR_CUT(o->label, NAME_MAX_));
		}
	}
	return 0;
}

int question_check(enum question_kind kind, const struct question_spec *s, struct err *e)
{
	const struct question_rule *r = &rules[kind];

	if (!s->question.n && !s->title.n)
		return err_set(e, ERR_INVALID, "question: nothing is asked");
	if (s->allow_free_text && !r->may_text)
		return err_set(e, ERR_INVALID, "allow_free_text: %s has none",
			       question_kind_names[kind]);
	if (r->form != (s->schema.text.n > 0))
		return err_set(e, ERR_INVALID, "schema: a form has one, and nothing else has");
	if (check_options(kind, s, e) < 0)
		return -1;
	return r->form ? form_check(s->schema.text, e) : 0;
}

/* ---- what is answered ---------------------------------------------------------------------- */

static int check_option(const struct question_spec *s, struct question_reply *r, struct err *e)
{
	char offered[128] = "";
	size_t n = 0;

	for (size_t i = 0; i < s->options.n; i++) {
		struct str id = s->options.p[i].id;

		if (str_eq(id, r->option_id)) {
			r->label = s->options.p[i].label;
			return 0;
		}
		if (n + id.n + 4 < sizeof(offered))
			n += (size_t)snprintf(offered + n, sizeof(offered) - n, "%s\"%.*s\"",
					      i ? ", " : "", STR_ARG(id));
	}
	err_set(e, ERR_INVALID, "option_id: \"%.*s\" was not offered; these were: %s",
		STR_CUT(r->option_id, NAME_MAX_), offered);
	return err_point(e, "/option_id");
}

int question_check_reply(const struct question *q, struct question_reply *r, struct err *e)
{
	const struct question_rule *rule = &rules[q->kind];
	bool text = rule->text || q->spec.allow_free_text;
	bool option = rule->max > 0 && !(q->spec.allow_free_text && r->free_text.p);

	r->label = STR_NONE;
	if (option != (r->option_id.n > 0))
		return err_set(e, ERR_INVALID,
			       option ? "option_id: one of the options answers this"
				      : "option_id: no option answers this");
	if (r->free_text.p && !text)
		return err_set(e, ERR_INVALID, "free_text: no text answers this");
	if (rule->text && !r->free_text.p)
		return err_set(e, ERR_INVALID, "free_text: a text answers this");
	if (rule->form != (r->values.text.n > 0))
		return err_set(e, ERR_INVALID,
			       rule->form ? "values: those of the form answer this"
					  : "values: only a form has these");
	if (rule->form)
		return form_check_values(q->spec.schema.text, r->values.text, e) < 0
			     ? err_wrap(e, "values")
			     : 0;
	return option ? check_option(&q->spec, r, e) : 0;
}
