#pragma once
/*
 * The output of a program, kept within bounds: the bytes of its two streams in the order in which
 * the hub read them. An offset counts the bytes of both streams, so one number is a reader's
 * position. Each piece that is read has its stream and its offset.
 *
 * The newest output is in memory. All of it is in an unnamed file, which only its owner can read
 * and which ends with the spool or the process. The loop's work pool writes and reads it, so the
 * disk never blocks the loop. A writer may have to wait for its disk, but never for a reader. A
 * reader that is behind the memory reads the file.
 *
 * At the limit of a file, of all files, or of a full disk, the oldest output is dropped, and
 * readers learn how many bytes they lost. Without a file only the last blocks in memory are kept.
 */
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/budget.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

enum { SPOOL_BLOCK = 64 << 10, SPOOL_STREAMS = 2 };

/* Shared by all spools of an owner; borrowed from it. */
struct spool_set {
	uv_loop_t *loop;
	const char *folder; /* folder of the files; NULL: keep all in memory */
	struct budget disk; /* bytes of all files */
	/* Called before a spool drops its own output for lack of disk; may free some space
	 * elsewhere. May be NULL. */
	void (*make_room)(void *arg);
	/* Reads and writes in progress. The set must stay until there are none; on_quiet tells
	 * when. */
	unsigned works;
	void (*on_quiet)(void *arg);
	void *arg;
};

struct spool_options {
	uint64_t keep; /* bytes in a file, in blocks; 0: none */
	unsigned memory; /* blocks in memory, at least 1; one more is being filled */
	/* Called when there is room again after spool_add() returned true. May be NULL without a
	 * file. */
	void (*on_room)(void *arg);
	void *arg;
};

struct spool;

struct spool *spool_new(struct spool_set *spools, const struct spool_options *o,
			struct err *e) MUST_USE;
struct spool *spool_ref(struct spool *s);
void spool_unref(struct spool *s); /* NULL-safe */
/* Ends work on the spool in the loop's pool: drops its reference and its count in the set's
 * works. May free the spool. */
void spool_work_done(struct spool *s);

/* Appends output. stream: 0 or 1. Always takes all bytes. Returns true if too much waits for the
 * disk: the caller must stop reading from the program until on_room. */
bool spool_add(struct spool *s, unsigned stream, struct str bytes);

/* Advances the offset by n bytes that are lost to readers. */
void spool_skip(struct spool *s, unsigned stream, uint64_t n);

/* Marks the end of the output. Blocks that are in the file leave memory. */
void spool_end(struct spool *s);

struct spool_stats {
	uint64_t first, end; /* offsets: of the oldest byte kept, and after the newest */
	uint64_t came[SPOOL_STREAMS]; /* bytes received of each stream; their sum is end */
	size_t memory; /* bytes */
	uint64_t disk;
	const struct err *trouble; /* why less is kept than requested; NULL: no failure */
};
void spool_stats(const struct spool *s, struct spool_stats *ret);

/* ---- readers ------------------------------------------------------------------------------- */

struct spool_cursor;

/* Holds a reference to the spool. on_more is called once after each SPOOL_LATER, from the loop,
 * from spool_add() or from spool_end(). It may close this cursor and those that it made, but no
 * other. */
struct spool_cursor *spool_cursor_new(struct spool *s, uint64_t offset, void (*on_more)(void *arg),
				      void *arg, struct err *e) MUST_USE;
void spool_cursor_close(struct spool_cursor *c); /* NULL-safe; no callback comes afterwards */

enum spool_step {
	SPOOL_PIECE, /* bytes of one stream */
	SPOOL_LOST, /* `lost` bytes of either stream were dropped */
	SPOOL_LATER, /* nothing yet; on_more follows */
	SPOOL_END, /* nothing, and nothing will follow */
};
struct spool_piece {
	unsigned stream;
	uint64_t offset; /* of its first byte */
	/* borrowed until the next call of any function here, or the loop's next turn */
	struct str bytes;
	uint64_t lost;
};

/* Reads the next piece, at most max bytes, of the streams in the mask (1 << stream). Fills ret for
 * SPOOL_PIECE and SPOOL_LOST. */
enum spool_step spool_cursor_next(struct spool_cursor *c, unsigned streams, size_t max,
				  struct spool_piece *ret);
/* The offset after the last piece: where another reader would continue. */
uint64_t spool_cursor_at(const struct spool_cursor *c);
