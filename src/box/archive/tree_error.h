#pragma once
/* What a tree_failure is as an error. */
#include "base/err.h"
#include "box/archive/tar_tree.h"

/* f may come from a sandbox and have any contents. path: names the whole if f names no path.
 * Returns -1. */
int tree_error(const struct tree_failure *f, const char *path, struct err *e);
