/* json/schema/schema.h, json/schema/regex.h, json/schema/format.h: what tables of JSON can't
 * say. The cases of single keywords stand in schemas/, see json_schema_cases.c. */
#include <stdlib.h>

#include "alloc_fail.h"
#include "base/buf.h"
#include "json/schema/regex.h"
#include "json/schema/schema.h"
#include "json/schema/format.h"
#include "json/document/write.h"
#include "test.h"

static const char *const texts[] = {
	"{\"properties\":{\"a\":{\"$ref\":\"#/$defs/x\"},\"b\":{\"type\":\"array\","
	"\"uniqueItems\":true}},"
	"\"patternProperties\":{\"^c\":{\"$ref\":\"#x\"}},\"unevaluatedProperties\":false,"
	"\"$defs\":{\"x\":{\"$anchor\":\"x\",\"pattern\":\"^a+$\"}}}",
};

static void survives_want_of_memory(void **state)
{
	static const char text[] = "{\"a\":\"aaa\",\"b\":[1,2,3],\"c\":\"a\"}";
	struct err e = ERR_INIT;
	AUTO(json_free) struct json_doc *d = json_parse(str_of(text), NULL, &e);

	for (unsigned n = 0; alloc_fail_next(&n);) {
		AUTO(schema_free) struct schema *s = schema_parse(str_of(texts[0]), NULL, &e);
		int is = s ? schema_check(s, json_root(d), NULL, &e) : -1;

		if (is < 0)
			assert_int_equal(e.code, ERR_LIMIT);
		assert_true(alloc_failed() || is == 0);
	}
}

static void is_checked_again_and_again(void **state)
{
	struct err e = ERR_INIT;
	AUTO(schema_free)
	struct schema *s = schema_parse(STR_LIT("{\"type\":\"integer\"}"), NULL, &e);
	AUTO(json_free) struct json_doc *one = json_parse(STR_LIT("1"), NULL, &e);
	AUTO(json_free) struct json_doc *text = json_parse(STR_LIT("\"1\""), NULL, &e);

	assert_non_null(s);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(schema_check(s, json_root(one), NULL, &e), 0);
		assert_int_equal(schema_check(s, json_root(text), NULL, &e), -1);
		assert_int_equal(schema_check(s, NULL, NULL, &e), -1);
		assert_int_equal(e.code, ERR_INVALID);
	}
	assert_null(schema_parse(STR_LIT("{\"a\""), NULL, &e));
	assert_int_equal(e.code, ERR_INVALID);
}

static void tells_no_more_faults_than_fit(void **state)
{
	struct schema_fault space[2];
	struct schema_faults faults = { .p = space, .max = 2 };
	struct err e = ERR_INIT;
	AUTO(schema_free) struct schema *s = schema_parse(STR_LIT("{\"items\":false}"), NULL, &e);
	AUTO(json_free) struct json_doc *d = json_parse(STR_LIT("[1,2,3,4]"), NULL, &e);

	assert_int_equal(schema_check(s, json_root(d), &faults, &e), -1);
	assert_int_equal(faults.n, 2);
	assert_string_equal(space[1].instance, "/1");
}

/* 100,000 items whose equality must not be a square of it, and 100,000 members likewise. */
static void large_values_cost_little(void **state)
{
	autobuf struct buf b = BUF_INIT(8 << 20);
	struct json_writer w = json_writer(&b);
	struct err e = ERR_INIT;

	json_write_array(&w);
	for (int i = 0; i < 100000; i++)
		json_write_int(&w, i);
	json_write_array_end(&w);
	assert_int_equal(json_write_done(&w, &e), 0);
	AUTO(json_free) struct json_doc *d = json_parse(buf_str(&b), NULL, &e);
	AUTO(schema_free)
	struct schema *s =
		schema_parse(STR_LIT("{\"uniqueItems\":true,\"contains\":{\"const\":99999},"
				     "\"unevaluatedItems\":{\"type\":\"integer\"}}"),
			     NULL, &e);

	assert_true(s && d);
	assert_int_equal(schema_check(s, json_root(d), NULL, &e), 0);
}

