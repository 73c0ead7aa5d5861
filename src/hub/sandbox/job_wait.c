/*
 * A text is searched for as Knuth, Morris and Pratt do: each byte is read once, and the only state
 * is how much of the text has matched. So the split into pieces does not matter. Each stream has
 * its own state. For a pattern each piece is copied, and a thread searches it while the wait is
 * suspended; then the next piece is read. After TURN_MAX bytes others have a turn.
 */
#include "hub/sandbox/job_wait.h"

#include "hub/sandbox/internal.h"

const char *const job_waited_names[3] = {
	[JOB_MATCHED] = "matched",
	[JOB_ENDED] = "ended",
	[JOB_WAITED] = "timeout",
};

/* Bytes at once, in a turn, and of what a view makes of those at once. */
enum { LOOK_MAX = 8 << 10, TURN_MAX = 32 * LOOK_MAX, SEEN_MAX = 4 << 20 };

/* What is searched of a piece, and where the output is that ends it. */
struct sight {
	unsigned stream;
	struct str bytes;
	uint64_t end;
};

/* The work of a thread for a wait with a pattern. */
struct look {
	struct job_match *match;
	struct job_wait *next; /* in line behind this one */
	bool waiting, working, cancelled;
	bool last; /* there is no more output */
	struct sight sight; /* else: of this */
	struct buf bytes;
	int found;
	size_t n;
	struct err why;
	uv_work_t work;
};

struct job_wait {
	struct job *job;
	struct spool_cursor *cursor;
	uv_timer_t timer; /* begins it, then ends it */
	uv_timer_t again; /* goes on where others had a turn, or where it is quiet */
	unsigned handles; /* that are open */
	bool begun;
	uint64_t timeout_ms, left; /* left: bytes that it may still look at */
	size_t turn; /* bytes that it has looked at in this turn */
	const struct wait_view *view;
	void *view_arg;
	bool fresh, quiet, last; /* of the view: has more come, is it quiet, has all come */
	uint64_t ends[SPOOL_STREAMS]; /* of what was read of each */
	unsigned asked; /* streams of which what is held back was asked for */
	job_wait_done *on_done;
	void *arg;
	unsigned streams;
	struct look *look; /* NULL: a text, or only the end */
	uint16_t came[SPOOL_STREAMS]; /* how much of the text */
	uint16_t n;
	uint16_t back[JOB_TEXT_MAX + 1]; /* length of the match that is left after a mismatch */
	char text[JOB_TEXT_MAX];
};

static void free_look(struct look *k)
{
	if (k) {
		job_match_free(k->match);
		buf_fini(&k->bytes);
	}
	free(k);
}

static void on_closed(uv_handle_t *h)
{
	struct job_wait *w = h->data;

	if (--w->handles > 0)
		return;
	free_look(w->look);
	free(w);
}

static void leave_line(struct job_wait *w)
{
	struct job_wait **at = &w->job->all->jobs.looks;

	while (*at != w)
		at = &(*at)->look->next;
	*at = w->look->next;
	w->look->waiting = false;
}

static void let_go(struct job_wait *w)
{
	spool_cursor_close(w->cursor);
	job_unref(w->job);
	uv_close((uv_handle_t *)&w->timer, on_closed);
	uv_close((uv_handle_t *)&w->again, on_closed);
}

void job_wait_cancel(struct job_wait *w)
{
	if (w->look && w->look->working) {
		w->look->cancelled = true;
		uv_timer_stop(&w->timer);
		uv_timer_stop(&w->again);
		return;
	}
	if (w->look && w->look->waiting)
		leave_line(w);
	let_go(w);
}

static void job_wait_finish(struct job_wait *w, enum job_waited how, uint64_t offset,
			    const struct err *err)
{
	job_wait_done *on_done = w->on_done;
	void *arg = w->arg;

	job_wait_cancel(w);
	on_done(arg, how, offset, err);
}

/* ---- a text -------------------------------------------------------------------------------- */

static void job_wait_prepare(struct job_wait *w)
{
	uint16_t k = 0;

	for (uint16_t i = 1; i < w->n; i++) {
		while (k > 0 && w->text[i] != w->text[k])
			k = w->back[k];
		k = (uint16_t)(k + (w->text[i] == w->text[k]));
		w->back[i + 1] = k;
	}
}

/* How many bytes complete the text; 0: it is not complete. */
static size_t job_wait_search(struct job_wait *w, const struct sight *s)
{
	uint16_t k = w->came[s->stream];

	for (size_t i = 0; i < s->bytes.n; i++) {
		while (k > 0 && w->text[k] != s->bytes.p[i])
			k = w->back[k];
		k = (uint16_t)(k + (w->text[k] == s->bytes.p[i]));
		if (k == w->n)
			return i + 1;
	}
	w->came[s->stream] = k;
	return 0;
}

/* ---- a pattern ----------------------------------------------------------------------------- */

static void job_wait_pump(void *arg);
static void on_again(uv_timer_t *t);

