/*
 * What the TLS addresses show their clients and want of them. libmicrohttpd takes a certificate
 * only when it starts, and asks clients for one without looking at it. So each of its sessions
 * gets our credentials before the first byte of its handshake: new connections see a renewed
 * certificate, and GnuTLS itself refuses a client whose certificate no trusted authority has
 * signed.
 *
 * After an upgrade the daemon would decrypt into a socketpair, a few bytes at a time. So a
 * WebSocket takes the session and uses it itself. The daemon still reads from the session whenever
 * its client has sent something. It finds nothing there: its reads get no bytes from the transport,
 * and a WebSocket leaves nothing in the session that is decrypted already.
 */
#include "http/server/internal.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/library.h"

/* Forward secrecy and authenticated encryption only. */
const char server_tls_priorities[] =
	"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA:-CIPHER-ALL:+AES-256-GCM:"
	"+CHACHA20-POLY1305:+AES-128-GCM:%SERVER_PRECEDENCE";

struct server_tls {
	unsigned refs;
	gnutls_certificate_credentials_t credentials;
	bool asks; /* each client has to have a certificate */
};

static int fill_credentials(struct server_tls *t, const struct http_tls *from, struct err *e)
{
	gnutls_datum_t certificate = { (void *)from->certificate,
				       (unsigned)strlen(from->certificate) };
	gnutls_datum_t key = { (void *)from->key, (unsigned)strlen(from->key) };
	gnutls_datum_t ca = { (void *)from->client_ca, 0 };
	int rc = gnutls_certificate_set_x509_key_mem(t->credentials, &certificate, &key,
						     GNUTLS_X509_FMT_PEM);

	if (rc < 0)
		return err_set(e, ERR_INVALID, "the certificate and key can't be used: %s",
			       gnutls_strerror(rc));
	if (!from->client_ca)
		return 0;
	ca.size = (unsigned)strlen(from->client_ca);
	rc = gnutls_certificate_set_x509_trust_mem(t->credentials, &ca, GNUTLS_X509_FMT_PEM);
	if (rc <= 0)
		return err_set(e, ERR_INVALID, "the authorities of clients can't be used: %s",
			       rc < 0 ? gnutls_strerror(rc) : "there is no certificate");
	t->asks = true;
	return 0;
}

struct server_tls *server_tls_new(const struct http_tls *from, struct err *e)
{
	AUTO(server_tls_unref) struct server_tls *t = NULL;

	if (library_load("gnutls", e) < 0)
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t || gnutls_certificate_allocate_credentials(&t->credentials) < 0) {
		free(take_ptr(t));
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	}
	t->refs = 1;
	return fill_credentials(t, from, e) < 0 ? NULL : take_ptr(t);
}

struct server_tls *server_tls_ref(struct server_tls *t)
{
	t->refs++;
	return t;
}

void server_tls_unref(struct server_tls *t)
{
	if (!t || --t->refs > 0)
		return;
	gnutls_certificate_free_credentials(t->credentials);
	free(t);
}

static gnutls_session_t session_of(const struct conn *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);

	return info ? info->tls_session : NULL;
}

static ssize_t pull(gnutls_transport_ptr_t data, void *to, size_t n)
{
	struct conn *c = data;

	if (c->state != CONN_UPGRADED || c->tls_reads)
		return recv(c->fd, to, n, 0);
	errno = EAGAIN; /* the daemon asks */
	return -1;
}

bool server_tls_use(struct server_tls *t, struct conn *c)
{
	static gnutls_typed_vdata_st of_client = { .type = GNUTLS_DT_KEY_PURPOSE_OID,
						   .data = (void *)GNUTLS_KP_TLS_WWW_CLIENT };
	gnutls_session_t session = session_of(c);

	if (!session || gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, t->credentials) < 0)
		return false;
	if (t->asks) {
		gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
		gnutls_session_set_verify_cert2(session, &of_client, 1, 0);
	}
	/* GnuTLS may leave encryption to the kernel, but not with a transport of ours. */
	gnutls_transport_set_ptr2(session, c, (gnutls_transport_ptr_t)(intptr_t)c->fd);
	gnutls_transport_set_pull_function(session, pull);
	return true;
}

/* ---- after an upgrade ---------------------------------------------------------------------- */

static ssize_t push(gnutls_transport_ptr_t data, const void *p, size_t n)
{
	struct conn *c = data;

	return send(c->fd, p, n, MSG_NOSIGNAL | (c->tls_more ? MSG_MORE : 0));
}

/* A client that asks for a new handshake is at its end, too. */
static ssize_t as_errno(ssize_t rc)
{
	if (rc >= 0)
		return rc;
	errno = rc == GNUTLS_E_AGAIN || rc == GNUTLS_E_INTERRUPTED ? EAGAIN : EIO;
	return -1;
}

int server_tls_take(struct conn *c, struct buf *to, struct err *e)
{
	gnutls_session_t session = session_of(c);
	size_t n = gnutls_record_check_pending(session);
	char *at;

	gnutls_transport_set_ptr(session, c);
	gnutls_transport_set_push_function(session, push);
	if (n == 0)
		return 0;
	at = buf_reserve(to, n, e);
	if (!at)
		return -1;
	if (gnutls_record_recv(session, at, n) != (ssize_t)n)
		return err_set(e, ERR_TRANSPORT, "the TLS session is broken");
	buf_advance(to, n);
	return 0;
}

ssize_t server_tls_read(struct conn *c, void *to, size_t n)
{
	gnutls_session_t session = session_of(c);
	ssize_t got;

	c->tls_reads = true;
	got = as_errno(gnutls_record_recv(session, to, n));
	c->tls_reads = false;
	if (gnutls_record_check_pending(session) == 0)
		return got;
	errno = EIO; /* the record was larger than TLS allows */
	return -1;
}

ssize_t server_tls_write(struct conn *c, const void *p, size_t n, bool more)
{
	c->tls_more = more;
	return as_errno(gnutls_record_send(session_of(c), p, n));
}

void server_tls_bye(struct conn *c)
{
	gnutls_bye(session_of(c), GNUTLS_SHUT_WR);
}
