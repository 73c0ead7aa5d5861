#pragma once
/*
 * Shared by spool.c, which fills, writes and drops blocks, and cursor.c, which reads them.
 *
 * Output is appended to the last block as records: a word (the stream in its top bit, a length
 * below), then that many bytes. More output of the same stream extends the last record. A full
 * block is sealed. Sealed blocks are written to a slot of the file, leave memory, are read back and
 * are dropped as a whole.
 *
 * 	the blocks, by number	first ...... written | ...... last
 * 	where their bytes are	     file            |  memory (just before `written`: maybe both)
 *
 * There are never more blocks than slots, so that writing the last blocks drops nothing. A slot is
 * reused once its block is dropped. A reader of that slot then gets garbage, and discards it, since
 * it finds the block gone when its read ends.
 */
#include "base/buf.h"
#include "hub/spool/spool.h"

enum { RECORD_HEAD = sizeof(uint32_t) };
#define RECORD_STREAM (1u << 31)

struct block {
	uint64_t offset; /* of its first byte */
	struct buf bytes; /* empty: they are in the file only */
	uint32_t slot; /* in the file, if it is written */
	uint32_t used; /* bytes with the heads of records */
	uint32_t n; /* and without */
	uint32_t last; /* where the last record begins */
	uint8_t streams; /* of which there is something */
	bool sealed, written;
};

struct spool {
	unsigned refs;
	struct spool_set *spools;
	struct spool_options o;
	struct block *blocks; /* a ring */
	size_t head, n, room;
	uint64_t first_no; /* number of the oldest block */
	uint64_t write_no; /* of the next to be written */
	uint64_t end;
	uint64_t came[SPOOL_STREAMS];
	struct spool_cursor *cursors;

	int fd; /* -1: no file yet */
	uint32_t slots, slots_max; /* it has, it may have */
	uint32_t spare[8]; /* of them those of blocks that are gone */
	unsigned n_spare;
	bool ended, held;
	struct err trouble;

	/* the write under way: */
	bool writing, grown; /* grown: into a slot that is new */
	uint32_t slot;
	struct str write;
	uv_work_t work;
	int errnum;
};

struct spool_cursor {
	struct spool *spool;
	struct spool_cursor *next;
	void (*on_more)(void *arg);
	void *arg;
	uint64_t at;
	bool waiting; /* for on_more */

	/* where it stands in a block: */
	uint64_t no; /* the block's number */
	uint32_t record; /* the place of a record in it */
	uint64_t record_offset; /* of that one's first byte */
	bool placed;

	/* what was read from the file: */
	char *copy; /* SPOOL_BLOCK bytes, or NULL */
	uint64_t copy_no; /* of that block */
	bool copied, reading, closed;
	uint32_t copy_n; /* bytes of it; 0: it could not be read */
	uint32_t slot;
	uv_work_t work;
	int errnum;
};

static inline struct block *spool_block(const struct spool *s, uint64_t no)
{
	return &s->blocks[(s->head + (size_t)(no - s->first_no)) % s->room];
}

static inline bool spool_has(const struct spool *s, uint64_t no)
{
	return no >= s->first_no && no - s->first_no < s->n;
}

static inline uint32_t record_length(uint32_t head)
{
	return head & ~RECORD_STREAM;
}

static inline unsigned record_stream(uint32_t head)
{
	return (head & RECORD_STREAM) != 0;
}
