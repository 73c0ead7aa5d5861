/*
 * holt-warden: makes sandboxes for the hub and ends them. It holds the privileges, so it is small,
 * static, single-threaded, and speaks to nobody but the hub, over one socket, in fixed structs.
 *
 *	hub ── WM_CREATE ──→ a ready sandbox from the pool, or a new one
 *	    ── WM_FORK ────→ freeze the source's layer (idle) or copy it (busy), n new ones on it
 *	    ── WM_DESTROY ─→ kill PID 1; the kernel ends the rest; remove its layers and groups
 *
 * A sandbox ("body") goes through the states of enum body_state, changed only by set_state(). What
 * takes long (copying files) runs in a process of its own. When the hub's socket closes, all
 * bodies are ended and the warden exits; when the warden is killed, its bodies die with it
 * (PR_SET_PDEATHSIG) and a janitor process removes the control groups, which are all that is left.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/warden.h"

enum {
	BODIES_MAX = 8192,
	UID_BASE = 1900000000, /* of the range that no known allocator of ids uses */
	UID_BASE_SMALL = 20000, /* in a container that has only the usual 65536 ids */
	REFILL_AFTER_MS = 2,
	REFILL_RETRY_MS = 1000,
	SWEEP_MS = 20, /* between tries to remove a control group that is still busy */
	EVENTS = 64,
};

enum body_state {
	BODY_FREE,
	BODY_STARTING, /* its process sets itself up */
	BODY_READY, /* in the pool */
	BODY_LIVE, /* the hub has it */
	BODY_DYING, /* killed; its end is awaited */
	BODY_SWEEPING, /* ended; its control groups are still busy */
};

/* One request of the hub that waits for bodies. */
struct request {
	uint32_t seq;
	uint32_t wanted, ready; /* bodies */
	struct body *bodies[WIRE_FORK_MAX];
	bool failed;
	struct err err;
};

struct mount_spec {
	char *host, *guest;
	bool writable;
};

struct body {
	enum body_state state;
	uint64_t key;
	pid_t pid;
	int pidfd, socket;
	uint32_t uid;
	struct chain chain;
	struct limits limits;
	struct mount_spec mounts[WIRE_MOUNTS_MAX];
	uint32_t n_mounts;
	struct request *request; /* that it is made for; NULL: for the pool */
	uint32_t destroy_seq; /* to be answered when it is gone */
	bool answer_destroy;
};

/* Work in a process of its own. */
struct job {
	pid_t pid; /* 0: free */
	int pidfd;
	struct body *source; /* NULL when it is gone meanwhile */
	struct layer *out;
	/* a fork: the request that goes on when the files are copied */
	struct request *request;
	bool frozen; /* by us */
	/* a squash: the layers that `out` replaces */
	struct chain squashed;
};

enum { JOBS_MAX = 64 };

static struct {
	struct host host;
	struct store store;
	struct cgroups cgroups;
	struct limits pool_limits;
	uint32_t pool_size, max_bodies;
	struct body *bodies; /* [max_bodies] */
	struct job jobs[JOBS_MAX];
	uint32_t *uid_refs; /* [max_bodies] */
	uint64_t last_key;
	int hub, epoll, janitor;
	uint64_t refill_at; /* clock_ms() */
	bool closing;
	char message[WIRE_MAX];
} w;

/* ---- talking to the hub ----------------------------------------------------------------------- */