static void look(uv_work_t *work)
{
	struct look *k = ((struct job_wait *)work->data)->look;

	k->found = k->last ? job_match_end(k->match, &k->why)
			   : job_match_feed(k->match, k->sight.stream, k->sight.bytes, &k->n,
					    &k->why);
}

/* The offset behind the first n bytes. What stands in the rest for something longer or shorter
 * moves it by the difference. */
static uint64_t sight_at(const struct sight *s, size_t n)
{
	return s->end - (s->bytes.n - n < s->end ? s->bytes.n - n : s->end);
}

static void look_on(struct job_wait *w)
{
	const struct look *k = w->look;
	uint64_t end = spool_cursor_at(w->cursor);

	if (k->found < 0)
		job_wait_finish(w, JOB_WAITED, sight_at(&k->sight, 0), &k->why);
	else if (k->found)
		job_wait_finish(w, JOB_MATCHED, k->last ? end : sight_at(&k->sight, k->n), NULL);
	else if (k->last)
		job_wait_finish(w, JOB_ENDED, end, NULL);
	else
		job_wait_pump(w);
}

static void serve_line(struct jobs *all);

/* The owner stays until all work has ended. */
static void on_looked(uv_work_t *work, int status)
{
	struct job_wait *w = work->data;
	struct spool *s = w->job->output;
	struct jobs *all = &w->job->all->jobs;

	w->look->working = false;
	all->looking = false;
	if (w->look->cancelled)
		let_go(w);
	else
		look_on(w);
	serve_line(all);
	spool_work_done(s);
}

static void serve_line(struct jobs *all)
{
	struct job_wait *w = all->looks;

	if (!w || all->looking)
		return;
	leave_line(w);
	all->looking = w->look->working = true;
	spool_ref(w->job->output);
	all->spools.works++;
	w->look->work.data = w;
	if (uv_queue_work(all->spools.loop, &w->look->work, look, on_looked) < 0)
		abort(); /* libuv fails only if a function is missing */
}

static void join_line(struct job_wait *w)
{
	struct job_wait **at = &w->job->all->jobs.looks;

	while (*at)
		at = &(*at)->look->next;
	*at = w;
	w->look->next = NULL;
	w->look->waiting = true;
	serve_line(&w->job->all->jobs);
}

/* False if there is no memory for it. */
static bool look_at(struct job_wait *w, const struct sight *s)
{
	struct look *k = w->look;

	k->bytes.n = 0;
	if (buf_add(&k->bytes, s->bytes.p, s->bytes.n, &k->why) < 0)
		return false;
	k->sight = (struct sight){ s->stream, buf_str(&k->bytes), s->end };
	w->turn = 0; /* others have theirs while the thread works */
	join_line(w);
	return true;
}

static bool is_looking(const struct job_wait *w)
{
	return w->look && (w->look->waiting || w->look->working);
}

/* ---- both ---------------------------------------------------------------------------------- */

static uint64_t held_back(const struct job_wait *w, unsigned stream)
{
	uint64_t n = w->view ? w->view->held(w->view_arg, stream) : 0;

	return n < w->ends[stream] ? n : w->ends[stream];
}

/* How far it has seen what was read. */
static uint64_t seen_until(const struct job_wait *w)
{
	uint64_t until = spool_cursor_at(w->cursor);

	for (unsigned i = 0; i < SPOOL_STREAMS; i++) {
		uint64_t n = held_back(w, i);

		if (n > 0 && w->ends[i] - n < until)
			until = w->ends[i] - n;
	}
	return until;
}

/* False if the wait is suspended or gone. */
static bool take_piece(struct job_wait *w, const struct spool_piece *piece, enum job_more more)
{
	struct sight s = { piece->stream, piece->bytes, 0 };
	size_t found;

	w->left -= piece->bytes.n;
	w->turn += piece->bytes.n;
	if (more == JOB_MORE) {
		w->ends[s.stream] = piece->offset + piece->bytes.n;
		w->fresh = true;
		w->quiet = false;
	}
	if (w->view)
		s.bytes = w->view->show(w->view_arg, piece, more);
	s.end = w->ends[s.stream] - held_back(w, s.stream);
	if (s.bytes.n == 0)
		return true;
	if (w->look) {
		if (!look_at(w, &s))
			job_wait_finish(w, JOB_WAITED, sight_at(&s, 0), &w->look->why);
		return false;
	}
	found = w->n ? job_wait_search(w, &s) : 0;
	if (found)
		job_wait_finish(w, JOB_MATCHED, sight_at(&s, found), NULL);
	return found == 0;
}

static bool take_held(struct job_wait *w)
{
	const struct spool_piece none = { .stream = w->asked++,
					  .offset = spool_cursor_at(w->cursor) };

	return take_piece(w, &none, w->last ? JOB_LAST : JOB_QUIET);
}

/* Nothing more is there now: what is held back is asked for where nothing comes for a while. */
static void job_wait_later(struct job_wait *w)
{
	if (!w->fresh || held_back(w, 0) + held_back(w, 1) == 0)
		return;
	w->fresh = false;
	w->quiet = true;
	uv_timer_start(&w->again, on_again, w->view->quiet_ms, 0);
}

