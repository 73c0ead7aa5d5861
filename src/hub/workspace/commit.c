/*
 * Makes a revision of what a sandbox has changed: the warden writes the changes as an archive into
 * a pipe, the work pool reads it into objects. If both succeed, the pool makes the new tree and its
 * folder, and the loop writes the row. The sandbox stands still until the archive is written.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "hub/workspace/internal.h"

struct committing {
	struct work work;
	struct workspace *w; /* busy */
	bool began; /* it is changing by this */
	struct hub_sandbox *hs; /* busy; NULL: it did not begin, or an archive is imported */
	int from; /* the archive */
	int archive; /* the same of an import, from its beginning; -1 */
	struct room room;
	bool collected; /* what nobody needs has gone; it is tried once more */
	struct take *take;
	struct object_id base, before; /* trees: what the sandbox began with, and the tip's */
	bool attached; /* the archive is changes to base */
	bool writing, reading; /* under way */
	struct err wrote; /* how that ended */
	struct err full; /* why it was begun anew */
	struct take_result result;
	struct revision next;
	commit_look_fn look; /* NULL: it makes a revision */
	commit_looked_fn on_looked; /* instead of on_done */
	workspace_commit_cb on_done;
	void *arg;
};

static void commit_end(struct committing *c, const struct workspace_commit *made,
		       const struct err *err)
{
	if (c->began)
		c->w->changing = false;
	if ((c->began && !made) || c->w->all->leftovers)
		gc_later(c->w->all);
	c->w->busy--;
	if (c->look)
		c->on_looked(c->arg, err);
	else
		c->on_done(c->arg, made, err);
	if (c->hs)
		hub_sandbox_busy(c->hs, -1);
	take_free(c->take);
	close_fd(&c->from);
	close_fd(&c->archive);
	free(c);
}

static void commit_read(struct work *work);
static void commit_was_read(struct work *work);

static void commit_collected(void *arg, const struct workspaces_gc *gone, const struct err *err)
{
	struct committing *c = arg;

	if (err || !gone->removed) {
		commit_end(c, NULL, &c->full);
		return;
	}
	c->work.work = commit_read;
	c->work.done = commit_was_read;
	work_start(&c->work.all->writes, &c->work);
}

static void commit_fail(struct committing *c, const struct err *err)
{
	struct err e = *err;

	if (e.code == ERR_STORAGE_FULL && !c->collected) {
		struct workspaces *all = c->work.all;

		/* Nothing of it is left, and its turn is over. */
		c->collected = true;
		c->full = e;
		c->wrote = c->work.err = ERR_INIT;
		take_free(take_ptr(c->take));
		close_fd(&c->from);
		work_end(&c->work);
		workspaces_gc_start(all, commit_collected, c);
		return;
	}
	work_end(&c->work);
	commit_end(c, NULL, &e);
}

/* ---- the row --------------------------------------------------------------------------------- */

static void commit_tell(struct committing *c, bool changed)
{
	const struct workspace_commit made = {
		.changed = changed,
		.revision = str_of(c->w->tip.id),
		.files = c->w->tip.files,
		.bytes = c->w->tip.bytes,
		.added_bytes = c->w->all->objects.added.bytes,
		.left_out = c->result.left_out,
		.left_out_names = str_of(c->result.names),
	};

	if (changed)
		workspaces_trim(c->w->all);
	work_end(&c->work);
	commit_end(c, &made, NULL);
}

static void commit_looked(struct committing *c)
{
	work_end(&c->work);
	commit_end(c, NULL, NULL);
}

static void commit_made(struct work *work)
{
	struct committing *c = (struct committing *)work;

	if (work->err.code)
		commit_fail(c, &work->err);
	else if (c->look)
		commit_looked(c);
	else if (memcmp(&c->result.tree, &c->before, sizeof(c->before)) == 0)
		commit_tell(c, false);
	else if (workspace_advance(c->w, &c->next, &work->err) < 0)
		commit_fail(c, &work->err);
	else
		commit_tell(c, true);
}

