#include "net/egress/dns.h"

enum {
	HEAD = 12,
	LABEL_MAX = 63,
	NAME_MAX_BYTES = 255,
	OPT = 41,
	IN = 1,
	UDP_SIZE = 1232,
	QR = 0x8000,
	OPCODE = 0x7800,
	TC = 0x0200,
	RD = 0x0100,
	RA = 0x0080,
	POINTER_TO_QUESTION = 0xc00c,
};

static unsigned at16(struct str s, size_t i)
{
	return (unsigned)((unsigned char)s.p[i] << 8 | (unsigned char)s.p[i + 1]);
}

static char dns_clean(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c + 32);
	return c > 0x20 && c < 0x7f && c != '.' ? c : '?';
}

/* The name at *at, without compression; *at moves behind it. */
static bool read_name(struct str msg, size_t *at, char ret[NET_HOST_MAX])
{
	size_t start = *at, n = 0;

	for (;;) {
		size_t length;

		if (*at >= msg.n)
			return false;
		length = (unsigned char)msg.p[(*at)++];
		if (length > LABEL_MAX || msg.n - *at < length ||
		    *at - start + length > NAME_MAX_BYTES - 1 + (length == 0))
			return false;
		if (length == 0)
			break;
		if (n > 0 && n < NET_HOST_MAX - 1)
			ret[n++] = '.';
		for (size_t i = 0; i < length; i++) {
			if (n < NET_HOST_MAX - 1)
				ret[n++] = dns_clean(msg.p[*at + i]);
		}
		*at += length;
	}
	ret[n] = '\0';
	return true;
}

/* Whether the additional records are one OPT and nothing else; they may be none. */
static bool read_additional(struct str msg, size_t at, unsigned n, bool *ret_edns)
{
	*ret_edns = n == 1;
	if (n == 0)
		return at == msg.n;
	/* the root's name, type, class, TTL, length */
	return n == 1 && msg.n - at >= 11 && msg.p[at] == 0 && at16(msg, at + 1) == OPT &&
	       msg.n - at == 11 + at16(msg, at + 9);
}

int dns_read(struct str msg, struct dns_query *ret)
{
	struct dns_query q = { .id = 0 };
	char host[NET_HOST_MAX];
	size_t at = HEAD;
	unsigned flags;

	if (msg.n < HEAD)
		return -1;
	flags = at16(msg, 2);
	if (flags & QR)
		return -1; /* an answer to it could go around for ever */
	q.id = (uint16_t)at16(msg, 0);
	q.recursion = flags & RD;
	*ret = q;
	if (flags & OPCODE)
		return DNS_NOTIMP;
	if (flags & TC || at16(msg, 4) != 1 || at16(msg, 6) || at16(msg, 8) ||
	    !read_name(msg, &at, q.name) || msg.n - at < 4)
		return DNS_FORMERR;
	q.type = (uint16_t)at16(msg, at);
	q.class = (uint16_t)at16(msg, at + 2);
	at += 4;
	q.question_n = (uint16_t)(at - HEAD);
	memcpy(q.question, msg.p + HEAD, q.question_n);
	q.is_host = net_host_read(str_of(q.name), host);
	if (!read_additional(msg, at, at16(msg, 10), &q.edns))
		return DNS_FORMERR;
	*ret = q;
	if (q.class != IN || (q.type >= DNS_IXFR && q.type <= DNS_ANY))
		return DNS_REFUSED;
	return DNS_OK;
}

static void put16(uint8_t *ret, size_t *n, unsigned value)
{
	ret[(*n)++] = (uint8_t)(value >> 8);
	ret[(*n)++] = (uint8_t)value;
}

static void put32(uint8_t *ret, size_t *n, uint32_t value)
{
	put16(ret, n, value >> 16);
	put16(ret, n, value & 0xffff);
}

size_t dns_write(const struct dns_query *q, enum dns_code code, uint32_t ip,
		 uint8_t ret[DNS_ANSWER_MAX])
{
	bool answers = code == DNS_OK && ip;
	size_t n = 0;

	put16(ret, &n, q->id);
	put16(ret, &n, QR | (q->recursion ? RD : 0) | RA | code);
	put16(ret, &n, q->question_n > 0);
	put16(ret, &n, answers);
	put16(ret, &n, 0);
	put16(ret, &n, q->edns);
	memcpy(ret + n, q->question, q->question_n);
	n += q->question_n;
	if (answers) {
		put16(ret, &n, POINTER_TO_QUESTION);
		put16(ret, &n, DNS_A);
		put16(ret, &n, IN);
		put32(ret, &n, DNS_TTL);
		put16(ret, &n, 4);
		put32(ret, &n, ip);
	}
	if (q->edns) {
		ret[n++] = 0;
		put16(ret, &n, OPT);
		put16(ret, &n, UDP_SIZE);
		put32(ret, &n, 0);
		put16(ret, &n, 0);
	}
	return n;
}
