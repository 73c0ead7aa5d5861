#pragma once
/* Blocking reads and writes of whole buffers, locks, and the free space of a file's disk. */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* -1 with errno. When a disk gets full, a write is first short and only the next one fails. The
 * descriptor may be non-blocking, if another holder of a terminal or pipe has made it so. */
static inline int fd_write(int fd, const void *p, size_t n)
{
	for (const char *at = p; n > 0;) {
		ssize_t done = write(fd, at, n);

		if (done < 0 && errno == EAGAIN)
			poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, -1);
		else if (done < 0 && errno != EINTR)
			return -1;
		if (done > 0) {
			at += done;
			n -= (size_t)done;
		}
	}
	return 0;
}

/* Locks a file that its holder has as long as it lives (flock). One that was killed still has it
 * until the kernel is done with it, so this tries for three seconds. -1 with errno; EWOULDBLOCK: it
 * is held. */
static inline int fd_lock(int fd)
{
	for (int left = 300; flock(fd, LOCK_EX | LOCK_NB) < 0; left--) {
		if ((errno != EWOULDBLOCK && errno != EINTR) || left == 0)
			return -1;
		usleep(10000);
	}
	return 0;
}

/* True if the file's disk has less space free for its user. False also if that is unknown. */
static inline bool fd_disk_is_short(int fd, uint64_t bytes)
{
	struct statvfs v;

	return fstatvfs(fd, &v) == 0 && (uint64_t)v.f_bavail * v.f_frsize < bytes;
}

/* -1 with errno; errno is 0 if the input ended early. */
static inline int fd_read(int fd, void *p, size_t n)
{
	for (char *at = p; n > 0;) {
		ssize_t done = read(fd, at, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			errno = done ? errno : 0;
			return -1;
		}
		at += done;
		n -= (size_t)done;
	}
	return 0;
}
