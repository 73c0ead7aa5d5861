/* base/seal.h */
#include "base/seal.h"
#include "alloc_fail.h"
#include "test.h"

enum { BIG = 100000 };

static const char key_a[SEAL_KEY_BYTES] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
static const struct str A = { key_a, SEAL_KEY_BYTES };

static struct seal_ring *ring_of(struct str key)
{
	struct err e;
	struct seal_ring *r = seal_ring_new(&e);

	assert_non_null(r);
	if (key.p) {
		assert_int_equal(seal_ring_add(r, key, &e), 0);
		seal_ring_trim(r);
	}
	return r;
}

static void seal_ok(const struct seal_ring *r, struct buf *to, struct str plain,
		    const char *context)
{
	struct err e;

	assert_int_equal(seal(r, to, plain, str_of(context), 100, &e), 0);
}

/* 0, or the code. */
static int opens(const struct seal_ring *r, struct str text, const char *context, uint64_t now)
{
	autobuf struct buf plain = BUF_INIT(BIG);
	struct err e = ERR_INIT;

	return seal_open(r, &plain, text, str_of(context), now, &e) < 0 ? (int)e.code : 0;
}

static void test_round_trip(void **state)
{
	AUTO(seal_ring_free) struct seal_ring *r = ring_of(STR_NONE);
	autofree char *big = calloc(1, BIG);
	const struct str plains[] = { STR_NONE, STR_LIT("x"), STR_LIT("a\0b"), { big, BIG } };

	for (size_t i = 0; i < ARRAY_LEN(plains); i++) {
		autobuf struct buf text = BUF_INIT(2 * BIG), plain = BUF_INIT(BIG);
		struct err e;

		seal_ok(r, &text, plains[i], "context");
		assert_int_equal(text.n, seal_text_size(plains[i].n));
		assert_int_equal(strspn(text.p,
					"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					"0123456789-_"),
				 text.n);
		assert_int_equal(seal_open(r, &plain, buf_str(&text), STR_LIT("context"), 100, &e),
				 0);
		assert_true(str_eq(buf_str(&plain), plains[i]));
	}
}

static void test_never_the_same_text(void **state)
{
	AUTO(seal_ring_free) struct seal_ring *r = ring_of(STR_NONE);
	autobuf struct buf a = BUF_INIT(1000), b = BUF_INIT(1000);

	seal_ok(r, &a, STR_LIT("secret"), "");
	seal_ok(r, &b, STR_LIT("secret"), "");
	assert_false(str_eq(buf_str(&a), buf_str(&b)));
	assert_null(strstr(a.p, "secret"));
}

/* Every character changed, every shorter text, and more behind it. */
static void test_tampering(void **state)
{
	AUTO(seal_ring_free) struct seal_ring *r = ring_of(STR_NONE);
	autobuf struct buf text = BUF_INIT(1000);
	struct err e;

	seal_ok(r, &text, STR_LIT("plain"), "c");
	for (size_t i = 0; i < text.n; i++) {
		char was = text.p[i];

		text.p[i] = was == 'A' ? 'B' : 'A';
		assert_int_equal(opens(r, buf_str(&text), "c", 0), ERR_INVALID);
		text.p[i] = '+';
		assert_int_equal(opens(r, buf_str(&text), "c", 0), ERR_INVALID);
		text.p[i] = was;
		assert_int_equal(opens(r, (struct str){ text.p, i }, "c", 0), ERR_INVALID);
	}
	assert_int_equal(opens(r, buf_str(&text), "c", 0), 0);
	assert_int_equal(buf_add(&text, "-TAMPERED", 9, &e), 0);
	assert_int_equal(opens(r, buf_str(&text), "c", 0), ERR_INVALID);
}

static void test_context(void **state)
{
	AUTO(seal_ring_free) struct seal_ring *r = ring_of(STR_NONE);
	autobuf struct buf text = BUF_INIT(1000);

	seal_ok(r, &text, STR_LIT("plain"), "alice");
	assert_int_equal(opens(r, buf_str(&text), "alice", 0), 0);
	assert_int_equal(opens(r, buf_str(&text), "bob", 0), ERR_INVALID);
	assert_int_equal(opens(r, buf_str(&text), "", 0), ERR_INVALID);
}

static void test_expiry(void **state)
{
	AUTO(seal_ring_free) struct seal_ring *r = ring_of(STR_NONE);
	autobuf struct buf text = BUF_INIT(1000);

	seal_ok(r, &text, STR_LIT("plain"), "");
	assert_int_equal(opens(r, buf_str(&text), "", 100), 0);
	assert_int_equal(opens(r, buf_str(&text), "", 101), ERR_TIMEOUT);
	assert_int_equal(opens(r, buf_str(&text), "", UINT64_MAX), ERR_TIMEOUT);
}

static void test_old_keys_open(void **state)
{
	AUTO(seal_ring_free) struct seal_ring *r = ring_of(STR_NONE);
	autobuf struct buf text = BUF_INIT(1000);

	seal_ok(r, &text, STR_LIT("plain"), "");
	for (unsigned i = 1; i < SEAL_KEYS; i++) {
		seal_ring_turn(r);
		assert_int_equal(opens(r, buf_str(&text), "", 0), 0);
	}
	seal_ring_turn(r);
	assert_int_equal(opens(r, buf_str(&text), "", 0), ERR_INVALID);
}

static void test_keys_are_shared(void **state)
{
	AUTO(seal_ring_free) struct seal_ring *r = ring_of(A), *other = ring_of(A);
	AUTO(seal_ring_free) struct seal_ring *foreign = ring_of(STR_NONE);
	autobuf struct buf text = BUF_INIT(1000);
	struct err e;

	seal_ok(r, &text, STR_LIT("plain"), "");
	assert_int_equal(opens(other, buf_str(&text), "", 0), 0);
	assert_int_equal(opens(foreign, buf_str(&text), "", 0), ERR_INVALID);
	seal_ring_turn(other);
	/* the same key again takes no second place, and is the newest then */
	for (unsigned i = 0; i < 2 * SEAL_KEYS; i++)
		assert_int_equal(seal_ring_add(other, A, &e), 0);
	seal_ring_trim(other);
	assert_int_equal(opens(other, buf_str(&text), "", 0), 0);
	assert_int_equal(seal_ring_add(r, STR_LIT("short"), &e), -1);
	assert_int_equal(e.code, ERR_INVALID);
}

/* One secret and one message for all that is wrong with a text. */
static void test_says_nothing(void **state)
{
	AUTO(seal_ring_free) struct seal_ring *r = ring_of(STR_NONE), *foreign = ring_of(STR_NONE);
	autobuf struct buf text = BUF_INIT(1000), plain = BUF_INIT(1000);
	struct err e[3];

	seal_ok(r, &text, STR_LIT("plain"), "alice");
	assert_int_equal(seal_open(r, &plain, STR_LIT("?"), STR_NONE, 0, &e[0]), -1);
	assert_int_equal(seal_open(r, &plain, buf_str(&text), STR_LIT("bob"), 0, &e[1]), -1);
	assert_int_equal(seal_open(foreign, &plain, buf_str(&text), STR_LIT("alice"), 0, &e[2]),
			 -1);
	assert_string_equal(e[0].msg, e[1].msg);
	assert_string_equal(e[0].msg, e[2].msg);
	assert_int_equal(plain.n, 0);
}

static void test_bounds(void **state)
{
	AUTO(seal_ring_free) struct seal_ring *r = ring_of(STR_NONE);
	autobuf struct buf text = BUF_INIT(1000), small = BUF_INIT(3);
	const struct str huge = { "x", SEAL_PLAIN_MAX + 1 };
	struct err e;

	assert_int_equal(seal(r, &text, huge, STR_NONE, 0, &e), -1);
	assert_int_equal(e.code, ERR_TOO_LARGE);
	assert_int_equal(seal(r, &small, STR_LIT("x"), STR_NONE, 0, &e), -1);
	assert_int_equal(e.code, ERR_TOO_LARGE);
	seal_ok(r, &text, STR_LIT("four"), "");
	assert_int_equal(seal_open(r, &small, buf_str(&text), STR_NONE, 0, &e), -1);
	assert_int_equal(e.code, ERR_TOO_LARGE);
	/* a text that claims to be huge is refused before it is copied */
	assert_int_equal(
		seal_open(r, &small, (struct str){ "x", (size_t)1 << 40 }, STR_NONE, 0, &e), -1);
	assert_int_equal(e.code, ERR_INVALID);
}

static void test_without_memory(void **state)
{
	for (unsigned n = 0; alloc_fail_next(&n);) {
		struct err e = ERR_INIT;
		AUTO(seal_ring_free) struct seal_ring *r = seal_ring_new(&e);
		autobuf struct buf text = BUF_INIT(1000), plain = BUF_INIT(1000);
		int rc = r ? seal(r, &text, STR_LIT("p"), STR_NONE, 0, &e) : -1;

		if (rc == 0)
			rc = seal_open(r, &plain, buf_str(&text), STR_NONE, 0, &e);
		assert_true(rc == 0 || e.code == ERR_LIMIT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),	cmocka_unit_test(test_never_the_same_text),
		cmocka_unit_test(test_tampering),	cmocka_unit_test(test_context),
		cmocka_unit_test(test_expiry),		cmocka_unit_test(test_old_keys_open),
		cmocka_unit_test(test_keys_are_shared), cmocka_unit_test(test_says_nothing),
		cmocka_unit_test(test_bounds),		cmocka_unit_test(test_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
