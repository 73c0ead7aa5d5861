#include "net/egress/internal.h"

#include <inttypes.h>
#include <stdio.h>

#include "net/egress/vault.h"

struct sandbox *sandbox_find(struct egress *g, uint64_t key)
{
	struct sandbox *s = g->sandboxes;

	while (s && s->key != key)
		s = s->next;
	return s;
}

static struct sandbox *sandbox_new(struct egress *g, uint64_t key)
{
	struct sandbox *s = mem_zalloc(sizeof(*s));
	const struct nw_limits *l = &g->limits;

	if (!s)
		return NULL;
	s->of = g;
	s->key = key;
	bucket_init(&s->new_flows, l->flows_per_s, l->flows_per_s);
	bucket_init(&s->queries, l->queries_per_s, l->queries_per_s);
	bucket_init(&s->tokens, 1, TOKENS_MOST * TOKENS_COST);
	bucket_init(&s->bytes, l->bytes_per_s, l->bytes_per_s);
	s->next = g->sandboxes;
	g->sandboxes = s;
	return s;
}

int sandbox_grant(struct egress *g, const struct nw_grant *m, const struct net_rule *rules,
		  const struct net_http_rule *http, struct err *e)
{
	autofree struct net_rule *new_rules = calloc(m->n_rules + 1, sizeof(*rules));
	autofree struct net_http_rule *new_http = calloc(m->n_http + 1, sizeof(*http));
	autofree struct net_rule *old = NULL;
	struct sandbox *s = sandbox_find(g, m->key);

	if (!s && new_rules && new_http)
		s = sandbox_new(g, m->key);
	if (!s || !new_rules || !new_http)
		return err_set(e, ERR_LIMIT, "the egress proxy has no memory for more grants");
	memcpy(new_rules, rules, m->n_rules * sizeof(*rules));
	memcpy(new_http, http, m->n_http * sizeof(*http));
	memcpy(s->id, m->id, sizeof(s->id));
	old = s->rules;
	s->rules = take_ptr(new_rules);
	s->n_rules = m->n_rules;
	free(s->http);
	s->http = take_ptr(new_http);
	s->n_http = m->n_http;
	s->n_denied = 0;
	for (struct flow *f = s->flows, *next; f; f = next) {
		next = flow_next(f);
		flow_check_again(f, old);
	}
	wild_drop_ungranted(s);
	listener_close_ungranted(s);
	return 0;
}

void sandbox_bind(struct sandbox *s, struct vault *secrets, bool renews)
{
	bool goes_on = renews && s->vault && secrets && vault_renew(secrets, s->vault);

	for (struct flow *f = s->flows, *next; f && !goes_on; f = next) {
		next = flow_next(f);
		if (flow_is_bound(f))
			flow_close(f, NW_REASON_REVOKED);
	}
	vault_free(s->vault);
	s->vault = secrets;
}

void sandbox_drop(struct egress *g, uint64_t key)
{
	struct sandbox **at = &g->sandboxes, *s;

	while (*at && (*at)->key != key)
		at = &(*at)->next;
	s = *at;
	if (!s)
		return;
	listener_close_all(s);
	while (s->flows)
		flow_close(s->flows, NW_REASON_DROPPED);
	stub_close_all(s);
	wild_close_all(s);
	*at = s->next;
	vault_free(s->vault);
	free(s->rules);
	free(s->http);
	free(s);
}

struct nw_flow sandbox_event(const struct sandbox *s, enum nw_flow_what what, enum nw_flow_by by,
			     enum nw_reason reason)
{
	return (struct nw_flow){ .h.type = NW_FLOW,
				 .key = s->key,
				 .what = what,
				 .by = by,
				 .reason = reason,
				 .rule = -1 };
}

void sandbox_list_rules(const struct sandbox *s, char *ret, size_t size)
{
	char text[NET_RULE_TEXT];
	size_t n = 0, i = 0;

	snprintf(ret, size, "nothing");
	for (; i < s->n_rules; i++) {
		net_rule_print(&s->rules[i], text);
		if (n + strlen(text) + sizeof(", and 1000 more") > size)
			break;
		n += (size_t)snprintf(ret + n, size - n, "%s%s", i ? ", " : "", text);
	}
	if (i > 0 && i < s->n_rules)
		snprintf(ret + n, size - n, " and %zu more", s->n_rules - i);
}
