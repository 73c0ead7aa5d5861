#pragma once
/*
 * Redaction: replaces secrets by [REDACTED:kind:tag] in text that leaves (docs/redaction.md). It
 * finds values that it was given, in the encodings in which programs print them, and well-known
 * tokens, keys, passwords in URLs and assignments by patterns. A redactor is of one thread, but
 * for redactor_share(); a stream is of its redactor's thread.
 *
 * What is found does not depend on how a stream is cut into pieces, unless it was flushed.
 *
 * Where a match stands in binary data (a NUL or a byte that is no text precedes it by at most
 * REDACT_NEAR bytes), its replacement has its length, so that formats with offsets stay whole: a
 * whole mark and asterisks, or asterisks alone where there is no room for the mark.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

enum {
	REDACT_VALUE_MIN = 8, /* bytes of a value; a shorter one would be found everywhere */
	REDACT_VALUE_MAX = 64 << 10,
	REDACT_VALUES_MAX = 4096,
	REDACT_EXTRA_MAX = 64, /* patterns of the operator */
	REDACT_EXTRA_BYTES = 512, /* of the text of one, and of what it may match */
	REDACT_KIND_MAX = 32,
	REDACT_AROUND_MAX = 3 * REDACT_VALUE_MAX,
	REDACT_NEAR = 64,
	REDACT_TAG = 10, /* characters of a tag */
};

/* The tag of what can't be put back: a mark in output, or in a text whose file is not known. */
#define REDACT_TAG_OUTPUT "output"

struct redactor;

/* A pattern of the operator: PCRE syntax as Vectorscan takes it; everything that it matches is
 * replaced. */
struct redact_pattern {
	struct str kind; /* [a-z0-9-]+ */
	struct str regex;
};

/* Borrowed during the call only. */
struct redact_options {
	bool nothing; /* replaces nothing */
	bool no_patterns; /* only values */
	const struct str *off; /* kinds of the table that are not looked for */
	size_t n_off;
	const struct redact_pattern *extra;
	size_t n_extra;
};

/* o may be NULL. ERR_INVALID names the pattern or kind that is wrong. Compiles extra patterns;
 * those of the table are loaded when a text first needs them. */
struct redactor *redactor_new(const struct redact_options *o, struct err *e) MUST_USE;
void redactor_free(struct redactor *r); /* NULL-safe; no stream is left */
AUTO_DEFINE(redactor_free, struct redactor)

/* A redactor with the values and patterns of now, which another thread may use until it is freed.
 * Made and freed on the thread of r. */
struct redactor *redactor_share(struct redactor *r, struct err *e) MUST_USE;

/* Other options from now on, values stay. On failure nothing has changed. */
int redactor_set(struct redactor *r, const struct redact_options *o, struct err *e) MUST_USE;

/* A value to look for from now on, also in streams that are open. It is copied into memory that is
 * locked and left out of core dumps. name: what is shown as kind; other bytes than
 * [A-Za-z0-9_.-] become '-'. Idempotent. A rotated secret is added beside the old value, which may
 * still be printed. ERR_INVALID: fewer than REDACT_VALUE_MIN bytes. */
int redact_value_add(struct redactor *r, struct str name, struct str value, struct err *e) MUST_USE;
/* Forgets all values of this name. */
void redact_value_remove(struct redactor *r, struct str name);

/* How many bytes before and behind a part of a text redact_text() looks at: with so many of both, a
 * part is redacted as it is in the whole text. At most REDACT_AROUND_MAX. r: NULL: 0. */
size_t redactor_around(const struct redactor *r);

/* Makes now what the values are found by, which the next text would wait for: some milliseconds for
 * each that is long. */
int redactor_prepare(struct redactor *r, struct err *e) MUST_USE;

struct redact_part {
	/* What stands around text in its source: looked at, not returned. A secret that begins in
	 * one of them and reaches into text is not shown in text. */
	struct str before, text, after;
	bool keep_length; /* for formats that break where a length changes, such as tar */
	bool values_only; /* what patterns find stays */
	/* A message, which quotes no more of a text than it has room for: the first bytes of a
	 * value, eight at least, are hidden as well where no letter, digit or _ follows. */
	bool quotes;
};
/* 1: `to` got what may leave. 0: it is text itself, and `to` is untouched. -1: nothing may
 * leave. */
int redact_text(struct redactor *r, const struct redact_part *t, struct buf *to,
		struct err *e) MUST_USE;

/* ---- marks --------------------------------------------------------------------------------- */

/* A place of a text that is replaced. */
struct redact_place {
	size_t at, n;
	const char *kind; /* borrowed until values or options change */
	bool fills; /* its replacement has its length, */
	bool whole; /* and the mark fits into that */
};
/* Finds what redact_text() would replace in a text, in order and without overlap. *ret is the
 * caller's, for free(). */
int redact_find(struct redactor *r, struct str text, struct redact_place **ret, size_t *ret_n,
		struct err *e) MUST_USE;

/* Its replacement gets its length, as with redact_part.keep_length. */
void redact_place_fill(struct redact_place *p);
/* Appends what redact_text() writes in the place. */
int redact_place_show(const struct redact_place *p, struct buf *to, struct err *e) MUST_USE;

/* Appends the mark: tag is REDACT_TAG_OUTPUT, or REDACT_TAG characters of [a-z2-7]. */
int redact_mark_add(struct buf *to, const char *kind, const char *tag, struct err *e) MUST_USE;

struct redact_mark {
	struct str whole; /* the beginning alone, if it is not exact */
	bool exact; /* it has the form of redact_mark_add() */
	struct str kind, tag; /* of an exact one */
};
/* The next place in text where a mark begins, exact or not. False: there is none. */
bool redact_mark_next(struct str text, struct redact_mark *ret);
/* How many parts of a text look like marks, altered or not: those with the word REDACTED or
 * redacted, and those that end as a mark does, from its kind on. One altered character leaves one
 * of the two. */
size_t redact_mark_likes(struct str text);

/* ---- streams ------------------------------------------------------------------------------- */

struct redact_stream;

struct redact_stream *redact_stream_new(struct redactor *r, bool keep_length,
					struct err *e) MUST_USE;
void redact_stream_free(struct redact_stream *s); /* NULL-safe */
AUTO_DEFINE(redact_stream_free, struct redact_stream)

/* What stands before the stream's first byte in its source: looked at, never returned. Before the
 * first redact_stream_add(). */
int redact_stream_before(struct redact_stream *s, struct str bytes, struct err *e) MUST_USE;

enum redact_flush {
	REDACT_MORE, /* holds back what might be the beginning of a secret */
	REDACT_QUIET, /* nothing came for a while: holds back only what begins as a value does */
	REDACT_END, /* nothing comes any more */
};
/* Takes the next bytes, which may be none. Appends what may leave to `to`, whose maximum must leave
 * room for redact_grown() of what came and is held. On failure the stream is unusable. */
int redact_stream_add(struct redact_stream *s, struct str bytes, enum redact_flush flush,
		      struct buf *to, struct err *e) MUST_USE;

/* How many of the bytes that came are held back. */
size_t redact_stream_held(const struct redact_stream *s);
/* How many matches were replaced. */
uint64_t redact_stream_replaced(const struct redact_stream *s);

/* Bytes that n bytes may become at most. */
static inline size_t redact_grown(size_t n)
{
	return n * 20 + 64;
}
