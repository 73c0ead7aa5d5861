#pragma once
/*
 * Reads a TOML document (v1.0.0) and writes it as one JSON object. Dates, times, inf and nan become
 * strings. Refused are duplicate keys, what extends a table or an array that is closed, invalid
 * UTF-8, control characters, and more than the limits below.
 */
#include "base/buf.h"

enum {
	TOML_BYTES_MAX = 1 << 20,
	TOML_VALUES_MAX = 16384, /* a table counts as one */
	TOML_DEPTH_MAX = 32,
};

/* ERR_INVALID with the line ("line 3: …"); ERR_TOO_LARGE. */
int toml_to_json(struct str text, struct buf *to, struct err *e) MUST_USE;
