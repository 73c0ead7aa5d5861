/* http/server/rate.h and base/secret.h: who asks too much, and who does not know. */
#include "base/secret.h"
#include "http/server/rate.h"
#include "test.h"

static unsigned taken(struct rate *r, uint64_t key, uint64_t now_ms, unsigned tries)
{
	unsigned n = 0, after;

	for (unsigned i = 0; i < tries; i++)
		n += rate_take(r, key, now_ms, &after);
	return n;
}

static void a_bucket_fills_again(void **state)
{
	struct rate *r = rate_new(10, 20);
	unsigned after = 0;

	assert_int_equal(taken(r, 1, 1000, 100), 20);
	assert_int_equal(taken(r, 1, 1099, 100), 0);
	assert_int_equal(taken(r, 1, 1100, 100), 1);
	assert_int_equal(taken(r, 1, 2100, 100), 10);
	assert_int_equal(taken(r, 1, 1000000000000, 100), 20);
	assert_false(rate_take(r, 1, 1000000000000, &after));
	assert_int_equal(after, 1);
	rate_free(r);
}

static void slow_ones_wait_long(void **state)
{
	struct rate *r = rate_new(1, 1);
	unsigned after = 0;

	assert_true(rate_take(r, 7, 0, &after));
	assert_false(rate_take(r, 7, 0, &after));
	assert_true(after >= 1 && after <= 2);
	assert_false(rate_take(r, 7, 999, &after));
	assert_true(rate_take(r, 7, 1000, &after));
	rate_free(r);
}

static void keys_do_not_share(void **state)
{
	struct rate *r = rate_new(1, 5);

	for (uint64_t key = 1; key <= 100; key++)
		assert_int_equal(taken(r, key, 0, 10), 5);
	rate_free(r);
}

/* Many keys get no more than what the table has room for, and then share. */
static void many_keys_are_no_way_around(void **state)
{
	struct rate *r = rate_new(1, 2);
	unsigned n = 0;

	for (uint64_t key = 1; key <= 100000; key++)
		n += taken(r, key, 0, 2);
	assert_true(n <= 2 * (1024 + 1));
	/* once they are full again, they give their places away */
	assert_int_equal(taken(r, 1234567, 10000, 10), 2);
	rate_free(r);
}

static void extremes(void **state)
{
	struct rate *r = rate_new(UINT32_MAX, UINT32_MAX);

	assert_int_equal(taken(r, UINT64_MAX, UINT64_MAX / 2, 1000), 1000);
	assert_int_equal(taken(r, UINT64_MAX, UINT64_MAX, 1000), 1000);
	rate_free(r);
}

static void secrets(void **state)
{
	struct err e;
	AUTO(secret_free) struct secret *s = secret_new(STR_LIT("holt_abc"), &e);
	AUTO(secret_free) struct secret *empty = secret_new(STR_LIT(""), &e);
	AUTO(secret_free) struct secret *a = secret_random("holt_", &e);
	AUTO(secret_free) struct secret *b = secret_random("holt_", &e);

	assert_true(secret_is(s, STR_LIT("holt_abc")));
	assert_false(secret_is(s, STR_LIT("holt_abd")));
	assert_false(secret_is(s, STR_LIT("holt_ab")));
	assert_false(secret_is(s, STR_LIT("holt_abcd")));
	assert_false(secret_is(s, STR_LIT("")));
	assert_false(secret_is(s, STR_NONE));
	assert_true(secret_is(empty, STR_LIT("")));
	assert_int_equal(secret_expose(a, "test").n, 5 + 64);
	assert_true(str_starts(secret_expose(a, "test"), "holt_"));
	assert_false(secret_is(a, secret_expose(b, "test")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bucket_fills_again),
		cmocka_unit_test(slow_ones_wait_long),
		cmocka_unit_test(keys_do_not_share),
		cmocka_unit_test(many_keys_are_no_way_around),
		cmocka_unit_test(extremes),
		cmocka_unit_test(secrets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
