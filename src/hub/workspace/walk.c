#include "hub/workspace/walk.h"

enum { PATH_ROOM = (WORKSPACE_DEPTH_MAX + 2) * (WORKSPACE_NAME_MAX + 1) };

void tree_walk_init(struct tree_walk *w, const struct objects *o)
{
	w->o = o;
	w->depth = 0;
	w->path = BUF_INIT(PATH_ROOM);
}

void tree_walk_fini(struct tree_walk *w)
{
	while (w->depth)
		tree_fini(&w->frames[--w->depth].tree);
	buf_fini(&w->path);
}

int tree_walk_enter(struct tree_walk *w, const struct object_id *id, struct err *e)
{
	struct tree_frame *f = &w->frames[w->depth];

	if (w->depth == ARRAY_LEN(w->frames))
		return err_set(e, ERR_WORKSPACE, "the tree of the workspace is too deep");
	*f = (struct tree_frame){ .path_n = w->path.n };
	if (tree_load(w->o, id, &f->tree, e) < 0) {
		tree_fini(&f->tree);
		return -1;
	}
	w->depth++;
	return 0;
}

const struct tree_entry *tree_walk_next(struct tree_walk *w)
{
	struct err ignored = ERR_INIT;

	while (w->depth) {
		struct tree_frame *f = &w->frames[w->depth - 1];
		const struct tree_entry *t;

		w->path.n = f->path_n;
		if (f->next == f->tree.n) {
			tree_fini(&f->tree);
			w->depth--;
			continue;
		}
		t = &f->tree.entries[f->next++];
		/* there is room for the longest path */
		if ((f->path_n && buf_add(&w->path, "/", 1, &ignored) < 0) ||
		    buf_add(&w->path, t->name.p, t->name.n, &ignored) < 0)
			return NULL;
		return t;
	}
	w->path.n = 0;
	return NULL;
}
