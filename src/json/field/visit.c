/* Shows the texts of a struct that a JSON pointer leads to. */
#include <stdio.h>

#include "json/document/pointer.h"
#include "json/field/internal.h"

struct visitor {
	field_see_fn see;
	void *data;
	bool unread; /* there is something that can't be read */
};

/* The next step of a pointer, or false at its end. */
static bool visit_step(const char **pointer, struct str *ret)
{
	if (**pointer != '/')
		return false;
	*ret = (struct str){ *pointer + 1, strcspn(*pointer + 1, "/") };
	*pointer += 1 + ret->n;
	return true;
}

static void visit_object(struct visitor *v, const struct field_table *t, const char *base,
			 const char *pointer);

static void visit_strs(struct visitor *v, const struct field_strs *list, const char *pointer)
{
	struct str step = STR_NONE;
	bool one = visit_step(&pointer, &step);

	for (size_t i = 0; i < list->n && !*pointer; i++) {
		if (!one || field_is_place(step))
			v->see(v->data, list->p[i]);
	}
}

static void visit_map(struct visitor *v, const struct field_map *map, const char *pointer)
{
	struct str step = STR_NONE;
	bool one = visit_step(&pointer, &step);

	for (size_t i = 0; i < map->n && !*pointer; i++) {
		if (!one || json_pointer_is(step, map->p[i].key))
			v->see(v->data, map->p[i].value);
	}
}

static void visit_objects(struct visitor *v, const struct field *f, const char *base,
			  const char *pointer)
{
	const char *p = *(const char *const *)field_in(f, base);
	size_t n = *(const size_t *)(const void *)(base + f->count_at);
	struct str step = STR_NONE;
	bool one = visit_step(&pointer, &step);

	for (size_t i = 0; i < n; i++) {
		const char *elem = p + i * f->elem;
		bool named = f->kind == FIELD_IS_DICT;

		if (!one || (named ? json_pointer_is(step, *(const struct str *)(const void *)elem)
				   : field_is_place(step)))
			visit_object(v, f->table, elem, pointer);
	}
}

static void visit_val(struct visitor *v, const struct json_val *val, const char *pointer)
{
	struct str step = STR_NONE;
	bool one = visit_step(&pointer, &step);
	autobuf struct buf b = BUF_INIT(64);
	struct json_writer w = json_writer(&b);
	struct json_iter it = json_iter(val);
	struct err e;

	while (json_next(&it)) {
		if (!one || (it.key.p ? json_pointer_is(step, it.key) : field_is_place(step)))
			visit_val(v, it.val, pointer);
	}
	if (one || json_type(val) == JSON_ARRAY || json_type(val) == JSON_OBJECT)
		return;
	if (json_type(val) == JSON_STR) {
		v->see(v->data, json_str(val));
		return;
	}
	json_write_val(&w, val);
	if (json_write_done(&w, &e) == 0)
		v->see(v->data, buf_str(&b));
	else
		v->unread = true;
}

static void visit_json(struct visitor *v, const struct field_json *json, const char *pointer)
{
	struct err e;
	AUTO(json_free)
	struct json_doc *doc = json->text.n ? json_parse(json->text, NULL, &e) : NULL;

	if (doc)
		visit_val(v, json_root(doc), pointer);
	else if (json->text.n)
		v->unread = true;
}

static void visit_number(struct visitor *v, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void visit_number(struct visitor *v, const char *fmt, ...)
{
	char text[40];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	v->see(v->data, str_of(text));
}

static void visit_scalar(struct visitor *v, const struct field *f, const void *at)
{
	unsigned choice;

	switch (f->kind) {
	case FIELD_IS_BOOL:
		v->see(v->data, *(const bool *)at ? STR_LIT("true") : STR_LIT("false"));
		break;
	case FIELD_IS_INT32:
		visit_number(v, "%d", *(const int32_t *)at);
		break;
	case FIELD_IS_INT64:
		visit_number(v, "%lld", (long long)*(const int64_t *)at);
		break;
	case FIELD_IS_UINT32:
		visit_number(v, "%u", *(const uint32_t *)at);
		break;
	case FIELD_IS_UINT64:
		visit_number(v, "%llu", (unsigned long long)*(const uint64_t *)at);
		break;
	case FIELD_IS_REAL:
		visit_number(v, "%.17g", *(const double *)at);
		break;
	case FIELD_IS_STR:
		if (((const struct str *)at)->p)
			v->see(v->data, *(const struct str *)at);
		break;
	default:
		memcpy(&choice, at, sizeof(choice));
		if (choice < f->names_n)
			v->see(v->data, str_of(f->names[choice]));
		break;
	}
}

static void visit_value(struct visitor *v, const struct field *f, const char *base,
			const char *pointer)
{
	const void *at = field_in(f, base);

	if (f->has && !*(const bool *)(base + f->has - 1))
		return;
	if (f->kind == FIELD_IS_STRS)
		visit_strs(v, at, pointer);
	else if (f->kind == FIELD_IS_MAP)
		visit_map(v, at, pointer);
	else if (f->kind == FIELD_IS_OBJECT)
		visit_object(v, f->table, at, pointer);
	else if (f->kind == FIELD_IS_OBJECTS || f->kind == FIELD_IS_DICT)
		visit_objects(v, f, base, pointer);
	else if (f->kind == FIELD_IS_JSON)
		visit_json(v, at, pointer);
	else if (!*pointer)
		visit_scalar(v, f, at);
}

static void visit_object(struct visitor *v, const struct field_table *t, const char *base,
			 const char *pointer)
{
	struct str step = STR_NONE;
	bool one = visit_step(&pointer, &step);

	for (size_t i = 0; i < t->n; i++) {
		if (!one || json_pointer_is(step, str_of(t->rows[i].name)))
			visit_value(v, &t->rows[i], base, pointer);
	}
}

bool field_visit(const struct field_table *t, const void *from, const char *pointer,
		 field_see_fn see, void *data)
{
	struct visitor v = { see, data, false };

	visit_object(&v, t, from, pointer);
	return !v.unread;
}
