#pragma once
/* Files that a command line names. */
#include <limits.h>

#include "base/buf.h"

/* Appends the whole file. ERR_TOO_LARGE if it exceeds the buffer's maximum; else the system's
 * error. */
int file_read(const char *path, struct buf *to, struct err *e) MUST_USE;

/* The same of an open one; name: for messages. */
int file_read_fd(int fd, const char *name, struct buf *to, struct err *e) MUST_USE;

/* Writes all bytes, also if another process has made the descriptor non-blocking. Fails with the
 * system's error. */
int file_write_fd(int fd, const char *name, struct str bytes, struct err *e) MUST_USE;

/* Opens an empty file (0600) beside path, under the name *ret_new, to be renamed over it. What a
 * program that was killed left there goes. *ret_folder is to be closed after the rename: until then
 * this is ERR_CONFLICT for others. */
int file_beside(const char *path, char ret_new[PATH_MAX], int *ret_folder, struct err *e) MUST_USE;
