#pragma once
/*
 * How long a loop keeps its callers waiting. A step is what it does between two waits; whatever
 * becomes ready meanwhile waits for its end. The time of the clock tells what clients see, on a
 * busy machine too much; the processor's time tells what the loop itself did.
 */
#include <stdint.h>
#include <uv.h>

enum { LAG_LONG_MS = 50 }; /* a step that people notice */

struct lag {
	uv_prepare_t prepare;
	uint64_t at_ns, idle_ns, cpu_ns; /* when the step began */
	/* So far: the longest step by either time, all, and those longer than LAG_LONG_MS. */
	uint64_t longest_ns, longest_cpu_ns, steps, steps_long;
};

/* Before the loop runs. Its handle does not keep the loop alive; uv_close() of `prepare` ends
 * it. */
void lag_start(struct lag *l, uv_loop_t *loop);
