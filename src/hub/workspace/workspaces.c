#include "hub/workspace/workspaces.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "hub/workspace/internal.h"

/* ---- the queue of work ----------------------------------------------------------------------- */

static void work_next(struct workspaces *all);

static void in_pool(uv_work_t *pool)
{
	struct workspaces *all = pool->data;

	all->first->work(all->first);
}

static void on_worked(uv_work_t *pool, int status)
{
	struct workspaces *all = pool->data;

	(void)status;
	all->first->done(all->first);
}

static void work_next(struct workspaces *all)
{
	struct work *w = all->first;

	if (!w)
		return;
	if (w->begin)
		w->begin(w);
	if (uv_queue_work(all->loop, &all->pool, in_pool, on_worked) < 0)
		abort();
}

void work_start(struct work *w)
{
	struct workspaces *all = w->all;
	bool idle = !all->first;

	w->next = NULL;
	if (idle)
		all->first = w;
	else
		all->last->next = w;
	all->last = w;
	if (idle)
		work_next(all);
}

void work_again(struct work *w, void (*work)(struct work *w), void (*done)(struct work *w))
{
	w->work = work;
	w->done = done;
	if (uv_queue_work(w->all->loop, &w->all->pool, in_pool, on_worked) < 0)
		abort();
}

void work_nothing(struct work *w)
{
	(void)w;
}

static void check_stopped(struct workspaces *all)
{
	void (*on_stopped)(void *arg) = all->on_stopped;

	if (!on_stopped || all->first)
		return;
	all->on_stopped = NULL;
	on_stopped(all->on_stopped_arg);
}

void work_end(struct work *w)
{
	struct workspaces *all = w->all;

	all->first = w->next;
	if (!all->first)
		all->last = NULL;
	work_next(all);
	check_stopped(all);
}

/* ---- revisions ------------------------------------------------------------------------------- */

void revision_name(struct revision *r)
{
	char text[2048], tree[BLAKE2B_HEX + 1];
	uint8_t hash[BLAKE2B_BYTES];
	int n;

	blake2b_hex(r->tree.b, tree);
	n = snprintf(text, sizeof(text),
		     "holt revision 1\ntree %s\nparent %s\ncreated %" PRId64 "\nsource %s\n\n%s",
		     tree, r->parent, r->created_ms, r->source, r->message);
	blake2b('r', text, (size_t)n, hash);
	blake2b_hex(hash, r->id);
}

static void copy_text(char *to, size_t size, struct str from)
{
	snprintf(to, size, "%.*s", STR_ARG(from));
}

static int read_revision(void *arg, const struct store_revision *row, struct err *e)
{
	struct revision *r = arg;

	if (blake2b_of_hex(row->tree.p, row->tree.n, r->tree.b) < 0 || row->id.n != REVISION_ID)
		return err_set(e, ERR_WORKSPACE, "a revision in the registry is damaged");
	copy_text(r->id, sizeof(r->id), row->id);
	copy_text(r->parent, sizeof(r->parent), row->parent);
	copy_text(r->source, sizeof(r->source), row->source);
	copy_text(r->message, sizeof(r->message), row->message);
	r->files = row->files;
	r->bytes = row->bytes;
	r->created_ms = row->created_ms;
	return 0;
}

int revision_load(struct workspaces *all, struct str id, struct revision *ret, struct err *e)
{
	ret->id[0] = '\0';
	if (id.n == REVISION_ID && store_revisions(all->store, id, read_revision, ret, e) < 0)
		return -1;
	return ret->id[0] ? 0
			  : err_set(e, ERR_WORKSPACE_NOT_FOUND, "there is no revision '%.*s'",
				    STR_CUT(id, REVISION_ID));
}