static void send_hub(const void *msg, size_t n, const int *fds, size_t n_fds)
{
	char control[CMSG_SPACE(WIRE_FORK_MAX * sizeof(int))];
	struct iovec iov = { .iov_base = (void *)msg, .iov_len = n };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;
	ssize_t sent;

	if (n_fds) {
		memset(control, 0, sizeof(control));
		mh.msg_control = control;
		mh.msg_controllen = (socklen_t)CMSG_SPACE(n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = (socklen_t)CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	do {
		sent = sendmsg(w.hub, &mh, MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	if (sent < 0)
		w.closing = true;
}

static void send_failed(uint32_t seq, const struct err *e)
{
	const struct wm_failed m = { .h = { WM_FAILED, seq }, .err = *e };

	send_hub(&m, sizeof(m), NULL, 0);
}

static void send_pool(void)
{
	struct wm_pool m = { .h = { WM_POOL, 0 } };

	for (uint32_t i = 0; i < w.max_bodies; i++)
		m.ready += w.bodies[i].state == BODY_READY;
	send_hub(&m, sizeof(m), NULL, 0);
}

/* ---- bodies ----------------------------------------------------------------------------------- */

static uint32_t slot_of(const struct body *b)
{
	return (uint32_t)(b - w.bodies);
}

static void set_state(struct body *b, enum body_state state)
{
	log_debug("sandbox %llu: state %d to %d", (unsigned long long)b->key, b->state, state);
	b->state = state;
}

static int watch(int fd, const void *what, int tag)
{
	/* a tag in the low bits, since what is aligned: which of a body's descriptors it is */
	struct epoll_event ev = { .events = EPOLLIN,
				  .data.u64 = (uint64_t)(uintptr_t)what | (unsigned)tag };

	return epoll_ctl(w.epoll, EPOLL_CTL_ADD, fd, &ev);
}

enum { TAG_SOCKET, TAG_PIDFD, TAG_JOB, TAG_HUB, TAG_MASK = 3 };

static struct body *new_body(struct err *e)
{
	for (uint32_t i = 0; i < w.max_bodies; i++) {
		struct body *b = &w.bodies[i];

		if (b->state != BODY_FREE)
			continue;
		*b = (struct body){ .pidfd = -1, .socket = -1, .key = ++w.last_key };
		return b;
	}
	err_set(e, ERR_LIMIT, "there are as many sandboxes as allowed (%u)", w.max_bodies);
	return NULL;
}

static struct body *find_body(uint64_t key)
{
	for (uint32_t i = 0; i < w.max_bodies; i++) {
		if (w.bodies[i].key == key && w.bodies[i].state == BODY_LIVE)
			return &w.bodies[i];
	}
	return NULL;
}

/* Each family of forks has a user id of its own, so that what the kernel counts per user is not
 * shared with strangers. */
static uint32_t take_uid(void)
{
	uint32_t i = 0;

	if (w.host.one_uid)
		return w.host.uid_base;
	while (i + 1 < w.max_bodies && w.uid_refs[i])
		i++;
	w.uid_refs[i]++;
	return w.host.uid_base + i;
}

static uint32_t share_uid(uint32_t uid)
{
	if (!w.host.one_uid)
		w.uid_refs[uid - w.host.uid_base]++;
	return uid;
}

static void drop_uid(uint32_t uid)
{
	if (!w.host.one_uid)
		w.uid_refs[uid - w.host.uid_base]--;
}

static void free_mounts(struct body *b)
{
	for (uint32_t i = 0; i < b->n_mounts; i++) {
		free(b->mounts[i].host);
		free(b->mounts[i].guest);
	}
	b->n_mounts = 0;
}

/* The last step of a body's life, possibly after some tries. */
static void sweep_body(struct body *b)
{
	const struct wm_head done = { WM_DESTROYED, b->destroy_seq };

	if (!cgroup_remove(&w.cgroups, slot_of(b))) {
		set_state(b, BODY_SWEEPING);
		return;
	}
	set_state(b, BODY_FREE);
	if (b->answer_destroy)
		send_hub(&done, sizeof(done), NULL, 0);
}

static void forget_source(const struct body *b)
{
	for (int i = 0; i < JOBS_MAX; i++) {
		if (w.jobs[i].pid && w.jobs[i].source == b)
			w.jobs[i].source = NULL;
	}
}

/* Its process is reaped: nothing of it runs. */
static void end_body(struct body *b)
{
	close_fd(&b->pidfd);
	close_fd(&b->socket);
	forget_source(b);
	chain_fini(&b->chain);
	free_mounts(b);
	drop_uid(b->uid);
	sweep_body(b);
}

static void kill_body(struct body *b)
{
	syscall(SYS_pidfd_send_signal, b->pidfd, SIGKILL, NULL, 0);
	set_state(b, BODY_DYING);
}

/* ---- requests --------------------------------------------------------------------------------- */

static void drop_request_bodies(struct request *r)
{
	for (uint32_t i = 0; i < r->wanted; i++) {
		struct body *b = r->bodies[i];

		if (!b)
			continue;
		b->request = NULL;
		if (b->state != BODY_DYING)
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

		epoll_ctl(w.epoll, EPOLL_CTL_DEL, b->socket, NULL);
		fds[i] = b->socket;
		m.keys[i] = b->key;
		b->request = NULL;
		set_state(b, BODY_LIVE);
	}
	send_hub(&m, sizeof(m), fds, r->wanted);
	for (uint32_t i = 0; i < r->wanted; i++)
		close_fd(&r->bodies[i]->socket);
	free(r);
}

static void body_ready(struct body *b)
{
	struct request *r = b->request;

	if (!r) {
		set_state(b, BODY_READY);
		send_pool();
	} else if (++r->ready == r->wanted) {
		complete_request(r, false);
	}
}

static void body_failed(struct body *b, const struct err *e)
{
	struct request *r = b->request;

	kill_body(b);
	if (r) {
		fail_request(r, e);
	} else {
		log_warn("a sandbox for the pool could not be made: %s", e->msg);
		w.refill_at = clock_ms() + REFILL_RETRY_MS;
	}
}

/* ---- making a body ---------------------------------------------------------------------------- */

static int open_binds(struct body *b, struct bind *binds, struct err *e)
{
	for (uint32_t i = 0; i < b->n_mounts; i++) {
		const struct mount_spec *m = &b->mounts[i];

		binds[i].tree = store_host_tree(&w.host, m->host, m->writable, b->uid,
						&binds[i].is_dir, e);
		if (binds[i].tree < 0)
			return err_wrap(e, "mount on %s", m->guest);
		snprintf(binds[i].guest, sizeof(binds[i].guest), "%s", m->guest);
	}
	return 0;
}

static int spawn_body(struct body *b, int root, const int sockets[2], struct err *e)
{
	static struct bind binds[WIRE_MOUNTS_MAX];
	struct spawn sp = {
		.host = &w.host,
		.store = &w.store,
		.root = root,
		.socket = sockets[1],
		.binds = binds,
		.n_binds = b->n_mounts,
		.limits = &b->limits,
		.driver = w.cgroups.driver,
	};
	int failed;

	for (uint32_t i = 0; i < b->n_mounts; i++)
		binds[i].tree = -1;
	failed = open_binds(b, binds, e) < 0 ||
		 cgroup_new(&w.cgroups, slot_of(b), &b->limits, e) < 0;
	if (!failed) {
		cgroup_events(&w.cgroups, slot_of(b), &sp.oom_events, &sp.pids_events);
		b->pid = spawn_start(&sp, &b->pidfd, e);
		failed = b->pid < 0;
		close_fd(&sp.oom_events);
		close_fd(&sp.pids_events);
	}
	for (uint32_t i = 0; i < b->n_mounts; i++)
		close_fd(&binds[i].tree);
	return failed ? -1 : cgroup_join(&w.cgroups, slot_of(b), b->pid, e);
}

/* The body was never started, or could not be finished: undo what there is of it. */
static int abandon_body(struct body *b)
{
	if (b->pidfd >= 0) {
		b->request = NULL;
		kill_body(b);
	} else {
		end_body(b);
	}
	return -1;
}

/* Starts the process of a body whose chain, uid, limits and mounts are set; it answers later, on
 * its socket. On failure the body is gone. */
static int start_body(struct body *b, struct err *e)
{
	autoclose int root = store_overlay(&w.store, &b->chain, e);
	int sockets[2];

	if (root < 0)
		return abandon_body(b);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0) {
		err_sys(e, errno, "socketpair");
		return abandon_body(b);
	}
	b->socket = sockets[0];
	set_state(b, BODY_STARTING);
	if (spawn_body(b, root, sockets, e) < 0 || watch(b->socket, b, TAG_SOCKET) < 0 ||
	    watch(b->pidfd, b, TAG_PIDFD) < 0) {
		close(sockets[1]);
		return abandon_body(b);
	}
	close(sockets[1]);
	return 0;
}

static int make_body(struct request *r, const struct limits *l, struct body **ret_b,
		     const struct mount_spec *mounts, uint32_t n_mounts, struct err *e)
{
	struct body *b = new_body(e);

	if (!b)
		return -1;
	b->limits = *l;
	b->request = r;
	b->uid = take_uid();
	for (uint32_t i = 0; i < n_mounts; i++)
		b->mounts[b->n_mounts++] = mounts[i];
	b->chain.upper = store_layer_new(&w.store, l->disk, e);
	if (!b->chain.upper || store_layer_own(b->chain.upper, b->uid, e) < 0)
		return abandon_body(b);
	*ret_b = b;
	return start_body(b, e);
}

/* ---- the pool --------------------------------------------------------------------------------- */

static struct body *pool_take(void)
{
	for (uint32_t i = 0; i < w.max_bodies; i++) {
		if (w.bodies[i].state == BODY_READY)
			return &w.bodies[i];
	}
	return NULL;
}

/* How many are ready or on the way. */
static uint32_t pool_filled(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w.max_bodies; i++) {
		const struct body *b = &w.bodies[i];

		n += b->state == BODY_READY || (b->state == BODY_STARTING && !b->request);
	}
	return n;
}

static void refill(void)
{
	struct err e = ERR_INIT;
	struct body *b;

	if (make_body(NULL, &w.pool_limits, &b, NULL, 0, &e) < 0) {
		log_warn("a sandbox for the pool could not be made: %s", e.msg);
		w.refill_at = clock_ms() + REFILL_RETRY_MS;
	}
}

/* A ready body takes the limits that are asked for. */
static int fit_body(struct body *b, const struct limits *l, struct err *e)
{
	if (l->disk != b->limits.disk && store_layer_resize(b->chain.upper, l->disk, e) < 0)
		return -1;
	if (cgroup_set(&w.cgroups, slot_of(b), l, &b->limits, e) < 0)
		return -1;
	b->limits = *l;
	return 0;
}

/* Under rlimits a process's limits are fixed when it starts. */
static bool pool_fits(const struct limits *l)
{
	return w.cgroups.driver != LIMIT_DRIVER_RLIMIT ||
	       (l->memory == w.pool_limits.memory && l->pids == w.pool_limits.pids);
}

/* RLIMIT_NPROC was set for the pool's limit of processes, so a larger one needs a new body. */
static bool pids_fit(const struct limits *l)
{
	return l->pids <= w.pool_limits.pids;
}

/* ---- create ----------------------------------------------------------------------------------- */

static void free_specs(struct mount_spec *m, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		free(m[i].host);
		free(m[i].guest);
	}
}

/* Reads the mounts that follow a wm_create of n bytes. */
static int read_mounts(const struct wm_create *m, size_t n, struct mount_spec *out, struct err *e)
{
	const char *at = (const char *)(m + 1), *end = (const char *)m + n;

	for (uint32_t i = 0; i < m->n_mounts; i++) {
		struct wm_mount wm;

		if (i == WIRE_MOUNTS_MAX || (size_t)(end - at) < sizeof(wm))
			return err_set(e, ERR_BUG, "mounts of a request");
		memcpy(&wm, at, sizeof(wm));
		at += sizeof(wm);
		if (!wm.host_len || !wm.guest_len || wm.host_len > 4096 || wm.guest_len > 4096 ||
		    (size_t)(end - at) < (size_t)wm.host_len + wm.guest_len ||
		    at[wm.host_len - 1] || at[wm.host_len + wm.guest_len - 1])
			return err_set(e, ERR_BUG, "mounts of a request");
		out[i].host = strdup(at);
		out[i].guest = strdup(at + wm.host_len);
		out[i].writable = wm.writable;
		if (!out[i].host || !out[i].guest)
			return err_set(e, ERR_LIMIT, "out of memory");
		at += wm.host_len + wm.guest_len;
	}
	return 0;
}

static struct request *new_request(uint32_t seq, uint32_t wanted, struct err *e)
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
	struct body *b = m->n_mounts || !pool_fits(&m->limits) || !pids_fit(&m->limits)
			       ? NULL
			       : pool_take();

	if (!b)
		return 0;
	if (fit_body(b, &m->limits, e) < 0) {
		kill_body(b);
		return -1;
	}
	r->bodies[0] = b;
	complete_request(r, true);
	send_pool();
	return 1;
}

