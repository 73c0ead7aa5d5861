#include "loop/lag.h"

#include <time.h>

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Just before the loop waits: a step has ended. */
static void on_wait(uv_prepare_t *prepare)
{
	struct lag *l = prepare->data;
	uint64_t at = uv_hrtime(), idle = uv_metrics_idle_time(prepare->loop), cpu = cpu_ns();
	uint64_t took = at - l->at_ns - (idle - l->idle_ns), worked = cpu - l->cpu_ns;

	l->at_ns = at;
	l->idle_ns = idle;
	l->cpu_ns = cpu;
	if (l->steps++ == 0)
		return; /* the start, when nobody waits yet */
	l->longest_ns = took > l->longest_ns ? took : l->longest_ns;
	l->longest_cpu_ns = worked > l->longest_cpu_ns ? worked : l->longest_cpu_ns;
	l->steps_long += took > LAG_LONG_MS * 1000000ULL;
}

void lag_start(struct lag *l, uv_loop_t *loop)
{
	*l = (struct lag){ .steps = 0 };
	uv_loop_configure(loop, UV_METRICS_IDLE_TIME);
	uv_prepare_init(loop, &l->prepare);
	l->prepare.data = l;
	uv_prepare_start(&l->prepare, on_wait);
	uv_unref((uv_handle_t *)&l->prepare);
}
