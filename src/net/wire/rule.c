#include "net/wire/rule.h"

#include <stdio.h>

#include "base/mem.h"

enum { LABEL_MAX = 63 };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char rule_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Why a name is none; NULL: it is one. ret is lower case and NUL-terminated. */
static const char *check_host(struct str s, char ret[NET_HOST_MAX])
{
	size_t label = 0;
	bool digits = true; /* of the last label */
	struct net_addr a;

	if (net_addr_parse(s, &a))
		return "is an address; grant the name";
	if (s.n > 0 && s.p[s.n - 1] == '.')
		s.n--;
	if (s.n == 0)
		return "is empty";
	if (s.n >= NET_HOST_MAX)
		return "is longer than 253 characters";
	for (size_t i = 0; i < s.n; i++) {
		char c = rule_lower(s.p[i]);
		bool last = i + 1 == s.n || s.p[i + 1] == '.';

		if ((unsigned char)c >= 0x80)
			return "is not ASCII; write an international name as xn--...";
		ret[i] = c;
		if (c == '.') {
			if (label == 0)
				return "has an empty label";
			label = 0;
			digits = true;
			continue;
		}
		if (!(c >= 'a' && c <= 'z') && !is_digit(c) && c != '_' &&
		    (c != '-' || label == 0 || last))
			return "has a character that no host name has there";
		if (++label > LABEL_MAX)
			return "has a label of more than 63 characters";
		digits = digits && is_digit(c);
	}
	ret[s.n] = '\0';
	/* what browsers and resolvers may read as an address: "1.2.3.4.5", "a.0x7f" */
	if (digits)
		return "ends in a number, as only addresses do";
	for (size_t i = s.n - label; label > 2 && ret[i] == '0' && ret[i + 1] == 'x';) {
		size_t hex = strspn(ret + i + 2, "0123456789abcdef");

		if (ret[i + 2 + hex] == '\0')
			return "ends in a number, as only addresses do";
		break;
	}
	return NULL;
}

bool net_host_read(struct str text, char ret[NET_HOST_MAX])
{
	char host[NET_HOST_MAX];

	if (check_host(text, host))
		return false;
	memcpy(ret, host, strlen(host) + 1);
	return true;
}

int net_host_parse(struct str text, char ret[NET_HOST_MAX], struct err *e)
{
	char host[NET_HOST_MAX];
	const char *why = check_host(text, host);

	if (why)
		return err_set(e, ERR_INVALID, "host \"%.*s\" %s", STR_CUT(text, 80), why);
	memcpy(ret, host, strlen(host) + 1);
	return 0;
}

/* host is below the domain: not the domain itself. */
static bool is_below(const char *host, const char *domain)
{
	size_t n = strlen(host), m = strlen(domain);

	return n > m + 1 && host[n - m - 1] == '.' && memcmp(host + n - m, domain, m) == 0;
}

static bool is_or_below(const char *host, const char *domain)
{
	return strcmp(host, domain) == 0 || is_below(host, domain);
}

/* ---- rules ----------------------------------------------------------------------------------- */

bool net_port_read(struct str s, uint16_t *ret)
{
	unsigned port = 0;

	if (s.n == 0 || s.n > 5 || s.p[0] == '0')
		return false;
	for (size_t i = 0; i < s.n; i++) {
		if (!is_digit(s.p[i]))
			return false;
		port = port * 10 + (unsigned)(s.p[i] - '0');
	}
	if (port > UINT16_MAX)
		return false;
	*ret = (uint16_t)port;
	return true;
}

/* HOST[:PORT]; the host may be IPv6 with or without brackets. Without a port *ret_port is 0. */
static int split_port(struct str text, struct str *ret_host, uint16_t *ret_port, struct err *e)
{
	const char *end = text.n > 0 && text.p[0] == '[' ? memchr(text.p, ']', text.n) : NULL;
	const char *colon = NULL;
	size_t colons = 0;

	for (size_t i = end ? (size_t)(end - text.p) : 0; i < text.n; i++) {
		if (text.p[i] != ':')
			continue;
		colon = text.p + i;
		colons++;
	}
	*ret_port = 0;
	*ret_host = text;
	if (!colon || (!end && colons > 1)) /* that is IPv6 */
		return 0;
	ret_host->n = (size_t)(colon - text.p);
	if (!net_port_read((struct str){ colon + 1, text.n - ret_host->n - 1 }, ret_port))
		return err_set(e, ERR_INVALID, "\"%.*s\": a port is a number from 1 to 65535",
			       STR_CUT(text, 80));
	return 0;
}

