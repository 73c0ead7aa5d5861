/* Where in an object the rows of a table stand. */
#include <stdio.h>

#include "json/document/pointer.h"
#include "json/field/internal.h"

enum { DEPTH_MAX = 8, POINTER_MAX = 512 };

/* A number stands for all places, too: who asks for the second has no way around a rule about the
 * first. */
bool field_is_place(struct str step)
{
	if (str_is(step, "*"))
		return true;
	for (size_t i = 0; i < step.n; i++) {
		if (step.p[i] < '0' || step.p[i] > '9')
			return false;
	}
	return step.n > 0;
}

/* Whether a value of this row can have something at that step. */
static bool pointer_enters(const struct field *f, struct str step)
{
	switch (f->kind) {
	case FIELD_IS_STRS:
	case FIELD_IS_OBJECTS:
		return field_is_place(step);
	default:
		return f->kind == FIELD_IS_MAP || f->kind == FIELD_IS_DICT;
	}
}

const struct field *field_of_pointer(const struct field_table *t, const char *pointer)
{
	const struct field *f = NULL;

	while (*pointer == '/') {
		struct str step = { pointer + 1, strcspn(pointer + 1, "/") };

		pointer += 1 + step.n;
		if (f && f->kind == FIELD_IS_JSON)
			continue;
		if (f && f->kind != FIELD_IS_OBJECT) {
			if (!pointer_enters(f, step))
				return NULL;
			t = f->table;
			if (!t)
				return *pointer ? NULL : f;
			if (!*pointer)
				return f;
			step = (struct str){ pointer + 1, strcspn(pointer + 1, "/") };
			pointer += 1 + step.n;
		} else if (f) {
			t = f->table;
		}
		f = NULL;
		for (size_t i = 0; i < t->n && !f; i++)
			f = str_is(step, t->rows[i].name) ? &t->rows[i] : NULL;
		if (!f)
			return NULL;
	}
	return *pointer ? NULL : f;
}

static void pointers_below(const struct field_table *t, char *at, size_t n, unsigned depth,
			   field_pointer_fn each, void *data, const char *whole)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct field *f = &t->rows[i];
		size_t more = (size_t)snprintf(at + n, POINTER_MAX - n, "/%s", f->name);

		if (n + more >= POINTER_MAX)
			continue;
		each(data, f, whole);
		if (!f->table || depth == DEPTH_MAX)
			continue;
		if (f->kind == FIELD_IS_OBJECTS)
			more += (size_t)snprintf(at + n + more, POINTER_MAX - n - more, "/*");
		else if (f->kind == FIELD_IS_DICT)
			more += (size_t)snprintf(at + n + more, POINTER_MAX - n - more, "/NAME");
		if (n + more < POINTER_MAX)
			pointers_below(f->table, at, n + more, depth + 1, each, data, whole);
	}
	at[n] = '\0';
}

void field_pointers(const struct field_table *t, field_pointer_fn each, void *data)
{
	char at[POINTER_MAX] = "";

	pointers_below(t, at, 0, 0, each, data, at);
}
