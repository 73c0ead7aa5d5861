#include "net/wire/grant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/wire/wire.h"

int net_grant_init(struct net_grant *g, struct err *e)
{
	/* not cleared: that touches 260 KiB, and most grants have a few rules or none */
	*g = (struct net_grant){ .rules = malloc(NW_RULES_MAX * sizeof(*g->rules)),
				 .http = malloc(NW_HTTP_MAX * sizeof(*g->http)) };
	if (g->rules && g->http)
		return 0;
	net_grant_fini(g);
	return err_set(e, ERR_LIMIT, "out of memory");
}

void net_grant_fini(struct net_grant *g)
{
	free(g->rules);
	free(g->http);
	*g = (struct net_grant){ .n = 0 };
}

const struct net_http_rule *net_grant_http(const struct net_grant *g, size_t i, size_t *ret_n)
{
	size_t from = 0, end;

	while (from < g->n_http && g->http[from].rule != i)
		from++;
	for (end = from; end < g->n_http && g->http[end].rule == i;)
		end++;
	*ret_n = end - from;
	return *ret_n ? &g->http[from] : NULL;
}

static bool same_http(const struct net_http_rule *a, size_t n_a, const struct net_http_rule *b,
		      size_t n_b)
{
	for (size_t i = 0; n_a == n_b && i < n_a; i++) {
		if (!net_http_same(&a[i], &b[i]))
			return false;
	}
	return n_a == n_b;
}

int net_grant_add(struct net_grant *g, const struct net_rule *r, const struct net_http_rule *http,
		  size_t n_http, struct err *e)
{
	char text[NET_RULE_TEXT];
	size_t n;

	for (size_t i = 0; i < g->n; i++) {
		const struct net_http_rule *had = net_grant_http(g, i, &n);

		if (!net_rule_same(r, &g->rules[i]))
			continue;
		if (same_http(had, n, http, n_http))
			return 0;
		net_rule_print(r, text);
		return err_set(e, ERR_INVALID,
			       "%s is granted twice, with different HTTP rules: put them into one "
			       "list",
			       text);
	}
	if (g->n == NW_RULES_MAX || n_http > NW_HTTP_MAX - g->n_http)
		return err_set(e, ERR_LIMIT, "network: at most %d rules and %d HTTP rules",
			       NW_RULES_MAX, NW_HTTP_MAX);
	for (size_t i = 0; i < n_http; i++) {
		g->http[g->n_http] = http[i];
		g->http[g->n_http++].rule = (uint32_t)g->n;
	}
	g->rules[g->n++] = *r;
	return 0;
}

/* The rule of most that allows at least the names or addresses of r. */
static int find_cover(const struct net_rule *r, const struct net_grant *most)
{
	char host[NET_HOST_MAX + 2];

	for (size_t i = 0; r->kind == NET_RULE_CIDR && i < most->n; i++) {
		if (net_rule_same(r, &most->rules[i]))
			return (int)i;
	}
	if (r->kind == NET_RULE_CIDR)
		return -1;
	/* A label that no name has stands for any. */
	snprintf(host, sizeof(host), "%s%s", r->kind == NET_RULE_SUFFIX ? "*." : "", r->host);
	return net_rules_find(most->rules, most->n, host, r->port);
}

/* A rule of most that has HTTP rules for names below r, which g has not. -1: none. */
static int find_narrower(const struct net_grant *g, const struct net_rule *r,
			 const struct net_grant *most)
{
	for (size_t i = 0; r->kind == NET_RULE_SUFFIX && i < most->n; i++) {
		const struct net_rule *m = &most->rules[i];
		size_t n, n_g = 0;
		const struct net_http_rule *http = net_grant_http(most, i, &n), *has = NULL;

		if (n == 0 || m->port != r->port || m->kind == NET_RULE_CIDR ||
		    !net_rule_names(r, m->host))
			continue;
		for (size_t k = 0; k < g->n && !has; k++) {
			if (net_rule_same(&g->rules[k], m))
				has = net_grant_http(g, k, &n_g);
		}
		if (!same_http(has, n_g, http, n))
			return (int)i;
	}
	return -1;
}

bool net_grant_is_within(const struct net_grant *g, size_t i, const struct net_grant *most,
			 int *ret_of)
{
	int cover = find_cover(&g->rules[i], most);
	const struct net_http_rule *asked, *allowed;
	size_t n_asked, n_allowed;

	*ret_of = -1;
	if (cover < 0)
		return false;
	*ret_of = find_narrower(g, &g->rules[i], most);
	if (*ret_of >= 0)
		return false;
	asked = net_grant_http(g, i, &n_asked);
	allowed = net_grant_http(most, (size_t)cover, &n_allowed);
	if (n_allowed == 0 || same_http(asked, n_asked, allowed, n_allowed))
		return true;
	*ret_of = cover;
	return false;
}

bool net_grant_ends_tls(const struct net_grant *g, enum net_tls how, const struct net_rule **ret)
{
	for (size_t i = 0; i < g->n_http; i++) {
		const struct net_rule *r = &g->rules[g->http[i].rule];

		if ((r->kind != NET_RULE_NAME && r->kind != NET_RULE_SUFFIX) ||
		    (how == NET_TLS_SURE ? r->port != 443 : r->port == 80))
			continue;
		*ret = r;
		return true;
	}
	return false;
}

int net_grant_print(const struct net_grant *g, struct buf *to, struct err *e)
{
	char text[NET_RULE_TEXT], word[NET_HTTP_TEXT];

	for (size_t i = 0; i < g->n; i++) {
		size_t n;
		const struct net_http_rule *http = net_grant_http(g, i, &n);

		net_rule_print(&g->rules[i], text);
		if (buf_addf(to, e, "%s%s", to->n ? " " : "", text) < 0)
			return -1;
		for (size_t k = 0; k < n; k++) {
			net_http_print_word(&http[k], word);
			if (buf_addf(to, e, " %s", word) < 0)
				return -1;
		}
	}
	return 0;
}
