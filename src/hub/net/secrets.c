/* The secrets of a sandbox on their way to the proxy. Between that they are one message in locked
 * memory, which a new proxy gets again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hub/net/internal.h"

static int add_secret(const struct net_secret *s, struct buf *to, struct err *e)
{
	struct nw_secret m = { .n_hosts = (uint32_t)s->n_hosts,
			       .uses = s->uses,
			       .n_value = (uint32_t)s->value.n,
			       .n_trust = (uint32_t)s->trust.n };

	if (s->name.n >= sizeof(m.name) || s->placeholder.n >= sizeof(m.placeholder) ||
	    s->n_hosts > NW_SECRET_HOSTS_MAX)
		return err_set(e, ERR_BUG, "a secret for the egress proxy");
	memcpy(m.name, s->name.p, s->name.n);
	memcpy(m.placeholder, s->placeholder.p, s->placeholder.n);
	return buf_add(to, &m, sizeof(m), e);
}

static int add_all(const struct net_secrets *s, struct buf *to, struct err *e)
{
	const struct nw_secrets m = { .h = { .type = NW_SECRETS },
				      .n = (uint32_t)s->n,
				      .n_exchanges = (uint32_t)s->n_exchanges,
				      .n_ca_key = (uint32_t)s->ca_key.n,
				      .n_ca = (uint32_t)s->ca.n };

	if (buf_add(to, &m, sizeof(m), e) < 0)
		return -1;
	for (size_t i = 0; i < s->n; i++) {
		if (add_secret(&s->p[i], to, e) < 0)
			return -1;
	}
	if (buf_add(to, s->exchanges, s->n_exchanges * sizeof(*s->exchanges), e) < 0)
		return -1;
	for (size_t i = 0; i < s->n; i++) {
		if (buf_add(to, s->p[i].hosts, s->p[i].n_hosts * sizeof(*s->p[i].hosts), e) < 0)
			return -1;
	}
	if (buf_add(to, s->ca_key.p, s->ca_key.n, e) < 0 || buf_add(to, s->ca.p, s->ca.n, e) < 0)
		return -1;
	for (size_t i = 0; i < s->n; i++) {
		if (buf_add(to, s->p[i].value.p, s->p[i].value.n, e) < 0 ||
		    buf_add(to, s->p[i].trust.p, s->p[i].trust.n, e) < 0)
			return -1;
	}
	return 0;
}

int secrets_pack(const struct net_secrets *s, struct secret **ret, struct err *e)
{
	autowipe struct buf b = BUF_INIT(NW_MAX);
	struct err full = ERR_INIT;

	if (s->n == 0 && s->ca_key.n == 0) {
		*ret = NULL;
		return 0;
	}
	if (s->n > NW_SECRETS_MAX || s->n_exchanges > NW_EXCHANGES_MAX)
		return err_set(e, ERR_LIMIT,
			       "at most %d secrets with hosts, where each token of a log-in is one",
			       NW_SECRETS_MAX);
	/* Once, so that growing leaves no copies behind. */
	if (!buf_reserve(&b, NW_MAX, e))
		return -1;
	if (add_all(s, &b, &full) < 0)
		return err_set(e, ERR_LIMIT,
			       "the secrets of a sandbox, with the certificates for their hosts, "
			       "have more than %d KiB",
			       NW_MAX / 1024);
	*ret = secret_new(buf_str(&b), e);
	return *ret ? 0 : -1;
}

void secrets_send(struct nets *all, uint64_t key, uint32_t seq, const struct secret *packed,
		  bool renews)
{
	struct nw_secrets m = { .h = { NW_SECRETS, seq }, .key = key };
	struct str bytes = packed ? secret_expose(packed, "handed to the egress proxy")
				  : (struct str){ (const char *)&m, sizeof(m) };
	autowipe struct buf b = BUF_INIT(NW_MAX);
	char *at;
	struct err e;

	at = buf_reserve(&b, bytes.n, &e);
	if (!at)
		abort(); /* out of memory: the proxy would keep what is revoked */
	memcpy(at, bytes.p, bytes.n);
	memcpy(&m, at, sizeof(m));
	m.h.seq = seq;
	m.key = key;
	m.renews = renews;
	memcpy(at, &m, sizeof(m));
	buf_advance(&b, bytes.n);
	proxy_send(all, b.p, b.n, NULL, 0);
}

/* ---- log-ins ------------------------------------------------------------------------------- */

