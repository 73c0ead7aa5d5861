#pragma once
#include "agents/store/document.h"
#include "agents/store/events.h"
#include "agents/store/record.h"

enum {
	EVENTS_LINE_MAX = EVENTS_DATA_MAX + 256, /* with its line feed */
	/* An entry of the index for each so many events or bytes, which opening looks through. */
	EVENTS_EVERY = 128,
	EVENTS_EVERY_BYTES = 1 << 20,
};

/* ---- events.c ------------------------------------------------------------------------------- */

int events_fd(const struct events *v);
const struct events_index *events_index_of(const struct events *v);

/* ---- events_scan.c: the lines of the file, by pread(2) -------------------------------------- */

struct events_scan {
	int fd;
	uint64_t at; /* offset of the next line */
	uint64_t end; /* no line from here on is looked at */
	uint64_t spoilt; /* lines that were skipped */
	uint64_t last; /* seq of the event before */
	char *room; /* owned */
	size_t cap, from,
		n; /* of room; n bytes from `from` wait, the first of which stands at `at` */
};

struct events_line {
	uint64_t seq, at; /* at: its offset */
	struct str text; /* without the line feed; borrowed until the next call */
};

/* last: seq of the event before `at`. */
int events_scan_init(struct events_scan *s, int fd, uint64_t at, uint64_t end, uint64_t last,
		     struct err *e) MUST_USE;
void events_scan_fini(struct events_scan *s);

/* The next event. 0: there is none; what is left from s->at to the end is a line that has no end.
 * A line is an event if it begins with a seq above the last one's and ends like an object. */
int events_scan_next(struct events_scan *s, struct events_line *ret, struct err *e) MUST_USE;

/* The seq at the beginning of a line, whole or not; 0: there is none. */
uint64_t events_seq_of(struct str line);

/* ---- events_index.c ------------------------------------------------------------------------- */

/* Where an event stands, and how many are before it. */
struct events_entry {
	uint64_t seq, at, before;
};

struct events_index {
	int fd;
	uint64_t n; /* entries */
};

/* Opens the index, or makes it. One that is no index is emptied. */
int events_index_open(struct events_index *x, int folder, struct err *e) MUST_USE;
void events_index_close(struct events_index *x);

/* Entries are a help: one that can't be written is left out. */
void events_index_add(struct events_index *x, const struct events_entry *entry);
void events_index_empty(struct events_index *x);

/* Entry number i. False: it can't be read. */
bool events_index_get(const struct events_index *x, uint64_t i, struct events_entry *ret);

enum events_by { EVENTS_BY_SEQ, EVENTS_BY_BEFORE };

/* The last entry whose member is at most `most`; the beginning of the file where there is none. */
struct events_entry events_index_find(const struct events_index *x, enum events_by by,
				      uint64_t most);

/* ---- record.c -------------------------------------------------------------------------------- */

#define RECORD_NAME "metadata.json"

/* A record and the document that it borrows from. */
struct record {
	struct json_doc *doc;
	struct arena *arena;
	struct conversation_record *r;
};
void record_fini(struct record *r);

/* Takes the document, which may be NULL with *e. On failure nothing is left of both. */
int record_decode(struct record *ret, struct json_doc *doc, struct err *e) MUST_USE;

/* Writes a record, which may borrow from *kept, and keeps it there instead. */
int record_write(int folder, const struct conversation_record *r, struct record *kept,
		 struct err *e) MUST_USE;
