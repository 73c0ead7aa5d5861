/*
 * Bodies: a sandbox as the warden knows it, from the first layer to the last control group. enum
 * sandbox_state has its states. Pooled sandboxes wait in READY; those of a request go LIVE all at
 * once.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sock.h"
#include "box/warden/internal.h"
#include "box/warden/message.h"

enum { REFILL_RETRY_MS = 1000 };

/* ---- sandboxes
 * ---------------------------------------------------------------------------------- */

uint32_t slot_of(const struct sandbox *b)
{
	return (uint32_t)(b - warden.sandboxes);
}

/* The only place where a state changes: it maintains the counts by state. */
static void set_state(struct sandbox *b, enum sandbox_state state)
{
	static const struct {
		const char *name;
		unsigned from; /* bit mask of states */
	} states[] = {
		[SANDBOX_FREE] = { "free", 1 << SANDBOX_FREE | 1 << SANDBOX_STARTING |
						   1 << SANDBOX_DYING | 1 << SANDBOX_SWEEPING },
		[SANDBOX_STARTING] = { "starting", 1 << SANDBOX_FREE },
		[SANDBOX_READY] = { "ready", 1 << SANDBOX_STARTING },
		[SANDBOX_LIVE] = { "live", 1 << SANDBOX_STARTING | 1 << SANDBOX_READY },
		[SANDBOX_DYING] = { "dying", 1 << SANDBOX_STARTING | 1 << SANDBOX_READY |
						     1 << SANDBOX_LIVE },
		[SANDBOX_SWEEPING] = { "sweeping", 1 << SANDBOX_FREE | 1 << SANDBOX_STARTING |
							   1 << SANDBOX_DYING |
							   1 << SANDBOX_SWEEPING },
	};

	log_debug("sandbox %llu: %s", (unsigned long long)b->key, states[state].name);
	if (!(states[state].from & 1u << b->state))
		log_error("sandbox %llu: %s can't become %s", (unsigned long long)b->key,
			  states[b->state].name, states[state].name);
	warden.n_filling -= b->filling && b->state == SANDBOX_STARTING;
	warden.n_filling += b->filling && state == SANDBOX_STARTING;
	warden.n_sweeping -= b->state == SANDBOX_SWEEPING;
	warden.n_sweeping += state == SANDBOX_SWEEPING;
	warden.n_live -= b->state == SANDBOX_LIVE;
	warden.n_live += state == SANDBOX_LIVE;
	for (uint32_t i = 0; b->state == SANDBOX_READY && i < warden.n_ready; i++) {
		if (warden.ready[i] == b)
			warden.ready[i] = warden.ready[--warden.n_ready];
	}
	if (state == SANDBOX_READY)
		warden.ready[warden.n_ready++] = b;
	if (b->state == SANDBOX_READY || state == SANDBOX_READY)
		send_pool();
	if (state == SANDBOX_FREE)
		warden.free_slots[warden.n_free++] = slot_of(b);
	b->state = state;
}

struct sandbox *sandbox_new(struct err *e)
{
	struct sandbox *b;
	uint32_t slot;

	if (warden.n_sandboxes - warden.n_free >= warden.max_sandboxes) {
		err_set(e, ERR_LIMIT, "there are as many sandboxes as allowed (%u)",
			warden.max_sandboxes);
		return NULL;
	}
	slot = warden.n_free ? warden.free_slots[--warden.n_free] : warden.n_sandboxes++;
	b = &warden.sandboxes[slot];
	/* a key is never used again, and contains its slot */
	*b = (struct sandbox){
		.pidfd = -1, .socket = -1, .net = -1, .key = ++warden.last_key << 16 | slot
	};
	return b;
}

struct sandbox *sandbox_find(uint64_t key)
{
	struct sandbox *b = &warden.sandboxes[key & 0xffff];

	return (key & 0xffff) < warden.n_sandboxes && b->key == key && b->state == SANDBOX_LIVE
		     ? b
		     : NULL;
}

