#include "http/client/address.h"

#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"

struct range4 {
	uint32_t base;
	unsigned bits;
};

#define IP4(a, b, c, d)                                                                            \
	((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

static const struct range4 special4[] = {
	{ IP4(0, 0, 0, 0), 8 }, /* this network */
	{ IP4(10, 0, 0, 0), 8 }, /* private */
	{ IP4(100, 64, 0, 0), 10 }, /* shared; a cloud's metadata service at 100.100.100.200 */
	{ IP4(127, 0, 0, 0), 8 }, /* loopback */
	{ IP4(168, 63, 129, 16), 32 }, /* a cloud's host, as seen by its guests */
	{ IP4(169, 254, 0, 0), 16 }, /* link-local; metadata services at 169.254.169.254 */
	{ IP4(172, 16, 0, 0), 12 }, /* private */
	{ IP4(192, 0, 0, 0), 24 }, /* protocol assignments; a metadata service at 192.0.0.192 */
	{ IP4(192, 0, 2, 0), 24 }, /* documentation */
	{ IP4(192, 52, 193, 0), 24 }, /* AMT, multicast */
	{ IP4(192, 88, 99, 0), 24 }, /* 6to4 relays */
	{ IP4(192, 168, 0, 0), 16 }, /* private */
	{ IP4(198, 18, 0, 0), 15 }, /* benchmarks */
	{ IP4(198, 51, 100, 0), 24 }, /* documentation */
	{ IP4(203, 0, 113, 0), 24 }, /* documentation */
	{ IP4(224, 0, 0, 0), 3 }, /* multicast, reserved, broadcast */
};

struct range6 {
	uint8_t base[16];
	unsigned bits;
};

/* Everything that is public is in this range … */
static const struct range6 unicast6 = { { 0x20 }, 3 };

/* … except these. */
static const struct range6 special6[] = {
	{ { 0x20, 0x01, 0x00 }, 23 }, /* protocol assignments: Teredo, ORCHID, benchmarks */
	{ { 0x20, 0x01, 0x0d, 0xb8 }, 32 }, /* documentation */
	{ { 0x20, 0x02 }, 16 }, /* 6to4 */
	{ { 0x3f, 0xfe }, 16 }, /* 6bone, returned */
	{ { 0x3f, 0xff, 0x00 }, 20 }, /* documentation */
};

static bool in6(const uint8_t a[16], const struct range6 *r)
{
	unsigned whole = r->bits / 8, rest = r->bits % 8;

	return memcmp(a, r->base, whole) == 0 &&
	       (rest == 0 || (a[whole] ^ r->base[whole]) >> (8 - rest) == 0);
}

static bool public4(uint32_t a)
{
	for (size_t i = 0; i < ARRAY_LEN(special4); i++) {
		if ((a ^ special4[i].base) >> (32 - special4[i].bits) == 0)
			return false;
	}
	return true;
}

/* ISATAP (RFC 5214): an interface identifier that contains an IPv4 address, under any prefix. */
static bool is_isatap(const uint8_t a[16])
{
	return (a[8] & ~2) == 0 && a[9] == 0 && a[10] == 0x5e && a[11] == 0xfe;
}

static bool public6(const uint8_t a[16])
{
	if (!in6(a, &unicast6) || is_isatap(a))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(special6); i++) {
		if (in6(a, &special6[i]))
			return false;
	}
	return true;
}

/* Copies the address, since a struct sockaddr * guarantees no alignment. */
static uint32_t bytes4(const struct sockaddr *a)
{
	struct sockaddr_in in;

	memcpy(&in, a, sizeof(in));
	return ntohl(in.sin_addr.s_addr);
}

static struct in6_addr bytes6(const struct sockaddr *a)
{
	struct sockaddr_in6 in;

	memcpy(&in, a, sizeof(in));
	return in.sin6_addr;
}

bool http_address_public(const struct sockaddr *a)
{
	struct in6_addr six;

	if (a->sa_family == AF_INET)
		return public4(bytes4(a));
	if (a->sa_family != AF_INET6)
		return false;
	six = bytes6(a);
	return public6(six.s6_addr);
}

bool http_address_loopback(const struct sockaddr *a)
{
	struct in6_addr six;

	if (a->sa_family == AF_INET)
		return bytes4(a) >> 24 == 127;
	if (a->sa_family != AF_INET6)
		return false;
	six = bytes6(a);
	return IN6_IS_ADDR_LOOPBACK(&six);
}
