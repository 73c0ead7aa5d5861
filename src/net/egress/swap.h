#pragma once
/*
 * Texts that are replaced by others in a stream: placeholders by the secrets that they stand for,
 * and back. Pure. At each place the longest text counts, so that no rest of it stays behind.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

struct swap {
	struct str from, to; /* borrowed; from has 2 bytes at least */
	bool claims; /* those of a JSON Web Token that stand before it are replaced, too */
	size_t hits; /* counted */
};

struct swaps {
	struct swap *of; /* borrowed */
	size_t n;
	uint8_t pairs[8192]; /* a bit for each pair of bytes that any text begins with */
};

void swaps_init(struct swaps *s, struct swap *of, size_t n);

/* Appends the bytes with all texts replaced. Unless they are the end, the last of them wait if they
 * may be the beginning of a text: gives how many are done. -1 from the buffer. */
ssize_t swaps_run(const struct swaps *s, struct str bytes, bool end, struct buf *out,
		  struct err *e) MUST_USE;

/* The text that is all of this one, with claims before it where it may have them; NULL: none. */
struct swap *swaps_whole(const struct swaps *s, struct str text);
