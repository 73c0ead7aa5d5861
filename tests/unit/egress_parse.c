/* net/egress: the parsers of what strangers say, in pieces cut anywhere. */
#include "net/egress/answer.h"
#include "net/egress/dns.h"
#include "net/egress/form.h"
#include "net/egress/hello.h"
#include "net/egress/request.h"
#include "net/egress/sniff.h"
#include "net/egress/socks.h"
#include "net/egress/swap.h"
#include "test.h"

/* ---- TLS ------------------------------------------------------------------------------------- */

struct bytes {
	unsigned char p[4096];
	size_t n;
};

static void put(struct bytes *b, const void *p, size_t n)
{
	assert_true(b->n + n <= sizeof(b->p));
	memcpy(b->p + b->n, p, n);
	b->n += n;
}

static void put16(struct bytes *b, size_t value)
{
	const unsigned char two[] = { (unsigned char)(value >> 8), (unsigned char)value };

	put(b, two, 2);
}

static struct str str_in(const struct bytes *b)
{
	return (struct str){ (const char *)b->p, b->n };
}

static void put_extension(struct bytes *b, unsigned type, const void *p, size_t n)
{
	put16(b, type);
	put16(b, n);
	put(b, p, n);
}

static void put_name(struct bytes *b, const char *name)
{
	struct bytes ext = { .n = 0 };

	put16(&ext, strlen(name) + 3);
	put(&ext, "\0", 1);
	put16(&ext, strlen(name));
	put(&ext, name, strlen(name));
	put_extension(b, 0, ext.p, ext.n);
}

/* A ClientHello with these extensions, in records of at most `size` bytes. */
static struct bytes hello_of(const struct bytes *extensions, size_t size)
{
	struct bytes body = { .n = 0 }, out = { .n = 0 };

	put(&body, "\1\0\0\0\3\3", 6);
	put(&body, "0123456789abcdef0123456789abcdef", 32);
	put(&body, "\0\0\2\x13\1\1\0", 7);
	put16(&body, extensions->n);
	put(&body, extensions->p, extensions->n);
	body.p[2] = (unsigned char)((body.n - 4) >> 8);
	body.p[3] = (unsigned char)(body.n - 4);
	for (size_t at = 0; at < body.n; at += size) {
		size_t n = body.n - at < size ? body.n - at : size;

		put(&out, "\x16\3\1", 3);
		put16(&out, n);
		put(&out, body.p + at, n);
	}
	return out;
}

static struct bytes hello_named(const char *name, size_t size)
{
	struct bytes ext = { .n = 0 };

	put_extension(&ext, 43, "\2\3\4", 3);
	put_name(&ext, name);
	return hello_of(&ext, size);
}

static void test_hello_pieces(void **state)
{
	static const size_t sizes[] = { 16384, 100, 30, 11 };

	for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
		struct bytes b = hello_named("Web.Example", sizes[k]);
		struct hello h;

		for (size_t n = 0; n < b.n; n++)
			assert_int_equal(hello_read((struct str){ (char *)b.p, n }, &h),
					 HELLO_MORE);
		put(&b, "\x14\3\3\0\1\1", 6); /* what follows is not its business */
		assert_int_equal(hello_read(str_in(&b), &h), HELLO_DONE);
		assert_int_equal(h.n, b.n - 6);
		assert_true(h.has_name && !h.ech);
		assert_string_equal(h.name, "web.example");
	}
}

static void test_hello_bad(void **state)
{
	static const char *const names[] = { "web.example.",	  "",
					     "1.2.3.4",		  "a b",
					     "b\xc3\xbc.example", "web.example\1" };
	struct bytes ext = { .n = 0 }, b;
	struct hello h;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		b = hello_named(names[i], 16384);
		ROW_CHECK(hello_read(str_in(&b), &h) == HELLO_BAD, names[i]);
	}
	/* a NUL in the name */
	put_extension(&ext, 0, "\0\x06\0\0\3a\0b", 8);
	b = hello_of(&ext, 16384);
	assert_int_equal(hello_read(str_in(&b), &h), HELLO_BAD);
	/* twice */
	ext.n = 0;
	put_name(&ext, "web.example");
	put_name(&ext, "other.example");
	b = hello_of(&ext, 16384);
	assert_int_equal(hello_read(str_in(&b), &h), HELLO_BAD);
	/* two in a list, and one of another type */
	ext.n = 0;
	put_extension(&ext, 0, "\0\x0c\0\0\3a.b\0\0\3c.d", 14);
	b = hello_of(&ext, 16384);
	assert_int_equal(hello_read(str_in(&b), &h), HELLO_BAD);
	ext.n = 0;
	put_extension(&ext, 0, "\0\6\1\0\3a.b", 8);
	b = hello_of(&ext, 16384);
	assert_int_equal(hello_read(str_in(&b), &h), HELLO_BAD);
	/* more in the record than the message */
	b = hello_named("web.example", 16384);
	put(&b, "x", 1);
	b.p[4]++;
	assert_int_equal(hello_read(str_in(&b), &h), HELLO_BAD);
	/* each length is one too small or too large */
	for (size_t i = 0; i < 60; i++) {
		b = hello_named("web.example", 16384);
		for (int by = -1; by <= 1; by += 2) {
			struct bytes changed = b;

			changed.p[i] = (unsigned char)(changed.p[i] + by);
			if (hello_read(str_in(&changed), &h) == HELLO_DONE && h.has_name)
				assert_string_equal(h.name, "web.example");
		}
	}
	/* in too many records */
	b = hello_named("a-name-that-needs-more-than-sixteen.example", 5);
	assert_int_equal(hello_read(str_in(&b), &h), HELLO_BAD);
}