static int create(const struct wm_create *m, size_t n, struct err *e)
{
	struct mount_spec mounts[WIRE_MOUNTS_MAX] = { 0 };
	struct request *r;
	int done;

	if (strcmp(m->template, "host") != 0)
		return err_set(e, ERR_TEMPLATE_NOT_FOUND, "there is no template \"%.60s\"",
			       m->template);
	if (cgroup_check(&w.cgroups, &m->limits, e) < 0)
		return -1;
	r = new_request(m->h.seq, 1, e);
	done = r ? create_from_pool(r, m, e) : -1;
	if (done > 0)
		return 0;
	if (done < 0 || read_mounts(m, n, mounts, e) < 0) {
		free_specs(mounts, WIRE_MOUNTS_MAX);
		free(r);
		return -1;
	}
	if (make_body(r, &m->limits, &r->bodies[0], mounts, m->n_mounts, e) < 0) {
		free(r);
		return -1;
	}
	return 0;
}

/* ---- fork ------------------------------------------------------------------------------------- */

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

/* What of the disk limit is not yet used by frozen layers; a little is always left, so that a full
 * sandbox can still be forked and cleaned up. */
static uint64_t disk_left(const struct chain *c, uint64_t disk)
{
	uint64_t used = 0;

	for (uint32_t i = 0; i < c->n_frozen; i++)
		used += c->frozen[i]->bytes;
	return used + MIB < disk ? disk - used : MIB;
}

