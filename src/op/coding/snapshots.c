/*
 * coding.snapshot_create, .snapshot_list, .snapshot_diff and .snapshot_restore.
 *
 * The sandbox's first process writes the workspace as an archive into a pipe, so that no path of
 * the host is walked for an agent. The work pool reads it into a tree of objects
 * (hub/workspace/shots.h), in which it then looks for what differs:
 *
 *	create	archive → tree → kept
 *	diff	archive → tree → compared
 *	restore	archive → tree → compared → the difference as an archive of changes, written back
 *
 * What is not in a tree is never touched: files with credentials, what programs of the host act on,
 * sockets. A restore that ends in the middle leaves each file old or new, and the next one does the
 * rest.
 *
 * Git inside the sandbox would lose empty directories, times and most modes, and the agent could
 * rewrite its history.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

#include "base/clock.h"
#include "base/hash.h"
#include "coding/path.h"
#include "base/when.h"
#include "hub/workspace/changes.h"
#include "hub/workspace/differ.h"
#include "hub/workspace/shots.h"
#include "hub/workspace/take.h"
#include "op/coding/snapshot.h"
#include "op/ops.h"

enum {
	SHOT_SECONDS = 300,
	SHOT_DAYS = 30,
	SHOT_DAYS_BRIEF = 1, /* of a workspace that ends with its sandbox */
};
#define SHOT_BYTES_MAX (4ull << 30) /* of all files */

struct snapshot_request {
	struct str workspace, name, description, to, path;
};

/* What the conversation knows of a file that is restored. */
struct shot_known {
	struct str path;
	struct hash *hash; /* while its content passes */
	char digest[HASH_HEX + 1]; /* "": it was not restored */
};

/* In the call's arena. */
struct shot_work {
	struct coding_work w; /* first: the two are cast */
	atomic_bool stop;
	bool late;
	bool restoring; /* files are being changed */
	struct shots_of of;
	struct shots shots;
	struct file_transfer *transfer; /* NULL: it has ended */
	int end; /* the pool's, of its pipe */
	bool pooling;
	uv_work_t pool;
	void (*work)(struct shot_work *s, struct err *e); /* in the pool */
	void (*then)(struct shot_work *s); /* on the loop, when all has ended well */
	struct err err, moved; /* how the pool's work, and the transfer, ended */
	struct take_result now; /* the workspace as it is */
	struct shot shot, *all;
	size_t n_all;
	char gone[SHOT_NAME_MAX + 1];
	struct change_tell tell;
	struct shot_known *known;
	size_t n_known;
};

static struct shot_work *shot_of(struct coding_work *w)
{
	return (struct shot_work *)w;
}

/* ---- the end of a call --------------------------------------------------------------------- */

static void shot_free(struct shot_work *s)
{
	for (size_t i = 0; i < s->n_known; i++)
		hash_free(s->known[i].hash);
	shots_close(&s->shots);
	close_fd(&s->end);
	buf_fini(&s->tell.text);
	free(s->all);
}

/* The texts of a result are in the call's arena. */
static void shot_answer(struct shot_work *s, const void *result)
{
	shot_free(s);
	coding_answer(&s->w, result);
}

static void shot_fail(struct shot_work *s, struct err *e)
{
	if (s->late)
		err_set(e, ERR_TIMEOUT, "it took longer than %d seconds", SHOT_SECONDS);
	else if (atomic_load(&s->stop))
		err_set(e, ERR_CANCELLED, "the call was cancelled");
	if (s->restoring)
		err_wrap(e, "some files may be restored, and another restore does the rest");
	shot_free(s);
	coding_fail(&s->w, e);
}

/* ---- work ---------------------------------------------------------------------------------- */

/* When one of both ends early, so does the other: the one that gives the reason counts. */
static void shot_settle(struct shot_work *s)
{
	struct err *e;

	if (s->transfer || s->pooling)
		return;
	e = s->err.code && (!s->moved.code || s->moved.code == ERR_CANCELLED) ? &s->err : &s->moved;
	if (e->code || atomic_load(&s->stop))
		shot_fail(s, e);
	else
		s->then(s);
}

