#pragma once
/* Spelling suggestions: the distance between two words. The CLI uses it for its flags too. */
#include "base/str.h"

enum { NEAR_MAX = 64 };

/* The number of letters to insert, remove, change or swap with their neighbour. UINT_MAX for words
 * of more than NEAR_MAX bytes. */
unsigned near_distance(struct str a, struct str b);

/* The largest distance at which a word of this length counts as a misspelling: 0 to 3. */
unsigned near_enough(struct str word);
