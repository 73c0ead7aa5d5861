/* Uploads of E2B's clients: what is a form, and what is not. */
#include <stdlib.h>
#include <time.h>

#include "door/e2b/upload.h"
#include "test.h"

static void test_boundary(void **state)
{
	static const struct {
		const char *type, *boundary;
	} rows[] = {
		{ "multipart/form-data; boundary=x", "x" },
		{ "Multipart/Form-Data; charset=utf-8; Boundary=\"a b;c\"", "a b;c" },
		{ "multipart/form-data;boundary=x;a=b", "x" },
		{ "multipart/form-data; boundary=", NULL },
		{ "multipart/form-data; boundary=\"", NULL },
		{ "multipart/form-data; boundary=\"x", NULL },
		{ "multipart/form-data", NULL },
		{ "multipart/mixed; boundary=x", NULL },
		{ "", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct str b = upload_boundary(str_of(rows[i].type));

		ROW_CHECK(rows[i].boundary ? str_is(b, rows[i].boundary) : !b.p, rows[i].type);
	}
}

#define FIELDS "Content-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n"

static void test_parts(void **state)
{
	static const struct {
		const char *body;
		int n; /* parts; -1: it is refused */
		const char *first; /* bytes of the first */
	} rows[] = {
		{ "--b--", 0, NULL },
		{ "--b\r\n" FIELDS "one\r\n--b--", 1, "one" },
		{ "--b\r\n" FIELDS "\r\n--b--\r\nepilogue", 1, "" },
		{ "--b\r\n" FIELDS "one\r\n--b\r\n" FIELDS "two\r\n--b--", 2, "one" },
		{ "--b\r\n" FIELDS "--b in it\r\n-\r\n--b--", 1, "--b in it\r\n-" },
		{ "--b\r\n" FIELDS "\r\n--\r\n--b--", 1, "\r\n--" },
		{ "--b\r\nX: y\r\n\r\nnot a file\r\n--b--", 1, "not a file" },
		{ "", -1, NULL },
		{ "b", -1, NULL },
		{ "--b", -1, NULL },
		{ "--b\r\n", -1, NULL },
		{ "--bx\r\n" FIELDS "one\r\n--b--", 0, NULL },
		{ "preamble\r\n--b\r\n" FIELDS "one\r\n--b--", 1, "one" },
		{ "--b\r\nX: y\r\none\r\n--b--", -1, NULL },
		{ "--b\r\n" FIELDS "one\r\n--", -1, NULL },
		{ "--b\r\n" FIELDS "one\r\n--b\r\n", -1, NULL },
		{ "--bx\r\n--b\r\n" FIELDS "one\r\n--b--", 1, "one" },
		{ "--b\r\n" FIELDS "\r\n--bb\r\n--b--", 1, "\r\n--bb" },
		{ "--b\r\n--b--", -1, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct upload_parts p = { .body = str_of(rows[i].body), .boundary = STR_LIT("b") };
		struct upload_part part;
		struct arena a;
		int n = 0, rc;
		struct err e;

		arena_init(&a, 1 << 16);
		while ((rc = upload_next(&p, &part, &a, &e)) > 0) {
			ROW_CHECK(n > 0 || !rows[i].first || str_is(part.bytes, rows[i].first),
				  rows[i].body);
			n++;
		}
		ROW_CHECK(rows[i].n < 0 ? rc < 0 : rc == 0 && n == rows[i].n, rows[i].body);
		arena_fini(&a);
	}
}

/* A body that nearly has the boundary at each byte, and lines that nearly are it. */
static void test_bombs(void **state)
{
	enum { BYTES = 8 << 20, BOUNDARY = 200 };
	static char boundary[BOUNDARY];
	char *text = malloc(BYTES);
	struct arena a;

	assert_non_null(text);
	memset(boundary, 'a', sizeof(boundary));
	arena_init(&a, 1 << 16);
	for (int lines = 0; lines < 2; lines++) {
		struct upload_parts p = { .body = { text, BYTES },
					  .boundary = { boundary, sizeof(boundary) } };
		struct upload_part part;
		clock_t from = clock();
		struct err e;

		memset(text, 'a', BYTES);
		for (size_t i = 0; lines && i + 4 < BYTES; i += BOUNDARY + 4)
			memcpy(text + i, "\r\n--", 4);
		assert_int_equal(upload_next(&p, &part, &a, &e), -1);
		assert_int_equal(e.code, ERR_INVALID);
		assert_true(clock() - from < CLOCKS_PER_SEC);
	}
	arena_fini(&a);
	free(text);
}

static void test_names(void **state)
{
	struct upload_parts p = {
		.body = STR_LIT(
			"--b\r\ncontent-disposition: form-data; filename=\"/a%22;b\"\r\n\r\n"
			"\r\n--b--"),
		.boundary = STR_LIT("b"),
	};
	struct upload_part part;
	struct arena a;
	struct err e;

	arena_init(&a, 1 << 16);
	assert_int_equal(upload_next(&p, &part, &a, &e), 1);
	assert_true(str_is(part.filename, "/a\";b"));
	arena_fini(&a);
}

static void test_gzip(void **state)
{
	static const char packed[] = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\x48\xcd\xc9\xc9"
				     "\x07\x00\x86\xa6\x10\x36\x05\x00\x00\x00";
	const struct str whole = { packed, sizeof(packed) - 1 };
	autobuf struct buf b = BUF_INIT(5), small = BUF_INIT(4);
	struct err e;

	assert_int_equal(upload_gunzip(whole, &b, &e), 0);
	assert_true(str_is(buf_str(&b), "hello"));
	assert_int_equal(upload_gunzip(whole, &small, &e), -1);
	assert_int_equal(e.code, ERR_TOO_LARGE);
	for (size_t n = 0; n < whole.n; n++) {
		b.n = 0;
		assert_int_equal(upload_gunzip((struct str){ packed, n }, &b, &e), -1);
		assert_int_equal(e.code, ERR_INVALID);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_boundary), cmocka_unit_test(test_parts),
		cmocka_unit_test(test_bombs),	 cmocka_unit_test(test_names),
		cmocka_unit_test(test_gzip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
