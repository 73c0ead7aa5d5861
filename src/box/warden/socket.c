/*
 * Makes sockets in a sandbox's own network, from which the hub connects, or at which the proxy of
 * network grants listens (net/egress). Init could make them, too,
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
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "box/warden/internal.h"

enum { STACK_BYTES = 16 << 10 };

/* On return either all sockets are there, or errnum says why none is. */
struct socket_request {
	const struct wm_socket *m;
	int pidfd; /* of the sandbox's first process; -1: it is asleep */
	int *net; /* the network that lasts; -1: none yet */
	int fds[WIRE_SOCKETS_MAX];
	size_t n;
	int errnum;
};

enum { BACKLOG = 128 };

static int bind_socket(int fd, const struct wm_address *at)
{
	const struct sockaddr_in a = { .sin_family = AF_INET,
				       .sin_port = htons(at->port),
				       .sin_addr.s_addr = htonl(at->ip) };
	const int on = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
		return -1;
	return at->datagram ? 0 : listen(fd, BACKLOG);
}

/* One more, at the address or nowhere yet. */
static int add_socket(struct socket_request *s, const struct wm_address *at)
{
	int type = at && at->datagram ? SOCK_DGRAM : SOCK_STREAM;
	int fd = socket((int)s->m->family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	s->fds[s->n++] = fd;
	return at ? bind_socket(fd, at) : 0;
}

/* Sockets that listen outlive the process: so must the network. A sandbox that sleeps gets here the
 * one that it will wake in. */
static int enter_network(struct socket_request *s)
{
	if (*s->net >= 0)
		return setns(*s->net, CLONE_NEWNET);
	if ((s->pidfd >= 0 ? setns(s->pidfd, CLONE_NEWNET) : spawn_make_net()) < 0)
		return -1;
	if (s->m->n)
		*s->net = openat(warden.host.proc, "self/ns/net", O_RDONLY | O_CLOEXEC);
	return s->m->n && *s->net < 0 ? -1 : 0;
}

static int in_its_network(void *arg)
{
	struct socket_request *s = arg;
	int failed = enter_network(s);

	if (!failed && !s->m->n)
		failed = add_socket(s, NULL);
	for (uint32_t i = 0; !failed && i < s->m->n; i++)
		failed = add_socket(s, &s->m->at[i]);
	if (failed)
		s->errnum = errno;
	return 0;
}

static int socket_failed(const struct socket_request *s, struct err *e)
{
	switch (s->errnum) {
	case ESRCH:
		return err_set(e, ERR_SANDBOX_NOT_FOUND, "the sandbox has ended");
	case EAFNOSUPPORT: /* a kernel without IPv6: nobody listens there */
		return err_set(e, ERR_PORT, "there is no such network in the sandbox");
	case EADDRINUSE:
		return err_set(e, ERR_CONFLICT,
			       "a program in the sandbox listens at port %u already",
			       s->m->at[s->n - 1].port);
	default:
		return err_sys(e, s->errnum, "make a socket in the sandbox");
	}
}

int give_socket(const struct hub_message *in, struct err *e)
{
	const struct wm_socket *m = in->p;
	static char stack[STACK_BYTES] __attribute__((aligned(16)));
	const struct wm_head made = { WM_SOCKET_MADE, m->h.seq };
	struct sandbox *b = sandbox_find(m->key);
	struct socket_request s = { .m = m };
	pid_t pid;

	if (!b)
		return err_set(e, ERR_SANDBOX_NOT_FOUND, "the sandbox has ended");
	if (b->sleep != SANDBOX_AWAKE && !m->n)
		return err_set(e, ERR_PORT, "nothing runs in the sandbox");
	if (m->family != AF_INET && (m->family != AF_INET6 || m->n))
		return err_set(e, ERR_BUG, "a family that the warden does not know");
	if (b->sleep == SANDBOX_WAKING && b->net < 0)
		return err_set(e, ERR_CONFLICT, "the sandbox is waking up: try again");
	s.pidfd = b->sleep == SANDBOX_AWAKE ? b->pidfd : -1;
	s.net = &b->net;
	pid = clone(in_its_network, stack + sizeof(stack),
		    CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, &s);
	if (pid < 0)
		return err_sys(e, errno, "enter the sandbox's network");
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (!s.errnum)
		send_hub(&made, sizeof(made), s.fds, s.n);
	for (size_t i = 0; i < s.n; i++)
		close(s.fds[i]);
	return s.errnum ? socket_failed(&s, e) : 0;
}
