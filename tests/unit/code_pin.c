/* Digests of definitions, and how two differ: modules/code/pin.h. */
#include "base/buf.h"
#include "modules/code/pin.h"
#include "test.h"

#define TOOL(schema) "{\"name\":\"t\",\"description\":\"d\",\"inputSchema\":" schema "}"

static const struct {
	const char *a, *b;
	bool same;
} rows[] = {
	{ TOOL("{\"type\":\"object\",\"properties\":{\"x\":{},\"y\":true}}"),
	  "{ \"inputSchema\" : {\"properties\":{\"y\":true,\"x\":{}}, \"type\":\"object\"},"
	  "\"\\u006eame\":\"t\", \"description\":\"d\"}",
	  true },
	{ TOOL("{\"maximum\":1}"), TOOL("{\"maximum\":1.0}"), true },
	{ TOOL("{\"maximum\":100}"), TOOL("{\"maximum\":1e2}"), true },
	{ TOOL("{\"maximum\":0}"), TOOL("{\"maximum\":-0.0}"), true },
	{ TOOL("{\"maximum\":1000000000000000000}"), TOOL("{\"maximum\":1e18}"), true },
	{ TOOL("{\"maximum\":18446744073709551615}"), TOOL("{\"maximum\":18446744073709551614}"),
	  false },
	{ TOOL("{\"maximum\":0.1}"), TOOL("{\"maximum\":1e-1}"), true },
	{ TOOL("{\"maximum\":0.1}"), TOOL("{\"maximum\":0.2}"), false },
	{ TOOL("{\"maximum\":1}"), TOOL("{\"maximum\":\"1\"}"), false },
	{ TOOL("{\"required\":[\"a\",\"b\"]}"), TOOL("{\"required\":[\"b\",\"a\"]}"), true },
	{ TOOL("{\"required\":[\"a\"]}"), TOOL("{\"required\":[\"a\",\"b\"]}"), false },
	{ TOOL("{\"enum\":[\"a\",\"b\"]}"), TOOL("{\"enum\":[\"b\",\"a\"]}"), true },
	{ TOOL("{\"enum\":[1,2]}"), TOOL("{\"enum\":[2,1]}"), false },
	{ TOOL("{\"default\":[\"a\",\"b\"]}"), TOOL("{\"default\":[\"b\",\"a\"]}"), false },
	{ TOOL("{\"default\":null}"), TOOL("{}"), false },
	{ TOOL("{}"), TOOL("null"), false },
	{ TOOL("{}"), "{\"name\":\"t\",\"description\":\"D\",\"inputSchema\":{}}", false },
	{ TOOL("{}"), "{\"name\":\"T\",\"description\":\"d\",\"inputSchema\":{}}", false },
	{ TOOL("{}"), "{\"name\":\"t\",\"description\":\"d\\u200b\",\"inputSchema\":{}}", false },
	{ TOOL("{}"), "{\"name\":\"t\",\"description\":\"d\",\"inputSchema\":{},\"_meta\":{}}",
	  true },
	{ TOOL("{}"), "{\"name\":\"t\",\"description\":\"d\",\"inputSchema\":{},\"title\":\"x\"}",
	  false },
	{ TOOL("{}"),
	  "{\"name\":\"t\",\"description\":\"d\",\"inputSchema\":{},\"outputSchema\":{}}", false },
	{ TOOL("{}"),
	  "{\"name\":\"t\",\"description\":\"d\",\"inputSchema\":{},\"annotations\":"
	  "{\"readOnlyHint\":true}}",
	  false },
	{ TOOL("{}"), "{\"name\":\"t\",\"description\":\"d\",\"inputSchema\":{},\"icons\":[]}",
	  false },
};

static struct json_doc *parse(const char *text)
{
	struct err e;
	struct json_doc *d = json_parse(str_of(text), NULL, &e);

	ROW_CHECK(d, text);
	return d;
}

/* Digests say whether two are the same, and so do differences. */
static void test_rows(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct json_doc *a = parse(rows[i].a), *b = parse(rows[i].b);
		char x[SHA256_HEX], y[SHA256_HEX];
		struct pin_diff diff;
		struct arena arena;
		struct err e;

		arena_init(&arena, 1 << 20);
		ROW_CHECK(pin_tool(json_root(a), x, &e) == 0, rows[i].a);
		ROW_CHECK(pin_tool(json_root(b), y, &e) == 0, rows[i].b);
		ROW_CHECK((strcmp(x, y) == 0) == rows[i].same, rows[i].b);
		ROW_CHECK(pin_diff(json_root(a), json_root(b), &arena, &diff, &e) == 0, rows[i].b);
		ROW_CHECK((diff.n == 0) == rows[i].same, rows[i].b);
		arena_fini(&arena);
		json_free(a);
		json_free(b);
	}
}