/* A packed message, taken apart again. */
struct unpacked {
	struct net_secrets all;
	struct net_secret p[NW_SECRETS_MAX];
	struct nw_secret heads[NW_SECRETS_MAX];
	struct net_rule hosts[NW_SECRETS_MAX][NW_SECRET_HOSTS_MAX];
	struct nw_exchange exchanges[NW_EXCHANGES_MAX];
};

static struct str cut(struct str *s, size_t n)
{
	struct str ret = { s->p, n };

	s->p += n;
	s->n -= n;
	return ret;
}

/* It was packed here, so all of its lengths are right. */
static void unpack(const struct secret *packed, struct unpacked *u)
{
	struct str rest = secret_expose(packed, "taken apart for a change");
	struct nw_secrets m;

	memcpy(&m, cut(&rest, sizeof(m)).p, sizeof(m));
	u->all = (struct net_secrets){
		.p = u->p, .n = m.n, .exchanges = u->exchanges, .n_exchanges = m.n_exchanges
	};
	memcpy(u->heads, cut(&rest, m.n * sizeof(*u->heads)).p, m.n * sizeof(*u->heads));
	memcpy(u->exchanges, cut(&rest, m.n_exchanges * sizeof(*u->exchanges)).p,
	       m.n_exchanges * sizeof(*u->exchanges));
	for (size_t i = 0; i < m.n; i++) {
		size_t n = u->heads[i].n_hosts * sizeof(**u->hosts);

		memcpy(u->hosts[i], cut(&rest, n).p, n);
	}
	u->all.ca_key = cut(&rest, m.n_ca_key);
	u->all.ca = cut(&rest, m.n_ca);
	for (size_t i = 0; i < m.n; i++) {
		const struct nw_secret *h = &u->heads[i];

		u->p[i] = (struct net_secret){ .name = str_of(h->name),
					       .placeholder = str_of(h->placeholder),
					       .hosts = u->hosts[i],
					       .n_hosts = h->n_hosts,
					       .uses = h->uses };
		u->p[i].value = cut(&rest, h->n_value);
		u->p[i].trust = cut(&rest, h->n_trust);
	}
}

bool secrets_have_login(const struct secret *packed, const char *name, bool *ret_begins)
{
	autofree struct unpacked *u = packed ? malloc(sizeof(*u)) : NULL;

	if (!u)
		return false;
	unpack(packed, u);
	for (size_t i = 0; i < u->all.n_exchanges; i++) {
		if (strcmp(u->exchanges[i].name, name) != 0)
			continue;
		*ret_begins = u->exchanges[i].begins;
		return true;
	}
	return false;
}

int secrets_renew(const struct secret *packed, struct str name, const struct net_secret *tokens,
		  size_t n, struct str access, struct secret **ret, struct err *e)
{
	autofree struct unpacked *u = malloc(sizeof(*u));
	struct net_secret p[2 * NW_SECRETS_MAX];
	struct net_secrets now;
	size_t count = 0;

	if (!u)
		return err_set(e, ERR_LIMIT, "out of memory");
	unpack(packed, u);
	for (size_t i = 0; i < u->all.n; i++) {
		if (!str_eq(u->p[i].name, name)) {
			p[count++] = u->p[i];
		} else if (!(u->p[i].uses & NW_IN_TOKENS)) {
			p[count] = u->p[i];
			p[count++].value = access;
		}
	}
	for (size_t i = 0; i < n && i < NW_SECRETS_MAX; i++)
		p[count++] = tokens[i];
	now = u->all;
	now.p = p;
	now.n = count;
	return secrets_pack(&now, ret, e);
}

void secrets_answer(struct nets *all, const struct nw_tokens *to, struct str body,
		    const struct err *err)
{
	autowipe struct buf b = BUF_INIT(NW_MAX);
	struct nw_kept m = { .h = { NW_KEPT, ++all->last_seq },
			     .key = to->key,
			     .ask = to->h.seq,
			     .kept = err == NULL,
			     .n = err ? 0 : (uint32_t)body.n };
	struct err e;

	if (err)
		snprintf(m.why, sizeof(m.why), "%s", err->msg);
	if (!buf_reserve(&b, sizeof(m) + m.n, &e) || buf_add(&b, &m, sizeof(m), &e) < 0 ||
	    buf_add(&b, body.p, m.n, &e) < 0)
		abort(); /* out of memory: the request would wait for ever */
	proxy_send(all, b.p, b.n, NULL, 0);
}
