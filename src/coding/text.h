#pragma once
/* Texts as editors of code see them: lines, what is binary, replacing. No I/O. */
#include <stdint.h>

#include "base/buf.h"

enum {
	TEXT_LINES_MAX = 2000, /* of one answer */
	TEXT_SHOWN_MAX = 256 << 10, /* bytes of one answer, without the numbers */
	TEXT_LINE_SHOWN = 16 << 10, /* bytes of one line; the rest of it is left out */
	TEXT_AROUND = 4096, /* bytes that a window keeps of what stands beside it */
};

/* A NUL near the front says so, as to git and grep, or the mark of UTF-16. */
bool text_is_binary(struct str front);

/* ---- a part of a text that comes in pieces ------------------------------------------------- */

struct text_window {
	uint64_t first; /* line to begin at, from 1 */
	uint64_t limit; /* lines */
	size_t max; /* bytes; a longer first line is cut there */
	bool count; /* all lines are counted */
	struct buf before, text, after; /* owned; text is of whole lines, unless cut */
	uint64_t lines; /* in text; the last may lack its end */
	uint64_t line; /* that the next byte belongs to, from 1; 0: nothing came yet */
	uint64_t at; /* bytes of that line that came */
	uint64_t cut; /* bytes left out of the only line */
	bool closed; /* text takes no more */
};
void text_window_fini(struct text_window *w);
/* The next piece. Returns 1 where more is of no use, else 0; -1: out of memory. At first all but
 * the first four members are zero. */
int text_window_feed(struct text_window *w, struct str piece, struct err *e) MUST_USE;
/* Whether text_number() leaves out bytes of a line of text. */
bool text_window_is_cut(const struct text_window *w);
/* Lines that came so far; a last one without an end counts. */
uint64_t text_window_count(const struct text_window *w);
/* The first line that came and is not in text; 0: there is none. */
uint64_t text_window_next(const struct text_window *w);

/* Appends "N\tline\n" for each line of text, the first numbered so. Bytes that are no UTF-8 become
 * U+FFFD, and are counted in *ret_bad. cut: bytes that the last line lacks. */
int text_number(struct str text, uint64_t first, uint64_t cut, struct buf *to, uint64_t *ret_bad,
		struct err *e) MUST_USE;

/* Appends s; bytes that are no UTF-8 become U+FFFD. */
int text_clean(struct str s, struct buf *to, struct err *e) MUST_USE;

/* ---- editing ------------------------------------------------------------------------------- */

/* A part of a text, from a byte on. */
struct text_span {
	size_t at, n;
};
struct text_edit {
	struct str old, new; /* not empty; may be empty */
	bool all;
	/* Marks in the text, in order: old matches none of them in part. May be NULL. */
	const struct text_span *marks;
	size_t marks_n;
};
/* Replaces old, which occurs once unless all is wanted. In a text with CRLF at the ends of its
 * lines, LF in old and new stands for that if old is not found as it is. Gives how often it was
 * replaced; -1: ERR_INVALID. */
int64_t text_replace(struct str text, const struct text_edit *edit, struct buf *to,
		     struct err *e) MUST_USE;

/* The line of text where old stands, or the longest line of it that does; 1: none does. */
uint64_t text_place(struct str text, struct str old);
