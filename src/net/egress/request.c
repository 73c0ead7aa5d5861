#include "net/egress/request.h"

#include "base/base64.h"
#include "base/mem.h"
#include "net/egress/head.h"
#include "net/egress/swap.h"

enum { METHOD_MAX = 32 };

/* ---- the target ------------------------------------------------------------------------------ */

/* host[:port]; the host's own form is checked by those who look it up. */
static bool read_authority(struct str s, struct str *ret_host, uint16_t *ret_port)
{
	const char *end = s.n > 0 && s.p[0] == '[' ? memchr(s.p, ']', s.n) : NULL;
	size_t host = end ? (size_t)(end - s.p) + 1 : 0;
	struct str port;

	*ret_port = 0;
	while (!end && host < s.n && s.p[host] != ':')
		host++;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] <= 0x20 || s.p[i] >= 0x7f || strchr("/?#@\\,\"<>^`{|}%", s.p[i]))
			return false;
	}
	if (host == 0 || (s.p[0] == '[' && !end))
		return false;
	*ret_host = (struct str){ s.p, host };
	if (host == s.n)
		return true;
	port = (struct str){ s.p + host + 1, s.n - host - 1 };
	return s.p[host] == ':' && net_port_read(port, ret_port);
}

static const char *read_target(struct str target, struct request *r)
{
	static const struct str http = STR_LIT("http://");
	const char *query;

	for (size_t i = 0; i < target.n; i++) {
		if (target.p[i] <= 0x20 || target.p[i] >= 0x7f || target.p[i] == '#')
			return "the target has a character that must be escaped";
	}
	r->target = target;
	if (str_is(r->method, "CONNECT")) {
		r->form = REQUEST_CONNECT;
		return read_authority(target, &r->host, &r->port) && r->port
			     ? NULL
			     : "CONNECT names no host and port";
	}
	if (target.n > http.n && head_is((struct str){ target.p, http.n }, http.p)) {
		size_t end = http.n;

		while (end < target.n && target.p[end] != '/' && target.p[end] != '?')
			end++;
		r->form = REQUEST_ABSOLUTE;
		r->target = (struct str){ target.p + end, target.n - end };
		if (!read_authority((struct str){ target.p + http.n, end - http.n }, &r->host,
				    &r->port))
			return "the target names no host";
		if (r->target.n == 0)
			r->target = STR_LIT("/");
		if (r->target.p[0] != '/')
			return "the target has no path";
	} else if (!(str_is(target, "*") && str_is(r->method, "OPTIONS")) &&
		   (target.n == 0 || target.p[0] != '/')) {
		return "the target is neither a path nor an http URL";
	}
	query = memchr(r->target.p, '?', r->target.n);
	r->path = (struct str){ r->target.p, query ? (size_t)(query - r->target.p) : r->target.n };
	return NULL;
}

