#pragma once
/*
 * Our terminal, on which a program elsewhere draws: what it prints passes here on its way to an
 * outlet. The terminal is left as it was before (screen.h), has the program draw all anew where it
 * was attached to again, and shows lines of ours at its bottom (notice.h).
 */
#include "cli/common/outlet.h"
#include "cli/exec/notice.h"
#include "cli/exec/screen.h"

enum { VIEW_TOLD_MAX = 8 };

struct view {
	struct outlet *out;
	void (*resize)(void *arg, unsigned columns, unsigned rows); /* tells the program */
	void *arg;
	struct screen screen;
	uint64_t offset, seen; /* of the output that comes next; where what is printed begins */
	bool drawn, small; /* small: the program was told of a row less, so that it draws anew */
	struct notice notice;
	uv_timer_t nudge, fading; /* end that, and the notice */
	uv_poll_t news;
	int fd; /* of the lines; -1: none */
	char line[NOTICE_MAX];
	size_t line_n;
	char told[VIEW_TOLD_MAX][NOTICE_MAX + 1]; /* said again at the end */
	size_t n_told;
};

/* v belongs to the caller and must not move until the loop has ended. offset: of the program's
 * output that comes; what is before `seen` is not printed. fd: lines for the person, or -1;
 * borrowed until view_stop(). */
void view_start(struct view *v, uv_loop_t *loop, uint64_t offset, uint64_t seen, int fd);

void view_write(struct view *v, const char *p, size_t n);
void view_skip(struct view *v, uint64_t n); /* so many bytes are not kept */
void view_resized(struct view *v); /* our terminal was, or the program has to hear its size */

/* When the outlet has written all: gives the terminal back, and says the lines again on standard
 * error. left: the program goes on, so that what it has drawn stays above. */
void view_stop(struct view *v, bool left);