static void test_hello_without_a_name(void **state)
{
	struct bytes ext = { .n = 0 }, b = hello_of(&ext, 16384);
	struct hello h;

	assert_int_equal(hello_read(str_in(&b), &h), HELLO_DONE);
	assert_false(h.has_name || h.ech);
	put_name(&ext, "web.example");
	put_extension(&ext, 0xfe0d, "\0", 1);
	b = hello_of(&ext, 16384);
	assert_int_equal(hello_read(str_in(&b), &h), HELLO_DONE);
	assert_true(h.has_name && h.ech);
	ext.n = 0;
	put_extension(&ext, 0xffce, "\0", 1);
	b = hello_of(&ext, 16384);
	assert_int_equal(hello_read(str_in(&b), &h), HELLO_DONE);
	assert_true(h.ech);
}

static void test_hello_again(void **state)
{
	struct bytes b = { .n = 0 }, second = hello_named("other.example", 16384);
	struct hello h;
	bool any;

	put(&b, "\x14\3\3\0\1\1", 6);
	put(&b, "\x17\3\3\0\3abc", 8); /* early data that the server has refused */
	put(&b, second.p, second.n);
	for (size_t n = 0; n < b.n; n++)
		assert_int_equal(hello_read_second((struct str){ (char *)b.p, n }, &h, &any),
				 HELLO_MORE);
	assert_int_equal(hello_read_second(str_in(&b), &h, &any), HELLO_DONE);
	assert_true(any);
	assert_string_equal(h.name, "other.example");
	assert_int_equal(h.n, b.n);
	assert_int_equal(hello_read_second(STR_LIT("\x15\3\3\0\2\2\x28"), &h, &any), HELLO_DONE);
	assert_false(any);
	assert_int_equal(hello_read_second(STR_LIT("\x18\3\3\0\2\2\x28"), &h, &any), HELLO_BAD);
	assert_int_equal(hello_read_second(STR_LIT("GET / HTTP/1.1"), &h, &any), HELLO_BAD);
}

static void test_hello_of_the_server(void **state)
{
	static const char retry[] =
		"\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91"
		"\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c";
	struct bytes b = { .n = 0 };
	bool again;

	put(&b, "\x16\3\3\0\x2a\2\0\0\x26\3\3", 11);
	put(&b, retry, 32);
	for (size_t n = 0; n < b.n; n++)
		assert_int_equal(hello_read_server((struct str){ (char *)b.p, n }, &again),
				 HELLO_MORE);
	assert_int_equal(hello_read_server(str_in(&b), &again), HELLO_DONE);
	assert_true(again);
	b.p[20]++;
	assert_int_equal(hello_read_server(str_in(&b), &again), HELLO_DONE);
	assert_false(again);
	b.p[4] = 10; /* too short to tell */
	assert_int_equal(hello_read_server(str_in(&b), &again), HELLO_BAD);
	assert_int_equal(hello_read_server(STR_LIT("\x15\3\3"), &again), HELLO_DONE);
	assert_int_equal(hello_read_server(STR_LIT("220 hi"), &again), HELLO_DONE);
}

/* ---- the first bytes ------------------------------------------------------------------------- */

