#include "net/wire/addr.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "base/mem.h"

/* The first row that holds an address decides, so narrow ranges stand before wide ones. `never`:
 * no grant makes it reachable. */
struct range {
	const char *text;
	enum net_class c;
	bool never;
};

static const struct range ranges[] = {
	{ "255.255.255.255/32", NET_BROADCAST, true },
	{ "0.0.0.0/8", NET_UNSPECIFIED, true },
	{ "127.0.0.0/8", NET_LOOPBACK },
	{ "169.254.169.254/32", NET_METADATA },
	{ "169.254.169.253/32", NET_METADATA }, /* a cloud's resolver */
	{ "169.254.170.2/32", NET_METADATA }, /* credentials of a container */
	{ "169.254.0.0/16", NET_LINK_LOCAL },
	{ "100.100.100.200/32", NET_METADATA },
	{ "168.63.129.16/32", NET_METADATA },
	{ "192.0.0.192/32", NET_METADATA },
	{ "10.0.0.0/8", NET_PRIVATE },
	{ "172.16.0.0/12", NET_PRIVATE },
	{ "192.168.0.0/16", NET_PRIVATE },
	{ "100.64.0.0/10", NET_SHARED },
	{ "192.0.0.0/24", NET_RESERVED },
	{ "192.0.2.0/24", NET_DOCUMENTATION },
	{ "198.51.100.0/24", NET_DOCUMENTATION },
	{ "203.0.113.0/24", NET_DOCUMENTATION },
	{ "192.88.99.0/24", NET_6TO4 },
	{ "198.18.0.0/15", NET_BENCHMARK },
	{ "224.0.0.0/4", NET_MULTICAST, true },
	{ "240.0.0.0/4", NET_RESERVED, true },
	{ "::/128", NET_UNSPECIFIED, true },
	{ "::1/128", NET_LOOPBACK },
	{ "::ffff:0:0/96", NET_MAPPED },
	{ "::ffff:0:0:0/96", NET_TRANSLATED },
	{ "::/96", NET_COMPATIBLE },
	{ "64:ff9b::/96", NET_TRANSLATED },
	{ "64:ff9b:1::/48", NET_TRANSLATED },
	{ "100::/64", NET_RESERVED },
	{ "2001::/32", NET_TEREDO },
	{ "2001:db8::/32", NET_DOCUMENTATION },
	{ "2001:2::/48", NET_BENCHMARK },
	{ "2001::/23", NET_RESERVED },
	{ "2002::/16", NET_6TO4 },
	{ "3fff::/20", NET_DOCUMENTATION },
	{ "5f00::/16", NET_RESERVED },
	{ "fd00:ec2::254/128", NET_METADATA },
	{ "fd00:ec2::253/128", NET_METADATA },
	{ "fd20:ce::254/128", NET_METADATA },
	{ "fd00:42::42/128", NET_METADATA },
	{ "fc00::/7", NET_UNIQUE_LOCAL },
	{ "fe80::/10", NET_LINK_LOCAL },
	{ "fec0::/10", NET_SITE_LOCAL },
	{ "ff00::/8", NET_MULTICAST, true },
	{ "2000::/3", NET_PUBLIC },
	{ "::/0", NET_RESERVED, true }, /* what IANA has not given to anybody */
};

static unsigned addr_bits(const struct net_addr *a)
{
	return a->family == 4 ? 32 : 128;
}

static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	if (memcmp(a, b, whole) != 0)
		return false;
	return rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0;
}

bool net_cidr_has(const struct net_cidr *c, const struct net_addr *a)
{
	return c->addr.family == a->family && (a->family == 4 || a->family == 6) &&
	       c->bits <= addr_bits(a) && same_bits(c->addr.bytes, a->bytes, c->bits);
}

