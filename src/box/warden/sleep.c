/*
 * Sleep: a sandbox in which nothing runs keeps its files and control groups, and gives up its first
 * process with all that the kernel holds for it, above all the network namespace. When it is used
 * again, it gets a new first process in new namespaces on the same root.
 *
 * Its state stays SANDBOX_LIVE; enum sandbox_sleep changes:
 *
 *	AWAKE ── WM_SLEEP ─→ FALLING ── its process is reaped ─→ ASLEEP
 *	ASLEEP ── WM_WAKE ─→ WAKING ── IM_READY ─→ AWAKE
 *	WAKING ── its new process can't be set up ─→ FALLING
 *
 * The overlay must stay the same one: a second overlay over the same layers is undefined while a
 * descriptor holds the first.
 */
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "box/warden/internal.h"

/* Memory kept free for the process that it wakes with: files alone may have taken all the rest. */
#define WAKING_BYTES (8 * MIB)

struct sandbox *find_awake(uint64_t key, struct err *e)
{
	struct sandbox *b = sandbox_find(key);

	if (!b)
		err_set(e, ERR_SANDBOX_NOT_FOUND, "the sandbox has ended");
	else if (b->sleep != SANDBOX_AWAKE)
		err_set(e, ERR_CONFLICT, "the sandbox is asleep");
	else
		return b;
	return NULL;
}

/* Ends its first process; then it is asleep. */
static void end_process(struct sandbox *b)
{
	unwatch(&b->socket);
	b->sleep = SANDBOX_FALLING;
	syscall(SYS_pidfd_send_signal, b->pidfd, SIGKILL, NULL, 0);
}

int sandbox_sleep(const struct hub_message *in, struct err *e)
{
	const struct wm_sleep *m = in->p;
	struct sandbox *b = find_awake(m->key, e);

	if (!b)
		return -1;
	if (b->n_mounts)
		return err_set(e, ERR_UNSUPPORTED,
			       "what is mounted in it would have to be mounted anew");
	if (b->paused || is_source(b))
		return err_set(e, ERR_CONFLICT, "the sandbox is paused, or being copied");
	if (memory_left(b) < WAKING_BYTES)
		return err_set(e, ERR_LIMIT, "too little of its memory is left to wake with");
	if (store_keep_root(&warden.store, b->chain.upper, b->pidfd, e) < 0)
		return -1;
	b->sleep_seq = m->h.seq;
	end_process(b);
	return 0;
}

/* ---- waking ---------------------------------------------------------------------------------- */

/* The warden keeps the socket, too: a hub that could not receive it will ask again. */
static void say_awake(struct sandbox *b)
{
	const struct wm_head m = { WM_AWAKE, b->wake_seq };

	b->wake_seq = 0;
	send_hub(&m, sizeof(m), &b->socket, 1);
}

void sandbox_awake(struct sandbox *b)
{
	/* The hub that asked is gone, and the next hub was told that the sandbox sleeps. */
	if (!b->wake_seq) {
		end_process(b);
		return;
	}
	epoll_ctl(warden.epoll, EPOLL_CTL_DEL, b->socket, NULL);
	b->sleep = SANDBOX_AWAKE;
	yield_watch(b);
	say_awake(b);
}

void wake_failed(struct sandbox *b, const struct err *e)
{
	if (b->wake_seq)
		send_failed(b->wake_seq, e);
	else
		log_warn("a sandbox could not be woken: %s", e->msg);
	b->wake_seq = 0;
	end_process(b);
}

static int start_waking(struct sandbox *b, struct err *e)
{
	b->sleep = SANDBOX_WAKING;
	if (sandbox_restart(b, e) == 0)
		return 0;
	b->wake_seq = 0;
	if (b->pidfd >= 0) {
		end_process(b);
	} else {
		unwatch(&b->socket);
		b->sleep = SANDBOX_ASLEEP;
	}
	return -1;
}

int sandbox_wake(const struct hub_message *in, struct err *e)
{
	const struct wm_sleep *m = in->p;
	struct sandbox *b = sandbox_find(m->key);

	if (!b)
		return err_set(e, ERR_SANDBOX_NOT_FOUND, "the sandbox has ended");
	if (b->sleep == SANDBOX_AWAKE && b->socket < 0)
		return err_set(e, ERR_BUG, "the sandbox has not slept");
	b->wake_seq = m->h.seq;
	if (b->sleep == SANDBOX_ASLEEP)
		return start_waking(b, e);
	if (b->sleep == SANDBOX_AWAKE)
		say_awake(b);
	return 0; /* otherwise answered when it has fallen asleep, or is awake */
}

void sandbox_slept(struct sandbox *b)
{
	const struct wm_head m = { WM_ASLEEP, b->sleep_seq };
	uint32_t wake_seq = b->wake_seq;
	struct err e = ERR_INIT;

	if (b->sleep == SANDBOX_WAKING) {
		err_set(&e, ERR_GUEST, "the sandbox's new first process died");
		wake_failed(b, &e);
		wake_seq = 0;
	}
	unwatch(&b->pidfd);
	b->sleep = SANDBOX_ASLEEP;
	if (b->sleep_seq)
		send_hub(&m, sizeof(m), NULL, 0);
	b->sleep_seq = 0;
	if (wake_seq && start_waking(b, &e) < 0)
		send_failed(wake_seq, &e);
}
