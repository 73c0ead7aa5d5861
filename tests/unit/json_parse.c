/* json/document/json.h: what is JSON, what is not, and the bounds. */
#include <stdlib.h>

#include "alloc_fail.h"
#include "base/buf.h"
#include "json/document/json.h"
#include "json/document/raw.h"
#include "json/document/utf8.h"
#include "json/document/write.h"
#include "test.h"

static const struct {
	const char *name;
	struct str text;
	enum err_code code; /* ERR_NONE: accepted */
	const char *says; /* in the message */
} texts[] = {
	{ "null", STR_LIT("null"), ERR_NONE, NULL },
	{ "space around", STR_LIT(" \t\r\n{ \"a\" : [ 1 , true ] } \n"), ERR_NONE, NULL },
	{ "escapes", STR_LIT("\"\\u0000\\ud83d\\ude00\\\"\\/\\b\""), ERR_NONE, NULL },
	{ "all of UTF-8",
	  STR_LIT("\"\xc2\x80\xe0\xa0\x80\xed\x9f\xbf\xef\xbf\xbf\xf4\x8f\xbf\xbf\""), ERR_NONE,
	  NULL },
	{ "numbers", STR_LIT("[0,-0,0.5,-1e-400,1E+2,9223372036854775807,18446744073709551615]"),
	  ERR_NONE, NULL },
	{ "same keys apart", STR_LIT("[{\"a\":{\"a\":1}},{\"a\":2}]"), ERR_NONE, NULL },

	{ "empty", STR_LIT(""), ERR_INVALID, "empty" },
	{ "space only", STR_LIT("  \n"), ERR_INVALID, "byte" },
	{ "comment", STR_LIT("[1 /* one */]"), ERR_INVALID, "byte 3" },
	{ "line comment", STR_LIT("[1] // one"), ERR_INVALID, "byte 4" },
	{ "trailing comma", STR_LIT("[1,]"), ERR_INVALID, "byte" },
	{ "trailing member comma", STR_LIT("{\"a\":1,}"), ERR_INVALID, "byte" },
	{ "garbage behind", STR_LIT("{} x"), ERR_INVALID, "byte 3" },
	{ "second document", STR_LIT("{}{}"), ERR_INVALID, "byte 2" },
	{ "NaN", STR_LIT("[NaN]"), ERR_INVALID, "byte 1" },
	{ "Infinity", STR_LIT("-Infinity"), ERR_INVALID, "byte" },
	{ "beyond a double", STR_LIT("1e999"), ERR_INVALID, "byte 0" },
	{ "leading zero", STR_LIT("[01]"), ERR_INVALID, "byte" },
	{ "plus", STR_LIT("[+1]"), ERR_INVALID, "byte 1" },
	{ "bare point", STR_LIT("[1.]"), ERR_INVALID, "byte" },
	{ "hex", STR_LIT("0x10"), ERR_INVALID, "byte" },
	{ "single quotes", STR_LIT("['a']"), ERR_INVALID, "byte 1" },
	{ "bare key", STR_LIT("{a:1}"), ERR_INVALID, "byte 1" },
	{ "open string", STR_LIT("[\"abc"), ERR_INVALID, "byte" },
	{ "open escape", STR_LIT("\"abc\\\""), ERR_INVALID, "byte" },
	{ "unknown escape", STR_LIT("\"\\x41\""), ERR_INVALID, "byte" },
	{ "tab in a string", STR_LIT("\"a\tb\""), ERR_INVALID, "byte" },
	{ "NUL in a string", STR_LIT("\"a\0b\""), ERR_INVALID, "byte" },
	{ "NUL behind", STR_LIT("1\0"), ERR_INVALID, "byte 1" },
	{ "byte order mark", STR_LIT("\xef\xbb\xbf{}"), ERR_INVALID, "byte 0" },
	{ "lone high surrogate", STR_LIT("\"\\ud800\""), ERR_INVALID, "byte" },
	{ "lone low surrogate", STR_LIT("\"\\udc00x\""), ERR_INVALID, "byte" },
	{ "high surrogate twice", STR_LIT("\"\\ud800\\ud800\""), ERR_INVALID, "byte" },
	{ "surrogate as UTF-8", STR_LIT("\"\xed\xa0\x80\""), ERR_INVALID, "byte" },
	{ "overlong", STR_LIT("\"\xc0\xaf\""), ERR_INVALID, "byte" },
	{ "overlong of three", STR_LIT("\"\xe0\x80\xaf\""), ERR_INVALID, "byte" },
	{ "above U+10FFFF", STR_LIT("\"\xf4\x90\x80\x80\""), ERR_INVALID, "byte" },
	{ "cut UTF-8", STR_LIT("\"\xe2\x82\""), ERR_INVALID, "byte" },
	{ "stray continuation", STR_LIT("\"\x80\""), ERR_INVALID, "byte" },
	{ "not UTF-8 in a key", STR_LIT("{\"\xff\":1}"), ERR_INVALID, "byte" },
	{ "mismatched", STR_LIT("[1}"), ERR_INVALID, "byte" },
	{ "closers only", STR_LIT("]]}}"), ERR_INVALID, "byte 0" },

	{ "key twice", STR_LIT("{\"a\":1,\"b\":2,\"a\":3}"), ERR_INVALID, "the key /a stands" },
	{ "key twice, deep", STR_LIT("{\"x\":[0,{\"a/b\":{\"c~\":1,\"c~\":2}}]}"), ERR_INVALID,
	  "the key /x/1/a~1b/c~0 stands" },
	{ "key twice by escape", STR_LIT("{\"a\":1,\"\\u0061\":2}"), ERR_INVALID,
	  "the key /a stands" },
	{ "empty key twice", STR_LIT("{\"\":1,\"\":2}"), ERR_INVALID, "the key / stands" },
	{ "key twice in many",
	  STR_LIT("{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1,\"i\":1,"
		  "\"j\":1,\"k\":1,\"l\":1,\"m\":1,\"n\":1,\"h\":1}"),
	  ERR_INVALID, "the key /h stands" },
};