/* What a person is shown of each difference. */
static void test_shown(void **state)
{
	static const char old[] = "{\"name\":\"t\",\"description\":\"Adds two numbers.\","
				  "\"inputSchema\":{\"properties\":{"
				  "\"a/b\":{\"type\":\"string\"},\"gone\":{\"type\":[\"x\",\"y\"]},"
				  "\"one\":{\"oneOf\":[{\"const\":1},{\"const\":2}]}}}}";
	static const char now[] =
		"{\"name\":\"t\",\"description\":\"Adds two num\\u200bbers.\",\"inputSchema\":"
		"{\"properties\":{\"a/b\":{\"type\":\"number\"},\"new\\u001b\":{\"b\":1,\"a\":2},"
		"\"one\":{\"oneOf\":[{\"const\":1},{\"const\":3}]}}}}";
	static const struct pin_change want[] = {
		{ STR_LIT("/description"), STR_LIT("Adds two numbers."),
		  STR_LIT("Adds two num\\u{200b}bers.") },
		{ STR_LIT("/inputSchema/properties/a~1b/type"), STR_LIT("string"),
		  STR_LIT("number") },
		{ STR_LIT("/inputSchema/properties/gone"),
		  STR_LIT("{\"type\":[\"x\",\"y\"]}"),
		  { NULL, 0 } },
		{ STR_LIT("/inputSchema/properties/new\\u{1b}"),
		  { NULL, 0 },
		  STR_LIT("{\"a\":2,\"b\":1}") },
		{ STR_LIT("/inputSchema/properties/one/oneOf/1/const"), STR_LIT("2"),
		  STR_LIT("3") },
	};
	struct json_doc *a = parse(old), *b = parse(now);
	struct pin_diff diff;
	struct arena arena;
	struct err e;

	arena_init(&arena, 1 << 20);
	assert_int_equal(pin_diff(json_root(a), json_root(b), &arena, &diff, &e), 0);
	assert_int_equal(diff.n, ARRAY_LEN(want));
	assert_false(diff.more);
	for (size_t i = 0; i < diff.n; i++) {
		ROW_CHECK(str_eq(diff.changes[i].where, want[i].where), diff.changes[i].where.p);
		ROW_CHECK(str_eq(diff.changes[i].old, want[i].old), diff.changes[i].where.p);
		ROW_CHECK(!diff.changes[i].old.p == !want[i].old.p, diff.changes[i].where.p);
		ROW_CHECK(str_eq(diff.changes[i].now, want[i].now), diff.changes[i].where.p);
	}
	arena_fini(&arena);
	json_free(a);
	json_free(b);
}

/* Of a long text a person sees the place that changed. */
static void test_long(void **state)
{
	char text[2][6000];
	struct json_doc *d[2];
	struct pin_diff diff;
	struct arena arena;
	struct err e;

	for (int i = 0; i < 2; i++) {
		int n = snprintf(text[i], sizeof(text[i]), "{\"name\":\"t\",\"description\":\"%0*d",
				 4000, 0);

		snprintf(text[i] + n, sizeof(text[i]) - (size_t)n, "%s%0*d\"}", i ? "evil" : "good",
			 1000, 0);
		d[i] = parse(text[i]);
	}
	arena_init(&arena, 1 << 20);
	assert_int_equal(pin_diff(json_root(d[0]), json_root(d[1]), &arena, &diff, &e), 0);
	assert_int_equal(diff.n, 1);
	assert_non_null(strstr(diff.changes[0].old.p, "0good0"));
	assert_non_null(strstr(diff.changes[0].now.p, "0evil0"));
	assert_true(diff.changes[0].now.n < 320);
	arena_fini(&arena);
	json_free(d[0]);
	json_free(d[1]);
}

static void test_bounds(void **state)
{
	autobuf struct buf b = BUF_INIT(1 << 20);
	struct json_doc *old = parse("{\"name\":\"t\"}"), *now;
	struct pin_diff diff;
	struct arena arena;
	char hex[SHA256_HEX], other[SHA256_HEX];
	struct err e;

	arena_init(&arena, 1 << 20);
	assert_int_equal(buf_addf(&b, &e, "{\"name\":\"t\",\"annotations\":[{}"), 0);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(buf_addf(&b, &e, ",{\"k\":%d}", i), 0);
	assert_int_equal(buf_addf(&b, &e, "]}"), 0);
	now = parse(b.p);
	assert_int_equal(pin_diff(json_root(old), json_root(now), &arena, &diff, &e), 0);
	assert_int_equal(diff.n, 1);
	for (char *at = b.p; (at = strstr(at, "\"k\"")); at++)
		at[1] = 'l';
	json_free(old);
	old = parse(b.p);
	assert_int_equal(pin_diff(json_root(old), json_root(now), &arena, &diff, &e), 0);
	assert_int_equal(diff.n, PIN_CHANGES_MAX);
	assert_true(diff.more);
	assert_int_equal(pin_tool(NULL, hex, &e), -1);
	assert_int_equal(e.code, ERR_INVALID);
	assert_int_equal(pin_instructions(STR_NONE, hex, &e), 0);
	assert_int_equal(pin_instructions(STR_LIT(""), other, &e), 0);
	assert_string_not_equal(hex, other);
	arena_fini(&arena);
	json_free(old);
	json_free(now);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_shown),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
