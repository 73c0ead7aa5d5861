#pragma once
/* Shared by unpack.c (archives) and unpack_copy.c (directories). */
#include "box/archive/unpack.h"

int unpack_set_time(int fd, int64_t seconds); /* -1 with errno */

/* Copies the source of u into the tree, and adds it to the digest. */
int unpack_copy(const struct unpack *u, struct tree *to, struct hash *digest,
		struct err *e) MUST_USE;