static void commit_make(struct work *work)
{
	struct committing *c = (struct committing *)work;
	struct workspaces *all = work->all;
	struct err *e = &work->err;

	if (take_tree(c->take, c->attached ? &c->base : NULL, &c->result, e) < 0)
		return;
	if (c->look) {
		(void)!c->look(c->arg, &c->result.tree, e); /* what it failed by is in *e */
		return;
	}
	if (objects_commit(&all->objects, e) < 0)
		return;
	if (memcmp(&c->result.tree, &c->before, sizeof(c->before)) == 0 ||
	    checkout_make(&all->checkouts, &c->result.tree, &c->before, e) < 0)
		return;
	c->next.tree = c->result.tree;
	c->next.files = c->result.count;
	c->next.bytes = c->result.bytes;
	c->next.left_out = c->result.left_out;
	revision_name(&c->next);
}

/* ---- the archive ----------------------------------------------------------------------------- */

/* If one ends early, so does the other; the one that gives the reason counts. */
static void commit_settle(struct committing *c)
{
	if (c->writing || c->reading)
		return;
	if (c->work.err.code && (!c->wrote.code || c->wrote.code == ERR_CANCELLED))
		commit_fail(c, &c->work.err);
	else if (c->wrote.code)
		commit_fail(c, &c->wrote);
	else
		work_again(&c->work, commit_make, commit_made);
}

static void on_written(void *arg, struct sandbox *sb, const struct err *err)
{
	struct committing *c = arg;

	c->writing = false;
	if (err)
		c->wrote = *err;
	else
		c->attached = sandbox_attached(sb);
	commit_settle(c);
}

static void commit_read(struct work *work)
{
	struct committing *c = (struct committing *)work;

	if (!work->err.code && (room_left(&c->room, &work->all->objects.left, &work->err) < 0 ||
				take_read(c->take, c->from, &work->err) < 0))
		close_fd(&c->from); /* so that the writer ends, too */
}

static void commit_was_read(struct work *work)
{
	struct committing *c = (struct committing *)work;

	c->reading = false;
	close_fd(&c->from);
	commit_settle(c);
}

static int commit_take(struct committing *c, const struct take_spec *spec, struct err *e)
{
	if (objects_begin(&c->work.all->objects, e) < 0)
		return -1;
	c->room = c->work.all->room;
	c->take = take_new(spec, e);
	return c->take ? 0 : -1;
}

static int commit_open(struct committing *c, struct err *e)
{
	struct workspaces *all = c->work.all;
	const struct take_spec spec = {
		.objects = &all->objects, .top = "workspace", .changes = true, .stop = &all->stop
	};
	struct sandbox *sb = hub_sandbox_box(c->hs);
	struct revision base;
	int ends[2];

	if (!sb)
		return err_set(e, ERR_CONFLICT, "the sandbox does not run");
	if (revision_load(all, str_of(c->w->base), &base, e) < 0 || commit_take(c, &spec, e) < 0)
		return -1;
	c->base = base.tree;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "make a pipe");
	c->from = ends[0];
	c->writing = true;
	sandbox_write_start(sb, SANDBOX_WRITE_WORKSPACE, ends[1], on_written, c);
	return 0;
}

static void commit_begin(struct work *work)
{
	struct committing *c = (struct committing *)work;

	c->reading = true;
	if (!work->err.code && commit_open(c, &work->err) < 0)
		close_fd(&c->from);
}

/* ---- entry points ---------------------------------------------------------------------------- */

static int check_message(const struct workspace *w, struct str message, struct err *e)
{
	if (workspaces_check(w->all, e) < 0)
		return -1;
	return message.n > REVISION_MESSAGE_MAX
		     ? err_set(e, ERR_INVALID, "message: at most %d bytes", REVISION_MESSAGE_MAX)
		     : 0;
}

static int check_commit(const struct workspace *w, struct str message, struct err *e)
{
	if (check_message(w, message, e) < 0)
		return -1;
	if (!workspace_writer(w))
		return err_set(e, ERR_CONFLICT, "no sandbox writes to workspace %s", w->name);
	if (w->changing)
		return err_set(e, ERR_WORKSPACE_BUSY, "workspace %s is being changed", w->name);
	return 0;
}

int workspace_check_change(const struct workspace *w, struct str message, struct err *e)
{
	if (check_message(w, message, e) < 0)
		return -1;
	return workspace_writer(w) || w->changing
		     ? err_set(e, ERR_WORKSPACE_BUSY, "workspace %s is being changed", w->name)
		     : 0;
}

