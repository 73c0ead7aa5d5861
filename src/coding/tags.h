#pragma once
/* What Universal Ctags prints of a symbol, in the form u-ctags. */
#include <stdint.h>

#include "base/buf.h"

struct tag {
	struct str path, name, kind;
	struct str scope, signature; /* may be empty */
	struct str text; /* its line, without blanks around it, or as much as ctags shows of it */
	uint64_t line;
};

/* Reads one line. False: it is no tag, or has too much for `room`. What the tag has is in the line
 * or in room, which is emptied first. */
bool tag_read(struct str line, struct buf *room, struct tag *ret);
