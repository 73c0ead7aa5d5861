/*
 * Restores an archive into sandboxes, one after another. Each is made from the snapshot's template,
 * and its own init unpacks the archive with the sandbox's rights. A stopped one has its volumes
 * again, into which nothing is unpacked; new ones have none. Until all are complete, they are
 * in the state restoring; if one fails, none stays.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "hub/sandbox/internal.h"
#include "json/document/json.h"

enum { RESTORE_MAX = 64, ENV_MAX = 256 };

struct restoring {
	struct hub_sandboxes *all;
	int file; /* the archive: stays readable when the snapshot is deleted */
	char template[SNAPSHOT_IMAGE_MAX], digest[HASH_HEX + 1];
	uint64_t max;
	struct limits limits;
	char *spec; /* JSON */
	struct json_doc *doc; /* of that */
	struct env_var env[ENV_MAX];
	size_t n_env;
	struct str cwd;
	struct hub_sandbox *children[RESTORE_MAX]; /* references */
	size_t n, done; /* done: that have their files */
	struct sandbox *made[RESTORE_MAX]; /* references; done of them, or one more */
	bool again; /* a stopped one starts */
	enum hub_sandbox_state was; /* of that, */
	struct err was_why; /* and why */
	bool unpacking, uploading; /* under way */
	struct err unpacked, uploaded; /* how that ended */
	size_t undoing;
	struct err err;
	hub_sandbox_fork_cb on_done;
	void *arg;
};

static void next_child(struct restoring *r);

/* ---- the end --------------------------------------------------------------------------------- */

static void snapshot_restore_end(struct restoring *r, const struct err *err)
{
	if (err)
		r->on_done(r->arg, NULL, 0, err);
	else
		r->on_done(r->arg, r->children, r->n, NULL);
	for (size_t i = 0; i < RESTORE_MAX; i++)
		sandbox_unref(r->made[i]);
	for (size_t i = 0; i < r->n; i++)
		hub_sandbox_unref(r->children[i]);
	json_free(r->doc);
	free(r->spec);
	close_fd(&r->file);
	free(r);
}

/* New sandboxes are forgotten; a stopped one stays stopped. */
static void drop_children(struct restoring *r)
{
	struct err ignored = ERR_INIT;

	for (size_t i = 0; i < r->n; i++) {
		if (r->again)
			hub_sandbox_set_state(r->children[i], r->was,
					      r->was_why.code ? &r->was_why : NULL, &ignored);
		else
			hub_sandbox_stillborn(r->children[i]);
	}
}

static void on_undone(void *arg, struct sandbox *sb, const struct err *err)
{
	struct restoring *r = arg;

	if (--r->undoing == 0)
		snapshot_restore_end(r, &r->err);
}

static void undo(struct restoring *r, const struct err *err)
{
	size_t n = 0;

	r->err = *err;
	drop_children(r);
	while (n < RESTORE_MAX && r->made[n])
		n++;
	r->undoing = n + 1;
	for (size_t i = 0; i < n; i++)
		sandbox_destroy_start(r->made[i], on_undone, r);
	on_undone(r, NULL, NULL);
}

/* All of them in one transaction. */
static int bear_all(struct restoring *r, struct err *e)
{
	struct err ignored = ERR_INIT;
	int result = 0;

	if (hub_sandboxes_batch(r->all, e) < 0)
		return -1;
	for (size_t i = 0; result == 0 && i < r->n; i++)
		result = hub_sandbox_bear(r->children[i], r->made[i], e);
	if (hub_sandboxes_batch_end(r->all, result == 0, result == 0 ? e : &ignored) < 0)
		result = -1;
	return result;
}

static void snapshot_restore_finish(struct restoring *r)
{
	struct err e = ERR_INIT;

	r->children[0]->generation += r->again;
	if (bear_all(r, &e) < 0) {
		r->children[0]->generation -= r->again;
		if (r->again)
			hub_sandbox_let_go(r->children[0]);
		undo(r, &e);
		return;
	}
	for (size_t i = 0; i < r->n; i++) {
		if (!r->again) {
			hub_sandbox_replace_old(r->children[i]);
			continue;
		}
		inlet_adopt(r->children[i]);
		network_adopt(r->children[i]);
	}
	snapshot_restore_end(r, NULL);
}

/* ---- the files of one ------------------------------------------------------------------------ */

/* If one ends early, so does the other; the one that gives the reason counts. */
static void settle(struct restoring *r)
{
	if (r->unpacking || r->uploading)
		return;
	if (r->unpacked.code && r->unpacked.code != ERR_CANCELLED) {
		undo(r, &r->unpacked);
	} else if (r->uploaded.code || r->unpacked.code) {
		undo(r, r->uploaded.code ? &r->uploaded : &r->unpacked);
	} else {
		r->done++;
		next_child(r);
	}
}

static void on_unpacked(void *arg, const struct pack_answer *a, const struct err *err)
{
	struct restoring *r = arg;

	r->unpacking = false;
	if (err)
		r->unpacked = *err;
	settle(r);
}

