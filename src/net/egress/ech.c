#include "net/egress/ech.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <string.h>

#include "net/egress/internal.h"

enum {
	EXT_ECH = 0xfe0d,
	KEPT = 256, /* servers, one a slot */
	KEPT_MS = 10 * 60 * 1000,
	KEY_BYTES = 32, /* X25519 */
	DUMMY_BYTES = 208, /* one of the sizes that browsers use */
};

struct ech_kept {
	char name[NET_HOST_MAX];
	struct net_addr addr;
	uint16_t port;
	bool hides;
	uint64_t until_ms; /* 0: nothing */
};
static struct ech_kept kept[KEPT];

struct ech {
	struct sandbox *of;
	ech_fn *on_done;
	void *owner;
	char name[NET_HOST_MAX];
	struct net_addr addr;
	uint16_t port;
	struct dial *dial;
	int fd;
	uv_poll_t *poll;
	uv_timer_t *later; /* calls on_done */
	gnutls_session_t tls;
	gnutls_certificate_credentials_t trust; /* nobody: nothing is said to the server */
	bool reads; /* it has answered the dummy */
	bool hides;
};

/* ---- what is known -------------------------------------------------------------------------- */

static struct ech_kept *ech_slot(const struct ech *e)
{
	uint32_t hash = 2166136261u ^ e->port;

