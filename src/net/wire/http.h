#pragma once
/*
 * HTTP rules of a grant: which requests its host may get. The first that matches decides. If a
 * grant has any and none matches, the request is denied. A path is compared as a server would
 * understand it, not as it is spelt: escapes are decoded first. Pure functions, for hub and egress
 * proxy.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

enum {
	NET_METHOD_MAX = 16, /* with the NUL */
	NET_PATTERN_MAX = 256, /* likewise */
	NET_PATH_READ_MAX = 4096, /* longer paths match no rule */
	NET_HTTP_EACH = 32, /* of one grant */
	NET_HTTP_TEXT = NET_METHOD_MAX + NET_PATTERN_MAX + 8,
};

enum net_http_then { NET_HTTP_DENY, NET_HTTP_ALLOW, NET_HTTP_ASK, NET_HTTP_THENS };
extern const char *const net_http_then_names[NET_HTTP_THENS];

/* Plain data; goes over the wire. */
struct net_http_rule {
	uint32_t rule; /* index of the net_rule */
	uint32_t then; /* enum net_http_then */
	char method[NET_METHOD_MAX]; /* "": any */
	char pattern[NET_PATTERN_MAX]; /* of the path; a '*' at its end stands for any rest */
};

/* method "" or "*": any. path "": any. The rule's index is 0. */
int net_http_make(enum net_http_then then, struct str method, struct str path,
		  struct net_http_rule *ret, struct err *e) MUST_USE;

/* "[allow|deny|ask] METHOD PATH, ..."; at most max. */
int net_http_parse(struct str text, struct net_http_rule *ret, size_t max, size_t *ret_n,
		   struct err *e) MUST_USE;
/* "HOST RULE, ...", or HOST alone, which has none. */
int net_http_split(struct str text, struct str *ret_host, struct net_http_rule *ret, size_t max,
		   size_t *ret_n, struct err *e) MUST_USE;
/* "deny POST /x*" */
void net_http_print(const struct net_http_rule *r, char ret[NET_HTTP_TEXT]);

/* The same as one word: "=deny,POST,/x*". */
void net_http_print_word(const struct net_http_rule *r, char ret[NET_HTTP_TEXT]);
int net_http_parse_word(struct str word, struct net_http_rule *ret, struct err *e) MUST_USE;

/* Both are the same but for their index. */
bool net_http_same(const struct net_http_rule *a, const struct net_http_rule *b);

/* Whether a request may pass, and why. */
struct net_http_decision {
	enum net_http_then then;
	int found; /* index of the rule that decided; -1: none matched */
	bool any; /* there are rules; if not, it is allowed */
	bool odd; /* servers could understand the path in several ways, so it is denied */
};

/* By the rules of net_rule i. path: of the target, without the query. Where an escaped slash,
 * parameters of a segment (";...") or a method in lower case leave two ways to understand a
 * request, the stricter decides. */
struct net_http_decision net_http_decide(const struct net_http_rule *http, size_t n, int i,
					 struct str method, struct str path);
