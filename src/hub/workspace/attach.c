/* Attaches the tip of a workspace to a sandbox. Its tree is a folder already, unless that was lost:
 * then it is made first. */
#include <stdio.h>
#include <stdlib.h>

#include "hub/workspace/internal.h"

struct attaching {
	struct work work; /* to make the tree */
	struct workspace *w; /* busy, and changing if it writes */
	struct hub_sandbox *hs; /* busy */
	bool writes;
	struct revision tip;
	workspace_cb on_done;
	void *arg;
};

static void attach_end(struct attaching *a, const struct err *err)
{
	a->w->busy--;
	if (a->writes)
		a->w->changing = false;
	a->on_done(a->arg, err ? NULL : a->w, err);
	hub_sandbox_busy(a->hs, -1);
	free(a);
}

static void on_attached(void *arg, struct sandbox *sb, const struct err *err)
{
	struct attaching *a = arg;
	struct hub_sandbox_info i;
	struct err e = ERR_INIT;

	(void)sb;
	if (err || !a->writes) {
		attach_end(a, err);
		return;
	}
	hub_sandbox_info(a->hs, &i);
	a->w->sandbox = i.seq;
	snprintf(a->w->base, sizeof(a->w->base), "%s", a->tip.id);
	if (workspace_save(a->w, &e) < 0) {
		a->w->sandbox = 0;
		err_unsure(&e);
		err_wrap(&e, "the sandbox has a copy, which becomes no revision");
		attach_end(a, &e);
		return;
	}
	hub_sandbox_hold(a->hs);
	attach_end(a, NULL);
}

static void attach_mount(struct attaching *a)
{
	char tree[BLAKE2B_HEX + 1], path[4096];
	struct err e = ERR_INIT;
	struct sandbox *sb = hub_sandbox_sandbox(a->hs, &e);

	blake2b_hex(a->tip.tree.b, tree);
	snprintf(path, sizeof(path), "%s/trees/%s", a->w->all->folder, tree);
	if (sb)
		sandbox_attach_start(sb, path, on_attached, a);
	else
		attach_end(a, &e);
}

static void attach_work(struct work *work)
{
	struct attaching *a = (struct attaching *)work;

	if (!work->err.code &&
	    checkout_make(&work->all->checkouts, &a->tip.tree, NULL, &work->err) == 0)
		work->err.code = ERR_NONE;
}

static void attach_made(struct work *work)
{
	struct attaching *a = (struct attaching *)work;

	work_end(work);
	if (work->err.code)
		attach_end(a, &work->err);
	else
		attach_mount(a);
}

static int check_attach(const struct workspace *w, struct hub_sandbox *l, bool writes,
			struct err *e)
{
	const struct hub_sandbox *writer = workspace_writer(w);
	struct hub_sandbox_info i;

	if (workspaces_check(w->all, e) < 0 || !hub_sandbox_sandbox(l, e))
		return -1;
	if (workspace_of(w->all, l))
		return err_set(e, ERR_CONFLICT, "the sandbox has a workspace already");
	if (!writes)
		return 0;
	if (writer) {
		hub_sandbox_info(writer, &i);
		return err_set(e, ERR_WORKSPACE_BUSY, "sandbox %.*s writes to workspace %s",
			       STR_ARG(i.id), w->name);
	}
	return w->changing
		     ? err_set(e, ERR_WORKSPACE_BUSY, "workspace %s is being changed", w->name)
		     : 0;
}

void workspace_attach_start(struct workspace *w, struct hub_sandbox *l, bool writes,
			    workspace_cb on_done, void *arg)
{
	struct attaching *a = calloc(1, sizeof(*a));
	int failed;

	if (!a)
		abort(); /* out of memory: no callback could report it */
	*a = (struct attaching){ .w = w, .hs = l, .tip = w->tip, .on_done = on_done, .arg = arg };
	a->work = (struct work){ .all = w->all, .work = attach_work, .done = attach_made };
	failed = check_attach(w, l, writes, &a->work.err);
	a->writes = writes && !failed;
	w->busy++;
	if (a->writes)
		w->changing = true;
	hub_sandbox_busy(l, 1);
	if (!failed && checkout_is_there(&w->all->checkouts, &w->tip.tree))
		attach_mount(a);
	else
		work_start(&w->all->writes, &a->work);
}
