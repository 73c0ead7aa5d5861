/*
 * Finding a warden that outlives its hub: the folder, its lock, and its socket. The warden holds
 * the lock as long as it lives. Who gets the lock starts a warden, which inherits it; everybody
 * else connects. The holder of the lock removes a socket on which nobody listens any more. For a
 * moment both can fail (a warden starts or ends; a killed hub is not gone yet), so it is tried
 * again for a while.
 *
 * All of this blocks, since nothing else can be done meanwhile. A living warden answers at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/sock.h"
#include "box/host/internal.h"
#include "box/wire/build_id.h"
#include "box/wire/peer.h"

enum {
	START_MS = 15000, /* for a warden that another process starts, on a busy machine */
	AGAIN_MS = 3000, /* while sandboxes are in use, since this blocks */
	BUSY_MS = 2000, /* for a killed hub to be gone */
	FIND_PAUSE_US = 2000,
	ANSWER_S = 5, /* for each message that the warden must send */
	ADOPT_PATIENCE_MS = 5000, /* for inits, which may have many programs to end */
};
#define WARDEN_NAME "holt-warden"

/* ---- the folder ------------------------------------------------------------------------------ */

static int open_folder(const char *path, struct err *e)
{
	autoclose int dir = -1;
	struct stat st;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "make the warden's folder");
	dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || fstat(dir, &st) < 0)
		return err_sys(e, errno, "open the warden's folder");
	if (st.st_uid != geteuid() || (st.st_mode & 077))
		return err_set(e, ERR_DENIED,
			       "the warden's folder must be yours, and nobody else may enter it "
			       "(chmod 700)");
	return take_fd(&dir);
}

/* Takes the lock; -1 if somebody else has it, or removes it. */
static int take_lock(int dir)
{
	autoclose int lock = openat(dir, WARDEN_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
				    0600);
	struct stat st;

	if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0 || fstat(lock, &st) < 0)
		return -1;
	/* its last holder may have removed the file */
	return st.st_nlink ? take_fd(&lock) : -1;
}

/* By the folder's descriptor, since a socket's path has at most 107 bytes. */
static struct sockaddr_un socket_address(int dir)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/" WARDEN_SOCKET, dir);
	return a;
}

/* ---- a new warden ---------------------------------------------------------------------------- */

static int bind_socket(int dir, struct err *e)
{
	const struct sockaddr_un a = socket_address(dir);
	autoclose int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	mode_t mask = umask(0177);
	int failed = listener < 0 || (unlinkat(dir, WARDEN_SOCKET, 0) < 0 && errno != ENOENT) ||
		     bind(listener, (const struct sockaddr *)&a, sizeof(a)) < 0;

	umask(mask);
	return failed ? err_sys(e, errno, "make the warden's socket") : take_fd(&listener);
}

static int start_new(struct box *box, int dir, int lock, struct err *e)
{
	autoclose int listener = bind_socket(dir, e);
	const int kept[] = { listener, lock, dir };

	if (listener >= 0 && box_warden_spawn(box, kept, e) == 0)
		return 0;
	unlinkat(dir, WARDEN_SOCKET, 0);
	unlinkat(dir, WARDEN_LOCK, 0);
	return -1;
}

/* ---- one that lives -------------------------------------------------------------------------- */

/* Receives the next message of the warden, with a descriptor if there is one. */
static ssize_t receive(struct box *box, int *ret_fd)
{
	size_t n_fds = 1;
	ssize_t n;

	do {
		n = sock_recv(box->socket, box->message, sizeof(box->message), ret_fd, &n_fds, 0);
	} while (n < 0 && errno == EINTR);
	if (n == 0)
		errno = EPIPE;
	return n > 0 ? n : -1;
}

static int no_answer(struct err *e)
{
	if (errno == EAGAIN)
		return err_set(e, ERR_TIMEOUT, "the warden does not answer");
	return err_set(e, ERR_TRANSPORT, "the warden has ended");
}

/* A sandbox of an unprivileged user has the user's uid. If this folder were mounted in it, it could
 * pose as a warden; so the name and the namespaces are checked too. */
static bool is_warden(pid_t pid)
{
	autoclose int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct peer peer;

	return proc >= 0 && peer_read(proc, pid, &peer) == 0 &&
	       strcmp(peer.name, WARDEN_NAME) == 0 && peer_is_beside_us(proc, &peer);
}

