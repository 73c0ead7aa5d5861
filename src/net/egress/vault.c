/*
 * Values of secrets that are bound to hosts, and what is needed to speak TLS as both sides of a
 * connection (flow_bound.c). The trust store is read before the proxy is closed in.
 */
#include "net/egress/vault.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/secret.h"
#include "net/egress/form.h"

enum {
	TRUST_MAX = 4 << 20,
	PROOFS_MAX = 256, /* hosts with a certificate; wildcards may name many */
	DAY_S = 24 * 3600,
	VALID_S = 820 * DAY_S, /* some clients refuse more than 825 days */
	SERIAL_BYTES = 16,
	CA_MAX = 4096,
	KEPT_MAX = 2 * NW_SECRETS_MAX,
};

struct trust {
	struct buf pem;
	gnutls_certificate_credentials_t parsed; /* NULL: not yet */
};

struct proof {
	struct proof *next;
	gnutls_certificate_credentials_t of;
	char host[NET_HOST_MAX];
};

struct bound_secret {
	struct nw_secret m;
	struct net_rule *hosts;
	struct str value; /* in the vault's texts */
	struct str shown; /* there: what stands for it inside */
	gnutls_certificate_credentials_t trust; /* NULL: the host's store */
};

struct vault {
	struct trust *trust; /* borrowed */
	struct bound_secret secrets[NW_SECRETS_MAX];
	size_t n;
	struct nw_exchange exchanges[NW_EXCHANGES_MAX];
	size_t n_exchanges;
	struct secret *texts; /* all forms of all values */
	struct swap forms[2 * NW_SECRETS_MAX * FORMS_MAX]; /* with those of `before` */
	size_t n_forms; /* its own */
	struct swaps scrub;
	struct secret *before; /* the texts of the vault that this one renews; NULL: none */
	/* Of the vaults before: connections still use them. */
	gnutls_certificate_credentials_t kept[KEPT_MAX];
	size_t n_kept;
	gnutls_x509_crt_t ca;
	gnutls_x509_privkey_t ca_key, key; /* key: of all hosts */
	struct proof *proofs;
	size_t n_proofs;
};

static int vault_failed(int rc, const char *what, struct err *e)
{
	return err_set(e, rc == GNUTLS_E_MEMORY_ERROR ? ERR_LIMIT : ERR_INVALID, "%s: %s", what,
		       gnutls_strerror(rc));
}

static gnutls_datum_t datum_of(struct str s)
{
	return (gnutls_datum_t){ (unsigned char *)(uintptr_t)s.p, (unsigned)s.n };
}

/* ---- trust ----------------------------------------------------------------------------------- */

struct trust *trust_open(struct str more, struct err *e)
{
	static const char *const paths[] = { "/etc/ssl/certs/ca-certificates.crt",
					     "/etc/pki/tls/certs/ca-bundle.crt",
					     "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem" };
	struct trust *t = mem_zalloc(sizeof(*t));
	autoclose int fd = -1;
	struct stat st;
	char *to;

	if (!t)
		return err_set(e, ERR_LIMIT, "no memory for the trust store"), NULL;
	t->pem = BUF_INIT(TRUST_MAX);
	for (size_t i = 0; i < ARRAY_LEN(paths) && fd < 0; i++)
		fd = open(paths[i], O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0 &&
	    st.st_size <= TRUST_MAX - NW_CA_MAX) {
		to = buf_reserve(&t->pem, (size_t)st.st_size, e);
		if (to && fd_read(fd, to, (size_t)st.st_size) == 0)
			buf_advance(&t->pem, (size_t)st.st_size);
	}
	if (buf_addf(&t->pem, e, "\n") < 0 || buf_add(&t->pem, more.p, more.n, e) < 0)
		return NULL; /* the process ends */
	return t;
}

static gnutls_certificate_credentials_t trust_parse(struct str pem, struct err *e)
{
	gnutls_certificate_credentials_t c = NULL;
	gnutls_datum_t d = datum_of(pem);
	int rc = gnutls_certificate_allocate_credentials(&c);

	if (rc >= 0 && pem.n > 0)
		rc = gnutls_certificate_set_x509_trust_mem(c, &d, GNUTLS_X509_FMT_PEM);
	if (rc >= 0)
		return c;
	vault_failed(rc, "read the trusted certificates", e);
	if (c)
		gnutls_certificate_free_credentials(c);
	return NULL;
}

