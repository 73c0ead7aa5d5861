#pragma once
/*
 * Addresses of the internet: their notations, and what kind of host stands behind one. A program
 * that may reach a name must not reach the host itself, its neighbours or the cloud's metadata
 * by it, so each address that a name resolves to is classified before it is dialled. Pure
 * functions, for hub and egress proxy.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum { NET_ADDR_TEXT = 48 };

/* Plain data; goes over the wire. IPv4 has 4 bytes, in network order. */
struct net_addr {
	uint8_t family; /* 4, 6; 0: none */
	uint8_t bytes[16];
};

/* The address and how many of its first bits count; the others are 0. */
struct net_cidr {
	struct net_addr addr;
	uint8_t bits;
};

/* From the special-purpose registries of IANA (RFC 6890 and its updates). */
enum net_class {
	NET_PUBLIC,
	NET_UNSPECIFIED, /* 0.0.0.0/8 and ::, which Linux takes for the host itself */
	NET_LOOPBACK,
	NET_PRIVATE, /* RFC 1918 */
	NET_SHARED, /* carrier-grade NAT, RFC 6598 */
	NET_LINK_LOCAL,
	NET_METADATA, /* of clouds: 169.254.169.254, fd00:ec2::254 and their likes */
	NET_MULTICAST,
	NET_BROADCAST,
	NET_DOCUMENTATION,
	NET_BENCHMARK,
	NET_RESERVED,
	NET_UNIQUE_LOCAL, /* RFC 4193 */
	NET_SITE_LOCAL,
	NET_MAPPED, /* ::ffff:0:0/96 */
	NET_COMPATIBLE, /* ::/96 */
	NET_TRANSLATED, /* NAT64: 64:ff9b::/96, 64:ff9b:1::/48, and SIIT */
	NET_6TO4,
	NET_TEREDO,
	NET_CLASSES
};

enum net_class net_addr_class(const struct net_addr *a);

/* "a private address": borrowed for ever. */
const char *net_class_text(enum net_class c);

/* Any notation that a resolver or a URL parser takes for an address: four parts or fewer, each
 * decimal, octal or hex; IPv6 with or without brackets, without a zone. */
bool net_addr_parse(struct str text, struct net_addr *ret);

/* RFC 5952, without brackets. */
void net_addr_print(const struct net_addr *a, char ret[NET_ADDR_TEXT]);

bool net_addr_same(const struct net_addr *a, const struct net_addr *b);

/* ADDRESS/BITS, in dotted decimal or IPv6; an address alone has all bits. Bits behind must be 0. */
bool net_cidr_parse(struct str text, struct net_cidr *ret);

bool net_cidr_has(const struct net_cidr *c, const struct net_addr *a);

/* Whether a grant of c is one of the address. A special address is only granted by a range that
 * lies in its own: 0.0.0.0/0 grants public addresses, 10.1.0.0/16 private ones. Multicast,
 * broadcast, unspecified and unassigned addresses are never granted. */
bool net_cidr_grants(const struct net_cidr *c, const struct net_addr *a);