static void shot_in_pool(uv_work_t *pool)
{
	struct shot_work *s = pool->data;

	s->work(s, &s->err);
	close_fd(&s->end);
}

static void shot_on_worked(uv_work_t *pool, int status)
{
	struct shot_work *s = pool->data;

	s->pooling = false;
	shot_settle(s);
}

static void shot_pool(struct shot_work *s, void (*work)(struct shot_work *s, struct err *e),
		      void (*then)(struct shot_work *s))
{
	s->work = work;
	s->then = then;
	s->pool.data = s;
	s->pooling = true;
	if (uv_queue_work(call_loop(s->w.call), &s->pool, shot_in_pool, shot_on_worked) < 0)
		abort();
}

static void shot_on_moved(void *arg, const struct err *err)
{
	struct shot_work *s = arg;

	s->transfer = NULL;
	if (err)
		s->moved = *err;
	shot_settle(s);
}

static void shot_stop(struct shot_work *s)
{
	atomic_store(&s->stop, true);
	if (s->transfer)
		file_transfer_stop(take_ptr(s->transfer));
	shot_settle(s);
}

static void shot_on_cancel(void *data)
{
	shot_stop(data);
}

static void shot_on_late(void *data)
{
	struct shot_work *s = data;

	s->late = true;
	shot_stop(s);
}

/* The pool will read the workspace. */
static int shot_read_start(struct shot_work *s, struct err *e)
{
	struct str names[PROJECT_NAMES_MAX];
	const struct file_archive_opts opts = { .leave_out = names,
						.n_leave_out = box_project_names(names),
						.exact = true };
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "make a pipe");
	s->end = ends[0];
	s->transfer = file_archive_start(s->w.sandbox, STR_LIT(CODING_ROOT), &opts, ends[1],
					 shot_on_moved, s);
	return 0;
}

static int shot_read(struct shot_work *s, struct err *e)
{
	const struct take_spec spec = { .objects = &s->shots.objects,
					.stop = &s->stop,
					.bytes_max = SHOT_BYTES_MAX };
	AUTO(take_free) struct take *t = NULL;

	if (shots_begin(&s->shots, &s->of, e) < 0 || !(t = take_new(&spec, e)))
		return -1;
	return take_read(t, s->end, e) < 0 || take_tree(t, NULL, &s->now, e) < 0 ? -1 : 0;
}

/* ---- the beginning ------------------------------------------------------------------------- */

static void shot_entered(struct coding_work *w);

static void snapshot_run(struct call *c, const void *request)
{
	const struct snapshot_request *q = request;
	struct err e = ERR_INIT;
	struct shot_work *s = arena_alloc(call_arena(c), sizeof(*s), &e);

	if (!s || (q->name.p && shot_name_check(q->name, &e) < 0) ||
	    (q->to.p && shot_name_check(q->to, &e) < 0)) {
		call_fail(c, &e);
		return;
	}
	s->shots = SHOTS_NONE;
	s->end = -1;
	s->tell = (struct change_tell){ .objects = &s->shots.objects,
					.stop = &s->stop,
					.text = BUF_INIT(CHANGE_TEXT_MAX) };
	coding_enter(&s->w, c, q->workspace, shot_entered);
}

/* What an operation reads and does in the pool, and what it answers. */
struct shot_kind {
	bool (*reads)(const struct snapshot_request *q); /* the workspace */
	bool writes; /* it */
	void (*work)(struct shot_work *s, struct err *e);
	void (*then)(struct shot_work *s);
};
static const struct shot_kind *kind_of_call(const struct call *c);

static void shot_turn(struct coding_work *w)
{
	struct shot_work *s = shot_of(w);
	const struct shot_kind *k = kind_of_call(w->call);

	call_on_cancel(w->call, shot_on_cancel, s);
	call_on_quiet(w->call, SHOT_SECONDS * 1000, shot_on_late, s);
	if (k->reads(call_request(w->call)) && shot_read_start(s, &s->err) < 0)
		shot_fail(s, &s->err);
	else
		shot_pool(s, k->work, k->then);
}