static void parses_strictly(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct err e = ERR_INIT;
		AUTO(json_free) struct json_doc *d = json_parse(texts[i].text, NULL, &e);

		ROW_CHECK(e.code == texts[i].code, texts[i].name);
		ROW_CHECK((d != NULL) == (texts[i].code == ERR_NONE), texts[i].name);
		if (texts[i].says && !strstr(e.msg, texts[i].says))
			print_error("%s\n", e.msg);
		ROW_CHECK(!texts[i].says || strstr(e.msg, texts[i].says), texts[i].name);
	}
}

static const struct {
	const char *name;
	struct str text;
	struct json_options options;
	enum err_code code;
} bounded[] = {
	{ "as many bytes", STR_LIT("[1]"), { .bytes = 3 }, ERR_NONE },
	{ "one byte over", STR_LIT("[1] "), { .bytes = 3 }, ERR_TOO_LARGE },
	{ "as deep", STR_LIT("[{\"a\":[]}]"), { .depth = 3 }, ERR_NONE },
	{ "too deep", STR_LIT("[{\"a\":[[]]}]"), { .depth = 3 }, ERR_TOO_LARGE },
	{ "brackets in a string", STR_LIT("[\"[[[[\\\"[[[\\\\\"]"), { .depth = 1 }, ERR_NONE },
	{ "as many values",
	  STR_LIT("[1,{\"a\":[],\"b\":{}},\"x,y:z\"]"),
	  { .values = 8 },
	  ERR_NONE },
	{ "one value over",
	  STR_LIT("[1,{\"a\":[],\"b\":{}},\"x,y:z\"]"),
	  { .values = 7 },
	  ERR_TOO_LARGE },
	{ "empty ones", STR_LIT("[[],[ ],{},{ }]"), { .values = 5 }, ERR_NONE },
	{ "broken and over", STR_LIT("[,,,,,,,,,"), { .values = 5 }, ERR_TOO_LARGE },
	{ "keys unchecked", STR_LIT("{\"a\":1,\"a\":2}"), { .keys_unchecked = true }, ERR_NONE },
};

static void holds_its_bounds(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(bounded); i++) {
		struct err e = ERR_INIT;
		AUTO(json_free)
		struct json_doc *d = json_parse(bounded[i].text, &bounded[i].options, &e);

		ROW_CHECK(e.code == bounded[i].code, bounded[i].name);
		ROW_CHECK((d != NULL) == (e.code == ERR_NONE), bounded[i].name);
	}
}

