#include "cli/grants/grants.h"

#include <stdlib.h>
#include <string.h>

#include "op/network.h"

static int add_service(struct grants *to, struct str text, struct err *e)
{
	struct net_http_rule http[NET_HTTP_EACH];
	char printed[NET_RULE_TEXT];
	struct str name;
	size_t n;

	if (net_http_split(text, &name, http, NET_HTTP_EACH, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < to->n_services; i++) {
		net_rule_print(&to->services[i], printed);
		if (str_is(name, printed))
			return net_grant_add(&to->allow, &to->services[i], http, n, e);
	}
	return err_set(e, ERR_INVALID, "--allow %.*s: no --service has that name", STR_ARG(name));
}

static int read_allow(const struct option_list *l, const struct config_file *f, struct grants *to,
		      struct err *e)
{
	for (size_t i = 0; i < l->n; i++) {
		struct str text = str_of(l->p[i]);

		if (net_is_service(text)) {
			if (add_service(to, text, e) < 0)
				return -1;
		} else if (network_rules(f, text, &to->allow, e) < 0) {
			return err_wrap(e, "--allow");
		}
	}
	return 0;
}

static int read_services(const struct option_list *l, struct grants *to, struct err *e)
{
	for (size_t i = 0; i < l->n; i++) {
		const char *equals = strchr(l->p[i], '=');

		if (!equals)
			return err_set(e, ERR_INVALID, "--service %s: write NAME.holt:PORT=TARGET",
				       l->p[i]);
		if (net_rule_parse_service((struct str){ l->p[i], (size_t)(equals - l->p[i]) },
					   str_of(equals + 1), &to->services[to->n_services],
					   e) < 0)
			return err_wrap(e, "--service");
		to->n_services++;
	}
	return 0;
}

/* Any address, with or without a port: a rule's notation. */
static int read_resolvers(const struct option_list *l, struct grants *to, struct err *e)
{
	for (size_t i = 0; i < l->n; i++) {
		struct net_rule r;

		if (i == NW_RESOLVERS_MAX)
			return err_set(e, ERR_LIMIT, "--resolver: at most %d", NW_RESOLVERS_MAX);
		if (net_rule_parse(str_of(l->p[i]), true, &r, e) < 0 || r.kind != NET_RULE_CIDR ||
		    r.cidr.bits != (r.cidr.addr.family == 4 ? 32 : 128))
			return err_set(e, ERR_INVALID, "--resolver %s: an address is needed",
				       l->p[i]);
		to->resolvers[to->n_resolvers++] = (struct nw_resolver){ r.cidr.addr, r.port };
	}
	return 0;
}

int grants_read(const struct network_options *o, const struct config_file *f, struct grants *ret,
		struct err *e)
{
	*ret = (struct grants){ .services = calloc(o->services.n + 1, sizeof(*ret->services)) };
	if (!ret->services)
		return err_set(e, ERR_LIMIT, "out of memory");
	ret->way = way_read(f, e);
	if (!ret->way || net_grant_init(&ret->allow, e) < 0)
		return -1;
	return read_services(&o->services, ret, e) < 0 ||
			       read_resolvers(&o->resolvers, ret, e) < 0 ||
			       read_allow(&o->allow, f, ret, e) < 0
		     ? -1
		     : 0;
}

/* The authority that a sandbox needs for it is the hub's to make. */
static int check_http(const struct net_grant *g, struct err *e)
{
	const struct net_rule *r;
	char text[NET_RULE_TEXT];

	if (!net_grant_ends_tls(g, NET_TLS_SURE, &r))
		return 0;
	net_rule_print(r, text);
	return err_set(
		e, ERR_UNSUPPORTED,
		"--allow: HTTP rules of %.100s need a hub, since TLS ends in its proxy then: use "
		"`holt up` and `holt exec`, or port 80",
		text);
}

int grants_read_own(const struct network_options *o, const char *config, struct grants *ret,
		    struct err *e)
{
	AUTO(config_unref) struct config *presets = NULL;

	if (o->allow.n && !(presets = config_find(config, e)))
		return -1;
	return grants_read(o, presets ? config_file(presets) : NULL, ret, e) < 0
		     ? -1
		     : check_http(&ret->allow, e);
}

int grants_give(const struct grants *g, const struct grants_to *to, struct nets **nets,
		struct net **net, net_cb on_granted, void *arg, struct err *e)
{
	struct nets_options o = { .way = g->way, .n_resolvers = g->n_resolvers };

	memcpy(o.resolvers, g->resolvers, sizeof(o.resolvers));
	if (!*nets)
		*nets = nets_new(to->loop, to->box, &o, e);
	*net = *nets ? net_new(*nets, to->sandbox, arg, e) : NULL;
	if (!*net)
		return -1;
	net_grant_start(*net, &g->allow, on_granted, arg);
	return 0;
}

void grants_fini(struct grants *g)
{
	net_grant_fini(&g->allow);
	free(g->services);
	way_free(g->way);
}
