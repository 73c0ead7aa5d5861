/*
 * holt-warden: makes sandboxes for the hub and ends them. It holds the privileges, so it is small,
 * static, single-threaded, and talks to nobody but the hub, over one socket, in fixed structs.
 *
 *	hub ── WM_CREATE ──→ a ready sandbox from the pool, or a new one
 *	    ── WM_FORK ────→ freeze the source's layer (idle) or copy it (busy), n new ones on it
 *	    ── WM_DESTROY ─→ kill PID 1; the kernel ends the rest; remove its layers and groups
 *
 * A sandbox ("sandbox") goes through the states of enum sandbox_state, changed only by set_state().
 * Slow work (copies of files) runs in a process of its own. When the hub's socket closes, the
 * warden ends all sandboxes and exits, unless it outlives its hub (keep.c). When the warden is
 * killed, its sandboxes die with it (PR_SET_PDEATHSIG), and a janitor process removes the control
 * groups, the only thing that is left.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sock.h"
#include "base/version.h"
#include "box/warden/internal.h"
#include "box/warden/message.h"
#include "box/wire/build_id.h"

enum {
	REFILL_AFTER_MS = 2,
	/* interval of checks for what will end soon: a busy control group, the process that makes
	 * the skeleton */
	SWEEP_MS = 20,
	CLOSE_MS = 5000,
	EVENTS = 64,
};

struct warden warden;
static char message[WIRE_MAX] __attribute__((aligned(8)));

/* ---- talking to the hub ---------------------------------------------------------------------- */

void send_hub(const void *msg, size_t n, const int *fds, size_t n_fds)
{
	if (warden.hub < 0 || hub_is_new() || sock_send(warden.hub, msg, n, fds, n_fds, 0) >= 0)
		return;
	/* the socket reports a hub that is gone, after the last messages of that hub */
	if (!warden.kept || (errno != EPIPE && errno != ECONNRESET))
		warden.closing = true;
}

void send_failed(uint32_t seq, const struct err *e)
{
	const struct wm_failed m = { .h = { WM_FAILED, seq }, .err = *e };

	send_hub(&m, sizeof(m), NULL, 0);
}

void send_pool(void)
{
	struct wm_pool m = { .h = { WM_POOL, 0 } };

	m.ready = warden.n_ready;
	send_hub(&m, sizeof(m), NULL, 0);
}

int watch(int fd, const void *what, enum tag tag)
{
	/* the tag goes into the low bits, which are 0 as `what` is aligned: it says which of a
	 * sandbox's descriptors this is */
	struct epoll_event ev = { .events = EPOLLIN,
				  .data.u64 = (uint64_t)(uintptr_t)what | (unsigned)tag };

	return epoll_ctl(warden.epoll, EPOLL_CTL_ADD, fd, &ev);
}

void unwatch(int *fd)
{
	if (*fd >= 0)
		epoll_ctl(warden.epoll, EPOLL_CTL_DEL, *fd, NULL);
	close_fd(fd);
}

/* ---- events ---------------------------------------------------------------------------------- */

static int warden_destroy(const struct hub_message *in, struct err *e)
{
	const struct wm_destroy *m = in->p;
	const struct wm_head gone = { WM_DESTROYED, m->h.seq };
	struct sandbox *b = sandbox_find(m->key);

	(void)e;
	if (!b) {
		send_hub(&gone, sizeof(gone), NULL, 0);
		return 0;
	}
	b->destroy_seq = m->h.seq;
	b->answer_destroy = true;
	sandbox_kill(b);
	return 0;
}

/* The handlers of messages that message_check() has accepted. */
static hub_message_fn *const messages[] = {
	[WM_CREATE] = create,	      [WM_FORK] = sandbox_fork,	  [WM_DESTROY] = warden_destroy,
	[WM_PAUSE] = sandbox_pause,   [WM_RECORD] = keep_record,  [WM_END] = end_with_hub,
	[WM_USAGE] = say_usage,	      [WM_WRITE] = sandbox_write, [WM_SOCKET] = give_socket,
	[WM_SLEEP] = sandbox_sleep,   [WM_WAKE] = sandbox_wake,	  [WM_HURRY] = sandbox_hurry,
	[WM_ATTACH] = sandbox_attach, [WM_LOOK] = look_at_left,
};

void hub_says(void)
{
	const struct wm_head *h = (const void *)message;
	autoclose int fd = -1;
	size_t n_fds = 1;
	ssize_t n = sock_recv(warden.hub, message, sizeof(message), &fd, &n_fds, MSG_DONTWAIT);
	struct hub_message in = { .p = message, .n = (size_t)n, .fd = fd };
	struct err e = ERR_INIT;

	/* reset: the hub was killed before it had read everything; its last messages are still to
	 * come */
	if (n < 0 && (sock_passes(errno) || errno == ECONNRESET))
		return;
	if (n < (ssize_t)sizeof(*h)) {
		hub_gone();
		return;
	}
	if (hub_is_new()) {
		hub_begins((const void *)h, (size_t)n, fd);
		return;
	}
	if (message_check(in.p, in.n, &e) < 0 || messages[h->type](&in, &e) < 0)
		send_failed(h->seq, &e);
	warden.refill_at = clock_ms() + REFILL_AFTER_MS;
}

