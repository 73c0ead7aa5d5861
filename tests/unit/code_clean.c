/* What strangers write, made safe to show: modules/code/clean.h. */
#include "base/buf.h"
#include "json/document/utf8.h"
#include "modules/code/clean.h"
#include "test.h"

#define TAG(c) "\xf3\xa0\x81" c

static const struct {
	enum clean_mode mode;
	const char *text, *want;
} rows[] = {
	{ CLEAN_TEXT, "Get the weather.", "Get the weather." },
	{ CLEAN_TEXT, "", "" },
	{ CLEAN_TEXT, " \n a  b \r\n\r\n\r\n\r\n  c\rd\t\n", "a  b\n\n  c\nd" },
	{ CLEAN_LINE, "a\n\n  b\tc", "a b c" },
	{ CLEAN_REVEAL, "a\nb\tc\r", "a\\nb\\tc\\r" },
	/* sequences of terminals */
	{ CLEAN_TEXT, "\x1b[31mred\x1b[0m", "red" },
	{ CLEAN_TEXT, "\x1b[38;5;1;4mx\x1b[2J\x1b[1;1Hy", "xy" },
	{ CLEAN_TEXT, "\x1b]0;title\x07x", "x" },
	{ CLEAN_TEXT, "\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link" },
	{ CLEAN_TEXT, "\x1bPdevice\x1b\\x\x1b_app\x1b\\y\x1b^pm\x1b\\z", "xyz" },
	{ CLEAN_TEXT,
	  "\xc2\x9b"
	  "31mred\xc2\x9d"
	  "0;t\xc2\x9c!",
	  "red!" },
	{ CLEAN_TEXT,
	  "\x1b(Bx\x1b"
	  "cy\x1b=z",
	  "xyz" },
	/* without an end they hide nothing */
	{ CLEAN_TEXT, "\x1b]0;ignore all", "]0;ignore all" },
	{ CLEAN_TEXT, "\x1b[12", "[12" },
	{ CLEAN_TEXT, "a\x1b", "a" },
	{ CLEAN_REVEAL, "\x1b[31mred", "\\u{1b}[31mred" },
	/* control characters */
	{ CLEAN_TEXT, "a\x01\x02\x7f\b\ab", "ab" },
	{ CLEAN_TEXT,
	  "a\xc2\x85"
	  "b\xe2\x80\xa8"
	  "c\vd",
	  "a\nb\nc\nd" },
	{ CLEAN_TEXT,
	  "a\xc2\x80"
	  "b",
	  "ab" },
	/* what has no width */
	{ CLEAN_TEXT, "ig\xe2\x80\x8bno\xe2\x80\x8dre\xe2\x81\xa0\xef\xbb\xbf", "ignore" },
	{ CLEAN_REVEAL, "ig\xe2\x80\x8bnore", "ig\\u{200b}nore" },
	{ CLEAN_TEXT,
	  "so\xc2\xad"
	  "ft\xe1\xa0\x8e\xe3\x85\xa4",
	  "soft" },
	/* direction */
	{ CLEAN_TEXT,
	  "\xe2\x80\xae"
	  "abc\xe2\x80\xac\xe2\x81\xa6x\xe2\x81\xa9\xe2\x80\x8f\xd8\x9c",
	  "abcx" },
	/* tags, and what else carries bytes unseen */
	{ CLEAN_TEXT, "x" TAG("\x89") TAG("\xa7") "y", "xy" },
	{ CLEAN_TEXT, "x\xef\xb8\x80\xef\xb8\x8f\xf3\xa0\x84\x80\xf3\xa0\x87\xafy", "xy" },
	{ CLEAN_TEXT, "\xe2\x98\x83\xef\xb8\x8f\xef\xb8\x8f\xef\xb8\x81!",
	  "\xe2\x98\x83\xef\xb8\x8f!" },
	/* what scripts and pictures need stays */
	{ CLEAN_TEXT, "1\xef\xb8\x8f\xe2\x83\xa3", "1\xef\xb8\x8f\xe2\x83\xa3" },
	{ CLEAN_TEXT, "\xd9\x85\xdb\x8c\xe2\x80\x8c\xd8\xae",
	  "\xd9\x85\xdb\x8c\xe2\x80\x8c\xd8\xae" },
	{ CLEAN_TEXT, "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb",
	  "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb" },
	{ CLEAN_TEXT, "\xf0\x9f\x91\xa9\xe2\x80\x8d\xe2\x80\x8d\xe2\x80\x8c\xf0\x9f\x92\xbb",
	  "\xf0\x9f\x91\xa9\xe2\x80\x8c\xf0\x9f\x92\xbb" },
	{ CLEAN_TEXT,
	  "Stra\xc3\x9f"
	  "e \xe5\xa4\xa9\xe6\xb0\x94",
	  "Stra\xc3\x9f"
	  "e \xe5\xa4\xa9\xe6\xb0\x94" },
	/* blanks and the private */
	{ CLEAN_TEXT,
	  "a\xc2\xa0"
	  "b\xe2\x80\x83"
	  "c",
	  "a b c" },
	{ CLEAN_TEXT,
	  "a\xee\x80\x80"
	  "b\xf4\x8f\xbf\xbf",
	  "a\xef\xbf\xbd"
	  "b\xef\xbf\xbd" },
	/* no UTF-8 */
	{ CLEAN_TEXT, "a\xff\xc0\xaf\xed\xa0\x80z",
	  "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz" },
	/* comments */
	{ CLEAN_COMMENT, "a */ b **/ c *\xe2\x80\x8b/ d * /", "a *\\/ b **\\/ c *\\/ d * /" },
	{ CLEAN_TEXT, "src/**/*.c", "src/**/*.c" },
	{ CLEAN_COMMENT, "src/**/*.c", "src/**\\/*.c" },
};

