/* Names of tools in code and in plain lists: modules/code/names.h. */
#include <stdio.h>

#include "modules/code/names.h"
#include "test.h"

static const struct {
	const char *tool, *function, *type, *gateway;
} alone[] = {
	{ "get_forecast", "get_forecast", "GetForecast", "srv__get_forecast" },
	{ "getForecast", "getForecast", "GetForecast", "srv__getForecast" },
	{ "get-forecast", "get_forecast", "GetForecast", "srv__get-forecast" },
	{ "repo/get.file", "repo_get_file", "RepoGetFile", "srv__repo_get_file" },
	{ "3d render", "tool_3d_render", "T3dRender", "srv__3d_render" },
	{ "delete", "delete_", "Delete", "srv__delete" },
	{ "constructor", "constructor_", "Constructor", "srv__constructor" },
	{ "prototype", "prototype_", "Prototype", "srv__prototype" },
	{ "__proto__", "proto__", "Proto", "srv____proto__" },
	{ "then", "then_", "Then", "srv__then" },
	{ "default", "default_", "Default", "srv__default" },
	{ "toString", "toString_", "ToString", "srv__toString" },
	{ "lambda", "lambda_", "Lambda", "srv__lambda" },
	{ "None", "None_", "None", "srv__None" },
	{ "list", "list_", "List", "srv__list" },
	{ "eval", "eval_", "Eval", "srv__eval" },
	{ "search", "search", "Search", "srv__search" },
	{ "_", "tool", "Tool", "srv___" },
	{ "\xe5\xa4\xa9\xe6\xb0\x94", "tool", "Tool", "srv____" },
	{ "a\xff"
	  "b\"; evil()",
	  "a_b___evil__", "ABEvil", "srv__a_b___evil__" },
	{ "$price", "price", "Price", "srv___price" },
};

static int make(const char *const *tools, size_t n, struct arena *a, struct tool_name *ret,
		struct err *e)
{
	struct str all[16];

	for (size_t i = 0; i < n; i++)
		all[i] = str_of(tools[i]);
	return names_make(STR_LIT("srv"), all, n, a, ret, e);
}

static void test_alone(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(alone); i++) {
		struct arena a;
		struct tool_name name;
		struct err e;

		arena_init(&a, 1 << 20);
		ROW_CHECK(make(&alone[i].tool, 1, &a, &name, &e) == 0, alone[i].tool);
		ROW_CHECK(str_is(name.function, alone[i].function), name.function.p);
		ROW_CHECK(str_is(name.type, alone[i].type), name.type.p);
		ROW_CHECK(str_is(name.gateway, alone[i].gateway), name.gateway.p);
		arena_fini(&a);
	}
}

/* The one that was so from the start keeps its name, in whatever order they come. */
static void test_collisions(void **state)
{
	static const char *const one[] = { "get-item", "get_item", "get.item", "__get_item" };
	static const char *const two[] = { "__get_item", "get.item", "get_item", "get-item" };
	struct tool_name a[4], b[4];
	struct arena arena;
	struct err e;

	arena_init(&arena, 1 << 20);
	assert_int_equal(make(one, 4, &arena, a, &e), 0);
	assert_int_equal(make(two, 4, &arena, b, &e), 0);
	assert_string_equal(a[1].function.p, "get_item");
	assert_string_equal(a[0].gateway.p, "srv__get-item");
	for (size_t i = 0; i < 4; i++) {
		assert_string_equal(a[i].function.p, b[3 - i].function.p);
		assert_string_equal(a[i].type.p, b[3 - i].type.p);
		assert_string_equal(a[i].gateway.p, b[3 - i].gateway.p);
		for (size_t k = 0; k < i; k++) {
			assert_false(str_eq(a[i].function, a[k].function));
			assert_false(str_eq(a[i].type, a[k].type));
			assert_false(str_eq(a[i].gateway, a[k].gateway));
		}
	}
	arena_fini(&arena);
}

/* A server that knows the digests can't take another tool's name with them. */
static void test_taken_suffix(void **state)
{
	const char *tools[4] = { "x-y", "x_y", NULL, NULL };
	struct tool_name a[4];
	struct arena arena;
	struct err e;

	arena_init(&arena, 1 << 20);
	assert_int_equal(make(tools, 2, &arena, a, &e), 0);
	tools[2] = a[0].function.p;
	assert_int_equal(make(tools, 3, &arena, a, &e), 0);
	assert_string_equal(a[2].function.p, tools[2]);
	assert_false(str_eq(a[0].function, a[2].function));
	assert_int_equal(a[0].function.n, a[2].function.n + 4);
	arena_fini(&arena);
}

