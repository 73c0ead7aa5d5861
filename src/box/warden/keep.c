/*
 * Life beyond the hub. The warden keeps the hub's ends of all init sockets and a record of each
 * sandbox, and listens in a folder of its user's for the next hub.
 *
 *	hub gone	Sandboxes that it had not confirmed (WM_RECORD) are removed, the
 *			children of a fork all together; so are pending requests and the pool.
 *			Inits end the programs that the hub ran (IM_RESET).
 *	no hub		Sandboxes run on, at most for the time that the hub has set, and end at
 *			their own time to live. The warden ends with the last sandbox, or when
 *			its lock was removed from the folder, since no hub can find it any more.
 *	new hub		It receives the records of all sandboxes, and their sockets.
 *
 * Only the user of the first hub may connect, and only from outside every sandbox: the sandboxes of
 * an unprivileged user have the same uid, and the folder may be mounted into one. One hub is
 * connected at a time. After WM_END everything ends with the hub.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sock.h"
#include "box/wire/build_id.h"
#include "box/wire/peer.h"
#include "box/warden/internal.h"
#include "box/warden/message.h"

enum { BACKLOG = 8, HELLO_MS = 5000, LOOK_MS = 10000 };

static struct {
	int null;
	uid_t owner;
	bool ends; /* everything ends with the present hub */
	bool is_new; /* the hub has connected and said nothing yet */
	uint64_t hello_until, alone_at, alone_until; /* clock_ms() */
	uint64_t linger_ms;
	uint32_t epoch; /* epoch of the last IM_RESET */
} keep;

/* ---- who may connect ------------------------------------------------------------------------- */

static int peer_of(int socket, struct ucred *ret_peer)
{
	socklen_t n = sizeof(*ret_peer);

	return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, ret_peer, &n);
}

static bool may_connect(int socket)
{
	struct ucred cred;
	struct peer peer;
	autoclose int pidfd = -1;

	if (peer_of(socket, &cred) < 0 || cred.uid != keep.owner)
		return false;
	pidfd = peer_open(socket, cred.pid);
	return pidfd >= 0 && peer_read(warden.host.proc, cred.pid, &peer) == 0 &&
	       !peer_has_ended(pidfd) && peer_is_beside_us(warden.host.proc, &peer);
}

int keep_start(const struct wm_hello *m, struct err *e)
{
	struct ucred hub;

	keep.null = open("/h/dev/null", O_RDWR | O_CLOEXEC);
	keep.linger_ms = m->linger_ms;
	/* the uid as seen in our own user namespace */
	if (keep.null < 0 || peer_of(warden.hub, &hub) < 0)
		return err_sys(e, errno, "prepare for being without a hub");
	keep.owner = hub.uid;
	if (fcntl(WARDEN_LISTENER_FD, F_SETFL, O_NONBLOCK) < 0 ||
	    listen(WARDEN_LISTENER_FD, BACKLOG) < 0 ||
	    watch(WARDEN_LISTENER_FD, NULL, TAG_LISTENER) < 0)
		return err_sys(e, errno, "listen for the next hub");
	warden.kept = true;
	return 0;
}

/* ---- a hub comes ----------------------------------------------------------------------------- */

/* True when the hub has ended and the loop does not know yet. */
static bool hub_hung_up(void)
{
	struct pollfd p = { .fd = warden.hub, .events = 0 };

	return warden.hub >= 0 && poll(&p, 1, 0) == 1 && (p.revents & POLLHUP);
}