static int clone_mounts(struct body *to, const struct body *from, struct err *e)
{
	for (uint32_t i = 0; i < from->n_mounts; i++) {
		struct mount_spec *m = &to->mounts[to->n_mounts++];

		m->host = strdup(from->mounts[i].host);
		m->guest = strdup(from->mounts[i].guest);
		m->writable = from->mounts[i].writable;
		if (!m->host || !m->guest)
			return err_set(e, ERR_LIMIT, "out of memory");
	}
	return 0;
}

/* One child of a fork: the frozen layers of base, a writable one of its own. */
static int make_child(struct request *r, const struct body *source, const struct chain *base,
		      struct body **ret_b, struct err *e)
{
	struct body *b = new_body(e);

	if (!b)
		return -1;
	b->limits = source->limits;
	b->request = r;
	b->uid = share_uid(source->uid);
	chain_copy_frozen(&b->chain, base);
	if (clone_mounts(b, source, e) < 0)
		return abandon_body(b);
	b->chain.upper = store_layer_new(&w.store, disk_left(base, b->limits.disk), e);
	if (!b->chain.upper)
		return abandon_body(b);
	*ret_b = b;
	return start_body(b, e);
}

static int make_children(struct request *r, const struct body *source, const struct chain *base,
			 struct err *e)
{
	for (uint32_t i = 0; i < r->wanted; i++) {
		if (make_child(r, source, base, &r->bodies[i], e) < 0) {
			r->bodies[i] = NULL;
			drop_request_bodies(r);
			return -1;
		}
	}
	return 0;
}

/* Where something is mounted in a body besides its root and /proc, without what lies below
 * another. */
static size_t guest_mounts(const struct body *b, const char **out)
{
	size_t n = 0;

	for (uint32_t i = 0; i < w.store.n_binds; i++)
		out[n++] = w.store.binds[i].guest;
	for (uint32_t i = 0; i < b->n_mounts; i++) {
		const char *g = b->mounts[i].guest;
		bool below = false;

		for (size_t k = 0; k < n; k++)
			below = below || (strncmp(g, out[k], strlen(out[k])) == 0 &&
					  g[strlen(out[k])] == '/');
		if (!below)
			out[n++] = g;
	}
	return n;
}

