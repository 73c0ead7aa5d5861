#pragma once
/*
 * What strangers said, on a terminal. No byte of it reaches the terminal that could be a command to it, or
 * make text look like other text: controls (C0, DEL, C1), what turns the direction of writing, invisible
 * separators and bytes that are not UTF-8 are shown as escapes.
 */
#include <stdio.h>

#include "json/document/json.h"

/* Text of several lines, each behind `indent` spaces; CR before a line's end is dropped. Ends in a line break
 * unless it is empty. */
void safe_text(FILE *out, struct str text, unsigned indent);

/* In one line: line breaks are escaped too. */
void safe_line(FILE *out, struct str text);

/* The same, cut at `max` bytes and "…". */
void safe_short(FILE *out, struct str text, size_t max);

/* A value as JSON in one line, without a line break at its end. What safe_text() would escape is \u there.
 * -1 with ERR_LIMIT or ERR_TOO_LARGE. */
int safe_json(FILE *out, const struct json_val *v, struct err *e) MUST_USE;

/* The same of JSON that json/document/write.h has written. */
void safe_json_text(FILE *out, struct str json);

/* A value in many lines, each but the first behind `indent` spaces. */
int safe_json_lines(FILE *out, const struct json_val *v, unsigned indent, struct err *e) MUST_USE;
