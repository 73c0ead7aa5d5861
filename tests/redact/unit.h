#pragma once
/* Texts that give redaction work, made of what its tables look for. A text of one such unit again
 * and again has a candidate in each of its bytes. */
#include <stddef.h>
#include <stdint.h>

enum { UNIT_BYTES = 512 };

struct unit {
	char text[UNIT_BYTES];
	size_t n;
	uint64_t work; /* the caller's measure */
};

/* What does not fit is left out. */
void unit_add(struct unit *u, const char *p, size_t n);
/* Appends a piece at random: a pattern's beginning, a word, a separator, a name with its value. */
void unit_any(struct unit *u);
/* A number at random below n; each run has the same ones. */
unsigned unit_below(unsigned n);

/* Each name with each separator and beginning of a value, the beginning of each pattern. */
void units_of_tables(void (*each)(struct unit *u));