static void commit_describe(struct committing *c, struct str message)
{
	struct hub_sandbox_info i = { .id = STR_NONE };

	if (c->hs)
		hub_sandbox_info(c->hs, &i);
	snprintf(c->next.parent, sizeof(c->next.parent), "%s", c->w->tip.id);
	snprintf(c->next.source, sizeof(c->next.source), "%.*s", STR_ARG(i.id));
	snprintf(c->next.message, sizeof(c->next.message), "%.*s", STR_ARG(message));
	c->next.created_ms = clock_unix_ms();
}

static struct committing *commit_new(struct workspace *w, workspace_commit_cb on_done, void *arg)
{
	struct committing *c = calloc(1, sizeof(*c));

	if (!c)
		abort(); /* out of memory: no callback could report it */
	*c = (struct committing){
		.w = w, .from = -1, .archive = -1, .on_done = on_done, .arg = arg
	};
	c->work = (struct work){ .all = w->all, .work = work_nothing, .done = commit_was_read };
	w->busy++;
	return c;
}

/* by_end: the sandbox ends, so its state says nothing. */
static void commit_start(struct committing *c, struct str message, bool by_end)
{
	struct workspace *w = c->w;
	struct err *e = &c->work.err;

	c->before = w->tip.tree;
	if (check_commit(w, message, e) == 0 &&
	    (by_end || hub_sandbox_machine(workspace_writer(w), e))) {
		c->work.begin = commit_begin;
		c->work.work = commit_read;
		c->began = w->changing = true;
		c->hs = workspace_writer(w);
		hub_sandbox_busy(c->hs, 1);
		commit_describe(c, message);
	}
	work_start(&w->all->writes, &c->work);
}

void workspace_commit_start(struct workspace *w, struct str message, workspace_commit_cb on_done,
			    void *arg)
{
	commit_start(commit_new(w, on_done, arg), message, false);
}

void commit_look_start(struct workspace *w, commit_look_fn look, commit_looked_fn on_done,
		       void *arg)
{
	struct committing *c = commit_new(w, NULL, arg);

	c->look = look;
	c->on_looked = on_done;
	commit_start(c, STR_LIT(""), false);
}

/* ---- an archive ------------------------------------------------------------------------------ */

static void import_begin(struct work *work)
{
	struct committing *c = (struct committing *)work;
	struct workspaces *all = work->all;
	const struct take_spec spec = { .objects = &all->objects,
					.strict = true,
					.stop = &all->stop_reads };

	c->reading = true;
	if (work->err.code || commit_take(c, &spec, &work->err) < 0)
		return;
	c->from = fcntl(c->archive, F_DUPFD_CLOEXEC, 0);
	if (c->from < 0 || lseek(c->archive, 0, SEEK_SET) < 0)
		err_sys(&work->err, errno, "read the archive");
}

void commit_import_start(struct workspace *w, int fd, struct str message, const struct err *err,
			 workspace_commit_cb on_done, void *arg)
{
	struct committing *c = commit_new(w, on_done, arg);

	c->archive = fd;
	c->before = w->tip.tree;
	if (err) {
		c->work.err = *err;
	} else if (workspace_check_change(w, message, &c->work.err) == 0) {
		c->work.begin = import_begin;
		c->work.work = commit_read;
		c->began = w->changing = true;
		commit_describe(c, message);
	}
	work_start(&w->all->writes, &c->work);
}

/* ---- the end of a sandbox -------------------------------------------------------------------- */

struct saving {
	struct hub_sandbox *hs; /* busy */
	hub_sandbox_cb on_done;
	void *arg;
};

static void on_saved(void *arg, const struct workspace_commit *made, const struct err *err)
{
	struct saving *s = arg;

	if (made)
		hub_sandbox_note_left_out(s->hs, made->left_out, made->left_out_names);
	s->on_done(s->arg, err ? NULL : s->hs, err);
	hub_sandbox_busy(s->hs, -1);
	free(s);
}

void commit_save(void *workspaces, struct hub_sandbox *l, hub_sandbox_cb on_done, void *arg)
{
	struct saving *s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	*s = (struct saving){ l, on_done, arg };
	hub_sandbox_busy(l, 1);
	commit_start(commit_new(workspace_of(workspaces, l), on_saved, s), STR_LIT(""), true);
}
