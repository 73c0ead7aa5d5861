#include "loop/await.h"

/* Called after the timers and before the loop asks how long it may sleep. */
static void on_prepare(uv_prepare_t *prepare)
{
	const struct loop_await *a = prepare->data;

	if (*a->done)
		uv_stop(prepare->loop);
}

void loop_await_init(struct loop_await *a, uv_loop_t *loop)
{
	uv_prepare_init(loop, &a->prepare);
	a->prepare.data = a;
}

void loop_await(struct loop_await *a, const bool *done)
{
	a->done = done;
	uv_prepare_start(&a->prepare, on_prepare);
	uv_unref((uv_handle_t *)&a->prepare);
	while (!*done)
		uv_run(a->prepare.loop, UV_RUN_DEFAULT);
	uv_prepare_stop(&a->prepare);
}