static void on_uploaded(void *arg, const struct err *err)
{
	struct restoring *r = arg;

	r->uploading = false;
	if (err)
		r->uploaded = *err;
	settle(r);
}

/* Each reads from the beginning. */
static int open_again(int file, struct err *e)
{
	char self[64];
	int fd;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", file);
	fd = open(self, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? err_sys(e, errno, "open the snapshot") : fd;
}

static int start_files(struct restoring *r, struct sandbox *sb, struct err *e)
{
	autoclose int file = open_again(r->file, e);
	struct pack_spec spec = { .mode = "unpack", .max = r->max, .with = r->digest, .in = file };
	const struct file_upload_opts opts = {
		.changes = true,
		.pass_mounts = r->children[r->done]->volumes || r->children[r->done]->bound ||
			       r->children[r->done]->modules,
	};
	int ends[2];

	if (file < 0)
		return -1;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "make a pipe");
	spec.out = ends[1];
	r->unpacking = pack_start(r->all, &spec, on_unpacked, r, e) != NULL;
	close(ends[1]);
	if (!r->unpacking) {
		close(ends[0]);
		return -1;
	}
	r->uploading = true;
	file_upload_start(sb, STR_LIT("/"), &opts, ends[0], on_uploaded, r);
	return 0;
}

static void next_child(struct restoring *r);

/* It starts all the same, as nothing else reaches its own files. */
static void tell_gone(struct hub_sandbox *l, size_t volume, const char *why)
{
	const struct volume *v = &l->volumes->v[volume];

	log_warn("sandbox %s starts without its volume %.*s: %s", l->id, STR_ARG(v->host), why);
	hub_sandbox_tell(l, "volume_gone", v->inside);
}

/* Whether a volume was in the way, which is given no more: another kind of file has its name now,
 * say, or a repository there names what it did not. */
static bool gives_up_volume(struct hub_sandbox *l, const struct err *err)
{
	for (size_t i = 0; l->volumes && i < l->volumes->n; i++) {
		if (l->volumes_gone >> i & 1 || !sandbox_mount_failed(l->volumes->v[i].inside, err))
			continue;
		l->volumes_gone |= 1u << i;
		tell_gone(l, i, err->msg);
		return true;
	}
	return false;
}

static void on_made(void *arg, struct sandbox *sb, const struct err *err)
{
	struct restoring *r = arg;
	struct err e = ERR_INIT;

	if (err && r->again && gives_up_volume(r->children[0], err)) {
		next_child(r);
		return;
	}
	if (err) {
		undo(r, err);
		return;
	}
	r->made[r->done] = sandbox_ref(sb);
	if (start_files(r, sb, &e) < 0)
		undo(r, &e);
}

static void next_child(struct restoring *r)
{
	const struct hub_sandbox *l = r->done < r->n ? r->children[r->done] : NULL;
	struct sandbox_mount mounts[VOLUMES_MAX + BOUND_MOUNTS + INLET_MOUNTS];
	struct env_var env[ENV_MAX + BOUND_MAX + BOUND_VARIABLES + INLET_VARIABLES];
	struct sandbox_spec spec = {
		.template = str_of(r->template),
		.limits = r->limits,
		.env = env,
		.n_env = r->n_env,
		.cwd = r->cwd,
		.mounts = mounts,
	};
	struct err e = ERR_INIT;

	if (r->all->stopping) {
		err_set(&e, ERR_CANCELLED, "Holt is shutting down");
		undo(r, &e);
	} else if (!l) {
		snapshot_restore_finish(r);
	} else {
		spec.id = str_of(l->id);
		spec.n_mounts = volumes_mounts(l->volumes, l->volumes_gone, mounts);
		bound_mounts(l->bound, mounts, &spec.n_mounts);
		inlet_mounts(l, mounts, &spec.n_mounts);
		memcpy(env, r->env, r->n_env * sizeof(*env));
		bound_env(l->bound, env, &spec.n_env);
		inlet_env(l, env, &spec.n_env);
		sandbox_create_start(r->all->box, &spec, on_made, r);
	}
}

/* ---- the beginning --------------------------------------------------------------------------- */

static int read_spec(struct restoring *r, const struct snapshot *s, struct err *e)
{
	struct json_iter it;

	r->spec = snapshot_spec_text(s, e);
	r->doc = r->spec ? json_parse(str_of(r->spec), NULL, e) : NULL;
	if (!r->doc)
		return -1;
	r->cwd = json_str(json_get(json_root(r->doc), "cwd"));
	it = json_iter(json_get(json_root(r->doc), "env"));
	while (json_next(&it)) {
		if (r->n_env == ENV_MAX || json_type(it.val) != JSON_STR)
			return err_set(e, ERR_STORE_CORRUPT, "the environment of a snapshot");
		r->env[r->n_env++] = (struct env_var){ it.key, json_str(it.val) };
	}
	return 0;
}