static void test_sniff(void **state)
{
	static const struct {
		struct str bytes;
		enum sniff what;
	} rows[] = {
		{ STR_LIT(""), SNIFF_MORE },
		{ STR_LIT("\x16"), SNIFF_TLS },
		{ STR_LIT("G"), SNIFF_MORE },
		{ STR_LIT("GET / HTTP/1.1\r\n"), SNIFF_HTTP },
		{ STR_LIT("get / http/1.1\n"), SNIFF_HTTP },
		{ STR_LIT("\r\n\r\n GET / HTTP/1.1\r\n"), SNIFF_HTTP },
		{ STR_LIT("\r\n"), SNIFF_MORE },
		{ STR_LIT("GET / HTTP/1.1"), SNIFF_MORE },
		{ STR_LIT("GET /\1 HTTP/1.1\r\n"), SNIFF_HTTP },
		{ STR_LIT("PRI * HTTP/2.0\r\n"), SNIFF_HTTP },
		{ STR_LIT("FOO\tBAR\tHTTP/9\r\n"), SNIFF_HTTP },
		{ STR_LIT("SSH-2.0-OpenSSH\r\n"), SNIFF_RAW },
		{ STR_LIT("EHLO me\r\n"), SNIFF_RAW },
		{ STR_LIT("*1\r\n"), SNIFF_RAW },
		{ STR_LIT("\0\0\0\x08"), SNIFF_RAW },
		{ STR_LIT("AMQP\0\0\x09\1"), SNIFF_RAW },
		{ STR_LIT("\x80"), SNIFF_MORE },
	};
	static char line[9000];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (sniff(rows[i].bytes) != rows[i].what)
			fail_msg("row %zu: %d", i, sniff(rows[i].bytes));
	}
	memset(line, 'a', sizeof(line));
	assert_int_equal(sniff((struct str){ line, 8000 }), SNIFF_MORE);
	assert_int_equal(sniff((struct str){ line, sizeof(line) }), SNIFF_HTTP);
}

/* ---- HTTP ------------------------------------------------------------------------------------ */

static enum request_state read_request(const char *text, size_t n, struct request *r,
				       const char **why)
{
	size_t scanned = 0;

	*why = NULL;
	return request_read((struct str){ text, n }, &scanned, r, why);
}

