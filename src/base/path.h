#pragma once
/* How paths are spelt, and those of the host through folders in which others may have
 * put links. */
#include <limits.h>

#include "base/buf.h"

/* The name of an open file, which has no links in it, as the kernel has it now. -1 with errno. */
int path_of_fd(int fd, char ret[PATH_MAX]) MUST_USE;

/* Appends a path in its one spelling: without ".", "..", "//" and a slash at its end. A relative
 * one begins at base; base STR_NONE: it stays relative, and keeps a ".." with no name before
 * it. ".." removes the name before it also where that is a link. Nothing is looked up. */
int path_spell(struct str base, struct str said, struct buf *to, struct err *e) MUST_USE;

/* Makes the folder and those above it (0700). */
int path_make(const char *path, struct err *e) MUST_USE;

/* The absolute path of a file without links. One is followed only where it stands in a folder that
 * this process may not write: in any other, whoever was given the folder may have put it there. -1
 * with errno; with ELOOP *ret is that link's name. */
int path_resolve(const char *path, char ret[PATH_MAX]) MUST_USE;
