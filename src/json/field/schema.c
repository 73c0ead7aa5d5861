/* Writes rows as JSON Schema. Only keywords that draft-07 and 2020-12 share are used. */
#include "json/document/put.h"
#include "json/field/internal.h"

enum { SCHEMA_MAX = 1 << 20 };

static const char *const types[] = {
	[FIELD_IS_BOOL] = "boolean",   [FIELD_IS_INT32] = "integer",  [FIELD_IS_INT64] = "integer",
	[FIELD_IS_UINT32] = "integer", [FIELD_IS_UINT64] = "integer", [FIELD_IS_REAL] = "number",
	[FIELD_IS_STR] = "string",     [FIELD_IS_STRS] = "array",     [FIELD_IS_MAP] = "object",
	[FIELD_IS_ENUM] = "string",    [FIELD_IS_OBJECT] = "object",  [FIELD_IS_OBJECTS] = "array",
	[FIELD_IS_DICT] = "object",    [FIELD_IS_JSON] = "object",
};

static void put_type(const struct field *f, struct json_writer *w)
{
	json_write_key(w, "type");
	if (!(f->flags & (FIELD_NULLABLE | FIELD_SWITCH))) {
		json_write_text(w, types[f->kind]);
		return;
	}
	json_write_array(w);
	json_write_text(w, types[f->kind]);
	if (f->flags & FIELD_SWITCH)
		json_write_text(w, "boolean");
	if (f->flags & FIELD_NULLABLE)
		json_write_text(w, "null");
	json_write_array_end(w);
}

static void put_bounds(const struct field_bounds *b, const char *min, const char *max,
		       struct json_writer *w)
{
	if (b->has_min)
		json_put_int(w, min, b->min);
	if (b->has_max)
		json_put_int(w, max, b->max);
}

/* Writes the bounds of a length or count. A minimum of 0 is left out. */
static void put_lengths(struct field_bounds b, const char *min, const char *max,
			struct json_writer *w)
{
	b.has_min = b.min > 0;
	put_bounds(&b, min, max, w);
}

static void put_string_item(const struct field *f, const char *key, struct json_writer *w)
{
	json_put_object(w, key);
	json_put_text(w, "type", "string");
	put_lengths(field_item_bounds(f), "minLength", "maxLength", w);
	json_write_object_end(w);
}

static void put_names(const struct field *f, struct json_writer *w)
{
	json_put_array(w, "enum");
	for (size_t i = 0; i < f->names_n; i++)
		json_write_text(w, f->names[i]);
	if (f->flags & FIELD_NULLABLE)
		json_write_null(w);
	json_write_array_end(w);
}

static void put_members(const struct field_table *t, struct json_writer *w);

static void put_dict(const struct field *f, struct json_writer *w)
{
	json_put_object(w, "propertyNames");
	put_lengths(field_item_bounds(f), "minLength", "maxLength", w);
	json_write_object_end(w);
	json_write_key(w, "additionalProperties");
	if (f->table->bare)
		field_schema_row(&f->table->rows[0], w);
	else
		field_schema(f->table, w);
}

/* Writes the keywords of one kind of field. */
static void put_kind(const struct field *f, struct json_writer *w)
{
	struct field_bounds b = field_bounds(f);

	switch (f->kind) {
	case FIELD_IS_BOOL:
		break;
	case FIELD_IS_INT32:
	case FIELD_IS_INT64:
	case FIELD_IS_UINT32:
	case FIELD_IS_UINT64:
	case FIELD_IS_REAL:
		put_bounds(&b, "minimum", "maximum", w);
		break;
	case FIELD_IS_STR:
		put_lengths(b, "minLength", "maxLength", w);
		break;
	case FIELD_IS_STRS:
		put_string_item(f, "items", w);
		put_lengths(b, "minItems", "maxItems", w);
		break;
	case FIELD_IS_MAP:
		put_string_item(f, "additionalProperties", w);
		put_lengths(b, "minProperties", "maxProperties", w);
		break;
	case FIELD_IS_ENUM:
		put_names(f, w);
		break;
	case FIELD_IS_OBJECT:
		put_members(f->table, w);
		break;
	case FIELD_IS_OBJECTS:
		json_write_key(w, "items");
		field_schema(f->table, w);
		put_lengths(b, "minItems", "maxItems", w);
		break;
	case FIELD_IS_DICT:
		put_dict(f, w);
		put_lengths(b, "minProperties", "maxProperties", w);
		break;
	case FIELD_IS_JSON:
		break;
	}
}

static void put_default(const struct field *f, struct json_writer *w)
{
	if (f->def.is == FIELD_NO_DEFAULT)
		return;
	json_write_key(w, "default");
	if (f->def.is == FIELD_DEFAULT_STR)
		json_write_text(w, f->def.s);
	else if (f->def.is == FIELD_DEFAULT_REAL)
		json_write_real(w, f->def.d);
	else if (f->kind == FIELD_IS_BOOL)
		json_write_bool(w, f->def.i != 0);
	else if (f->kind == FIELD_IS_ENUM)
		json_write_text(w, f->names[f->def.i]);
	else
		json_write_int(w, f->def.i);
}

void field_schema_row(const struct field *f, struct json_writer *w)
{
	json_write_object(w);
	put_type(f, w);
	if (f->doc)
		json_put_text(w, "description", f->doc);
	put_kind(f, w);
	put_default(f, w);
	if (f->flags & FIELD_SECRET)
		json_put_bool(w, "writeOnly", true);
	json_write_object_end(w);
}

/* Writes properties, required and additionalProperties. */
static void put_members(const struct field_table *t, struct json_writer *w)
{
	bool any = false;

	json_put_object(w, "properties");
	for (size_t i = 0; i < t->n; i++) {
		json_write_key(w, t->rows[i].name);
		field_schema_row(&t->rows[i], w);
		any |= (t->rows[i].flags & FIELD_REQUIRED) != 0;
	}
	json_write_object_end(w);
	if (any) {
		json_put_array(w, "required");
		for (size_t i = 0; i < t->n; i++) {
			if (t->rows[i].flags & FIELD_REQUIRED)
				json_write_text(w, t->rows[i].name);
		}
		json_write_array_end(w);
	}
	json_put_bool(w, "additionalProperties", t->open);
}

void field_schema(const struct field_table *t, struct json_writer *w)
{
	json_write_object(w);
	json_put_text(w, "type", "object");
	if (t->doc)
		json_put_text(w, "description", t->doc);
	put_members(t, w);
	json_write_object_end(w);
}

char *field_schema_text(const struct field_table *t, struct err *e)
{
	autobuf struct buf b = BUF_INIT(SCHEMA_MAX);
	struct json_writer w = json_writer(&b);

	field_schema(t, &w);
	return json_write_done(&w, e) < 0 ? NULL : buf_take(&b);
}
