#pragma once
/* UTF-8 (RFC 3629): no surrogates, no overlong forms, nothing above U+10FFFF. */
#include "base/str.h"

/* Examines the sequence at the front of s (s.n > 0). True: it is one valid character of *ret_n
 * bytes. False: its first *ret_n bytes are part of no character, and one U+FFFD replaces them (the
 * "maximal subpart" of the Unicode standard). */
bool utf8_next(struct str s, size_t *ret_n);

/* The number of bytes at the front of s that are valid characters. */
size_t utf8_run(struct str s);
/* True if all of s is valid. */
bool utf8_valid(struct str s);

/* The number of characters of a valid text. */
size_t utf8_count(struct str s);

/* The longest prefix of s that has at most n bytes and splits no character of a valid text. */
struct str utf8_cut(struct str s, size_t n);

/* A stranger's text, made fit for one line of a message: cut to less than n bytes, with blanks in
 * place of control characters. Borrowed from room. */
struct str utf8_line(struct str s, char *room, size_t n);
