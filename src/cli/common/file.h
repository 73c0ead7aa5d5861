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

/*
 * A file of the user's, which comes whole or not at all: it is written beside its place under a
 * name that nobody else has, and goes also where a signal ends the program. Links are followed, and
 * an old file keeps its mode. What is no regular file is written into as it is.
 */
struct file_out {
	int fd; /* to write into */
	int folder; /* -1: it is written in its place */
	char path[PATH_MAX], beside[64];
	bool is_new; /* nothing had the name */
};

/* path: "-" is standard output. ERR_CONFLICT: file_out_lock() of another program holds. */
int file_out_open(struct file_out *o, const char *path, struct err *e) MUST_USE;
/* Until file_out_end(), others that do the same in this folder have ERR_CONFLICT. */
int file_out_lock(const struct file_out *o, struct err *e) MUST_USE;
/* Closes it in any case. whole: it gets its name; else *e stays, and -1. A name that somebody took
 * meanwhile is ERR_CONFLICT. */
int file_out_end(struct file_out *o, bool whole, struct err *e) MUST_USE;