/* Freezes the writable layer of an idle body and gives it a new one, in place. */
static int freeze_layer(struct body *b, struct err *e)
{
	const char *guests[BINDS_MAX + WIRE_MOUNTS_MAX];
	struct chain next = { 0 };
	struct layer *frozen = b->chain.upper;
	size_t n;
	int root;

	if (b->chain.n_frozen + 1 >= CHAIN_MAX)
		return err_set(e, ERR_LIMIT, "forked more often than its layers could be squashed");
	frozen->bytes = store_layer_used(frozen);
	chain_copy_frozen(&next, &b->chain);
	chain_push(&next, layer_ref(frozen));
	next.upper = store_layer_new(&w.store, disk_left(&next, b->limits.disk), e);
	root = next.upper ? store_overlay(&w.store, &next, e) : -1;
	n = guest_mounts(b, guests);
	if (root < 0 || store_reroot(&w.store, b->pidfd, root, guests, n, e) < 0) {
		chain_fini(&next);
		return -1;
	}
	chain_fini(&b->chain);
	b->chain = next;
	return 0;
}

static struct job *new_job(struct err *e)
{
	for (int i = 0; i < JOBS_MAX; i++) {
		if (!w.jobs[i].pid) {
			w.jobs[i] = (struct job){ .pidfd = -1 };
			return &w.jobs[i];
		}
	}
	err_set(e, ERR_LIMIT, "too many copies under way");
	return NULL;
}

/* Starts a process that copies one open directory into another, both taken over. */
static int start_copy(struct job *j, int from, int to, struct err *e)
{
	j->pid = from < 0 || to < 0 ? -1 : fork();
	if (j->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(copy_tree(from, to) & 0xff);
	}
	if (from >= 0)
		close(from);
	if (to >= 0)
		close(to);
	if (j->pid < 0) {
		j->pid = 0;
		return err_sys(e, errno, "start copying");
	}
	j->pidfd = (int)syscall(SYS_pidfd_open, j->pid, 0);
	return watch(j->pidfd, j, TAG_JOB) < 0 ? err_sys(e, errno, "watch the copy") : 0;
}

static void thaw(const struct body *b)
{
	struct err e = ERR_INIT;

	if (cgroup_freeze(&w.cgroups, slot_of(b), false, &e) < 0)
		log_error("a frozen sandbox could not be thawed: %s", e.msg);
}

/* A running body: freeze it (unless its init has stopped it), copy its changed files, let it go
 * on; the children come after. */
static int fork_busy(struct request *r, struct body *source, bool freeze, struct err *e)
{
	struct job *j = new_job(e);
	int top;

	if (!j)
		return -1;
	j->out = store_layer_new(&w.store, source->limits.disk, e);
	if (!j->out)
		return -1;
	if (freeze && cgroup_freeze(&w.cgroups, slot_of(source), true, e) < 0) {
		layer_unref(j->out);
		return -1;
	}
	j->frozen = freeze;
	j->source = source;
	j->request = r;
	top = store_layer_open(source->chain.upper);
	if (start_copy(j, top, store_layer_open(j->out), e) < 0) {
		if (freeze)
			thaw(source);
		layer_unref(j->out);
		return -1;
	}
	return 0;
}

static void squash_if_deep(const struct body *b);

static int fork_body(const struct wm_fork *m, struct err *e)
{
	struct body *source = find_body(m->key);
	struct request *r;
	int failed;

	if (!source)
		return err_set(e, ERR_SANDBOX_NOT_FOUND, "the source has ended");
	if (m->n < 1 || m->n > WIRE_FORK_MAX)
		return err_set(e, ERR_INVALID, "replicas: from 1 to %d", WIRE_FORK_MAX);
	r = new_request(m->h.seq, m->n, e);
	if (!r)
		return -1;
	if (m->how == WM_FORK_IDLE)
		failed = freeze_layer(source, e) < 0 ||
			 make_children(r, source, &source->chain, e) < 0;
	else
		failed = fork_busy(r, source, m->how == WM_FORK_BUSY, e) < 0;
	if (failed) {
		free(r);
		return -1;
	}
	squash_if_deep(source);
	return 0;
}

