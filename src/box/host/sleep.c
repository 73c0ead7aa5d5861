/*
 * Sleep, from the hub's side. When a sandbox got no request for box_config.sleep_after_ms, its init
 * is asked whether anything runs in it (IM_QUIESCE). If nothing does, the warden ends the init
 * (box/warden/sleep.c). The next request wakes the sandbox and waits for a new init. Callers need
 * not know.
 *
 * 	AWAKE ── nothing runs, WM_SLEEP ─→ FALLING_ASLEEP ── WM_ASLEEP ─→ ASLEEP
 * 	ASLEEP ── WM_WAKE ─→ WAKING ── WM_AWAKE ─→ AWAKE
 *
 * When the warden fails, the sandbox stays as it was, awake or asleep, and waiting requests get the
 * error.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "box/host/internal.h"

enum {
	AT_ONCE = 16, /* concurrent requests; the limit lets the warden serve others */
	/* after that others get a turn; an init that never answers is not asked again */
	ANSWER_MS = 3000,
};

static void put_to_sleep(struct box *box);

/* ---- falling asleep -------------------------------------------------------------------------- */

/* True if the hub has nothing in progress in it. */
static bool is_idle(const struct sandbox *sb)
{
	return sb->live && !sandbox_held(sb) && !sb->epoch && !sb->execs && !sb->calls &&
	       !sb->n_files;
}

static bool is_under_way(const struct sandbox *sb, uint64_t now)
{
	return ((sb->sleep == SANDBOX_AWAKE && sb->sleep_seq) ||
		sb->sleep == SANDBOX_FALLING_ASLEEP) &&
	       now < sb->asked_ms + ANSWER_MS;
}

static void sleep_ask(struct sandbox *sb, uint64_t now)
{
	const uint32_t seq = ++sb->box->last_seq;
	struct err e = ERR_INIT;

	if (sandbox_ask_quiet(sb, seq, &e) == 0) {
		sb->sleep_seq = seq;
		sb->asked_ms = now;
	} else {
		sb->heard_ms = now; /* sb is asked again later */
	}
}

void sandbox_is_quiet(struct sandbox *sb, const struct im_quiet *m)
{
	struct wm_sleep out = { .h = { WM_SLEEP, ++sb->box->last_seq }, .key = sb->key };
	struct err e = ERR_INIT;

	sb->sleep_seq = 0;
	if (is_idle(sb) && !m->processes && !m->objects &&
	    box_send(sb->box, &out, sizeof(out), &e) == 0) {
		sb->sleep = SANDBOX_FALLING_ASLEEP;
		sb->sleep_seq = out.h.seq;
		sb->asked_ms = clock_ms();
		uv_poll_stop(sb->poll); /* its init is about to end */
	}
	put_to_sleep(sb->box);
}

