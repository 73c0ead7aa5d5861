#pragma once
#include <stdint.h>

#include "base/err.h"

/* Whether the kernel ends what can be written below a directory, or to a file, at `size` bytes or
 * earlier: at the end of the file system that it is on. tree may be open by O_PATH. ERR_NO_QUOTA:
 * it doesn't, or nobody can tell. */
int sized_check(int tree, uint64_t size, struct err *e) MUST_USE;
