#pragma once
/* UTF-8 (RFC 3629): no surrogates, no overlong forms, nothing above U+10FFFF. */
#include "base/str.h"

/* Looks at the sequence at the front of s (s.n > 0). True: it is one valid character of *ret_n
 * bytes. False: its first *ret_n bytes can't be part of any, and one U+FFFD stands for them (the
 * "maximal subpart" of the Unicode standard). */
bool utf8_next(struct str s, size_t *ret_n);

/* True where all of s is valid. */
bool utf8_valid(struct str s);

/* Characters of a valid text. */
size_t utf8_count(struct str s);

/* The longest front of s that has at most n bytes and cuts no character of a valid text. */
struct str utf8_cut(struct str s, size_t n);