static void on_timer(uv_timer_t *t)
{
	put_to_sleep(t->data);
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Asks the sandboxes that are due, and sets the timer for the next one. */
static void put_to_sleep(struct box *box)
{
	const uint64_t now = clock_ms();
	uint64_t next = UINT64_MAX;
	uint32_t n = 0;

	for (const struct sandbox *sb = box->sandboxes; sb; sb = sb->next)
		n += is_under_way(sb, now);
	for (struct sandbox *sb = box->sandboxes; sb; sb = sb->next) {
		uint64_t due = sb->heard_ms + box->config.sleep_after_ms;

		if (is_idle(sb) && !sb->sleep_seq && !sb->sleepless) {
			if (now >= due && n < AT_ONCE) {
				n++;
				sleep_ask(sb, now);
				due = sb->heard_ms + box->config.sleep_after_ms;
			}
			if (now < due)
				next = sooner(next, due);
		}
		if (is_under_way(sb, now))
			next = sooner(next, sb->asked_ms + ANSWER_MS);
	}
	if (next == UINT64_MAX)
		uv_timer_stop(box->sleep_timer);
	else
		uv_timer_start(box->sleep_timer, on_timer, next - now, 0);
}

void box_watch_sleep(struct box *box)
{
	const uint64_t after = box->config.sleep_after_ms;

	if (!after)
		return;
	if (!box->sleep_timer) {
		box->sleep_timer = calloc(1, sizeof(*box->sleep_timer));
		if (!box->sleep_timer)
			return; /* the rest stay awake */
		uv_timer_init(box->loop, box->sleep_timer);
		box->sleep_timer->data = box;
	}
	if (!uv_is_active((uv_handle_t *)box->sleep_timer) ||
	    uv_timer_get_due_in(box->sleep_timer) > after)
		uv_timer_start(box->sleep_timer, on_timer, after, 0);
}

/* ---- waking ---------------------------------------------------------------------------------- */

int sandbox_wake(struct sandbox *sb, struct err *e)
{
	struct wm_sleep m = { .h = { WM_WAKE, ++sb->box->last_seq }, .key = sb->key };

	if (sb->sleep != SANDBOX_ASLEEP)
		return 0; /* it is waking, or will be once it sleeps */
	/* allocated now, so that nothing can fail once it is awake */
	sb->poll = calloc(1, sizeof(*sb->poll));
	if (!sb->poll)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (box_send(sb->box, &m, sizeof(m), e) < 0) {
		free(take_ptr(sb->poll));
		return -1;
	}
	sb->sleep = SANDBOX_WAKING;
	sb->sleep_seq = m.h.seq;
	return 0;
}

/* The sandbox stays asleep. Those that wait for it get the error, and its next use tries again.
 * What their callbacks ask of it at once is refused too. */
static void stay_asleep(struct sandbox *sb, const struct err *err)
{
	sandbox_ref(sb);
	log_warn("sandbox %s could not be woken: %s", sb->id, err->msg);
	free(take_ptr(sb->poll));
	sb->sleep = SANDBOX_WAKING;
	sb->sleep_seq = 0;
	sandbox_fail(sb, err);
	sb->sleep = SANDBOX_ASLEEP;
	sandbox_unref(sb);
}

/* The sandbox is awake: continues what waited. */
static void go_on(struct sandbox *sb)
{
	struct pending *waiting = take_ptr(sb->forking);

	if (!waiting)
		waiting = take_ptr(sb->pausing);
	sandbox_released(sb);
	if (waiting)
		box_source_awake(waiting);
}

/* ---- what the warden says -------------------------------------------------------------------- */

static struct sandbox *sleep_find(const struct box *box, uint32_t seq)
{
	struct sandbox *sb = box->sandboxes;

	while (sb && (sb->sleep == SANDBOX_AWAKE || sb->sleep_seq != seq))
		sb = sb->next;
	return sb;
}

void box_asleep(struct box *box, uint32_t seq)
{
	struct sandbox *sb = sleep_find(box, seq);
	struct err e = ERR_INIT;

	if (!sb || sb->sleep != SANDBOX_FALLING_ASLEEP)
		return;
	box_close_handle(take_ptr(sb->poll));
	close_fd(&sb->socket);
	sb->sleep = SANDBOX_ASLEEP;
	sb->sleep_seq = 0;
	if ((sb->queue || sb->forking || sb->pausing) && sandbox_wake(sb, &e) < 0)
		stay_asleep(sb, &e);
	put_to_sleep(box);
}

void box_awake(struct box *box, uint32_t seq, int *fd)
{
	struct sandbox *sb = sleep_find(box, seq);
	struct err e = ERR_INIT;

	if (!sb || sb->sleep != SANDBOX_WAKING)
		return;
	if (*fd < 0) { /* the warden still has the sandbox */
		err_set(&e, ERR_LIMIT, "too many files are open");
		stay_asleep(sb, &e);
		return;
	}
	sb->sleep = SANDBOX_AWAKE;
	sb->sleep_seq = 0;
	sandbox_listen(sb, take_fd(fd));
	go_on(sb);
}

void box_sleep_failed(struct box *box, uint32_t seq, const struct err *err)
{
	struct sandbox *sb = sleep_find(box, seq);

	if (!sb)
		return;
	if (sb->sleep == SANDBOX_WAKING) {
		stay_asleep(sb, err);
		return;
	}
	log_debug("sandbox %s stays awake: %s", sb->id, err->msg);
	sb->sleep = SANDBOX_AWAKE;
	sb->sleep_seq = 0;
	sb->sleepless = err->code == ERR_UNSUPPORTED;
	sandbox_listen_on(sb);
	go_on(sb);
	put_to_sleep(box);
}
