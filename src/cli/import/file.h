#pragma once
/* The files that servers are added to: those of other clients, and the operator's. */
#include <limits.h>
#include <sys/stat.h>

#include "base/buf.h"

/* ~/ is the user's home. */
int import_path(const char *file, char ret[PATH_MAX], struct err *e) MUST_USE;

/* Appends its text; nothing where it is not there, and then the folders above it are made. ret: its
 * path without links. ret_was: what was read; zeros: it is not there. */
int import_file_open(const char *file, char ret[PATH_MAX], struct buf *to, struct stat *ret_was,
		     struct err *e) MUST_USE;

/* A file beside it takes its place, so that no reader sees a half. mode 0: as it was, else 0600.
 * was: of import_file_open(). ERR_CONFLICT: it was written meanwhile. A file that root writes keeps
 * its owner. */
int import_file_write(const char *path, mode_t mode, const struct stat *was, struct str text,
		      struct err *e) MUST_USE;

/* Appends JSON in lines, which are indented, without the brackets. */
int import_lines(struct str json, struct buf *to, struct err *e) MUST_USE;