static void shot_entered(struct coding_work *w)
{
	struct shot_work *s = shot_of(w);
	struct err e = ERR_INIT;

	s->of = (struct shots_of){ .folder = coding_snapshots(w),
				   .owner = call_owner(w->call),
				   .place = w->files,
				   .stop = &s->stop,
				   .room = coding_room(w) };
	if (!s->of.folder) {
		err_set(&e, ERR_UNSUPPORTED, "snapshots need a data folder, and there is none");
		shot_fail(s, &e);
	} else if (call_reserve(w->call, 4 * CHANGE_TEXT_MAX, &e) < 0) {
		shot_fail(s, &e);
	} else {
		coding_wait_whole(w, kind_of_call(w->call)->writes, shot_turn);
	}
}

static bool reads_always(const struct snapshot_request *q)
{
	return true;
}

static bool reads_never(const struct snapshot_request *q)
{
	return false;
}

/* ---- tables -------------------------------------------------------------------------------- */

#define Q struct snapshot_request
#define NAME_ROW(...)                                                                              \
	FIELD(Q, name, .flags = FIELD_REQUIRED, .min = 1, .max = SHOT_NAME_MAX, __VA_ARGS__)
static const struct field create_fields[] = {
	NAME_ROW(.doc = "Name of the snapshot: letters, digits, '_', '-' and '.'."),
	FIELD(Q, description, .max = SHOT_DESCRIPTION_MAX / 4, .doc = "What the snapshot is for."),
	CODING_WORKSPACE_ROW(Q),
};
static const struct field list_fields[] = { CODING_WORKSPACE_ROW(Q) };
static const struct field diff_fields[] = {
	NAME_ROW(.doc = "Snapshot to compare."),
	FIELD(Q, to, .min = 1, .max = SHOT_NAME_MAX,
	      .doc = "Snapshot to compare with. Default: the current files."),
	FIELD(Q, path, .flags = FIELD_PATH, .min = 1, .max = CODING_PATH_ARG_MAX,
	      .doc = "Only this file, or files below this folder."),
	CODING_WORKSPACE_ROW(Q),
};
static const struct field restore_fields[] = {
	NAME_ROW(.doc = "Name of the snapshot."),
	CODING_WORKSPACE_ROW(Q),
};
#undef Q
static const struct field_table create_table = FIELD_TABLE(struct snapshot_request, create_fields);
static const struct field_table list_table = FIELD_TABLE(struct snapshot_request, list_fields);
static const struct field_table diff_table = FIELD_TABLE(struct snapshot_request, diff_fields);
static const struct field_table restore_table = FIELD_TABLE(struct snapshot_request,
							    restore_fields);

#define S struct coding_snapshot
static const struct field snapshot_fields[] = {
	FIELD(S, name, .flags = FIELD_REQUIRED, .doc = "Name of the snapshot."),
	FIELD(S, description, .doc = "What it is for."),
	FIELD(S, created_at, .flags = FIELD_REQUIRED, .doc = "When it was made, RFC 3339."),
	FIELD(S, expires_at, .flags = FIELD_REQUIRED, .doc = "When it is removed, RFC 3339."),
	FIELD(S, files, .flags = FIELD_REQUIRED, .doc = "Number of files, directories and links."),
	FIELD(S, bytes, .flags = FIELD_REQUIRED, .doc = "Size of its files in bytes."),
	FIELD(S, left_out, .flags = FIELD_REQUIRED, .doc = "Number of files left out."),
	FIELD(S, left_out_names, .doc = "Names of some of the files left out."),
	FIELD(S, gone, .doc = "Name of the oldest snapshot, which was removed to make room."),
};
#undef S
static const struct field_table snapshot_table = FIELD_TABLE(struct coding_snapshot,
							     snapshot_fields);
static const struct field snapshots_fields[] = {
	FIELD_OBJECTS(struct coding_snapshots, snapshots, snapshot_table, .flags = FIELD_REQUIRED,
		      .doc = "The newest first."),
};
static const struct field_table snapshots_table = FIELD_TABLE(struct coding_snapshots,
							      snapshots_fields);