void share_ids(struct sandbox *b, const struct sandbox *source)
{
	b->uid = source->uid;
	b->has_range = source->has_range;
	b->chain.set_ids = source->chain.set_ids;
	if (!warden.host.one_uid && !b->limits.root)
		warden.uid_refs[b->uid - warden.host.uid_base]++;
}

static void drop_ids(struct sandbox *b)
{
	if (b->limits.root)
		range_drop(b);
	else if (!warden.host.one_uid)
		warden.uid_refs[b->uid - warden.host.uid_base]--;
}

/* Each family of forks has a user id of its own, so that the kernel's counters for each user are
 * not shared with strangers. */
static int take_ids(struct sandbox *b, struct err *e)
{
	uint32_t i = 0;

	if (b->limits.root) {
		b->chain.set_ids = true;
		return range_take(b, e);
	}
	b->uid = warden.host.uid_base;
	if (warden.host.one_uid)
		return 0;
	while (i + 1 < warden.host.n_uids && warden.uid_refs[i])
		i++;
	warden.uid_refs[i]++;
	b->uid += i;
	return 0;
}

static void free_mounts(struct sandbox *b)
{
	for (uint32_t i = 0; i < b->n_mounts; i++) {
		struct mount_spec *m = &b->mounts[i];

		if (m->project.since.tv_sec)
			left_start(&m->project);
		seals_forget(&m->project);
		project_release(&m->project);
		free(m->host);
		free(m->guest);
	}
	b->n_mounts = 0;
}

void sandbox_sweep(struct sandbox *b)
{
	const struct wm_head done = { WM_DESTROYED, b->destroy_seq };

	if (!cgroup_remove(&warden.cgroups, slot_of(b))) {
		set_state(b, SANDBOX_SWEEPING);
		return;
	}
	set_state(b, SANDBOX_FREE);
	if (b->answer_destroy)
		send_hub(&done, sizeof(done), NULL, 0);
}

/* Its process is reaped: nothing runs in it any more. */
static void sandbox_end(struct sandbox *b)
{
	unwatch(&b->pidfd);
	unwatch(&b->socket);
	close_fd(&b->net);
	set_yields(b, false); /* its groups may stay for the next sandbox */
	forget_source(b);
	/* When closing, all layers end with the mount namespace of the warden. */
	if (!warden.closing)
		chain_fini(&b->chain);
	free_mounts(b);
	facts_drop(take_ptr(b->facts));
	facts_drop(take_ptr(b->covered));
	free(take_ptr(b->record));
	drop_ids(b);
	sandbox_sweep(b);
}

void sandbox_kill(struct sandbox *b)
{
	struct err e = ERR_INIT;

	if (b->pidfd < 0) { /* asleep */
		set_state(b, SANDBOX_DYING);
		sandbox_end(b);
		return;
	}
	set_yields(b, false); /* dying takes processor time, too */
	/* Frozen processes of a v1 group do not even die. */
	if ((b->paused || is_copied(b)) &&
	    cgroup_freeze(&warden.cgroups, slot_of(b), false, &e) < 0)
		log_error("a frozen sandbox could not be thawed to end it: %s", e.msg);
	b->paused = false;
	syscall(SYS_pidfd_send_signal, b->pidfd, SIGKILL, NULL, 0);
	if (b->state != SANDBOX_DYING)
		set_state(b, SANDBOX_DYING);
}

/* ---- requests -------------------------------------------------------------------------------- */

void drop_request_sandboxes(struct request *r)
{
	for (uint32_t i = 0; i < r->wanted; i++) {
		struct sandbox *b = r->sandboxes[i];

		if (!b)
			continue;
		b->request = NULL;
		sandbox_kill(b);
	}
}

static void fail_request(struct request *r, const struct err *e)
{
	send_failed(r->seq, e);
	drop_request_sandboxes(r);
	free(r);
}

