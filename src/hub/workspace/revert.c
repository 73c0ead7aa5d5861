/* Makes a revision with the files of an earlier one; what came between stays in the history. */
#include <stdio.h>
#include <stdlib.h>

#include "hub/workspace/internal.h"

struct reverting {
	struct work work;
	struct workspace *w; /* busy */
	bool began; /* it is changing by this */
	struct object_id before; /* the tip's tree */
	struct revision next;
	workspace_cb on_done;
	void *arg;
};

static void revert_work(struct work *work)
{
	struct reverting *r = (struct reverting *)work;

	if (checkout_make(&work->all->checkouts, &r->next.tree, &r->before, &work->err) == 0)
		revision_name(&r->next);
}

static void revert_done(struct work *work)
{
	struct reverting *r = (struct reverting *)work;
	bool same = memcmp(&r->next.tree, &r->before, sizeof(r->before)) == 0;

	if (!work->err.code && !same && workspace_advance(r->w, &r->next, &work->err) == 0)
		workspaces_trim(work->all);
	work_end(work);
	r->w->busy--;
	if (r->began)
		r->w->changing = false;
	r->on_done(r->arg, work->err.code ? NULL : r->w, work->err.code ? &work->err : NULL);
	free(r);
}

static int revert_prepare(struct reverting *r, struct str revision, struct str message,
			  struct err *e)
{
	const struct workspace *w = r->w;
	struct revision to;

	if (workspace_check_change(w, message, e) < 0 || revision_find(w, revision, &to, e) < 0)
		return -1;
	r->next = (struct revision){
		.tree = to.tree, .files = to.files, .bytes = to.bytes, .created_ms = clock_unix_ms()
	};
	snprintf(r->next.parent, sizeof(r->next.parent), "%s", w->tip.id);
	if (message.n)
		snprintf(r->next.message, sizeof(r->next.message), "%.*s", STR_ARG(message));
	else
		snprintf(r->next.message, sizeof(r->next.message), "Revert to %.12s", to.id);
	return 0;
}

void workspace_revert_start(struct workspace *w, struct str revision, struct str message,
			    workspace_cb on_done, void *arg)
{
	struct reverting *r = calloc(1, sizeof(*r));

	if (!r)
		abort(); /* out of memory: no callback could report it */
	*r = (struct reverting){ .w = w,
				 .before = w->tip.tree,
				 .next.tree = w->tip.tree,
				 .on_done = on_done,
				 .arg = arg };
	r->work = (struct work){ .all = w->all, .work = work_nothing, .done = revert_done };
	w->busy++;
	if (revert_prepare(r, revision, message, &r->work.err) == 0) {
		r->work.work = revert_work;
		r->began = w->changing = true;
	}
	work_start(&w->all->writes, &r->work);
}