/* A key of 300 characters below another: the pointer is cut, and still text. */
static void cuts_long_pointers(void **state)
{
	autobuf struct buf b = BUF_INIT(1 << 16);
	struct err e = ERR_INIT;
	char key[300];

	memset(key, 'k', sizeof(key));
	assert_int_equal(buf_addf(&b, &e, "{\"%.300s\":{\"%.300s\":1}}", key, key), 0);
	AUTO(json_free) struct json_doc *d = json_parse(buf_str(&b), NULL, &e);
	AUTO(schema_free)
	struct schema *s = schema_parse(
		STR_LIT("{\"additionalProperties\":{\"additionalProperties\":false}}"), NULL, &e);

	assert_int_equal(schema_check(s, json_root(d), NULL, &e), -1);
	assert_int_equal(strncmp(e.msg, "/kkk", 4), 0);
	assert_non_null(strstr(e.msg, "k…: is not allowed"));
}

static const struct {
	const char *source;
	struct str text;
	int found; /* -1: it is no expression */
} expressions[] = {
	{ "", STR_LIT(""), 1 },
	{ "b", STR_LIT("abc"), 1 },
	{ "^b", STR_LIT("abc"), 0 },
	{ "c$", STR_LIT("abc\n"), 0 },
	{ "^a.c$", STR_LIT("aäc"), 1 },
	{ "^a.c$",
	  STR_LIT("a\xe2\x80\xa8"
		  "c"),
	  0 },
	{ "^\\s\\S[\\s][^\\S]$", STR_LIT("\xef\xbb\xbfx\xc2\xa0\v"), 1 },
	{ "^[\\S]$", STR_LIT("\xe3\x80\x80"), 0 },
	{ "^[\\S]$", STR_LIT("\xe3\x80\x81"), 1 },
	{ "^\\d\\w$", STR_LIT("1_"), 1 },
	{ "^\\d$", STR_LIT("\xd9\xa1"), 0 },
	{ "^\\x41\\u0042\\u{1F600}\\ud83d\\ude00\\cJ\\0$", STR_LIT("AB😀😀\n\0"), 1 },
	{ "^\\p{Lu}\\p{Letter}\\P{Script=Greek}$", STR_LIT("Äbc"), 1 },
	{ "^(?<x>a|b)\\k<x>\\1$", STR_LIT("bbb"), 1 },
	{ "^(?!no)(?=..$)(?<=^)(?:y|n).$", STR_LIT("ye"), 1 },
	{ "^[[:alpha:]]+$", STR_LIT("[:]"), 0 },
	{ "^[[:alph]+$", STR_LIT("[:pal"), 1 },
	{ "[]", STR_LIT("a"), 0 },
	{ "^[^]$", STR_LIT("\n"), 1 },
	{ "^a{2,3}?b*?$", STR_LIT("aab"), 1 },
	{ "^\\/\\-\\@\\\"$", STR_LIT("/-@\""), 1 },
	{ "^[\\b\\-\\]]+$", STR_LIT("\b-]"), 1 },
	{ "(?:)*", STR_LIT("x"), 1 },

	{ "(", STR_LIT(""), -1 },
	{ "[a", STR_LIT(""), -1 },
	{ "*", STR_LIT(""), -1 },
	{ "a**", STR_LIT(""), -1 },
	{ "a++", STR_LIT(""), -1 },
	{ "\\", STR_LIT(""), -1 },
	{ "\\a", STR_LIT(""), -1 },
	{ "\\Z", STR_LIT(""), -1 },
	{ "\\K", STR_LIT(""), -1 },
	{ "\\Qa\\E", STR_LIT(""), -1 },
	{ "\\1", STR_LIT(""), -1 },
	{ "\\00", STR_LIT(""), -1 },
	{ "\\xg0", STR_LIT(""), -1 },
	{ "\\ud800", STR_LIT(""), -1 },
	{ "\\u{110000}", STR_LIT(""), -1 },
	{ "\\u{}", STR_LIT(""), -1 },
	{ "\\p", STR_LIT(""), -1 },
	{ "\\p{", STR_LIT(""), -1 },
	{ "\\p{Nothing}", STR_LIT(""), -1 },
	{ "\\k<a", STR_LIT(""), -1 },
	{ "\\c1", STR_LIT(""), -1 },
	{ "[\\1]", STR_LIT(""), -1 },
	{ "(?R)", STR_LIT(""), -1 },
	{ "(?1)", STR_LIT(""), -1 },
	{ "(?>a)", STR_LIT(""), -1 },
	{ "(?i)a", STR_LIT(""), -1 },
	{ "(?#x)", STR_LIT(""), -1 },
	{ "(*UTF)", STR_LIT(""), -1 },
	{ "(*LIMIT_MATCH=1)a", STR_LIT(""), -1 },
	{ "((a{0,255}){0,255}){0,255}", STR_LIT(""), -1 },
};