void hub_arrived(void)
{
	struct wm_greet m = { .h = { WM_GREET, 0 }, .version = WIRE_VERSION };
	autoclose int socket = accept4(WARDEN_LISTENER_FD, NULL, NULL, SOCK_CLOEXEC);

	if (socket < 0)
		return;
	if (!may_connect(socket)) {
		log_warn("somebody who may not has connected to the warden");
		return;
	}
	while (hub_hung_up())
		hub_says();
	m.state = warden.closing  ? WM_GREET_ENDING
		: warden.hub >= 0 ? WM_GREET_BUSY
				  : WM_GREET_FREE;
	snprintf(m.build, sizeof(m.build), "%s", BUILD_ID);
	if (sock_send(socket, &m, sizeof(m), NULL, 0, MSG_DONTWAIT) < 0 ||
	    m.state != WM_GREET_FREE || watch(socket, NULL, TAG_HUB) < 0)
		return;
	warden.hub = take_fd(&socket);
	keep.is_new = true;
	keep.hello_until = clock_ms() + HELLO_MS;
}

bool hub_is_new(void)
{
	return keep.is_new;
}

static void hand_over(const struct sandbox *b)
{
	static char message[WIRE_MAX];
	const struct wm_adopt m = { .h = { WM_ADOPT, 0 },
				    .key = b->key,
				    .dies_at_ms = b->dies_at_ms,
				    .paused = warden.cgroups.dirs[CG_FREEZER] >= 0 ? b->paused
										   : b->still,
				    .asleep = b->sleep != SANDBOX_AWAKE };

	memcpy(message, &m, sizeof(m));
	memcpy(message + sizeof(m), b->record, b->record_n);
	send_hub(message, sizeof(m) + b->record_n, &b->socket, !m.asleep);
}

static void hand_over_all(void)
{
	struct wm_ready ready = {
		.h = { WM_READY, 0 },
		.driver = warden.cgroups.driver,
		.rootless = warden.host.rootless,
		.can_freeze = warden.cgroups.dirs[CG_FREEZER] >= 0,
		.adopted = warden.n_live,
		.epoch = ++keep.epoch,
	};

	send_hub(&ready, sizeof(ready), NULL, 0);
	for (uint32_t i = 0; i < warden.n_sandboxes; i++) {
		if (warden.sandboxes[i].state == SANDBOX_LIVE)
			hand_over(&warden.sandboxes[i]);
	}
}

/* When it ends without a hub; 0: never. */
static uint64_t sandbox_due(const struct sandbox *b)
{
	uint64_t idle = b->idle_ms ? keep.alone_at + b->idle_ms : 0;

	if (b->state != SANDBOX_LIVE)
		return 0;
	return idle && (!b->dies_at_ms || idle < b->dies_at_ms) ? idle : b->dies_at_ms;
}

static void end_overdue(uint64_t now)
{
	for (uint32_t i = 0; i < warden.n_sandboxes; i++) {
		uint64_t due = sandbox_due(&warden.sandboxes[i]);

		if (!due || due > now)
			continue;
		log_info("a sandbox has reached its time to live");
		sandbox_kill(&warden.sandboxes[i]);
	}
}

void hub_begins(const struct wm_hello *m, size_t n, int log)
{
	struct wm_failed failed = { .h = { WM_FAILED, 0 } };

	if (!message_is_hello(m, n, BUILD_ID)) {
		hub_gone();
		return;
	}
	if (warden_set_anew(m, &failed.err) < 0) {
		if (sock_send(warden.hub, &failed, sizeof(failed), NULL, 0, MSG_DONTWAIT) < 0)
			log_debug("the hub hears nothing: %s", strerror(errno));
		hub_gone();
		return;
	}
	keep.is_new = false;
	keep.linger_ms = m->linger_ms;
	if (log >= 0)
		dup2(log, STDERR_FILENO);
	end_overdue(clock_ms());
	hand_over_all();
	warden.refill_at = clock_ms();
}

int keep_record(const struct hub_message *in, struct err *e)
{
	const struct wm_record *m = in->p;
	size_t n = in->n - sizeof(*m);
	struct sandbox *b = sandbox_find(m->key);
	char *record = b ? mem_dup(m + 1, n) : NULL;

	(void)e;
	if (!record) /* it has just ended; or without memory it stays unconfirmed */
		return 0;
	free(b->record);
	b->record = record;
	b->record_n = n;
	b->dies_at_ms = m->dies_at_ms;
	b->idle_ms = m->idle_ms;
	b->still = m->paused;
	return 0;
}

