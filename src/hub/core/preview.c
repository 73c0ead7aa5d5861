#include "hub/core/preview.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/seal.h"

enum {
	DOMAIN_MAX = 190, /* leaves room for a label below it */
	LABEL_HASH = 24, /* hex digits in a name */
	LABEL_MAX = LABEL_HASH + 8,
	TOKEN_MAX = 512,
};

struct previews {
	struct seal_ring *ring;
	char salt[ID_MAX]; /* so that names of another hub are others */
	char domain[DOMAIN_MAX + 1];
	int port;
	bool tls;
};

static const struct str context = STR_LIT("preview");

void previews_free(struct previews *p)
{
	if (!p)
		return;
	seal_ring_free(p->ring);
	free(p);
}

struct previews *previews_new(const struct preview_site *site, struct err *e)
{
	struct previews *p = calloc(1, sizeof(*p));

	if (!p || !(p->ring = seal_ring_new(e))) {
		free(p);
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	}
	id_make(p->salt, "names");
	snprintf(p->domain, sizeof(p->domain), "%s", site->domain);
	p->port = site->port;
	p->tls = site->tls;
	return p;
}

int preview_names(const char *domain, char *ret, size_t size, struct err *e)
{
	size_t n = strlen(domain);

	if (n == 0 || n > DOMAIN_MAX ||
	    strspn(domain, "abcdefghijklmnopqrstuvwxyz0123456789-.") != n || n + 3 > size)
		return err_set(e, ERR_INVALID, "'%.80s' is no name of a domain in lower case",
			       domain);
	snprintf(ret, size, "*.%s", domain);
	return 0;
}

/* ---- names --------------------------------------------------------------------------------- */

static int make_label(const struct previews *p, const struct preview_right *r, char ret[LABEL_MAX],
		      struct err *e)
{
	char hex[HASH_HEX + 1], text[SANDBOX_ID_MAX + ID_MAX + 32];

	snprintf(text, sizeof(text), "%s %s %u %u", p->salt, r->id, r->generation, r->port);
	if (hash_of(str_of(text), hex, e) < 0)
		return -1;
	snprintf(ret, LABEL_MAX, "%u-%.*s", r->port, LABEL_HASH, hex);
	return 0;
}

/* Whether host, possibly with a port, is that label below the domain. */
static bool is_name(const struct previews *p, const char *label, struct str host)
{
	size_t n = strlen(label), m = strlen(p->domain);

	return host.n >= n + 1 + m && memcmp(host.p, label, n) == 0 && host.p[n] == '.' &&
	       memcmp(host.p + n + 1, p->domain, m) == 0 &&
	       (host.n == n + 1 + m || host.p[n + 1 + m] == ':');
}

/* ---- links --------------------------------------------------------------------------------- */

int preview_make(const struct previews *p, struct hub_sandbox *l, uint16_t port, uint64_t ttl_s,
		 struct str owner, char ret_url[PREVIEW_URL_MAX], int64_t *ret_expires_s,
		 struct err *e)
{
	autobuf struct buf plain = BUF_INIT(sizeof(struct preview_right)),
			   token = BUF_INIT(TOKEN_MAX);
	struct preview_right r = { .port = port };
	struct hub_sandbox_info i;
	char label[LABEL_MAX];

	if (!hub_sandbox_sandbox(l, e))
		return -1;
	hub_sandbox_info(l, &i);
	snprintf(r.id, sizeof(r.id), "%.*s", STR_ARG(i.id));
	snprintf(r.owner, sizeof(r.owner), "%.*s", STR_ARG(owner));
	r.generation = i.generation;
	r.expires_s = clock_unix_ms() / 1000 + (int64_t)ttl_s;
	if (make_label(p, &r, label, e) < 0 || buf_add(&plain, &r, sizeof(r), e) < 0 ||
	    seal(p->ring, &token, buf_str(&plain), context, (uint64_t)r.expires_s, e) < 0)
		return -1;
	snprintf(ret_url, PREVIEW_URL_MAX, "%s://%s.%s:%d/?token=%s", p->tls ? "https" : "http",
		 label, p->domain, p->port, token.p);
	*ret_expires_s = r.expires_s;
	return 0;
}

int preview_open(const struct previews *p, struct str token, struct str host,
		 struct preview_right *ret, struct err *e)
{
	autobuf struct buf plain = BUF_INIT(sizeof(*ret));
	char label[LABEL_MAX];
	struct err why;
	bool good = token.n > 0 && token.n <= TOKEN_MAX &&
		    seal_open(p->ring, &plain, token, context, (uint64_t)clock_unix_ms() / 1000,
			      &why) == 0 &&
		    plain.n == sizeof(*ret);

	if (good)
		memcpy(ret, plain.p, sizeof(*ret));
	if (good && make_label(p, ret, label, e) < 0)
		return -1;
	if (good && is_name(p, label, host))
		return 0;
	return err_set(e, ERR_LINK, "the link is over, or is none of this server's");
}
