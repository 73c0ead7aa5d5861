#pragma once
/*
 * Gives a file that was written beside its name that name, durably and as one step: where the
 * folder can't be synced, what had the name before has it again. So what is told as failed has no
 * effect.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* 0: it is done. -1 with errno: nothing has changed, and `beside` is gone. 1 with errno: it is done
 * or not, and the disk has not confirmed either. */
static inline __attribute__((warn_unused_result)) int publish(int folder, const char *beside,
							      const char *name)
{
	int swapped = renameat2(folder, beside, folder, name, RENAME_EXCHANGE) == 0;
	int errnum = swapped ? 0 : errno;
	int is_new = errnum == ENOENT, undone;

	/* EINVAL: the file system can't exchange. */
	if (is_new || errnum == EINVAL || errnum == ENOSYS)
		errnum = renameat(folder, beside, folder, name) < 0 ? errno : 0;
	if (errnum) {
		unlinkat(folder, beside, 0);
		errno = errnum;
		return -1;
	}
	if (fsync(folder) == 0) {
		if (swapped)
			unlinkat(folder, beside, 0);
		return 0;
	}
	errnum = errno;
	undone = swapped ? renameat2(folder, beside, folder, name, RENAME_EXCHANGE) == 0
			 : is_new && unlinkat(folder, name, 0) == 0;
	if (undone && swapped)
		unlinkat(folder, beside, 0);
	errno = errnum;
	return undone ? -1 : 1;
}
