/* The secrets of a sandbox on their way to the proxy. Between that they are one message in locked
 * memory, which a new proxy gets again. */
#include <stdlib.h>
#include <string.h>

#include "hub/net/internal.h"

static int add_secret(const struct net_secret *s, struct buf *to, struct err *e)
{
	struct nw_secret m = { .n_hosts = (uint32_t)s->n_hosts,
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
				      .n_ca_key = (uint32_t)s->ca_key.n,
				      .n_ca = (uint32_t)s->ca.n };

	if (buf_add(to, &m, sizeof(m), e) < 0)
		return -1;
	for (size_t i = 0; i < s->n; i++) {
		if (add_secret(&s->p[i], to, e) < 0)
			return -1;
	}
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
	if (s->n > NW_SECRETS_MAX)
		return err_set(e, ERR_LIMIT, "at most %d secrets with hosts", NW_SECRETS_MAX);
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

void secrets_send(struct nets *all, uint64_t key, uint32_t seq, const struct secret *packed)
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
	memcpy(at, &m, sizeof(m));
	buf_advance(&b, bytes.n);
	proxy_send(all, b.p, b.n, NULL, 0);
}
