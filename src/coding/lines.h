#pragma once
/*
 * Lines out of the two streams of a program, whatever the pieces in which they come. A line leaves
 * without its end, and without the escape sequences that colour a terminal. At most LINE_MAX bytes
 * of a line are kept: the rest of it is passed over, and the line is marked as cut.
 */
#include "base/buf.h"

enum { LINES_STREAMS = 2, CODING_LINE_MAX = 256 << 10 };

struct lines {
	struct lines_stream {
		struct buf buf;
		bool cut;
		unsigned escape; /* 0: text; 1: behind ESC; 2: in a sequence */
	} streams[LINES_STREAMS];
	/* line.p is followed by a NUL */
	void (*on_line)(void *arg, unsigned stream, struct str line, bool cut);
	void *arg;
};

void lines_init(struct lines *l,
		void (*on_line)(void *arg, unsigned stream, struct str line, bool cut), void *arg);
void lines_fini(struct lines *l);
void lines_feed(struct lines *l, unsigned stream, struct str bytes);
/* A last line without an end is a line, too. */
void lines_end(struct lines *l);