/* ---- a hub goes ------------------------------------------------------------------------------ */

static void forsake_requests(void)
{
	forsake_copies();
	for (uint32_t i = 0; i < warden.n_sandboxes; i++) {
		struct request *r = warden.sandboxes[i].request;

		if (!r)
			continue;
		drop_request_sandboxes(r);
		free(r);
	}
}

static void kill_group(uint32_t made_seq)
{
	for (uint32_t i = 0; i < warden.n_sandboxes; i++) {
		if (warden.sandboxes[i].state == SANDBOX_LIVE &&
		    warden.sandboxes[i].made_seq == made_seq)
			sandbox_kill(&warden.sandboxes[i]);
	}
}

/* Ends what no hub knows of: the pool, and unconfirmed sandboxes. */
static void undo_unconfirmed(void)
{
	for (uint32_t i = 0; i < warden.n_sandboxes; i++) {
		struct sandbox *b = &warden.sandboxes[i];

		if (b->state == SANDBOX_READY || (b->state == SANDBOX_STARTING && b->filling))
			sandbox_kill(b);
		else if (b->state == SANDBOX_LIVE && !b->record)
			kill_group(b->made_seq);
	}
}

/* The hub that started the programs, and would have ended them in time, is gone: tells inits to end
 * them. */
static void reset_all(void)
{
	struct im_reset m = { .h = { IM_RESET, ++keep.epoch } };

	for (uint32_t i = 0; i < warden.n_sandboxes; i++) {
		struct sandbox *b = &warden.sandboxes[i];

		b->made_seq = 0;
		b->answer_destroy = false;
		b->sleep_seq = b->wake_seq = 0;
		m.stay_stopped = b->still;
		if (b->state == SANDBOX_LIVE && b->sleep == SANDBOX_AWAKE &&
		    sock_send(b->socket, &m, sizeof(m), NULL, 0, MSG_DONTWAIT) < 0)
			log_debug("an init hears nothing: %s", strerror(errno));
	}
}

void hub_gone(void)
{
	bool was_new = keep.is_new;

	unwatch(&warden.hub);
	keep.is_new = false;
	if (!warden.kept || keep.ends)
		warden.closing = true;
	if (was_new || warden.closing)
		return;
	log_info("the hub is gone; %u sandboxes wait for another one", warden.n_live);
	dup2(keep.null, STDERR_FILENO); /* the hub's pipe, which somebody may read to its end */
	forsake_requests();
	undo_unconfirmed();
	reset_all();
	keep.alone_at = clock_ms();
	keep.alone_until = keep.alone_at + keep.linger_ms;
}

int end_with_hub(const struct hub_message *in, struct err *e)
{
	(void)in;
	(void)e;
	keep.ends = true;
	return 0;
}

/* ---- without one ----------------------------------------------------------------------------- */

static bool can_be_found(void)
{
	struct stat st;

	return fstat(WARDEN_LOCK_FD, &st) == 0 && st.st_nlink > 0;
}

int keep_chores(uint64_t now)
{
	uint64_t next, wait;

	if (keep.is_new && now >= keep.hello_until)
		hub_gone();
	if (warden.closing || (warden.hub >= 0 && !keep.is_new))
		return -1;
	end_overdue(now);
	if (!keep.is_new && (!warden.n_live || now >= keep.alone_until || !can_be_found())) {
		warden.closing = true;
		return 0;
	}
	next = keep.is_new ? keep.hello_until : keep.alone_until;
	for (uint32_t i = 0; i < warden.n_sandboxes; i++) {
		uint64_t due = sandbox_due(&warden.sandboxes[i]);

		if (due && due < next)
			next = due;
	}
	wait = next - now;
	return wait < LOOK_MS ? (int)wait : LOOK_MS;
}
