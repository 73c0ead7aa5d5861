#include "hub/workspace/workspaces.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/aside.h"
#include "base/folder.h"
#include "base/log.h"
#include "hub/workspace/internal.h"

enum { END_MAX_MS = 60000 }; /* for the revisions that the end of the hub makes */

/* ---- the table ------------------------------------------------------------------------------- */

static void on_timer_closed(uv_handle_t *handle)
{
	struct workspaces *all = handle->data;

	all->timed = false;
	workspaces_check_stopped(all);
}

void workspaces_check_stopped(struct workspaces *all)
{
	void (*on_stopped)(void *arg) = all->on_stopped;

	if (!on_stopped || all->writes.first || all->reads.first || all->imports)
		return;
	if (all->timed) {
		if (!uv_is_closing((uv_handle_t *)&all->timer))
			uv_close((uv_handle_t *)&all->timer, on_timer_closed);
		return;
	}
	all->on_stopped = NULL;
	on_stopped(all->on_stopped_arg);
}

int workspaces_check(const struct workspaces *all, struct err *e)
{
	if (all->stopping)
		return err_set(e, ERR_CANCELLED, "Holt is shutting down");
	return 0;
}

int workspaces_unknown(struct str name, struct err *e)
{
	return err_set(e, ERR_WORKSPACE_NOT_FOUND, "there is no workspace '%.*s'",
		       STR_CUT(name, SANDBOX_ID_MAX));
}

struct workspace *workspaces_get(struct workspaces *all, struct str owner, struct str name)
{
	struct workspace *w = all->oldest;

	while (w && !(str_is(name, w->name) && str_is(owner, w->owner)))
		w = w->newer;
	return w;
}

struct workspace *workspaces_next(struct workspaces *all, uint64_t after)
{
	struct workspace *w = all->oldest;

	while (w && w->seq <= after)
		w = w->newer;
	return w;
}

struct hub_sandbox *workspace_writer(const struct workspace *w)
{
	return hub_sandboxes_by_seq(w->all->sandboxes, w->sandbox);
}

struct workspace *workspace_of(const struct workspaces *all, const struct hub_sandbox *l)
{
	struct workspace *w = all->oldest;
	struct hub_sandbox_info i;

	if (!w)
		return NULL;
	hub_sandbox_info(l, &i);
	while (w && w->sandbox != i.seq)
		w = w->newer;
	return w;
}

void workspace_info(const struct workspace *w, struct workspace_info *ret)
{
	const struct hub_sandbox *l = workspace_writer(w);
	struct hub_sandbox_info i = { .id = STR_NONE };

	if (l)
		hub_sandbox_info(l, &i);
	*ret = (struct workspace_info){
		.seq = w->seq,
		.name = str_of(w->name),
		.owner = str_of(w->owner),
		.tip = str_of(w->tip.id),
		.created_ms = w->created_ms,
		.changed_ms = w->tip.created_ms,
		.files = w->tip.files,
		.bytes = w->tip.bytes,
		.sandbox = i.id,
	};
}

void workspace_link(struct workspace *w)
{
	struct workspaces *all = w->all;

	w->older = all->newest;
	if (all->newest)
		all->newest->newer = w;
	else
		all->oldest = w;
	all->newest = w;
	all->n++;
}

static void unlink_workspace(struct workspace *w)
{
	struct workspaces *all = w->all;

	if (w->older)
		w->older->newer = w->newer;
	else
		all->oldest = w->newer;
	if (w->newer)
		w->newer->older = w->older;
	else
		all->newest = w->older;
	all->n--;
}

int workspace_save(const struct workspace *w, struct err *e)
{
	const struct store_workspace row = {
		.seq = w->seq,
		.name = str_of(w->name),
		.owner = str_of(w->owner),
		.tip = str_of(w->tip.id),
		.created_ms = w->created_ms,
		.sandbox = w->sandbox,
		.base = str_of(w->base),
	};

	return store_workspace_put(w->all->store, &row, e);
}

