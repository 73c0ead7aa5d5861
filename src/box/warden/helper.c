/*
 * Helpers of the warden. The broom removes layers that are no longer needed: a process that
 * unmounts one waits for a grace period of the kernel and frees all that was in it, which may be
 * gigabytes. In the warden every other sandbox would wait for that. The janitor outlives the warden
 * and removes what the kernel does not remove with it: its control groups, and the socket and the
 * lock of a warden that outlives its hub. The end of a pipe tells it that the warden has ended.
 * Both hold the lock, so that nobody starts another warden in that folder before the names in it
 * are gone.
 *
 * Neither keeps open what it does not need: the hub's standard error is a pipe that somebody may
 * read to its end.
 *
 * Every container that sees the directory of control groups sees the lock on it, whatever PIDs mean
 * there; what is locked, or has another name, is left alone. A warden that ends in order reaps
 * every child first: in a container whose PID 1 does not reap, each would stay as a defunct
 * process.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sock.h"
#include "box/warden/internal.h"

/* ---- the broom ------------------------------------------------------------------------------- */

/* Size of the socket's buffer, enough for some thirty layers. While it is full the warden removes
 * layers itself, so that the layers of ended sandboxes never hold much more memory than those in
 * use. */
enum { QUEUE_BYTES = 12 * 1024 };

static int broom = -1; /* the broom's socket */
static pid_t broom_pid;
static bool broom_tried; /* we have tried to start it */

static _Noreturn void broom_main(int from)
{
	enum { SOCKET = STDERR_FILENO + 1 };
	int null = open("/h/dev/null", O_RDWR | O_CLOEXEC);
	uint32_t layer;
	size_t none = 0;

	prctl(PR_SET_NAME, "holt-broom");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(null, STDERR_FILENO) < 0 || dup2(from, SOCKET) < 0)
		_exit(1);
	syscall(SYS_close_range, SOCKET + 1, ~0u, 0);
	while (sock_recv(SOCKET, &layer, sizeof(layer), NULL, &none, 0) == (ssize_t)sizeof(layer))
		store_layer_remove(layer);
	_exit(0);
}

/* Called when the first layer is to be removed: a hub that runs one command never waits for it. */
static void broom_start(void)
{
	const int bytes = QUEUE_BYTES;
	int sockets[2];

	broom_tried = true;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0) {
		log_warn("the broom could not be started: %s", strerror(errno));
		return;
	}
	setsockopt(sockets[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	broom_pid = fork();
	if (broom_pid == 0)
		broom_main(sockets[1]);
	if (broom_pid > 0)
		broom = take_fd(&sockets[0]);
	else
		log_warn("the broom could not be started: %s", strerror(errno));
	close_fd(&sockets[0]);
	close_fd(&sockets[1]);
}

bool broom_take(uint32_t layer)
{
	if (!broom_tried)
		broom_start();
	if (broom < 0)
		return false;
	if (sock_send(broom, &layer, sizeof(layer), NULL, 0, MSG_DONTWAIT) >= 0)
		return true;
	if (errno != EAGAIN) {
		log_warn("the broom has ended: %s", strerror(errno));
		close(broom);
		broom = -1;
	}
	return false;
}

/* ---- the janitor ----------------------------------------------------------------------------- */

enum {
	TIME_MS = 10000,
	PAUSE_US = 2000,
	LATE_PAUSE_US = 100000, /* doubled after each look */
	LATE_PAUSE_MAX_US = 10000000,
	FDS_MAX = 256,
};

static int warden_end = -1; /* end of the pipe; open while the warden runs */

static void close_others(const struct cgroups *c, int pipe, bool kept)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	dup2(null, STDERR_FILENO);
	for (int fd = STDERR_FILENO + 1, from = fd; fd <= FDS_MAX; fd++) {
		bool keep = fd == pipe || fd == FDS_MAX ||
			    (kept && (fd == WARDEN_LOCK_FD || fd == WARDEN_DIR_FD));

		for (int i = 0; i < CG_CONTROLLERS; i++)
			keep = keep || fd == c->dirs[i] || fd == c->parents[i];
		if (keep && from < fd)
			syscall(SYS_close_range, from, fd - 1, 0);
		if (keep)
			from = fd + 1;
	}
}

static _Noreturn void janitor_main(const struct cgroups *c, int pipe, bool kept)
{
	uint64_t deadline;
	struct stat st;
	char byte;

	prctl(PR_SET_NAME, "holt-janitor");
	setsid();
	close_others(c, pipe, kept);
	/* Only the end of the pipe is the warden's: after a read that fails it may well live. */
	while (read(pipe, &byte, 1) < 0)
		usleep(PAUSE_US);
	if (kept) {
		/* if the lock was removed, the names in the folder may be another warden's */
		if (fstat(WARDEN_LOCK_FD, &st) == 0 && st.st_nlink) {
			unlinkat(WARDEN_DIR_FD, WARDEN_SOCKET, 0);
			unlinkat(WARDEN_DIR_FD, WARDEN_LOCK, 0);
		}
		close(WARDEN_LOCK_FD);
	}
	/* the sandboxes die with the warden, and their groups become empty */
	deadline = clock_ms() + TIME_MS;
	while (!cgroups_remove(c) && clock_ms() < deadline)
		usleep(PAUSE_US);
	/* A busy machine, or a disk that hangs, lets a process die late. The warden waits for its
	 * child, so another one outlasts that. */
	if (clock_ms() >= deadline && fork() != 0)
		_exit(0);
	for (useconds_t pause = LATE_PAUSE_US; !cgroups_remove(c);) {
		usleep(pause);
		pause = pause < LATE_PAUSE_MAX_US / 2 ? 2 * pause : LATE_PAUSE_MAX_US;
	}
	cgroups_step_back(c);
	_exit(0);
}

int janitor_start(const struct cgroups *c, bool kept, struct err *e)
{
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "pipe");
	pid = fork();
	if (pid == 0) {
		close(ends[1]);
		janitor_main(c, ends[0], kept);
	}
	close(ends[0]);
	warden_end = ends[1];
	return pid < 0 ? err_sys(e, errno, "start the janitor") : 0;
}

void helpers_end(void)
{
	if (broom_pid > 0)
		kill(broom_pid, SIGKILL);
	close_fd(&warden_end);
}