void snapshot_image(const struct snapshot *s, char ret[SNAPSHOT_IMAGE_MAX])
{
	char base[SANDBOX_BASE_MAX];
	struct err ignored = ERR_INIT;

	if (!s->base[0] ||
	    (s->all->box && box_base(s->all->box, str_of(s->template), base, &ignored) == 0 &&
	     strcmp(base, s->base) == 0))
		snprintf(ret, SNAPSHOT_IMAGE_MAX, "%s", s->template);
	else
		snprintf(ret, SNAPSHOT_IMAGE_MAX, "sha256:%s", s->base);
}

static struct restoring *snapshot_restore_begin(struct hub_sandboxes *all,
						hub_sandbox_fork_cb on_done, void *arg)
{
	struct restoring *r = calloc(1, sizeof(*r));

	if (!r)
		abort(); /* out of memory: no callback could report it */
	r->all = all;
	r->file = -1;
	r->on_done = on_done;
	r->arg = arg;
	return r;
}

static int prepare(struct restoring *r, const struct snapshot *s, struct err *e)
{
	if (r->all->stopping || !r->all->box)
		return err_set(e, ERR_CANCELLED, "Holt is shutting down");
	r->limits = s->limits;
	r->max = snapshot_max(&s->limits);
	snprintf(r->digest, sizeof(r->digest), "%s", s->digest);
	snapshot_image(s, r->template);
	r->file = snapshot_open(s, e);
	return r->file < 0 ? -1 : read_spec(r, s, e);
}

static int name_child(struct restoring *r, const struct snapshot *s, struct str id,
		      struct str labels, struct err *e)
{
	const struct sandbox_spec spec = { .env = r->env, .n_env = r->n_env, .cwd = r->cwd };
	struct hub_sandbox *l = hub_sandbox_new_named(r->all, id, str_of(s->owner), e);

	if (!l)
		return -1;
	r->children[r->n++] = hub_sandbox_ref(l);
	snprintf(l->source, sizeof(l->source), "%s", s->id);
	snprintf(l->template, sizeof(l->template), "%s", s->template);
	l->limits = s->limits;
	l->spec = hub_sandbox_spec_text(&spec, NULL, NULL, NULL, e);
	if (!l->spec || hub_sandbox_set_labels(l, labels, e) < 0)
		return -1;
	return hub_sandbox_set_state(l, SANDBOX_RESTORING, NULL, e);
}

static void on_refused(void *arg)
{
	struct restoring *r = arg;

	drop_children(r);
	snapshot_restore_end(r, &r->err);
}

static void on_begin(void *arg)
{
	next_child(arg);
}

void snapshot_restore_start(struct snapshot *s, const struct snapshot_restore *spec,
			    hub_sandbox_fork_cb on_done, void *arg)
{
	struct restoring *r = snapshot_restore_begin(s->all, on_done, arg);
	int failed = prepare(r, s, &r->err) < 0;

	if (!failed && (spec->n < 1 || spec->n > RESTORE_MAX))
		failed = err_set(&r->err, ERR_INVALID, "count: from 1 to %d", RESTORE_MAX) < 0;
	for (size_t i = 0; !failed && i < spec->n; i++)
		failed = name_child(r, s, spec->ids ? spec->ids[i] : STR_NONE, spec->labels,
				    &r->err) < 0;
	hub_sandboxes_later(r->all, failed ? on_refused : on_begin, r);
}

/* ---- a stopped one --------------------------------------------------------------------------- */

static void on_again(void *arg, struct hub_sandbox *const *children, size_t n,
		     const struct err *err)
{
	hub_sandbox_op_end(arg, err);
}

void hub_sandbox_start_again(struct hub_sandbox *l, hub_sandbox_cb on_done, void *arg)
{
	const struct snapshot *s = snapshot_kept(l->all, l);
	struct hub_sandbox_op *op = hub_sandbox_op_new(l->all, l, on_done, arg);
	struct restoring *r = snapshot_restore_begin(l->all, on_again, op);
	const struct err *lost = l->why && l->why->code == ERR_GUEST ? &r->was_why : NULL;
	int failed = 0;

	r->again = true;
	r->was = l->state;
	if (l->why)
		r->was_why = *l->why;
	if (!s)
		failed = err_set(&r->err, ERR_GUEST, "what was kept of sandbox %s is gone", l->id);
	else if (snapshot_is_over(s))
		failed = err_set(&r->err, ERR_SANDBOX_NOT_FOUND,
				 "sandbox %s: the time for which its files were kept is over",
				 l->id);
	if (failed < 0 || budget_check_again(l, &r->err) < 0 ||
	    volumes_check(l->all->roots, l->volumes, &l->volumes_gone, &r->err) < 0 ||
	    prepare(r, s, &r->err) < 0 ||
	    hub_sandbox_set_state(l, SANDBOX_RESTORING, lost, &r->err) < 0) {
		hub_sandboxes_later(r->all, on_refused, r);
		return;
	}
	for (size_t i = 0; l->volumes && i < l->volumes->n; i++) {
		if (l->volumes_gone >> i & 1)
			tell_gone(l, i, "the host has it no more");
	}
	r->children[r->n++] = hub_sandbox_ref(l);
	hub_sandboxes_later(r->all, on_begin, r);
}