/* ---- deleting -------------------------------------------------------------------------------- */

int workspace_delete(struct workspace *w, struct err *e)
{
	struct workspaces *all = w->all;

	if (workspace_writer(w) || w->busy)
		return err_set(e, ERR_WORKSPACE_BUSY, "workspace %s is in use", w->name);
	if (workspaces_check(all, e) < 0 || store_workspace_drop(all->store, w->seq, e) < 0)
		return -1;
	unlink_workspace(w);
	free(w);
	workspaces_trim(all);
	gc_later(all);
	return 0;
}

/* The trees that must stay as folders; owned, *ret_n of them. */
static struct object_id *workspaces_wanted(const struct workspaces *all, size_t *ret_n)
{
	struct object_id *ids = calloc(all->n + 1, sizeof(*ids));
	size_t n = 0;

	if (!ids)
		abort();
	for (const struct workspace *w = all->oldest; w; w = w->newer)
		ids[n++] = w->tip.tree;
	*ret_n = n;
	return ids;
}

struct trimming {
	struct work work;
	struct object_id *wanted;
	size_t n;
};

static void trim_begin(struct work *work)
{
	struct trimming *t = (struct trimming *)work;

	t->wanted = workspaces_wanted(work->all, &t->n);
}

static void trim_work(struct work *work)
{
	struct trimming *t = (struct trimming *)work;

	if (checkouts_trim(&work->all->checkouts, t->wanted, t->n, &work->err) < 0)
		log_warn("%s", work->err.msg);
}

static void trim_done(struct work *work)
{
	struct trimming *t = (struct trimming *)work;

	work_end(work);
	free(t->wanted);
	free(t);
}

void workspaces_trim(struct workspaces *all)
{
	struct trimming *t = calloc(1, sizeof(*t));

	if (!t)
		abort();
	t->work = (struct work){
		.all = all, .begin = trim_begin, .work = trim_work, .done = trim_done
	};
	work_start(&all->writes, &t->work);
}

/* ---- from the hub's start to its end --------------------------------------------------------- */

static int read_workspace(void *arg, const struct store_workspace *row, struct err *e)
{
	struct workspaces *all = arg;
	struct workspace *w = calloc(1, sizeof(*w));

	if (!w)
		return err_set(e, ERR_LIMIT, "out of memory");
	*w = (struct workspace){
		.all = all, .seq = row->seq, .created_ms = row->created_ms, .sandbox = row->sandbox
	};
	snprintf(w->name, sizeof(w->name), "%.*s", STR_ARG(row->name));
	snprintf(w->owner, sizeof(w->owner), "%.*s", STR_ARG(row->owner));
	snprintf(w->base, sizeof(w->base), "%.*s", STR_ARG(row->base));
	workspace_link(w);
	return 0;
}

static int workspaces_load(struct workspaces *all, struct err *e)
{
	if (store_workspaces(all->store, read_workspace, all, e) < 0 ||
	    store_workspace_last(all->store, &all->last_seq, e) < 0)
		return -1;
	for (struct workspace *w = all->oldest; w; w = w->newer) {
		if (revision_load_tip(w, e) < 0)
			return err_wrap(e, "workspace %s", w->name);
	}
	return 0;
}

/* A registry that never had a workspace is another one than that of these objects: nothing in it
 * needs them, and gc.c would remove them. */
static int set_aside(struct workspaces *all, struct err *e)
{
	autofolder struct folder f = folder_at(all->objects.dir, ".");
	int more = all->last_seq ? 0 : folder_next(&f);

	if (more <= 0)
		return more == 0 ? 0 : err_sys(e, f.errnum, "list the objects of workspaces");
	objects_close(&all->objects);
	if (move_aside(all->dir, "objects", all->dir, "lost") < 0)
		return err_sys(e, errno, "move the objects of workspaces aside");
	log_warn("the registry has no workspace: the files of those of another one were moved to "
		 "workspaces/lost in the data folder");
	return objects_open(&all->objects, all->dir, e);
}

