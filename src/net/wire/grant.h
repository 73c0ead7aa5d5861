#pragma once
/* All that a sandbox is granted: rules and their HTTP rules. */
#include "base/buf.h"
#include "net/wire/http.h"
#include "net/wire/rule.h"

/* Both are owned where net_grant_init() has made it, else borrowed. */
struct net_grant {
	struct net_rule *rules;
	size_t n; /* at most NW_RULES_MAX */
	struct net_http_rule *http; /* in the order of their rules */
	size_t n_http; /* at most NW_HTTP_MAX */
};

/* Room for as many as there can be. */
int net_grant_init(struct net_grant *g, struct err *e) MUST_USE;
void net_grant_fini(struct net_grant *g); /* of zeros, too */
#define autogrant __attribute__((cleanup(net_grant_fini)))

/* Adds a rule with its HTTP rules, whose indexes don't matter. Idempotent. ERR_INVALID: the same
 * rule is there with others. ERR_LIMIT. */
int net_grant_add(struct net_grant *g, const struct net_rule *r, const struct net_http_rule *http,
		  size_t n_http, struct err *e) MUST_USE;

/* The HTTP rules of rule i: *ret_n of them, which stand one behind the other. */
const struct net_http_rule *net_grant_http(const struct net_grant *g, size_t i, size_t *ret_n);

/* Whether all that rule i of g allows, most allows as well. ret_of: the rule of most that covers it
 * but has other HTTP rules; -1: none. */
bool net_grant_is_within(const struct net_grant *g, size_t i, const struct net_grant *most,
			 int *ret_of);

/* Whether HTTP rules are for a host that may speak TLS, which has to end in the proxy then; at any
 * port but 80, or at 443 alone. *ret: that rule. */
enum net_tls { NET_TLS_MAYBE, NET_TLS_SURE };
bool net_grant_ends_tls(const struct net_grant *g, enum net_tls how, const struct net_rule **ret);

/* Words with single spaces between: each rule, and behind it its HTTP rules. */
int net_grant_print(const struct net_grant *g, struct buf *to, struct err *e) MUST_USE;