static void copied_for_fork(struct job *j, int errnum)
{
	struct chain base = { 0 };
	struct err e = ERR_INIT;
	struct request *r = j->request;
	int failed;

	if (!j->source) {
		err_set(&e, ERR_SANDBOX_NOT_FOUND, "the source ended while it was forked");
		failed = -1;
	} else {
		if (j->frozen)
			thaw(j->source);
		failed = errnum ? err_sys(&e, errnum, "copy the changed files") : 0;
	}
	if (!failed) {
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

/* ---- squashing -------------------------------------------------------------------------------- */

static bool squash_running(const struct layer *newest)
{
	for (int i = 0; i < JOBS_MAX; i++) {
		const struct job *j = &w.jobs[i];

		if (j->pid && j->squashed.n_frozen && j->squashed.frozen[0] == newest)
			return true;
	}
	return false;
}

/* Past CHAIN_SQUASH layers their merged view is copied into one. Sandboxes that stand on them go
 * on as they are; their next fork, and all later children, stand on the one. */
static void squash_if_deep(const struct body *b)
{
	struct err e = ERR_INIT;
	struct job *j;
	int root;

	if (b->chain.n_frozen <= CHAIN_SQUASH || squash_running(b->chain.frozen[0]))
		return;
	j = new_job(&e);
	if (!j)
		return;
	chain_copy_frozen(&j->squashed, &b->chain);
	j->out = store_layer_new(&w.store, b->limits.disk, &e);
	root = j->out ? store_overlay(&w.store, &j->squashed, &e) : -1;
	if (root < 0 || start_copy(j, openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
				   store_layer_open(j->out), &e) < 0) {
		log_warn("layers could not be squashed: %s", e.msg);
		layer_unref(j->out);
		chain_fini(&j->squashed);
	}
	close_fd(&root);
}

/* True when the oldest layers of c are just those of `part`. */
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
		j->out->bytes = store_layer_used(j->out);
		j->out->complete = true;
		for (uint32_t i = 0; i < w.max_bodies; i++) {
			struct body *b = &w.bodies[i];

			if (b->state != BODY_FREE && stands_on(&b->chain, &j->squashed))
				replace_oldest(&b->chain, j->squashed.n_frozen, j->out);
		}
	}
	layer_unref(j->out);
	chain_fini(&j->squashed);
}

static void job_ended(struct job *j)
{
	int status = 0, errnum;

	if (waitpid(j->pid, &status, WNOHANG) != j->pid)
		return;
	errnum = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
	close_fd(&j->pidfd);
	j->pid = 0;
	if (j->request)
		copied_for_fork(j, errnum);
	else
		squashed(j, errnum);
}

/* ---- events ----------------------------------------------------------------------------------- */

static void destroy(const struct wm_destroy *m)
{
	const struct wm_head gone = { WM_DESTROYED, m->h.seq };
	struct body *b = find_body(m->key);

	if (!b) {
		send_hub(&gone, sizeof(gone), NULL, 0);
		return;
	}
	b->destroy_seq = m->h.seq;
	b->answer_destroy = true;
	kill_body(b);
}

static void body_died(struct body *b)
{
	const struct wm_lost lost = { .h = { WM_LOST, 0 }, .key = b->key };
	enum body_state was = b->state;
	struct err e = ERR_INIT;

	if (waitpid(b->pid, NULL, WNOHANG) != b->pid)
		return;
	if (was == BODY_STARTING && b->request) {
		struct request *r = b->request;

		for (uint32_t i = 0; i < r->wanted; i++) {
			if (r->bodies[i] == b)
				r->bodies[i] = NULL;
		}
		err_set(&e, ERR_GUEST, "the new sandbox's first process died");
		b->request = NULL;
		fail_request(r, &e);
	}
	if (was == BODY_LIVE)
		send_hub(&lost, sizeof(lost), NULL, 0);
	end_body(b);
	if (was == BODY_READY)
		send_pool();
}

/* A body that sets itself up says how far it is. */
static void body_says(struct body *b)
{
	struct im_setup_failed m = { 0 };
	const struct im_head go = { IM_MAP_ME, 0 };
	ssize_t n = recv(b->socket, &m, sizeof(m), MSG_DONTWAIT);
	struct err e = ERR_INIT;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (b->state == BODY_READY || n < (ssize_t)sizeof(struct im_head)) {
		epoll_ctl(w.epoll, EPOLL_CTL_DEL, b->socket, NULL);
		return; /* it is ending: its pidfd tells the rest */
	}
	if (m.h.type == IM_MAP_ME) {
		if (spawn_map(&w.host, b->pid, b->uid, &e) < 0 ||
		    send(b->socket, &go, sizeof(go), MSG_NOSIGNAL) < 0)
			body_failed(b, &e);
	} else if (m.h.type == IM_READY) {
		body_ready(b);
	} else {
		m.stage[sizeof(m.stage) - 1] = '\0';
		err_sys(&e, m.errnum, "set up the sandbox (%s)", m.stage);
		e.code = ERR_UNSUPPORTED;
		body_failed(b, &e);
	}
}

static void hub_says(void)
{
	const struct wm_head *h = (const void *)w.message;
	ssize_t n = recv(w.hub, w.message, sizeof(w.message), MSG_DONTWAIT);
	struct err e = ERR_INIT;
	int failed = 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < (ssize_t)sizeof(*h)) {
		w.closing = true;
		return;
	}
	if (h->type == WM_CREATE && (size_t)n >= sizeof(struct wm_create))
		failed = create((const void *)h, (size_t)n, &e);
	else if (h->type == WM_FORK && (size_t)n >= sizeof(struct wm_fork))
		failed = fork_body((const void *)h, &e);
	else if (h->type == WM_DESTROY && (size_t)n >= sizeof(struct wm_destroy))
		destroy((const void *)h);
	else
		failed = err_set(&e, ERR_BUG, "a message that the warden does not know");
	if (failed)
		send_failed(h->seq, &e);
	w.refill_at = clock_ms() + REFILL_AFTER_MS;
}

