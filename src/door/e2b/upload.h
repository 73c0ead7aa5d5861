#pragma once
/*
 * Bodies of uploads, as bytes in and files out: gzip, and multipart/form-data (RFC 7578). Both are
 * bounded, since anybody may send them. No I/O.
 */
#include "base/arena.h"
#include "base/buf.h"

/* Unpacks gzip (RFC 1952) into a buffer, whose maximum bounds what comes out. ERR_INVALID: it is
 * none, or has no end; ERR_TOO_LARGE: there is more. */
int upload_gunzip(struct str packed, struct buf *to, struct err *e) MUST_USE;

/* The boundary that a Content-Type names; STR_NONE: it is no multipart/form-data with one. */
struct str upload_boundary(struct str type);

struct upload_part {
	struct str filename; /* in the arena; STR_NONE: it has none */
	struct str bytes; /* borrowed from the body */
};
struct upload_parts {
	struct str body, boundary;
	bool begun, ended;
};
/* The next part: 1, 0 at the end, -1 with ERR_INVALID. */
int upload_next(struct upload_parts *p, struct upload_part *ret, struct arena *a,
		struct err *e) MUST_USE;