static const char *read_request_line(struct str line, struct request *r)
{
	struct str target;

	if (!head_cut(&line, ' ', &r->method) || !head_cut(&line, ' ', &target))
		return "the request line has not three parts";
	if (r->method.n > METHOD_MAX || !head_is_token(r->method))
		return "the method is no token";
	r->old = str_is(line, "HTTP/1.0");
	if (!r->old && !str_is(line, "HTTP/1.1"))
		return str_starts(line, "HTTP/2") ? "HTTP/2 in plain text is not supported"
						  : "the version is not HTTP/1.0 or HTTP/1.1";
	return read_target(target, r);
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* The fields that were read so far. */
struct seen {
	struct str host;
	bool has_host, has_length, has_coding, has_upgrade;
};

static const char *read_length(struct str value, struct request *r, struct seen *seen)
{
	if (seen->has_length)
		return "Content-Length comes twice";
	if (seen->has_coding)
		return "Content-Length and Transfer-Encoding exclude each other";
	if (!head_length(value, &r->body.left))
		return "Content-Length is no number";
	seen->has_length = true;
	r->body.kind = r->body.left > 0 ? BODY_LENGTH : BODY_NONE;
	return NULL;
}

static const char *read_coding(struct str value, struct request *r, struct seen *seen)
{
	if (seen->has_coding)
		return "Transfer-Encoding comes twice";
	if (seen->has_length)
		return "Content-Length and Transfer-Encoding exclude each other";
	if (r->old)
		return "HTTP/1.0 has no Transfer-Encoding";
	if (!head_is(value, "chunked"))
		return "a Transfer-Encoding other than chunked";
	seen->has_coding = true;
	r->body = (struct body){ .kind = BODY_CHUNKED };
	return NULL;
}

/* A proxy behind us must not be told to remove what we have checked. */
static const char *read_connection(struct str value)
{
	struct str item;

	while (head_item(&value, &item)) {
		if (head_is(item, "host") || head_is(item, "content-length") ||
		    head_is(item, "transfer-encoding"))
			return "Connection names a field that is no connection's";
	}
	return NULL;
}

/* By which some servers take another method or path than those of the request line, or a second
 * path: where WebDAV copies to, and what object stores copy. */
static bool is_override(struct str name)
{
	static const char *const names[] = { "x-http-method",	   "x-http-method-override",
					     "x-method-override",  "x-original-url",
					     "x-rewrite-url",	   "x-original-uri",
					     "x-override-url",	   "x-forwarded-method",
					     "x-forwarded-uri",	   "x-forwarded-path",
					     "x-forwarded-prefix", "x-envoy-original-path",
					     "destination",	   "x-amz-copy-source",
					     "x-ms-copy-source",   "x-goog-copy-source" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (head_is(name, names[i]) || head_is_to_cgi(name, names[i]))
			return true;
	}
	return false;
}

static const char *read_field(struct str name, struct str value, struct request *r,
			      struct seen *seen)
{
	if (head_is(name, "host")) {
		if (seen->has_host)
			return "Host comes twice";
		seen->has_host = true;
		seen->host = value;
		return NULL;
	}
	if (head_is(name, "content-length"))
		return read_length(value, r, seen);
	if (head_is(name, "transfer-encoding"))
		return read_coding(value, r, seen);
	if (head_is_to_cgi(name, "content-length") || head_is_to_cgi(name, "transfer-encoding"))
		return "a field's name is that of another with underscores";
	if (head_is(name, "connection"))
		return read_connection(value);
	if (is_override(name))
		r->overrides = true;
	if (head_is(name, "upgrade")) {
		r->websocket = !seen->has_upgrade && head_is(value, "websocket");
		seen->has_upgrade = true;
	}
	return NULL;
}

static const char *read_fields(struct request *r, struct seen *seen)
{
	struct str rest = r->fields, name, value;
	const char *why;

	for (unsigned i = 0; rest.n > 0; i++) {
		if (i == HEAD_FIELDS_MAX)
			return "too many fields";
		why = head_field(&rest, &name, &value);
		if (!why)
			why = read_field(name, value, r, seen);
		if (why)
			return why;
	}
	return NULL;
}

/* One host, and the same in both places. */
static const char *read_host(struct request *r, const struct seen *seen)
{
	struct str host = STR_NONE;
	uint16_t port = 0;

	if (r->form == REQUEST_CONNECT)
		return NULL; /* the field is not passed on */
	if (!seen->has_host)
		return "there is no Host";
	if (!read_authority(seen->host, &host, &port))
		return "Host is no host";
	if (r->form == REQUEST_ABSOLUTE) {
		bool equal = host.n == r->host.n && (port ? port : 80) == (r->port ? r->port : 80);

		for (size_t i = 0; equal && i < host.n; i++)
			equal = head_lower(host.p[i]) == head_lower(r->host.p[i]);
		return equal ? NULL : "Host and target name different hosts";
	}
	r->host = host;
	r->port = port;
	return NULL;
}

/* ---- the head -------------------------------------------------------------------------------- */

enum request_state request_read(struct str bytes, size_t *scanned, struct request *ret,
				const char **ret_why)
{
	struct request r = { .n = 0 };
	struct seen seen = { .has_host = false };
	struct str head = bytes, line;
	const char *why;
	bool bad;

	r.n = head_end(bytes, scanned, &bad);
	if (bad) {
		*ret_why = "a line does not end in CR LF, or is empty";
		return REQUEST_BAD;
	}
	if (r.n == 0)
		return REQUEST_MORE;
	head.n = r.n - 2;
	if (!head_line(&head, &line)) {
		*ret_why = "a line does not end in CR LF";
		return REQUEST_BAD;
	}
	why = read_request_line(line, &r);
	r.fields = head;
	if (!why)
		why = read_fields(&r, &seen);
	if (!why)
		why = read_host(&r, &seen);
	if (!why && r.form == REQUEST_CONNECT && r.body.kind != BODY_NONE)
		why = "CONNECT has no body";
	if (why) {
		*ret_why = why;
		return REQUEST_BAD;
	}
	*ret = r;
	return REQUEST_DONE;
}

static bool is_left_out(struct str name, const struct request *r, bool upgrade, bool close)
{
	if (head_is(name, "upgrade") || head_is(name, "http2-settings"))
		return !(upgrade && r->websocket);
	if (r->has_other_body && (head_is(name, "content-length") || head_is(name, "expect") ||
				  head_is(name, "transfer-encoding")))
		return true;
	return head_is(name, "proxy-connection") || head_is(name, "proxy-authorization") ||
	       (close && (head_is(name, "connection") || head_is(name, "keep-alive")));
}

/* With these fields the answer could be one that nobody can look into, or a part of one. */
static bool hides_the_answer(struct str name)
{
	return head_is(name, "accept-encoding") || head_is(name, "range") ||
	       head_is(name, "if-range") || head_is(name, "te") || head_is(name, "a-im");
}

/* Fields that decide where the request goes and where it ends never have a secret. */
static bool is_framing(struct str name)
{
	return head_is(name, "host") || head_is(name, "content-length") ||
	       head_is(name, "transfer-encoding") || head_is(name, "connection");
}

/* The two parts of "user:password" are Base64 together (RFC 7617). */
static int write_basic(struct str text, const struct swaps *swaps, struct buf *out, struct err *e)
{
	autowipe struct buf plain = BUF_INIT(2 * text.n + 16), swapped = BUF_INIT(out->max);

	if (!buf_reserve(&swapped, out->max, e))
		return -1;
	if (base64_decode(&plain, text, e) < 0) /* not what it says: it passes as any other value */
		return swaps_run(swaps, text, true, out, e) < 0 ? -1 : 0;
	if (swaps_run(swaps, buf_str(&plain), true, &swapped, e) < 0)
		return -1;
	return base64_encode(out, buf_str(&swapped), e);
}

static int write_field(struct str name, struct str line, const struct swaps *swaps, struct buf *out,
		       struct err *e)
{
	static const char basic[] = "basic ";
	struct str value = str_trim((struct str){ line.p + name.n + 1, line.n - name.n - 1 });
	size_t n = sizeof(basic) - 1;

	if (buf_add(out, name.p, name.n, e) < 0 || buf_add(out, ": ", 2, e) < 0)
		return -1;
	if (head_is(name, "authorization") && value.n > n &&
	    head_is((struct str){ value.p, n }, basic)) {
		if (buf_add(out, value.p, n, e) < 0 ||
		    write_basic(str_trim((struct str){ value.p + n, value.n - n }), swaps, out, e) <
			    0)
			return -1;
	} else if (swaps_run(swaps, value, true, out, e) < 0) {
		return -1;
	}
	return buf_add(out, "\r\n", 2, e);
}

int request_write(const struct request *r, bool upgrade, bool close, const struct swaps *swaps,
		  struct buf *out, struct err *e)
{
	struct str rest = r->fields, line, name;

	if (buf_addf(out, e, "%.*s %.*s HTTP/1.%c\r\n", STR_ARG(r->method), STR_ARG(r->target),
		     r->old ? '0' : '1') < 0)
		return -1;
	while (head_line(&rest, &line)) {
		struct str all = { line.p, line.n + 2 }, cut = line;

		if (!head_cut(&cut, ':', &name) || is_left_out(name, r, upgrade, close) ||
		    (swaps && hides_the_answer(name)))
			continue;
		if ((swaps && !is_framing(name) ? write_field(name, line, swaps, out, e)
						: buf_add(out, all.p, all.n, e)) < 0)
			return -1;
	}
	if (swaps && buf_addf(out, e, "Accept-Encoding: identity\r\n") < 0)
		return -1;
	if (r->has_other_body && buf_addf(out, e, "Content-Length: %zu\r\n", r->other_n) < 0)
		return -1;
	if (close && buf_add(out, "Connection: close\r\n", 19, e) < 0)
		return -1;
	return buf_add(out, "\r\n", 2, e);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

enum { PASSED_MAX = 8192 }; /* bytes of extensions and trailers of a body */

enum chunk_state {
	CHUNK_SIZE, /* before its first digit */
	CHUNK_DIGITS,
	CHUNK_EXTENSION, /* up to the end of its line */
	CHUNK_SIZE_LF,
	CHUNK_DATA,
	CHUNK_DATA_CR,
	CHUNK_DATA_LF,
	CHUNK_LAST_CR, /* behind the last chunk, at the beginning of a line */
	CHUNK_LAST_LF,
	CHUNK_TRAILER, /* up to the end of its line */
	CHUNK_TRAILER_LF,
	CHUNK_END,
};

static int request_hex(char c)
{
	if (head_is_digit(c))
		return c - '0';
	c = head_lower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A byte of an extension or trailer, in whose state we are afterwards; `next` behind its line. */
static int chunk_pass(struct body *b, char c, int here, int next)
{
	if (!b->lenient || c == '\n' || c == '\0' || ++b->passed > PASSED_MAX)
		return -1;
	b->state = c == '\r' ? next : here;
	return 0;
}

/* One byte that is no data. -1: it is wrong there. */
static int chunk_step(struct body *b, char c)
{
	int digit = request_hex(c);

	switch ((enum chunk_state)b->state) {
	case CHUNK_SIZE:
	case CHUNK_DIGITS:
		if (digit >= 0 && b->left < (uint64_t)1 << 56) {
			b->left = b->left * 16 + (unsigned)digit;
			b->state = CHUNK_DIGITS;
			return 0;
		}
		if (b->state == CHUNK_SIZE)
			return -1;
		if (c == ';' || c == ' ' || c == '\t')
			return chunk_pass(b, c, CHUNK_EXTENSION, CHUNK_SIZE_LF);
		b->state = CHUNK_SIZE_LF;
		return c == '\r' ? 0 : -1;
	case CHUNK_EXTENSION:
		return chunk_pass(b, c, CHUNK_EXTENSION, CHUNK_SIZE_LF);
	case CHUNK_SIZE_LF:
		b->state = b->left > 0 ? CHUNK_DATA : CHUNK_LAST_CR;
		return c == '\n' ? 0 : -1;
	case CHUNK_DATA_CR:
		b->state = CHUNK_DATA_LF;
		return c == '\r' ? 0 : -1;
	case CHUNK_DATA_LF:
		b->state = CHUNK_SIZE;
		return c == '\n' ? 0 : -1;
	case CHUNK_LAST_CR:
		if (c != '\r')
			return chunk_pass(b, c, CHUNK_TRAILER, CHUNK_TRAILER_LF);
		b->state = CHUNK_LAST_LF;
		return 0;
	case CHUNK_TRAILER:
		return chunk_pass(b, c, CHUNK_TRAILER, CHUNK_TRAILER_LF);
	case CHUNK_TRAILER_LF:
		b->state = CHUNK_LAST_CR;
		return c == '\n' ? 0 : -1;
	case CHUNK_LAST_LF:
		b->state = CHUNK_END;
		return c == '\n' ? 0 : -1;
	case CHUNK_DATA:
	case CHUNK_END:
		break;
	}
	return -1;
}

ssize_t body_piece(struct body *b, struct str bytes, struct str *ret_data, bool *ret_end)
{
	size_t at = 0, n;

	*ret_data = STR_NONE;
	*ret_end = false;
	while (b->kind == BODY_CHUNKED && b->state != CHUNK_DATA && b->state != CHUNK_END) {
		if (at == bytes.n)
			return (ssize_t)at;
		if (chunk_step(b, bytes.p[at++]) < 0)
			return -1;
	}
	n = bytes.n - at < b->left ? bytes.n - at : (size_t)b->left;
	*ret_data = (struct str){ bytes.p + at, n };
	b->left -= n;
	if (b->kind == BODY_CHUNKED && b->state == CHUNK_DATA && b->left == 0)
		b->state = CHUNK_DATA_CR;
	*ret_end = b->kind == BODY_CHUNKED ? b->state == CHUNK_END : b->left == 0;
	return (ssize_t)(at + n);
}

ssize_t body_take(struct body *b, struct str bytes, bool *ret_end)
{
	size_t at = 0;
	struct str data;

	do {
		ssize_t n = body_piece(b, (struct str){ bytes.p + at, bytes.n - at }, &data,
				       ret_end);

		if (n < 0)
			return -1;
		at += (size_t)n;
	} while (at < bytes.n && !*ret_end);
	return (ssize_t)at;
}

int body_whole(struct body b, bool until_end, struct str bytes, struct buf *out, size_t *ret_n)
{
	bool end = b.kind == BODY_NONE;
	size_t at = 0;
	struct str data;
	struct err e;

	while (!end && at < bytes.n) {
		const struct str rest = { bytes.p + at, bytes.n - at };
		ssize_t n = until_end ? (ssize_t)rest.n : body_piece(&b, rest, &data, &end);

		if (until_end)
			data = rest;
		if (n < 0 || buf_add(out, data.p, data.n, &e) < 0)
			return -1;
		at += (size_t)n;
	}
	*ret_n = at;
	return end || until_end;
}

int response_status(struct str bytes, size_t *ret_n)
{
	static const char start[] = "HTTP/1.";
	size_t n = bytes.n < sizeof(start) - 1 ? bytes.n : sizeof(start) - 1;

	if (memcmp(bytes.p ? bytes.p : "", start, n) != 0)
		return -1;
	for (size_t i = 3; i < bytes.n; i++) {
		if (bytes.p[i] != '\n' ||
		    !(bytes.p[i - 1] == '\n' || (bytes.p[i - 1] == '\r' && bytes.p[i - 2] == '\n')))
			continue;
		*ret_n = i + 1;
		/* "HTTP/1.1 101" */
		if (i < 12 || bytes.p[8] != ' ' || !head_is_digit(bytes.p[9]) ||
		    !head_is_digit(bytes.p[10]) || !head_is_digit(bytes.p[11]) ||
		    head_is_digit(bytes.p[12]))
			return -1;
		return (bytes.p[9] - '0') * 100 + (bytes.p[10] - '0') * 10 + (bytes.p[11] - '0');
	}
	return 0;
}

int response_write_close(struct str head, struct buf *out, struct err *e)
{
	struct str line, name;
	bool first = true;

	while (head.n > 0 && head_cut(&head, '\n', &line)) {
		struct str all = { line.p, line.n + 1 };
		bool is_last = line.n == 0 || str_is(line, "\r");
		bool is_dropped = !first && !is_last && head_cut(&line, ':', &name) &&
				  (head_is(name, "connection") || head_is(name, "keep-alive"));

		if (is_last && buf_add(out, "Connection: close\r\n", 19, e) < 0)
			return -1;
		if (!is_dropped && buf_add(out, all.p, all.n, e) < 0)
			return -1;
		first = false;
	}
	return 0;
}
