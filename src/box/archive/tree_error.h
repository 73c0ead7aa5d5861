#pragma once
/* Turns a tree_failure into an error. */
#include "base/err.h"
#include "box/archive/tar_tree.h"

/* f may come from a sandbox and have any contents. path: named if f has no path. Returns -1. */
int tree_error(const struct tree_failure *f, const char *path, struct err *e);
