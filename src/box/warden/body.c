/*
 * Bodies: a sandbox as the warden knows it, from the first layer to the last control group. enum
 * body_state has its states. Pooled bodies wait in READY; those of a request go LIVE all at once.
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

/* ---- bodies ---------------------------------------------------------------------------------- */

uint32_t slot_of(const struct body *b)
{
	return (uint32_t)(b - warden.bodies);
}

/* The only place where a state changes: it maintains the counts by state. */
static void set_state(struct body *b, enum body_state state)
{
	static const struct {
		const char *name;
		unsigned from; /* bit mask of states */
	} states[] = {
		[BODY_FREE] = { "free", 1 << BODY_FREE | 1 << BODY_STARTING | 1 << BODY_DYING |
						1 << BODY_SWEEPING },
		[BODY_STARTING] = { "starting", 1 << BODY_FREE },
		[BODY_READY] = { "ready", 1 << BODY_STARTING },
		[BODY_LIVE] = { "live", 1 << BODY_STARTING | 1 << BODY_READY },
		[BODY_DYING] = { "dying", 1 << BODY_STARTING | 1 << BODY_READY | 1 << BODY_LIVE },
		[BODY_SWEEPING] = { "sweeping", 1 << BODY_FREE | 1 << BODY_STARTING |
							1 << BODY_DYING | 1 << BODY_SWEEPING },
	};

	log_debug("sandbox %llu: %s", (unsigned long long)b->key, states[state].name);
	if (!(states[state].from & 1u << b->state))
		log_error("sandbox %llu: %s can't become %s", (unsigned long long)b->key,
			  states[b->state].name, states[state].name);
	warden.n_filling -= b->filling && b->state == BODY_STARTING;
	warden.n_filling += b->filling && state == BODY_STARTING;
	warden.n_sweeping -= b->state == BODY_SWEEPING;
	warden.n_sweeping += state == BODY_SWEEPING;
	warden.n_live -= b->state == BODY_LIVE;
	warden.n_live += state == BODY_LIVE;
	for (uint32_t i = 0; b->state == BODY_READY && i < warden.n_ready; i++) {
		if (warden.ready[i] == b)
			warden.ready[i] = warden.ready[--warden.n_ready];
	}
	if (state == BODY_READY)
		warden.ready[warden.n_ready++] = b;
	if (b->state == BODY_READY || state == BODY_READY)
		send_pool();
	if (state == BODY_FREE)
		warden.free_slots[warden.n_free++] = slot_of(b);
	b->state = state;
}

struct body *new_body(struct err *e)
{
	struct body *b;
	uint32_t slot;

	if (warden.n_bodies - warden.n_free >= warden.max_bodies) {
		err_set(e, ERR_LIMIT, "there are as many sandboxes as allowed (%u)",
			warden.max_bodies);
		return NULL;
	}
	slot = warden.n_free ? warden.free_slots[--warden.n_free] : warden.n_bodies++;
	b = &warden.bodies[slot];
	/* a key is never used again, and contains its slot */
	*b = (struct body){
		.pidfd = -1, .socket = -1, .net = -1, .key = ++warden.last_key << 16 | slot
	};
	return b;
}

struct body *find_body(uint64_t key)
{
	struct body *b = &warden.bodies[key & 0xffff];

	return (key & 0xffff) < warden.n_bodies && b->key == key && b->state == BODY_LIVE ? b
											  : NULL;
}

void share_ids(struct body *b, const struct body *source)
{
	b->uid = source->uid;
	b->has_range = source->has_range;
	b->chain.set_ids = source->chain.set_ids;
	if (!warden.host.one_uid && !b->limits.root)
		warden.uid_refs[b->uid - warden.host.uid_base]++;
}

static void drop_ids(struct body *b)
{
	if (b->limits.root)
		range_drop(b);
	else if (!warden.host.one_uid)
		warden.uid_refs[b->uid - warden.host.uid_base]--;
}

/* Each family of forks has a user id of its own, so that the kernel's counters for each user are
 * not shared with strangers. */
static int take_ids(struct body *b, struct err *e)
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

static void free_mounts(struct body *b)
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

void sweep_body(struct body *b)
{
	const struct wm_head done = { WM_DESTROYED, b->destroy_seq };

	if (!cgroup_remove(&warden.cgroups, slot_of(b))) {
		set_state(b, BODY_SWEEPING);
		return;
	}
	set_state(b, BODY_FREE);
	if (b->answer_destroy)
		send_hub(&done, sizeof(done), NULL, 0);
}

/* Its process is reaped: nothing runs in it any more. */
static void end_body(struct body *b)
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
	sweep_body(b);
}