static void test_requests(void **state)
{
	static const struct {
		const char *text;
		enum request_form form;
		const char *target, *path, *host;
		uint16_t port;
		int body; /* its kind */
		bool websocket;
	} rows[] = {
		{ "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", REQUEST_ORIGIN, "/", "/",
		  "a.example" },
		{ "GET /p?q HTTP/1.0\r\nhost:a.example:81\r\n\r\n", REQUEST_ORIGIN, "/p?q", "/p",
		  "a.example", 81 },
		{ "OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n", REQUEST_ORIGIN, "*", "*",
		  "a.example" },
		{ "GET http://a.example HTTP/1.1\r\nHost: A.example\r\n\r\n", REQUEST_ABSOLUTE, "/",
		  "/", "a.example" },
		{ "GET http://a.example:80/x HTTP/1.1\r\nHost: a.example\r\n\r\n", REQUEST_ABSOLUTE,
		  "/x", "/x", "a.example", 80 },
		{ "CONNECT a.example:443 HTTP/1.1\r\n\r\n", REQUEST_CONNECT, "a.example:443", "",
		  "a.example", 443 },
		{ "CONNECT [::1]:443 HTTP/1.1\r\n\r\n", REQUEST_CONNECT, "[::1]:443", "", "[::1]",
		  443 },
		{ "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\r\n", REQUEST_ORIGIN,
		  "/", "/", "a.example", 0, BODY_LENGTH },
		{ "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\n\r\n", REQUEST_ORIGIN,
		  "/", "/", "a.example", 0, BODY_NONE },
		{ "POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\nHost: a.example\r\n\r\n",
		  REQUEST_ORIGIN, "/", "/", "a.example", 0, BODY_CHUNKED },
		{ "GET / HTTP/1.1\r\nHost: a.example\r\nUpgrade: WebSocket\r\n\r\n", REQUEST_ORIGIN,
		  "/", "/", "a.example", 0, BODY_NONE, true },
		{ "GET / HTTP/1.1\r\nHost: a.example\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n\r\n",
		  REQUEST_ORIGIN, "/", "/", "a.example" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t n = strlen(rows[i].text), scanned = 0;
		struct request r;
		const char *why;

		/* it grows byte by byte, and is the same as all at once */
		for (size_t k = 0; k < n; k++)
			ROW_CHECK(request_read((struct str){ rows[i].text, k }, &scanned, &r,
					       &why) == REQUEST_MORE,
				  rows[i].text);
		ROW_CHECK(request_read((struct str){ rows[i].text, n }, &scanned, &r, &why) ==
				  REQUEST_DONE,
			  rows[i].text);
		ROW_CHECK(read_request(rows[i].text, n, &r, &why) == REQUEST_DONE, rows[i].text);
		ROW_CHECK(r.n == n && r.form == rows[i].form, rows[i].text);
		ROW_CHECK(str_is(r.target, rows[i].target), rows[i].text);
		ROW_CHECK(r.form == REQUEST_CONNECT || str_is(r.path, rows[i].path), rows[i].text);
		ROW_CHECK(str_is(r.host, rows[i].host), rows[i].text);
		ROW_CHECK(r.port == rows[i].port && (int)r.body.kind == rows[i].body, rows[i].text);
		ROW_CHECK(r.websocket == rows[i].websocket, rows[i].text);
	}
}

static void test_bad_requests(void **state)
{
	static const char *const rows[] = {
		"\r\n",
		"\n",
		"GET / HTTP/1.1\n",
		"GET / HTTP/1.1\r\nHost: a\n",
		"GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
		" GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.2\r\nHost: a\r\n\r\n",
		"GET / HTTP/11\r\nHost: a\r\n\r\n",
		"GET / http/1.1\r\nHost: a\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\n",
		"G(T / HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET a HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET * HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /# HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /\x80 HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n",
		"GET http://a:81/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET http://a?x HTTP/1.1\r\nHost: a\r\n\r\n",
		"CONNECT a HTTP/1.1\r\n\r\n",
		"CONNECT a:99999 HTTP/1.1\r\n\r\n",
		"CONNECT a:1:2 HTTP/1.1\r\n\r\n",
		"CONNECT a:1 HTTP/1.1\r\nContent-Length: 3\r\n\r\n",
		"GET / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost:\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a,b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a:\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: [a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n\tb: c\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nX: \x7f\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: \r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1 1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999999999999999\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nContent_Length: 1\r\n\r\n",
		("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
		 "Transfer-Encoding: chunked\r\n\r\n"),
		"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked,\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n",
		"GET / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nConnection: x, content-length\r\n\r\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct request r;
		const char *why;

		ROW_CHECK(read_request(rows[i], strlen(rows[i]), &r, &why) == REQUEST_BAD, rows[i]);
		ROW_CHECK(why && why[0], rows[i]);
	}
}

static void test_requests_are_written_anew(void **state)
{
	static const char text[] = "GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\n"
				   "Proxy-Connection: keep-alive\r\nProxy-Authorization: x\r\n"
				   "Connection: Upgrade\r\nUpgrade: websocket\r\nX: y\r\n\r\n";
	static const struct {
		bool upgrade, close;
		const char *out;
	} rows[] = {
		{ true, false,
		  "GET /x HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\n"
		  "Upgrade: websocket\r\nX: y\r\n\r\n" },
		{ false, false,
		  "GET /x HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nX: y\r\n\r\n" },
		{ false, true,
		  "GET /x HTTP/1.1\r\nHost: a.example\r\nX: y\r\nConnection: close\r\n\r\n" },
	};
	struct request r;
	const char *why;
	struct err e;

	assert_int_equal(read_request(text, sizeof(text) - 1, &r, &why), REQUEST_DONE);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		autobuf struct buf out = BUF_INIT(1000);

		assert_int_equal(request_write(&r, rows[i].upgrade, rows[i].close, NULL, &out, &e),
				 0);
		assert_string_equal(out.p, rows[i].out);
	}
}

static void test_requests_get_secrets(void **state)
{
	/* "user:MARK" and "user:value" */
	static const char text[] =
		"POST /MARK?q=MARK HTTP/1.1\r\nHost: MARK.example\r\nContent-Length: 4\r\n"
		"Authorization: Bearer MARK\r\nX-MARK:  aMARKb \r\n"
		"Range: bytes=0-1\r\nTE: trailers\r\n"
		"Accept-Encoding: gzip\r\nauthorization: basic dXNlcjpNQVJL\r\n"
		"Authorization: Basic MARK-is-no-base64\r\n\r\n";
	static const char right[] =
		"POST /MARK?q=MARK HTTP/1.1\r\nHost: MARK.example\r\nContent-Length: 4\r\n"
		"Authorization: Bearer value\r\nX-MARK: avalueb\r\n"
		"authorization: basic dXNlcjp2YWx1ZQ==\r\n"
		"Authorization: Basic value-is-no-base64\r\n"
		"Accept-Encoding: identity\r\n\r\n";
	struct swap of[] = { { .from = STR_LIT("MARK"), .to = STR_LIT("value") } };
	autobuf struct buf out = BUF_INIT(1000);
	struct swaps all;
	struct request r;
	const char *why;
	struct err e;

	swaps_init(&all, of, 1);
	assert_int_equal(read_request(text, sizeof(text) - 1, &r, &why), REQUEST_DONE);
	assert_int_equal(request_write(&r, false, false, &all, &out, &e), 0);
	assert_string_equal(out.p, right);
	assert_int_equal(of[0].hits, 4);
}

