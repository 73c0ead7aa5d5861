/* http/client/answer.h: what a hostile server can say, in tables, and chunks cut anywhere. */
#include "http/client/answer.h"
#include "test.h"

#define OK "HTTP/1.1 200 OK\r\n"

static void heads(void **state)
{
	static const struct {
		const char *text;
		int status; /* 0: it is none */
		size_t n;
		long long length; /* -1: none */
		bool chunked;
	} rows[] = {
		{ OK "\r\n", 200, 0, -1, false },
		{ "HTTP/1.0 404\r\n\r\n", 404, 0, -1, false },
		{ "HTTP/1.1 599 \r\nA:b\r\n\r\n", 599, 1, -1, false },
		{ OK "Content-Length: 0\r\n\r\n", 200, 1, 0, false },
		{ OK "content-length:\t17 \r\nA: \r\n\r\n", 200, 2, 17, false },
		{ OK "Transfer-Encoding: Chunked\r\n\r\n", 200, 1, -1, true },
		{ "", 0 },
		{ "\r\n\r\n", 0 },
		{ "HTTP/1.1 200 OK\n\n", 0 },
		{ "HTTP/1.2 200 OK\r\n\r\n", 0 },
		{ "HTTP/1.1  200 OK\r\n\r\n", 0 },
		{ "HTTP/1.1 099 X\r\n\r\n", 0 },
		{ "HTTP/1.1 600 X\r\n\r\n", 0 },
		{ "HTTP/1.1 20 X\r\n\r\n", 0 },
		{ "HTTP/1.1 2000\r\n\r\n", 0 },
		{ "HTTP/1.1 200 \x01\r\n\r\n", 0 },
		{ OK, 0 },
		{ OK "A: b\r\n", 0 },
		{ OK "A\r\n\r\n", 0 },
		{ OK ": b\r\n\r\n", 0 },
		{ OK "A : b\r\n\r\n", 0 },
		{ OK " A: b\r\n\r\n", 0 },
		{ OK "A: b\r\n c\r\n\r\n", 0 },
		{ OK "A: b\rc\r\n\r\n", 0 },
		{ OK "A: b\nc: d\r\n\r\n", 0 },
		{ OK "A: \x7f\r\n\r\n", 0 },
		{ OK "\r\nA: b\r\n\r\n", 0 },
		{ OK "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 0 },
		{ OK "Content-Length: +1\r\n\r\n", 0 },
		{ OK "Content-Length: 1, 1\r\n\r\n", 0 },
		{ OK "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 0 },
		{ OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 0 },
		{ OK "Transfer-Encoding: gzip\r\n\r\n", 0 },
		{ OK "Transfer-Encoding: \r\n\r\n", 0 },
		{ "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 0 },
	};
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct http_answer a;
		int rc = http_answer_parse(str_of(rows[i].text), &a, &e);

		if ((rc == 0) != (rows[i].status != 0))
			fail_msg("%s", rows[i].text);
		if (rc < 0) {
			assert_int_equal(e.code, ERR_PORT);
			continue;
		}
		assert_int_equal(a.status, rows[i].status);
		assert_int_equal(a.n_fields, rows[i].n);
		assert_int_equal(a.has_length ? (long long)a.length : -1, rows[i].length);
		assert_int_equal(a.chunked, rows[i].chunked);
	}
}

/* In pieces of `step` bytes: what came of it, or NULL. */
static const char *unchunk(const char *text, size_t step)
{
	static char data[256];
	struct http_chunks c = { 0 };
	size_t n = 0, all = strlen(text);
	struct str piece;
	struct err e;

	for (size_t at = 0; at < all; at += step) {
		struct str in = { text + at, all - at < step ? all - at : step };
		int rc = 1;

		while (rc > 0 && in.n > 0) {
			rc = http_chunks_next(&c, &in, &piece, &e);
			if (rc < 0)
				return NULL;
			memcpy(data + n, piece.p, piece.n);
			n += piece.n;
		}
		if (rc == 0) {
			data[n] = '\0';
			return data;
		}
	}
	return NULL;
}

static void chunks(void **state)
{
	static const struct {
		const char *text, *data; /* NULL: it has no end, or is none */
	} rows[] = {
		{ "0\r\n\r\n", "" },
		{ "2\r\nab\r\n0\r\n\r\n", "ab" },
		{ "02;x=\"y\"\r\nab\r\nA \r\n0123456789\r\n0\r\nA: b\r\nC: d\r\n\r\n",
		  "ab0123456789" },
		{ "2\r\nab\r\n", NULL },
		{ "2\r\nabc\r\n0\r\n\r\n", NULL },
		{ "2\nab\r\n0\r\n\r\n", NULL },
		{ "2\r\nab\n0\r\n\r\n", NULL },
		{ "\r\n\r\n", NULL },
		{ ";x\r\n\r\n", NULL },
		{ "-2\r\nab\r\n0\r\n\r\n", NULL },
		{ "0x2\r\nab\r\n0\r\n\r\n", NULL },
		{ "g\r\n", NULL },
		{ "1111111111111111\r\n", NULL },
		{ "2;\n\r\nab\r\n0\r\n\r\n", NULL },
		{ "0\r\nA: b\n\r\n", NULL },
		{ "0\r\n\rx", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (size_t step = 1; step < 64; step++) {
			const char *data = unchunk(rows[i].text, step);

			if (!data != !rows[i].data || (data && strcmp(data, rows[i].data) != 0))
				fail_msg("%s, by %zu", rows[i].text, step);
		}
	}
}

/* What has no end is not kept, and not waited for for ever. */
static void extras(void **state)
{
	struct http_chunks c = { 0 };
	struct str piece;
	struct err e;
	int rc = 1;

	for (int i = 0; rc > 0 && i < 10; i++) {
		char text[1024];
		struct str in = { text, sizeof(text) };

		memset(text, i ? 'x' : '1', sizeof(text));
		if (i == 0) {
			text[0] = '0';
			text[1] = ';';
		}
		rc = http_chunks_next(&c, &in, &piece, &e);
	}
	assert_int_equal(rc, -1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads),
		cmocka_unit_test(chunks),
		cmocka_unit_test(extras),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