static void dispatch(const struct epoll_event *ev)
{
	void *what = (void *)(uintptr_t)(ev->data.u64 & ~(uint64_t)TAG_MASK);

	switch (ev->data.u64 & TAG_MASK) {
	case TAG_SOCKET:
		body_says(what);
		break;
	case TAG_PIDFD:
		body_died(what);
		break;
	case TAG_JOB:
		job_ended(what);
		break;
	default:
		hub_says();
	}
}

/* Tries again what could not be done at once; gives the time until the next such try, -1: none. */
static int chores(void)
{
	uint64_t now = clock_ms();
	int wait = -1;

	for (uint32_t i = 0; i < w.max_bodies; i++) {
		if (w.bodies[i].state == BODY_SWEEPING)
			sweep_body(&w.bodies[i]);
		if (w.bodies[i].state == BODY_SWEEPING)
			wait = SWEEP_MS;
	}
	if (w.closing || pool_filled() >= w.pool_size)
		return wait;
	if (now >= w.refill_at)
		refill();
	if (pool_filled() >= w.pool_size)
		return wait;
	now = w.refill_at > now ? w.refill_at - now : 0;
	return wait >= 0 && (uint64_t)wait < now ? wait : (int)now;
}

static bool anything_left(void)
{
	for (uint32_t i = 0; i < w.max_bodies; i++) {
		if (w.bodies[i].state != BODY_FREE)
			return true;
	}
	return false;
}

static void kill_all(void)
{
	for (uint32_t i = 0; i < w.max_bodies; i++) {
		enum body_state s = w.bodies[i].state;

		if (s == BODY_STARTING || s == BODY_READY || s == BODY_LIVE)
			kill_body(&w.bodies[i]);
	}
}

static void run(void)
{
	struct epoll_event events[EVENTS];
	uint64_t deadline = 0;

	while (!w.closing || (anything_left() && clock_ms() < deadline)) {
		int wait = chores();
		int n;

		if (w.closing && !deadline) {
			epoll_ctl(w.epoll, EPOLL_CTL_DEL, w.hub, NULL);
			kill_all();
			deadline = clock_ms() + 5000;
		}
		n = epoll_wait(w.epoll, events, EVENTS, w.closing ? SWEEP_MS : wait);
		for (int i = 0; i < n; i++)
			dispatch(&events[i]);
	}
}

/* ---- start ------------------------------------------------------------------------------------ */

/* holt-init beside our own program, copied into sealed memory: what a sandbox executes is not a
 * file that anybody could change or that a mount hides. */