static void complete_request(struct request *r, bool from_pool)
{
	struct wm_created m = { .h = { WM_CREATED, r->seq },
				.n = r->wanted,
				.from_pool = from_pool };
	int fds[WIRE_FORK_MAX];

	for (uint32_t i = 0; i < r->wanted; i++) {
		struct sandbox *b = r->sandboxes[i];

		epoll_ctl(warden.epoll, EPOLL_CTL_DEL, b->socket, NULL);
		fds[i] = b->socket;
		m.keys[i] = b->key;
		b->request = NULL;
		b->made_seq = r->seq;
		set_state(b, SANDBOX_LIVE);
		yield_watch(b);
	}
	send_hub(&m, sizeof(m), fds, r->wanted);
	for (uint32_t i = 0; i < r->wanted && !warden.kept; i++)
		close_fd(&r->sandboxes[i]->socket);
	free(r);
}

static void sandbox_failed(struct sandbox *b, const struct err *e)
{
	struct request *r = b->request;

	if (b->state == SANDBOX_LIVE) {
		wake_failed(b, e);
		return;
	}
	sandbox_kill(b);
	if (r) {
		fail_request(r, e);
	} else {
		log_warn("a sandbox for the pool could not be made: %s", e->msg);
		warden.refill_at = clock_ms() + REFILL_RETRY_MS;
	}
}

static void sandbox_ready(struct sandbox *b)
{
	struct request *r = b->request;
	struct err e = ERR_INIT;

	if (b->state == SANDBOX_LIVE)
		sandbox_awake(b);
	else if (!r)
		set_state(b, SANDBOX_READY);
	else if (++r->ready < r->wanted)
		return;
	else if (seals_complete(r, &e) < 0)
		sandbox_failed(b, &e);
	else
		complete_request(r, false);
}

/* ---- making a sandbox
 * --------------------------------------------------------------------------- */

/* Whether it has that folder of the host; held_from.has. */
static bool sandbox_has(const void *data, const char *path)
{
	const struct sandbox *b = data;

	for (uint32_t i = 0; i < b->n_mounts; i++) {
		size_t n = strlen(b->mounts[i].host);

		if (b->mounts[i].writable && strncmp(path, b->mounts[i].host, n) == 0 &&
		    (path[n] == '/' || !path[n]))
			return true;
	}
	return false;
}

static int open_binds(struct sandbox *b, struct bind *binds, struct err *e)
{
	for (uint32_t i = 0; i < b->n_mounts; i++) {
		struct mount_spec *m = &b->mounts[i];
		bool is_empty = !*m->host;
		const struct host_tree t = {
			.path = m->host,
			.writable = m->writable,
			.own = m->own,
			.state = m->state,
			.project = m->writable && !m->all && !project_is_state(m->host)
					 ? &m->project
					 : NULL,
			.size = m->size,
			.uid = b->uid,
		};

		m->project.of =
			(struct project_of){ .host = m->host, .has = sandbox_has, .data = b };
		binds[i].is_dir = binds[i].is_empty = is_empty;
		binds[i].tree = is_empty ? store_empty_tree(e)
					 : store_host_tree(&warden.host, &t, &binds[i].is_dir, e);
		if (binds[i].tree < 0) {
			if (e->code == ERR_PATH_NOT_FOUND || e->code == ERR_PATH_DENIED)
				e->code = ERR_INVALID; /* the requester's mistake */
			return err_wrap(e, IM_STAGE_MOUNT "%.*s", IM_STAGE_GUEST, m->guest);
		}
		if (m->project.lock >= 0) {
			binds[i].project = &m->project;
			m->project.tree = fcntl(binds[i].tree, F_DUPFD_CLOEXEC, 0);
			if (m->project.tree < 0)
				return err_sys(e, errno, "keep a mount");
		}
		snprintf(binds[i].guest, sizeof(binds[i].guest), "%s", m->guest);
	}
	return 0;
}

/* Files in a writable folder of the host must not get bits that give rights on the host. */
static bool may_set_ids(const struct sandbox *b)
{
	for (uint32_t i = 0; i < b->n_mounts; i++) {
		if (b->mounts[i].writable)
			return false;
	}
	return b->limits.root;
}