static bool keeper_holds(void *data, const struct hub_sandbox *l)
{
	return workspace_of(data, l) != NULL;
}

AUTO_DEFINE(workspaces_free, struct workspaces)

struct workspaces *workspaces_new(uv_loop_t *loop, struct store *store,
				  struct hub_sandboxes *sandboxes, const char *folder,
				  struct err *e)
{
	AUTO(workspaces_free) struct workspaces *all = calloc(1, sizeof(*all));

	if (!all || !(all->folder = strdup(folder)))
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	all->loop = loop;
	all->store = store;
	all->sandboxes = sandboxes;
	all->leftovers = true;
	work_queue_init(&all->writes, all);
	work_queue_init(&all->reads, all);
	all->room.workspaces = all->folder;
	all->objects = (struct objects){ .dir = -1, .new = -1 };
	all->checkouts.dir = -1;
	all->dir = folder_open(AT_FDCWD, folder, e);
	if (all->dir < 0 || objects_open(&all->objects, all->dir, e) < 0 ||
	    checkouts_open(&all->checkouts, &all->objects, all->dir, e) < 0 ||
	    workspaces_load(all, e) < 0 || set_aside(all, e) < 0)
		return NULL;
	all->keeper =
		(struct hub_keeper){ .holds = keeper_holds, .save = commit_save, .data = all };
	hub_sandboxes_set_keeper(sandboxes, &all->keeper);
	return take_ptr(all);
}

int workspaces_share(struct workspaces *all, const char *shots, struct err *e)
{
	all->shots = shots ? strdup(shots) : NULL;
	all->room.shots = all->shots;
	return shots && !all->shots ? err_set(e, ERR_LIMIT, "out of memory") : 0;
}

void workspaces_bound(struct workspaces *all, uint64_t bytes)
{
	all->room.max = bytes;
}

const char *workspaces_folder(const struct workspaces *all)
{
	return all->folder;
}

void workspaces_free(struct workspaces *all)
{
	if (!all)
		return;
	while (all->oldest) {
		struct workspace *w = all->oldest;

		all->oldest = w->newer;
		free(w);
	}
	checkouts_close(&all->checkouts);
	objects_close(&all->objects);
	close_fd(&all->dir);
	free(all->folder);
	free(all->shots);
	free(all);
}

static void on_saved_at_end(void *arg, const struct workspace_commit *made, const struct err *err)
{
	(void)arg;
	(void)made;
	if (err)
		log_error("what a sandbox changed in its workspace is lost: %s", err->msg);
}

static void on_end_takes_long(uv_timer_t *t)
{
	struct workspaces *all = t->data;

	log_error("revisions are given up, as the end of the hub takes too long");
	atomic_store(&all->stop, true);
}

/* The work of a commit is queued before this returns, and the last to end calls on_stopped. */
void workspaces_stop(struct workspaces *all, bool leave, void (*on_done)(void *arg), void *arg)
{
	for (struct workspace *w = all->oldest; w && !leave; w = w->newer) {
		if (workspace_writer(w) && hub_sandbox_box(workspace_writer(w)) && !w->changing)
			workspace_commit_start(w, STR_LIT("the hub ended"), on_saved_at_end, NULL);
	}
	all->stopping = true;
	atomic_store(&all->stop_reads, true);
	if (leave)
		atomic_store(&all->stop, true);
	else if (!all->timed && uv_timer_init(all->loop, &all->timer) == 0)
		all->timed = true;
	all->timer.data = all;
	if (all->timed && uv_timer_start(&all->timer, on_end_takes_long, END_MAX_MS, 0) < 0)
		abort();
	all->on_stopped = on_done;
	all->on_stopped_arg = arg;
	workspaces_trim(all); /* so that there is an end to wait for */
}
