/*
 * Makes sockets in a sandbox's own network, from which the hub connects. Init could make them, too,
 * but a program that has taken over init would keep a copy, and the settings of a socket hold for
 * all its holders: that it blocks, that its end lingers. So they are made from outside, and nobody
 * inside ever has them.
 *
 * A process that entered another network could not always come back, since the host's network
 * belongs to a user namespace that an unprivileged warden is no part of. So a child enters it,
 * which shares our memory and our descriptors, and we wait until it has ended: some tens of
 * microseconds.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "box/warden/internal.h"

enum { STACK_BYTES = 16 << 10 };

struct socket_request {
	int pidfd, family;
	int fd, errnum; /* the result */
};

static int in_its_network(void *arg)
{
	struct socket_request *s = arg;

	if (setns(s->pidfd, CLONE_NEWNET) == 0)
		s->fd = socket(s->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	s->errnum = s->fd < 0 ? errno : 0;
	return 0;
}

int give_socket(const struct hub_message *in, struct err *e)
{
	const struct wm_socket *m = in->p;
	static char stack[STACK_BYTES] __attribute__((aligned(16)));
	const struct wm_head made = { WM_SOCKET_MADE, m->h.seq };
	const struct body *b = find_body(m->key);
	struct socket_request s = { .fd = -1 };
	pid_t pid;

	if (!b)
		return err_set(e, ERR_SANDBOX_NOT_FOUND, "the sandbox has ended");
	if (b->sleep != BODY_AWAKE)
		return err_set(e, ERR_PORT, "nothing runs in the sandbox");
	if (m->family != AF_INET && m->family != AF_INET6)
		return err_set(e, ERR_BUG, "a family that the warden does not know");
	s.pidfd = b->pidfd;
	s.family = (int)m->family;
	pid = clone(in_its_network, stack + sizeof(stack),
		    CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, &s);
	if (pid < 0)
		return err_sys(e, errno, "enter the sandbox's network");
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (s.errnum == ESRCH)
		return err_set(e, ERR_SANDBOX_NOT_FOUND, "the sandbox has ended");
	if (s.errnum == EAFNOSUPPORT) /* a kernel without IPv6: nobody listens there */
		return err_set(e, ERR_PORT, "there is no such network in the sandbox");
	if (s.fd < 0)
		return err_sys(e, s.errnum ? s.errnum : EIO, "make a socket in the sandbox");
	send_hub(&made, sizeof(made), &s.fd, 1);
	close(s.fd);
	return 0;
}