/* *ret: the range of the row. NULL: none has it, the address is a public one of IPv4. */
static const struct range *find_range(const struct net_addr *a, struct net_cidr *ret)
{
	static struct net_cidr parsed[ARRAY_LEN(ranges)];

	if (!parsed[0].addr.family) {
		for (size_t i = ARRAY_LEN(ranges); i-- > 0;)
			(void)net_cidr_parse(str_of(ranges[i].text), &parsed[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
		if (!net_cidr_has(&parsed[i], a))
			continue;
		*ret = parsed[i];
		return &ranges[i];
	}
	return NULL;
}

enum net_class net_addr_class(const struct net_addr *a)
{
	struct net_cidr c;
	const struct range *r = find_range(a, &c);

	if (r)
		return r->c;
	return a->family == 4 ? NET_PUBLIC : NET_UNSPECIFIED;
}

bool net_cidr_grants(const struct net_cidr *c, const struct net_addr *a)
{
	struct net_cidr special;
	const struct range *r = find_range(a, &special);

	if (!net_cidr_has(c, a))
		return false;
	if (!r || r->c == NET_PUBLIC)
		return true;
	return !r->never && c->bits >= special.bits;
}

const char *net_class_text(enum net_class c)
{
	static const char *const texts[NET_CLASSES] = {
		[NET_PUBLIC] = "a public address",
		[NET_UNSPECIFIED] = "the unspecified address",
		[NET_LOOPBACK] = "a loopback address",
		[NET_PRIVATE] = "a private address",
		[NET_SHARED] = "a carrier's shared address",
		[NET_LINK_LOCAL] = "a link-local address",
		[NET_METADATA] = "a cloud's metadata address",
		[NET_MULTICAST] = "a multicast address",
		[NET_BROADCAST] = "the broadcast address",
		[NET_DOCUMENTATION] = "an address for documentation",
		[NET_BENCHMARK] = "an address for benchmarks",
		[NET_RESERVED] = "a reserved address",
		[NET_UNIQUE_LOCAL] = "a unique local address",
		[NET_SITE_LOCAL] = "a site-local address",
		[NET_MAPPED] = "an IPv4-mapped address",
		[NET_COMPATIBLE] = "an IPv4-compatible address",
		[NET_TRANSLATED] = "a translated (NAT64) address",
		[NET_6TO4] = "a 6to4 address",
		[NET_TEREDO] = "a Teredo address",
	};

	return (unsigned)c < NET_CLASSES ? texts[c] : "an unknown address";
}

/* ---- notations ------------------------------------------------------------------------------ */

/* One part of IPv4 in C's notation of numbers; *at moves behind it. */
static bool parse_part(struct str s, size_t *at, uint64_t *ret)
{
	unsigned base = 10;
	size_t digits = 0, i = *at;
	uint64_t value = 0;

	if (i < s.n && s.p[i] == '0') {
		base = 8;
		digits = 1; /* the zero itself */
		i++;
		if (i < s.n && (s.p[i] == 'x' || s.p[i] == 'X')) {
			base = 16;
			digits = 0;
			i++;
		}
	}
	for (; i < s.n && s.p[i] != '.'; i++, digits++) {
		char c = s.p[i];
		unsigned d = c >= '0' && c <= '9' ? (unsigned)(c - '0')
			   : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
			   : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
						  : 99;

		if (d >= base || value > UINT32_MAX)
			return false;
		value = value * base + d;
	}
	*at = i;
	*ret = value;
	/* "0x" alone is 0 to some resolvers */
	return (digits > 0 || base == 16) && value <= UINT32_MAX;
}

static bool parse_v4(struct str s, struct net_addr *ret)
{
	uint64_t parts[4], value = 0;
	size_t n = 0, at = 0;

	if (s.n > 0 && s.p[s.n - 1] == '.')
		s.n--;
	do {
		if (n == 4 || !parse_part(s, &at, &parts[n++]))
			return false;
	} while (at++ < s.n);
	for (size_t i = 0; i + 1 < n; i++) {
		if (parts[i] > 255)
			return false;
		value |= parts[i] << (24 - 8 * i);
	}
	if (parts[n - 1] >> (8 * (5 - n)))
		return false;
	value |= parts[n - 1];
	*ret = (struct net_addr){ .family = 4,
				  .bytes = { (uint8_t)(value >> 24), (uint8_t)(value >> 16),
					     (uint8_t)(value >> 8), (uint8_t)value } };
	return true;
}

static bool parse_v6(struct str s, struct net_addr *ret)
{
	struct net_addr a = { .family = 6 };
	char text[INET6_ADDRSTRLEN];

	if (s.n >= 2 && s.p[0] == '[' && s.p[s.n - 1] == ']')
		s = (struct str){ s.p + 1, s.n - 2 };
	if (s.n == 0 || s.n >= sizeof(text) || memchr(s.p, 0, s.n))
		return false;
	memcpy(text, s.p, s.n);
	text[s.n] = '\0';
	if (inet_pton(AF_INET6, text, a.bytes) != 1)
		return false;
	*ret = a;
	return true;
}

bool net_addr_parse(struct str text, struct net_addr *ret)
{
	if (text.n == 0)
		return false;
	return memchr(text.p, ':', text.n) ? parse_v6(text, ret) : parse_v4(text, ret);
}

void net_addr_print(const struct net_addr *a, char ret[NET_ADDR_TEXT])
{
	if (!inet_ntop(a->family == 4 ? AF_INET : AF_INET6, a->bytes, ret, NET_ADDR_TEXT))
		ret[0] = '\0';
}

bool net_addr_same(const struct net_addr *a, const struct net_addr *b)
{
	return a->family == b->family && same_bits(a->bytes, b->bytes, addr_bits(a));
}

/* Dotted decimal alone, without zeros before: a grant is read by people. */
static bool parse_plain(struct str s, struct net_addr *ret)
{
	char text[NET_ADDR_TEXT];

	if (!net_addr_parse(s, ret))
		return false;
	if (ret->family == 6)
		return true;
	net_addr_print(ret, text);
	return str_is(s, text);
}

bool net_cidr_parse(struct str text, struct net_cidr *ret)
{
	const char *slash = text.n > 0 ? memchr(text.p, '/', text.n) : NULL;
	struct str addr = { text.p, slash ? (size_t)(slash - text.p) : text.n };
	struct str bits = { slash ? slash + 1 : NULL, slash ? text.n - addr.n - 1 : 0 };
	struct net_cidr c = { .bits = 0 };
	unsigned n = 0;

	if (!parse_plain(addr, &c.addr) || (slash && (bits.n == 0 || bits.n > 3)))
		return false;
	for (size_t i = 0; i < bits.n; i++) {
		if (bits.p[i] < '0' || bits.p[i] > '9' || (i > 0 && n == 0))
			return false;
		n = n * 10 + (unsigned)(bits.p[i] - '0');
	}
	if (!slash)
		n = addr_bits(&c.addr);
	if (n > addr_bits(&c.addr))
		return false;
	c.bits = (uint8_t)n;
	for (unsigned i = n; i < addr_bits(&c.addr); i++) {
		if (c.addr.bytes[i / 8] & (0x80 >> i % 8))
			return false;
	}
	*ret = c;
	return true;
}