static int sandbox_spawn(struct sandbox *b, int socket, struct err *e)
{
	static struct bind binds[WIRE_MOUNTS_MAX];
	autoclose int birthplace = cgroup_birthplace(&warden.cgroups, slot_of(b));
	autoclose int net = b->net < 0 ? net_take() : -1;
	unsigned kind = (b->limits.debug ? SECCOMP_DEBUG : 0) |
			(may_set_ids(b) ? SECCOMP_SET_ID : 0);
	struct spawn sp = {
		.host = &warden.host,
		.store = &warden.store,
		.filter = warden_filter(kind, e),
		.facts = b->facts,
		.slot = slot_of(b),
		.uid = b->uid,
		.root = b->limits.root,
		.set_ids = may_set_ids(b),
		.socket = socket,
		.birthplace = birthplace,
		.net = b->net < 0 ? net : b->net,
		.binds = binds,
		.n_binds = b->n_mounts,
		.of_host = chain_of_host(&b->chain),
		.limits = &b->limits,
		.driver = warden.cgroups.driver,
	};

	for (uint32_t i = 0; i < b->n_mounts; i++)
		binds[i].tree = -1;
	facts_place(b->facts, &sp.cpus);
	b->pid = -1;
	if (sp.filter && open_binds(b, binds, e) == 0)
		b->pid = spawn_start(&sp, &b->pidfd, e);
	for (uint32_t i = 0; i < b->n_mounts; i++)
		close_fd(&binds[i].tree);
	return b->pid < 0 ? -1 : 0;
}

/* Opens the files of its control groups, which exist already. */
static int find_parts(const struct sandbox *b, struct spawn_parts *parts, struct err *e)
{
	int n = cgroup_tasks(&warden.cgroups, slot_of(b), parts->tasks, e);

	if (n < 0)
		return -1;
	parts->n_tasks = (uint32_t)n;
	cgroup_events(&warden.cgroups, slot_of(b), &parts->oom_events, &parts->pids_events);
	return 0;
}

static int make_parts(struct sandbox *b, uint64_t disk, struct spawn_parts *parts, struct err *e)
{
	int old;

	b->chain.upper = store_layer_new(&warden.store, disk, e);
	if (!b->chain.upper ||
	    (b->chain.n_frozen == (chain_base(&b->chain) ? 1u : 0u) &&
	     store_layer_own(&warden.store, b->chain.upper, b->uid, b->limits.root, e) < 0))
		return -1;
	old = cgroup_new(&warden.cgroups, slot_of(b), &b->limits, e);
	if (old < 0 || facts_write(b->facts, e) < 0)
		return -1;
	if (old) /* plus what this one has taken so far, below a millisecond */
		b->cpu_before_us = cpu_counted(slot_of(b));
	/* last, as the first sandbox has to wait until the skeleton is complete */
	parts->root = warden.store.plain ? store_plain(&b->chain, &parts->fill, e)
					 : store_overlay(&warden.store, &b->chain, e);
	return parts->root < 0 ? -1 : find_parts(b, parts, e);
}

/* Sends the new process the parts that it waits for. */
static int give_parts(struct sandbox *b, uint64_t disk, struct err *e)
{
	struct spawn_parts parts = SPAWN_PARTS_INIT;
	int rc;

	if (b->state == SANDBOX_LIVE) { /* the parts that it went to sleep with */
		parts.root = store_kept_root(b->chain.upper, e);
		rc = parts.root < 0 ? -1 : find_parts(b, &parts, e);
	} else {
		rc = make_parts(b, disk, &parts, e);
	}
	if (rc == 0)
		rc = spawn_give(b->socket, &parts, e);
	spawn_parts_fini(&parts);
	return rc;
}

int sandbox_abandon(struct sandbox *b)
{
	if (b->pidfd >= 0) {
		b->request = NULL;
		sandbox_kill(b);
	} else {
		sandbox_end(b);
	}
	return -1;
}