/* One step; false if the wait is suspended or gone. */
static bool job_wait_step(struct job_wait *w)
{
	size_t max = w->left < LOOK_MAX ? (size_t)w->left : LOOK_MAX;
	struct spool_piece piece;

	if (w->asked < SPOOL_STREAMS)
		return take_held(w);
	if (max == 0) {
		job_wait_finish(w, JOB_WAITED, seen_until(w), NULL);
		return false;
	}
	if (w->turn >= TURN_MAX) {
		uv_timer_start(&w->again, on_again, 0, 0);
		return false;
	}
	switch (spool_cursor_next(w->cursor, w->streams, max, &piece)) {
	case SPOOL_PIECE:
		return take_piece(w, &piece, JOB_MORE);
	case SPOOL_LOST:
		/* Bytes that were held back before the gap are not searched. */
		memset(w->came, 0, sizeof(w->came));
		for (unsigned i = 0; w->view && i < SPOOL_STREAMS; i++)
			w->view->show(w->view_arg, &(struct spool_piece){ .stream = i }, JOB_LAST);
		if (w->look)
			job_match_gap(w->look->match);
		return true;
	case SPOOL_LATER:
		job_wait_later(w);
		return false;
	case SPOOL_END:
		if (w->view && !w->last) {
			w->last = true;
			w->asked = 0;
			job_wait_pump(w);
		} else if (w->look) {
			w->look->last = true;
			join_line(w);
		} else {
			job_wait_finish(w, JOB_ENDED, spool_cursor_at(w->cursor), NULL);
		}
		return false;
	}
	return false;
}

static void job_wait_pump(void *arg)
{
	struct job_wait *w = arg;

	if (!w->begun || is_looking(w))
		return;
	while (job_wait_step(w))
		;
}

static void on_again(uv_timer_t *t)
{
	struct job_wait *w = t->data;

	w->turn = 0;
	if (w->quiet)
		w->asked = 0;
	w->quiet = false;
	job_wait_pump(w);
}

/* How far it has looked. */
static uint64_t at(const struct job_wait *w)
{
	return is_looking(w) && !w->look->last ? sight_at(&w->look->sight, 0) : seen_until(w);
}

static void on_timer(uv_timer_t *t)
{
	struct job_wait *w = t->data;

	if (w->begun) {
		job_wait_finish(w, JOB_WAITED, at(w), NULL);
		return;
	}
	w->begun = true;
	if (w->timeout_ms)
		uv_timer_start(t, on_timer, w->timeout_ms, 0);
	job_wait_pump(w);
}

/* ---- the start ----------------------------------------------------------------------------- */

static int job_wait_check(const struct job_wait_options *o, struct err *e)
{
	if (o->text.n && o->pattern.n)
		return err_set(e, ERR_INVALID, "text and pattern: give one of them, not both");
	if (o->text.n > JOB_TEXT_MAX)
		return err_set(e, ERR_INVALID, "text: at most %d bytes", JOB_TEXT_MAX);
	if (o->pattern.n > JOB_PATTERN_MAX)
		return err_set(e, ERR_INVALID, "pattern: at most %d bytes", JOB_PATTERN_MAX);
	return 0;
}

static struct look *look_new(struct str pattern, struct err *e)
{
	struct look *k = calloc(1, sizeof(*k));

	if (!k)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	k->bytes = BUF_INIT(SEEN_MAX);
	k->match = job_match_new(pattern, e);
	if (k->match)
		return k;
	free(k);
	if (e->code == ERR_TOO_LARGE)
		e->code = ERR_INVALID;
	return err_wrap(e, "pattern"), NULL;
}

struct job_wait *job_wait_start(struct job *j, const struct job_wait_options *o,
				job_wait_done *on_done, void *arg, struct err *e)
{
	autofree struct job_wait *w = NULL;

	if (job_wait_check(o, e) < 0)
		return NULL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	if (o->pattern.n && !(w->look = look_new(o->pattern, e)))
		return NULL;
	w->cursor = spool_cursor_new(j->output, o->view ? o->from : o->offset, job_wait_pump, w, e);
	if (!w->cursor) {
		free_look(w->look);
		return NULL;
	}
	w->job = job_ref(j);
	w->on_done = on_done;
	w->arg = arg;
	/* To wait for the end, nothing has to be read. */
	w->streams = o->text.n || o->pattern.n || o->most ? o->streams : 0;
	w->left = o->most ? o->most + (o->view ? o->offset - o->from : 0) : UINT64_MAX;
	w->view = o->view;
	w->view_arg = o->view_arg;
	w->asked = SPOOL_STREAMS; /* nothing is held back yet */
	w->timeout_ms = o->timeout_ms;
	w->n = (uint16_t)o->text.n;
	memcpy(w->text, o->text.n ? o->text.p : "", o->text.n);
	job_wait_prepare(w);
	uv_timer_init(j->all->loop, &w->timer);
	uv_timer_init(j->all->loop, &w->again);
	w->handles = 2;
	w->timer.data = w->again.data = w;
	uv_timer_start(&w->timer, on_timer, 0, 0);
	return take_ptr(w);
}
