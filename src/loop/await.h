#pragma once
/*
 * Runs a loop until a condition holds, for callers that have nothing else to do.
 * uv_run(UV_RUN_ONCE) in a while loop is not enough: before libuv 1.45 it runs the due timers and
 * then waits for the next event, for ever if none comes, although one of the timers has set the
 * condition.
 */
#include <stdbool.h>
#include <uv.h>

struct loop_await {
	uv_prepare_t prepare;
	const bool *done;
};

/* Its handle does not keep the loop alive. Close it like any other handle: uv_close() of
 * `prepare`. */
void loop_await_init(struct loop_await *a, uv_loop_t *loop);

/* Returns when callbacks of the loop have set *done; some more may have run by then. */
void loop_await(struct loop_await *a, const bool *done);
