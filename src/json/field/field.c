/* Bounds of rows, and checks of tables. */
#include "json/field/internal.h"

struct field_bounds field_bounds(const struct field *f)
{
	struct field_bounds b = { f->min, f->max, true, f->max != 0 };

	if (f->kind == FIELD_IS_INT32 || f->kind == FIELD_IS_INT64 || f->kind == FIELD_IS_REAL) {
		b.has_min = f->min != 0 || f->max != 0;
		if (f->kind == FIELD_IS_INT32 && !b.has_min)
			b.min = INT32_MIN;
		b.has_min |= f->kind == FIELD_IS_INT32;
	}
	if (!b.has_max && (f->kind == FIELD_IS_INT32 || f->kind == FIELD_IS_UINT32)) {
		b.max = f->kind == FIELD_IS_INT32 ? INT32_MAX : UINT32_MAX;
		b.has_max = true;
	}
	return b;
}

struct field_bounds field_item_bounds(const struct field *f)
{
	return (struct field_bounds){ f->item_min, f->item_max, true, f->item_max != 0 };
}

static bool default_fits(const struct field *f)
{
	struct field_bounds b = field_bounds(f);

	switch (f->def.is) {
	case FIELD_NO_DEFAULT:
		return true;
	case FIELD_DEFAULT_INT:
		if (f->kind == FIELD_IS_BOOL)
			return f->def.i == 0 || f->def.i == 1;
		if (f->kind == FIELD_IS_ENUM)
			return f->def.i >= 0 && (uint64_t)f->def.i < f->names_n;
		return f->kind >= FIELD_IS_INT32 && f->kind <= FIELD_IS_UINT64 &&
		       (!b.has_min || f->def.i >= b.min) && (!b.has_max || f->def.i <= b.max);
	case FIELD_DEFAULT_REAL:
		return f->kind == FIELD_IS_REAL;
	case FIELD_DEFAULT_STR:
		return f->kind == FIELD_IS_STR;
	}
	return false;
}

static int check_row(const struct field_table *t, const struct field *f, struct err *e)
{
	struct field_bounds b = field_bounds(f);

	if (!f->name || !f->doc)
		return err_set(e, ERR_BUG, "a row has no name or no doc");
	for (const struct field *other = t->rows; other < f; other++) {
		if (strcmp(other->name, f->name) == 0)
			return err_set(e, ERR_BUG, "%s: stands twice", f->name);
	}
	if (f->in != t->size)
		return err_set(e, ERR_BUG, "%s: is a row of another struct", f->name);
	if (b.has_min && b.has_max && b.min > b.max)
		return err_set(e, ERR_BUG, "%s: min is above max", f->name);
	if ((f->flags & FIELD_REQUIRED) && f->def.is != FIELD_NO_DEFAULT)
		return err_set(e, ERR_BUG, "%s: is required and has a default", f->name);
	if (!default_fits(f))
		return err_set(e, ERR_BUG, "%s: the default is not a value that it takes", f->name);
	if (f->table && f->elem != f->table->size)
		return err_set(e, ERR_BUG, "%s: its table is of another struct", f->name);
	if (f->kind == FIELD_IS_DICT && f->table->bare && f->table->n != 1)
		return err_set(e, ERR_BUG, "%s: a bare table has one row", f->name);
	if ((f->flags & FIELD_SWITCH) && f->kind != FIELD_IS_OBJECT)
		return err_set(e, ERR_BUG, "%s: only an object may be false instead", f->name);
	if ((f->flags & FIELD_PATH) && f->kind != FIELD_IS_STR && f->kind != FIELD_IS_STRS)
		return err_set(e, ERR_BUG, "%s: only a string is a path", f->name);
	if (f->table && field_check(f->table, e) < 0)
		return err_wrap(e, "%s", f->name);
	return 0;
}

int field_check(const struct field_table *t, struct err *e)
{
	if (t->n > FIELD_ROWS_MAX)
		return err_set(e, ERR_BUG, "more than %d rows", FIELD_ROWS_MAX);
	for (size_t i = 0; i < t->n; i++) {
		if (check_row(t, &t->rows[i], e) < 0)
			return -1;
	}
	return 0;
}