/* Checks that the listener is a warden of this user, outside of any sandbox, and opens its
 * pidfd. */
static int know_peer(struct box *box, struct err *e)
{
	struct ucred peer;
	socklen_t n = sizeof(peer);
	bool warden;

	if (getsockopt(box->socket, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
		return err_sys(e, errno, "ask who the warden is");
	if (peer.uid != geteuid())
		return err_set(e, ERR_DENIED, "the warden's socket is somebody else's");
	box->pidfd = peer_open(box->socket, peer.pid);
	warden = box->pidfd >= 0 && is_warden(peer.pid);
	/* otherwise the check may have read another process */
	if (box->pidfd < 0 || peer_has_ended(box->pidfd))
		return err_set(e, ERR_TRANSPORT, "the warden has ended");
	if (!warden)
		return err_set(e, ERR_DENIED, "who listens at the warden's socket is no warden");
	return 0;
}

static int read_greeting(struct box *box, struct err *e)
{
	const struct wm_greet *m = (const void *)box->message;
	int fd = -1;
	ssize_t n = receive(box, &fd);

	close_fd(&fd);
	if (n < 0)
		return no_answer(e);
	if (n < (ssize_t)sizeof(*m) || m->h.type != WM_GREET || m->version != WIRE_VERSION ||
	    strncmp(m->build, BUILD_ID, sizeof(m->build)) != 0)
		return err_set(e, ERR_OTHER_BUILD,
			       "a holt-warden of another build holds the sandboxes here");
	if (m->state == WM_GREET_ENDING)
		return err_set(e, ERR_TRANSPORT, "the warden ends");
	if (m->state != WM_GREET_FREE)
		return err_set(e, ERR_CONFLICT, "another process of Holt has the sandboxes here");
	return 0;
}

static void hang_up(struct box *box)
{
	box_warden_forget(box);
	close_fd(&box->socket);
}

static int connect_to(struct box *box, int dir, struct err *e)
{
	const struct sockaddr_un a = socket_address(dir);
	const struct timeval patience = { .tv_sec = ANSWER_S };

	box->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (box->socket < 0)
		return err_sys(e, errno, "socket");
	setsockopt(box->socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(box->socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(box->socket, (const struct sockaddr *)&a, sizeof(a)) < 0) {
		err_sys(e, errno, "connect to the warden");
		if (errno == ECONNREFUSED || errno == ENOENT)
			e->code = ERR_TRANSPORT;
	} else if (know_peer(box, e) == 0 && read_greeting(box, e) == 0) {
		return 0;
	}
	hang_up(box);
	return -1;
}

/* ---- adoption -------------------------------------------------------------------------------- */

static struct sandbox *find_unanswering(const struct box *box)
{
	struct sandbox *sb = box->sandboxes;

	while (sb && (!sb->epoch || sb->paused))
		sb = sb->next;
	return sb;
}

static void on_impatience(uv_timer_t *t)
{
	struct sandbox *sb;

	while ((sb = find_unanswering(t->data))) {
		log_error("sandbox %s: its first process does not answer; ending it", sb->id);
		box_lose(sb);
	}
}

static int start_patience(struct box *box, struct err *e)
{
	if (!box->adopt_timer) {
		box->adopt_timer = calloc(1, sizeof(*box->adopt_timer));
		if (!box->adopt_timer)
			return err_set(e, ERR_LIMIT, "out of memory");
		uv_timer_init(box->loop, box->adopt_timer);
		box->adopt_timer->data = box;
	}
	uv_update_time(box->loop); /* finding the warden took time */
	uv_timer_start(box->adopt_timer, on_impatience, ADOPT_PATIENCE_MS, 0);
	return 0;
}

void box_keep_pause(struct sandbox *sb)
{
	struct err e = ERR_INIT;

	if (sb->box->warden_dir && record_send(sb, &e) < 0)
		log_warn("sandbox %s: whether it is paused is not kept: %s", sb->id, e.msg);
	if (sb->epoch && !sb->paused && start_patience(sb->box, &e) < 0)
		log_warn("sandbox %s: %s", sb->id, e.msg);
}

/* Adopts a sandbox. One that can't be adopted is ended, and logged: it must not run on unknown. */
static void keep_adopt(struct box *box, size_t n, int fd, uint32_t epoch)
{
	const struct wm_adopt *m = (const void *)box->message;
	uint64_t key = m->key;
	struct err e = ERR_INIT;
	struct sandbox *sb = record_read(box, (const char *)(m + 1), n - sizeof(*m), &e);

	if (sb) {
		sb->paused = m->paused;
		sb->stopped = m->paused && !box->can_freeze;
		sb->sleep = m->asleep ? SANDBOX_ASLEEP : SANDBOX_AWAKE;
	}
	if (sb && sandbox_go_live(sb, key, fd, m->dies_at_ms, &e) == 0) {
		if (!sb->sleep)
			sandbox_reset(sb, epoch);
	} else {
		log_error("a sandbox could not be adopted: %s", e.msg);
		box_discard(box, key);
		if (!sb && fd >= 0)
			close(fd);
	}
	sandbox_unref(sb);
}

static int adopt_all(struct box *box, uint32_t wanted, uint32_t epoch, struct err *e)
{
	const struct wm_head *h = (const void *)box->message;

	for (uint32_t i = 0; i < wanted; i++) {
		int fd = -1;
		ssize_t n = receive(box, &fd);

		if (n < (ssize_t)sizeof(struct wm_adopt) || h->type != WM_ADOPT) {
			close_fd(&fd);
			return n < 0 ? no_answer(e)
				     : err_set(e, ERR_BUG, "the warden hands over something else");
		}
		keep_adopt(box, (size_t)n, fd, epoch);
	}
	return 0;
}

/* Reads the answer to WM_HELLO. */
static int read_welcome(struct box *box, struct wm_ready *ret_ready, struct err *e)
{
	const struct wm_head *h = (const void *)box->message;
	int fd = -1, none = -1;
	ssize_t n = receive(box, &fd);

	close_fd(&fd);
	if (n < 0)
		return no_answer(e);
	if (h->type == WM_FAILED && n >= (ssize_t)sizeof(struct wm_failed)) {
		*e = ((const struct wm_failed *)h)->err;
		return -1;
	}
	if (h->type != WM_READY || n < (ssize_t)sizeof(*ret_ready))
		return err_set(e, ERR_BUG, "the warden answers with something else");
	memcpy(ret_ready, h, sizeof(*ret_ready));
	box_heard(box, &none);
	return 0;
}

static int take_over(struct box *box, struct err *e)
{
	struct wm_ready ready;

	box->start_error = ERR_INIT;
	uv_update_time(box->loop); /* deadlines of sandboxes count from now */
	if (box_warden_hello(box, STDERR_FILENO, e) == 0 && read_welcome(box, &ready, e) == 0 &&
	    adopt_all(box, ready.adopted, ready.epoch, e) == 0 && start_patience(box, e) == 0 &&
	    box_warden_watch(box, e) == 0) {
		log_info("%u sandboxes are adopted", ready.adopted);
		return 0;
	}
	while (box->sandboxes)
		sandbox_end(box->sandboxes, e);
	box_close_handle(take_ptr(box->adopt_timer));
	box_warden_drop(box);
	hang_up(box);
	box->state = BOX_DEAD;
	return -1;
}

/* ---- all together ---------------------------------------------------------------------------- */

/* ERR_CONFLICT and ERR_TRANSPORT mean that another try may succeed. */
static int try_to_start(struct box *box, struct err *e)
{
	autoclose int dir = open_folder(box->warden_dir, e);
	autoclose int lock = dir < 0 ? -1 : take_lock(dir);

	if (dir < 0)
		return -1;
	if (lock >= 0)
		return start_new(box, dir, lock, e);
	return connect_to(box, dir, e) < 0 ? -1 : take_over(box, e);
}

static uint64_t patience_with(enum err_code code, bool again)
{
	if (code == ERR_CONFLICT)
		return BUSY_MS;
	return code != ERR_TRANSPORT ? 0 : again ? AGAIN_MS : START_MS;
}

int box_keep_start(struct box *box, struct err *e)
{
	const bool again = box->state == BOX_DEAD;
	uint64_t since = clock_ms();

	while (try_to_start(box, e) < 0) {
		if (clock_ms() - since >= patience_with(e->code, again))
			return -1;
		usleep(FIND_PAUSE_US);
		*e = ERR_INIT;
	}
	return 0;
}
