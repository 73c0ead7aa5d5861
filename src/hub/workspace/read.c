/* A part of a file of a workspace's newest revision. */
#include <stdio.h>
#include <stdlib.h>

#include "hub/workspace/internal.h"

struct reading {
	struct work work;
	struct workspace *w; /* busy */
	struct object_id tree;
	char path[WORKSPACE_PATH_MAX + 1];
	uint64_t skip; /* bytes before the part */
	size_t max;
	struct buf out;
	workspace_read_cb on_done;
	void *arg;
};

/* ---- in the pool ----------------------------------------------------------------------------- */

static int read_content(void *arg, struct str bytes, struct err *e)
{
	struct reading *r = arg;
	size_t skip = r->skip < bytes.n ? (size_t)r->skip : bytes.n, room = r->max - r->out.n;

	r->skip -= skip;
	bytes = (struct str){ bytes.p + skip, bytes.n - skip };
	if (buf_add(&r->out, bytes.p, bytes.n < room ? bytes.n : room, e) < 0)
		return -1;
	return r->out.n == r->max;
}

static void read_work(struct work *work)
{
	struct reading *r = (struct reading *)work;
	const struct objects *o = &r->w->all->objects;
	struct object_id at = r->tree;
	struct err *e = &work->err;
	bool found = false;
	char *rest = r->path;

	for (char *name; !found && !e->code && (name = strsep(&rest, "/"));) {
		struct tree dir = { 0 };
		const struct tree_entry *t = tree_load(o, &at, &dir, e) < 0
						   ? NULL
						   : tree_find(&dir, str_of(name));

		found = t && !rest && t->type != TREE_DIR && t->type != TREE_LINK;
		if (found)
			(void)!tree_content(o, t, read_content, r, e);
		else if (t && t->type == TREE_DIR && rest)
			at = t->id;
		else if (!e->code)
			err_set(e, ERR_PATH_NOT_FOUND, "the workspace has no such file");
		tree_fini(&dir);
	}
}

/* ---- on the loop ----------------------------------------------------------------------------- */

static void read_done(struct work *work)
{
	struct reading *r = (struct reading *)work;

	work_end(work);
	r->w->busy--;
	r->on_done(r->arg, buf_str(&r->out), NULL, work->err.code ? &work->err : NULL);
	buf_wipe(&r->out);
	free(r);
}

void workspace_read_start(struct workspace *w, const char *path, uint64_t offset, size_t max,
			  workspace_read_cb on_done, void *arg)
{
	struct reading *r = calloc(1, sizeof(*r));

	if (!r)
		abort(); /* out of memory: no callback could report it */
	*r = (struct reading){ .work = { .all = w->all, .work = read_work, .done = read_done },
			       .w = w,
			       .tree = w->tip.tree,
			       .skip = offset,
			       .max = max,
			       .out = BUF_INIT(max),
			       .on_done = on_done,
			       .arg = arg };
	w->busy++;
	if (snprintf(r->path, sizeof(r->path), "%s", path) >= (int)sizeof(r->path))
		err_set(&r->work.err, ERR_PATH_NOT_FOUND, "the workspace has no such file");
	if (r->work.err.code || workspaces_check(w->all, &r->work.err) < 0)
		r->work.work = work_nothing;
	work_start(&w->all->reads, &r->work);
}
