#pragma once
/* What of an engine could be seen on the host, so that before and after can be compared. */
#include <stdbool.h>
#include <stddef.h>

enum { HOST_MOUNTS_MAX = 64 * 1024, HOST_WARDENS_MAX = 32 };

struct host_state {
	size_t fds; /* of this process */
	char mounts[HOST_MOUNTS_MAX]; /* /proc/self/mountinfo */
	int wardens[HOST_WARDENS_MAX]; /* that ran since; their control groups carry their pid */
	size_t n_wardens;
};

void host_look(struct host_state *ret_state);

/* Remembers a warden, to look for what it leaves. */
void host_add_warden(struct host_state *state, int pid);

/* Waits up to fifteen seconds until all is as it was, and no child of this process nor a control
 * group of a warden is left. False with what is different. */
bool host_same(const struct host_state *was, char *ret_left, size_t n);

/* rm -r */
void host_remove(const char *dir);

/* The number of open descriptors of a process, 0 where that can't be seen. */
size_t host_fds(int pid);
