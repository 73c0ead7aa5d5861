#pragma once
/* What unpack.c (archives) and unpack_copy.c (directories) share. */
#include "box/archive/unpack.h"

int unpack_set_time(int fd, int64_t seconds); /* -1 with errno */

/* Copies what u says into the tree, and adds to the digest what it is. */
int unpack_copy(const struct unpack *u, struct tree *to, struct hash *digest,
		struct err *e) MUST_USE;
