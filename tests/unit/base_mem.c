/* base/buf.h, base/arena.h, base/mem.h, base/id.h: memory that is bounded and owned. */
#include <fcntl.h>
#include <malloc.h>
#include <stdalign.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "alloc_fail.h"
#include "base/arena.h"
#include "base/budget.h"
#include "base/buf.h"
#include "base/id.h"
#include "test.h"

static void a_buffer_keeps_its_maximum(void **state)
{
	autobuf struct buf b = BUF_INIT(10);
	struct err e = ERR_INIT;

	assert_string_equal(buf_str(&b).p, "");
	assert_int_equal(buf_add(&b, "12345", 5, &e), 0);
	assert_int_equal(buf_addf(&b, &e, "%d", 67890), 0);
	assert_string_equal(b.p, "1234567890");
	assert_int_equal(buf_add(&b, "x", 1, &e), -1);
	assert_int_equal(e.code, ERR_TOO_LARGE);
	assert_int_equal(buf_addf(&b, &e, "x"), -1);
	assert_string_equal(b.p, "1234567890");
	assert_int_equal(buf_add(&b, NULL, 0, &e), 0);
	buf_drop(&b, 4);
	assert_string_equal(b.p, "567890");
	assert_int_equal(b.n, 6);
	buf_drop(&b, 0);
	assert_int_equal(buf_add(&b, "abcd", 4, &e), 0);
	assert_string_equal(b.p, "567890abcd");
	assert_null(buf_reserve(&b, SIZE_MAX, &e));
	buf_fini(&b);
	assert_int_equal(b.n, 0);
	assert_int_equal(buf_add(&b, "again", 5, &e), 0);
}

static void buffers_share_a_budget(void **state)
{
	struct budget all = { .max = 100000 };
	struct buf a = { .max = 1 << 20, .of = &all }, b = a, small = a;
	char text[5000] = "";
	struct err e = ERR_INIT;

	while (buf_add(&a, text, sizeof(text), &e) == 0)
		;
	assert_int_equal(e.code, ERR_LIMIT);
	assert_true(a.n > 30000 && all.used == a.cap);
	while (buf_add(&b, text, sizeof(text), &e) == 0)
		;
	assert_int_equal(e.code, ERR_LIMIT);
	assert_true(all.used == a.cap + b.cap && all.used <= all.max);
	buf_fit(&b);
	assert_int_equal(b.cap, b.n);
	assert_int_equal(all.used, a.cap + b.cap);
	buf_fit(&b);
	assert_memory_equal(b.p, text, sizeof(text));
	/* small ones can be had in any case */
	assert_int_equal(buf_add(&small, text, sizeof(text), &e), 0);
	buf_fini(&a);
	assert_int_equal(all.used, b.cap);
	free(buf_take(&b));
	assert_int_equal(all.used, 0);
	buf_fini(&small);
	assert_int_equal(all.used, 0);
}

static void a_buffer_grows(void **state)
{
	autobuf struct buf b = BUF_INIT(100000);
	struct err e;
	autofree char *taken = NULL;

	for (int i = 0; i < 20000; i++)
		assert_int_equal(buf_add(&b, "abcde", 5, &e), 0);
	assert_int_equal(b.n, 100000);
	taken = buf_take(&b);
	assert_int_equal(strlen(taken), 100000);
	assert_null(b.p);
	assert_null(buf_take(&b));
}

static void a_buffer_is_filled_in_place(void **state)
{
	autobuf struct buf b = BUF_INIT(8);
	struct err e;
	char *at = buf_reserve(&b, 8, &e);

	assert_non_null(at);
	memcpy(at, "12345678", 8);
	buf_advance(&b, 3);
	assert_string_equal(b.p, "123");
}

static void a_buffer_survives_want_of_memory(void **state)
{
	for (unsigned n = 0; alloc_fail_next(&n);) {
		autobuf struct buf b = BUF_INIT(1000);
		struct err e = ERR_INIT;
		int rc = 0;

		for (int i = 0; i < 100 && rc == 0; i++)
			rc = buf_add(&b, "0123456789", 10, &e);
		assert_int_equal(rc, alloc_failed() ? -1 : 0);
		assert_true(rc == 0 || e.code == ERR_LIMIT);
		assert_int_equal(b.n % 10, 0);
	}
}

static void an_arena_is_zeroed_and_aligned(void **state)
{
	AUTO(arena_free) struct arena *a = arena_new(4 << 20);
	struct err e;

	for (size_t n = 0; n < 5000; n += 7) {
		char *p = arena_alloc(a, n, &e);

		assert_non_null(p);
		assert_int_equal((uintptr_t)p % alignof(max_align_t), 0);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(p[i], 0);
		memset(p, 0xff, n);
	}
}

static void an_arena_keeps_its_maximum(void **state)
{
	AUTO(arena_free) struct arena *a = arena_new(1000);
	struct err e = ERR_INIT;
	size_t got = 0;

	assert_null(arena_alloc(a, 1001, &e));
	assert_int_equal(e.code, ERR_TOO_LARGE);
	assert_null(arena_alloc(a, SIZE_MAX, &e));
	assert_null(arena_array(a, SIZE_MAX / 2, 3, &e));
	while (arena_alloc(a, 10, &e))
		got += 10;
	assert_true(got <= 1000 && got >= 500);
}

