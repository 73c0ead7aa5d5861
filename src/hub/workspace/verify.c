/* Reads each object that the revisions of a workspace need once, the newest revision first. */
#include <stdlib.h>

#include "base/arena.h"
#include "hub/workspace/id_set.h"
#include "hub/workspace/internal.h"
#include "hub/workspace/walk.h"
#include "json/document/utf8.h"

enum { VERIFY_STEP_MS = 200, VERIFY_MEMORY_MAX = 1 << 20 };

struct verifying {
	struct work work;
	struct workspace *w; /* busy */
	struct revision at; /* its tree is being read */
	bool any; /* there is a revision to read */
	struct id_set seen;
	struct tree_walk walk;
	struct buf piece;
	struct arena memory;
	struct workspace_damage damages[WORKSPACE_DAMAGES_MAX];
	struct workspace_verified result;
	workspace_verify_cb on_done;
	void *arg;
};

/* ---- in the pool ----------------------------------------------------------------------------- */

/* Notes the damage, unless the object could not be read for another reason. */
static int verify_note(struct verifying *v, struct err *e)
{
	struct workspace_damage *d = &v->damages[v->result.n];
	struct str path = buf_str(&v->walk.path);
	struct err ignored = ERR_INIT;

	if (e->code != ERR_WORKSPACE && e->code != ERR_IO)
		return -1;
	v->result.damaged++;
	if (v->result.n == WORKSPACE_DAMAGES_MAX)
		return 0;
	*d = (struct workspace_damage){
		.number = v->at.number,
		.revision = { arena_dup(&v->memory, str_of(v->at.id), &ignored), REVISION_ID },
		.path = { arena_dup(&v->memory, path, &ignored), path.n },
		.why = { arena_dup(&v->memory, str_of(e->msg), &ignored), strlen(e->msg) },
	};
	if (!d->revision.p || !d->path.p || !d->why.p)
		return 0; /* the first ones are enough */
	d->path_bytes = utf8_valid(d->path) ? STR_NONE : d->path;
	v->result.n++;
	return 0;
}

static int verify_piece(void *arg, const struct tree_piece *p, struct err *e)
{
	struct verifying *v = arg;
	struct err why = ERR_INIT;
	int fresh = id_set_add(&v->seen, &p->id, e);

	if (atomic_load(&v->work.all->stop_reads))
		return err_set(e, ERR_CANCELLED, "Holt is shutting down");
	if (fresh <= 0)
		return fresh;
	v->result.objects++;
	v->result.bytes += p->bytes;
	if (objects_get(&v->work.all->objects, OBJECT_PIECE, &p->id, &v->piece, &why) == 0 &&
	    v->piece.n != p->bytes)
		err_set(&why, ERR_WORKSPACE, "a piece of the file has another length");
	if (!why.code || verify_note(v, &why) == 0)
		return 0;
	*e = why;
	return -1;
}

static int verify_dir(struct verifying *v, const struct object_id *id, struct err *e)
{
	struct err why = ERR_INIT;
	int fresh = id_set_add(&v->seen, id, e);

	if (fresh <= 0)
		return fresh;
	v->result.objects++;
	if (tree_walk_enter(&v->walk, id, &why) == 0 || verify_note(v, &why) == 0)
		return 0;
	*e = why;
	return -1;
}

static int verify_list(struct verifying *v, const struct tree_entry *t, struct err *e)
{
	struct err why = ERR_INIT;
	int fresh = id_set_add(&v->seen, &t->id, e);

	if (fresh <= 0)
		return fresh;
	v->result.objects++;
	if (tree_pieces(&v->work.all->objects, t, verify_piece, v, &why) == 0 ||
	    verify_note(v, &why) == 0)
		return 0;
	*e = why;
	return -1;
}

static int verify_entry(struct verifying *v, const struct tree_entry *t, struct err *e)
{
	const struct tree_piece only = { (uint32_t)t->bytes, t->id };

	switch (t->type) {
	case TREE_DIR:
		return verify_dir(v, &t->id, e);
	case TREE_PIECES:
		return verify_list(v, t, e);
	case TREE_PIECE:
		return verify_piece(v, &only, e);
	default:
		return 0;
	}
}

static void verify_work(struct work *work)
{
	struct verifying *v = (struct verifying *)work;
	uint64_t until = clock_ms() + VERIFY_STEP_MS;
	const struct tree_entry *t;

	while (clock_ms() < until && (t = tree_walk_next(&v->walk))) {
		if (verify_entry(v, t, &work->err) < 0)
			return;
	}
}

/* The top of the next revision. */
static void verify_work_top(struct work *work)
{
	struct verifying *v = (struct verifying *)work;

	v->result.revisions++;
	if (verify_dir(v, &v->at.tree, &work->err) == 0)
		verify_work(work);
}

/* ---- on the loop ----------------------------------------------------------------------------- */

static void verify_begin(struct work *work)
{
	struct verifying *v = (struct verifying *)work;
	struct revision next;

	work->work = v->walk.depth ? verify_work : verify_work_top;
	if (v->walk.depth || !v->result.revisions)
		return;
	if (revision_before(v->w, &v->at, &next, &work->err) < 0) {
		work->work = work_nothing;
		return;
	}
	v->any = next.number != v->at.number;
	work->work = v->any ? verify_work_top : work_nothing;
	v->at = next;
}

static void verify_done(struct work *work)
{
	struct verifying *v = (struct verifying *)work;

	if (!work->err.code && v->any) {
		work_yield(work);
		return;
	}
	v->w->busy--;
	v->result.damages = v->damages;
	v->on_done(v->arg, work->err.code ? NULL : &v->result, work->err.code ? &work->err : NULL);
	work_end(work);
	tree_walk_fini(&v->walk);
	id_set_fini(&v->seen);
	buf_fini(&v->piece);
	arena_fini(&v->memory);
	free(v);
}

void workspace_verify_start(struct workspace *w, workspace_verify_cb on_done, void *arg)
{
	struct verifying *v = calloc(1, sizeof(*v));

	if (!v)
		abort(); /* out of memory: no callback could report it */
	*v = (struct verifying){ .w = w,
				 .at = w->tip,
				 .piece = BUF_INIT(OBJECT_MAX + 1),
				 .on_done = on_done,
				 .arg = arg };
	v->work = (struct work){ .all = w->all, .work = work_nothing, .done = verify_done };
	tree_walk_init(&v->walk, &w->all->objects);
	arena_init(&v->memory, VERIFY_MEMORY_MAX);
	w->busy++;
	if (workspaces_check(w->all, &v->work.err) == 0) {
		v->any = true;
		v->work.begin = verify_begin;
	}
	work_start(&w->all->reads, &v->work);
}