/* Without this watch its end would not be noticed, and nobody would reap it. */
static int watch_process(struct sandbox *b, struct err *e)
{
	if (watch(b->pidfd, b, TAG_PIDFD) == 0)
		return 0;
	err_sys(e, errno, "watch a new sandbox");
	syscall(SYS_pidfd_send_signal, b->pidfd, SIGKILL, NULL, 0);
	while (waitpid(b->pid, NULL, 0) < 0 && errno == EINTR)
		;
	close_fd(&b->pidfd);
	return -1;
}

static int start_process(struct sandbox *b, uint64_t disk, struct err *e)
{
	int sockets[2], failed;

	if (!b->facts)
		b->facts = facts_take(&b->limits, e);
	if (!b->facts)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return err_sys(e, errno, "socketpair");
	b->socket = sockets[0];
	failed = sandbox_spawn(b, sockets[1], e) < 0;
	close(sockets[1]);
	if (failed || watch_process(b, e) < 0)
		return -1;
	if (watch(b->socket, b, TAG_SOCKET) < 0)
		return err_sys(e, errno, "watch a new sandbox");
	return give_parts(b, disk, e);
}

int sandbox_start(struct sandbox *b, uint64_t disk, struct err *e)
{
	set_state(b, SANDBOX_STARTING);
	return start_process(b, disk, e) < 0 ? sandbox_abandon(b) : 0;
}

int sandbox_restart(struct sandbox *b, struct err *e)
{
	return start_process(b, 0, e);
}

/* Adds the lowest layer, unless that is the unchanged skeleton. */
static int make_base(struct sandbox *b, const struct origin *from, struct err *e)
{
	struct layer **base = &b->chain.frozen[0];

	if (from->image)
		*base = store_layer_image(&warden.store, &warden.host, from, b->uid, e);
	else if (b->limits.root && !warden.host.one_uid)
		*base = store_layer_skeleton(&warden.store, &warden.host, b->uid, e);
	else
		return 0;
	b->chain.n_frozen = *base ? 1 : 0;
	return *base ? 0 : -1;
}

static int sandbox_make(struct request *r, const struct limits *l, const struct origin *from,
			struct sandbox **ret_b, const struct mount_spec *mounts, uint32_t n_mounts,
			struct err *e)
{
	struct sandbox *b = sandbox_new(e);

	if (!b)
		return -1;
	b->limits = *l;
	b->request = r;
	b->filling = !r;
	for (uint32_t i = 0; i < n_mounts; i++)
		b->mounts[b->n_mounts++] = mounts[i];
	if (take_ids(b, e) < 0 || make_base(b, from, e) < 0)
		return sandbox_abandon(b);
	*ret_b = b;
	return sandbox_start(b, l->disk, e);
}

/* ---- the pool -------------------------------------------------------------------------------- */

bool pool_full(void)
{
	return warden.n_ready + warden.n_filling >= warden.pool_size;
}

void pool_refill(void)
{
	static const struct origin host = { NULL, true };
	struct err e = ERR_INIT;
	struct sandbox *b;

	if (sandbox_make(NULL, &warden.pool_limits, &host, &b, NULL, 0, &e) < 0) {
		log_warn("a sandbox for the pool could not be made: %s", e.msg);
		warden.refill_at = clock_ms() + REFILL_RETRY_MS;
	}
}

/* Mounts the facts of its new limits over the old ones. */
static int fit_facts(struct sandbox *b, const struct limits *l, struct err *e)
{
	struct facts *f;
	cpu_set_t cpus;

	if (l->memory == b->limits.memory && l->cpu_milli == b->limits.cpu_milli)
		return 0;
	f = facts_take(l, e);
	if (!f || facts_write(f, e) < 0 || facts_show_over(f, b->pidfd, e) < 0) {
		facts_drop(f);
		return -1;
	}
	b->covered = b->facts;
	b->facts = f;
	facts_place(f, &cpus);
	if (CPU_COUNT(&cpus) > 0 && sched_setaffinity(b->pid, sizeof(cpus), &cpus) < 0)
		log_debug("bind a sandbox to processors: %s", strerror(errno));
	return 0;
}

