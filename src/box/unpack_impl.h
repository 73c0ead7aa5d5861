#pragma once
/* What unpack.c (archives) and unpack_copy.c (directories) share. */
#include "base/hash.h"
#include "box/tree.h"

int unpack_set_time(int fd, int64_t seconds); /* -1 with errno */

/* Copies the directory `from` into the tree, and adds to the digest what it is. */
int unpack_copy(int from, struct tree *to, struct hash *digest, struct err *e) MUST_USE;