#define C struct coding_changes
static const struct field changes_fields[] = {
	FIELD(C, name, .flags = FIELD_REQUIRED, .doc = "Name of the snapshot."),
	FIELD(C, text, .flags = FIELD_REQUIRED, .doc = "The differences."),
	FIELD(C, changed, .flags = FIELD_REQUIRED,
	      .doc = "Number of changed files, directories and links."),
	FIELD(C, added, .flags = FIELD_REQUIRED,
	      .doc = "Number of added files, directories and links."),
	FIELD(C, removed, .flags = FIELD_REQUIRED,
	      .doc = "Number of removed files, directories and links."),
	FIELD(C, times, .flags = FIELD_REQUIRED,
	      .doc = "Number of files that differ only in their times."),
	FIELD(C, more, .flags = FIELD_REQUIRED, .doc = "The text is not complete."),
};
#undef C
static const struct field_table changes_table = FIELD_TABLE(struct coding_changes, changes_fields);

/* Its texts are in the call's arena. */
static int snapshot_view(struct call *c, const struct shot *shot, struct coding_snapshot *ret,
			 struct err *e)
{
	struct arena *a = call_arena(c);
	char *created = arena_alloc(a, WHEN_MAX, e), *expires = arena_alloc(a, WHEN_MAX, e);
	char *name = arena_dup(a, str_of(shot->name), e);
	char *description = arena_dup(a, str_of(shot->description), e);

	if (!created || !expires || !name || !description)
		return -1;
	when_text(created, shot->created_ms);
	when_text(expires, shot->expires_ms);
	*ret = (struct coding_snapshot){
		.name = str_of(name),
		.description = description[0] ? str_of(description) : STR_NONE,
		.created_at = str_of(created),
		.expires_at = str_of(expires),
		.files = shot->files,
		.bytes = shot->bytes,
		.left_out = shot->left_out,
		.left_out_names = STR_NONE,
		.gone = STR_NONE,
	};
	return 0;
}

static void shot_answer_changes(struct shot_work *s)
{
	const struct snapshot_request *q = call_request(s->w.call);
	struct err e = ERR_INIT;
	struct coding_changes r = { .name = q->name,
				    .changed = s->tell.changed,
				    .added = s->tell.added,
				    .removed = s->tell.removed,
				    .times = s->tell.times,
				    .more = s->tell.more };
	const char *copy = arena_dup(call_arena(s->w.call), buf_str(&s->tell.text), &e);

	r.text = (struct str){ copy, s->tell.text.n };
	if (copy)
		shot_answer(s, &r);
	else
		shot_fail(s, &e);
}

/* ---- coding.snapshot_create ---------------------------------------------------------------- */

static void create_work(struct shot_work *s, struct err *e)
{
	const struct snapshot_request *q = call_request(s->w.call);
	const int64_t days = s->w.lasting ? SHOT_DAYS : SHOT_DAYS_BRIEF;

	if (shots_open(&s->shots, &s->of, e) < 0 || shot_read(s, e) < 0)
		return;
	s->shot = (struct shot){ .tree = s->now.tree,
				 .created_ms = clock_unix_ms(),
				 .files = s->now.count,
				 .bytes = s->now.bytes,
				 .left_out = s->now.left_out };
	s->shot.expires_ms = s->shot.created_ms + days * 86400000;
	snprintf(s->shot.name, sizeof(s->shot.name), "%.*s", STR_ARG(q->name));
	snprintf(s->shot.description, sizeof(s->shot.description), "%.*s", STR_ARG(q->description));
	if (shots_keep(&s->shots, &s->shot, s->gone, e) == 0)
		shots_trim(s->of.folder);
}

static void create_then(struct shot_work *s)
{
	struct coding_snapshot view;
	struct err e = ERR_INIT;

	if (snapshot_view(s->w.call, &s->shot, &view, &e) < 0) {
		shot_fail(s, &e);
		return;
	}
	if (s->now.names[0])
		view.left_out_names = str_of(s->now.names);
	if (s->gone[0])
		view.gone = str_of(s->gone);
	shot_answer(s, &view);
}

