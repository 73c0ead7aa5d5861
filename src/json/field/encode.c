/* Writes a struct as JSON, by its rows. */
#include "json/field/internal.h"

#include <stdlib.h>

static bool is_absent(const struct field *f, const void *from)
{
	if (f->has)
		return !*(const bool *)((const char *)from + f->has - 1);
	if (f->kind == FIELD_IS_JSON)
		return ((const struct field_json *)field_in(f, from))->text.n == 0;
	return f->kind == FIELD_IS_STR && !((const struct str *)field_in(f, from))->p;
}

static void put_strs(const struct field_strs *list, struct json_writer *w)
{
	json_write_array(w);
	for (size_t i = 0; i < list->n; i++)
		json_write_str(w, list->p[i]);
	json_write_array_end(w);
}

static int by_key(const void *a, const void *b)
{
	struct str x = ((const struct field_pair *)a)->key, y = ((const struct field_pair *)b)->key;
	int order = x.n && y.n ? memcmp(x.p, y.p, x.n < y.n ? x.n : y.n) : 0;

	return order ? order : (x.n > y.n) - (x.n < y.n);
}

static void put_map(const struct field *f, const struct field_map *map, struct json_writer *w)
{
	size_t bytes = map->n * sizeof(struct field_pair);
	struct field_pair *p = (struct field_pair *)(void *)mem_dup(map->p, bytes);
	struct err e;

	json_write_object(w);
	if (p)
		qsort(p, map->n, sizeof(*p), by_key);
	else if (err_set(&e, ERR_LIMIT, "out of memory"))
		json_write_fail(w, &e);
	for (size_t i = 0; p && i < map->n; i++) {
		json_write_key_str(w, p[i].key);
		if (f->flags & FIELD_SECRET)
			json_write_text(w, FIELD_SECRET_MARK);
		else
			json_write_str(w, p[i].value);
	}
	json_write_object_end(w);
	free(p);
}

static void put_enum(const struct field *f, const void *at, struct json_writer *w)
{
	unsigned value;

	memcpy(&value, at, sizeof(value));
	if (value < f->names_n) {
		json_write_text(w, f->names[value]);
	} else {
		struct err e;

		err_set(&e, ERR_BUG, "%s: %u has no name", f->name, value);
		json_write_fail(w, &e);
	}
}

static void put_objects(const struct field *f, const void *from, struct json_writer *w)
{
	const char *const *p = field_in(f, from);
	size_t n = *(const size_t *)((const char *)from + f->count_at);

	json_write_array(w);
	for (size_t i = 0; i < n; i++)
		field_encode(f->table, *p + i * f->elem, w);
	json_write_array_end(w);
}

static void put_json(const struct field_json *json, struct json_writer *w)
{
	json_write_raw(w, json->text.n ? json->text : STR_LIT("{}"));
}

static void put_value(const struct field *f, const void *from, struct json_writer *w);

static void put_dict(const struct field *f, const void *from, struct json_writer *w)
{
	const char *const *p = field_in(f, from);
	size_t n = *(const size_t *)((const char *)from + f->count_at);

	json_write_object(w);
	for (size_t i = 0; i < n; i++) {
		const char *elem = *p + i * f->elem;

		json_write_key_str(w, *(const struct str *)(const void *)elem);
		if (f->table->bare)
			put_value(&f->table->rows[0], elem, w);
		else
			field_encode(f->table, elem, w);
	}
	json_write_object_end(w);
}

static void put_value(const struct field *f, const void *from, struct json_writer *w)
{
	const void *at = field_in(f, from);

	switch (f->kind) {
	case FIELD_IS_BOOL:
		json_write_bool(w, *(const bool *)at);
		break;
	case FIELD_IS_INT32:
		json_write_int(w, *(const int32_t *)at);
		break;
	case FIELD_IS_INT64:
		json_write_int(w, *(const int64_t *)at);
		break;
	case FIELD_IS_UINT32:
		json_write_uint(w, *(const uint32_t *)at);
		break;
	case FIELD_IS_UINT64:
		json_write_uint(w, *(const uint64_t *)at);
		break;
	case FIELD_IS_REAL:
		json_write_real(w, *(const double *)at);
		break;
	case FIELD_IS_STR:
		if (f->flags & FIELD_SECRET)
			json_write_text(w, FIELD_SECRET_MARK);
		else if (f->flags & FIELD_BYTES)
			(w->bytes ?: json_write_base64)(w, *(const struct str *)at);
		else
			json_write_str(w, *(const struct str *)at);
		break;
	case FIELD_IS_STRS:
		put_strs(at, w);
		break;
	case FIELD_IS_MAP:
		put_map(f, at, w);
		break;
	case FIELD_IS_ENUM:
		put_enum(f, at, w);
		break;
	case FIELD_IS_OBJECT:
		if ((f->flags & FIELD_SWITCH) && *(const bool *)at)
			json_write_bool(w, false);
		else
			field_encode(f->table, at, w);
		break;
	case FIELD_IS_OBJECTS:
		put_objects(f, from, w);
		break;
	case FIELD_IS_DICT:
		put_dict(f, from, w);
		break;
	case FIELD_IS_JSON:
		put_json(at, w);
		break;
	}
}

void field_encode(const struct field_table *t, const void *from, struct json_writer *w)
{
	json_write_object(w);
	for (size_t i = 0; i < t->n; i++) {
		const struct field *f = &t->rows[i];
		bool absent = is_absent(f, from);

		if (absent && !(f->flags & FIELD_REQUIRED))
			continue;
		json_write_key(w, f->name);
		if (absent && (f->flags & FIELD_NULLABLE))
			json_write_null(w);
		else
			put_value(f, from, w);
	}
	json_write_object_end(w);
}

char *field_encode_text(const struct field_table *t, const void *from, size_t max, struct err *e)
{
	autobuf struct buf b = BUF_INIT(max);
	struct json_writer w = json_writer(&b);

	field_encode(t, from, &w);
	return json_write_done(&w, e) < 0 ? NULL : buf_take(&b);
}
