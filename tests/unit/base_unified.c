/* base/unified.h: what `diff -u` prints, and what must hold of any two texts. */
#include "base/unified.h"

#include <stdio.h>
#include <stdlib.h>

#include "alloc_fail.h"
#include "test.h"

static const struct {
	const char *a, *b, *want;
} rows[] = {
	{ "", "", "" },
	{ "a\n", "a\n", "" },
	{ "", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n" },
	{ "a\nb\n", "", "@@ -1,2 +0,0 @@\n-a\n-b\n" },
	{ "a", "a\n", "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n" },
	{ "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n",
	  "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n" },
	{ "a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n",
	  "@@ -1,7 +1,6 @@\n-a\n-b\n c\n+b\n a\n b\n-b\n a\n+c\n" },
	/* two hunks, as more than six lines are equal between them */
	{ "x\n1\n2\n3\n4\n5\n6\n7\ny\n", "1\n2\n3\n4\n5\n6\n7\n",
	  "@@ -1,4 +1,3 @@\n-x\n 1\n 2\n 3\n@@ -6,4 +5,3 @@\n 5\n 6\n 7\n-y\n" },
};

static void test_rows(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		autobuf struct buf to = BUF_INIT(4096);
		struct err e = ERR_INIT;

		assert_int_equal(unified_diff(str_of(rows[i].a), str_of(rows[i].b), &to, &e), 0);
		assert_string_equal(buf_str(&to).p, rows[i].want);
	}
}

/* Applies hunks as `patch` would, strictly. */
static void apply(struct str a, struct str diff, struct buf *to)
{
	struct err e = ERR_INIT;
	size_t line = 0;

	while (diff.n) {
		const char *end = memchr(diff.p, '\n', diff.n);
		struct str at = { diff.p, (size_t)(end + 1 - diff.p) };
		size_t from, n;

		diff.p += at.n;
		diff.n -= at.n;
		if (at.p[0] == '@') {
			assert_int_equal(sscanf(at.p, "@@ -%zu,%zu", &from, &n), 2);
			from -= n > 0;
			for (; line < from; line++) {
				const char *nl = memchr(a.p, '\n', a.n);

				assert_int_equal(buf_add(to, a.p, (size_t)(nl + 1 - a.p), &e), 0);
				a.n -= (size_t)(nl + 1 - a.p);
				a.p = nl + 1;
			}
			continue;
		}
		if (at.p[0] != '+') {
			assert_true(a.n >= at.n - 1 && memcmp(a.p, at.p + 1, at.n - 1) == 0);
			a.p += at.n - 1;
			a.n -= at.n - 1;
			line++;
		}
		if (at.p[0] != '-')
			assert_int_equal(buf_add(to, at.p + 1, at.n - 1, &e), 0);
	}
	assert_int_equal(buf_add(to, a.p, a.n, &e), 0);
}

static void fill(struct buf *to, unsigned n, unsigned words)
{
	struct err e = ERR_INIT;

	for (unsigned i = 0; i < n; i++)
		assert_int_equal(buf_addf(to, &e, "%d\n", rand() % (int)words), 0);
}

static void test_any_two_texts(void **state)
{
	srand(20);
	for (unsigned round = 0; round < 400; round++) {
		autobuf struct buf a = BUF_INIT(1 << 20), b = BUF_INIT(1 << 20);
		autobuf struct buf diff = BUF_INIT(1 << 22), got = BUF_INIT(1 << 20);
		struct err e = ERR_INIT;

		/* the last ones differ in more lines than are searched for */
		fill(&a, round < 390 ? (unsigned)rand() % 60 : 5000, 1 + round);
		fill(&b, round < 390 ? (unsigned)rand() % 60 : 5000, 1 + round);
		assert_int_equal(unified_diff(buf_str(&a), buf_str(&b), &diff, &e), 0);
		apply(buf_str(&a), buf_str(&diff), &got);
		assert_true(str_eq(buf_str(&got), buf_str(&b)));
	}
}

static void test_it_is_cut_after_a_line(void **state)
{
	autobuf struct buf to = BUF_INIT(24);
	struct err e = ERR_INIT;

	assert_int_equal(unified_diff(str_of("a\n"), str_of("b\nc\nd\n"), &to, &e), 1);
	assert_string_equal(buf_str(&to).p, "@@ -1,1 +1,3 @@\n-a\n+b\n");
}

static void test_out_of_memory(void **state)
{
	for (unsigned n = 0; alloc_fail_next(&n);) {
		autobuf struct buf to = BUF_INIT(4096);
		struct err e = ERR_INIT;

		if (unified_diff(str_of("a\nb\n"), str_of("b\nc\n"), &to, &e) < 0)
			assert_int_equal(e.code, ERR_LIMIT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_any_two_texts),
		cmocka_unit_test(test_it_is_cut_after_a_line),
		cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