/* ---- forms of a value ------------------------------------------------------------------------ */

/* What stands for a value inside. */
static int vault_add_shown(struct bound_secret *s, struct str value, struct buf *to, struct err *e)
{
	const struct str mark = str_of(s->m.placeholder);
	const struct str claims = s->m.uses & NW_SHOWS_CLAIMS ? nw_claims(value) : STR_LIT("");

	s->shown = (struct str){ to->p + to->n, claims.n + mark.n };
	return buf_add(to, claims.p, claims.n, e) < 0 ? -1 : buf_add(to, mark.p, mark.n, e);
}

/* The forms of secret i, each once. The buffer has room for all, so nothing moves. */
static int vault_add_forms(struct vault *v, size_t i, struct str value, struct buf *to,
			   struct err *e)
{
	size_t first = v->scrub.n;

	if (vault_add_shown(&v->secrets[i], value, to, e) < 0)
		return -1;
	for (size_t k = 0; k < FORMS_MAX; k++) {
		struct str form = { to->p + to->n, to->n };
		bool known = false;

		if (form_add(to, value, k, e) < 0)
			return -1;
		form.n = to->n - form.n;
		for (size_t j = first; j < v->scrub.n; j++)
			known = known || str_eq(v->forms[j].from, form);
		if (known) {
			to->n -= form.n;
			continue;
		}
		v->forms[v->scrub.n++] = (struct swap){ .from = form, .to = v->secrets[i].shown };
	}
	v->secrets[i].value = v->forms[first].from;
	return 0;
}

/* From where they were made to where they stay. */
static int vault_keep_forms(struct vault *v, const struct buf *made, struct err *e)
{
	struct str kept;

	v->texts = secret_new(buf_str(made), e);
	if (!v->texts)
		return -1;
	kept = secret_expose(v->texts, "looked for in answers");
	for (size_t i = 0; i < v->scrub.n; i++) {
		v->forms[i].from.p = kept.p + (v->forms[i].from.p - made->p);
		v->forms[i].to.p = kept.p + (v->forms[i].to.p - made->p);
	}
	for (size_t i = 0; i < v->n; i++) {
		v->secrets[i].value.p = kept.p + (v->secrets[i].value.p - made->p);
		v->secrets[i].shown.p = kept.p + (v->secrets[i].shown.p - made->p);
	}
	v->n_forms = v->scrub.n;
	swaps_init(&v->scrub, v->forms, v->scrub.n);
	return 0;
}

/* ---- what the hub says ----------------------------------------------------------------------- */

static bool vault_take(struct str *s, size_t n, struct str *ret)
{
	if (s->n < n)
		return false;
	*ret = (struct str){ s->p, n };
	s->p += n;
	s->n -= n;
	return true;
}

static bool has_end(const char *text, size_t size)
{
	return memchr(text, 0, size) != NULL;
}

static bool secret_is_right(const struct nw_secret *m)
{
	return has_end(m->name, sizeof(m->name)) &&
	       has_end(m->placeholder, sizeof(m->placeholder)) &&
	       str_starts(str_of(m->placeholder), NW_PLACEHOLDER) &&
	       strlen(m->placeholder) > strlen(NW_PLACEHOLDER) + 15 && m->n_hosts > 0 &&
	       m->n_hosts <= NW_SECRET_HOSTS_MAX && m->n_value >= NW_SECRET_MIN &&
	       m->n_value <= NW_SECRET_MAX && m->n_trust <= NW_SECRET_TRUST_MAX;
}

static bool host_is_right(const struct net_rule *r)
{
	char host[NET_HOST_MAX];

	return (r->kind == NET_RULE_NAME || r->kind == NET_RULE_SUFFIX) && r->port &&
	       has_end(r->host, sizeof(r->host)) && net_host_read(str_of(r->host), host) &&
	       strcmp(host, r->host) == 0;
}

/* It becomes a part of a line. */
static bool value_is_right(struct str value)
{
	for (size_t i = 0; i < value.n; i++) {
		if ((unsigned char)value.p[i] < 0x20 || value.p[i] == 0x7f)
			return false;
	}
	return value.p[0] != ' ' && value.p[value.n - 1] != ' ';
}

