/* What `holt mcp WORD` makes of words: command lines, arguments, and text for a terminal. */
#include "cli/common/args.h"
#include "cli/common/safe.h"
#include "cli/common/split.h"
#include "test.h"

/* ---- cli/common/split.h ---------------------------------------------------------------------- */

enum { WORDS = 8 };

static const struct {
	const char *line, *words[WORDS];
} lines[] = {
	{ "a", { "a" } },
	{ "  a\tb\n c ", { "a", "b", "c" } },
	{ "'a b' \"c d\" e\\ f", { "a b", "c d", "e f" } },
	{ "'\\' \"\\\\\\\"\" \\'\\\"", { "\\", "\\\"", "'\"" } },
	{ "a''\"\"b '' \"\"", { "ab", "", "" } },
	{ "\"\\n$x\" $HOME *.c ~ | >x", { "\\n$x", "$HOME", "*.c", "~", "|", ">x" } },
};

static void test_lines(void **state)
{
	struct err e = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		AUTO(arena_free) struct arena *a = arena_new(1 << 16);
		char **words = split_command(lines[i].line, a, &e);

		assert_non_null(words);
		for (size_t k = 0; k < WORDS && (words[k] || lines[i].words[k]); k++) {
			ROW_CHECK(words[k] && lines[i].words[k], lines[i].line);
			assert_string_equal(words[k], lines[i].words[k]);
		}
	}
}

static void test_lines_refused(void **state)
{
	static const char *const refused[] = { "", "  ", "'a", "a \"b", "a\\", "\"\\\"" };
	struct err e = ERR_INIT;
	char many[2 * SPLIT_WORDS_MAX + 4] = "";

	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		AUTO(arena_free) struct arena *a = arena_new(1 << 16);

		ROW_CHECK(!split_command(refused[i], a, &e) && e.code == ERR_INVALID, refused[i]);
	}
	for (size_t i = 0; i <= SPLIT_WORDS_MAX; i++)
		memcpy(many + 2 * i, "x ", 3);
	AUTO(arena_free) struct arena *a = arena_new(1 << 16);
	assert_null(split_command(many, a, &e));
	assert_int_equal(e.code, ERR_INVALID);
}

/* ---- cli/common/args.h ----------------------------------------------------------------------- */

static const char schema_text[] =
	"{\"type\":\"object\",\"properties\":{\"s\":{\"type\":\"string\"},"
	"\"i\":{\"type\":\"integer\"},"
	"\"n\":{\"type\":\"number\"},\"b\":{\"type\":\"boolean\"},\"a\":{\"type\":\"array\"},"
	"\"o\":{\"type\":\"object\"},\"z\":{\"type\":[\"integer\",\"null\"]},\"any\":{},"
	"\"e\":{\"enum\":[1,2]},\"c\":{\"const\":true},\"r\":{\"$ref\":\"#/$defs/r\"},"
	"\"u\":{\"anyOf\":[{\"type\":\"boolean\"},{\"type\":\"array\"}]},"
	"\"loop\":{\"$ref\":\"#/properties/loop\"}},\"$defs\":{\"r\":{\"type\":\"integer\"}},"
	"\"required\":[]}";

static const struct {
	const char *words[WORDS];
	const char *object; /* NULL: it is refused */
} arguments[] = {
	{ { NULL }, "{}" },
	{ { "s=1" }, "{\"s\":\"1\"}" },
	{ { "s=" }, "{\"s\":\"\"}" },
	{ { "s=a=b" }, "{\"s\":\"a=b\"}" },
	{ { "i=-5", "n=1.5", "b=true" }, "{\"i\":-5,\"n\":1.5,\"b\":true}" },
	{ { "i=2.0" }, "{\"i\":2.0}" },
	{ { "n=3" }, "{\"n\":3}" },
	{ { "a=[1,\"x\"]", "o={}" }, "{\"a\":[1,\"x\"],\"o\":{}}" },
	{ { "z=null" }, "{\"z\":null}" },
	{ { "any=1", "e=2", "c=true", "r=3", "u=[]", "loop=x" },
	  "{\"any\":\"1\",\"e\":2,\"c\":true,\"r\":3,\"u\":[],\"loop\":\"x\"}" },
	{ { "s:=1", "new:={\"x\":1}" }, "{\"s\":1,\"new\":{\"x\":1}}" },
	{ { "{\"i\":\"x\"}" }, "{\"i\":\"x\"}" },
	{ { "i=" }, NULL },
	{ { "i=1.5" }, NULL },
	{ { "i=x" }, NULL },
	{ { "b=yes" }, NULL },
	{ { "a={}" }, NULL },
	{ { "z=x" }, NULL },
	{ { "u=1" }, NULL },
	{ { "new=1" }, NULL },
	{ { "i=1", "i=2" }, NULL },
	{ { "x" }, NULL },
	{ { "=x" }, NULL },
	{ { ":=1" }, NULL },
	{ { "i:=" }, NULL },
	{ { "{\"i\":1" }, NULL },
	{ { "{}", "i=1" }, NULL },
	{ { "s=\xff" }, NULL },
	{ { "\xff:=1" }, NULL },
	{ { "s=@/no/such/file" }, NULL },
};

