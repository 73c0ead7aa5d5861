/* Copies a struct by its rows. */
#include "json/field/internal.h"

struct copier {
	struct arena *arena;
	field_text_fn text;
	void *data;
	struct err *e;
};

static int copy_object(struct copier *k, const struct field_table *t, void *to);

static int copy_strs(struct copier *k, const struct field *f, struct field_strs *list)
{
	struct str *p = arena_array(k->arena, list->n, sizeof(*p), k->e);

	if (!p)
		return -1;
	for (size_t i = 0; i < list->n; i++) {
		p[i] = k->text(k->data, f, list->p[i]);
		p[i].p = arena_dup(k->arena, p[i], k->e);
		if (!p[i].p)
			return -1;
	}
	list->p = p;
	return 0;
}

static int copy_str(struct copier *k, const struct field *f, struct str *s)
{
	if (!s->p)
		return 0;
	*s = k->text(k->data, f, *s);
	s->p = arena_dup(k->arena, *s, k->e);
	return s->p ? 0 : -1;
}

static int copy_map(struct copier *k, const struct field *f, struct field_map *map)
{
	struct field_pair *p = arena_array(k->arena, map->n, sizeof(*p), k->e);

	if (!p)
		return -1;
	for (size_t i = 0; i < map->n; i++) {
		p[i] = map->p[i];
		if (copy_str(k, f, &p[i].key) < 0 || copy_str(k, f, &p[i].value) < 0)
			return -1;
	}
	map->p = p;
	return 0;
}

static int copy_objects(struct copier *k, const struct field *f, void *to)
{
	const char **at = field_at(f, to);
	size_t n = *(const size_t *)((const char *)to + f->count_at);
	char *p = arena_array(k->arena, n, f->elem, k->e);

	if (!p)
		return -1;
	if (n)
		memcpy(p, *at, n * f->elem);
	*at = p;
	for (size_t i = 0; i < n; i++) {
		if (f->kind == FIELD_IS_DICT &&
		    copy_str(k, f, (struct str *)(void *)(p + i * f->elem)) < 0)
			return -1;
		if (copy_object(k, f->table, p + i * f->elem) < 0)
			return -1;
	}
	return 0;
}

static void copy_val(field_text_fn text, void *data, const struct field *f,
		     const struct json_val *v, struct json_writer *w)
{
	struct json_iter it = json_iter(v);

	switch (json_type(v)) {
	case JSON_STR:
		json_write_str(w, text(data, f, json_str(v)));
		break;
	case JSON_ARRAY:
		json_write_array(w);
		while (json_next(&it))
			copy_val(text, data, f, it.val, w);
		json_write_array_end(w);
		break;
	case JSON_OBJECT:
		json_write_object(w);
		while (json_next(&it)) {
			json_write_key_str(w, text(data, f, it.key));
			copy_val(text, data, f, it.val, w);
		}
		json_write_object_end(w);
		break;
	default:
		json_write_val(w, v);
		break;
	}
}

void field_copy_val(const struct json_val *v, field_text_fn text, void *data, struct json_writer *w)
{
	copy_val(text, data, NULL, v, w);
}

static int copy_json(struct copier *k, const struct field *f, struct field_json *json)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	autobuf struct buf b = BUF_INIT(2 * JSON_BYTES_MAX);
	struct json_writer w = json_writer(&b);

	if (json->text.n == 0)
		return 0;
	doc = json_parse(json->text, NULL, k->e);
	if (!doc)
		return -1;
	copy_val(k->text, k->data, f, json_root(doc), &w);
	if (json_write_done(&w, k->e) < 0)
		return -1;
	json->text = (struct str){ arena_dup(k->arena, buf_str(&b), k->e), b.n };
	return json->text.p ? 0 : -1;
}

/* `to` is a shallow copy; this copies what it points to. */
static int copy_object(struct copier *k, const struct field_table *t, void *to)
{
	int rc = 0;

	for (size_t i = 0; i < t->n && rc == 0; i++) {
		const struct field *f = &t->rows[i];
		const bool *has = field_has(f, to);

		if (has && !*has)
			continue;
		if (f->kind == FIELD_IS_STR)
			rc = copy_str(k, f, field_at(f, to));
		else if (f->kind == FIELD_IS_STRS)
			rc = copy_strs(k, f, field_at(f, to));
		else if (f->kind == FIELD_IS_MAP)
			rc = copy_map(k, f, field_at(f, to));
		else if (f->kind == FIELD_IS_OBJECT)
			rc = copy_object(k, f->table, field_at(f, to));
		else if (f->kind == FIELD_IS_OBJECTS || f->kind == FIELD_IS_DICT)
			rc = copy_objects(k, f, to);
		else if (f->kind == FIELD_IS_JSON)
			rc = copy_json(k, f, field_at(f, to));
	}
	return rc;
}

void *field_copy(const struct field_table *t, const void *from, struct arena *a, field_text_fn text,
		 void *data, struct err *e)
{
	struct copier k = { .arena = a, .text = text, .data = data, .e = e };
	void *to = arena_alloc(a, t->size, e);

	if (!to)
		return NULL;
	if (t->size)
		memcpy(to, from, t->size);
	return copy_object(&k, t, to) < 0 ? NULL : to;
}