static bool exchange_is_right(const struct nw_exchange *x)
{
	char host[NET_HOST_MAX];

	return has_end(x->name, sizeof(x->name)) && has_end(x->path, sizeof(x->path)) &&
	       has_end(x->host, sizeof(x->host)) && x->path[0] == '/' && x->port &&
	       net_host_read(str_of(x->host), host) && strcmp(host, x->host) == 0;
}

static int vault_take_exchanges(struct vault *v, const struct nw_secrets *m, struct str *rest,
				struct err *e)
{
	struct str bytes;

	for (; v->n_exchanges < m->n_exchanges; v->n_exchanges++) {
		struct nw_exchange *x = &v->exchanges[v->n_exchanges];

		if (!vault_take(rest, sizeof(*x), &bytes))
			return err_set(e, ERR_INVALID, "a message about secrets is too short");
		memcpy(x, bytes.p, bytes.n);
		if (!exchange_is_right(x))
			return err_set(e, ERR_INVALID, "URL %zu of a log-in is malformed",
				       v->n_exchanges);
	}
	return 0;
}

static int vault_take_secrets(struct vault *v, const struct nw_secrets *m, struct str *rest,
			      struct err *e)
{
	struct str bytes;

	for (; v->n < m->n; v->n++) {
		if (!vault_take(rest, sizeof(struct nw_secret), &bytes))
			return err_set(e, ERR_INVALID, "a message about secrets is too short");
		memcpy(&v->secrets[v->n].m, bytes.p, bytes.n);
		if (!secret_is_right(&v->secrets[v->n].m))
			return err_set(e, ERR_INVALID, "secret %zu is malformed", v->n);
	}
	if (vault_take_exchanges(v, m, rest, e) < 0)
		return -1;
	for (size_t i = 0; i < v->n; i++) {
		struct bound_secret *s = &v->secrets[i];

		s->hosts = calloc(s->m.n_hosts, sizeof(*s->hosts));
		if (!s->hosts)
			return err_set(e, ERR_LIMIT, "no memory for secrets");
		if (!vault_take(rest, s->m.n_hosts * sizeof(*s->hosts), &bytes))
			return err_set(e, ERR_INVALID, "a message about secrets is too short");
		memcpy(s->hosts, bytes.p, bytes.n);
		for (size_t k = 0; k < s->m.n_hosts; k++) {
			if (!host_is_right(&s->hosts[k]))
				return err_set(e, ERR_INVALID, "a host of secret %s is malformed",
					       s->m.name);
		}
	}
	return 0;
}

