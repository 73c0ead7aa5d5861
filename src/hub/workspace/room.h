#pragma once
/* How much all stores of objects of a hub may keep. Blocking, for the work pool. */
#include <stdint.h>

#include "base/err.h"

struct room {
	const char *workspaces, *shots; /* their folders, which need not exist; NULL: none */
	uint64_t max; /* bytes; 0: no bound */
};

/* Bytes that may be added: of the objects there the bytes of all files count. UINT64_MAX: no
 * bound. */
int room_left(const struct room *r, uint64_t *ret, struct err *e) MUST_USE;