static void speaks_ecma(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(expressions); i++) {
		struct err e = ERR_INIT;
		AUTO(regex_free) struct regex *r = regex_new(str_of(expressions[i].source), &e);
		uint64_t steps = 100000;
		int found = r ? regex_search(r, expressions[i].text, &steps, &e) : -1;

		if (found != expressions[i].found)
			print_error("%s\n", e.msg);
		ROW_CHECK((r != NULL) == (expressions[i].found >= 0), expressions[i].source);
		ROW_CHECK(found == expressions[i].found, expressions[i].source);
	}
}

static void an_expression_has_its_bounds(void **state)
{
	autofree char *text = malloc(REGEX_TEXT_MAX + 1);
	AUTO(regex_free) struct regex *slow = NULL, *big = NULL;
	uint64_t steps = 100000;
	struct err e = ERR_INIT;

	assert_non_null(text);
	memset(text, 'a', REGEX_TEXT_MAX + 1);
	assert_null(regex_new((struct str){ text, REGEX_BYTES_MAX + 1 }, &e));
	assert_int_equal(e.code, ERR_TOO_LARGE);
	slow = regex_new(STR_LIT("(a|aa)+$"), &e);
	assert_non_null(slow);
	assert_int_equal(regex_search(slow, (struct str){ text, REGEX_TEXT_MAX + 1 }, &steps, &e),
			 -1);
	text[999] = 'b';
	assert_int_equal(regex_search(slow, (struct str){ text, 1000 }, &steps, &e), -1);
	assert_int_equal(e.code, ERR_TOO_LARGE);
	/* the longer the text, the dearer each step: no quarter of a million million letters */
	steps = 1000000;
	big = regex_new(STR_LIT("[a-z]+[0-9]"), &e);
	text[999] = 'a';
	assert_int_equal(regex_search(big, (struct str){ text, REGEX_TEXT_MAX }, &steps, &e), -1);
	steps = 4000000;
	assert_int_equal(regex_search(big, (struct str){ text, 4096 }, &steps, &e), 0);
	steps = 200000;
	AUTO(regex_free) struct regex *anchored = regex_new(STR_LIT("^[a-z]+$"), &e);
	assert_int_equal(regex_search(anchored, (struct str){ text, REGEX_TEXT_MAX }, &steps, &e),
			 1);
}

