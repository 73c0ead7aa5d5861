#pragma once
/*
 * The process at the other end of a socket: the one that connected, or called listen(). Its pid
 * (SO_PEERCRED) may belong to another process by now. So a pidfd is opened first; what /proc says
 * of the pid is valid if that process is still alive afterwards. Used by hub and warden.
 */
#include <stdbool.h>
#include <sys/types.h>

/* A pidfd of it; -1: it has ended. Before Linux 6.5 the kernel can't give the peer's own pidfd, and
 * this is one of the pid. */
int peer_open(int socket, pid_t pid);
bool peer_has_ended(int pidfd);

struct peer {
	char name[16]; /* name of its program, as in comm(5) */
	int depth; /* number of nested pid namespaces that it is in, as seen from proc */
};

/* proc: /proc, open. pid 0: this process. -1: it does not exist, or /proc does not show it. */
int peer_read(int proc, pid_t pid, struct peer *ret);

/* Whether a process is outside of any sandbox: its pid namespaces are nested no deeper than
 * ours. */
bool peer_is_beside_us(int proc, const struct peer *peer);
