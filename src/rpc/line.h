#pragma once
/*
 * Newline-delimited messages, as on MCP's stdio: bytes in, whole lines out, no I/O. A line ends in
 * LF; a CR before it is dropped. A line over the maximum is reported once, as soon as it is over,
 * and skipped to its end without being kept; the next line is read as usual. What a line contains
 * (NUL, broken UTF-8) is the parser's business.
 */
#include "base/buf.h"

enum { LINE_MAX_DEFAULT = 16 << 20 };

struct line_reader {
	struct buf part; /* the beginning of a line whose end has not come */
	size_t max;
	bool skipping; /* in a line that was reported as too long */
	bool given; /* part is the line that was returned last */
};

enum line_event {
	LINE_MORE, /* all input is used up */
	LINE_TEXT, /* *ret_line is a line; it may be empty */
	LINE_TOO_LONG,
};

/* max: bytes of a line without its end. */
void line_init(struct line_reader *l, size_t max);
void line_fini(struct line_reader *l);

/* Takes bytes off the front of *input until there is something to report. *ret_line is borrowed
 * until the next call, from input or from the reader. -1 with ERR_LIMIT without memory: the line
 * is lost and is skipped to its end. */
int line_next(struct line_reader *l, struct str *input, struct str *ret_line,
	      struct err *e) MUST_USE;

/* At the end of input: LINE_TEXT with a last line that has no LF, or LINE_MORE when there is none. */
enum line_event line_last(struct line_reader *l, struct str *ret_line);
