/* New workspaces: empty ones, and forks, which share the objects and history of another one. */
#include <stdio.h>
#include <stdlib.h>

#include "hub/workspace/internal.h"

struct creating {
	struct work work;
	struct workspace *w; /* not in the table yet */
	struct workspace *of; /* busy; NULL: none */
	struct object_id like; /* its tip's tree */
	workspace_cb on_done;
	void *arg;
};

/* A revision without files. */
static void create_work(struct work *work)
{
	struct creating *c = (struct creating *)work;
	struct workspaces *all = work->all;

	if (objects_begin(&all->objects, &work->err) < 0 ||
	    objects_put(&all->objects, OBJECT_TREE, STR_LIT(""), &c->w->tip.tree, &work->err) < 0 ||
	    objects_commit(&all->objects, &work->err) < 0 ||
	    checkout_make(&all->checkouts, &c->w->tip.tree, NULL, &work->err) < 0)
		return;
	revision_name(&c->w->tip);
}

static void fork_work(struct work *work)
{
	struct creating *c = (struct creating *)work;

	/* of a failure the error tells */
	if (checkout_make(&work->all->checkouts, &c->w->tip.tree, &c->like, &work->err) == 0)
		work->err.code = ERR_NONE;
}

static int create_finish(struct creating *c, struct err *e)
{
	struct workspace *w = c->w;

	if (workspaces_check(w->all, e) < 0)
		return -1;
	if (workspaces_get(w->all, str_of(w->owner), str_of(w->name)))
		return err_set(e, ERR_NAME_TAKEN, "there is a workspace %s already", w->name);
	return workspace_enter(w, c->of, e);
}

static void create_done(struct work *work)
{
	struct creating *c = (struct creating *)work;
	struct err *e = &work->err;

	if (!e->code && create_finish(c, e) == 0) {
		workspace_link(c->w);
		c->on_done(c->arg, c->w, NULL);
	} else {
		free(c->w);
		c->on_done(c->arg, NULL, e);
	}
	if (c->of)
		c->of->busy--;
	work_end(work);
	free(c);
}

static int check_create(const struct workspaces *all, struct str name, struct err *e)
{
	if (workspaces_check(all, e) < 0 || sandbox_id_check(name, e) < 0)
		return -1;
	if (all->n >= WORKSPACES_MAX)
		return err_set(e, ERR_LIMIT, "there are %d workspaces", WORKSPACES_MAX);
	return 0;
}

static struct creating *create_new(struct workspaces *all, struct str name, struct str owner,
				   workspace_cb on_done, void *arg)
{
	struct creating *c = calloc(1, sizeof(*c));
	struct workspace *w = calloc(1, sizeof(*w));

	if (!c || !w)
		abort(); /* out of memory: no callback could report it */
	*w = (struct workspace){ .all = all, .created_ms = clock_unix_ms() };
	snprintf(w->name, sizeof(w->name), "%.*s", STR_ARG(name));
	snprintf(w->owner, sizeof(w->owner), "%.*s", STR_ARG(owner));
	*c = (struct creating){ .work = { .all = all, .work = work_nothing, .done = create_done },
				.w = w,
				.on_done = on_done,
				.arg = arg };
	return c;
}

void workspace_create_start(struct workspaces *all, struct str name, struct str owner,
			    workspace_cb on_done, void *arg)
{
	struct creating *c = create_new(all, name, owner, on_done, arg);

	c->w->tip.created_ms = c->w->created_ms;
	if (check_create(all, name, &c->work.err) == 0)
		c->work.work = create_work;
	work_start(&all->writes, &c->work);
}

void workspace_fork_start(struct workspace *of, struct str revision, struct str name,
			  struct str owner, workspace_cb on_done, void *arg)
{
	struct workspaces *all = of->all;
	struct creating *c = create_new(all, name, owner, on_done, arg);
	struct err *e = &c->work.err;

	c->of = of;
	c->like = of->tip.tree;
	of->busy++;
	c->w->tip = of->tip;
	if (check_create(all, name, e) == 0 &&
	    (!revision.p || revision_find(of, revision, &c->w->tip, e) == 0))
		c->work.work = fork_work;
	work_start(&all->writes, &c->work);
}