static int vault_take_authority(struct vault *v, struct str key, struct str ca, struct err *e)
{
	gnutls_datum_t k = datum_of(key), c = datum_of(ca);
	int rc = gnutls_x509_privkey_init(&v->ca_key);

	if (rc >= 0)
		rc = gnutls_x509_privkey_init(&v->key);
	if (rc >= 0)
		rc = gnutls_x509_crt_init(&v->ca);
	if (rc >= 0)
		rc = gnutls_x509_privkey_import2(v->ca_key, &k, GNUTLS_X509_FMT_PEM, NULL, 0);
	if (rc >= 0)
		rc = gnutls_x509_crt_import(v->ca, &c, GNUTLS_X509_FMT_PEM);
	if (rc >= 0)
		rc = gnutls_x509_privkey_generate(
			v->key, GNUTLS_PK_ECDSA,
			(unsigned)GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
	return rc < 0 ? vault_failed(rc, "read the sandbox's authority", e) : 0;
}

static int vault_take_values(struct vault *v, struct str *rest, struct err *e)
{
	autowipe struct buf made = BUF_INIT(SIZE_MAX / 2);
	size_t room = 0;
	struct str value, pem;

	for (size_t i = 0; i < v->n; i++)
		room += FORMS_MAX * form_room(v->secrets[i].m.n_value) + v->secrets[i].m.n_value +
			NW_PLACEHOLDER_MAX;
	if (!buf_reserve(&made, room, e))
		return -1;
	for (size_t i = 0; i < v->n; i++) {
		struct bound_secret *s = &v->secrets[i];

		if (!vault_take(rest, s->m.n_value, &value) ||
		    !vault_take(rest, s->m.n_trust, &pem))
			return err_set(e, ERR_INVALID, "a message about secrets is too short");
		if (!value_is_right(value))
			return err_set(e, ERR_INVALID,
				       "secret %s can't stand in a line of HTTP: it has line ends, "
				       "control characters, or blanks at its ends",
				       s->m.name);
		if (vault_add_forms(v, i, value, &made, e) < 0)
			return -1;
		if (pem.n > 0 && !(s->trust = trust_parse(pem, e)))
			return -1;
	}
	return v->n > 0 ? vault_keep_forms(v, &made, e) : 0;
}

struct vault *vault_new(struct trust *t, const struct nw_secrets *m, struct str rest, struct err *e)
{
	struct vault *v = mem_zalloc(sizeof(*v));
	struct str key, ca;

	if (!v)
		return err_set(e, ERR_LIMIT, "no memory for secrets"), NULL;
	v->trust = t;
	if (m->n > NW_SECRETS_MAX || m->n_exchanges > NW_EXCHANGES_MAX || m->n_ca > CA_MAX ||
	    m->n_ca_key > CA_MAX)
		err_set(e, ERR_INVALID, "a message about secrets is malformed");
	else if (vault_take_secrets(v, m, &rest, e) == 0 && vault_take(&rest, m->n_ca_key, &key) &&
		 vault_take(&rest, m->n_ca, &ca) && vault_take_authority(v, key, ca, e) == 0 &&
		 vault_take_values(v, &rest, e) == 0 && rest.n == 0)
		return v;
	if (!e->code)
		err_set(e, ERR_INVALID, "a message about secrets has a wrong length");
	vault_free(v);
	return NULL;
}

void vault_free(struct vault *v)
{
	if (!v)
		return;
	while (v->proofs) {
		struct proof *p = v->proofs;

		v->proofs = p->next;
		gnutls_certificate_free_credentials(p->of);
		free(p);
	}
	for (size_t i = 0; i < v->n; i++) {
		free(v->secrets[i].hosts);
		if (v->secrets[i].trust)
			gnutls_certificate_free_credentials(v->secrets[i].trust);
	}
	if (v->ca)
		gnutls_x509_crt_deinit(v->ca);
	if (v->key)
		gnutls_x509_privkey_deinit(v->key);
	if (v->ca_key)
		gnutls_x509_privkey_deinit(v->ca_key);
	for (size_t i = 0; i < v->n_kept; i++)
		gnutls_certificate_free_credentials(v->kept[i]);
	secret_free(v->texts);
	secret_free(v->before);
	free(v);
}

/* Moves what connections use of the old vault to where it lives on. */
static bool vault_keep_credentials(struct vault *v, struct vault *old)
{
	size_t n = old->n_kept;

	for (size_t i = 0; i < old->n; i++)
		n += old->secrets[i].trust != NULL;
	if (n > KEPT_MAX)
		return false;
	memcpy(v->kept, old->kept, old->n_kept * sizeof(*old->kept));
	v->n_kept = old->n_kept;
	old->n_kept = 0;
	for (size_t i = 0; i < old->n; i++) {
		gnutls_certificate_credentials_t trust = take_ptr(old->secrets[i].trust);
		struct bound_secret *s = &v->secrets[i];

		if (trust && i < v->n && s->trust &&
		    strcmp(s->m.name, old->secrets[i].m.name) == 0) {
			gnutls_certificate_free_credentials(s->trust);
			s->trust = trust;
		} else if (trust) {
			v->kept[v->n_kept++] = trust;
		}
	}
	v->proofs = take_ptr(old->proofs);
	v->n_proofs = old->n_proofs;
	return true;
}

bool vault_renew(struct vault *v, struct vault *old)
{
	if (v->n_proofs > 0 || !vault_keep_credentials(v, old))
		return false;
	/* answers to requests with the values of before may still come */
	for (size_t i = 0; i < old->n_forms && v->scrub.n < ARRAY_LEN(v->forms); i++) {
		const struct str from = old->forms[i].from;
		bool known = false;

		for (size_t k = 0; k < v->scrub.n; k++)
			known = known || str_eq(v->forms[k].from, from);
		if (!known)
			v->forms[v->scrub.n++] = old->forms[i];
	}
	swaps_init(&v->scrub, v->forms, v->scrub.n);
	v->before = take_ptr(old->texts);
	return true;
}

/* ---- hosts ----------------------------------------------------------------------------------- */

static bool secret_binds(const struct bound_secret *s, const char *host, uint16_t port, bool tls)
{
	/* without TLS the same host is at another port, most likely */
	for (size_t i = 0; i < s->m.n_hosts; i++) {
		if (net_rule_names(&s->hosts[i], host) &&
		    (tls ? s->hosts[i].port == port : s->m.plain))
			return true;
	}
	return false;
}

bool vault_binds(const struct vault *v, const char *host, uint16_t port, bool tls)
{
	for (size_t i = 0; v && i < v->n; i++) {
		if (secret_binds(&v->secrets[i], host, port, tls))
			return true;
	}
	return false;
}

gnutls_certificate_credentials_t vault_trust(struct vault *v, const char *host, uint16_t port,
					     struct err *e)
{
	for (size_t i = 0; i < v->n; i++) {
		if (v->secrets[i].trust && secret_binds(&v->secrets[i], host, port, true))
			return v->secrets[i].trust;
	}
	if (!v->trust->parsed)
		v->trust->parsed = trust_parse(buf_str(&v->trust->pem), e);
	return v->trust->parsed;
}

static struct swap vault_swap(const struct bound_secret *s)
{
	return (struct swap){ .from = str_of(s->m.placeholder),
			      .to = s->value,
			      .claims = (s->m.uses & NW_SHOWS_CLAIMS) != 0 };
}

void vault_fill(const struct vault *v, const char *host, uint16_t port, bool tls,
		struct swap ret[NW_SECRETS_MAX], size_t ret_of[NW_SECRETS_MAX],
		struct swaps *ret_all)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n; i++) {
		const struct bound_secret *s = &v->secrets[i];

		if (!(s->m.uses & NW_IN_FIELDS) || !secret_binds(s, host, port, tls))
			continue;
		ret[n] = vault_swap(s);
		ret_of[n++] = i;
	}
	swaps_init(ret_all, ret, n);
}

