#pragma once
/*
 * Network grants: what a sandbox may reach. There are only rules that allow, so the list of them is
 * all that is allowed, and none can widen another. Pure functions, for hub and egress proxy.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "net/wire/addr.h"

enum {
	NET_HOST_MAX = 254, /* of a name, with the NUL */
	NET_PATH_MAX = 108, /* of a Unix socket, with the NUL, as sun_path has it */
	NET_RULE_TEXT = 300,
};

/* Names below it are services of the host, and nothing else can be. */
#define NET_SERVICE_DOMAIN "holt"

enum net_rule_kind {
	NET_RULE_NAME = 1, /* host is a name */
	NET_RULE_SUFFIX, /* host is "pypi.org" for "*.pypi.org": all names below it, at any depth */
	NET_RULE_CIDR, /* addresses; the operator's only */
	NET_RULE_SERVICE, /* host is "host.holt"; the operator's only */
};

/* Plain data; goes over the wire. A service is at `service` and service_port, or at the Unix socket
 * `path` if that is not empty. */
struct net_rule {
	uint32_t kind; /* enum net_rule_kind */
	uint16_t port; /* 0: any; only with a CIDR */
	uint16_t service_port;
	struct net_cidr cidr;
	struct net_addr service;
	char host[NET_HOST_MAX];
	char path[NET_PATH_MAX];
};

/* The form in which names are kept and compared: lower case, no dot at the end. Labels of letters,
 * digits, hyphens and underscores. What is an address in any notation, or ends in a number as only
 * those do, is no name. ret is written only on success. */
int net_host_parse(struct str text, char ret[NET_HOST_MAX], struct err *e) MUST_USE;

/* The same without a message: what comes from a sandbox. */
bool net_host_read(struct str text, char ret[NET_HOST_MAX]);

/* A decimal number from 1 to 65535, without zeros before it. */
bool net_port_read(struct str text, uint16_t *ret);

/* HOST[:PORT], where HOST is a name, *.SUFFIX or, if it is by the operator, ADDRESS, ADDRESS/BITS
 * or [ADDRESS6][/BITS]. Without a port the rule's is 0. No service. */
int net_rule_parse(struct str text, bool by_operator, struct net_rule *ret, struct err *e) MUST_USE;

/* Whether a rule's text is of a service: NAME.holt:PORT. */
bool net_is_service(struct str text);

/* NAME.holt:PORT, which is TARGET: ADDRESS:PORT of the host, PORT (of 127.0.0.1), or
 * unix:/ABSOLUTE/PATH. */
int net_rule_parse_service(struct str name, struct str target, struct net_rule *ret,
			   struct err *e) MUST_USE;

/* "*.pypi.org:443": as net_rule_parse() takes it. */
void net_rule_print(const struct net_rule *r, char ret[NET_RULE_TEXT]);

/* Both kinds of rule allow the same. Targets of services count. */
bool net_rule_same(const struct net_rule *a, const struct net_rule *b);

/* The name, as net_host_parse() makes it, is one of the rule's (NAME, SUFFIX, SERVICE). */
bool net_rule_names(const struct net_rule *r, const char *host);

/* Some name at some port is one of both. */
bool net_rule_meets(const struct net_rule *a, const struct net_rule *b);

/* The rule that grants a name at a port: the one of exactly this name, else the one with the
 * longest suffix. -1: none. */
int net_rules_find(const struct net_rule *rules, size_t n, const char *host, uint16_t port);

/* The rule that grants an address at a port by CIDR. -1: none. */
int net_rules_find_addr(const struct net_rule *rules, size_t n, const struct net_addr *a,
			uint16_t port);
