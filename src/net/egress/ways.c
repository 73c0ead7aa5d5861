#include "net/egress/ways.h"

#include <string.h>

#include "base/base64.h"
#include "base/mem.h"

struct ways_split {
	struct net_rule below; /* the names under it; `host` is one of them, too */
	struct resolver *resolver;
};

struct ways {
	struct resolver *resolver;
	struct ways_split split[NW_SPLIT_MAX];
	size_t n_split;
	struct net_rule private[NW_NAMES_MAX], direct[NW_NAMES_MAX];
	size_t n_private, n_direct;
	struct ways_proxy proxy;
};

/* Takes n bytes from the front. */
static bool ways_take(struct str *rest, size_t n, const char **ret)
{
	if (rest->n < n)
		return false;
	*ret = rest->p;
	*rest = (struct str){ rest->p + n, rest->n - n };
	return true;
}

static bool ways_take_names(struct str *rest, size_t n, struct net_rule to[NW_NAMES_MAX])
{
	const char *from;

	if (n > NW_NAMES_MAX || !ways_take(rest, n * sizeof(*to), &from))
		return false;
	memcpy(to, from, n * sizeof(*to));
	for (size_t i = 0; i < n; i++) {
		if ((to[i].kind != NET_RULE_NAME && to[i].kind != NET_RULE_SUFFIX) ||
		    !memchr(to[i].host, 0, sizeof(to[i].host)))
			return false;
	}
	return true;
}

static int ways_take_splits(struct ways *w, uv_loop_t *loop, struct str *rest, size_t n,
			    struct err *e)
{
	const char *from;

	if (n > NW_SPLIT_MAX || !ways_take(rest, n * sizeof(struct nw_split), &from))
		return err_set(e, ERR_INVALID, "the hub's hello is malformed");
	for (size_t i = 0; i < n; i++) {
		struct nw_split s;
		struct ways_split *to = &w->split[i];

		memcpy(&s, from + i * sizeof(s), sizeof(s));
		if (!memchr(s.host, 0, sizeof(s.host)) || s.n == 0 || s.n > NW_RESOLVERS_MAX)
			return err_set(e, ERR_INVALID, "the hub's hello is malformed");
		to->below.kind = NET_RULE_SUFFIX;
		memcpy(to->below.host, s.host, sizeof(s.host));
		to->resolver = resolver_new(loop, s.servers, s.n, e);
		if (!to->resolver)
			return -1;
		w->n_split++;
	}
	return 0;
}

static int ways_take_proxy(struct ways *w, const struct nw_hello *m, struct str *rest,
			   struct err *e)
{
	autowipe struct buf text = BUF_INIT(2 * NW_AUTH_MAX);
	const char *auth;

	if (!memchr(m->proxy, 0, sizeof(m->proxy)) || m->n_auth > NW_AUTH_MAX ||
	    !ways_take(rest, m->n_auth, &auth))
		return err_set(e, ERR_INVALID, "the hub's hello is malformed");
	memcpy(w->proxy.host, m->proxy, sizeof(m->proxy));
	w->proxy.port = m->proxy_port;
	if (!m->n_auth)
		return 0;
	if (base64_encode(&text, (struct str){ auth, m->n_auth }, e) < 0)
		return -1;
	w->proxy.auth = secret_new(buf_str(&text), e);
	return w->proxy.auth ? 0 : -1;
}

struct ways *ways_new(uv_loop_t *loop, const struct nw_hello *m, struct str rest, struct err *e)
{
	autofree struct ways *w = mem_zalloc(sizeof(*w));

	if (!w)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	w->resolver = resolver_new(loop, m->resolvers, m->n_resolvers, e);
	if (!w->resolver || ways_take_splits(w, loop, &rest, m->n_split, e) < 0)
		return NULL; /* the process ends */
	if (!ways_take_names(&rest, m->n_private, w->private) ||
	    !ways_take_names(&rest, m->n_direct, w->direct))
		return err_set(e, ERR_INVALID, "the hub's hello is malformed"), NULL;
	w->n_private = m->n_private;
	w->n_direct = m->n_direct;
	return ways_take_proxy(w, m, &rest, e) < 0 ? NULL : take_ptr(w);
}

struct resolver *ways_resolver(const struct ways *w, const char *host)
{
	const struct ways_split *best = NULL;

	for (size_t i = 0; i < w->n_split; i++) {
		const struct ways_split *s = &w->split[i];

		if ((net_rule_names(&s->below, host) || strcmp(s->below.host, host) == 0) &&
		    (!best || strlen(s->below.host) > strlen(best->below.host)))
			best = s;
	}
	return best ? best->resolver : w->resolver;
}

static bool ways_name(const struct net_rule *rules, size_t n, const char *host)
{
	for (size_t i = 0; i < n; i++) {
		if (net_rule_names(&rules[i], host))
			return true;
	}
	return false;
}

bool ways_are_private(const struct ways *w, const char *host)
{
	return ways_name(w->private, w->n_private, host);
}

const struct ways_proxy *ways_proxy(const struct ways *w, const char *host)
{
	return w->proxy.host[0] && !ways_name(w->direct, w->n_direct, host) ? &w->proxy : NULL;
}