/* [::1]/128 and ::1/128 are the same. */
static bool parse_range(struct str s, struct net_cidr *ret)
{
	char text[NET_ADDR_TEXT + 4];
	const char *end = s.n > 0 && s.p[0] == '[' ? memchr(s.p, ']', s.n) : NULL;
	size_t inner = end ? (size_t)(end - s.p) - 1 : 0;

	if (!end)
		return net_cidr_parse(s, ret);
	if (s.n - 2 >= sizeof(text))
		return false;
	memcpy(text, s.p + 1, inner);
	memcpy(text + inner, end + 1, s.n - inner - 2);
	return net_cidr_parse((struct str){ text, s.n - 2 }, ret) && ret->addr.family == 6;
}

static int check_reserved(const char *host, struct err *e)
{
	if (is_or_below(host, "localhost"))
		return err_set(e, ERR_INVALID, "\"%s\" is the sandbox itself and needs no grant",
			       host);
	if (is_or_below(host, NET_SERVICE_DOMAIN))
		return err_set(e, ERR_DENIED,
			       "\"%s\": services of the host are granted by its operator alone",
			       host);
	return 0;
}

static int parse_suffix(struct str host, struct net_rule *r, struct err *e)
{
	struct str suffix = { host.p + 2, host.n - 2 };

	if (net_host_parse(suffix, r->host, e) < 0 || check_reserved(r->host, e) < 0)
		return -1;
	if (!strchr(r->host, '.'))
		return err_set(e, ERR_INVALID, "\"*.%s\" is too wide: name a domain below it",
			       r->host);
	r->kind = NET_RULE_SUFFIX;
	return 0;
}

int net_rule_parse(struct str text, bool by_operator, struct net_rule *ret, struct err *e)
{
	struct net_rule r = { .kind = NET_RULE_NAME };
	struct str host;

	if (split_port(text, &host, &r.port, e) < 0)
		return -1;
	if (parse_range(host, &r.cidr)) {
		if (!by_operator)
			return err_set(e, ERR_DENIED,
				       "\"%.*s\": addresses are granted by the operator alone; "
				       "grant a name",
				       STR_CUT(text, 80));
		r.kind = NET_RULE_CIDR;
	} else if (str_starts(host, "*.")) {
		if (parse_suffix(host, &r, e) < 0)
			return -1;
	} else if (net_host_parse(host, r.host, e) < 0 || check_reserved(r.host, e) < 0) {
		return -1;
	}
	*ret = r;
	return 0;
}

static int parse_target(struct str s, struct net_rule *r, struct err *e)
{
	struct str host = s;
	struct net_cidr c;

	if (str_starts(s, "unix:/")) {
		struct str path = { s.p + 5, s.n - 5 };

		if (path.n >= sizeof(r->path) || memchr(path.p, 0, path.n))
			return err_set(e, ERR_INVALID,
				       "the path of a Unix socket has at most %zu bytes",
				       sizeof(r->path) - 1);
		memcpy(r->path, path.p, path.n);
		return 0;
	}
	if (net_port_read(s, &r->service_port)) {
		(void)net_addr_parse(STR_LIT("127.0.0.1"), &r->service);
		return 0;
	}
	if (split_port(s, &host, &r->service_port, e) < 0)
		return -1;
	if (!r->service_port || !parse_range(host, &c) ||
	    c.bits != (c.addr.family == 4 ? 32 : 128) || memchr(host.p, '/', host.n))
		return err_set(e, ERR_INVALID,
			       "\"%.*s\" is no service: write ADDRESS:PORT, PORT or unix:/PATH",
			       STR_CUT(s, 80));
	r->service = c.addr;
	return 0;
}

bool net_is_service(struct str text)
{
	static const char below[] = "." NET_SERVICE_DOMAIN ":";
	const char *colon = memrchr(text.p, ':', text.n);
	size_t n = colon ? (size_t)(colon + 1 - text.p) : 0;

	return n > strlen(below) && memcmp(colon + 1 - strlen(below), below, strlen(below)) == 0;
}