const struct op coding_snapshot_create_op = {
	.action = "coding.snapshot_create",
	.doc = "Keeps the files of the workspace as they are, under a name.",
	.effect = OP_WRITE,
	.request = &create_table,
	.result = &snapshot_table,
	.run = snapshot_run,
};

/* ---- coding.snapshot_list ------------------------------------------------------------------ */

static void list_work(struct shot_work *s, struct err *e)
{
	s->all = calloc(SHOTS_MAX, sizeof(*s->all));
	if (!s->all)
		err_set(e, ERR_LIMIT, "out of memory");
	else if (shots_open(&s->shots, &s->of, e) == 0 &&
		 shots_list(&s->shots, s->all, &s->n_all, e) < 0)
		s->n_all = 0;
}

static void list_then(struct shot_work *s)
{
	struct call *c = s->w.call;
	struct err e = ERR_INIT;
	struct coding_snapshot *views = arena_array(call_arena(c), s->n_all + 1, sizeof(*views),
						    &e);
	bool failed = !views;

	for (size_t i = 0; !failed && i < s->n_all; i++)
		failed = snapshot_view(c, &s->all[i], &views[i], &e) < 0;
	if (failed)
		shot_fail(s, &e);
	else
		shot_answer(s, &(struct coding_snapshots){ { views, s->n_all } });
}

const struct op coding_snapshot_list_op = {
	.action = "coding.snapshot_list",
	.doc = "Lists the snapshots of the workspace.",
	.effect = OP_READ,
	.request = &list_table,
	.result = &snapshots_table,
	.run = snapshot_run,
};

/* ---- coding.snapshot_diff ------------------------------------------------------------------ */

static bool diff_reads(const struct snapshot_request *q)
{
	return !q->to.p;
}

/* The path below which changes are told; the workspace itself is none. */
static int diff_below(struct str path, struct buf *to, struct str *ret, struct err *e)
{
	const struct str root = STR_LIT(CODING_ROOT);

	*ret = STR_NONE;
	if (!path.p)
		return 0;
	if (path_read(root, path, CODING_PATH_MAX, to, e) < 0)
		return -1;
	if (str_is(buf_str(to), CODING_ROOT))
		return 0;
	if (!str_starts(buf_str(to), CODING_ROOT "/"))
		return err_set(e, ERR_INVALID, "path: it is not in the workspace");
	*ret = (struct str){ to->p + root.n + 1, to->n - root.n - 1 };
	return 0;
}

static void diff_work(struct shot_work *s, struct err *e)
{
	const struct snapshot_request *q = call_request(s->w.call);
	autobuf struct buf path = BUF_INIT(0);
	struct shot to;

	s->tell.contents = true;
	if (diff_below(q->path, &path, &s->tell.below, e) < 0 ||
	    shots_open(&s->shots, &s->of, e) < 0 || shots_find(&s->shots, q->name, &s->shot, e) < 0)
		return;
	if (q->to.p ? shots_find(&s->shots, q->to, &to, e) < 0 : shot_read(s, e) < 0)
		return;
	if (tree_diff_exact(&s->shots.objects, &s->shot.tree, q->to.p ? &to.tree : &s->now.tree,
			    change_tell, &s->tell, e) < 0)
		return;
	s->tell.below = STR_NONE;
}

const struct op coding_snapshot_diff_op = {
	.action = "coding.snapshot_diff",
	.doc = "Shows the differences between a snapshot and the workspace, or another snapshot.",
	.effect = OP_READ,
	.request = &diff_table,
	.expand = coding_expand,
	.path = coding_spell_path,
	.result = &changes_table,
	.run = snapshot_run,
};

/* ---- coding.snapshot_restore --------------------------------------------------------------- */

static struct shot_known *known_of(struct shot_work *s, struct str path)
{
	size_t lo = 0, hi = s->n_known;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = str_cmp(s->known[mid].path, path);