/* Gives a ready sandbox the requested limits. */
static int sandbox_fit(struct sandbox *b, const struct limits *l, struct err *e)
{
	if (l->disk != b->limits.disk &&
	    store_layer_resize(&warden.store, b->chain.upper, l->disk, e) < 0)
		return -1;
	if (cgroup_set(&warden.cgroups, slot_of(b), l, &b->limits, e) < 0 || fit_facts(b, l, e) < 0)
		return -1;
	b->limits = *l;
	return 0;
}

/* RLIMIT_NPROC was set for the pool's limit of processes, so a larger one needs a new sandbox.
 * Under rlimits the limits of a process are fixed when it starts. */
static bool pool_fits(const struct limits *l)
{
	return l->pids <= warden.pool_limits.pids &&
	       (warden.cgroups.driver != LIMIT_DRIVER_RLIMIT ||
		(l->memory == warden.pool_limits.memory && l->pids == warden.pool_limits.pids));
}

/* ---- create ---------------------------------------------------------------------------------- */

/* Reads the mounts that follow a wm_create of n bytes. */
static int copy_mounts(const struct wm_create *m, size_t n, struct mount_spec *out, struct err *e)
{
	const char *at = (const char *)(m + 1), *end = (const char *)m + n;

	for (uint32_t i = 0; i < m->n_mounts; i++) {
		const char *host, *guest;
		struct wm_mount wm;

		at = message_mount(at, end, &wm, &host, &guest);
		if (!at)
			return err_set(e, ERR_BUG, "mounts of a request");
		out[i].host = strdup(host);
		out[i].guest = strdup(guest);
		out[i].writable = wm.writable;
		out[i].all = wm.all;
		out[i].own = wm.own;
		out[i].state = wm.state;
		out[i].project = PROJECT_INIT;
		out[i].size = wm.size;
		if (!out[i].host || !out[i].guest)
			return err_set(e, ERR_LIMIT, "out of memory");
	}
	return 0;
}

struct request *new_request(uint32_t seq, uint32_t wanted, struct err *e)
{
	struct request *r = calloc(1, sizeof(*r));

	if (!r) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	r->seq = seq;
	r->wanted = wanted;
	return r;
}

static int create_from_pool(struct request *r, const struct wm_create *m, struct err *e)
{
	struct sandbox *b;

	if (!warden.n_ready || m->n_mounts || *m->image || m->limits.debug || m->limits.root ||
	    !pool_fits(&m->limits))
		return 0;
	b = warden.ready[0];
	if (facts_limit_cpus(b->facts) && !facts_cpus(&m->limits))
		return 0; /* the mounts that hide the machine's processors can't be removed */
	if (sandbox_fit(b, &m->limits, e) < 0) {
		sandbox_kill(b);
		return -1;
	}
	r->sandboxes[0] = b;
	complete_request(r, true);
	return 1;
}

int create(const struct hub_message *in, struct err *e)
{
	const struct wm_create *m = in->p;
	const struct origin from = { *m->image ? m->image : NULL, m->of_host != 0 };
	struct mount_spec mounts[WIRE_MOUNTS_MAX] = { 0 };
	struct request *r;
	int done;

	if (cgroup_check(&warden.cgroups, &m->limits, e) < 0)
		return -1;
	r = new_request(m->h.seq, 1, e);
	done = r ? create_from_pool(r, m, e) : -1;
	if (done > 0)
		return 0;
	if (done < 0 || copy_mounts(m, in->n, mounts, e) < 0) {
		for (uint32_t i = 0; i < WIRE_MOUNTS_MAX; i++) {
			free(mounts[i].host);
			free(mounts[i].guest);
		}
		free(r);
		return -1;
	}
	if (sandbox_make(r, &m->limits, &from, &r->sandboxes[0], mounts, m->n_mounts, e) < 0) {
		free(r);
		return -1;
	}
	return 0;
}

