#pragma once
/*
 * A line of ours at the bottom of a terminal on which a program draws. While it is shown, the
 * program is told that the terminal has a row less, and scrolls above the line. It is drawn between
 * two pieces of the program's output, so it breaks no sequence of the program's (screen.h).
 */
#include <stdbool.h>
#include <stddef.h>

enum {
	NOTICE_MAX = 300, /* characters */
	NOTICE_ROWS_MIN = 6, /* a smaller terminal has no room for it */
	NOTICE_TEXT_MAX = NOTICE_MAX + 128, /* of what is written for it */
};

struct notice {
	char text[NOTICE_MAX + 1];
	bool shown;
	unsigned columns, rows; /* of the terminal */
};

/* Takes a text, of which only printable characters are kept. */
void notice_set(struct notice *n, const char *text, size_t size);

/* What is to be written; these return the length. open: once before it is drawn for the first time.
 * region: the program's scrolling is kept above it (again). */
size_t notice_open(const struct notice *n, char to[NOTICE_TEXT_MAX]);
size_t notice_draw(const struct notice *n, bool region, char to[NOTICE_TEXT_MAX]);
size_t notice_close(const struct notice *n, char to[NOTICE_TEXT_MAX]);