static int add_revision(struct workspaces *all, const struct revision *r, struct err *e)
{
	char tree[BLAKE2B_HEX + 1];
	const struct store_revision row = {
		.id = str_of(r->id),
		.parent = str_of(r->parent),
		.tree = { tree, BLAKE2B_HEX },
		.files = r->files,
		.bytes = r->bytes,
		.created_ms = r->created_ms,
		.source = str_of(r->source),
		.message = str_of(r->message),
	};

	blake2b_hex(r->tree.b, tree);
	return store_revision_add(all->store, &row, e);
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

/* A transaction of the lifecycle may be open while the hub ends: then both are part of that. */
int workspace_advance(struct workspace *w, const struct revision *r, struct err *e)
{
	struct store *s = w->all->store;
	const struct revision before = w->tip;
	bool own = !store_is_open(s);
	int result = own ? store_begin(s, e) : 0;

	if (result == 0) {
		w->tip = *r;
		result = add_revision(w->all, r, e) < 0 || workspace_save(w, e) < 0 ? -1 : 0;
		if (own && result == 0)
			result = store_commit(s, e);
		else if (own)
			store_rollback(s);
	}
	if (result < 0)
		w->tip = before;
	return result;
}

/* ---- the table ------------------------------------------------------------------------------- */

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

static void link_workspace(struct workspace *w)
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

/* ---- creating -------------------------------------------------------------------------------- */

struct creating {
	struct work work;
	struct workspace *w;
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

static int create_finish(struct workspace *w, struct err *e)
{
	const struct revision first = w->tip;

	if (workspaces_check(w->all, e) < 0)
		return -1;
	if (workspaces_get(w->all, str_of(w->owner), str_of(w->name)))
		return err_set(e, ERR_CONFLICT, "there is a workspace %s already", w->name);
	w->seq = ++w->all->last_seq;
	return workspace_advance(w, &first, e);
}

static void create_done(struct work *work)
{
	struct creating *c = (struct creating *)work;
	struct err *e = &work->err;

	if (!e->code && create_finish(c->w, e) == 0) {
		link_workspace(c->w);
		c->on_done(c->arg, c->w, NULL);
	} else {
		free(c->w);
		c->on_done(c->arg, NULL, e);
	}
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

void workspace_create_start(struct workspaces *all, struct str name, struct str owner,
			    workspace_cb on_done, void *arg)
{
	struct creating *c = calloc(1, sizeof(*c));
	struct workspace *w = calloc(1, sizeof(*w));

	if (!c || !w)
		abort(); /* out of memory: no callback could report it */
	*w = (struct workspace){ .all = all, .created_ms = clock_unix_ms() };
	copy_text(w->name, sizeof(w->name), name);
	copy_text(w->owner, sizeof(w->owner), owner);
	w->tip.created_ms = w->created_ms;
	*c = (struct creating){ .work = { .all = all, .work = create_work, .done = create_done },
				.w = w,
				.on_done = on_done,
				.arg = arg };
	if (check_create(all, name, &c->work.err) < 0)
		c->work.work = work_nothing;
	work_start(&c->work);
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
	return 0;
}

struct object_id *workspaces_wanted(const struct workspaces *all, size_t *ret_n)
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
	work_start(&t->work);
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
	copy_text(w->name, sizeof(w->name), row->name);
	copy_text(w->owner, sizeof(w->owner), row->owner);
	copy_text(w->base, sizeof(w->base), row->base);
	copy_text(w->tip.id, sizeof(w->tip.id), row->tip);
	link_workspace(w);
	return 0;
}

static int load(struct workspaces *all, struct err *e)
{
	char tip[REVISION_ID + 1];

	if (store_workspaces(all->store, read_workspace, all, e) < 0 ||
	    store_workspace_last(all->store, &all->last_seq, e) < 0)
		return -1;
	for (struct workspace *w = all->oldest; w; w = w->newer) {
		memcpy(tip, w->tip.id, sizeof(tip));
		if (revision_load(all, str_of(tip), &w->tip, e) < 0)
			return err_wrap(e, "workspace %s", w->name);
	}
	return 0;
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

	if (!all || !(all->folder = strdup(folder))) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	all->loop = loop;
	all->store = store;
	all->sandboxes = sandboxes;
	all->pool.data = all;
	all->objects = (struct objects){ .dir = -1, .new = -1 };
	all->checkouts.dir = -1;
	all->dir = folder_open(AT_FDCWD, folder, e);
	if (all->dir < 0 || objects_open(&all->objects, all->dir, e) < 0 ||
	    checkouts_open(&all->checkouts, &all->objects, all->dir, e) < 0 || load(all, e) < 0)
		return NULL;
	all->keeper =
		(struct hub_keeper){ .holds = keeper_holds, .save = commit_save, .data = all };
	hub_sandboxes_set_keeper(sandboxes, &all->keeper);
	return take_ptr(all);
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
	free(all);
}

static void on_saved_at_end(void *arg, const struct workspace_commit *made, const struct err *err)
{
	(void)arg;
	(void)made;
	if (err)
		log_error("what a sandbox changed in its workspace is lost: %s", err->msg);
}

/* The work of a commit is queued before this returns, and the last to end calls on_stopped. */
void workspaces_stop(struct workspaces *all, bool leave, void (*on_done)(void *arg), void *arg)
{
	for (struct workspace *w = all->oldest; w && !leave; w = w->newer) {
		if (workspace_writer(w) && !w->changing)
			workspace_commit_start(w, STR_LIT("the hub ended"), on_saved_at_end, NULL);
	}
	all->stopping = true;
	if (leave)
		atomic_store(&all->stop, true);
	all->on_stopped = on_done;
	all->on_stopped_arg = arg;
	workspaces_trim(all); /* so that there is an end to wait for */
}
