#pragma once
#include <stdint.h>

#include "base/err.h"

/* Whether the kernel limits the writes below a directory, or to a file, to `size` bytes or fewer,
 * by the size of its file system. tree may be opened with O_PATH. ERR_NO_QUOTA: it does not, or
 * that is unknown. */
int sized_check(int tree, uint64_t size, struct err *e) MUST_USE;
