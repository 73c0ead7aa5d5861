/*
 * The search is that of Knuth, Morris and Pratt: it looks at each byte once and remembers nothing but how much of the
 * text has just come, so that it does not matter in which pieces. Each stream has such a number of its own.
 */
#include "hub/job_wait.h"

#include "hub/life_impl.h"

const char *const job_waited_names[3] = {
	[JOB_MATCHED] = "matched",
	[JOB_ENDED] = "ended",
	[JOB_WAITED] = "timeout",
};

struct job_wait {
	struct job *job;
	struct spool_cursor *cursor;
	uv_timer_t timer; /* begins it, then ends it */
	bool begun;
	uint64_t timeout_ms;
	void (*on_done)(void *arg, enum job_waited how, uint64_t offset);
	void *arg;
	unsigned streams;
	uint16_t came[SPOOL_STREAMS]; /* how much of the text */
	uint16_t n;
	uint16_t back[JOB_TEXT_MAX + 1]; /* how much of it is left where the next byte is another */
	char text[JOB_TEXT_MAX];
};

static void on_closed(uv_handle_t *h)
{
	free(h->data);
}

void job_wait_cancel(struct job_wait *w)
{
	spool_cursor_close(w->cursor);
	job_unref(w->job);
	uv_close((uv_handle_t *)&w->timer, on_closed);
}

static void finish(struct job_wait *w, enum job_waited how, uint64_t offset)
{
	void (*on_done)(void *, enum job_waited, uint64_t) = w->on_done;
	void *arg = w->arg;

	job_wait_cancel(w);
	on_done(arg, how, offset);
}

static void prepare(struct job_wait *w)
{
	uint16_t k = 0;

	for (uint16_t i = 1; i < w->n; i++) {
		while (k > 0 && w->text[i] != w->text[k])
			k = w->back[k];
		k = (uint16_t)(k + (w->text[i] == w->text[k]));
		w->back[i + 1] = k;
	}
}

/* How many bytes of the piece make the text whole; 0: it is not. */
static size_t search(struct job_wait *w, const struct spool_piece *piece)
{
	uint16_t k = w->came[piece->stream];

	for (size_t i = 0; i < piece->bytes.n; i++) {
		while (k > 0 && w->text[k] != piece->bytes.p[i])
			k = w->back[k];
		k = (uint16_t)(k + (w->text[k] == piece->bytes.p[i]));
		if (k == w->n)
			return i + 1;
	}
	w->came[piece->stream] = k;
	return 0;
}

static void pump(void *arg)
{
	struct job_wait *w = arg;
	struct spool_piece piece;
	size_t found;

	while (w->begun) {
		switch (spool_cursor_next(w->cursor, w->streams, SPOOL_BLOCK, &piece)) {
		case SPOOL_PIECE:
			found = search(w, &piece);
			if (found == 0)
				break;
			finish(w, JOB_MATCHED, piece.offset + found);
			return;
		case SPOOL_LOST:
			memset(w->came, 0, sizeof(w->came));
			break;
		case SPOOL_LATER:
			return;
		case SPOOL_END:
			finish(w, JOB_ENDED, spool_cursor_at(w->cursor));
			return;
		}
	}
}

static void on_timer(uv_timer_t *t)
{
	struct job_wait *w = t->data;

	if (w->begun) {
		finish(w, JOB_WAITED, spool_cursor_at(w->cursor));
		return;
	}
	w->begun = true;
	if (w->timeout_ms)
		uv_timer_start(t, on_timer, w->timeout_ms, 0);
	pump(w);
}

struct job_wait *job_wait_start(struct job *j, const struct job_wait_options *o,
				void (*on_done)(void *arg, enum job_waited how, uint64_t offset),
				void *arg, struct err *e)
{
	struct job_wait *w;

	if (o->text.n > JOB_TEXT_MAX) {
		err_set(e, ERR_INVALID, "text: at most %d bytes", JOB_TEXT_MAX);
		return NULL;
	}
	w = calloc(1, sizeof(*w));
	if (!w) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	w->cursor = spool_cursor_new(j->output, o->offset, pump, w, e);
	if (!w->cursor) {
		free(w);
		return NULL;
	}
	w->job = job_ref(j);
	w->timeout_ms = o->timeout_ms;
	w->on_done = on_done;
	w->arg = arg;
	w->streams = o->text.n ? o->streams : 0; /* for the end alone, nothing has to be read */
	w->n = (uint16_t)o->text.n;
	memcpy(w->text, o->text.n ? o->text.p : "", o->text.n);
	prepare(w);
	uv_timer_init(j->all->loop, &w->timer);
	w->timer.data = w;
	uv_timer_start(&w->timer, on_timer, 0, 0);
	return w;
}
