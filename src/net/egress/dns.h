#pragma once
/*
 * Queries of the DNS (RFC 1035) and answers to them that have at most one address. Pure functions
 * over bytes that strangers wrote.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "net/wire/rule.h"

enum {
	DNS_ANSWER_MAX = 320, /* a question, an address, an OPT record */
	DNS_TTL = 5, /* seconds */
	DNS_A = 1,
	DNS_AAAA = 28,
	DNS_IXFR = 251, /* and from there to ANY: what asks for more than a record */
	DNS_ANY = 255,
};

enum dns_code {
	DNS_OK = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5,
};

struct dns_query {
	uint16_t id, type, class;
	bool recursion, edns;
	bool is_host; /* the name has the form of a host's */
	char name[NET_HOST_MAX]; /* lower case; cut and cleaned if it is no host's */
	uint8_t question[260]; /* as it came, for the answer; 0 bytes if it could not be read */
	uint16_t question_n;
};

/* DNS_OK, or what to answer. -1: it is to be ignored, since it is no query or has no header. */
int dns_read(struct str msg, struct dns_query *ret);

/* Bytes of the answer. ip: an address in host order; 0: none. */
size_t dns_write(const struct dns_query *q, enum dns_code code, uint32_t ip,
		 uint8_t ret[DNS_ANSWER_MAX]);
