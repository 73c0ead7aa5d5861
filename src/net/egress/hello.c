#include "net/egress/hello.h"

#include <stdint.h>

enum {
	RECORD_HEAD = 5,
	RECORD_MAX = 16384,
	RECORDS_MAX = 16, /* of one ClientHello; bounds the work for each byte that comes */
	CHANGE_CIPHER_SPEC = 20,
	ALERT = 21,
	HANDSHAKE = 22,
	DATA = 23,
	CLIENT_HELLO = 1,
	SERVER_HELLO = 2,
	EXT_SERVER_NAME = 0,
	EXT_ECH = 0xfe0d,
	EXT_ECH_OLDEST = 0xfe08, /* drafts, and ESNI below them */
	EXT_ESNI = 0xffce,
	EXTENSIONS_MAX = 64,
	RANDOM = 32,
};

static unsigned at8(struct str s, size_t i)
{
	return (unsigned char)s.p[i];
}

static unsigned at16(struct str s, size_t i)
{
	return at8(s, i) << 8 | at8(s, i + 1);
}

/* Takes n bytes from the front of *s. False if there are fewer. */
static bool hello_take(struct str *s, size_t n, struct str *ret)
{
	if (s->n < n)
		return false;
	*ret = (struct str){ s->p, n };
	s->p += n;
	s->n -= n;
	return true;
}

/* Takes a vector whose length has `width` bytes. */
static bool take_vector(struct str *s, size_t width, struct str *ret)
{
	struct str length;

	return hello_take(s, width, &length) &&
	       hello_take(s, width == 1 ? at8(length, 0) : at16(length, 0), ret);
}

/* The record at the front. HELLO_DONE: *ret_body is what is there of its body, ret_body->n at most
 * its length *ret_n. */
static enum hello_state read_record(struct str s, unsigned *ret_type, struct str *ret_body,
				    size_t *ret_n)
{
	if (s.n > 1 && at8(s, 1) != 3)
		return HELLO_BAD;
	if (s.n < RECORD_HEAD)
		return HELLO_MORE;
	*ret_type = at8(s, 0);
	*ret_n = at16(s, 3);
	if (*ret_n == 0 || *ret_n > RECORD_MAX + 256)
		return HELLO_BAD;
	*ret_body = (struct str){ s.p + RECORD_HEAD, s.n - RECORD_HEAD };
	if (ret_body->n > *ret_n)
		ret_body->n = *ret_n;
	return HELLO_DONE;
}

/* One name of the type host_name, and nothing else. */
static bool read_name(struct str ext, struct hello *h)
{
	struct str list, type, name;

	if (!take_vector(&ext, 2, &list) || ext.n > 0 || !hello_take(&list, 1, &type) ||
	    at8(type, 0) != 0 || !take_vector(&list, 2, &name) || list.n > 0)
		return false;
	/* RFC 6066: no dot at its end */
	if (name.n == 0 || name.p[name.n - 1] == '.' || !net_host_read(name, h->name))
		return false;
	h->has_name = true;
	return true;
}

static bool read_extensions(struct str all, struct hello *h)
{
	unsigned seen[EXTENSIONS_MAX];
	size_t n = 0;
	struct str head, ext;

	while (all.n > 0) {
		if (!hello_take(&all, 2, &head) || !take_vector(&all, 2, &ext) ||
		    n == EXTENSIONS_MAX)
			return false;
		for (size_t i = 0; i < n; i++) {
			if (seen[i] == at16(head, 0))
				return false;
		}
		seen[n++] = at16(head, 0);
		if (at16(head, 0) == EXT_SERVER_NAME && !read_name(ext, h))
			return false;
		if ((at16(head, 0) >= EXT_ECH_OLDEST && at16(head, 0) <= EXT_ECH) ||
		    at16(head, 0) == EXT_ESNI)
			h->ech = true;
	}
	return true;
}

