#pragma once
/*
 * Server-sent events, the reader's side, without I/O: bytes in, events out (HTML standard,
 * "Server-sent events", 9.2.6). Lines end in CR, LF or CRLF, wherever the pieces are cut; a byte
 * order mark is skipped; comments and unknown fields are ignored; data of many lines is joined by
 * LF. An event without data is none, but its id counts. What is unfinished at the end of a stream
 * is dropped, its id too.
 */
#include <stdint.h>

#include "base/buf.h"

enum {
	SSE_EVENT_MAX_DEFAULT = 16 << 20, /* bytes of data of one event, and of one line */
	SSE_ID_MAX = 1024, /* a longer id is ignored */
	SSE_TYPE_MAX = 64, /* of a longer type only the beginning is given */
};

struct sse_reader {
	struct buf line; /* the beginning of a line whose end has not come */
	struct buf data;
	char type[SSE_TYPE_MAX];
	size_t type_n; /* 0: it has none */
	char id[SSE_ID_MAX + 1]; /* of the last event that was whole, or of one before it */
	char next_id[SSE_ID_MAX + 1]; /* of the one that is being read */
	int64_t retry_ms; /* the last one seen; -1: none */
	bool begun; /* past the place of a byte order mark */
	bool after_cr; /* a LF that comes now belongs to the line before */
	bool given; /* data was returned last */
};

/* Borrowed until the next call. */
struct sse_event {
	struct str type; /* "message" where the stream names none */
	struct str data;
	struct str id; /* for Last-Event-ID; empty: none was ever sent */
};

/* max: bytes of one event's data and of one line; 0 takes the default. of: what is kept counts
 * there; may be NULL. */
void sse_init(struct sse_reader *r, size_t max, struct budget *of);
void sse_fini(struct sse_reader *r);

/* The stream broke off and begins anew: what was unfinished is dropped, id and retry stay. */
void sse_restart(struct sse_reader *r);

/* Takes bytes off the front of *input: 1 with an event, 0 when all is used up, -1 with
 * ERR_TOO_LARGE or ERR_LIMIT, after which the stream can't be read on. */
int sse_next(struct sse_reader *r, struct str *input, struct sse_event *ret,
	     struct err *e) MUST_USE;