void kill_body(struct body *b)
{
	struct err e = ERR_INIT;

	if (b->pidfd < 0) { /* asleep */
		set_state(b, BODY_DYING);
		end_body(b);
		return;
	}
	set_yields(b, false); /* dying takes processor time, too */
	/* Frozen processes of a v1 group do not even die. */
	if ((b->paused || is_copied(b)) &&
	    cgroup_freeze(&warden.cgroups, slot_of(b), false, &e) < 0)
		log_error("a frozen sandbox could not be thawed to end it: %s", e.msg);
	b->paused = false;
	syscall(SYS_pidfd_send_signal, b->pidfd, SIGKILL, NULL, 0);
	if (b->state != BODY_DYING)
		set_state(b, BODY_DYING);
}

/* ---- requests -------------------------------------------------------------------------------- */

void drop_request_bodies(struct request *r)
{
	for (uint32_t i = 0; i < r->wanted; i++) {
		struct body *b = r->bodies[i];

		if (!b)
			continue;
		b->request = NULL;
		kill_body(b);
	}
}

static void fail_request(struct request *r, const struct err *e)
{
	send_failed(r->seq, e);
	drop_request_bodies(r);
	free(r);
}

static void complete_request(struct request *r, bool from_pool)
{
	struct wm_created m = { .h = { WM_CREATED, r->seq },
				.n = r->wanted,
				.from_pool = from_pool };
	int fds[WIRE_FORK_MAX];

	for (uint32_t i = 0; i < r->wanted; i++) {
		struct body *b = r->bodies[i];

		epoll_ctl(warden.epoll, EPOLL_CTL_DEL, b->socket, NULL);
		fds[i] = b->socket;
		m.keys[i] = b->key;
		b->request = NULL;
		b->made_seq = r->seq;
		set_state(b, BODY_LIVE);
		yield_watch(b);
	}
	send_hub(&m, sizeof(m), fds, r->wanted);
	for (uint32_t i = 0; i < r->wanted && !warden.kept; i++)
		close_fd(&r->bodies[i]->socket);
	free(r);
}

static void body_failed(struct body *b, const struct err *e)
{
	struct request *r = b->request;

	if (b->state == BODY_LIVE) {
		wake_failed(b, e);
		return;
	}
	kill_body(b);
	if (r) {
		fail_request(r, e);
	} else {
		log_warn("a sandbox for the pool could not be made: %s", e->msg);
		warden.refill_at = clock_ms() + REFILL_RETRY_MS;
	}
}

static void body_ready(struct body *b)
{
	struct request *r = b->request;
	struct err e = ERR_INIT;

	if (b->state == BODY_LIVE)
		body_awake(b);
	else if (!r)
		set_state(b, BODY_READY);
	else if (++r->ready < r->wanted)
		return;
	else if (seals_complete(r, &e) < 0)
		body_failed(b, &e);
	else
		complete_request(r, false);
}

/* ---- making a body --------------------------------------------------------------------------- */

/* Whether it has that folder of the host; held_from.has. */
static bool body_has(const void *data, const char *path)
{
	const struct body *b = data;

	for (uint32_t i = 0; i < b->n_mounts; i++) {
		size_t n = strlen(b->mounts[i].host);

		if (b->mounts[i].writable && strncmp(path, b->mounts[i].host, n) == 0 &&
		    (path[n] == '/' || !path[n]))
			return true;
	}
	return false;
}