static void warden_dispatch(const struct epoll_event *ev)
{
	void *what = (void *)(uintptr_t)(ev->data.u64 & ~(uint64_t)TAG_MASK);

	switch (ev->data.u64 & TAG_MASK) {
	case TAG_SOCKET:
		sandbox_says(what);
		break;
	case TAG_PIDFD:
		sandbox_died(what);
		break;
	case TAG_JOB:
		job_ended(what);
		break;
	case TAG_NET:
		net_arrived();
		break;
	case TAG_LISTENER:
		hub_arrived();
		break;
	case TAG_SEALS:
		seals_changed();
		break;
	default:
		if (warden.hub >= 0) /* an earlier event may have ended it */
			hub_says();
	}
}

static int sooner(int a, int b)
{
	return b < 0 || (a >= 0 && a < b) ? a : b;
}

/* Retries what could not be done at once; returns the time until the next try, -1: none. */
static int chores(void)
{
	uint64_t now = clock_ms();
	int wait = warden.kept ? keep_chores(now) : -1;

	for (uint32_t i = 0; warden.n_sweeping && i < warden.n_sandboxes; i++) {
		if (warden.sandboxes[i].state == SANDBOX_SWEEPING)
			sandbox_sweep(&warden.sandboxes[i]);
	}
	if (warden.n_sweeping || !store_settled(false))
		wait = sooner(wait, SWEEP_MS);
	wait = sooner(wait, yield_chores(now));
	wait = sooner(wait, seals_chores(now));
	wait = sooner(wait, left_chores());
	if (warden.closing || warden.hub < 0 || hub_is_new() || (pool_full() && nets_full()))
		return wait;
	if (now >= warden.refill_at) {
		if (!nets_full())
			nets_refill();
		if (!pool_full())
			pool_refill();
		if (pool_full() && nets_full())
			return wait;
	}
	return sooner(wait, warden.refill_at > now ? (int)(warden.refill_at - now) : 0);
}

/* Whether any process of a sandbox is left; the janitor removes empty control groups. */
static bool anything_left(void)
{
	for (uint32_t i = 0; i < warden.n_sandboxes; i++) {
		enum sandbox_state s = warden.sandboxes[i].state;

		if (s != SANDBOX_FREE && s != SANDBOX_SWEEPING)
			return true;
	}
	return false;
}

static void turn(int wait)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(warden.epoll, events, EVENTS, wait);

	for (int i = 0; i < n; i++)
		warden_dispatch(&events[i]);
}

static void warden_run(void)
{
	uint64_t deadline;

	while (!warden.closing)
		turn(chores());
	if (warden.hub >= 0)
		epoll_ctl(warden.epoll, EPOLL_CTL_DEL, warden.hub, NULL);
	for (uint32_t i = 0; i < warden.n_sandboxes; i++) {
		enum sandbox_state s = warden.sandboxes[i].state;

		if (s == SANDBOX_STARTING || s == SANDBOX_READY || s == SANDBOX_LIVE)
			sandbox_kill(&warden.sandboxes[i]);
	}
	deadline = clock_ms() + CLOSE_MS;
	while (anything_left() && clock_ms() < deadline)
		turn(sooner(chores(), SWEEP_MS));
}

/* Ends and reaps all children: where we are in a container, its first process may reap nobody. */
static void end(void)
{
	nets_fini();
	for (int i = 0; i < JOBS_MAX; i++) {
		if (warden.jobs[i].pid)
			kill(warden.jobs[i].pid, SIGKILL);
	}
	left_end();
	cgroups_fini(&warden.cgroups);
	helpers_end();
	/* what is left after the deadline ends with the warden */
	while (waitpid(-1, NULL, anything_left() ? WNOHANG : 0) > 0)
		continue;
}

/* argv[1]: the path of holt-init. */
int main(int argc, char **argv)
{
	struct wm_ready ready = { .h = { WM_READY, 0 } };
	struct rlimit files;
	struct wm_hello m;
	struct err e = ERR_INIT;
	ssize_t n;

	if (VERSION_TOLD("holt-warden", argc, argv))
		return 0;
	warden.hub = WARDEN_FD;
	log_init("holt-warden");
	/* They come from the hub's terminal, or to all of a session that ends: the hub decides. */
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	for (int fd = WARDEN_FD; fd <= WARDEN_DIR_FD; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (argc != 2 || (n = recv(warden.hub, &m, sizeof(m), 0)) <= 0 ||
	    !message_is_hello(&m, (size_t)n, BUILD_ID)) {
		fprintf(stderr, "holt-warden: started by holt of the same build only\n");
		return 125;
	}
	umask(0);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	if (warden_setup(&m, argv[1], &e) < 0) {
		send_failed(0, &e);
		end();
		return 125;
	}
	warden.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (warden.epoll < 0 || watch(warden.hub, NULL, TAG_HUB) < 0)
		return 125;
	if (m.kept && keep_start(&m, &e) < 0) {
		send_failed(0, &e);
		end();
		return 125;
	}
	ready.driver = warden.cgroups.driver;
	ready.rootless = warden.host.rootless;
	ready.can_freeze = warden.cgroups.dirs[CG_FREEZER] >= 0;
	send_hub(&ready, sizeof(ready), NULL, 0);
	warden_run();
	end();
	return 0;
}
