#pragma once
/*
 * The events of one conversation: the file events.jsonl, which is only appended to.
 *
 *	{"seq":1,"type":"user_prompt","timestamp":"2026-11-26T10:00:00.000Z","data":{"message":"…"}}
 *
 * A line is one write(2): it is in the kernel's hands when events_append() returns, and outlives
 * the process. seq counts from 1 and is neither reused nor renumbered. A line that a power cut or
 * another program has spoilt is skipped and told, never an end of the history; a torn last line is
 * cut.
 *
 * events.idx beside it says where some of the events stand, so that opening and paging read little
 * of the file. It is made again where it is missing or wrong.
 *
 * These functions block, for as long as the kernel takes to give what it has in memory. The caller
 * keeps other writers out (a lock on the data folder).
 */
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

struct events;

enum {
	EVENTS_TYPE_MAX = 32, /* [a-z_]+ */
	EVENTS_DATA_MAX = 1 << 20, /* bytes of one event's data */
	EVENTS_PAGE_MAX = 500, /* events of a page */
	EVENTS_PAGE_BYTES = 4 << 20, /* a page ends with the event that reaches them */
};

/* Faults that the file had when it was opened. */
struct events_report {
	uint64_t torn; /* bytes of a last line without an end, which were cut */
	uint64_t spoilt; /* lines that are no events, among those that were looked at */
	bool indexed_anew;
};

/* Opens the log in the folder, or makes it (0600). ERR_DENIED: the file is another user's, others
 * may open it, or it is no regular file. ret may be NULL. */
struct events *events_open(int folder, struct events_report *ret, struct err *e) MUST_USE;
void events_close(struct events *v); /* NULL-safe */
AUTO_DEFINE(events_close, struct events)

/* A view of the present events, for reading alone, also on another thread. For events_close(). */
struct events *events_view(const struct events *v, struct err *e) MUST_USE;

/* data: a JSON object on one line. ERR_TOO_LARGE; ERR_LIMIT: no number is left; ERR_STORE_FULL and
 * ERR_IO: nothing of it is in the file. */
int events_append(struct events *v, const char *type, struct str data, uint64_t *ret_seq,
		  struct err *e) MUST_USE;

/* Waits until what was appended is on the disk. */
int events_sync(struct events *v, struct err *e) MUST_USE;

uint64_t events_last(const struct events *v); /* seq of the last event; 0: there is none */
uint64_t events_count(const struct events *v);
uint64_t events_bytes(const struct events *v);

struct events_range {
	uint64_t after; /* only later ones; 0: from the first */
	uint64_t before; /* only earlier ones; 0: to the last */
	size_t limit; /* [0, and at most: EVENTS_PAGE_MAX] */
	bool newest; /* those at the end of the range, instead of at its beginning */
};

struct events_page {
	size_t n; /* events that were given */
	/* Where the pages beside this one begin. Not the seqs of events that were given, where
	 * those at an end of the page are spoilt. */
	uint64_t first, last;
	uint64_t spoilt; /* lines on the way that are no events */
	bool more; /* the range has further events */
};

/* Gives the events of a range, in the order of the file. line: the JSON text without its line feed,
 * borrowed for the call; it is a valid object with that seq. */
int events_read(struct events *v, const struct events_range *r,
		void (*on_event)(void *owner, uint64_t seq, struct str line), void *owner,
		struct events_page *ret, struct err *e) MUST_USE;
