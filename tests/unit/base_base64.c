/* base/base64.h, with the vectors of RFC 4648 section 10. */
#include "base/base64.h"
#include "alloc_fail.h"
#include "test.h"

static const struct {
	struct str bytes;
	const char *text;
} pairs[] = {
	{ { "", 0 }, "" },
	{ { "f", 1 }, "Zg==" },
	{ { "fo", 2 }, "Zm8=" },
	{ { "foo", 3 }, "Zm9v" },
	{ { "foob", 4 }, "Zm9vYg==" },
	{ { "fooba", 5 }, "Zm9vYmE=" },
	{ { "foobar", 6 }, "Zm9vYmFy" },
	{ { "\0\xff\xfe\xfb", 4 }, "AP/++w==" },
};

static void test_both_ways(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		autobuf struct buf text = BUF_INIT(64), bytes = BUF_INIT(64);
		struct err e = ERR_INIT;

		assert_int_equal(base64_encode(&text, pairs[i].bytes, &e), 0);
		assert_string_equal(buf_str(&text).p, pairs[i].text);
		assert_int_equal(base64_decode(&bytes, str_of(pairs[i].text), &e), 0);
		assert_true(str_eq(buf_str(&bytes), pairs[i].bytes));
	}
}

static void test_of_urls(void **state)
{
	static const struct {
		struct str bytes;
		const char *text;
	} rows[] = {
		{ { "", 0 }, "" },
		{ { "f", 1 }, "Zg" },
		{ { "fo", 2 }, "Zm8" },
		{ { "foo", 3 }, "Zm9v" },
		{ { "\0\xff\xfe\xfb", 4 }, "AP_--w" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		autobuf struct buf text = BUF_INIT(64);
		struct err e = ERR_INIT;

		assert_int_equal(base64url_encode(&text, rows[i].bytes, &e), 0);
		assert_string_equal(buf_str(&text).p, rows[i].text);
	}
}

static const char *const broken[] = {
	"Z",	     "Zg",   "Zg=",  "Zg===", "=",    "====",	  "Zm9v\n",
	"Zm9vYg=\n", "Zm 9", "Zm-_", "Zh==",  "Zm9=", "Zg==Zg==",
};

static void test_refused(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
		autobuf struct buf bytes = BUF_INIT(64);
		struct err e = ERR_INIT;

		assert_int_equal(base64_decode(&bytes, str_of(broken[i]), &e), -1);
		assert_int_equal(e.code, ERR_INVALID);
		assert_int_equal(bytes.n, 0);
	}
}

/* Every byte at every place, in texts of every length; what is no character of it is named by
 * its place. */
static void test_all_bytes(void **state)
{
	char all[256 + 2];

	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (char)(i * 7);
	for (size_t n = 0; n <= sizeof(all); n++) {
		autobuf struct buf text = BUF_INIT(512), bytes = BUF_INIT(512);
		struct err e = ERR_INIT;

		assert_int_equal(base64_encode(&text, (struct str){ all, n }, &e), 0);
		assert_int_equal(base64_decode(&bytes, buf_str(&text), &e), 0);
		assert_true(str_eq(buf_str(&bytes), (struct str){ all, n }));
	}
	for (unsigned c = 0; c < 256; c++) {
		bool known =
			c &&
			strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
			       (int)c);

		for (size_t at = 0; at < 8; at++) {
			autobuf struct buf bytes = BUF_INIT(64);
			struct err e = ERR_INIT;
			char text[] = "AAAAAAAAAAA=", says[64];

			text[at] = (char)c;
			assert_int_equal(base64_decode(&bytes, (struct str){ text, 12 }, &e),
					 known ? 0 : -1);
			snprintf(says, sizeof(says), "character %zu is none of base64", at + 1);
			if (!known)
				assert_string_equal(e.msg, says);
		}
	}
}

static char of_url(char c)
{
	return (char)(c == '+' ? '-' : c == '/' ? '_' : c);
}

/* The 12 bits of each two characters, at all places where they can stand. */
static void test_all_pairs(void **state)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (unsigned v = 0; v < 64 * 64; v++) {
		autobuf struct buf text = BUF_INIT(64), of_urls = BUF_INIT(64);
		const char two[] = { letters[v >> 6], letters[v & 63] };
		char bytes[12], expected[16];
		struct err e = ERR_INIT;

		for (size_t i = 0; i < sizeof(bytes); i += 3) {
			bytes[i] = (char)(v >> 4);
			bytes[i + 1] = (char)((v & 15) << 4 | v >> 8);
			bytes[i + 2] = (char)(v & 255);
		}
		for (size_t i = 0; i < sizeof(expected); i++)
			expected[i] = two[i % 2];
		assert_int_equal(base64_encode(&text, (struct str){ bytes, 12 }, &e), 0);
		assert_true(str_eq(buf_str(&text), (struct str){ expected, 16 }));
		for (size_t i = 0; i < sizeof(expected); i++)
			expected[i] = of_url(expected[i]);
		assert_int_equal(base64url_encode(&of_urls, (struct str){ bytes, 12 }, &e), 0);
		assert_true(str_eq(buf_str(&of_urls), (struct str){ expected, 16 }));
	}
}

static void test_bounded(void **state)
{
	autobuf struct buf small = BUF_INIT(3);
	struct err e = ERR_INIT;

	assert_int_equal(base64_encode(&small, STR_LIT("f"), &e), -1);
	assert_int_equal(e.code, ERR_TOO_LARGE);
	assert_int_equal(base64_decode(&small, STR_LIT("Zm9v"), &e), 0);
	assert_int_equal(base64_decode(&small, STR_LIT("Zg=="), &e), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_ways), cmocka_unit_test(test_of_urls),
		cmocka_unit_test(test_refused),	  cmocka_unit_test(test_all_bytes),
		cmocka_unit_test(test_all_pairs), cmocka_unit_test(test_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
