/* json/document/write.h: what is written is JSON and UTF-8, whatever comes in. */
#include <math.h>

#include "json/document/write.h"
#include "test.h"

static const struct {
	const char *name;
	struct str in;
	const char *out;
} strings[] = {
	{ "absent", { NULL, 0 }, "\"\"" },
	{ "plain", STR_LIT("abc"), "\"abc\"" },
	{ "quotes", STR_LIT("a\"b\\c/d"), "\"a\\\"b\\\\c/d\"" },
	{ "controls", STR_LIT("\b\f\n\r\t\x01\x1f\x7f\0"),
	  "\"\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\\u0000\"" },
	{ "UTF-8", STR_LIT("ä€😀"), "\"ä€😀\"" },
	{ "stray byte",
	  STR_LIT("a\xff"
		  "b"),
	  "\"a�b\"" },
	{ "cut in the middle",
	  STR_LIT("a\xe2\x82"
		  "b"),
	  "\"a�b\"" },
	{ "cut at the end", STR_LIT("a\xf0\x9f\x98"), "\"a�\"" },
	{ "surrogate", STR_LIT("\xed\xa0\x80"), "\"���\"" },
	{ "Latin-1", STR_LIT("caf\xe9 cr\xe8me"), "\"caf� cr�me\"" },
	{ "quote behind a cut", STR_LIT("\xe2\""), "\"�\\\"\"" },
};

static void writes_strings(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(strings); i++) {
		autobuf struct buf b = BUF_INIT(1024);
		struct json_writer w = json_writer(&b);
		struct err e;

		json_write_str(&w, strings[i].in);
		assert_int_equal(json_write_done(&w, &e), 0);
		if (strcmp(b.p, strings[i].out) != 0)
			print_error("%s\n", b.p);
		ROW_CHECK(strcmp(b.p, strings[i].out) == 0, strings[i].name);
	}
}

/* One byte of ASCII as it stands in a string. */
static size_t put_plainly(char *to, unsigned char c)
{
	static const char short_ones[] = "b\bf\fn\nr\rt\t\"\"\\\\";

	for (size_t i = 0; i + 1 < sizeof(short_ones); i += 2) {
		if ((unsigned char)short_ones[i + 1] == c)
			return (size_t)sprintf(to, "\\%c", short_ones[i]);
	}
	if (c < 0x20)
		return (size_t)sprintf(to, "\\u%04x", c);
	*to = (char)c;
	return 1;
}

/* Every byte of ASCII at every place of texts of all lengths, however many it looks at in one
 * step. */
static void writes_every_byte(void **state)
{
	char text[21], wanted[64];

	for (size_t n = 1; n <= sizeof(text); n++) {
		for (size_t at = 0; at < n; at++) {
			for (unsigned c = 0; c < 128; c++) {
				autobuf struct buf b = BUF_INIT(64);
				struct json_writer w = json_writer(&b);
				size_t m = 0;
				struct err e;

				memset(text, c % 2 ? '~' : ' ', sizeof(text));
				text[at] = (char)c;
				wanted[m++] = '"';
				for (size_t i = 0; i < n; i++)
					m += put_plainly(wanted + m, (unsigned char)text[i]);
				wanted[m++] = '"';
				json_write_str(&w, (struct str){ text, n });
				assert_int_equal(json_write_done(&w, &e), 0);
				assert_true(str_eq(buf_str(&b), (struct str){ wanted, m }));
			}
		}
	}
}

static void writes_names(void **state)
{
	autobuf struct buf b = BUF_INIT(64);
	struct json_writer w = json_writer(&b);
	struct err e;

	json_write_object(&w);
	json_write_name(&w, "a");
	json_write_int(&w, 1);
	json_write_name(&w, "b");
	json_write_object(&w);
	json_write_name(&w, "c");
	json_write_null(&w);
	json_write_raw(&w, STR_LIT("\"d\":2"));
	json_write_object_end(&w);
	json_write_object_end(&w);
	assert_int_equal(json_write_done(&w, &e), 0);
	assert_string_equal(b.p, "{\"a\":1,\"b\":{\"c\":null,\"d\":2}}");
}