bool vault_gets_tokens(const struct vault *v, const char *host, uint16_t port)
{
	for (size_t i = 0; v && i < v->n_exchanges; i++) {
		if (v->exchanges[i].port == port && strcmp(v->exchanges[i].host, host) == 0)
			return true;
	}
	return false;
}

const struct nw_exchange *vault_exchange(const struct vault *v, const char *host, uint16_t port,
					 struct str path)
{
	for (size_t i = 0; i < v->n_exchanges; i++) {
		const struct nw_exchange *x = &v->exchanges[i];

		if (x->port == port && strcmp(x->host, host) == 0 && str_is(path, x->path))
			return x;
	}
	return NULL;
}

/* Whether a path that goes on so names another resource: /tokeninfo and /token/revoke are no
 * /token, but /token.json may be. */
static bool is_other_path(struct str rest)
{
	char c = rest.n ? rest.p[0] : '\0';

	return (c == '/' && rest.n > 1) || c == '_' || c == '-' || (c >= '0' && c <= '9') ||
	       (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool vault_resembles_exchange(const struct vault *v, const char *host, uint16_t port,
			      struct str path)
{
	if (memchr(path.p, '%', path.n) || memchr(path.p, ';', path.n) ||
	    memchr(path.p, '\\', path.n) || memmem(path.p, path.n, "//", 2) ||
	    memmem(path.p, path.n, "/.", 2))
		return true;
	for (size_t i = 0; i < v->n_exchanges; i++) {
		const struct nw_exchange *x = &v->exchanges[i];
		size_t n = strlen(x->path);

		if (x->port == port && strcmp(x->host, host) == 0 && path.n >= n &&
		    strncasecmp(path.p, x->path, n) == 0 &&
		    !is_other_path((struct str){ path.p + n, path.n - n }))
			return true;
	}
	return false;
}

void vault_fill_tokens(const struct vault *v, const char *name, struct swap ret[NW_SECRETS_MAX],
		       struct swaps *ret_all)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n; i++) {
		if ((v->secrets[i].m.uses & NW_IN_TOKENS) &&
		    strcmp(v->secrets[i].m.name, name) == 0)
			ret[n++] = vault_swap(&v->secrets[i]);
	}
	swaps_init(ret_all, ret, n);
}

