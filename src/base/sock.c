#include "base/sock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

enum { SHORT_TRIES = 20, SHORT_MS = 2 }; /* while the kernel is short of memory */

bool sock_passes(int errnum)
{
	return errnum == EAGAIN || errnum == EINTR || errnum == ENOMEM || errnum == ENOBUFS;
}

/* Whether a call that failed is to be made again, after a pause where the kernel is short. */
static bool try_again(int *tries)
{
	if (!sock_passes(errno) || errno == EAGAIN || ++*tries == SHORT_TRIES)
		return false;
	if (errno != EINTR)
		poll(NULL, 0, SHORT_MS);
	return true;
}

ssize_t sock_send(int socket, const void *msg, size_t n, const int *fds, size_t n_fds, int flags)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(SOCK_FDS_MAX * sizeof(int))];
	struct iovec iov = { .iov_base = (void *)msg, .iov_len = n };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c = (void *)control;
	ssize_t sent;
	int tries = 0;

	if (n_fds > SOCK_FDS_MAX) {
		errno = E2BIG;
		return -1;
	}
	if (n_fds) {
		memset(control, 0, CMSG_SPACE(n_fds * sizeof(int)));
		mh.msg_control = control;
		mh.msg_controllen = (socklen_t)CMSG_SPACE(n_fds * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = (socklen_t)CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	do {
		sent = sendmsg(socket, &mh, flags | MSG_NOSIGNAL);
	} while (sent < 0 && try_again(&tries));
	return sent;
}

ssize_t sock_recv_short(int socket, void *msg, size_t max, int *fds, size_t *n_fds, int flags,
			bool *ret_short)
{
	size_t room = *n_fds;
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(SOCK_FDS_MAX * sizeof(int))];
	struct iovec iov = { .iov_base = msg, .iov_len = max };
	struct msghdr mh = { .msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     /* not CMSG_SPACE: the kernel would put one more into its padding */
			     .msg_controllen = (socklen_t)CMSG_LEN(*n_fds * sizeof(int)) };
	struct cmsghdr *c;
	ssize_t n;
	int tries = 0;

	do {
		n = recvmsg(socket, &mh, flags | MSG_CMSG_CLOEXEC);
	} while (n < 0 && try_again(&tries));
	c = n < 0 ? NULL : CMSG_FIRSTHDR(&mh);
	*n_fds = 0;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		*n_fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(c), *n_fds * sizeof(int));
	}
	*ret_short = n >= 0 && (mh.msg_flags & MSG_CTRUNC) && *n_fds < room;
	return n;
}

ssize_t sock_recv(int socket, void *msg, size_t max, int *fds, size_t *n_fds, int flags)
{
	bool is_short;

	return sock_recv_short(socket, msg, max, fds, n_fds, flags, &is_short);
}
