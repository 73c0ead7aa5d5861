/*
 * Forks: the files that an idle sandbox has written become a frozen layer below it and its
 * children; those of a busy one are copied, in a process of its own. Long chains of layers are
 * squashed into one layer in the background.
 *
 * Where layers are plain (struct store), children copy: from an idle sandbox its layer itself,
 * since its init gets no requests until all children are ready; from a busy one the copy that was
 * made while it was frozen. Until the child is started, its chain consists of that one layer.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "box/warden/internal.h"

/* Additional room for a squashed layer, since it holds the skeleton, too. */
#define SKELETON_ROOM (64 * MIB)

/* ---- fork ------------------------------------------------------------------------------------ */

static void chain_copy_frozen(struct chain *to, const struct chain *from)
{
	for (uint32_t i = 0; i < from->n_frozen; i++)
		to->frozen[to->n_frozen++] = layer_ref(from->frozen[i]);
}

static void chain_push(struct chain *c, struct layer *l)
{
	memmove(c->frozen + 1, c->frozen, c->n_frozen * sizeof(c->frozen[0]));
	c->frozen[0] = l;
	c->n_frozen++;
}

static uint64_t chain_bytes(const struct chain *c)
{
	uint64_t used = 0;

	for (uint32_t i = 0; i < c->n_frozen; i++)
		used += c->frozen[i]->bytes;
	return used;
}

/* The part of the disk limit that frozen layers don't use yet; never nothing, so that a full
 * sandbox can still be forked and cleaned up. */
static uint64_t disk_left(const struct chain *c, uint64_t disk)
{
	uint64_t used = warden.store.plain ? 0 : chain_bytes(c);

	return used + MIB < disk ? disk - used : MIB;
}

static int clone_mounts(struct sandbox *to, const struct sandbox *from, struct err *e)
{
	for (uint32_t i = 0; i < from->n_mounts; i++) {
		struct mount_spec *m = &to->mounts[to->n_mounts++];

		m->host = strdup(from->mounts[i].host);
		m->guest = strdup(from->mounts[i].guest);
		m->writable = from->mounts[i].writable;
		m->all = from->mounts[i].all;
		m->own = from->mounts[i].own;
		m->state = from->mounts[i].state;
		m->project = PROJECT_INIT;
		m->size = from->mounts[i].size;
		if (!m->host || !m->guest)
			return err_set(e, ERR_LIMIT, "out of memory");
	}
	return 0;
}

/* One child of a fork, not started yet: no request waits for it. */
static struct sandbox *new_child(const struct sandbox *source, struct err *e)
{
	struct sandbox *b = sandbox_new(e);

	if (!b)
		return NULL;
	b->limits = source->limits;
	share_ids(b, source);
	if (clone_mounts(b, source, e) == 0)
		return b;
	sandbox_abandon(b);
	return NULL;
}

/* The child gets the frozen layers of base, and a writable layer of its own. *child may have been
 * made before. */
static int make_child(struct request *r, const struct sandbox *source, const struct chain *base,
		      struct sandbox **child, struct err *e)
{
	struct sandbox *b = *child ? *child : new_child(source, e);

	if (!b)
		return -1;
	*child = b;
	b->request = r;
	chain_copy_frozen(&b->chain, base);
	return sandbox_start(b, disk_left(base, b->limits.disk), e);
}

static int make_children(struct request *r, const struct sandbox *source, const struct chain *base,
			 struct err *e)
{
	for (uint32_t i = 0; i < r->wanted; i++) {
		if (make_child(r, source, base, &r->sandboxes[i], e) < 0) {
			r->sandboxes[i] = NULL;
			drop_request_sandboxes(r);
			return -1;
		}
	}
	return 0;
}

