#pragma once
/*
 * Prints untrusted text on a terminal. No byte may act as a command to the terminal or disguise
 * other text: control characters (C0, DEL, C1), direction marks, invisible separators and bytes
 * that are not UTF-8 are printed as escapes.
 */
#include <stdio.h>

#include "json/document/json.h"

/* Prints lines, each indented by `indent` spaces. CR before a line's end is dropped. Output ends
 * with a line break unless it is empty. */
void safe_text(FILE *out, struct str text, unsigned indent);

/* In one line: line breaks are escaped too. */
void safe_line(FILE *out, struct str text);

/* The same, and a line break. */
void safe_puts(FILE *out, struct str text);

/* The same, cut at `max` bytes and "…". */
void safe_short(FILE *out, struct str text, size_t max);

/* Prints a value as JSON in one line, without a final line break. What safe_text() escapes is
 * written as \u. -1 with ERR_LIMIT or ERR_TOO_LARGE. */
int safe_json(FILE *out, const struct json_val *v, struct err *e) MUST_USE;

/* The same for JSON that json/document/write.h wrote. */
void safe_json_text(FILE *out, struct str json);

/* The same, and a line break. */
void safe_json_puts(FILE *out, struct str json);

/* Prints a value in several lines, all but the first indented by `indent` spaces. */
int safe_json_lines(FILE *out, const struct json_val *v, unsigned indent, struct err *e) MUST_USE;
