/* A revision as a tar archive, in short pieces of work: each is some of it, and only when the
 * client has taken what was before. */
#include <stdio.h>
#include <stdlib.h>

#include "box/archive/tar.h"
#include "hub/workspace/internal.h"
#include "hub/workspace/walk.h"

enum { EXPORT_PIECE = 256 << 10 }; /* bytes at once, and at most one piece of a file more */

struct workspace_export {
	struct work work;
	struct workspace *w; /* busy */
	struct revision at;
	struct tree_walk walk;
	bool began, ended;
	struct buf out, piece, list;
	struct str pieces; /* of the file at hand: those that are to come, in list */
	bool in_file;
	uint64_t size, left; /* its bytes; those that are to come */
	bool working, stopped;
	const struct workspace_export_events *events;
	void *arg;
};

/* ---- in the pool ----------------------------------------------------------------------------- */

static int put_zeros(struct workspace_export *x, size_t n, struct err *e)
{
	static const char zeros[TAR_END_BYTES];

	return buf_add(&x->out, zeros, n, e);
}

static int put_head(struct workspace_export *x, const struct tree_entry *t, struct err *e)
{
	char head[TAR_HEAD_MAX], link[WORKSPACE_PATH_MAX + 1] = "";
	struct tar_entry entry = { .type = t->type == TREE_DIR	? TAR_DIRECTORY
					 : t->type == TREE_LINK ? TAR_SYMLINK
								: TAR_FILE,
				   .mode = t->mode,
				   .mtime = t->mtime,
				   .mtime_ns = t->mtime_ns,
				   .path = buf_str(&x->walk.path).p,
				   .link = link };
	size_t n;

	if (t->type == TREE_LINK)
		snprintf(link, sizeof(link), "%.*s", STR_ARG(t->link));
	else if (t->type != TREE_DIR)
		entry.size = t->bytes;
	n = tar_head(&entry, head);
	if (!n)
		return err_set(e, ERR_WORKSPACE, "a path of the workspace is too long for tar");
	return buf_add(&x->out, head, n, e);
}

static int put_content(struct workspace_export *x, struct err *e)
{
	struct tree_piece p;

	if (!tree_list_next(&x->pieces, &p)) {
		x->in_file = false;
		return x->left ? err_set(e, ERR_WORKSPACE, "a file of the workspace is damaged")
			       : put_zeros(x, tar_padding(x->size), e);
	}
	if (objects_get(&x->work.all->objects, OBJECT_PIECE, &p.id, &x->piece, e) < 0)
		return -1;
	if (x->piece.n != p.bytes || p.bytes > x->left)
		return err_set(e, ERR_WORKSPACE, "a file of the workspace is damaged");
	x->left -= p.bytes;
	return buf_add(&x->out, x->piece.p, x->piece.n, e);
}

static int export_step(struct workspace_export *x, struct err *e)
{
	const struct tree_entry *t;

	if (atomic_load(&x->work.all->stop_reads))
		return err_set(e, ERR_CANCELLED, "Holt is shutting down");
	if (x->in_file)
		return put_content(x, e);
	if (!x->began) {
		x->began = true;
		return tree_walk_enter(&x->walk, &x->at.tree, e);
	}
	t = tree_walk_next(&x->walk);
	if (t) {
		if (put_head(x, t, e) < 0)
			return -1;
		if (t->type == TREE_DIR)
			return tree_walk_enter(&x->walk, &t->id, e);
		if (t->type == TREE_LINK)
			return 0;
		x->list.n = 0;
		x->in_file = true;
		x->size = x->left = t->bytes;
		if (tree_list_load(&x->work.all->objects, t, &x->list, e) < 0)
			return -1;
		x->pieces = buf_str(&x->list);
		return 0;
	}
	x->ended = true;
	return put_zeros(x, TAR_END_BYTES, e);
}

static void export_work(struct work *work)
{
	struct workspace_export *x = (struct workspace_export *)work;

	while (!x->ended && x->out.n < EXPORT_PIECE) {
		if (export_step(x, &work->err) < 0)
			return;
	}
}

/* ---- on the loop ----------------------------------------------------------------------------- */

static void export_free(struct workspace_export *x)
{
	x->w->busy--;
	tree_walk_fini(&x->walk);
	buf_fini(&x->out);
	buf_fini(&x->piece);
	buf_fini(&x->list);
	free(x);
}

static void export_done(struct work *work)
{
	struct workspace_export *x = (struct workspace_export *)work;

	work_end(work);
	x->working = false;
	if (x->stopped) {
		export_free(x);
	} else if (work->err.code || !x->out.n) {
		x->events->on_end(x->arg, work->err.code ? &work->err : NULL);
		export_free(x);
	} else {
		x->events->on_bytes(x->arg, buf_str(&x->out));
	}
}

struct workspace_export *workspace_export_new(struct workspace *w, struct str revision,
					      const struct workspace_export_events *events,
					      void *arg, struct err *e)
{
	struct workspace_export *x;
	struct revision at = w->tip;

	if (workspaces_check(w->all, e) < 0 ||
	    (revision.p && revision_find(w, revision, &at, e) < 0))
		return NULL;
	x = calloc(1, sizeof(*x));
	if (!x)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	*x = (struct workspace_export){ .w = w,
					.at = at,
					.out = BUF_INIT(EXPORT_PIECE + 2 * OBJECT_MAX),
					.piece = BUF_INIT(OBJECT_MAX + 1),
					.list = BUF_INIT(OBJECT_MAX + 1),
					.events = events,
					.arg = arg };
	tree_walk_init(&x->walk, &w->all->objects);
	w->busy++;
	return x;
}

void workspace_export_next(struct workspace_export *x)
{
	x->out.n = 0;
	x->working = true;
	x->work = (struct work){ .all = x->w->all, .work = export_work, .done = export_done };
	work_start(&x->w->all->reads, &x->work);
}

void workspace_export_stop(struct workspace_export *x)
{
	x->stopped = true;
	if (!x->working)
		export_free(x);
}
