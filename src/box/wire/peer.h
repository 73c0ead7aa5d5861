#pragma once
/*
 * The process at the other end of a socket: who connected, or began to listen. Its number
 * (SO_PEERCRED) may be another's by now, so a pidfd comes first; what /proc says of the number is
 * of that process if it lives afterwards. Part of hub and warden.
 */
#include <stdbool.h>
#include <sys/types.h>

/* A pidfd of it; -1: it has ended. Before Linux 6.5 the kernel can't say that, and it is one of the
 * number. */
int peer_open(int socket, pid_t pid);
bool peer_has_ended(int pidfd);

struct peer {
	char name[16]; /* of its program, as comm(5) has it */
	int depth; /* in how many pid namespaces it is, one within the other, as proc sees it */
};

/* proc: /proc, open. pid 0: this process. -1: it is not there, or nothing of that can be seen. */
int peer_read(int proc, pid_t pid, struct peer *ret);

/* Whether a process is in no sandbox: in as many pid namespaces as we are, not in more. */
bool peer_is_beside_us(int proc, const struct peer *peer);
