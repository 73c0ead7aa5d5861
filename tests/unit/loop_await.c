/* loop/await.h: what is waited for may be a timer that is due before the loop first sleeps. */
#include <time.h>

#include "loop/await.h"
#include "test.h"

static void on_timer(uv_timer_t *t)
{
	*(bool *)t->data = true;
}

static void sleep_ms(unsigned ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000L }, NULL);
}

static void test_timer(void **state)
{
	uv_timer_t soon, much_later;
	struct loop_await a;
	uv_loop_t loop;

	uv_loop_init(&loop);
	loop_await_init(&a, &loop);
	uv_timer_init(&loop, &soon);
	uv_timer_init(&loop, &much_later);
	uv_timer_start(&much_later, on_timer, 3600 * 1000, 0);
	for (unsigned late = 0; late < 2; late++) {
		bool done = false;

		soon.data = &done;
		uv_timer_start(&soon, on_timer, 5, 0);
		sleep_ms(late * 20); /* it is due when the loop begins */
		loop_await(&a, &done);
		assert_true(done);
		loop_await(&a, &done); /* returns at once */
	}
	uv_close((uv_handle_t *)&a.prepare, NULL);
	uv_close((uv_handle_t *)&soon, NULL);
	uv_close((uv_handle_t *)&much_later, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_timer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
