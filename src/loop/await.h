#pragma once
/*
 * Runs a loop until something is so, for who has nothing else to do meanwhile. uv_run(UV_RUN_ONCE)
 * in a while won't do: before libuv 1.45 it runs the timers that are due and then waits for the
 * next event, without end if none comes, although one of the timers was what was waited for.
 */
#include <stdbool.h>
#include <uv.h>

struct loop_await {
	uv_prepare_t prepare;
	const bool *done;
};

/* Its handle does not keep the loop alive. Closed like any other, by uv_close() of prepare. */
void loop_await_init(struct loop_await *a, uv_loop_t *loop);

/* Returns when *done, which callbacks of the loop set; some more may have come by then. */
void loop_await(struct loop_await *a, const bool *done);