int freeze_layer(struct sandbox *b, struct layer *between, struct err *e)
{
	struct chain next = { 0 };
	struct layer *frozen = b->chain.upper;
	autoclose int root = -1;

	if (b->chain.n_frozen + 2 >= CHAIN_MAX)
		return err_set(e, ERR_LIMIT, "forked more often than its layers could be squashed");
	frozen->bytes = store_layer_used(frozen);
	next.set_ids = b->chain.set_ids;
	chain_copy_frozen(&next, &b->chain);
	chain_push(&next, layer_ref(frozen));
	if (between)
		chain_push(&next, layer_ref(between));
	next.upper = store_layer_new(&warden.store, disk_left(&next, b->limits.disk), e);
	root = next.upper ? store_overlay(&warden.store, &next, e) : -1;
	if (root < 0 || store_reroot(&warden.store, &warden.host, b->pidfd, root, e) < 0) {
		chain_fini(&next);
		return -1;
	}
	store_forget_root(frozen);
	chain_fini(&b->chain);
	b->chain = next;
	return 0;
}

static int fork_idle(struct request *r, struct sandbox *source, struct err *e)
{
	const struct chain own = { .frozen = { source->chain.upper },
				   .n_frozen = 1 }; /* borrowed */

	if (warden.store.plain)
		return make_children(r, source, &own, e);
	return freeze_layer(source, NULL, e) < 0 ? -1 : make_children(r, source, &source->chain, e);
}

struct job *new_job(struct err *e)
{
	for (int i = 0; i < JOBS_MAX; i++) {
		if (!warden.jobs[i].pid) {
			warden.jobs[i] = (struct job){ .pidfd = -1 };
			return &warden.jobs[i];
		}
	}
	err_set(e, ERR_LIMIT, "too many copies under way");
	return NULL;
}

int job_started(struct job *j, pid_t pid, struct err *e)
{
	if (pid < 0)
		return err_sys(e, errno, "start a process");
	j->pid = pid;
	j->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (j->pidfd >= 0 && watch(j->pidfd, j, TAG_JOB) == 0)
		return 0;
	err_sys(e, errno, "watch a process");
	/* Its end would not be noticed, and the job would keep what it holds. */
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	close_fd(&j->pidfd);
	j->pid = 0;
	return -1;
}

/* The memory of the files that it writes is counted in that group. If there is no more memory, this
 * process is killed. */
static int enter_lent(int group)
{
	autoclose int score = spawn_raise_oom(warden.host.proc, 1000, false);

	if (score < 0)
		return -1;
	return group < 0 || write(group, "0", 1) == 1 ? 0 : -1;
}

/* Starts a process that copies one open directory into another, and takes over both. group: from
 * cgroup_lend(). */
static int start_copy(struct job *j, int from, int to, int group, struct err *e)
{
	pid_t pid = from < 0 || to < 0 ? -1 : fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit((enter_lent(group) < 0 ? errno : copy_tree(from, to)) & 0xff);
	}
	if (from >= 0)
		close(from);
	if (to >= 0)
		close(to);
	return job_started(j, pid, e);
}

void thaw(const struct sandbox *b)
{
	struct err e = ERR_INIT;

	if (cgroup_freeze(&warden.cgroups, slot_of(b), false, &e) < 0)
		log_error("a frozen sandbox could not be thawed: %s", e.msg);
}

int sandbox_pause(const struct hub_message *in, struct err *e)
{
	const struct wm_pause *m = in->p;
	const struct wm_head done = { WM_PAUSED, m->h.seq };
	struct sandbox *b = find_awake(m->key, e);

	if (!b || sandbox_freeze(b, m->paused != 0, e) < 0)
		return -1;
	yield_paused(b, m->paused != 0);
	b->paused = m->paused != 0;
	send_hub(&done, sizeof(done), NULL, 0);
	return 0;
}

/* Freezes the source (unless its init has stopped its processes, or it is paused), and starts to
 * copy its changed files. */
static int copy_busy(struct job *j, bool freeze, int group, struct err *e)
{
	struct sandbox *source = j->source;
	int top;

	j->frozen = freeze && !source->paused;
	if (j->frozen && sandbox_freeze(source, true, e) < 0)
		return -1;
	top = store_layer_open(source->chain.upper);
	if (start_copy(j, top, store_layer_open(j->out), group, e) == 0)
		return 0;
	if (j->frozen)
		thaw(source);
	return -1;
}

