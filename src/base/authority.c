#include "base/authority.h"

#include <gnutls/crypto.h>
#include <gnutls/x509.h>
#include <time.h>

#include "base/library.h"

enum { SERIAL_BYTES = 16, ID_BYTES = 20, DAY_S = 24 * 3600, VALID_S = 3650 * DAY_S };

struct authority {
	gnutls_x509_crt_t crt;
	gnutls_x509_privkey_t key;
	gnutls_datum_t crt_pem, key_pem;
};

static void authority_fini(struct authority *a)
{
	if (a->crt)
		gnutls_x509_crt_deinit(a->crt);
	if (a->key)
		gnutls_x509_privkey_deinit(a->key);
	if (a->key_pem.data)
		explicit_bzero(a->key_pem.data, a->key_pem.size);
	free(a->key_pem.data); /* gnutls_free is a variable, which is always free() */
	free(a->crt_pem.data);
}

/* Fields that strict clients want in an authority (RFC 5280 section 4.2.1). */
static int certify(struct authority *a, const char *name)
{
	unsigned char random[SERIAL_BYTES + ID_BYTES];
	time_t now = time(NULL);
	int rc = gnutls_rnd(GNUTLS_RND_NONCE, random, sizeof(random));

	random[0] = (random[0] & 0x7f) | 1; /* positive, and of the full length */
#define TRY(call) rc = rc < 0 ? rc : (call)
	TRY(gnutls_x509_privkey_init(&a->key));
	TRY(gnutls_x509_privkey_generate(a->key, GNUTLS_PK_ECDSA,
					 (unsigned)GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1),
					 0));
	TRY(gnutls_x509_crt_init(&a->crt));
	TRY(gnutls_x509_crt_set_version(a->crt, 3));
	TRY(gnutls_x509_crt_set_serial(a->crt, random, SERIAL_BYTES));
	TRY(gnutls_x509_crt_set_activation_time(a->crt, now - DAY_S));
	TRY(gnutls_x509_crt_set_expiration_time(a->crt, now + VALID_S));
	TRY(gnutls_x509_crt_set_dn_by_oid(a->crt, GNUTLS_OID_X520_ORGANIZATION_NAME, 0, name,
					  (unsigned)strlen(name)));
	TRY(gnutls_x509_crt_set_key(a->crt, a->key));
	TRY(gnutls_x509_crt_set_basic_constraints(a->crt, 1, 0));
	TRY(gnutls_x509_crt_set_key_usage(a->crt, GNUTLS_KEY_KEY_CERT_SIGN));
	TRY(gnutls_x509_crt_set_subject_key_id(a->crt, random + SERIAL_BYTES, ID_BYTES));
	TRY(gnutls_x509_crt_sign2(a->crt, a->crt, a->key, GNUTLS_DIG_SHA256, 0));
	TRY(gnutls_x509_crt_export2(a->crt, GNUTLS_X509_FMT_PEM, &a->crt_pem));
	TRY(gnutls_x509_privkey_export2_pkcs8(a->key, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN,
					      &a->key_pem));
#undef TRY
	return rc;
}

int authority_make(const char *name, struct secret **ret_key, struct buf *certificate,
		   struct err *e)
{
	struct authority a = { .crt = NULL };
	struct secret *key = NULL;
	int rc;

	if (library_load("gnutls", e) < 0)
		return -1;
	rc = certify(&a, name);
	if (rc < 0)
		err_set(e, ERR_IO, "make an authority: %s", gnutls_strerror(rc));
	else
		key = secret_new((struct str){ (char *)a.key_pem.data, a.key_pem.size }, e);
	if (key && buf_add(certificate, a.crt_pem.data, a.crt_pem.size, e) < 0)
		secret_free(take_ptr(key));
	authority_fini(&a);
	if (!key)
		return -1;
	*ret_key = key;
	return 0;
}
