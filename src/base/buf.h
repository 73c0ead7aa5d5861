#pragma once
/*
 * Owned bytes with a maximum from birth. A buffer never holds more than `max` bytes: what would
 * go over fails with ERR_TOO_LARGE and leaves the buffer as it was. The bytes are always followed
 * by a NUL that does not count, so buf.p can be read as a C string when it was text.
 */
#include <stddef.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

struct budget;

/* Buffers up to this size are not counted in a budget, so small ones are available even if it is
 * full. */
enum { BUF_SMALL = 16 << 10 };

struct buf {
	char *p; /* NULL while empty */
	size_t n; /* bytes in use */
	size_t cap; /* bytes allocated, without the NUL */
	size_t max;
	/* The budget that counts its memory (base/budget.h) and may refuse it with ERR_LIMIT;
	 * NULL: none. */
	struct budget *of;
};

#define BUF_INIT(max_) ((struct buf){ .max = (max_) })

/* Frees the bytes; the buffer is empty and usable afterwards, with the same maximum. */
void buf_fini(struct buf *b);

/* The same for a secret: its bytes are overwritten first. A buffer that grows leaves copies behind,
 * so room for all of it is reserved before the secret comes in. */
void buf_wipe(struct buf *b);

/* Makes room for n more bytes and returns where they go, without counting them: write there, then
 * buf_advance(). NULL with *e at the maximum or out of memory. Valid until the next call. */
char *buf_reserve(struct buf *b, size_t n, struct err *e) MUST_USE;
void buf_advance(struct buf *b, size_t n);

int buf_add(struct buf *b, const void *p, size_t n, struct err *e) MUST_USE;
int buf_addf(struct buf *b, struct err *e, const char *fmt, ...) MUST_USE PRINTF_LIKE(3, 4);

/* Gives back the room behind its bytes, as well as it can be: for what is kept long. */
void buf_fit(struct buf *b);

/* Removes the first n bytes (n <= b->n); moves the rest. */
void buf_drop(struct buf *b, size_t n);

/* Gives the bytes to the caller, NUL-terminated. NULL only if the buffer is empty. */
char *buf_take(struct buf *b);

static inline struct str buf_str(const struct buf *b)
{
	return (struct str){ b->p ? b->p : "", b->n };
}

#define autobuf __attribute__((cleanup(buf_fini)))
#define autowipe __attribute__((cleanup(buf_wipe)))