static int load_init(const char *path, struct err *e)
{
	autoclose int in = open(path, O_RDONLY | O_CLOEXEC);
	autoclose int out = memfd_create("holt-init", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char block[65536];
	ssize_t n;

	if (in < 0 || out < 0)
		return err_sys(e, errno, "open holt-init");
	while ((n = read(in, block, sizeof(block))) > 0) {
		if (write(out, block, (size_t)n) != n)
			return err_sys(e, errno, "copy holt-init");
	}
	if (fchmod(out, 0555) < 0 ||
	    fcntl(out, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return err_sys(e, errno, "seal holt-init");
	return take_fd(&out);
}

static int write_text(const char *path, const char *text)
{
	autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 || write(fd, text, strlen(text)) < 0 ? -1 : 0;
}

/* An unprivileged user becomes root of a user namespace of its own, with one id. */
static int become_rootless(struct host *h, struct err *e)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	char map[64];

	if (uid == 0)
		return err_set(e, ERR_UNSUPPORTED,
			       "root without CAP_SYS_ADMIN: sandboxes would be root on the host");
	if (unshare(CLONE_NEWUSER) < 0)
		return err_sys(e, errno, "make a user namespace");
	snprintf(map, sizeof(map), "0 %u 1\n", uid);
	if (write_text("/proc/self/uid_map", map) < 0 ||
	    write_text("/proc/self/setgroups", "deny") < 0)
		return err_sys(e, errno, "map the user");
	snprintf(map, sizeof(map), "0 %u 1\n", gid);
	if (write_text("/proc/self/gid_map", map) < 0)
		return err_sys(e, errno, "map the group");
	h->rootless = true;
	h->one_uid = true;
	h->uid_base = 0; /* which is this user outside */
	return 0;
}

/* Whether the ids from first on, n of them, are ours to give out. */
static bool ids_mapped(uint64_t first, uint64_t n)
{
	FILE *f = fopen("/proc/self/uid_map", "re");
	unsigned long long inside, outside, count;
	bool found = false;

	while (f && !found && fscanf(f, "%llu %llu %llu", &inside, &outside, &count) == 3)
		found = first >= inside && first + n <= inside + count;
	if (f)
		fclose(f);
	return found;
}

static bool have_admin(void)
{
	/* the cheapest thing that takes CAP_SYS_ADMIN and changes nothing */
	return unshare(CLONE_NEWUTS) == 0;
}

static int choose_identity(struct host *h, uint32_t ids, struct err *e)
{
	if (geteuid() != 0 || !have_admin())
		return become_rootless(h, e);
	h->uid_base = ids_mapped(UID_BASE, ids) ? UID_BASE : UID_BASE_SMALL;
	if (!ids_mapped(h->uid_base, ids))
		return err_set(e, ERR_UNSUPPORTED,
			       "this user namespace has too few ids to give sandboxes one each");
	return 0;
}

static bool allowed_missing(const char *allow, const char *feature)
{
	size_t n = strlen(feature);

	for (const char *at = allow; (at = strstr(at, feature)); at += n) {
		if ((at == allow || at[-1] == ',') && (!at[n] || at[n] == ','))
			return true;
	}
	return false;
}

/* One ruleset for all: everything below the base's root is allowed, except to make devices; no
 * signals and no abstract sockets across its border. */
static int make_landlock(struct store *s, struct err *e)
{
	struct {
		uint64_t fs, net, scoped;
	} attr = { .fs = (1ull << 13) - 1 };
	struct landlock_path_beneath_attr all = { .parent_fd = s->base_root };
	int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* VERSION */);
	size_t size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
	int fd;

	if (abi < 1)
		return err_sys(e, errno, "Landlock");
	if (abi >= 2)
		attr.fs |= 1ull << 13; /* rename and link across directories */
	if (abi >= 3)
		attr.fs |= 1ull << 14; /* truncate */
	if (abi >= 6)
		attr.scoped = 3;
	fd = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	if (fd < 0)
		return err_sys(e, errno, "Landlock ruleset");
	all.allowed_access = attr.fs &
			     ~(LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK);
	if (syscall(SYS_landlock_add_rule, fd, LANDLOCK_RULE_PATH_BENEATH, &all, 0) < 0) {
		err_sys(e, errno, "Landlock rule");
		close(fd);
		return -1;
	}
	return fd;
}

static int setup(const struct wm_hello *m, const char *init, struct err *e)
{
	w.pool_limits = m->limits;
	w.pool_size = m->pool;
	w.max_bodies = m->max_sandboxes + m->pool;
	if (w.max_bodies > BODIES_MAX)
		return err_set(e, ERR_INVALID, "at most %d sandboxes", BODIES_MAX);
	w.bodies = calloc(w.max_bodies, sizeof(*w.bodies));
	w.uid_refs = calloc(w.max_bodies, sizeof(*w.uid_refs));
	if (!w.bodies || !w.uid_refs)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (seccomp_build(&w.host.filter) < 0)
		return err_set(e, ERR_BUG, "the system-call table is too large");
	w.host.init = load_init(init, e);
	if (w.host.init < 0 || cgroups_init(&w.cgroups, e) < 0)
		return -1;
	if (w.cgroups.dirs[CG_MEMORY] >= 0 || w.cgroups.dirs[CG_FREEZER] >= 0) {
		w.janitor = cgroups_janitor(&w.cgroups, e);
		if (w.janitor < 0)
			return -1;
	}
	if (choose_identity(&w.host, w.max_bodies, e) < 0)
		return -1;
	w.host.proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (w.host.proc < 0 || store_init(&w.store, &w.host, e) < 0)
		return -1;
	w.host.landlock = make_landlock(&w.store, e);
	if (w.host.landlock < 0 && !allowed_missing(m->allow, "landlock"))
		return err_wrap(e, "required and not allowed to be missing");
	return 0;
}

static int receive_hello(struct wm_hello *m)
{
	if (recv(w.hub, m, sizeof(*m), 0) != (ssize_t)sizeof(*m) || m->h.type != WM_HELLO ||
	    m->version != WIRE_VERSION)
		return -1;
	m->allow[sizeof(m->allow) - 1] = '\0';
	return 0;
}

/* argv[1]: the path of holt-init. */
int main(int argc, char **argv)
{
	struct wm_ready ready = { .h = { WM_READY, 0 } };
	struct rlimit files;
	struct wm_hello m;
	struct err e = ERR_INIT;

	w.hub = WARDEN_FD;
	log_init("holt-warden");
	signal(SIGINT, SIG_IGN); /* of the hub's terminal: the hub decides */
	signal(SIGPIPE, SIG_IGN);
	fcntl(WARDEN_FD, F_SETFD, FD_CLOEXEC);
	if (argc != 2 || receive_hello(&m) < 0) {
		fprintf(stderr, "holt-warden: started by holt only\n");
		return 125;
	}
	umask(0);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	if (setup(&m, argv[1], &e) < 0) {
		send_failed(0, &e);
		cgroups_fini(&w.cgroups);
		return 125;
	}
	w.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (w.epoll < 0 || watch(w.hub, NULL, TAG_HUB) < 0)
		return 125;
	ready.driver = w.cgroups.driver;
	ready.rootless = w.host.rootless;
	ready.can_freeze = w.cgroups.dirs[CG_FREEZER] >= 0;
	send_hub(&ready, sizeof(ready), NULL, 0);
	run();
	cgroups_fini(&w.cgroups);
	return 0;
}
