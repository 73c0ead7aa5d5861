#pragma once
/*
 * Newline-delimited messages, as on MCP's stdio: bytes in, whole lines out, no I/O. A line ends in
 * LF; a CR before it is dropped, and so is a byte order mark before the first line. A line over the
 * maximum is not stored. At its end it is reported, with the id of the request that it held, if
 * that can be found. The parser checks what a line contains (NUL, broken UTF-8).
 */
#include "base/buf.h"
#include "rpc/sniff.h"

enum { LINE_MAX_DEFAULT = 16 << 20 };

struct line_reader {
	struct buf part; /* the beginning of an incomplete line */
	size_t max;
	bool skipping; /* in a line that is too long, or that could not be stored */
	bool lost; /* skipping because memory ran out */
	bool given; /* part holds the line that was returned last */
	bool begun; /* the first line was returned */
	struct rpc_sniff sniff; /* searches the line that is too long */
};

enum line_event {
	LINE_MORE, /* all input was consumed */
	LINE_TEXT, /* *ret_line is a line; it may be empty */
	LINE_TOO_LONG, /* rpc_sniff_id(&l->sniff, …) may know its id; valid until the next call */
	LINE_LOST, /* the same, because memory ran out */
};

/* max: bytes of a line without its end. */
void line_init(struct line_reader *l, size_t max);
void line_fini(struct line_reader *l);

/* Consumes *input from the front until there is something to report. *ret_line is borrowed until
 * the next call, from input or from the reader. */
enum line_event line_next(struct line_reader *l, struct str *input, struct str *ret_line);

/* The text of a message without a byte order mark before it. */
struct str line_unmarked(struct str text);

/* Call it at the end of input. Reports a last line without LF; LINE_MORE if there is none. */
enum line_event line_last(struct line_reader *l, struct str *ret_line);
