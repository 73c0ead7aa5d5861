/*
 * The broom: a helper of the warden that removes layers which nobody needs any more. Whoever unmounts one
 * waits for a grace period of the kernel and frees all that was in it, which may be gigabytes; in the
 * warden every other sandbox would wait for that.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "box/warden/warden.h"

/* Of the socket's buffer, which is that of some thirty layers. While it is full the warden removes them itself, so that what
 * has ended never holds much more memory than what lives. */
enum { QUEUE_BYTES = 12 * 1024 };

static int broom = -1; /* its socket */

/* Keeps nothing open that is not needed: the hub's standard error is a pipe that somebody may read to
 * its end. */
static _Noreturn void broom_main(int from)
{
	enum { SOCKET = STDERR_FILENO + 1 };
	int null = open("/h/dev/null", O_RDWR | O_CLOEXEC);
	uint32_t layer;

	prctl(PR_SET_NAME, "holt-broom");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(null, STDERR_FILENO) < 0 || dup2(from, SOCKET) < 0)
		_exit(1);
	syscall(SYS_close_range, SOCKET + 1, ~0u, 0);
	while (recv(SOCKET, &layer, sizeof(layer), 0) == (ssize_t)sizeof(layer))
		store_layer_remove(layer);
	_exit(0);
}

int broom_start(struct err *e)
{
	const int bytes = QUEUE_BYTES;
	int sockets[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return err_sys(e, errno, "socketpair");
	setsockopt(sockets[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	pid = fork();
	if (pid == 0)
		broom_main(sockets[1]);
	close(sockets[1]);
	if (pid < 0) {
		close(sockets[0]);
		return err_sys(e, errno, "start the broom");
	}
	broom = sockets[0];
	return 0;
}

bool broom_take(uint32_t layer)
{
	if (broom < 0)
		return false;
	if (send(broom, &layer, sizeof(layer), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return true;
	if (errno != EAGAIN) {
		log_warn("the broom has ended: %s", strerror(errno));
		close(broom);
		broom = -1;
	}
	return false;
}
