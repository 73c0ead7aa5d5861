#pragma once
/* Characters that show nothing, or show what follows otherwise: control characters (C0, DEL, C1),
 * marks and overrides of direction, separators of lines, blanks without width, fillers and tags. A
 * text for a person's decision must not contain one as it is. Joiners are not among them, since
 * scripts need them. */
#include <stdint.h>

#include "base/buf.h"

bool hidden_char(uint32_t c);

/* The first character of a valid sequence of n bytes (utf8_next()). */
uint32_t hidden_char_of(const char *p, size_t n);

/* Appends JSON text with each such character in its strings as \uXXXX: the same document, to be
 * shown. What is not UTF-8 becomes U+FFFD. The text has no hidden characters outside of strings, as
 * that of json/document/write.h. */
int hidden_escape_json(struct buf *to, struct str json, struct err *e) MUST_USE;
