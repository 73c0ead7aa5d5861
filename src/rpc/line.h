#pragma once
/*
 * Newline-delimited messages, as on MCP's stdio: bytes in, whole lines out, no I/O. A line ends in
 * LF; a CR before it is dropped. A line over the maximum is not kept: at its end it is reported,
 * with the id of the request that it was, if that can be told. What a line contains (NUL, broken
 * UTF-8) is the parser's business.
 */
#include "base/buf.h"
#include "rpc/sniff.h"

enum { LINE_MAX_DEFAULT = 16 << 20 };

struct line_reader {
	struct buf part; /* the beginning of a line whose end has not come */
	size_t max;
	bool skipping; /* in a line that is too long, or that there was no memory for */
	bool lost; /* skipping for want of memory */
	bool given; /* part is the line that was returned last */
	struct rpc_sniff sniff; /* of the line that is too long */
};

enum line_event {
	LINE_MORE, /* all input is used up */
	LINE_TEXT, /* *ret_line is a line; it may be empty */
	LINE_TOO_LONG, /* rpc_sniff_id(&l->sniff, …) may know which; until the next call */
	LINE_LOST, /* the same, for want of memory */
};

/* max: bytes of a line without its end. */
void line_init(struct line_reader *l, size_t max);
void line_fini(struct line_reader *l);

/* Takes bytes off the front of *input until there is something to report. *ret_line is borrowed
 * until the next call, from input or from the reader. */
enum line_event line_next(struct line_reader *l, struct str *input, struct str *ret_line);

/* At the end of input: reports a last line that has no LF, or LINE_MORE where there is none. */
enum line_event line_last(struct line_reader *l, struct str *ret_line);
