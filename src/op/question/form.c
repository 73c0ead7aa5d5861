/* A question as a form of MCP's elicitation, for the person at the client that asks it. */
#include "json/document/hidden.h"
#include "json/document/utf8.h"
#include "op/question/question.h"

enum { FORM_MAX = 256 << 10 };

/* A form's text may have several lines, and else nothing that is not seen. */
static int form_add_text(struct buf *to, struct str text, struct err *e)
{
	while (text.n > 0) {
		size_t n = 0;
		bool valid = utf8_next(text, &n);
		uint32_t c = valid ? hidden_char_of(text.p, n) : 0xfffd;
		bool hides = !valid || (hidden_char(c) && c != '\n');

		if ((hides ? buf_addf(to, e, "\\u{%x}", c) : buf_add(to, text.p, n, e)) < 0)
			return -1;
		text.p += n;
		text.n -= n;
	}
	return 0;
}

static int form_text(const struct question *q, struct buf *to, struct err *e)
{
	const struct question_spec *s = &q->spec;

	if (form_add_text(to, s->title, e) < 0 ||
	    (s->title.n && s->question.n && buf_addf(to, e, "\n\n") < 0))
		return -1;
	return form_add_text(to, s->question, e);
}

static void form_write_options(struct json_writer *w, const struct question_spec *s)
{
	json_write_name(w, "answer");
	json_write_object(w);
	json_write_name(w, "type");
	json_write_text(w, "string");
	json_write_name(w, "enum");
	json_write_array(w);
	for (size_t i = 0; i < s->options.n; i++)
		json_write_str(w, s->options.p[i].id);
	json_write_array_end(w);
	json_write_name(w, "enumNames");
	json_write_array(w);
	for (size_t i = 0; i < s->options.n; i++)
		json_write_str(w, s->options.p[i].label);
	json_write_array_end(w);
	json_write_object_end(w);
}

static int form_schema(const struct question *q, struct buf *to, struct err *e)
{
	const struct question_spec *s = &q->spec;
	struct json_writer w = json_writer(to);
	bool text = q->kind == QUESTION_TEXTBOX;

	json_write_object(&w);
	json_write_name(&w, "type");
	json_write_text(&w, "object");
	json_write_name(&w, "properties");
	json_write_object(&w);
	if (s->options.n)
		form_write_options(&w, s);
	if (text || s->allow_free_text) {
		json_write_name(&w, "text");
		json_write_object(&w);
		json_write_name(&w, "type");
		json_write_text(&w, "string");
		if (s->text.n) {
			json_write_name(&w, "default");
			json_write_str(&w, s->text);
		}
		json_write_object_end(&w);
	}
	json_write_object_end(&w);
	json_write_name(&w, "required");
	json_write_array(&w);
	if (!s->allow_free_text)
		json_write_text(&w, text ? "text" : "answer");
	json_write_array_end(&w);
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

int question_form(const struct question *q, struct arena *a, struct str *ret_text,
		  struct str *ret_schema, struct err *e)
{
	autobuf struct buf text = BUF_INIT(FORM_MAX), schema = BUF_INIT(FORM_MAX);
	struct str own = q->spec.schema.text;

	if (form_text(q, &text, e) < 0 ||
	    (q->kind != QUESTION_FORM && form_schema(q, &schema, e) < 0))
		return -1;
	own = q->kind == QUESTION_FORM ? own : buf_str(&schema);
	*ret_text = (struct str){ arena_dup(a, buf_str(&text), e), text.n };
	*ret_schema = (struct str){ arena_dup(a, own, e), own.n };
	return ret_text->p && ret_schema->p ? 0 : -1;
}

/* Clients may answer more than they were asked for. */
static int form_write_values(const struct question *q, const struct json_val *values,
			     struct json_writer *w, struct err *e)
{
	AUTO(json_free) struct json_doc *schema = json_parse(q->spec.schema.text, NULL, e);
	const struct json_val *members = json_get(json_root(schema), "properties");
	struct json_iter it = json_iter(values);

	if (!schema)
		return -1;
	json_write_object(w);
	while (json_next(&it)) {
		if (!json_get_str(members, it.key))
			continue;
		json_write_key_str(w, it.key);
		json_write_val(w, it.val);
	}
	json_write_object_end(w);
	return json_write_done(w, e);
}

int question_read_form(const struct question *q, const struct json_val *values, struct arena *a,
		       struct question_reply *ret, struct err *e)
{
	autobuf struct buf b = BUF_INIT(FORM_MAX);
	struct json_writer w = json_writer(&b);

	*ret = (struct question_reply){ .option_id = json_str(json_get(values, "answer")) };
	if (!ret->option_id.n)
		ret->free_text = json_str(json_get(values, "text"));
	if (q->kind != QUESTION_FORM)
		return 0;
	if (form_write_values(q, values, &w, e) < 0)
		return -1;
	*ret = (struct question_reply){ .values = { { arena_dup(a, buf_str(&b), e), b.n } } };
	return ret->values.text.p ? 0 : -1;
}
