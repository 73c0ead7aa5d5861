#include "call/project.h"

#include <stdlib.h>

const char *const op_place_names[OP_PLACES] = {
	[OP_BODY] = "body",
	[OP_PATH] = "path",
	[OP_QUERY] = "query",
	[OP_HEADER] = "header",
};

static const struct op_member *member_of(struct op_members members, const char *name)
{
	for (size_t i = 0; i < members.n; i++) {
		if (strcmp(members.p[i].name, name) == 0)
			return &members.p[i];
	}
	return NULL;
}

static struct field row_of(const struct field *f, const struct op_member *m)
{
	struct field row = *f;

	if (!m)
		return row;
	if (m->as)
		row.name = m->as;
	if (m->doc)
		row.doc = m->doc;
	if (m->def.is != FIELD_NO_DEFAULT)
		row.def = m->def;
	if (m->presence == OP_REQUIRED || m->in == OP_PATH) {
		row.flags |= FIELD_REQUIRED;
		row.def.is = FIELD_NO_DEFAULT;
	} else if (m->presence == OP_OPTIONAL) {
		row.flags &= ~(unsigned)FIELD_REQUIRED;
	}
	if (m->or_query)
		row.flags &= ~(unsigned)FIELD_REQUIRED;
	if (m->table)
		row.table = m->table;
	if (m->min)
		row.min = m->min;
	if (m->max)
		row.max = m->max;
	return row;
}

/* Of what is hidden, only what is not as the operation has it. */
static void shape_place(struct field_table *t, enum op_place place, const struct op *op,
			struct op_members members, struct field **next)
{
	*t = (struct field_table){ .rows = *next, .size = op->request->size };
	for (size_t i = 0; i < op->request->n; i++) {
		const struct field *f = &op->request->rows[i];
		const struct op_member *m = member_of(members, f->name);

		if ((m ? m->in : members.others) == place &&
		    (place != OP_HIDDEN || m->def.is != FIELD_NO_DEFAULT))
			(*next)[t->n++] = row_of(f, m);
	}
	*next += t->n;
}

int op_shape_init(struct op_shape *s, const struct op *op, struct op_members members, struct err *e)
{
	struct field *next = calloc(op->request->n + 1, sizeof(*next));

	*s = (struct op_shape){ .rows = next };
	if (!next)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (size_t place = 0; place < OP_PLACES; place++)
		shape_place(&s->places[place], (enum op_place)place, op, members, &next);
	shape_place(&s->hidden, OP_HIDDEN, op, members, &next);
	for (size_t i = 0; i < members.n; i++) {
		size_t k = 0;

		while (k < op->request->n &&
		       strcmp(op->request->rows[k].name, members.p[i].name) != 0)
			k++;
		if (k == op->request->n)
			return err_set(e, ERR_BUG, "%s has no member %s", op->action,
				       members.p[i].name);
	}
	return 0;
}

void op_members_meant(struct op_members members, const struct field_table *place, struct err *e)
{
	const struct op_member *m = NULL;
	const char *name = e->pointer + 1;

	for (size_t i = 0; i < members.n && !m && *e->pointer; i++)
		m = members.p[i].as && !strcmp(members.p[i].name, name) ? &members.p[i] : NULL;
	for (size_t i = 0; i < place->n; i++) {
		if (!m || strcmp(place->rows[i].name, name) == 0)
			return;
	}
	if (!m)
		return;
	err_set(e, ERR_INVALID, "unknown field \"%s\"; did you mean \"%s\"?", m->name, m->as);
	err_point(e, "/%s", m->name);
}

void op_shape_defaults(const struct op_shape *s, const struct op *op, void *request)
{
	struct err e;

	field_defaults(op->request, request);
	/* it has only defaults, which nothing can be wrong with */
	if (field_decode_members(&s->hidden, NULL, NULL, request, &e) < 0)
		field_defaults(op->request, request);
}

void op_shape_fini(struct op_shape *s)
{
	free(s->rows);
	s->rows = NULL;
}
