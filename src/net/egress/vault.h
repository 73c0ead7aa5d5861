#pragma once
/*
 * The secrets of a sandbox: which placeholder stands for which value, at which hosts it may be
 * replaced, what proves to the sandbox that it speaks with such a host, and what a real host is
 * trusted by. Values stay in locked memory that is wiped at the end.
 */
#include <gnutls/gnutls.h>

#include "net/egress/swap.h"
#include "net/wire/wire.h"

struct trust; /* the trust store of the host */
struct vault;

/* Reads it, and adds certificates (PEM); an empty one trusts nobody. They are only looked at when
 * they are needed. */
struct trust *trust_open(struct str more, struct err *e) MUST_USE;

/* rest: what follows the message. The caller wipes it. */
struct vault *vault_new(struct trust *t, const struct nw_secrets *m, struct str rest,
			struct err *e) MUST_USE;
void vault_free(struct vault *v); /* NULL-safe; no flow may use it any more */
/* v takes the place of the old one, under flows that go on: it takes what they use, and answers are
 * searched for the values of before, too. The old one is then to be freed. False: there were too
 * many before it. */
bool vault_renew(struct vault *v, struct vault *old) MUST_USE;

/* Whether any secret is for this host. v may be NULL. A vault without secrets has an authority. */
bool vault_binds(const struct vault *v, const char *host, uint16_t port, bool tls);

/* For the sandbox: a certificate of the host by the sandbox's authority; NULL: there can't be one.
 * For the host: what is trusted. Both are borrowed from the vault. */
gnutls_certificate_credentials_t vault_prove(struct vault *v, const char *host, struct err *e);
gnutls_certificate_credentials_t vault_trust(struct vault *v, const char *host, uint16_t port,
					     struct err *e);

/* Placeholders to values, for a host; swap i of ret belongs to secret ret_of[i]. */
void vault_fill(const struct vault *v, const char *host, uint16_t port, bool tls,
		struct swap ret[NW_SECRETS_MAX], size_t ret_of[NW_SECRETS_MAX],
		struct swaps *ret_all);

/* Log-ins. Whether any gets its tokens from this host; the exchange at this path (NULL: none); and
 * whether a server could take the path for that of one. */
bool vault_gets_tokens(const struct vault *v, const char *host, uint16_t port);
const struct nw_exchange *vault_exchange(const struct vault *v, const char *host, uint16_t port,
					 struct str path);
bool vault_resembles_exchange(const struct vault *v, const char *host, uint16_t port,
			      struct str path);
/* Placeholders to values of a log-in, in bodies; and the placeholder of its refresh token. */
void vault_fill_tokens(const struct vault *v, const char *name, struct swap ret[NW_SECRETS_MAX],
		       struct swaps *ret_all);
struct str vault_refresh_mark(const struct vault *v, const char *name);

/* Values in all forms that are looked for, to placeholders. */
const struct swaps *vault_scrub(const struct vault *v);

/* The secret whose placeholder stands in the text; -1: none. v may be NULL. */
int vault_find(const struct vault *v, struct str text);
const char *vault_name(const struct vault *v, size_t i);