static void test_swaps(void **state)
{
	static const struct {
		const char *text, *out;
		size_t waits; /* bytes, where it is not the end */
	} rows[] = {
		{ "", "", 0 },
		{ "nothing", "nothing", 0 },
		{ "abcd", "1", 4 }, /* abcdef may follow */
		{ "abcdef", "2", 0 },
		{ "abcdxabcd-", "1x1-", 0 },
		{ "ababcd.", "ab1.", 0 },
		{ "zzabc", "zzabc", 3 },
		{ "zza", "zza", 1 },
		{ "bcbcd", "bc3", 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct swap of[] = { { .from = STR_LIT("abcd"), .to = STR_LIT("1") },
				     { .from = STR_LIT("abcdef"), .to = STR_LIT("2") },
				     { .from = STR_LIT("bcd"), .to = STR_LIT("3") } };
		autobuf struct buf out = BUF_INIT(100), begun = BUF_INIT(100);
		struct str text = str_of(rows[i].text);
		struct swaps all;
		struct err e;

		swaps_init(&all, of, ARRAY_LEN(of));
		ROW_CHECK(swaps_run(&all, text, true, &out, &e) == (ssize_t)text.n, rows[i].text);
		ROW_CHECK(str_is(buf_str(&out), rows[i].out), rows[i].text);
		ROW_CHECK(swaps_run(&all, text, false, &begun, &e) ==
				  (ssize_t)(text.n - rows[i].waits),
			  rows[i].text);
	}
}

static void test_forms(void **state)
{
	static const char *const rows[FORMS_MAX] = {
		"a\"/<\\é=+",
		"a\\\"/<\\\\é=+",
		"a\\\"\\/<\\\\é=+",
		"a\\\"/\\u003c\\\\é=+",
		"a\\\"\\/\\u003c\\\\é=+",
		"a%22%2F%3C%5C%C3%A9%3D%2B",
		"a%22%2f%3c%5c%c3%a9%3d%2b",
		"a%22%2F%3C%5C%C3%A9%3D%2B",
		/* of "a…", "?a…" and "??a…": without what other bytes have a part in */
		"YSIvPFzDqT0r",
		"EiLzxcw6k9K",
		"hIi88XMOpPS",
		"YSIvPFzDqT0r",
		"EiLzxcw6k9K",
		"hIi88XMOpPS",
	};

	for (size_t i = 0; i < FORMS_MAX; i++) {
		autobuf struct buf out = BUF_INIT(100);
		struct err e;

		assert_int_equal(form_add(&out, str_of(rows[0]), i, &e), 0);
		assert_string_equal(out.p, rows[i]);
	}
}

static void test_answers_of_bound_hosts(void **state)
{
	static const struct {
		const char *text;
		enum request_state state;
		int status;
		int kind;
		bool bodiless, until_end, last, coded;
	} rows[] = {
		{ "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", REQUEST_DONE, 200, BODY_LENGTH },
		{ "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", REQUEST_DONE, 200, BODY_NONE },
		{ "HTTP/1.1 200 \r\nTransfer-Encoding: Chunked\r\n\r\n", REQUEST_DONE, 200,
		  BODY_CHUNKED },
		{ "HTTP/1.1 200 OK\r\n\r\n", REQUEST_DONE, 200, BODY_NONE, false, true, true },
		{ "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\n", REQUEST_DONE, 200, BODY_LENGTH,
		  .last = true },
		{ "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\n",
		  REQUEST_DONE, 200, BODY_LENGTH },
		{ "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 3\r\n\r\n",
		  REQUEST_DONE, 200, BODY_LENGTH, .last = true },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", REQUEST_DONE, 200, BODY_NONE,
		  .bodiless = true },
		{ "HTTP/1.1 304 x\r\nContent-Length: 3\r\n\r\n", REQUEST_DONE, 304, BODY_NONE },
		{ "HTTP/1.1 204 x\r\n\r\n", REQUEST_DONE, 204, BODY_NONE },
		{ "HTTP/1.1 100 Continue\r\n\r\n", REQUEST_DONE, 100, BODY_NONE },
		{ "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 3\r\n\r\n",
		  REQUEST_DONE, 200, BODY_LENGTH, .coded = true },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n", REQUEST_MORE },
		{ "", REQUEST_MORE },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n",
		  REQUEST_BAD },
		{ "HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\n", REQUEST_BAD },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
		  REQUEST_BAD },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", REQUEST_BAD },
		{ "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", REQUEST_BAD },
		{ "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n", REQUEST_BAD },
		{ "HTTP/1.1 200 OK\nX: a\n\n", REQUEST_BAD },
		{ "HTTP/2 200\r\n\r\n", REQUEST_BAD },
		{ "HTTP/1.1 20 OK\r\n\r\n", REQUEST_BAD },
		{ "HTTP/1.1 099 OK\r\n\r\n", REQUEST_BAD },
		{ "HTTP/1.1 2000 OK\r\n\r\n", REQUEST_BAD },
		{ "220 hello\r\n\r\n", REQUEST_BAD },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct answer a = { .n = 0 };
		size_t scanned = 0;
		const char *why;

		ROW_CHECK(answer_read(str_of(rows[i].text), &scanned, rows[i].bodiless, &a, &why) ==
				  rows[i].state,
			  rows[i].text);
		ROW_CHECK(a.status == rows[i].status && (int)a.body.kind == rows[i].kind &&
				  a.until_end == rows[i].until_end && a.last == rows[i].last &&
				  a.coded == rows[i].coded,
			  rows[i].text);
	}
}