/* Copies the files of a running sandbox, which then continues; the children are made later. The
 * copy's memory is charged to the first child. */
static int fork_busy(struct request *r, struct sandbox *source, bool freeze, struct err *e)
{
	struct job *j = new_job(e);
	struct sandbox *first = j ? new_child(source, e) : NULL;
	autoclose int group = -1;

	if (!first)
		return -1;
	j->source = source;
	j->request = r;
	j->out = store_layer_new(&warden.store, source->limits.disk, e);
	if (j->out &&
	    cgroup_lend(&warden.cgroups, slot_of(first), &first->limits, &group, e) == 0 &&
	    copy_busy(j, freeze, group, e) == 0) {
		r->sandboxes[0] = first;
		return 0;
	}
	layer_unref(j->out);
	return sandbox_abandon(first);
}

static void copied_for_fork(struct job *j, int errnum)
{
	struct chain base = { 0 };
	struct err e = ERR_INIT;
	struct request *r = j->request;
	int failed;

	if (j->source && j->frozen && !j->source->paused)
		thaw(j->source);
	if (r->forsaken) {
		layer_unref(j->out);
		sandbox_abandon(r->sandboxes[0]);
		free(r);
		return;
	}
	if (!j->source || j->source->state != SANDBOX_LIVE) {
		err_set(&e, ERR_SANDBOX_NOT_FOUND, "the source ended while it was forked");
		failed = -1;
	} else {
		failed = errnum == ENAMETOOLONG ? err_set(&e, ERR_TREE_DEEP,
							  "too many directories inside each "
							  "other in its files")
		       : errnum			? err_sys(&e, errnum, "copy the changed files")
						: 0;
	}
	if (failed) {
		sandbox_abandon(r->sandboxes[0]);
	} else {
		chain_copy_frozen(&base, &j->source->chain);
		j->out->bytes = store_layer_used(j->out);
		chain_push(&base, layer_ref(j->out));
		failed = make_children(r, j->source, &base, &e);
		chain_fini(&base);
	}
	layer_unref(j->out);
	if (failed) {
		send_failed(r->seq, &e);
		free(r);
	}
}

/* ---- squashing ------------------------------------------------------------------------------- */

static bool squash_running(const struct layer *newest)
{
	for (int i = 0; i < JOBS_MAX; i++) {
		const struct job *j = &warden.jobs[i];

		if (j->pid && j->squashed.n_frozen && j->squashed.frozen[0] == newest)
			return true;
	}
	return false;
}

/* Copies the merged view of more than CHAIN_SQUASH layers into one layer. Sandboxes that use them
 * continue to; their next fork, and all later children, use the one layer. */
static void squash_if_deep(const struct sandbox *b)
{
	struct err e = ERR_INIT;
	struct job *j;
	int root;

	if (b->chain.n_frozen <= CHAIN_SQUASH || squash_running(b->chain.frozen[0]))
		return;
	if (chain_base(&b->chain) || chain_workspace(&b->chain) < b->chain.n_frozen)
		return; /* the copy would hold all of the image or workspace, in memory */
	j = new_job(&e);
	if (!j)
		return;
	chain_copy_frozen(&j->squashed, &b->chain);
	j->out = store_layer_new(&warden.store, b->limits.disk + SKELETON_ROOM, &e);
	root = j->out ? store_overlay(&warden.store, &j->squashed, &e) : -1;
	if (root < 0 || start_copy(j, openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
				   store_layer_open(j->out), -1, &e) < 0) {
		log_warn("layers could not be squashed: %s", e.msg);
		layer_unref(j->out);
		chain_fini(&j->squashed);
	}
	close_fd(&root);
}

