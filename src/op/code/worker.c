/*
 * Processes of holt-js. One serves a run at a time; with worker_leave() it waits for the next, of
 * the same sandbox and so of the same principal, until it has waited for CODE_WARM_MS. It frees
 * itself when it has ended.
 */
#include <stdlib.h>

#include "op/code/internal.h"

enum {
	OUT_MAX = 64 << 20, /* frames that wait for it to read: CODE_TOGETHER_MAX results */
	STDIN_PIECE = 256 << 10,
	FRAME_MEMORY = 48 << 20, /* of what one frame says */
};

struct code_worker {
	struct code_worker *next; /* of those that wait */
	struct code_workers *of;
	struct exec *exec; /* NULL: it has ended */
	struct code_reader in;
	struct buf out;
	bool dead; /* it is being killed */
	const struct code_worker_events *events;
	void *run; /* NULL: it serves none */
	uv_timer_t timer; /* since it waits */
};

struct buf *worker_out(struct code_worker *w)
{
	return &w->out;
}

/* ---- its end ------------------------------------------------------------------------------- */

static void idle_remove(struct code_worker *w)
{
	struct code_worker **at = &w->of->idle;

	while (*at && *at != w)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = w->next;
	w->of->n_idle--;
}

static void worker_kill(struct code_worker *w)
{
	idle_remove(w);
	if (!w->dead && w->exec)
		exec_kill(w->exec);
	w->dead = true;
}

/* The run hears no more of it. */
static void worker_part(struct code_worker *w)
{
	w->run = NULL;
	w->of->n_busy--;
}

static void on_timer_closed(uv_handle_t *h)
{
	free(h->data);
}

static void worker_on_exit(void *arg, const struct exec_result *r, const struct err *err)
{
	struct code_worker *w = arg;
	void *run = w->run;

	idle_remove(w);
	w->exec = NULL;
	w->dead = true;
	if (run) {
		worker_part(w);
		w->events->on_end(run, r, err);
	}
	code_reader_fini(&w->in);
	buf_fini(&w->out);
	uv_close((uv_handle_t *)&w->timer, on_timer_closed);
}

/* ---- frames -------------------------------------------------------------------------------- */

static void worker_broken(struct code_worker *w, const struct err *e)
{
	void *run = w->run;

	worker_kill(w);
	if (!run)
		return;
	worker_part(w);
	w->events->on_end(run, NULL, e);
}

static bool worker_read(struct code_worker *w)
{
	AUTO(arena_free) struct arena *a = arena_new(FRAME_MEMORY);
	struct code_frame f;
	struct err e = ERR_INIT;
	int got = a ? code_reader_next(&w->in, a, &f, &e) : err_set(&e, ERR_LIMIT, "out of memory");

	if (got > 0 && w->run)
		w->events->on_frame(w->run, &f);
	else if (got != 0)
		worker_broken(w, &e); /* also where it speaks to nobody */
	return got > 0 && !w->dead;
}

static void worker_on_output(void *arg, enum exec_stream stream, const char *p, size_t n)
{
	struct code_worker *w = arg;
	struct err e = ERR_INIT;

	if (stream != EXEC_STDOUT || w->dead)
		return;
	if (code_reader_add(&w->in, (struct str){ p, n }, &e) < 0) {
		worker_broken(w, &e);
		return;
	}
	while (worker_read(w))
		;
}

static const struct exec_events worker_exec = { worker_on_output, worker_on_exit };

void worker_flush(struct code_worker *w)
{
	struct err e = ERR_INIT;

	while (w->exec && !w->dead && w->out.n > 0 && exec_waiting(w->exec) < STDIN_PIECE) {
		size_t n = w->out.n < STDIN_PIECE ? w->out.n : STDIN_PIECE;

		if (exec_write(w->exec, w->out.p, n, &e) < 0)
			break;
		buf_drop(&w->out, n);
	}
}

static void worker_on_drain(void *arg)
{
	worker_flush(arg);
}

/* ---- runs ---------------------------------------------------------------------------------- */

static struct code_worker *worker_new(struct code_workers *of, struct sandbox *sb, uv_loop_t *loop,
				      struct err *e)
{
	static const struct str argv[] = { { CODE_PROGRAM, sizeof(CODE_PROGRAM) - 1 } };
	const struct exec_spec spec = { .argv = argv, .n_argv = 1, .stdin_open = true };
	struct code_worker *w = calloc(1, sizeof(*w));

	if (!w)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	w->of = of;
	code_reader_init(&w->in);
	w->out = BUF_INIT(OUT_MAX);
	w->exec = exec_start(sb, &spec, &worker_exec, w, e);
	if (!w->exec) {
		free(w);
		return NULL;
	}
	exec_on_drain(w->exec, worker_on_drain, w);
	uv_timer_init(loop, &w->timer);
	w->timer.data = w;
	return w;
}

struct code_worker *worker_take(struct code_place *p, struct sandbox *sb, uv_loop_t *loop,
				const struct code_worker_events *ev, void *run, struct err *e)
{
	struct code_workers *of = place_workers(p);
	struct code_worker *w = of->idle;

	if (of->n_busy >= CODE_RUNS_MAX)
		return err_set(e, ERR_LIMIT, "%d runs of code at once", CODE_RUNS_MAX), NULL;
	if (w) {
		idle_remove(w);
		uv_timer_stop(&w->timer);
	} else {
		w = worker_new(of, sb, loop, e);
	}
	if (!w)
		return NULL;
	of->n_busy++;
	w->events = ev;
	w->run = run;
	return w;
}

static void on_waited(uv_timer_t *t)
{
	worker_kill(t->data);
}

void worker_leave(struct code_worker *w, bool again)
{
	struct code_workers *of = w->of;

	worker_part(w);
	if (!again || w->dead || w->out.n > 0 || of->n_idle >= CODE_WARM_MAX) {
		worker_kill(w);
		return;
	}
	w->next = of->idle;
	of->idle = w;
	of->n_idle++;
	uv_timer_start(&w->timer, on_waited, CODE_WARM_MS, 0);
}