static void test_answers_are_written_anew(void **state)
{
	static const char text[] = "HTTP/1.1 200 value\r\nX: avalueb\r\nContent-Length: 9\r\n"
				   "Connection: close\r\nAlt-Svc: h3\r\nTrailer: x\r\n\r\n";
	static const struct {
		enum answer_frame frame;
		bool close;
		const char *out;
	} rows[] = {
		{ ANSWER_NO_BODY, false, "HTTP/1.1 200 M\r\nX: aMb\r\nContent-Length: 9\r\n\r\n" },
		{ ANSWER_LENGTH, false, "HTTP/1.1 200 M\r\nX: aMb\r\nContent-Length: 7\r\n\r\n" },
		{ ANSWER_CHUNKED, true,
		  "HTTP/1.1 200 M\r\nX: aMb\r\nTransfer-Encoding: chunked\r\n"
		  "Connection: close\r\n\r\n" },
		{ ANSWER_UNTIL_END, true, "HTTP/1.1 200 M\r\nX: aMb\r\nConnection: close\r\n\r\n" },
	};
	struct swap of[] = { { .from = STR_LIT("value"), .to = STR_LIT("M") } };
	struct swaps all;
	struct answer a;
	size_t scanned = 0;
	const char *why;
	struct err e;

	swaps_init(&all, of, 1);
	assert_int_equal(answer_read(str_of(text), &scanned, false, &a, &why), REQUEST_DONE);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		autobuf struct buf out = BUF_INIT(1000);

		assert_int_equal(answer_write(&a, &all, rows[i].frame, 7, rows[i].close, &out, &e),
				 0);
		assert_string_equal(out.p, rows[i].out);
	}
}

