/* http/client/url.h: what a URL from outside means. */
#include "http/client/url.h"
#include "test.h"

static const struct {
	const char *base, *ref, *out; /* out NULL: refused */
} joins[] = {
	{ "http://h:1/sse", "/message?s=1", "http://h:1/message?s=1" },
	{ "http://h:1/a/sse", "message", "http://h:1/a/message" },
	{ "http://h:1/sse", "?s=1", "http://h:1/sse?s=1" },
	{ "http://h/sse", "http://h/m", "http://h/m" },
	{ "http://h/sse", "https://other/m", "https://other/m" },
	{ "http://h/sse", "//other/m", "http://other/m" },
	{ "http://h/sse", "ftp://h/m", NULL },
	{ "http://h/sse", "file:///etc/passwd", NULL },
	{ "http://h/sse", "javascript:alert(1)", NULL },
	{ "http://h/sse", "http://user:pw@h/m", NULL },
	{ "http://h/sse", "/m\r\nX: y", NULL },
	{ "http://h/sse", "/m m", NULL },
	{ "http://h/sse", "", NULL },
	{ "nonsense", "/m", NULL },
	{ "ftp://h/", "/m", NULL },
};

static void refs(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(joins); i++) {
		autofree char *got = NULL;
		struct err e;
		int rc = http_url_join(joins[i].base, str_of(joins[i].ref), &got, &e);

		ROW_CHECK((rc == 0) == (joins[i].out != NULL), joins[i].ref);
		ROW_CHECK(rc < 0 || strcmp(got, joins[i].out) == 0, joins[i].ref);
		ROW_CHECK(rc == 0 || e.code == ERR_INVALID, joins[i].ref);
	}
}

static const struct {
	const char *a, *b;
	bool same;
} pairs[] = {
	{ "http://h/a", "http://h/b?c", true },
	{ "http://H:80/", "HTTP://h", true },
	{ "https://h:443/", "https://h/", true },
	{ "http://h/", "https://h/", false },
	{ "http://h:1/", "http://h:2/", false },
	{ "http://h/", "http://h.example/", false },
	{ "http://h@other/", "http://h/", false },
	{ "http://127.0.0.1/", "http://localhost/", false },
	{ "ftp://h/", "ftp://h/", false },
	{ "", "", false },
};

static void origins(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		ROW_CHECK(http_url_same_origin(pairs[i].a, pairs[i].b) == pairs[i].same,
			  pairs[i].a);
		ROW_CHECK(http_url_same_origin(pairs[i].b, pairs[i].a) == pairs[i].same,
			  pairs[i].b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refs),
		cmocka_unit_test(origins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