/* 16 MiB of openers must cost no memory and no stack. */
static void refuses_a_deep_flood(void **state)
{
	autofree char *text = malloc(JSON_BYTES_MAX);
	struct err e = ERR_INIT;

	assert_non_null(text);
	memset(text, '[', JSON_BYTES_MAX);
	assert_null(json_parse((struct str){ text, JSON_BYTES_MAX }, NULL, &e));
	assert_int_equal(e.code, ERR_TOO_LARGE);
}

/* 100,000 keys, all different but the last: must be no square of it. */
/* Brackets behind strings of any length, some with brackets in them, as deep as may be and one
 * deeper: wherever they stand in a block of what is counted in one step. */
static void counts_depth_anywhere(void **state)
{
	char text[1024];

	for (size_t before = 0; before < 600; before++) {
		for (size_t depth = JSON_DEPTH_MAX - 2; depth < JSON_DEPTH_MAX + 1; depth++) {
			size_t n = (size_t)snprintf(text, sizeof(text), "[\"%0*d\",", (int)before,
						    0);
			struct json_doc *d;
			struct err e;

			if (before % 3 == 0)
				memset(text + 2, before % 2 ? '[' : '{', before);
			memset(text + n, '[', depth);
			memset(text + n + depth, ']', depth + 1);
			n += 2 * depth + 1;
			d = json_parse((struct str){ text, n }, NULL, &e);
			assert_int_equal(d != NULL, depth + 1 <= JSON_DEPTH_MAX);
			assert_true(d || e.code == ERR_TOO_LARGE);
			json_free(d);
		}
	}
}

/* Objects of all sizes with keys of few letters, against a look at every pair. */
static void finds_keys_that_stand_twice(void **state)
{
	uint32_t seed = 1;

	for (unsigned round = 0; round < 20000; round++) {
		char text[512] = "{", keys[24][4];
		size_t n = 1 + round % ARRAY_LEN(keys), at = 1;
		struct json_doc *d;
		bool twice = false;
		struct err e;

		for (size_t i = 0; i < n; i++) {
			size_t length = seed >> 24 & 3;

			for (size_t j = 0; j < length; j++) {
				seed = seed * 1664525 + 1013904223;
				keys[i][j] = (char)('a' + (seed >> 16) % 8);
			}
			seed = seed * 1664525 + 1013904223;
			keys[i][length] = '\0';
			for (size_t j = 0; j < i; j++)
				twice |= strcmp(keys[i], keys[j]) == 0;
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s\"%s\":%s",
					       i ? "," : "", keys[i], i % 3 ? "{}" : "[0]");
		}
		text[at++] = '}';
		d = json_parse((struct str){ text, at }, NULL, &e);
		assert_int_equal(d == NULL, twice);
		assert_true(d || strstr(e.msg, "stands twice"));
		json_free(d);
	}
}

static void gives_several_members(void **state)
{
	static const struct str keys[] = { STR_LIT("b"), STR_LIT("absent"), STR_LIT("a"),
					   STR_LIT("") };
	const struct json_val *has[ARRAY_LEN(keys)];
	struct json_doc *d;
	struct err e;

	d = json_parse(STR_LIT("{\"a\":1,\"c\":{\"b\":2},\"\":3,\"b\":[4]}"), NULL, &e);
	assert_non_null(d);
	json_get_all(json_root(d), keys, ARRAY_LEN(keys), has);
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		assert_ptr_equal(has[i], json_get_str(json_root(d), keys[i]));
	assert_null(has[1]);
	assert_int_equal(json_type(has[0]), JSON_ARRAY);
	json_get_all(has[0], keys, ARRAY_LEN(keys), has);
	assert_null(has[0]);
	json_get_all(NULL, keys, ARRAY_LEN(keys), has);
	assert_null(has[3]);
	json_free(d);
}

