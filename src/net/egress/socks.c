#include "net/egress/socks.h"

enum { VERSION = 5, NO_AUTHENTICATION = 0, NONE_ACCEPTABLE = 0xff, CONNECT = 1 };
enum { TYPE_IPV4 = 1, TYPE_NAME = 3, TYPE_IPV6 = 4 };

static unsigned at8(struct str s, size_t i)
{
	return (unsigned char)s.p[i];
}

enum socks_state socks_read_methods(struct str bytes, size_t *ret_n,
				    uint8_t ret[SOCKS_METHOD_BYTES])
{
	size_t n;

	ret[0] = VERSION;
	ret[1] = NONE_ACCEPTABLE;
	if (bytes.n < 2)
		return SOCKS_MORE;
	n = 2 + at8(bytes, 1);
	if (bytes.n < n)
		return SOCKS_MORE;
	*ret_n = n;
	if (at8(bytes, 0) != VERSION || !memchr(bytes.p + 2, NO_AUTHENTICATION, n - 2))
		return SOCKS_BAD;
	ret[1] = NO_AUTHENTICATION;
	return SOCKS_DONE;
}

static enum socks_state socks_bad(struct socks_request *r, enum socks_reply reply)
{
	r->reply = reply;
	return SOCKS_BAD;
}

/* A name with a NUL or a byte that would end or change it in a log is none. */
static enum socks_state take_name(struct str name, struct socks_request *r)
{
	for (size_t i = 0; i < name.n; i++) {
		if (name.p[i] <= 0x20 || name.p[i] >= 0x7f)
			return socks_bad(r, SOCKS_FAILED);
	}
	if (name.n == 0)
		return socks_bad(r, SOCKS_FAILED);
	memcpy(r->host, name.p, name.n);
	r->host[name.n] = '\0';
	return SOCKS_DONE;
}

enum socks_state socks_read_request(struct str bytes, struct socks_request *ret)
{
	struct net_addr a = { .family = 4 };
	size_t from = 4, n;
	unsigned type;

	if (bytes.n < 5)
		return SOCKS_MORE;
	if (at8(bytes, 0) != VERSION || at8(bytes, 2) != 0)
		return socks_bad(ret, SOCKS_FAILED);
	if (at8(bytes, 1) != CONNECT)
		return socks_bad(ret, SOCKS_COMMAND);
	type = at8(bytes, 3);
	n = type == TYPE_IPV4 ? 4 : type == TYPE_IPV6 ? 16 : at8(bytes, 4);
	from += type == TYPE_NAME;
	if (type != TYPE_IPV4 && type != TYPE_NAME && type != TYPE_IPV6)
		return socks_bad(ret, SOCKS_TYPE);
	if (bytes.n < from + n + 2)
		return SOCKS_MORE;
	ret->n = from + n + 2;
	ret->port = (uint16_t)(at8(bytes, from + n) << 8 | at8(bytes, from + n + 1));
	if (ret->port == 0)
		return socks_bad(ret, SOCKS_FAILED);
	bytes = (struct str){ bytes.p + from, n };
	if (type == TYPE_NAME)
		return take_name(bytes, ret);
	a.family = type == TYPE_IPV4 ? 4 : 6;
	memcpy(a.bytes, bytes.p, bytes.n);
	net_addr_print(&a, ret->host);
	return SOCKS_DONE;
}

void socks_write_reply(enum socks_reply reply, uint8_t ret[SOCKS_REPLY_BYTES])
{
	memset(ret, 0, SOCKS_REPLY_BYTES);
	ret[0] = VERSION;
	ret[1] = (uint8_t)reply;
	ret[3] = TYPE_IPV4;
}
