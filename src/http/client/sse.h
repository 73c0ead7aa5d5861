#pragma once
/*
 * Server-sent events, the reader's side, without I/O: bytes in, events out (HTML standard,
 * "Server-sent events", 9.2.6). Lines end in CR, LF or CRLF, wherever the pieces are cut. A byte
 * order mark is skipped; comments and unknown fields are ignored; lines of data are joined by LF.
 * An event without data is not reported, but its id counts. An event that is incomplete at the end
 * of a stream is dropped together with its id.
 */
#include <stdint.h>

#include "base/buf.h"

enum {
	SSE_EVENT_MAX_DEFAULT = 16 << 20, /* bytes of data of one event, and of one line */
	SSE_ID_MAX = 1024, /* a longer id is ignored */
	SSE_TYPE_MAX = 64, /* a longer type is cut */
};

struct sse_reader {
	struct buf line; /* the beginning of an incomplete line */
	struct buf data;
	char type[SSE_TYPE_MAX];
	size_t type_n; /* 0: no type */
	char id[SSE_ID_MAX + 1]; /* of the last complete event with an id */
	char next_id[SSE_ID_MAX + 1]; /* of the event being read */
	int64_t retry_ms; /* the last one received; -1: none */
	bool begun; /* the place of a byte order mark has passed */
	bool after_cr; /* a LF that comes now belongs to the line before */
	bool given; /* data holds the event that was returned last */
};

/* Borrowed until the next call. */
struct sse_event {
	struct str type; /* "message" if the stream names none */
	struct str data;
	struct str id; /* for Last-Event-ID; empty: none was received yet */
};

/* max: bytes of one event's data and of one line; 0: the default. of: the budget that counts them;
 * may be NULL. */
void sse_init(struct sse_reader *r, size_t max, struct budget *of);
void sse_fini(struct sse_reader *r);

/* For a stream that broke and starts again: drops the incomplete event; id and retry stay. */
void sse_restart(struct sse_reader *r);

/* Consumes *input from the front: 1 with an event; 0 when all is consumed; -1 with ERR_TOO_LARGE or
 * ERR_LIMIT, after which the stream can't be read on. */
int sse_next(struct sse_reader *r, struct str *input, struct sse_event *ret,
	     struct err *e) MUST_USE;