struct str vault_refresh_mark(const struct vault *v, const char *name)
{
	for (size_t i = 0; i < v->n; i++) {
		if ((v->secrets[i].m.uses & NW_REFRESHES) &&
		    strcmp(v->secrets[i].m.name, name) == 0)
			return str_of(v->secrets[i].m.placeholder);
	}
	return STR_NONE;
}

const struct swaps *vault_scrub(const struct vault *v)
{
	return &v->scrub;
}

int vault_find(const struct vault *v, struct str text)
{
	if (!v || !memmem(text.p, text.n, NW_PLACEHOLDER, strlen(NW_PLACEHOLDER)))
		return -1;
	for (size_t i = 0; i < v->n; i++) {
		struct str p = str_of(v->secrets[i].m.placeholder);

		if (memmem(text.p, text.n, p.p, p.n))
			return (int)i;
	}
	return -1;
}

const char *vault_name(const struct vault *v, size_t i)
{
	return v->secrets[i].m.name;
}

/* ---- certificates ---------------------------------------------------------------------------- */

/* Everything that strict clients want of a server's certificate (RFC 5280). */
static int certify(const struct vault *v, gnutls_x509_crt_t crt, const char *host)
{
	unsigned char serial[SERIAL_BYTES], id[64];
	size_t n_id = sizeof(id);
	time_t now = time(NULL);
	int rc = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof(serial));

	serial[0] = (serial[0] & 0x7f) | 1; /* positive, and of the full length */
#define TRY(call) rc = rc < 0 ? rc : (call)
	TRY(gnutls_x509_crt_set_version(crt, 3));
	TRY(gnutls_x509_crt_set_serial(crt, serial, sizeof(serial)));
	TRY(gnutls_x509_crt_set_activation_time(crt, now - DAY_S));
	TRY(gnutls_x509_crt_set_expiration_time(crt, now + VALID_S));
	TRY(gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_ORGANIZATION_NAME, 0, "Holt", 4));
	TRY(gnutls_x509_crt_set_key(crt, v->key));
	TRY(gnutls_x509_crt_set_basic_constraints(crt, 0, -1));
	TRY(gnutls_x509_crt_set_key_usage(crt, GNUTLS_KEY_DIGITAL_SIGNATURE));
	TRY(gnutls_x509_crt_set_key_purpose_oid(crt, GNUTLS_KP_TLS_WWW_SERVER, 0));
	TRY(gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_DNSNAME, host,
						 (unsigned)strlen(host), GNUTLS_FSAN_SET));
	TRY(gnutls_x509_crt_get_subject_key_id(v->ca, id, &n_id, NULL));
	TRY(gnutls_x509_crt_set_authority_key_id(crt, id, n_id));
	TRY(gnutls_x509_crt_sign2(crt, v->ca, v->ca_key, GNUTLS_DIG_SHA256, 0));
	return rc;
}

static int proof_make(const struct vault *v, struct proof *p)
{
	gnutls_x509_crt_t crt = NULL;
	int rc = gnutls_x509_crt_init(&crt);

	TRY(certify(v, crt, p->host));
	TRY(gnutls_certificate_allocate_credentials(&p->of));
	TRY(gnutls_certificate_set_x509_key(p->of, &crt, 1, v->key));
#undef TRY
	if (crt)
		gnutls_x509_crt_deinit(crt);
	return rc;
}

gnutls_certificate_credentials_t vault_prove(struct vault *v, const char *host, struct err *e)
{
	struct proof *p = v->proofs;
	int rc;

	while (p && strcmp(p->host, host) != 0)
		p = p->next;
	if (p)
		return p->of;
	p = v->n_proofs < PROOFS_MAX ? mem_zalloc(sizeof(*p)) : NULL;
	if (!p)
		return err_set(e, ERR_LIMIT, "too many hosts of secrets"), NULL;
	snprintf(p->host, sizeof(p->host), "%s", host);
	rc = proof_make(v, p);
	if (rc < 0) {
		if (p->of)
			gnutls_certificate_free_credentials(p->of);
		free(p);
		vault_failed(rc, "certify the host", e);
		return NULL;
	}
	p->next = v->proofs;
	v->proofs = p;
	v->n_proofs++;
	return p->of;
}