static void finds_a_key_among_many(void **state)
{
	autobuf struct buf b = BUF_INIT(4 << 20);
	struct json_writer w = json_writer(&b);
	struct err e = ERR_INIT;

	json_write_object(&w);
	for (int i = 0; i < 100001; i++) {
		char key[16];

		snprintf(key, sizeof(key), "k%05d", i % 100000);
		json_write_key(&w, key);
		json_write_null(&w);
	}
	json_write_object_end(&w);
	assert_int_equal(json_write_done(&w, &e), 0);
	assert_null(json_parse(buf_str(&b), NULL, &e));
	assert_non_null(strstr(e.msg, "/k00000 "));
}

static void cuts_a_long_pointer(void **state)
{
	autobuf struct buf b = BUF_INIT(1 << 16);
	struct json_writer w = json_writer(&b);
	struct err e = ERR_INIT;
	char key[300];

	for (size_t i = 0; i + 2 < sizeof(key); i += 2)
		memcpy(key + i, "ä", 2);
	key[298] = '\0';
	json_write_object(&w);
	for (int i = 0; i < 2; i++) {
		json_write_key(&w, key);
		json_write_null(&w);
	}
	json_write_object_end(&w);
	assert_int_equal(json_write_done(&w, &e), 0);
	assert_null(json_parse(buf_str(&b), NULL, &e));
	assert_non_null(strstr(e.msg, "ä… stands twice"));
}

static const struct {
	struct str text;
	bool fits_int, fits_uint;
	int64_t i;
	uint64_t u;
} integers[] = {
	{ STR_LIT("0"), true, true, 0, 0 },
	{ STR_LIT("-0"), true, true, 0, 0 },
	{ STR_LIT("2.0"), true, true, 2, 2 },
	{ STR_LIT("1e3"), true, true, 1000, 1000 },
	{ STR_LIT("2.5"), false, false, 0, 0 },
	{ STR_LIT("-1"), true, false, -1, 0 },
	{ STR_LIT("-1.0"), true, false, -1, 0 },
	{ STR_LIT("9007199254740993"), true, true, 9007199254740993, 9007199254740993 },
	{ STR_LIT("9223372036854775807"), true, true, INT64_MAX, INT64_MAX },
	{ STR_LIT("9223372036854775808"), false, true, 0, 9223372036854775808u },
	{ STR_LIT("-9223372036854775808"), true, false, INT64_MIN, 0 },
	{ STR_LIT("-9223372036854775809"), false, false, 0, 0 },
	{ STR_LIT("18446744073709551615"), false, true, 0, UINT64_MAX },
	{ STR_LIT("18446744073709551616"), false, false, 0, 0 },
	{ STR_LIT("1e300"), false, false, 0, 0 },
	{ STR_LIT("\"1\""), false, false, 0, 0 },
	{ STR_LIT("true"), false, false, 0, 0 },
};

static void keeps_integers_exactly(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(integers); i++) {
		struct err e;
		AUTO(json_free) struct json_doc *d = json_parse(integers[i].text, NULL, &e);
		int64_t si = 0;
		uint64_t ui = 0;

		assert_non_null(d);
		ROW_CHECK(json_int64(json_root(d), &si) == integers[i].fits_int,
			  integers[i].text.p);
		ROW_CHECK(json_uint64(json_root(d), &ui) == integers[i].fits_uint,
			  integers[i].text.p);
		ROW_CHECK(si == integers[i].i && ui == integers[i].u, integers[i].text.p);
	}
}

static void walks_values(void **state)
{
	static const char text[] = "{\"a\":[1,[],\"x\\u0000y\"],\"b\":{\"c\":false},\"d\":null}";
	struct err e;
	AUTO(json_free) struct json_doc *d = json_parse(str_of(text), NULL, &e);
	const struct json_val *root, *a;
	struct json_iter it;
	char order[8] = "";

	assert_non_null(d);
	root = json_root(d);
	a = json_get(root, "a");
	assert_int_equal(json_type(root), JSON_OBJECT);
	assert_int_equal(json_len(root), 3);
	assert_int_equal(json_type(json_get(json_get(root, "b"), "c")), JSON_BOOL);
	assert_int_equal(json_type(json_get(root, "d")), JSON_NULL);
	assert_int_equal(json_type(json_get(root, "e")), JSON_ABSENT);
	assert_null(json_get(a, "a"));
	assert_null(json_get(NULL, "a"));
	assert_int_equal(json_len(NULL), 0);
	assert_null(json_str(NULL).p);
	it = json_iter(root);
	while (json_next(&it))
		strncat(order, it.key.p, 1);
	assert_string_equal(order, "abd");
	it = json_iter(a);
	while (json_next(&it))
		assert_null(it.key.p);
	assert_int_equal(it.index, 2);
	assert_true(str_eq(json_str(it.val), STR_LIT("x\0y")));
	it = json_iter(json_get(root, "d"));
	assert_false(json_next(&it));
}