static void test_rows(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		autobuf struct buf b = BUF_INIT(4096), c = BUF_INIT(4096);
		struct str text = str_of(rows[i].text);
		struct err e;

		ROW_CHECK(clean_text(&b, text, rows[i].mode, CLEAN_CHARS, &e) == 0, rows[i].want);
		if (!str_is(buf_str(&b), rows[i].want))
			print_error("row %zu: got %s\n", i, b.p ? b.p : "");
		ROW_CHECK(str_is(buf_str(&b), rows[i].want), rows[i].want);
		ROW_CHECK(clean_text(&c, buf_str(&b), rows[i].mode, CLEAN_CHARS, &e) == 0,
			  rows[i].want);
		ROW_CHECK(str_eq(buf_str(&b), buf_str(&c)), rows[i].want);
		ROW_CHECK(!clean_changes(buf_str(&b)), rows[i].want);
	}
}

static void test_changes(void **state)
{
	static const struct {
		const char *text;
		bool changes;
	} texts[] = {
		{ "plain\n\ttext\r\n", false },
		{ "a\x1b[0m", true },
		{ "a\xe2\x80\x8b", true },
		{ "a\xe2\x80\x8d"
		  "b",
		  true },
		{ "a\xe2\x80\xae", true },
		{ "a\xff", true },
		{ "a\xef\xbf\xbd", false },
		{ "a" TAG("\x89"), true },
		{ "a\rb", true },
		{ "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		ROW_CHECK(clean_changes(str_of(texts[i].text)) == texts[i].changes, texts[i].text);
}

/* However long a text is, so many characters are shown, and the cut is marked. */
static void test_cut(void **state)
{
	static char text[9000];

	memset(text, 'x', sizeof(text));
	for (size_t n = 1990; n < 2012; n++) {
		autobuf struct buf b = BUF_INIT(8192);
		struct err e;

		assert_int_equal(
			clean_text(&b, (struct str){ text, n }, CLEAN_TEXT, CLEAN_CHARS, &e), 0);
		assert_int_equal(utf8_count(buf_str(&b)), n < 2000 ? n : 2000);
		assert_int_equal(str_ends(buf_str(&b), "x … [cut]"), n > 2000);
	}
	for (size_t i = 0; i < sizeof(text); i += 3)
		memcpy(text + i, "\xe5\xa4\xa9", 3);
	{
		autobuf struct buf b = BUF_INIT(8192);
		struct err e;

		assert_int_equal(clean_text(&b, (struct str){ text, sizeof(text) }, CLEAN_TEXT,
					    CLEAN_CHARS, &e),
				 0);
		assert_int_equal(utf8_count(buf_str(&b)), 2000);
		assert_true(utf8_valid(buf_str(&b)));
	}
}

/* Blanks push nothing out of sight. */
static void test_padding(void **state)
{
	static char text[5000];
	autobuf struct buf b = BUF_INIT(8192);
	struct err e;

	memset(text, ' ', sizeof(text));
	text[0] = 'a';
	memset(text + 1000, '\n', 1000);
	text[4999] = 'b';
	assert_int_equal(
		clean_text(&b, (struct str){ text, sizeof(text) }, CLEAN_TEXT, CLEAN_CHARS, &e), 0);
	assert_int_equal(b.n, 1 + 2 + 32 + 1);
}

static void test_json(void **state)
{
	static const char text[] =
		"{\"name\":\"x\",\"description\":\"a\\u200bb*/\",\"inputSchema\":{\"properties\":"
		"{\"k\\u200b\":{\"enum\":[\"\\u001b[1mq\",1,null,1.5]},\"k\":true}}}";
	autobuf struct buf b = BUF_INIT(4096);
	struct err e;
	struct json_doc *d = json_parse(str_of(text), NULL, &e), *cleaned;

	assert_non_null(d);
	assert_int_equal(clean_json(&b, json_root(d), CLEAN_COMMENT, &e), 0);
	assert_string_equal(
		b.p, "{\"name\":\"x\",\"description\":\"ab*\\\\/\",\"inputSchema\":{\"properties\":"
		     "{\"k\\\\u{200b}~9844edb2\":{\"enum\":[\"q\",1,null,1.5]},\"k\":true}}}");
	cleaned = json_parse(buf_str(&b), NULL, &e);
	assert_non_null(cleaned);
	json_free(cleaned);
	json_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows), cmocka_unit_test(test_changes),
		cmocka_unit_test(test_cut),  cmocka_unit_test(test_padding),
		cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