static void test_bodies(void **state)
{
	static const struct {
		const char *text;
		ssize_t n; /* -1: it is bad */
		bool end;
	} rows[] = {
		{ "5\r\nhello\r\n0\r\n\r\nGET", 15, true },
		{ "A\r\n0123456789\r\n00\r\n\r\n", 21, true },
		{ "5\r\nhel", 6, false },
		{ "0\r\n\r\n", 5, true },
		{ "", 0, false },
		{ "\r\n", -1 },
		{ "g\r\n", -1 },
		{ "5;a\r\n", -1 },
		{ "5 \r\n", -1 },
		{ "5\n", -1 },
		{ "-1\r\n", -1 },
		{ "5\r\nhelloX", -1 },
		{ "5\r\nhello\r\r", -1 },
		{ "0\r\nX: y\r\n\r\n", -1 },
		{ "11111111111111111\r\n", -1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t length = strlen(rows[i].text);

		for (size_t step = 1; step <= length + 1; step++) {
			struct body b = { .kind = BODY_CHUNKED };
			ssize_t n = 0, took = 0;
			bool end = false;

			for (size_t at = 0; at < length && !end && n >= 0; at += step) {
				size_t m = length - at < step ? length - at : step;

				n = body_take(&b, (struct str){ rows[i].text + at, m }, &end);
				took = n < 0 ? -1 : took + n;
			}
			ROW_CHECK(took == rows[i].n && end == rows[i].end, rows[i].text);
		}
	}
}

static void test_answers(void **state)
{
	static const struct {
		const char *text;
		int status;
	} rows[] = {
		{ "HTTP/1.1 101 Switching\r\nA: b\r\n\r\nraw", 101 },
		{ "HTTP/1.0 200\r\n\r\n", 200 },
		{ "HTTP/1.1 200 OK\nA: b\n\n", 200 },
		{ "HTTP/1.1 100 Continue\r\n\r\n", 100 },
		{ "HTTP/1.1 101 Switching\r\nA: b\r\n", 0 },
		{ "HT", 0 },
		{ "", 0 },
		{ "HTTP/2 101\r\n\r\n", -1 },
		{ "HTTP/1.1 1010\r\n\r\n", -1 },
		{ "220 hello\r\n", -1 },
		{ "HTTP/1.\r\n\r\n", -1 },
	};
	autobuf struct buf out = BUF_INIT(1000);
	struct err e;
	size_t n;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		ROW_CHECK(response_status(str_of(rows[i].text), &n) == rows[i].status,
			  rows[i].text);
	assert_int_equal(response_status(str_of(rows[0].text), &n), 101);
	assert_int_equal(n, strlen(rows[0].text) - 3);
	assert_int_equal(
		response_write_close(STR_LIT("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n"
					     "Keep-Alive: x\r\nA: b\r\n\r\n"),
				     &out, &e),
		0);
	assert_string_equal(out.p, "HTTP/1.1 200 OK\r\nA: b\r\nConnection: close\r\n\r\n");
}

/* ---- SOCKS ----------------------------------------------------------------------------------- */

static void test_socks(void **state)
{
	static const struct {
		struct str bytes;
		enum socks_state state;
		const char *host;
		uint16_t port;
		enum socks_reply reply;
	} rows[] = {
		{ STR_LIT("\5\1\0\3\3a.b\1\xbb"), SOCKS_DONE, "a.b", 443, 0 },
		{ STR_LIT("\5\1\0\1\x7f\0\0\1\0\x50"), SOCKS_DONE, "127.0.0.1", 80, 0 },
		{ STR_LIT("\5\1\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\x50"), SOCKS_DONE, "::1", 80,
		  0 },
		{ STR_LIT("\5\2\0\3\3a.b\1\xbb"), SOCKS_BAD, NULL, 0, SOCKS_COMMAND },
		{ STR_LIT("\5\1\0\2\3a.b\1\xbb"), SOCKS_BAD, NULL, 0, SOCKS_TYPE },
		{ STR_LIT("\5\1\1\3\3a.b\1\xbb"), SOCKS_BAD, NULL, 0, SOCKS_FAILED },
		{ STR_LIT("\4\1\0\3\3a.b\1\xbb"), SOCKS_BAD, NULL, 0, SOCKS_FAILED },
		{ STR_LIT("\5\1\0\3\3a.b\0\0"), SOCKS_BAD, NULL, 0, SOCKS_FAILED },
		{ STR_LIT("\5\1\0\3\3a\0b\0\1"), SOCKS_BAD, NULL, 0, SOCKS_FAILED },
		{ STR_LIT("\5\1\0\3\0\0\1"), SOCKS_BAD, NULL, 0, SOCKS_FAILED },
	};
	uint8_t method[SOCKS_METHOD_BYTES];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct socks_request r;

		if (rows[i].state == SOCKS_DONE) {
			for (size_t k = 0; k < rows[i].bytes.n; k++)
				assert_int_equal(
					socks_read_request((struct str){ rows[i].bytes.p, k }, &r),
					SOCKS_MORE);
		}
		if (socks_read_request(rows[i].bytes, &r) != rows[i].state)
			fail_msg("row %zu", i);
		if (rows[i].state == SOCKS_BAD) {
			assert_int_equal(r.reply, rows[i].reply);
			continue;
		}
		assert_string_equal(r.host, rows[i].host);
		assert_int_equal(r.port, rows[i].port);
		assert_int_equal(r.n, rows[i].bytes.n);
	}
	assert_int_equal(socks_read_methods(STR_LIT("\5\2\2"), &n, method), SOCKS_MORE);
	assert_int_equal(socks_read_methods(STR_LIT("\5\2\2\0x"), &n, method), SOCKS_DONE);
	assert_true(n == 4 && method[0] == 5 && method[1] == 0);
	assert_int_equal(socks_read_methods(STR_LIT("\5\1\2"), &n, method), SOCKS_BAD);
	assert_int_equal(method[1], 0xff);
	assert_int_equal(socks_read_methods(STR_LIT("\5\0"), &n, method), SOCKS_BAD);
}

/* ---- DNS ------------------------------------------------------------------------------------- */

