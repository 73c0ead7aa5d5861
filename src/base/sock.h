#pragma once
/* Messages with descriptors over Unix sockets. */
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

enum { SOCK_FDS_MAX = 64 };

/* Whether a failed call on a socket says nothing of its peer, and may work the next time. What was
 * to be received is still there. */
bool sock_passes(int errnum);

/* sendmsg() with n_fds descriptors (at most SOCK_FDS_MAX; fds may be NULL for none). Retries after
 * a signal, for some 40 ms while the kernel is short of memory, and never raises SIGPIPE. flags:
 * those of sendmsg(). -1 with errno. */
ssize_t sock_send(int socket, const void *msg, size_t n, const int *fds, size_t n_fds, int flags);

/* recvmsg, which retries in the same way; *n_fds is how many descriptors fds can take (at most
 * SOCK_FDS_MAX), then how many came; more are closed. They are close-on-exec. 0 at the end, -1 with
 * errno (*n_fds is 0 then). */
ssize_t sock_recv(int socket, void *msg, size_t max, int *fds, size_t *n_fds, int flags);
/* The same. *ret_short: more descriptors were sent than this process could open. */
ssize_t sock_recv_short(int socket, void *msg, size_t max, int *fds, size_t *n_fds, int flags,
			bool *ret_short);