static void an_arena_makes_strings(void **state)
{
	AUTO(arena_free) struct arena *a = arena_new(1000);
	struct err e;

	assert_string_equal(arena_dup(a, (struct str){ "abcdef", 3 }, &e), "abc");
	assert_string_equal(arena_dup(a, STR_NONE, &e), "");
	assert_string_equal(arena_printf(a, &e, "%s-%d", "x", 7), "x-7");
}

static void an_arena_takes_another(void **state)
{
	for (int used = 0; used < 2; used++) {
		AUTO(arena_free) struct arena *a = arena_new(10000), *from = arena_new(10000);
		struct err e;
		const char *big, *small;

		if (used)
			assert_non_null(arena_dup(a, STR_LIT("first"), &e));
		assert_non_null(arena_alloc(from, 6000, &e));
		big = arena_dup(from, STR_LIT("taken"), &e);
		assert_int_equal(arena_take(a, from, &e), 0);
		small = arena_dup(a, STR_LIT("behind"), &e);
		assert_string_equal(big, "taken");
		assert_string_equal(small, "behind");
		/* It is empty, and together they have one limit. */
		assert_non_null(arena_alloc(from, 6000, &e));
		assert_int_equal(arena_take(a, from, &e), -1);
		assert_int_equal(e.code, ERR_TOO_LARGE);
	}
}

static void an_arena_survives_want_of_memory(void **state)
{
	for (unsigned n = 0; alloc_fail_next(&n);) {
		AUTO(arena_free) struct arena *a = arena_new(1 << 20);
		struct err e = ERR_INIT;

		if (!a)
			continue;
		for (int i = 0; i < 10; i++) {
			if (!arena_alloc(a, 3000, &e))
				assert_int_equal(e.code, ERR_LIMIT);
		}
	}
}

static void what_is_taken_is_not_freed(void **state)
{
	char *kept;
	int fd;

	{
		autofree char *p = malloc(10);
		autoclose int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

		kept = take_ptr(p);
		fd = take_fd(&null);
		assert_null(p);
		assert_int_equal(null, -1);
	}
	free(kept);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	{
		autoclose int closed = fd;

		assert_int_equal(closed, fd);
	}
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static long faults(void)
{
	struct rusage of;

	assert_int_equal(getrusage(RUSAGE_SELF, &of), 0);
	return of.ru_minflt;
}

static bool host_has_huge_pages(void)
{
#if defined(__SANITIZE_ADDRESS__)
	return false; /* its realloc() copies, and what it knows of memory takes memory */
#else
	FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
	char text[64] = "";

	if (f) {
		if (!fgets(text, sizeof(text), f))
			text[0] = '\0';
		fclose(f);
	}
	return *text && !strstr(text, "[never]");
#endif
}

/* A page that is touched first costs a fault, so what is large is touched in huge ones. */
static void large_memory_costs_few_faults(void **state)
{
	enum { SIZE = 64 << 20, PAGES = SIZE / 4096 };
	static char text[64 << 10];
	autobuf struct buf b = BUF_INIT(SIZE);
	struct arena a;
	struct err e;
	long before;

	if (!host_has_huge_pages())
		skip();
	mallopt(M_PERTURB, 0); /* meson's, for which malloc() would touch it first */
	memset(text, 'x', sizeof(text));
	before = faults();
	while (b.n < SIZE)
		assert_int_equal(buf_add(&b, text, sizeof(text), &e), 0);
	assert_in_range(faults() - before, 0, PAGES / 4);
	arena_init(&a, 2 * (size_t)SIZE);
	before = faults();
	assert_non_null(arena_dup(&a, buf_str(&b), &e));
	assert_in_range(faults() - before, 0, PAGES / 4);
	arena_fini(&a);
}

static void ids_are_new(void **state)
{
	char a[ID_MAX], b[ID_MAX];

	id_make(a, "sb");
	id_make(b, "sb");
	assert_int_equal(strlen(a), 2 + 1 + 32);
	assert_memory_equal(a, "sb-", 3);
	assert_int_equal(strspn(a + 3, "0123456789abcdef"), 32);
	assert_string_not_equal(a, b);
	id_make(a, "a_prefix_that_is_too_long");
	assert_int_equal(strlen(a), 12 + 1 + 32);
}

static void strings_compare_by_bytes(void **state)
{
	assert_true(str_eq(STR_NONE, STR_LIT("")));
	assert_false(str_eq(STR_LIT("a\0b"), STR_LIT("a\0c")));
	assert_true(str_is(STR_LIT("abc"), "abc"));
	assert_false(str_is(STR_LIT("abc\0"), "abc"));
	assert_true(str_starts(STR_LIT("abc"), "ab"));
	assert_false(str_starts(STR_LIT("a"), "ab"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_buffer_keeps_its_maximum),
		cmocka_unit_test(a_buffer_grows),
		cmocka_unit_test(buffers_share_a_budget),
		cmocka_unit_test(a_buffer_is_filled_in_place),
		cmocka_unit_test(a_buffer_survives_want_of_memory),
		cmocka_unit_test(an_arena_is_zeroed_and_aligned),
		cmocka_unit_test(an_arena_keeps_its_maximum),
		cmocka_unit_test(an_arena_makes_strings),
		cmocka_unit_test(an_arena_takes_another),
		cmocka_unit_test(an_arena_survives_want_of_memory),
		cmocka_unit_test(what_is_taken_is_not_freed),
		cmocka_unit_test(large_memory_costs_few_faults),
		cmocka_unit_test(ids_are_new),
		cmocka_unit_test(strings_compare_by_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
