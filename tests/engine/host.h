#pragma once
/* What of an engine could be seen on the host, so that before and after can be compared. */
#include <stdbool.h>
#include <stddef.h>

enum { HOST_MOUNTS_MAX = 64 * 1024, HOST_GROUPS_MAX = 16 * 1024 };

struct host_state {
	size_t fds; /* of this process */
	char mounts[HOST_MOUNTS_MAX]; /* /proc/self/mountinfo */
	char groups[HOST_GROUPS_MAX]; /* control groups of wardens, a line each */
};

void host_look(struct host_state *ret_state);

/* Waits up to five seconds until all is as it was, no child of this process is left, and no control
 * group of a warden that is gone. False with what is different. */
bool host_same(const struct host_state *was, char *ret_left, size_t n);

/* rm -r */
void host_remove(const char *dir);

/* The number of open descriptors of a process, 0 where that can't be seen. */
size_t host_fds(int pid);
