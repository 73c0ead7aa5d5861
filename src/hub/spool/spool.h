#pragma once
/*
 * What a program prints, kept within bounds: the bytes of its two streams in the one order in which
 * they came. An offset counts the bytes of both from the first on, so one number says where a
 * reader stands, and each piece that is read knows its stream and its own offset. (Of two streams
 * the order is that in which the hub read them.)
 *
 * The last of it is in memory; the whole is in a file without a name, of its owner's alone, which
 * goes with the spool or the process, whatever happens first. It is written and read in the loop's
 * work pool, so no disk holds the loop. Who fills a spool waits only for its disk, never for a
 * reader; a reader behind what is in memory reads the file.
 *
 * What is over the bound of a file, of all files, or of a disk that is full, is thrown away from
 * the front: the oldest goes, and a reader who wanted it is told how much that was. Without any
 * file the last blocks in memory are what is kept.
 */
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/budget.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

enum { SPOOL_BLOCK = 64 << 10, SPOOL_STREAMS = 2 };

/* What spools share. Borrowed from who owns them. */
struct spool_house {
	uv_loop_t *loop;
	const char *folder; /* where files are made; NULL: nowhere, all is kept in memory */
	struct budget disk; /* of all files */
	/* Asked before a spool overwrites its own for want of disk: gives some back, or does
	 * nothing. May be NULL. */
	void (*make_room)(void *arg);
	/* Reads and writes under way; the house stays until there are none, and is told when that
	 * is so. */
	unsigned works;
	void (*on_quiet)(void *arg);
	void *arg;
};

struct spool_options {
	uint64_t keep; /* bytes in a file, in blocks; 0: none */
	unsigned memory; /* blocks in memory, at least 1; one more is being filled */
	void (*on_room)(
		void *arg); /* after spool_add() said that it is full. May be NULL without a file */
	void *arg;
};

struct spool;

struct spool *spool_new(struct spool_house *house, const struct spool_options *o,
			struct err *e) MUST_USE;
struct spool *spool_ref(struct spool *s);
void spool_unref(struct spool *s); /* NULL-safe */
/* Work on the spool in the loop's pool has ended: gives back the reference that it held and its
 * count in the house's works. The spool may be gone after it. */
void spool_work_done(struct spool *s);

/* stream: 0 or 1. Always takes all of it. True: more waits for the disk than should, so whoever
 * prints is to be held until on_room. */
bool spool_add(struct spool *s, unsigned stream, struct str bytes);

/* As if so many bytes had come, which nobody kept. */
void spool_skip(struct spool *s, unsigned stream, uint64_t n);

/* Nothing follows; what is kept in a file leaves memory. */
void spool_end(struct spool *s);

struct spool_stats {
	uint64_t first, end; /* offsets: of the oldest byte that is kept, and behind the newest */
	uint64_t came[SPOOL_STREAMS]; /* bytes of each; together: end */
	size_t memory; /* bytes */
	uint64_t disk;
	const struct err *trouble; /* why less is kept than asked for; NULL: nothing went wrong */
};
void spool_stats(const struct spool *s, struct spool_stats *ret);

/* ---- readers ------------------------------------------------------------------------------- */

struct spool_cursor;

/* Keeps the spool. on_more is called from the loop or from spool_add() and spool_end(), once after
 * each SPOOL_LATER; it may close this cursor, and those that it has made, but no other. */
struct spool_cursor *spool_cursor_new(struct spool *s, uint64_t offset, void (*on_more)(void *arg),
				      void *arg, struct err *e) MUST_USE;
void spool_cursor_close(struct spool_cursor *c); /* NULL-safe; no callback after it */

enum spool_step {
	SPOOL_PIECE, /* bytes of one stream */
	SPOOL_LOST, /* n bytes of either stream are not there any more */
	SPOOL_LATER, /* nothing now: on_more follows */
	SPOOL_END, /* nothing, and nothing will come */
};
struct spool_piece {
	unsigned stream;
	uint64_t offset; /* of its first byte */
	/* borrowed until the next call of anything here, or the loop's next turn */
	struct str bytes;
	uint64_t lost;
};

/* The next of the streams in the mask (1 << stream), at most max bytes. ret is filled for the first
 * two. */
enum spool_step spool_cursor_next(struct spool_cursor *c, unsigned streams, size_t max,
				  struct spool_piece *ret);
/* Behind what it has given: where another reader would go on. */
uint64_t spool_cursor_at(const struct spool_cursor *c);
