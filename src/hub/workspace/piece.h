#pragma once
/*
 * Cuts a file into pieces where its content says so (a gear hash of the last bytes), so that an
 * insertion changes one or two pieces and the others are found again. A small file is one piece.
 */
#include "hub/workspace/tree.h"

enum { PIECE_MIN = 32 << 10, PIECE_MAX = 512 << 10 };

struct pieces {
	struct objects *objects;
	struct buf piece, list;
	uint64_t hash;
	struct tree_piece only; /* the first one */
	size_t n;
	uint64_t bytes;
};

void pieces_init(struct pieces *p, struct objects *o);
void pieces_fini(struct pieces *p);
void pieces_begin(struct pieces *p); /* the next file */
int pieces_add(struct pieces *p, struct str bytes, struct err *e) MUST_USE;
/* Sets type, id and bytes. */
int pieces_end(struct pieces *p, struct tree_entry *ret, struct err *e) MUST_USE;
