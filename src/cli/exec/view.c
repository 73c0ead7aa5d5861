#include "cli/exec/view.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/common/file.h"
#include "cli/common/tty.h"

enum {
	NUDGE_MS = 150, /* for a program to see that its terminal has another size */
	SHOWN_MS = 20000, /* a line of ours */
};

/* Programs that get the same size again draw nothing, so one of them is another. */
static void view_tell_size(struct view *v)
{
	unsigned rows = v->notice.rows - v->notice.shown - v->small;

	if (v->notice.rows)
		v->resize(v->arg, v->notice.columns, rows ? rows : 1);
}

static void view_on_nudged(uv_timer_t *t)
{
	struct view *v = t->data;

	v->small = false;
	view_tell_size(v);
}

/* ---- what the program prints ----------------------------------------------------------------- */

static void view_draw_notice(struct view *v)
{
	char text[NOTICE_TEXT_MAX];

	if (!v->notice.shown || !screen_is_idle(&v->screen))
		return;
	outlet_write(v->out, text,
		     notice_draw(&v->notice, v->screen.touched && !v->screen.region, text));
	v->screen.touched = false;
}

/* Earlier text scrolls away. */
static void view_draw_all(struct view *v)
{
	char text[SCREEN_TEXT_MAX];

	v->drawn = true;
	if (v->seen == 0)
		return;
	for (unsigned i = 0; i < v->notice.rows; i++)
		outlet_write(v->out, "\r\n", 2);
	outlet_write(v->out, "\x1b[H", 3);
	outlet_write(v->out, text, screen_redo(&v->screen, text));
	v->small = v->notice.rows > 1;
	view_tell_size(v);
	uv_timer_start(&v->nudge, view_on_nudged, NUDGE_MS, 0);
}

void view_skip(struct view *v, uint64_t n)
{
	v->offset += n;
	if (!v->drawn && v->offset >= v->seen)
		view_draw_all(v);
}

void view_write(struct view *v, const char *p, size_t n)
{
	if (!v->drawn) {
		uint64_t old = v->seen - v->offset;
		size_t first = old < n ? (size_t)old : n;

		screen_feed(&v->screen, p, first);
		view_skip(v, first);
		p += first;
		n -= first;
	}
	if (n == 0)
		return;
	v->offset += n;
	screen_feed(&v->screen, p, n);
	outlet_write(v->out, p, n);
	view_draw_notice(v);
}

void view_resized(struct view *v)
{
	char text[NOTICE_TEXT_MAX];

	if (v->notice.shown)
		outlet_write(v->out, text, notice_close(&v->notice, text));
	if (!tty_size(&v->notice.columns, &v->notice.rows))
		return;
	v->notice.shown &= v->notice.rows >= NOTICE_ROWS_MIN;
	v->screen.touched = true;
	view_tell_size(v);
	view_draw_notice(v);
}

/* ---- lines of ours --------------------------------------------------------------------------- */

static void view_on_faded(uv_timer_t *t)
{
	struct view *v = t->data;
	char text[NOTICE_TEXT_MAX];

	if (!screen_is_idle(&v->screen)) {
		uv_timer_start(t, view_on_faded, NUDGE_MS, 0);
		return;
	}
	outlet_write(v->out, text, notice_close(&v->notice, text));
	v->notice.shown = false;
	view_tell_size(v);
}

/* False: it was told already. */
static bool view_keep(struct view *v)
{
	for (size_t i = 0; i < v->n_told; i++) {
		if (strcmp(v->told[i], v->notice.text) == 0)
			return false;
	}
	if (v->n_told < VIEW_TOLD_MAX)
		memcpy(v->told[v->n_told++], v->notice.text, sizeof(v->notice.text));
	return true;
}

static void view_show(struct view *v)
{
	char text[NOTICE_TEXT_MAX];

	if (!view_keep(v) || v->notice.rows < NOTICE_ROWS_MIN)
		return;
	if (!v->notice.shown && screen_is_idle(&v->screen))
		outlet_write(v->out, text, notice_open(&v->notice, text));
	v->notice.shown = true;
	v->screen.touched = true;
	view_tell_size(v);
	view_draw_notice(v);
	uv_timer_start(&v->fading, view_on_faded, SHOWN_MS, 0);
}

static void view_on_news(uv_poll_t *p, int status, int events)
{
	struct view *v = p->data;
	char bytes[1024];
	ssize_t got = read(v->fd, bytes, sizeof(bytes));

	if (got <= 0) {
		if (got == 0 || (errno != EAGAIN && errno != EINTR))
			uv_poll_stop(p);
		return;
	}
	for (ssize_t i = 0; i < got; i++) {
		if (bytes[i] == '\n') {
			notice_set(&v->notice, v->line, v->line_n);
			v->line_n = 0;
			view_show(v);
		} else if (v->line_n < sizeof(v->line)) {
			v->line[v->line_n++] = bytes[i];
		}
	}
}

/* ---- all of it ------------------------------------------------------------------------------- */

void view_start(struct view *v, uv_loop_t *loop, uint64_t offset, uint64_t seen, int fd)
{
	v->offset = offset;
	v->seen = seen;
	v->fd = fd;
	v->nudge.data = v->fading.data = v->news.data = v;
	uv_timer_init(loop, &v->nudge);
	uv_timer_init(loop, &v->fading);
	if (fd >= 0 && uv_poll_init(loop, &v->news, fd) == 0)
		uv_poll_start(&v->news, UV_READABLE, view_on_news);
	else
		v->fd = -1;
	tty_size(&v->notice.columns, &v->notice.rows);
	view_skip(v, 0);
}

void view_stop(struct view *v, bool left)
{
	char text[SCREEN_TEXT_MAX + NOTICE_TEXT_MAX + 32];
	size_t n = screen_undo(&v->screen, text);
	struct err ignored;

	uv_close((uv_handle_t *)&v->nudge, NULL);
	uv_close((uv_handle_t *)&v->fading, NULL);
	if (v->fd >= 0)
		uv_close((uv_handle_t *)&v->news, NULL);
	if (v->notice.shown)
		n += notice_close(&v->notice, text + n);
	if (left && !screen_is_alternate(&v->screen))
		n += (size_t)snprintf(text + n, 32, "\x1b[%u;1H\r\n", v->notice.rows);
	(void)!file_write_fd(STDOUT_FILENO, "standard output", (struct str){ text, n }, &ignored);
	for (size_t i = 0; i < v->n_told; i++)
		fprintf(stderr, "holt: %s\n", v->told[i]);
}
