#pragma once
/* The text that costs redaction the most for a byte, as far as a search finds it. */
#include "base/str.h"

struct redactor;

/* Processor time in seconds for n bytes of the unit again and again, in pieces of a stream. */
double worst_time(struct redactor *r, struct str unit, size_t n, size_t piece);

/*
 * Prints a row for each unit of the file, then looks for worse ones: of the tables' texts (tests/
 * redact/unit.h) the worst are altered at random, for so many seconds of processor time, and the
 * worst of all is printed. With `keep`, it is added to the file, so that the next search begins
 * there. A line of the file is a unit, with the escapes of C.
 */
void worst_measure(struct redactor *r, const char *file, int seconds, bool keep);
