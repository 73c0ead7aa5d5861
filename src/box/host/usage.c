/* The use of sandboxes: the warden reads the kernel's counters; this process adds the bytes that
 * went through it. */
#include <assert.h>
#include <stdlib.h>

#include "box/host/internal.h"

enum { USAGE_MS = 3000 };

static_assert((int)USAGE_MAX == (int)WIRE_USAGE_MAX && (int)USAGE_MAX <= (int)WIRE_FORK_MAX,
	      "one message, and one request, has them all");

void sandbox_carried(struct sandbox *sb, uint64_t in, uint64_t out)
{
	sandbox_count(sb, in, out);
}

uint64_t sandbox_bytes_out(const struct sandbox *sb)
{
	return sb->bytes_out;
}

/* It is told once. */
void usage_out(struct sandbox *sb, uint64_t bytes)
{
	void (*on_out)(void *arg) = sb->on_out;

	sb->out_left -= bytes < sb->out_left ? bytes : sb->out_left;
	if (sb->out_left)
		return;
	sb->on_out = NULL;
	on_out(sb->on_out_arg);
}

void sandbox_watch_out(struct sandbox *sb, uint64_t bytes, void (*on_out)(void *arg), void *arg)
{
	sb->out_left = bytes > sb->bytes_out ? bytes - sb->bytes_out : 0;
	sb->on_out = bytes == UINT64_MAX ? NULL : on_out;
	sb->on_out_arg = arg;
	if (sb->on_out)
		usage_out(sb, 0);
}

/* ---- the answer ------------------------------------------------------------------------------ */

static struct usage read_use(const struct wm_use *u)
{
	return (struct usage){
		.lives = u->has & WM_USE_LIVES,
		.has_memory = u->has & WM_USE_MEMORY,
		.has_memory_peak = u->has & WM_USE_PEAK,
		.has_cpu = u->has & WM_USE_CPU,
		.has_pids = u->has & WM_USE_PIDS,
		.has_disk = u->has & WM_USE_DISK,
		.memory = u->memory,
		.memory_peak = u->memory_peak,
		.cpu_us = u->cpu_us,
		.pids = u->pids,
		.disk = u->disk,
	};
}

void usage_said(struct pending *p, const struct wm_used *m)
{
	struct usage u[USAGE_MAX];
	size_t n = p->n ? p->n : 1;

	for (size_t i = 0; i < n; i++) {
		const struct sandbox *sb = p->children[i];

		u[i] = read_use(&m->of[i]);
		if (!sb)
			continue;
		u[i].execs = sb->n_execs;
		u[i].execs_running = exec_count(sb);
		u[i].bytes_in = sb->bytes_in;
		u[i].bytes_out = sb->bytes_out;
	}
	p->on_usage(p->arg, u, n, NULL);
	box_forget(p);
}

static void usage_fail(struct pending *p, const struct err *err)
{
	p->on_usage(p->arg, NULL, 0, err);
	box_forget(p);
}

static void on_timeout(uv_timer_t *t)
{
	struct pending *p = t->data;
	struct err e = ERR_INIT;

	err_set(&e, ERR_TIMEOUT, "what holds the sandboxes is too busy to count");
	usage_fail(box_expected(p->box, p->seq), &e);
}

/* ---- the question ---------------------------------------------------------------------------- */

/* The request is off the list; the box may be gone by now. */
static void on_refused(void *arg)
{
	struct err e = ERR_INIT;

	err_set(&e, ERR_GUEST, "the process that held all sandboxes ended");
	usage_fail(arg, &e);
}

static int usage_ask(struct pending *p, struct err *e)
{
	struct wm_usage m = { .h = { WM_USAGE, p->seq }, .n = p->n };

	if (p->box->state == BOX_DEAD || p->box->state == BOX_CLOSING)
		return err_set(e, ERR_GUEST, "there is no warden");
	for (uint32_t i = 0; i < p->n; i++)
		m.keys[i] = p->children[i]->key;
	return box_send(p->box, &m, sizeof(m), e);
}

void usage_start(struct box *box, struct sandbox *const *of, size_t n, usage_cb on_done, void *arg)
{
	struct pending *p = box_expect(box, arg);
	struct err e = ERR_INIT;

	if (!p || !(p->timer = calloc(1, sizeof(*p->timer))))
		abort(); /* without memory, no promise of an answer can be kept */
	p->box = box;
	p->on_usage = on_done;
	p->n = (uint32_t)(n < USAGE_MAX ? n : USAGE_MAX);
	for (uint32_t i = 0; i < p->n; i++)
		p->children[i] = sandbox_ref(of[i]);
	uv_timer_init(box->loop, p->timer);
	p->timer->data = p;
	if (usage_ask(p, &e) == 0)
		uv_timer_start(p->timer, on_timeout, USAGE_MS, 0);
	else if (box_later(box, on_refused, box_expected(box, p->seq), &e) < 0)
		abort();
}