/* True if the oldest layers of c are exactly those of `part`. */
static bool stands_on(const struct chain *c, const struct chain *part)
{
	return c->n_frozen >= part->n_frozen &&
	       memcmp(c->frozen + c->n_frozen - part->n_frozen, part->frozen,
		      part->n_frozen * sizeof(part->frozen[0])) == 0;
}

static void replace_oldest(struct chain *c, uint32_t n, struct layer *by)
{
	for (uint32_t i = c->n_frozen - n; i < c->n_frozen; i++)
		layer_unref(c->frozen[i]);
	c->n_frozen -= n;
	c->frozen[c->n_frozen++] = layer_ref(by);
}

static void squashed(struct job *j, int errnum)
{
	if (errnum) {
		log_warn("layers could not be squashed: %s", strerror(errnum));
	} else {
		/* the skeleton, which it contains now, does not count as the sandbox's use of its
		 * disk */
		j->out->bytes = store_layer_used(j->out);
		if (j->out->bytes > chain_bytes(&j->squashed))
			j->out->bytes = chain_bytes(&j->squashed);
		j->out->complete = true;
		for (uint32_t i = 0; i < warden.n_sandboxes; i++) {
			struct sandbox *b = &warden.sandboxes[i];

			if (b->state != SANDBOX_FREE && stands_on(&b->chain, &j->squashed))
				replace_oldest(&b->chain, j->squashed.n_frozen, j->out);
		}
	}
	layer_unref(j->out);
	chain_fini(&j->squashed);
}

/* ---- entry points ---------------------------------------------------------------------------- */

int sandbox_fork(const struct hub_message *in, struct err *e)
{
	const struct wm_fork *m = in->p;
	struct sandbox *source = find_awake(m->key, e);
	struct request *r;
	int failed;

	if (!source)
		return -1;
	if (m->n < 1 || m->n > WIRE_FORK_MAX)
		return err_set(e, ERR_INVALID, "replicas: from 1 to %d", WIRE_FORK_MAX);
	r = new_request(m->h.seq, m->n, e);
	if (!r)
		return -1;
	if (m->how == WM_FORK_IDLE)
		failed = fork_idle(r, source, e) < 0;
	else
		failed = fork_busy(r, source, m->how == WM_FORK_BUSY, e) < 0;
	if (failed) {
		free(r);
		return -1;
	}
	squash_if_deep(source);
	return 0;
}

void job_ended(struct job *j)
{
	int status = 0, errnum;

	if (waitpid(j->pid, &status, WNOHANG) != j->pid)
		return;
	/* otherwise only a lack of memory kills it */
	errnum = WIFEXITED(status) ? WEXITSTATUS(status) : ENOMEM;
	unwatch(&j->pidfd);
	j->pid = 0;
	if (j->request)
		copied_for_fork(j, errnum);
	else if (j->write_seq)
		written(j, errnum);
	else
		squashed(j, errnum);
}

/* frozen: counts only jobs that have frozen it */
static bool has_job(const struct sandbox *b, bool frozen)
{
	for (int i = 0; i < JOBS_MAX; i++) {
		const struct job *j = &warden.jobs[i];

		if (j->pid && j->source == b && (j->frozen || !frozen))
			return true;
	}
	return false;
}

bool is_copied(const struct sandbox *b)
{
	return has_job(b, true);
}

bool is_source(const struct sandbox *b)
{
	return has_job(b, false);
}

void forget_source(const struct sandbox *b)
{
	for (int i = 0; i < JOBS_MAX; i++) {
		if (warden.jobs[i].pid && warden.jobs[i].source == b)
			warden.jobs[i].source = NULL;
	}
}

void forsake_copies(void)
{
	for (int i = 0; i < JOBS_MAX; i++) {
		if (!warden.jobs[i].pid || (!warden.jobs[i].request && !warden.jobs[i].write_seq))
			continue;
		warden.jobs[i].forsaken = true;
		if (warden.jobs[i].request)
			warden.jobs[i].request->forsaken = true;
		kill(warden.jobs[i].pid, SIGKILL); /* job_ended() does the rest */
	}
}