static void test_arguments(void **state)
{
	struct err e = ERR_INIT;
	AUTO(json_free) struct json_doc *schema = json_parse(str_of(schema_text), NULL, &e);

	for (size_t i = 0; i < ARRAY_LEN(arguments); i++) {
		autobuf struct buf to = BUF_INIT(ARGS_TEXT_MAX);
		AUTO(args_free) struct args *a = NULL;
		size_t n = 0;
		int r;

		while (arguments[i].words[n])
			n++;
		a = args_read(arguments[i].words, n, &e);
		r = a ? args_build(a, json_root(schema), &to, &e) : -1;
		ROW_CHECK((r == 0) == (arguments[i].object != NULL), arguments[i].words[0]);
		if (arguments[i].object)
			assert_string_equal(to.p, arguments[i].object);
	}
}

static void test_arguments_checked(void **state)
{
	struct err e = ERR_INIT;
	AUTO(json_free)
	struct json_doc *doc =
		json_parse(STR_LIT("{\"properties\":{\"a\":{\"type\":\"integer\",\"minimum\":3,"
				   "\"description\":"
				   "\"What it is.\"}},\"required\":[\"a\"]}"),
			   NULL, &e);
	AUTO(json_free) struct json_doc *broken = json_parse(STR_LIT("{\"type\":5}"), NULL, &e);

	assert_int_equal(args_check(STR_LIT("{\"a\":3}"), json_root(doc), &e), 0);
	assert_int_equal(args_check(STR_LIT("{}"), json_root(doc), &e), -1);
	assert_string_equal(e.msg, "a is missing (integer: What it is.)");
	assert_int_equal(args_check(STR_LIT("{\"a\":2}"), json_root(doc), &e), -1);
	assert_non_null(strstr(e.msg, "a is less than 3"));
	assert_int_equal(args_check(STR_LIT("{\"a\":2}"), json_root(broken), &e), 0);
	assert_int_equal(args_check(STR_LIT("{\"a\":2}"), NULL, &e), 0);
}

/* ---- cli/common/safe.h ----------------------------------------------------------------------- */

static const struct {
	struct str text;
	const char *many, *one;
} texts[] = {
	{ STR_LIT("a"), "  a\n", "a" },
	{ STR_LIT(""), "", "" },
	{ STR_LIT("a\nb\n"), "  a\n  b\n", "a\\nb\\n" },
	{ STR_LIT("a\r\n\r\nb"), "  a\n\n  b\n", "a\\r\\n\\r\\nb" },
	{ STR_LIT("a\tb"), "  a\tb\n", "a\\x09b" },
	{ STR_LIT("\033[31m\a\x7f"), "  \\x1b[31m\\x07\\x7f\n", "\\x1b[31m\\x07\\x7f" },
	{ STR_LIT("\xc2\x9b"
		  "1m\0x"),
	  "  \\x9b1m\\x00x\n", "\\x9b1m\\x00x" },
	{ STR_LIT("\xe2\x80\xae\xe2\x80\xa8"), "  \\u202e\\u2028\n", "\\u202e\\u2028" },
	{ STR_LIT("\xf3\xa0\x81\x81"), "  \\U000e0041\n", "\\U000e0041" },
	{ STR_LIT("\xff\xc3(ä€😀"), "  \\xff\\xc3(ä€😀\n", "\\xff\\xc3(ä€😀" },
	{ STR_LIT("a\rb"), "  a\\x0db\n", "a\\rb" },
};

static char *printed(struct str text, void (*print)(FILE *out, struct str text))
{
	char *got = NULL;
	size_t n;
	FILE *f = open_memstream(&got, &n);

	print(f, text);
	fclose(f);
	return got;
}

static void print_many(FILE *out, struct str text)
{
	safe_text(out, text, 2);
}

static void test_texts(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		autofree char *many = printed(texts[i].text, print_many);
		autofree char *one = printed(texts[i].text, safe_line);

		assert_string_equal(many, texts[i].many);
		assert_string_equal(one, texts[i].one);
	}
}

static void print_json(FILE *out, struct str text)
{
	struct err e;
	AUTO(json_free) struct json_doc *doc = json_parse(text, NULL, &e);

	assert_int_equal(safe_json(out, json_root(doc), &e), 0);
}

static void print_lines(FILE *out, struct str text)
{
	struct err e;
	AUTO(json_free) struct json_doc *doc = json_parse(text, NULL, &e);

	assert_int_equal(safe_json_lines(out, json_root(doc), 0, &e), 0);
}

static void test_json(void **state)
{
	struct str evil =
		STR_LIT("{\"\xc2\x9b\":[\"\\u001b\xe2\x80\xae\xf3\xa0\x81\x81\x7f\",{}]}");
	autofree char *one = printed(evil, print_json), *many = printed(evil, print_lines);

	assert_string_equal(one, "{\"\\u009b\":[\"\\u001b\\u202e\\udb40\\udc41\\u007f\",{}]}");
	assert_string_equal(many,
			    "{\n  \"\\u009b\": [\n    \"\\u001b\\u202e\\udb40\\udc41\\u007f\",\n"
			    "    {}\n  ]\n}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),	  cmocka_unit_test(test_lines_refused),
		cmocka_unit_test(test_arguments), cmocka_unit_test(test_arguments_checked),
		cmocka_unit_test(test_texts),	  cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