static const struct {
	const char *format;
	struct str text;
	bool is;
} formats[] = {
	{ "date", STR_LIT("2024-02-29"), true },
	{ "date", STR_LIT("2100-02-29"), false },
	{ "date", STR_LIT("2024-2-29"), false },
	{ "date", STR_LIT("2024-00-10"), false },
	{ "time", STR_LIT("23:59:60Z"), true },
	{ "time", STR_LIT("00:29:60+00:30"), true },
	{ "time", STR_LIT("22:59:60Z"), false },
	{ "time", STR_LIT("12:00:00"), false },
	{ "time", STR_LIT("12:00:00.Z"), false },
	{ "date-time", STR_LIT("2024-02-29t12:00:00.123-01:00"), true },
	{ "date-time", STR_LIT("2024-02-29 12:00:00Z"), false },
	{ "duration", STR_LIT("P1Y2M3DT4H5M6S"), true },
	{ "duration", STR_LIT("P1Y3D"), false },
	{ "duration", STR_LIT("PT"), false },
	{ "duration", STR_LIT("P4W"), true },
	{ "duration", STR_LIT("P4WT1H"), false },
	{ "email", STR_LIT("\"a b\\\"\"@[127.0.0.1]"), true },
	{ "email", STR_LIT("a@[IPv6:::1]"), true },
	{ "email", STR_LIT("\"a\\"), false },
	{ "email", STR_LIT("a..b@c"), false },
	{ "email", STR_LIT("a@"), false },
	{ "hostname", STR_LIT("a-b.example"), true },
	{ "hostname", STR_LIT("a..b"), false },
	{ "hostname", STR_LIT("-a"), false },
	{ "ipv4", STR_LIT("255.0.1.2"), true },
	{ "ipv4", STR_LIT("1.2.3"), false },
	{ "ipv4", STR_LIT("1.2.3.256"), false },
	{ "ipv4", STR_LIT("01.2.3.4"), false },
	{ "ipv6", STR_LIT("::ffff:1.2.3.4"), true },
	{ "ipv6", STR_LIT("::1\0"), false },
	{ "ipv6", STR_LIT("fe80::1%eth0"), false },
	{ "uri", STR_LIT("https://u:p@[::1]:8/a%20b?c#d"), true },
	{ "uri", STR_LIT("/a"), false },
	{ "uri", STR_LIT("https://a b"), false },
	{ "uri", STR_LIT("https://ä.example"), false },
	{ "uri", STR_LIT("https://[::1"), false },
	{ "uri", STR_LIT("a:%zz"), false },
	{ "iri", STR_LIT("https://ä.example/ö"), true },
	{ "uri-reference", STR_LIT("a/b:c"), true },
	{ "uri-reference", STR_LIT("1a:b"), false },
	{ "iri-reference", STR_LIT("ä#ö"), true },
	{ "uri-template", STR_LIT("/a/{b.c:3,d*}{?e}"), true },
	{ "uri-template", STR_LIT("/{a"), false },
	{ "uri-template", STR_LIT("/{a:0}"), false },
	{ "uuid", STR_LIT("2eb8aa08-aa98-11ea-b4aa-73b441d16380"), true },
	{ "uuid", STR_LIT("2eb8aa08-aa98-11ea-b4aa73b441d16380-"), false },
	{ "json-pointer", STR_LIT("/a~1b/~0"), true },
	{ "json-pointer", STR_LIT("a"), false },
	{ "json-pointer", STR_LIT("/~2"), false },
	{ "relative-json-pointer", STR_LIT("0#"), true },
	{ "relative-json-pointer", STR_LIT("01/a"), false },
	{ "regex", STR_LIT("^(a|b)$"), true },
	{ "regex", STR_LIT("^(abc]"), false },
};

static void knows_formats(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		const struct schema_format *f = schema_format(str_of(formats[i].format));

		assert_non_null(f);
		ROW_CHECK(f->is(formats[i].text) == formats[i].is, formats[i].text.p);
		ROW_CHECK(!f->is(STR_LIT("")) || strstr("json-pointer uri-reference iri-reference "
							"uri-template regex",
							f->name),
			  f->name);
	}
	assert_null(schema_format(STR_LIT("idn-email")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(survives_want_of_memory),
		cmocka_unit_test(is_checked_again_and_again),
		cmocka_unit_test(tells_no_more_faults_than_fit),
		cmocka_unit_test(large_values_cost_little),
		cmocka_unit_test(cuts_long_pointers),
		cmocka_unit_test(speaks_ecma),
		cmocka_unit_test(an_expression_has_its_bounds),
		cmocka_unit_test(knows_formats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
