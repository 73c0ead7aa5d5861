/* http/message/head.h and http/message/sha1.h: what a stranger wrote, in tables. */
#include "http/message/head.h"
#include "http/message/sha1.h"
#include "test.h"

static void authorities(void **state)
{
	static const struct {
		const char *text, *host;
		int port;
	} rows[] = {
		{ "localhost", "localhost", -1 },
		{ "localhost:1", "localhost", 1 },
		{ "a-b.c1:65535", "a-b.c1", 65535 },
		{ "127.0.0.1:5757", "127.0.0.1", 5757 },
		{ "[::1]", "[::1]", -1 },
		{ "[fe80::1:2]:80", "[fe80::1:2]", 80 },
		{ "[::ffff:1.2.3.4]", "[::ffff:1.2.3.4]", -1 },
		{ "", NULL, 0 },
		{ ":80", NULL, 0 },
		{ "a:", NULL, 0 },
		{ "a:0", NULL, 0 },
		{ "a:01", NULL, 0 },
		{ "a:65536", NULL, 0 },
		{ "a:655350", NULL, 0 },
		{ "a:-1", NULL, 0 },
		{ "a:8a", NULL, 0 },
		{ "a:80:80", NULL, 0 },
		{ "a.", NULL, 0 },
		{ ".a", NULL, 0 },
		{ ".", NULL, 0 },
		{ "a..b", NULL, 0 },
		{ "-a", NULL, 0 },
		{ "a-", NULL, 0 },
		{ "a-.b", NULL, 0 },
		{ "a.-b", NULL, 0 },
		{ "a_b", NULL, 0 },
		{ "u@a", NULL, 0 },
		{ "a@b:80", NULL, 0 },
		{ "a/b", NULL, 0 },
		{ "a b", NULL, 0 },
		{ "a%41", NULL, 0 },
		{ "::1", NULL, 0 },
		{ "[]", NULL, 0 },
		{ "[:]", NULL, 0 },
		{ "[::1", NULL, 0 },
		{ "[::1]x", NULL, 0 },
		{ "[::1]:", NULL, 0 },
		{ "[::g]", NULL, 0 },
		{ "[::1%eth0]", NULL, 0 },
		{ "\xc3\xa4", NULL, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct http_authority a = { .port = -2 };
		bool ok = http_authority_parse(str_of(rows[i].text), &a);

		ROW_CHECK(ok == (rows[i].host != NULL), rows[i].text);
		ROW_CHECK(!ok || (str_is(a.host, rows[i].host) && a.port == rows[i].port),
			  rows[i].text);
	}
}

static void long_names(void **state)
{
	struct http_authority a;
	char name[300];

	memset(name, 'a', sizeof(name));
	assert_true(http_authority_parse((struct str){ name, 253 }, &a));
	assert_false(http_authority_parse((struct str){ name, 254 }, &a));
	assert_false(http_authority_parse((struct str){ "a\0b", 3 }, &a));
}

static void allow_lists(void **state)
{
	static const struct http_authority names[] = {
		{ STR_LIT("localhost"), -1 },
		{ STR_LIT("[::1]"), -1 },
		{ STR_LIT("box.example"), 8080 },
		{ STR_LIT("pages.example"), -1, .below = true },
	};
	static const struct {
		const char *text;
		bool in;
	} rows[] = {
		{ "localhost", true },
		{ "LOCALHOST:99", true },
		{ "[::1]:1", true },
		{ "box.example:8080", true },
		{ "Box.Example:8080", true },
		{ "box.example", false },
		{ "box.example:80", false },
		{ "a.pages.example", true },
		{ "A-1.Pages.Example:99", true },
		{ "pages.example", false },
		{ ".pages.example", false },
		{ "a.b.pages.example", false },
		{ "apages.example", false },
		{ "a.pages.example.evil", false },
		{ "localhost.", false },
		{ "local", false },
		{ "localhost.evil", false },
		{ "evil", false },
		{ "", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		ROW_CHECK(http_authority_in(str_of(rows[i].text), names, ARRAY_LEN(names)) ==
				  rows[i].in,
			  rows[i].text);
}

static void types(void **state)
{
	static const struct {
		const char *text;
		bool json;
	} rows[] = {
		{ "application/json", true },
		{ "APPLICATION/json ; charset=UTF-8", true },
		{ "application/json;charset=\"utf-8\"", true },
		{ "application/json;;", true },
		{ "application/json; charset=utf-8; charset=utf-16", false },
		{ "application/json; boundary=x", false },
		{ "application/json5", false },
		{ "application/ json", false },
		{ "text/plain", false },
		{ "", false },
		{ ";", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		ROW_CHECK(http_type_is_json(str_of(rows[i].text)) == rows[i].json, rows[i].text);
	assert_false(http_type_is_json(STR_NONE));
}

static void bearers(void **state)
{
	static const struct {
		const char *text, *token;
	} rows[] = {
		{ "Bearer abc", "abc" },
		{ "bEARER  a.b-c_d~e+f/g==  ", "a.b-c_d~e+f/g==" },
		{ "Bearer", NULL },
		{ "Bearer ", NULL },
		{ "Bearer   ", NULL },
		{ "Bearer a b", NULL },
		{ "Bearer a,b", NULL },
		{ "Bearer \"a\"", NULL },
		{ "Bearer\ta", NULL },
		{ "Basic abc", NULL },
		{ "", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct str token = http_bearer(str_of(rows[i].text));

		ROW_CHECK(rows[i].token ? str_is(token, rows[i].token) : !token.p, rows[i].text);
	}
	assert_null(http_bearer((struct str){ "Bearer a\0", 9 }).p);
}

static void paths(void **state)
{
	static const struct {
		const char *text;
		bool ok;
	} rows[] = {
		{ "/", true },		{ "/mcp", true },    { "/a/b/", true },
		{ "//", true },		{ "/a%20b", true },  { "/...", true },
		{ "/.a", true },	{ "/a.", true },     { "/a/..b", true },
		{ "/%2e%2e%2e", true }, { "/%c3%a4", true }, { "/a;b=c,d", true },
		{ "", false },		{ "mcp", false },    { "*", false },
		{ "/.", false },	{ "/..", false },    { "/./a", false },
		{ "/a/../b", false },	{ "/%2e", false },   { "/%2E./a", false },
		{ "/a%00", false },	{ "/a%0a", false },  { "/a%7f", false },
		{ "/a%5cb", false },	{ "/a\\b", false },  { "/a b", false },
		{ "/a\tb", false },	{ "/a#b", false },   { "/a%", false },
		{ "/a%2", false },	{ "/a%2g", false },  { "/\xc3\xa4", false },
		{ "/a\x7f", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		ROW_CHECK(http_path_ok(str_of(rows[i].text)) == rows[i].ok, rows[i].text);
	assert_false(http_path_ok((struct str){ "/a\0", 3 }));
}

static void patterns(void **state)
{
	static const struct {
		const char *pattern, *path, *rest, *id; /* rest NULL: it is not the route's */
	} rows[] = {
		{ "/mcp", "/mcp", "", NULL },
		{ "/mcp", "/mcp/", NULL, NULL },
		{ "/mcp", "/mc", NULL, NULL },
		{ "/mcp", "/mcpx", NULL, NULL },
		{ "/", "/", "", NULL },
		{ "/", "/a", NULL, NULL },
		{ "/files/", "/files/", "", NULL },
		{ "/files/", "/files/a/b", "a/b", NULL },
		{ "/files/", "/files", NULL, NULL },
		{ "/s/{id}", "/s/a-1", "", "a-1" },
		{ "/s/{id}", "/s/", NULL, NULL },
		{ "/s/{id}", "/s", NULL, NULL },
		{ "/s/{id}", "/s/a/", NULL, NULL },
		{ "/s/{id}", "/s//", NULL, NULL },
		{ "/s/{id}", "/s/{id}", "", "{id}" },
		{ "/s/{id}", "/s/a/b", NULL, NULL },
		{ "/s/{id}/fork", "/s/a/fork", "", "a" },
		{ "/s/{id}/fork", "/s/a/forks", NULL, NULL },
		{ "/s/{id}/fork", "/s//fork", NULL, NULL },
		{ "/s/{id}/fork", "/s/a%2ffork", NULL, NULL },
		{ "/s/{id}/f/", "/s/a/f/x", "x", "a" },
		{ "/s/{other}/{id}", "/s/a/b", "", "b" },
		{ "/s/{idx}", "/s/a", "", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct str path = str_of(rows[i].path), rest = STR_NONE, id;
		bool ok = http_path_is(rows[i].pattern, path, &rest);

		ROW_CHECK(ok == (rows[i].rest != NULL), rows[i].path);
		if (!ok)
			continue;
		ROW_CHECK(str_is(rest, rows[i].rest), rows[i].path);
		id = http_path_segment(rows[i].pattern, path, "id");
		ROW_CHECK(rows[i].id ? str_is(id, rows[i].id) : !id.p, rows[i].path);
	}
}

static void names_and_values(void **state)
{
	assert_true(http_name_ok(STR_LIT("X-a!#$%&'*+.^_`|~9")));
	assert_false(http_name_ok(STR_LIT("")));
	assert_false(http_name_ok(STR_LIT("a b")));
	assert_false(http_name_ok(STR_LIT("a:")));
	assert_false(http_name_ok(STR_LIT("a\0")));
	assert_false(http_name_ok(STR_LIT("\xc3\xa4")));
	assert_true(http_value_ok(STR_LIT("")));
	assert_true(http_value_ok(STR_LIT("a \t\xff")));
	assert_false(http_value_ok(STR_LIT("a\r\nb")));
	assert_false(http_value_ok(STR_LIT("a\0b")));
	assert_false(http_value_ok(STR_LIT("\x7f")));
}

static bool is_of_value(unsigned char c)
{
	return c == '\t' || (c >= 0x20 && c != 0x7f);
}

/* Every byte at every place of texts of all lengths, beside bytes that are good, however many it
 * looks at in one step. */
static void every_byte_of_a_value(void **state)
{
	char text[27];

	for (size_t n = 1; n <= sizeof(text); n++) {
		for (size_t at = 0; at < n; at++) {
			for (unsigned c = 0; c < 256; c++) {
				memset(text, n % 2 ? '\xff' : ' ', sizeof(text));
				text[at] = (char)c;
				if (at > 0)
					text[at - 1] = '\t';
				assert_int_equal(http_value_ok((struct str){ text, n }),
						 is_of_value((unsigned char)c));
			}
		}
	}
}

static bool is_of_name(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

static void every_byte_of_a_name(void **state)
{
	char text[27];

	for (size_t n = 1; n <= sizeof(text); n++) {
		for (size_t at = 0; at < n; at++) {
			for (unsigned c = 0; c < 256; c++) {
				memset(text, "-azAZ"[n % 5], sizeof(text));
				text[at] = (char)c;
				assert_int_equal(http_name_ok((struct str){ text, n }),
						 is_of_name((unsigned char)c));
			}
		}
	}
}

static void lengths(void **state)
{
	static const char *const wrong[] = { "",    "-1",  "+1",  "1 ",	 " 1",
					     "0x1", "1.0", "1e3", "1,1", "1000000000000000000" };
	unsigned long long n;

	assert_true(http_length_parse(STR_LIT("0"), &n) && n == 0);
	assert_true(http_length_parse(STR_LIT("007"), &n) && n == 7);
	assert_true(http_length_parse(STR_LIT("999999999999999999"), &n));
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		ROW_CHECK(!http_length_parse(str_of(wrong[i]), &n), wrong[i]);
}

static void queries(void **state)
{
	static const struct {
		const char *text, *value;
	} rows[] = {
		{ "", "" },
		{ "a+b", "a b" },
		{ "a%2Bb%20c", "a+b c" },
		{ "%e2%82%ac", "€" },
		{ "%F0%9f%98%80", "😀" },
		{ "%", NULL },
		{ "%1", NULL },
		{ "%g0", NULL },
		{ "%00", NULL },
		{ "%80", NULL },
		{ "%c0%80", NULL },
		{ "%ed%a0%80", NULL },
		{ "%e0%80%80", NULL },
		{ "%f4%90%80%80", NULL },
		{ "%e2%82", NULL },
		{ "%f5%80%80%80", NULL },
	};
	AUTO(arena_free) struct arena *a = arena_new(1 << 16);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct str value = http_query_decode(str_of(rows[i].text), a);

		ROW_CHECK(rows[i].value ? str_is(value, rows[i].value) && value.p : !value.p,
			  rows[i].text);
	}
}

static void lists(void **state)
{
	assert_true(http_list_has(STR_LIT("keep-alive, Upgrade"), "upgrade"));
	assert_true(http_list_has(STR_LIT("upgrade"), "upgrade"));
	assert_true(http_list_has(STR_LIT(" ,\tupgrade\t,"), "upgrade"));
	assert_false(http_list_has(STR_LIT("upgrades"), "upgrade"));
	assert_false(http_list_has(STR_LIT(""), "upgrade"));
	assert_false(http_list_has(STR_NONE, "upgrade"));
}

static void origins(void **state)
{
	assert_true(http_origin_is(STR_LIT("http://a:1"), "http", STR_LIT("a:1")));
	assert_false(http_origin_is(STR_LIT("https://a:1"), "http", STR_LIT("a:1")));
	assert_false(http_origin_is(STR_LIT("http://a:1/"), "http", STR_LIT("a:1")));
	assert_false(http_origin_is(STR_LIT("http://A:1"), "http", STR_LIT("a:1")));
	assert_false(http_origin_is(STR_LIT(""), "http", STR_LIT("")));
}

/* The vectors of RFC 3174, and the example of RFC 6455 section 1.3. */
static void hashes(void **state)
{
	static const struct {
		const char *text, *hex;
	} rows[] = {
		{ "", "da39a3ee5e6b4b0d3255bfef95601890afd80709" },
		{ "abc", "a9993e364706816aba3e25717850c26c9cd0d89d" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		  "84983e441c3bd26ebaae4aa1f95129e5e54670f1" },
		{ "dGhlIHNhbXBsZSBub25jZQ==258EAFA5-E914-47DA-95CA-C5AB0DC85B11",
		  "b37a4f2cc0624f1690f64606cf385945b2bec4ea" },
	};
	unsigned char hash[SHA1_BYTES];
	char hex[2 * SHA1_BYTES + 1];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		sha1(str_of(rows[i].text), hash);
		for (size_t j = 0; j < SHA1_BYTES; j++)
			sprintf(hex + 2 * j, "%02x", hash[j]);
		ROW_CHECK(strcmp(hex, rows[i].hex) == 0, rows[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(authorities),
		cmocka_unit_test(long_names),
		cmocka_unit_test(allow_lists),
		cmocka_unit_test(types),
		cmocka_unit_test(bearers),
		cmocka_unit_test(paths),
		cmocka_unit_test(names_and_values),
		cmocka_unit_test(lengths),
		cmocka_unit_test(queries),
		cmocka_unit_test(lists),
		cmocka_unit_test(origins),
		cmocka_unit_test(hashes),
		cmocka_unit_test(patterns),
		cmocka_unit_test(every_byte_of_a_value),
		cmocka_unit_test(every_byte_of_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
