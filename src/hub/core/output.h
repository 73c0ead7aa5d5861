#pragma once
/*
 * The stored part of a program's output: all up to a budget, beyond that head and tail, with a line
 * between them that tells how much is missing. Memory is allocated as output arrives.
 */
#include <stdint.h>

#include "base/buf.h"

struct output {
	struct buf head, tail;
	bool ring; /* the tail is full and turns */
	size_t tail_at; /* where the ring begins */
	uint64_t total; /* bytes that came */
};

/* budget: bytes to keep, at least OUTPUT_MIN. */
enum { OUTPUT_MIN = 64 };
void output_init(struct output *o, size_t budget);
void output_fini(struct output *o);

/* If memory is short, the bytes count as elided. */
void output_add(struct output *o, const char *p, size_t n);

/* Appends the stored output. If something is elided, UTF-8 characters stay whole and *ret_elided
 * has the count; else it is 0. */
int output_text(const struct output *o, struct buf *to, uint64_t *ret_elided,
		struct err *e) MUST_USE;

/* Room for output_text() of any budget. */
static inline size_t output_text_max(size_t budget)
{
	return budget + OUTPUT_MIN;
}
