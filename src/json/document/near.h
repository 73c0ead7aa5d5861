#pragma once
/* Names that were meant: how far one word is from another. The CLI uses it for its flags too. */
#include "base/str.h"

enum { NEAR_MAX = 64 };

/* Letters to insert, remove, change or swap with their neighbour; words of more than NEAR_MAX bytes
 * are near to nothing (UINT_MAX). */
unsigned near_distance(struct str a, struct str b);

/* The largest distance at which a word of this length is still a slip: 0 to 3. */
unsigned near_enough(struct str word);