static void writes_a_document(void **state)
{
	autobuf struct buf b = BUF_INIT(1024);
	struct json_writer w = json_writer(&b);
	struct err e;

	json_write_object(&w);
	json_write_key(&w, "i");
	json_write_int(&w, INT64_MIN);
	json_write_key(&w, "u");
	json_write_uint(&w, UINT64_MAX);
	json_write_key(&w, "d");
	json_write_array(&w);
	json_write_real(&w, 0.1);
	json_write_real(&w, 50);
	json_write_real(&w, 1e300);
	json_write_real(&w, -2.5e-9);
	json_write_array_end(&w);
	json_write_key(&w, "e");
	json_write_object(&w);
	json_write_object_end(&w);
	json_write_key_str(&w, STR_LIT("k\n"));
	json_write_array(&w);
	json_write_array_end(&w);
	json_write_key(&w, "b");
	json_write_array(&w);
	json_write_bool(&w, true);
	json_write_null(&w);
	json_write_raw(&w, STR_LIT("{\"x\":1}"));
	json_write_base64(&w, STR_LIT("\0\xff\x10!"));
	json_write_base64(&w, STR_NONE);
	json_write_array_end(&w);
	json_write_object_end(&w);
	assert_int_equal(json_write_done(&w, &e), 0);
	assert_string_equal(b.p, "{\"i\":-9223372036854775808,\"u\":18446744073709551615,"
				 "\"d\":[0.1,50,1e300,-2.5e-9],\"e\":{},\"k\\n\":[],"
				 "\"b\":[true,null,{\"x\":1},\"AP8QIQ==\",\"\"]}");
}

/* What was parsed comes out as it went in, numbers and order included. */
static void writes_parsed_values(void **state)
{
	static const char text[] =
		"{\"b\":[1,-2,3.5,18446744073709551615,1e100,null,true,\"ä\\n\"],"
		"\"a\":{\"\":[[]],\"x\":{}}}";
	autobuf struct buf b = BUF_INIT(1024);
	struct json_writer w = json_writer(&b);
	struct err e;
	AUTO(json_free) struct json_doc *d = json_parse(str_of(text), NULL, &e);

	assert_non_null(d);
	json_write_val(&w, json_root(d));
	assert_int_equal(json_write_done(&w, &e), 0);
	assert_string_equal(b.p, text);
}

static void stays_within_its_maximum(void **state)
{
	for (size_t max = 0; max < 40; max++) {
		autobuf struct buf b = BUF_INIT(max);
		struct json_writer w = json_writer(&b);
		struct err e = ERR_INIT;

		json_write_array(&w);
		json_write_text(&w, "a\nb");
		json_write_base64(&w, STR_LIT("abcdefg"));
		json_write_int(&w, -12345);
		json_write_array_end(&w);
		if (json_write_done(&w, &e) < 0) {
			assert_true(max < 30);
			assert_int_equal(e.code, ERR_TOO_LARGE);
		} else {
			assert_string_equal(b.p, "[\"a\\nb\",\"YWJjZGVmZw==\",-12345]");
		}
		assert_true(b.n <= max);
	}
}

static void refuses_what_json_lacks(void **state)
{
	static const double numbers[] = { NAN, INFINITY, -INFINITY };

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		autobuf struct buf b = BUF_INIT(64);
		struct json_writer w = json_writer(&b);
		struct err e = ERR_INIT;

		json_write_real(&w, numbers[i]);
		assert_int_equal(json_write_done(&w, &e), -1);
		assert_int_equal(e.code, ERR_BUG);
	}
}

static void notices_an_open_array(void **state)
{
	autobuf struct buf b = BUF_INIT(64);
	struct json_writer w = json_writer(&b);
	struct err e = ERR_INIT;

	json_write_array(&w);
	assert_int_equal(json_write_done(&w, &e), -1);
	assert_int_equal(e.code, ERR_BUG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_strings),
		cmocka_unit_test(writes_every_byte),
		cmocka_unit_test(writes_names),
		cmocka_unit_test(writes_a_document),
		cmocka_unit_test(writes_parsed_values),
		cmocka_unit_test(stays_within_its_maximum),
		cmocka_unit_test(refuses_what_json_lacks),
		cmocka_unit_test(notices_an_open_array),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
