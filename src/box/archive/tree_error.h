#pragma once
/* What a tree_failure is as an error. */
#include "base/err.h"
#include "box/archive/tar_tree.h"

/* f may come from inside of a sandbox, and say anything. path: of the whole, where f names none. -1
 * always. */
int tree_error(const struct tree_failure *f, const char *path, struct err *e);