static void test_long(void **state)
{
	char x[301], y[301];
	const char *tools[2] = { x, y };
	struct tool_name a[2];
	struct arena arena;
	struct err e;

	memset(x, 'x', 300);
	memset(y, 'x', 300);
	y[299] = 'y';
	x[300] = y[300] = '\0';
	arena_init(&arena, 1 << 20);
	assert_int_equal(make(tools, 2, &arena, a, &e), 0);
	for (size_t i = 0; i < 2; i++) {
		assert_true(a[i].function.n <= 64 && a[i].type.n <= 64 && a[i].gateway.n <= 64);
		assert_int_equal(a[i].gateway.n, 64);
	}
	assert_false(str_eq(a[0].function, a[1].function));
	assert_false(str_eq(a[0].gateway, a[1].gateway));
	arena_fini(&arena);
}

static void test_refused(void **state)
{
	static const char *const twice[] = { "a", "b", "a" }, *const none[] = { "a", "" };
	struct tool_name a[3];
	struct arena arena;
	struct err e;

	arena_init(&arena, 1 << 20);
	assert_int_equal(make(twice, 3, &arena, a, &e), -1);
	assert_int_equal(e.code, ERR_INVALID);
	assert_int_equal(make(none, 2, &arena, a, &e), -1);
	assert_int_equal(e.code, ERR_INVALID);
	assert_int_equal(make(NULL, 0, &arena, a, &e), 0);
	arena_fini(&arena);
}

/* As many tools as there may be, all of which want one name. */
static void test_many(void **state)
{
	enum { N = NAMES_MAX };
	static char text[N][8];
	static struct str tools[N + 1];
	static struct tool_name a[N];
	struct arena arena;
	struct err e;

	for (size_t i = 0; i < N; i++) {
		for (size_t bit = 0; bit < 6; bit++)
			text[i][bit] = "-.:/"[i >> 2 * bit & 3];
		tools[i] = (struct str){ text[i], 6 };
	}
	arena_init(&arena, 16 << 20);
	assert_int_equal(names_make(STR_LIT("s"), tools, N, &arena, a, &e), 0);
	assert_int_equal(names_make(STR_LIT("s"), tools, N + 1, &arena, a, &e), -1);
	assert_int_equal(e.code, ERR_TOO_LARGE);
	arena_fini(&arena);
}

static void test_servers(void **state)
{
	static const struct {
		const char *name;
		bool good;
		const char *python;
	} names[] = {
		{ "weather", true, "weather" },
		{ "my-server-2", true, "my_server_2" },
		{ "import", true, "import_" },
		{ "a2345678901234567890123456789012", true, "a2345678901234567890123456789012" },
		{ "a23456789012345678901234567890123", false, NULL },
		{ "", false, NULL },
		{ "Weather", false, NULL },
		{ "2x", false, NULL },
		{ "-x", false, NULL },
		{ "a_b", false, NULL },
		{ "a b", false, NULL },
		{ "a/../b", false, NULL },
		{ "w\xc3\xa4", false, NULL },
		{ "holt", false, NULL },
		{ "sandbox", false, NULL },
		{ "mcp-x", false, NULL },
		{ "host-x", false, NULL },
		{ "fetch", false, NULL },
		{ "fetcher", true, "fetcher" },
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char python[NAME_SERVER_MAX + 2];
		struct err e;

		ROW_CHECK((name_server(str_of(names[i].name), &e) == 0) == names[i].good,
			  names[i].name);
		if (!names[i].good)
			continue;
		name_python(str_of(names[i].name), python);
		assert_string_equal(python, names[i].python);
	}
}

static void test_reserved(void **state)
{
	static const char words[] =
		"and arguments as assert async await break case catch class const continue "
		"debugger def default del delete do elif else enum eval except export extends "
		"false finally for from function global if implements import in instanceof "
		"interface is lambda let new nonlocal not null or package pass private "
		"protected public raise return static super switch this throw true try typeof "
		"undefined var void while with yield False None True NaN Infinity constructor "
		"prototype hasOwnProperty isPrototypeOf propertyIsEnumerable toLocaleString "
		"toString valueOf toJSON then require module exports globalThis Object Array "
		"Promise Result list dict str int float bool tuple";
	char copy[sizeof(words)];

	memcpy(copy, words, sizeof(words));
	for (char *rest = copy, *word; (word = strsep(&rest, " "));)
		ROW_CHECK(name_is_reserved(str_of(word)), word);
	assert_false(name_is_reserved(STR_LIT("weather")));
	assert_true(name_is_plain(STR_LIT("default")) && name_is_plain(STR_LIT("_x9")));
	assert_false(name_is_plain(STR_LIT("")) || name_is_plain(STR_LIT("9x")) ||
		     name_is_plain(STR_LIT("a-b")) || name_is_plain(STR_LIT("__proto__")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone),	cmocka_unit_test(test_collisions),
		cmocka_unit_test(test_long),	cmocka_unit_test(test_taken_suffix),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_many),
		cmocka_unit_test(test_servers), cmocka_unit_test(test_reserved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
