#pragma once
/* Finds where a value stands in the text of its document, for messages to people. */
#include "json/document/json.h"

/* The byte at which the value of a JSON pointer begins; d was parsed from text. Where the pointer
 * is cut, or leads to nothing, it is that of the last value on the way. */
size_t json_where(const struct json_doc *d, struct str text, const char *pointer);

/* The line of a byte, from 1. */
unsigned json_line(struct str text, size_t at);