static void test_dns(void **state)
{
#define HEAD "\x12\x34\1\0\0\1\0\0\0\0\0"
#define NAME "\3WEB\7example\0"
	static const struct {
		struct str msg;
		int code;
		const char *name;
		uint16_t type;
		bool is_host;
	} rows[] = {
		{ STR_LIT(HEAD "\0" NAME "\0\1\0\1"), DNS_OK, "web.example", 1, true },
		{ STR_LIT(HEAD "\0" NAME "\0\x1c\0\1"), DNS_OK, "web.example", 28, true },
		{ STR_LIT(HEAD "\1" NAME "\0\1\0\1\0\0\x29\x10\0\0\0\0\0\0\0"), DNS_OK,
		  "web.example", 1, true },
		{ STR_LIT(HEAD "\0\4a.b\\\1c\0\0\1\0\1"), DNS_OK, "a?b\\.c", 1, false },
		{ STR_LIT(HEAD "\0\0\0\1\0\1"), DNS_OK, "", 1, false },
		{ STR_LIT(HEAD "\0" NAME "\0\xff\0\1"), DNS_REFUSED },
		{ STR_LIT(HEAD "\0" NAME "\0\1\0\3"), DNS_REFUSED },
		{ STR_LIT("\x12\x34\x28\0\0\1\0\0\0\0\0\0" NAME "\0\1\0\1"), DNS_NOTIMP },
		{ STR_LIT("\x12\x34\x81\0\0\1\0\0\0\0\0\0" NAME "\0\1\0\1"), -1 },
		{ STR_LIT(HEAD), -1 },
		{ STR_LIT(HEAD "\0"), DNS_FORMERR },
		{ STR_LIT(HEAD "\0" NAME "\0\1\0"), DNS_FORMERR },
		{ STR_LIT(HEAD "\0" NAME "\0\1\0\1x"), DNS_FORMERR },
		{ STR_LIT(HEAD "\0\xc0\x0c\0\1\0\1"), DNS_FORMERR },
		{ STR_LIT(HEAD "\0\x40" NAME "\0\1\0\1"), DNS_FORMERR },
		{ STR_LIT(HEAD "\1" NAME "\0\1\0\1\0\0\1\x10\0\0\0\0\0\0\0"), DNS_FORMERR },
		{ STR_LIT(HEAD "\1" NAME "\0\1\0\1\0\0\x29\x10\0\0\0\0\0\0\1"), DNS_FORMERR },
	};
	uint8_t out[DNS_ANSWER_MAX];
	struct dns_query q;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int code = dns_read(rows[i].msg, &q);
		size_t n;

		if (code != rows[i].code)
			fail_msg("row %zu: %d", i, code);
		if (code < 0)
			continue;
		n = dns_write(&q, (enum dns_code)code, code == DNS_OK ? 0x7f010001 : 0, out);
		assert_true(n <= sizeof(out) && out[2] & 0x80 && (out[3] & 15) == code);
		if (code != DNS_OK)
			continue;
		assert_string_equal(q.name, rows[i].name);
		assert_true(q.type == rows[i].type && q.is_host == rows[i].is_host);
		/* the question comes back as it was, in its own case */
		assert_memory_equal(out + 12, rows[i].msg.p + 12, q.question_n);
		assert_memory_equal(out + 12 + q.question_n + 12, "\x7f\1\0\1", 4);
		assert_true(out[7] == 1 && out[11] == q.edns);
	}
}

static void test_dns_longest(void **state)
{
	char msg[400] = HEAD "\0";
	uint8_t out[DNS_ANSWER_MAX];
	struct dns_query q;
	size_t n = 12;

	for (int i = 0; i < 4; i++) {
		msg[n++] = i < 3 ? 63 : 61;
		memset(msg + n, 'a', 63);
		n += i < 3 ? 63 : 61;
	}
	memcpy(msg + n, "\0\0\1\0\1", 5);
	assert_int_equal(dns_read((struct str){ msg, n + 5 }, &q), DNS_OK);
	assert_int_equal(strlen(q.name), 253);
	assert_true(q.is_host && dns_write(&q, DNS_OK, 1, out) <= sizeof(out));
	msg[n - 62] = 62;
	memcpy(msg + n, "a\0\0\1\0\1", 6);
	assert_int_equal(dns_read((struct str){ msg, n + 6 }, &q), DNS_FORMERR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hello_pieces),
		cmocka_unit_test(test_hello_bad),
		cmocka_unit_test(test_hello_without_a_name),
		cmocka_unit_test(test_hello_again),
		cmocka_unit_test(test_hello_of_the_server),
		cmocka_unit_test(test_sniff),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_bad_requests),
		cmocka_unit_test(test_requests_are_written_anew),
		cmocka_unit_test(test_requests_get_secrets),
		cmocka_unit_test(test_swaps),
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_answers_of_bound_hosts),
		cmocka_unit_test(test_answers_are_written_anew),
		cmocka_unit_test(test_bodies),

		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_socks),
		cmocka_unit_test(test_dns),
		cmocka_unit_test(test_dns_longest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