/* The body of a ClientHello. */
static bool read_body(struct str s, struct hello *h)
{
	struct str skip, extensions;

	if (!hello_take(&s, 2, &skip) || at8(skip, 0) != 3 || !hello_take(&s, RANDOM, &skip) ||
	    !take_vector(&s, 1, &skip) || skip.n > 32 || /* session id */
	    !take_vector(&s, 2, &skip) || skip.n < 2 || skip.n % 2 || /* ciphers */
	    !take_vector(&s, 1, &skip) || skip.n < 1) /* compression */
		return false;
	if (s.n == 0)
		return true; /* without extensions, as of old */
	return take_vector(&s, 2, &extensions) && s.n == 0 && read_extensions(extensions, h);
}

enum hello_state hello_read(struct str bytes, struct hello *ret)
{
	static char joined[HELLO_MAX]; /* the handshake messages of the records */
	struct hello h = { .n = 0 };
	size_t n = 0, want = 4;
	unsigned type;

	for (unsigned records = 0; n < want; records++) {
		struct str rest = { bytes.p + h.n, bytes.n - h.n }, body;
		size_t length;
		enum hello_state state;

		if (rest.n > 0 && at8(rest, 0) != HANDSHAKE)
			return HELLO_BAD;
		state = read_record(rest, &type, &body, &length);
		if (state != HELLO_DONE)
			return state;
		if (records == RECORDS_MAX || length > sizeof(joined) - n)
			return HELLO_BAD;
		memcpy(joined + n, body.p, body.n);
		n += body.n;
		if (n > 0 && joined[0] != CLIENT_HELLO)
			return HELLO_BAD;
		if (n >= 4) {
			want = 4 + ((size_t)at8((struct str){ joined, n }, 1) << 16) +
			       at16((struct str){ joined, n }, 2);
			if (want > sizeof(joined))
				return HELLO_BAD;
		}
		if (body.n < length)
			return n > want ? HELLO_BAD : HELLO_MORE;
		h.n += RECORD_HEAD + length;
	}
	if (n > want || !read_body((struct str){ joined + 4, want - 4 }, &h))
		return HELLO_BAD;
	*ret = h;
	return HELLO_DONE;
}

enum hello_state hello_read_second(struct str bytes, struct hello *ret, bool *ret_any)
{
	size_t skipped = 0;

	for (;;) {
		struct str rest = { bytes.p + skipped, bytes.n - skipped }, body;
		enum hello_state state;
		unsigned type;
		size_t length;

		*ret_any = rest.n > 0 && at8(rest, 0) == HANDSHAKE;
		if (*ret_any) {
			state = hello_read(rest, ret);
			if (state == HELLO_DONE)
				ret->n += skipped;
			return state;
		}
		state = read_record(rest, &type, &body, &length);
		if (state != HELLO_DONE)
			return state;
		if (type == ALERT)
			return HELLO_DONE;
		if (type != CHANGE_CIPHER_SPEC && type != DATA)
			return HELLO_BAD;
		if (body.n < length)
			return HELLO_MORE;
		skipped += RECORD_HEAD + length;
	}
}

enum hello_state hello_read_server(struct str bytes, bool *ret_retry)
{
	/* SHA-256 of "HelloRetryRequest", RFC 8446 section 4.1.3 */
	static const unsigned char retry[RANDOM] = {
		0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c,
		0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb,
		0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
	};
	enum { BEFORE = 4 + 2 }; /* the message's head and the version */
	struct str body;
	unsigned type;
	size_t length;

	*ret_retry = false;
	if (bytes.n > 0 && at8(bytes, 0) != HANDSHAKE)
		return HELLO_DONE; /* an alert, or what is no TLS: there is no second ClientHello */
	switch (read_record(bytes, &type, &body, &length)) {
	case HELLO_MORE:
		return HELLO_MORE;
	case HELLO_BAD:
		return HELLO_BAD;
	case HELLO_DONE:
		break;
	}
	if (length < BEFORE + RANDOM)
		return HELLO_BAD;
	if (body.n < BEFORE + RANDOM)
		return HELLO_MORE;
	*ret_retry = at8(body, 0) == SERVER_HELLO && memcmp(body.p + BEFORE, retry, RANDOM) == 0;
	return HELLO_DONE;
}
