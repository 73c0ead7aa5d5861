/* Replaces strings of a struct by the flags of their rows. */
#include "json/field/internal.h"

struct changer {
	unsigned flags;
	struct arena *arena;
	field_change_fn change;
	void *data;
	struct err *e;
};

static int change_object(struct changer *k, const struct field_table *t, void *base);

/* Whether there is anything to replace, so that no other list is copied. */
static bool change_wants(const struct changer *k, const struct field_table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct field *f = &t->rows[i];

		if ((f->flags & k->flags) || (f->table && change_wants(k, f->table)))
			return true;
	}
	return false;
}

static int change_str(struct changer *k, const struct field *f, struct str *s)
{
	return s->p ? k->change(k->data, f, s, k->e) : 0;
}

static int change_strs(struct changer *k, const struct field *f, struct field_strs *list)
{
	struct str *p = arena_array(k->arena, list->n, sizeof(*p), k->e);

	if (!p)
		return -1;
	for (size_t i = 0; i < list->n; i++) {
		p[i] = list->p[i];
		if (change_str(k, f, &p[i]) < 0)
			return -1;
	}
	list->p = p;
	return 0;
}

static int change_objects(struct changer *k, const struct field *f, void *base)
{
	char **at = field_at(f, base);
	size_t n = *(const size_t *)((const char *)base + f->count_at);
	char *p;

	if (n == 0)
		return 0;
	p = arena_array(k->arena, n, f->elem, k->e);
	if (!p)
		return -1;
	memcpy(p, *at, n * f->elem);
	*at = p;
	for (size_t i = 0; i < n; i++) {
		if (change_object(k, f->table, p + i * f->elem) < 0)
			return -1;
	}
	return 0;
}

static int change_row(struct changer *k, const struct field *f, void *base)
{
	if (f->table && !change_wants(k, f->table))
		return 0;
	if (f->kind == FIELD_IS_OBJECT)
		return change_object(k, f->table, field_at(f, base));
	if (f->kind == FIELD_IS_OBJECTS || f->kind == FIELD_IS_DICT)
		return change_objects(k, f, base);
	if (!(f->flags & k->flags))
		return 0;
	if (f->kind == FIELD_IS_STR)
		return change_str(k, f, field_at(f, base));
	return f->kind == FIELD_IS_STRS ? change_strs(k, f, field_at(f, base)) : 0;
}

static int change_object(struct changer *k, const struct field_table *t, void *base)
{
	for (size_t i = 0; i < t->n; i++) {
		const bool *has = field_has(&t->rows[i], base);

		if ((!has || *has) && change_row(k, &t->rows[i], base) < 0)
			return -1;
	}
	return 0;
}

int field_change(const struct field_table *t, void *base, unsigned flags, struct arena *a,
		 field_change_fn change, void *data, struct err *e)
{
	struct changer k = { flags, a, change, data, e };

	return change_object(&k, t, base);
}