	for (const char *p = e->name; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 16777619u;
	return &kept[hash % KEPT];
}

static bool ech_is_known(const struct ech *e)
{
	const struct ech_kept *k = ech_slot(e);

	return k->until_ms > uv_now(&e->of->of->loop) && k->port == e->port &&
	       net_addr_same(&k->addr, &e->addr) && strcmp(k->name, e->name) == 0;
}

static void ech_keep(const struct ech *e)
{
	struct ech_kept *k = ech_slot(e);

	memcpy(k->name, e->name, sizeof(k->name));
	k->addr = e->addr;
	k->port = e->port;
	k->hides = e->hides;
	k->until_ms = uv_now(&e->of->of->loop) + KEPT_MS;
}

bool ech_dials(const struct ech *e)
{
	return e->dial != NULL;
}

/* ---- the end -------------------------------------------------------------------------------- */

void ech_cancel(struct ech *e)
{
	if (!e)
		return;
	dial_cancel(e->dial);
	poll_drop(&e->poll);
	timer_drop(&e->later);
	if (e->tls)
		gnutls_deinit(e->tls);
	if (e->trust)
		gnutls_certificate_free_credentials(e->trust);
	close_fd(&e->fd);
	free(e);
}

static void ech_end(struct ech *e)
{
	ech_fn *on_done = e->on_done;
	void *owner = e->owner;
	bool hides = e->hides;

	ech_cancel(e);
	on_done(owner, hides);
}

static void on_later(uv_timer_t *timer)
{
	ech_end(timer->data);
}

/* ---- the question --------------------------------------------------------------------------- */

static int ech_answered(gnutls_session_t tls, const unsigned char *data, size_t n)
{
	struct ech *e = gnutls_session_get_ptr(tls);

	(void)data;
	(void)n;
	e->reads = true;
	return 0;
}

/* ECHClientHello of the type outer: HKDF-SHA256 and AES-128-GCM, and bytes that nobody can read. */
static int ech_dummy(gnutls_session_t tls, gnutls_buffer_t to)
{
	static const unsigned char suite[] = { 0, 0, 1, 0, 1 };
	static const unsigned char key_size[] = { 0, KEY_BYTES }, size[] = { 0, DUMMY_BYTES };
	unsigned char dummy[1 + KEY_BYTES + DUMMY_BYTES];
	int rc = gnutls_rnd(GNUTLS_RND_NONCE, dummy, sizeof(dummy));

	(void)tls;
	if (rc < 0 || (rc = gnutls_buffer_append_data(to, suite, sizeof(suite))) < 0 ||
	    (rc = gnutls_buffer_append_data(to, dummy, 1)) < 0 ||
	    (rc = gnutls_buffer_append_data(to, key_size, sizeof(key_size))) < 0 ||
	    (rc = gnutls_buffer_append_data(to, dummy + 1, KEY_BYTES)) < 0 ||
	    (rc = gnutls_buffer_append_data(to, size, sizeof(size))) < 0 ||
	    (rc = gnutls_buffer_append_data(to, dummy + 1 + KEY_BYTES, DUMMY_BYTES)) < 0)
		return rc;
	return (int)(sizeof(suite) + sizeof(key_size) + sizeof(size) + sizeof(dummy));
}

static int ech_open(struct ech *e)
{
	static const char priorities[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";
	static const gnutls_datum_t protocols[] = {
		{ (unsigned char *)(uintptr_t) "h2", 2 },
		{ (unsigned char *)(uintptr_t) "http/1.1", 8 },
	};

	if (gnutls_certificate_allocate_credentials(&e->trust) < 0 ||
	    gnutls_init(&e->tls,
			GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS) < 0)
		return -1;
	gnutls_session_set_ptr(e->tls, e);
	gnutls_transport_set_int(e->tls, e->fd);
	if (gnutls_priority_set_direct(e->tls, priorities, NULL) < 0 ||
	    gnutls_credentials_set(e->tls, GNUTLS_CRD_CERTIFICATE, e->trust) < 0 ||
	    gnutls_alpn_set_protocols(e->tls, protocols, ARRAY_LEN(protocols), 0) < 0 ||
	    gnutls_server_name_set(e->tls, GNUTLS_NAME_DNS, e->name, strlen(e->name)) < 0 ||
	    gnutls_session_ext_register(e->tls, "encrypted_client_hello", EXT_ECH, GNUTLS_EXT_TLS,
					ech_answered, ech_dummy, NULL, NULL, NULL,
					GNUTLS_EXT_FLAG_TLS | GNUTLS_EXT_FLAG_CLIENT_HELLO |
						GNUTLS_EXT_FLAG_EE | GNUTLS_EXT_FLAG_HRR) < 0)
		return -1;
	return 0;
}

static void on_ready(uv_poll_t *poll, int status, int events);

/* Until the server has said all of its part, or has answered the dummy. */
static void ech_go(struct ech *e)
{
	int rc;

	do
		rc = gnutls_handshake(e->tls);
	while (rc == GNUTLS_E_INTERRUPTED || rc == GNUTLS_E_WARNING_ALERT_RECEIVED);
	if (rc == GNUTLS_E_AGAIN && !e->reads &&
	    uv_poll_start(e->poll, gnutls_record_get_direction(e->tls) ? UV_WRITABLE : UV_READABLE,
			  on_ready) == 0)
		return;
	e->hides = e->reads || rc < 0;
	if (e->reads || rc >= 0)
		ech_keep(e);
	ech_end(e);
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
	struct ech *e = poll->data;

	(void)events;
	if (status < 0)
		ech_end(e);
	else
		ech_go(e);
}

static void on_dialled(void *owner, int fd, const struct net_addr *addr, enum nw_reason reason)
{
	struct ech *e = owner;

	(void)addr;
	(void)reason;
	e->dial = NULL;
	e->fd = fd;
	if (fd >= 0)
		e->poll = poll_new(&e->of->of->loop, fd, e);
	if (!e->poll || ech_open(e) < 0)
		ech_end(e);
	else
		ech_go(e);
}

struct ech *ech_start(struct sandbox *s, const struct dial_to *to, const char *name,
		      ech_fn *on_done, void *owner)
{
	struct ech *e = mem_zalloc(sizeof(*e));

	if (!e)
		return NULL;
	*e = (struct ech){ .of = s, .on_done = on_done, .owner = owner, .fd = -1, .hides = true };
	e->addr = to->addr;
	e->port = to->port;
	memcpy(e->name, name, strlen(name) + 1);
	e->later = timer_new(&s->of->loop, e);
	if (e->later && ech_is_known(e)) {
		e->hides = ech_slot(e)->hides;
		uv_timer_start(e->later, on_later, 0, 0);
		return e;
	}
	e->dial = e->later ? dial_start(s, to, on_dialled, e) : NULL;
	if (e->dial)
		return e;
	ech_cancel(e);
	return NULL;
}