static void survives_want_of_memory(void **state)
{
	static const char text[] =
		"{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1,\"i\":1,"
		"\"j\":1,\"k\":1,\"l\":1,\"m\":1,\"n\":\"\\u0041\"}";

	for (unsigned n = 0; alloc_fail_next(&n);) {
		struct err e = ERR_INIT;
		AUTO(json_free) struct json_doc *d = json_parse(str_of(text), NULL, &e);

		assert_true(alloc_failed() ? !d && e.code == ERR_LIMIT : d != NULL);
	}
}

static const struct {
	struct str s;
	bool valid;
	size_t n;
} sequences[] = {
	{ STR_LIT("a"), true, 1 },
	{ STR_LIT("\xc3\xa4x"), true, 2 },
	{ STR_LIT("\xe2\x82\xac"), true, 3 },
	{ STR_LIT("\xf0\x9f\x98\x80"), true, 4 },
	{ STR_LIT("\xff"), false, 1 },
	{ STR_LIT("\xc1\x80"), false, 1 },
	{ STR_LIT("\xe2\x82"), false, 2 },
	{ STR_LIT("\xe2\x82x"), false, 2 },
	{ STR_LIT("\xe2x"), false, 1 },
	{ STR_LIT("\xed\xa0\x80"), false, 1 },
	{ STR_LIT("\xf0\x9f\x98"), false, 3 },
	{ STR_LIT("\xf0\x80\x80\x80"), false, 1 },
	{ STR_LIT("\xf4\x90\x80\x80"), false, 1 },
};

static void reads_utf8(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(sequences); i++) {
		size_t n;

		ROW_CHECK(utf8_next(sequences[i].s, &n) == sequences[i].valid, sequences[i].s.p);
		ROW_CHECK(n == sequences[i].n, sequences[i].s.p);
	}
	assert_int_equal(utf8_count(str_of("aä€😀")), 4);
	assert_int_equal(utf8_cut(str_of("aä€"), 4).n, 3);
	assert_int_equal(utf8_cut(str_of("aä€"), 6).n, 6);
	assert_int_equal(utf8_cut(str_of("€"), 2).n, 0);
}

static void finds_the_bytes(void **state)
{
	static const char text[] =
		" {\"a\\\"b\" : [1, 2.50 ,\"]\\\\\"],\n\"\\u0063\":\t{ \"x\":{}} ,"
		"\"d\":-1e2,\"e\":\"}\" , \"f\":null}";
	static const char *const parts[] = { "[1, 2.50 ,\"]\\\\\"]", "{ \"x\":{}}", "-1e2", "\"}\"",
					     "null" };
	struct json_raw raw = json_raw(str_of(text));
	struct str at;

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		assert_true(json_raw_next(&raw, &at));
		ROW_CHECK(str_is(at, parts[i]), parts[i]);
	}
	assert_false(json_raw_next(&raw, &at));
	assert_false(json_raw_next(&raw, &at));
	raw = json_raw(str_of("[ ]"));
	assert_false(json_raw_next(&raw, &at));
	raw = json_raw(str_of("7"));
	assert_false(json_raw_next(&raw, &at));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses_strictly),
		cmocka_unit_test(holds_its_bounds),
		cmocka_unit_test(refuses_a_deep_flood),
		cmocka_unit_test(finds_a_key_among_many),
		cmocka_unit_test(cuts_a_long_pointer),
		cmocka_unit_test(keeps_integers_exactly),
		cmocka_unit_test(walks_values),
		cmocka_unit_test(survives_want_of_memory),
		cmocka_unit_test(reads_utf8),
		cmocka_unit_test(finds_the_bytes),
		cmocka_unit_test(counts_depth_anywhere),
		cmocka_unit_test(finds_keys_that_stand_twice),
		cmocka_unit_test(gives_several_members),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