int net_rule_parse_service(struct str name, struct str target, struct net_rule *ret, struct err *e)
{
	struct net_rule r = { .kind = NET_RULE_SERVICE };
	struct str host;

	if (split_port(name, &host, &r.port, e) < 0 || net_host_parse(host, r.host, e) < 0)
		return -1;
	if (!r.port || !is_below(r.host, NET_SERVICE_DOMAIN))
		return err_set(e, ERR_INVALID,
			       "\"%.*s\": a service's name is NAME." NET_SERVICE_DOMAIN ":PORT",
			       STR_CUT(name, 80));
	if (parse_target(target, &r, e) < 0)
		return -1;
	*ret = r;
	return 0;
}

void net_rule_print(const struct net_rule *r, char ret[NET_RULE_TEXT])
{
	char port[8] = "", addr[NET_ADDR_TEXT];
	bool v6 = r->cidr.addr.family == 6;

	if (r->port)
		snprintf(port, sizeof(port), ":%u", r->port);
	if (r->kind != NET_RULE_CIDR) {
		snprintf(ret, NET_RULE_TEXT, "%s%.253s%s", r->kind == NET_RULE_SUFFIX ? "*." : "",
			 r->host, port);
		return;
	}
	net_addr_print(&r->cidr.addr, addr);
	if (r->cidr.bits == (v6 ? 128 : 32))
		snprintf(ret, NET_RULE_TEXT, "%s%s%s%s", v6 ? "[" : "", addr, v6 ? "]" : "", port);
	else
		snprintf(ret, NET_RULE_TEXT, "%s%s%s/%u%s", v6 ? "[" : "", addr, v6 ? "]" : "",
			 r->cidr.bits, port);
}

bool net_rule_same(const struct net_rule *a, const struct net_rule *b)
{
	if (a->kind != b->kind || a->port != b->port)
		return false;
	if (a->kind == NET_RULE_CIDR)
		return a->cidr.bits == b->cidr.bits && net_addr_same(&a->cidr.addr, &b->cidr.addr);
	if (strcmp(a->host, b->host) != 0)
		return false;
	return a->kind != NET_RULE_SERVICE ||
	       (a->service_port == b->service_port && strcmp(a->path, b->path) == 0 &&
		net_addr_same(&a->service, &b->service));
}

bool net_rule_names(const struct net_rule *r, const char *host)
{
	switch (r->kind) {
	case NET_RULE_NAME:
	case NET_RULE_SERVICE:
		return strcmp(r->host, host) == 0;
	case NET_RULE_SUFFIX:
		return is_below(host, r->host);
	default:
		return false;
	}
}

bool net_rule_meets(const struct net_rule *a, const struct net_rule *b)
{
	char below[NET_HOST_MAX + 2];

	if (a->port != b->port || a->kind == NET_RULE_CIDR || b->kind == NET_RULE_CIDR)
		return false;
	/* A label that no name has stands for any. */
	snprintf(below, sizeof(below), "%s%s", a->kind == NET_RULE_SUFFIX ? "*." : "", a->host);
	if (net_rule_names(b, below))
		return true;
	snprintf(below, sizeof(below), "%s%s", b->kind == NET_RULE_SUFFIX ? "*." : "", b->host);
	return net_rule_names(a, below);
}

int net_rules_find(const struct net_rule *rules, size_t n, const char *host, uint16_t port)
{
	int found = -1;

	for (size_t i = 0; i < n; i++) {
		if (rules[i].port != port || !net_rule_names(&rules[i], host))
			continue;
		if (rules[i].kind != NET_RULE_SUFFIX)
			return (int)i;
		if (found < 0 || strlen(rules[i].host) > strlen(rules[found].host))
			found = (int)i;
	}
	return found;
}

int net_rules_find_addr(const struct net_rule *rules, size_t n, const struct net_addr *a,
			uint16_t port)
{
	for (size_t i = 0; i < n; i++) {
		if (rules[i].kind == NET_RULE_CIDR && (!rules[i].port || rules[i].port == port) &&
		    net_cidr_grants(&rules[i].cidr, a))
			return (int)i;
	}
	return -1;
}
