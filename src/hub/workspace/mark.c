#include "hub/workspace/mark.h"

void marker_init(struct marker *m, const struct objects *o)
{
	m->ids = (struct id_set){ .n = 0 };
	tree_walk_init(&m->walk, o);
}

void marker_fini(struct marker *m)
{
	tree_walk_fini(&m->walk);
	id_set_fini(&m->ids);
}

int marker_tree(struct marker *m, const struct object_id *tree, struct err *e)
{
	int fresh = id_set_add(&m->ids, tree, e);

	return fresh <= 0 ? fresh : tree_walk_enter(&m->walk, tree, e);
}

static int mark_piece(void *arg, const struct tree_piece *p, struct err *e)
{
	return id_set_add(arg, &p->id, e) < 0 ? -1 : 0;
}

int marker_step(struct marker *m, struct err *e)
{
	const struct tree_entry *t = tree_walk_next(&m->walk);
	int fresh;

	if (!t)
		return 1;
	if (t->type == TREE_DIR)
		return marker_tree(m, &t->id, e);
	fresh = t->type == TREE_LINK ? 0 : id_set_add(&m->ids, &t->id, e);
	if (fresh <= 0 || t->type != TREE_PIECES)
		return fresh < 0 ? -1 : 0;
	return tree_pieces(m->walk.o, t, mark_piece, &m->ids, e);
}
