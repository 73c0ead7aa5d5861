#pragma once
/*
 * An arena: many small allocations, one free. Each request has one; what is decoded from it
 * borrows from the arena, and what outlives the reply is copied by its receiver.
 */
#include <stddef.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

/* Private. */
struct arena {
	struct arena_block *blocks; /* the newest first */
	size_t used, size; /* both in the newest block */
	size_t total, max;
};

/* max: limit of all allocations together, in bytes. arena_fini() frees them all. */
void arena_init(struct arena *a, size_t max);
void arena_fini(struct arena *a);

/* The same on the heap. NULL when out of memory. */
struct arena *arena_new(size_t max);
void arena_free(struct arena *a); /* NULL-safe */
AUTO_DEFINE(arena_free, struct arena)

/* Zeroed, aligned for any type; NULL with *e at the maximum or out of memory. n may be 0. */
void *arena_alloc(struct arena *a, size_t n, struct err *e) MUST_USE;

/* Same for an array; refuses a product that overflows. */
void *arena_array(struct arena *a, size_t count, size_t size, struct err *e) MUST_USE;

/* Moves all that is allocated in another arena, which is empty then. -1: there is no room. */
int arena_take(struct arena *a, struct arena *from, struct err *e) MUST_USE;

/* A NUL-terminated copy. */
char *arena_dup(struct arena *a, struct str s, struct err *e) MUST_USE;

/* A NUL-terminated formatted string. */
char *arena_printf(struct arena *a, struct err *e, const char *fmt, ...) MUST_USE PRINTF_LIKE(3, 4);