/* ---- what a sandbox says and how it dies
 * -------------------------------------------------------- */

/* A sandbox that a request waits for has died: the request fails. */
static void fail_request_of(struct sandbox *b)
{
	struct request *r = b->request;
	struct err e = ERR_INIT;

	for (uint32_t i = 0; i < r->wanted; i++) {
		if (r->sandboxes[i] == b)
			r->sandboxes[i] = NULL;
	}
	b->request = NULL;
	err_set(&e, ERR_GUEST, "the new sandbox's first process died");
	fail_request(r, &e);
}

void sandbox_died(struct sandbox *b)
{
	const struct wm_lost lost = { .h = { WM_LOST, 0 }, .key = b->key };
	enum sandbox_state was = b->state;

	if (waitpid(b->pid, NULL, WNOHANG) != b->pid)
		return;
	if (was == SANDBOX_LIVE && b->sleep != SANDBOX_AWAKE) {
		sandbox_slept(b);
		return;
	}
	if (b->request)
		fail_request_of(b);
	if (was == SANDBOX_LIVE)
		send_hub(&lost, sizeof(lost), NULL, 0);
	if (was != SANDBOX_DYING)
		set_state(b, SANDBOX_DYING);
	sandbox_end(b);
}

static void setup_error(struct im_setup_failed *m, struct err *e)
{
	m->stage[sizeof(m->stage) - 1] = '\0';
	if (strncmp(m->stage, IM_STAGE_MOUNT, strlen(IM_STAGE_MOUNT)) == 0) {
		err_sys(e, m->errnum, "%s", m->stage);
		e->code = ERR_INVALID;
	} else {
		err_sys(e, m->errnum, "set up the sandbox (%s)", m->stage);
		if (e->code != ERR_LIMIT) /* a limit of descriptors, memory or processes */
			e->code = ERR_UNSUPPORTED;
	}
}

/* Writes its id map. If it has died since it asked, its last message tells why. */
static void sandbox_map(struct sandbox *b)
{
	const struct im_head go = { IM_MAP_ME, 0 };
	struct im_setup_failed last = { 0 };
	struct err e = ERR_INIT;

	err_set(&e, ERR_GUEST, "the new sandbox's first process died");
	if (spawn_map(&warden.host, b->pid, b->uid, b->limits.root, &e) == 0 &&
	    sock_send(b->socket, &go, sizeof(go), NULL, 0, 0) >= 0)
		return;
	if (recv(b->socket, &last, sizeof(last), MSG_DONTWAIT) == sizeof(last) &&
	    last.h.type == IM_SETUP_FAILED)
		setup_error(&last, &e);
	sandbox_failed(b, &e);
}

static bool sets_itself_up(const struct sandbox *b)
{
	return b->state == SANDBOX_STARTING ||
	       (b->state == SANDBOX_LIVE && b->sleep == SANDBOX_WAKING);
}

/* Handles messages of a sandbox during its set-up. */
void sandbox_says(struct sandbox *b)
{
	struct im_setup_failed m = { 0 };
	ssize_t n = recv(b->socket, &m, sizeof(m), MSG_DONTWAIT);
	struct err e = ERR_INIT;

	if (n < 0 && sock_passes(errno))
		return; /* the message is still there */
	if (!sets_itself_up(b) || n < (ssize_t)sizeof(struct im_head)) {
		epoll_ctl(warden.epoll, EPOLL_CTL_DEL, b->socket, NULL);
		return; /* it is ending: its pidfd reports that */
	}
	if (m.h.type == IM_MAP_ME) {
		sandbox_map(b);
	} else if (m.h.type == IM_READY) {
		sandbox_ready(b);
	} else {
		setup_error(&m, &e);
		sandbox_failed(b, &e);
	}
}
