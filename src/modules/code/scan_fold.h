#pragma once
/* The letter or digit that a character is, or looks like, in lower case; ' ' for what parts words,
 * 0 for what is not seen or is a mark on a letter, and SCAN_FOLD_OTHER for letters of other
 * scripts. */
#include <stdint.h>

enum { SCAN_FOLD_OTHER = 0x7f };

char scan_fold(uint32_t c);
