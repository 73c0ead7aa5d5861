#pragma once
/* Files that a command line names. */
#include "base/buf.h"

/* Appends all of it. ERR_TOO_LARGE where it has more than fits; else what the system says. */
int file_read(const char *path, struct buf *to, struct err *e) MUST_USE;

/* The same of an open one; name: for messages. */
int file_read_fd(int fd, const char *name, struct buf *to, struct err *e) MUST_USE;

/* All of it, also where others have made the descriptor one that does not block. What the system says else. */
int file_write_fd(int fd, const char *name, struct str bytes, struct err *e) MUST_USE;