		if (c == 0)
			return &s->known[mid];
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

/* Without memory for its digest the conversation has to read a file again. */
static void restore_on_content(void *arg, struct str path, struct str bytes, bool ends)
{
	struct shot_known *k = known_of(arg, path);
	struct err none;

	if (!k)
		return;
	if (!k->hash)
		k->hash = hash_new(&none);
	if (!k->hash)
		return;
	hash_add(k->hash, bytes.p, bytes.n);
	if (ends)
		hash_end(k->hash, k->digest);
}

static void restore_write_work(struct shot_work *s, struct err *e)
{
	const struct changes_spec spec = { .objects = &s->shots.objects,
					   .to = s->end,
					   .stop = &s->stop,
					   .on_content = restore_on_content,
					   .arg = s };

	(void)!changes_write(&spec, &s->now.tree, &s->shot.tree, e);
}

static void restore_written(struct shot_work *s)
{
	for (size_t i = 0; i < s->n_known; i++) {
		autobuf struct buf path = BUF_INIT(CODING_PATH_MAX);
		struct marks unmarked = { 0 };
		struct err none;

		if (s->known[i].digest[0] && buf_addf(&path, &none, CODING_ROOT "/") == 0 &&
		    buf_add(&path, s->known[i].path.p, s->known[i].path.n, &none) == 0)
			coding_know(&s->w, buf_str(&path), s->known[i].digest, &unmarked);
	}
	shot_answer_changes(s);
}

static int restore_know(struct shot_work *s, struct err *e)
{
	struct str *paths;

	if (coding_known_all(&s->w, &paths, &s->n_known, e) < 0)
		return -1;
	s->known = arena_array(call_arena(s->w.call), s->n_known + 1, sizeof(*s->known), e);
	if (!s->known) {
		s->n_known = 0;
		return -1;
	}
	for (size_t i = 0; i < s->n_known; i++)
		s->known[i] = (struct shot_known){ .path = paths[i] };
	return 0;
}

/* Starts the restore, whose plan is known. */
static void restore_then(struct shot_work *s)
{
	static const struct file_upload_opts opts = { .exact = true };
	struct err e = ERR_INIT;
	int ends[2];

	if (memcmp(&s->now.tree, &s->shot.tree, sizeof(s->now.tree)) == 0) {
		shot_answer_changes(s);
		return;
	}
	if (restore_know(s, &e) == 0 && pipe2(ends, O_CLOEXEC) < 0)
		err_sys(&e, errno, "make a pipe");
	if (e.code) {
		shot_fail(s, &e);
		return;
	}
	s->restoring = true;
	s->end = ends[1];
	s->transfer = file_upload_start(s->w.sandbox, STR_LIT(CODING_ROOT), &opts, ends[0],
					shot_on_moved, s);
	shot_pool(s, restore_write_work, restore_written);
}

static void restore_work(struct shot_work *s, struct err *e)
{
	const struct snapshot_request *q = call_request(s->w.call);

	if (shots_open(&s->shots, &s->of, e) < 0 ||
	    shots_find(&s->shots, q->name, &s->shot, e) < 0 || shot_read(s, e) < 0 ||
	    tree_diff_exact(&s->shots.objects, &s->now.tree, &s->shot.tree, change_tell, &s->tell,
			    e) < 0)
		return;
}

const struct op coding_snapshot_restore_op = {
	.action = "coding.snapshot_restore",
	.doc = "Restores the files of the workspace to what they were at a snapshot.",
	.effect = OP_WRITE,
	.flags = OP_REPLACES | OP_IDEMPOTENT,
	.request = &restore_table,
	.result = &changes_table,
	.run = snapshot_run,
};

static const struct shot_kind *kind_of_call(const struct call *c)
{
	static const struct {
		const struct op *op;
		struct shot_kind kind;
	} kinds[] = {
		{ &coding_snapshot_create_op, { reads_always, false, create_work, create_then } },
		{ &coding_snapshot_list_op, { reads_never, false, list_work, list_then } },
		{ &coding_snapshot_diff_op, { diff_reads, false, diff_work, shot_answer_changes } },
		{ &coding_snapshot_restore_op, { reads_always, true, restore_work, restore_then } },
	};
	size_t i = 0;

	while (kinds[i].op != call_op(c))
		i++;
	return &kinds[i].kind;
}