static int open_binds(struct body *b, struct bind *binds, struct err *e)
{
	for (uint32_t i = 0; i < b->n_mounts; i++) {
		struct mount_spec *m = &b->mounts[i];
		bool is_empty = !*m->host;
		const struct host_tree t = {
			.path = m->host,
			.writable = m->writable,
			.own = m->own,
			.project = m->writable && !m->all && !project_is_state(m->host)
					 ? &m->project
					 : NULL,
			.size = m->size,
			.uid = b->uid,
		};

		m->project.of = (struct project_of){ .host = m->host, .has = body_has, .data = b };
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
static bool may_set_ids(const struct body *b)
{
	for (uint32_t i = 0; i < b->n_mounts; i++) {
		if (b->mounts[i].writable)
			return false;
	}
	return b->limits.root;
}

static int spawn_body(struct body *b, int socket, struct err *e)
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
static int find_parts(const struct body *b, struct spawn_parts *parts, struct err *e)
{
	int n = cgroup_tasks(&warden.cgroups, slot_of(b), parts->tasks, e);

	if (n < 0)
		return -1;
	parts->n_tasks = (uint32_t)n;
	cgroup_events(&warden.cgroups, slot_of(b), &parts->oom_events, &parts->pids_events);
	return 0;
}

static int make_parts(struct body *b, uint64_t disk, struct spawn_parts *parts, struct err *e)
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
static int give_parts(struct body *b, uint64_t disk, struct err *e)
{
	struct spawn_parts parts = SPAWN_PARTS_INIT;
	int rc;

	if (b->state == BODY_LIVE) { /* the parts that it went to sleep with */
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

int abandon_body(struct body *b)
{
	if (b->pidfd >= 0) {
		b->request = NULL;
		kill_body(b);
	} else {
		end_body(b);
	}
	return -1;
}

/* Without this watch its end would not be noticed, and nobody would reap it. */
static int watch_process(struct body *b, struct err *e)
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

static int start_process(struct body *b, uint64_t disk, struct err *e)
{
	int sockets[2], failed;

	if (!b->facts)
		b->facts = facts_take(&b->limits, e);
	if (!b->facts)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return err_sys(e, errno, "socketpair");
	b->socket = sockets[0];
	failed = spawn_body(b, sockets[1], e) < 0;
	close(sockets[1]);
	if (failed || watch_process(b, e) < 0)
		return -1;
	if (watch(b->socket, b, TAG_SOCKET) < 0)
		return err_sys(e, errno, "watch a new sandbox");
	return give_parts(b, disk, e);
}

int start_body(struct body *b, uint64_t disk, struct err *e)
{
	set_state(b, BODY_STARTING);
	return start_process(b, disk, e) < 0 ? abandon_body(b) : 0;
}

int restart_body(struct body *b, struct err *e)
{
	return start_process(b, 0, e);
}

/* Adds the lowest layer, unless that is the unchanged skeleton. */
static int make_base(struct body *b, const struct origin *from, struct err *e)
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

static int make_body(struct request *r, const struct limits *l, const struct origin *from,
		     struct body **ret_b, const struct mount_spec *mounts, uint32_t n_mounts,
		     struct err *e)
{
	struct body *b = new_body(e);

	if (!b)
		return -1;
	b->limits = *l;
	b->request = r;
	b->filling = !r;
	for (uint32_t i = 0; i < n_mounts; i++)
		b->mounts[b->n_mounts++] = mounts[i];
	if (take_ids(b, e) < 0 || make_base(b, from, e) < 0)
		return abandon_body(b);
	*ret_b = b;
	return start_body(b, l->disk, e);
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
	struct body *b;

	if (make_body(NULL, &warden.pool_limits, &host, &b, NULL, 0, &e) < 0) {
		log_warn("a sandbox for the pool could not be made: %s", e.msg);
		warden.refill_at = clock_ms() + REFILL_RETRY_MS;
	}
}

/* Mounts the facts of its new limits over the old ones. */
static int fit_facts(struct body *b, const struct limits *l, struct err *e)
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

/* Gives a ready body the requested limits. */
static int fit_body(struct body *b, const struct limits *l, struct err *e)
{
	if (l->disk != b->limits.disk &&
	    store_layer_resize(&warden.store, b->chain.upper, l->disk, e) < 0)
		return -1;
	if (cgroup_set(&warden.cgroups, slot_of(b), l, &b->limits, e) < 0 || fit_facts(b, l, e) < 0)
		return -1;
	b->limits = *l;
	return 0;
}

/* RLIMIT_NPROC was set for the pool's limit of processes, so a larger one needs a new body. Under
 * rlimits the limits of a process are fixed when it starts. */
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
	struct body *b;

	if (!warden.n_ready || m->n_mounts || *m->image || m->limits.debug || m->limits.root ||
	    !pool_fits(&m->limits))
		return 0;
	b = warden.ready[0];
	if (facts_limit_cpus(b->facts) && !facts_cpus(&m->limits))
		return 0; /* the mounts that hide the machine's processors can't be removed */
	if (fit_body(b, &m->limits, e) < 0) {
		kill_body(b);
		return -1;
	}
	r->bodies[0] = b;
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
	if (make_body(r, &m->limits, &from, &r->bodies[0], mounts, m->n_mounts, e) < 0) {
		free(r);
		return -1;
	}
	return 0;
}

/* ---- what a body says and how it dies -------------------------------------------------------- */

/* A body that a request waits for has died: the request fails. */
static void fail_request_of(struct body *b)
{
	struct request *r = b->request;
	struct err e = ERR_INIT;

	for (uint32_t i = 0; i < r->wanted; i++) {
		if (r->bodies[i] == b)
			r->bodies[i] = NULL;
	}
	b->request = NULL;
	err_set(&e, ERR_GUEST, "the new sandbox's first process died");
	fail_request(r, &e);
}

void body_died(struct body *b)
{
	const struct wm_lost lost = { .h = { WM_LOST, 0 }, .key = b->key };
	enum body_state was = b->state;

	if (waitpid(b->pid, NULL, WNOHANG) != b->pid)
		return;
	if (was == BODY_LIVE && b->sleep != BODY_AWAKE) {
		body_slept(b);
		return;
	}
	if (b->request)
		fail_request_of(b);
	if (was == BODY_LIVE)
		send_hub(&lost, sizeof(lost), NULL, 0);
	if (was != BODY_DYING)
		set_state(b, BODY_DYING);
	end_body(b);
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
static void map_body(struct body *b)
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
	body_failed(b, &e);
}

static bool sets_itself_up(const struct body *b)
{
	return b->state == BODY_STARTING || (b->state == BODY_LIVE && b->sleep == BODY_WAKING);
}

/* Handles messages of a body during its set-up. */
void body_says(struct body *b)
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
		map_body(b);
	} else if (m.h.type == IM_READY) {
		body_ready(b);
	} else {
		setup_error(&m, &e);
		body_failed(b, &e);
	}
}
