/*
 * GnuTLS encodes ECDSA signatures as DER, but JSON Web Signatures need the two numbers side by
 * side, 32 bytes each. Numbers of keys may have leading zeros or lack them; they are normalised
 * here.
 */
#include "base/sign.h"

#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <stdint.h>

#include "base/base64.h"
#include "base/library.h"

enum { DIGEST_BYTES = 32, EC_BYTES = 32, RSA_BITS_MIN = 2048, RSA_BITS_MAX = 8192, JWK_MAX = 4096 };

struct sign_key {
	gnutls_privkey_t key;
	gnutls_pubkey_t pub;
	gnutls_pk_algorithm_t kind;
};

static const struct {
	const char *name;
	gnutls_pk_algorithm_t kind;
	gnutls_sign_algorithm_t sign;
	gnutls_ecc_curve_t curve; /* of new keys */
} algs[SIGN_ALGS] = {
	[SIGN_ES256] = { "ES256", GNUTLS_PK_ECDSA, GNUTLS_SIGN_ECDSA_SHA256,
			 GNUTLS_ECC_CURVE_SECP256R1 },
	[SIGN_EDDSA] = { "EdDSA", GNUTLS_PK_EDDSA_ED25519, GNUTLS_SIGN_EDDSA_ED25519,
			 GNUTLS_ECC_CURVE_ED25519 },
	[SIGN_PS256] = { "PS256", GNUTLS_PK_RSA, GNUTLS_SIGN_RSA_PSS_RSAE_SHA256,
			 GNUTLS_ECC_CURVE_INVALID },
	[SIGN_RS256] = { "RS256", GNUTLS_PK_RSA, GNUTLS_SIGN_RSA_SHA256, GNUTLS_ECC_CURVE_INVALID },
};

static int sign_failed(int rc, const char *what, struct err *e)
{
	return err_set(e, rc == GNUTLS_E_MEMORY_ERROR ? ERR_LIMIT : ERR_INVALID, "%s: %s", what,
		       gnutls_strerror(rc));
}

/* gnutls_free is a variable, which is always free(). */
static void datum_fini(gnutls_datum_t *d)
{
	if (d->data)
		explicit_bzero(d->data, d->size);
	free(d->data);
}
#define autodatum __attribute__((cleanup(datum_fini)))

static gnutls_datum_t datum_of(struct str s)
{
	return (gnutls_datum_t){ (unsigned char *)(uintptr_t)s.p, (unsigned)s.n };
}

static struct str str_of_datum(const gnutls_datum_t *d)
{
	return (struct str){ (const char *)d->data, d->size };
}

/* --- algorithms --- */

const char *sign_alg_name(enum sign_alg alg)
{
	return algs[alg].name;
}

enum sign_alg sign_alg_of(struct str name)
{
	enum sign_alg alg = 0;

	while (alg < SIGN_ALGS && !str_is(name, algs[alg].name))
		alg++;
	return alg;
}

bool sign_key_can(const struct sign_key *k, enum sign_alg alg)
{
	return algs[alg].kind == k->kind;
}

/* --- keys --- */

void sign_key_free(struct sign_key *k)
{
	if (!k)
		return;
	if (k->pub)
		gnutls_pubkey_deinit(k->pub);
	if (k->key)
		gnutls_privkey_deinit(k->key);
	free(k);
}

static struct sign_key *key_new(struct err *e)
{
	AUTO(sign_key_free) struct sign_key *k = calloc(1, sizeof(*k));

	if (library_load("gnutls", e) < 0)
		return NULL;
	if (!k || gnutls_privkey_init(&k->key) < 0 || gnutls_pubkey_init(&k->pub) < 0) {
		err_set(e, ERR_LIMIT, "no memory for a key");
		return NULL;
	}
	return take_ptr(k);
}

/* Only P-256, and RSA keys that are neither weak nor absurdly large. */
static int check_kind(struct sign_key *k, struct err *e)
{
	gnutls_ecc_curve_t curve;
	unsigned bits = 0;
	int kind = gnutls_privkey_get_pk_algorithm(k->key, &bits);
	int rc = gnutls_pubkey_import_privkey(k->pub, k->key, 0, 0);

	if (rc < 0)
		return sign_failed(rc, "the private key", e);
	k->kind = (gnutls_pk_algorithm_t)kind;
	if (kind == GNUTLS_PK_RSA && (bits < RSA_BITS_MIN || bits > RSA_BITS_MAX))
		return err_set(e, ERR_INVALID, "an RSA key has %d to %d bits, not %u", RSA_BITS_MIN,
			       RSA_BITS_MAX, bits);
	if (kind == GNUTLS_PK_RSA || kind == GNUTLS_PK_EDDSA_ED25519)
		return 0;
	if (kind != GNUTLS_PK_ECDSA ||
	    gnutls_pubkey_export_ecc_raw2(k->pub, &curve, NULL, NULL, 0) < 0 ||
	    curve != GNUTLS_ECC_CURVE_SECP256R1)
		return err_set(e, ERR_INVALID, "a private key is RSA, EC P-256 or Ed25519");
	return 0;
}

struct sign_key *sign_key_new(enum sign_alg alg, struct err *e)
{
	AUTO(sign_key_free) struct sign_key *k = key_new(e);
	int rc;

	if (!k)
		return NULL;
	if (algs[alg].curve == GNUTLS_ECC_CURVE_INVALID) {
		err_set(e, ERR_INVALID, "no keys are made for %s", algs[alg].name);
		return NULL;
	}
	rc = gnutls_privkey_generate(k->key, algs[alg].kind,
				     (unsigned)GNUTLS_CURVE_TO_BITS(algs[alg].curve), 0);
	if (rc < 0) {
		sign_failed(rc, "make a key", e);
		return NULL;
	}
	return check_kind(k, e) < 0 ? NULL : take_ptr(k);
}

struct sign_key *sign_key_read(struct str pem, struct err *e)
{
	AUTO(sign_key_free) struct sign_key *k = key_new(e);
	gnutls_datum_t text = datum_of(pem);
	int rc;

	if (!k)
		return NULL;
	rc = gnutls_privkey_import_x509_raw(k->key, &text, GNUTLS_X509_FMT_PEM, NULL, 0);
	if (rc < 0) {
		sign_failed(rc, "no private key in PEM", e);
		return NULL;
	}
	return check_kind(k, e) < 0 ? NULL : take_ptr(k);
}

struct secret *sign_key_pem(const struct sign_key *k, struct err *e)
{
	autodatum gnutls_datum_t pem = { NULL, 0 };
	gnutls_x509_privkey_t x;
	int rc = gnutls_privkey_export_x509(k->key, &x);

	if (rc >= 0) {
		rc = gnutls_x509_privkey_export2_pkcs8(x, GNUTLS_X509_FMT_PEM, NULL,
						       GNUTLS_PKCS_PLAIN, &pem);
		gnutls_x509_privkey_deinit(x);
	}
	if (rc < 0) {
		sign_failed(rc, "write a key", e);
		return NULL;
	}
	return secret_new(str_of_datum(&pem), e);
}

/* --- the public half --- */

/* A number without leading zeros; for EC padded to the curve's length. */
static int add_number(struct buf *to, const gnutls_datum_t *d, size_t bytes, struct err *e)
{
	unsigned char whole[EC_BYTES] = { 0 };
	struct str s = str_of_datum(d);

	while (s.n > 0 && s.p[0] == 0) {
		s.p++;
		s.n--;
	}
	if (!bytes)
		return base64url_encode(to, s, e);
	if (s.n > bytes)
		return err_set(e, ERR_BUG, "a number of %zu bytes in a key of %zu", s.n, bytes);
	if (s.n > 0)
		memcpy(whole + bytes - s.n, s.p, s.n);
	return base64url_encode(to, (struct str){ (char *)whole, bytes }, e);
}

static int jwk_rsa(const struct sign_key *k, struct buf *to, struct err *e)
{
	autodatum gnutls_datum_t m = { NULL, 0 }, x = { NULL, 0 };
	int rc = gnutls_pubkey_export_rsa_raw2(k->pub, &m, &x, 0);

	if (rc < 0)
		return sign_failed(rc, "a public key", e);
	if (buf_addf(to, e, "{\"e\":\"") < 0 || add_number(to, &x, 0, e) < 0 ||
	    buf_addf(to, e, "\",\"kty\":\"RSA\",\"n\":\"") < 0 || add_number(to, &m, 0, e) < 0)
		return -1;
	return buf_addf(to, e, "\"}");
}

static int jwk_curve(const struct sign_key *k, struct buf *to, struct err *e)
{
	autodatum gnutls_datum_t x = { NULL, 0 }, y = { NULL, 0 };
	int rc = gnutls_pubkey_export_ecc_raw2(k->pub, NULL, &x, &y, 0);

	if (rc < 0)
		return sign_failed(rc, "a public key", e);
	if (k->kind == GNUTLS_PK_EDDSA_ED25519) /* x is bytes, no number */
		return buf_addf(to, e, "{\"crv\":\"Ed25519\",\"kty\":\"OKP\",\"x\":\"") < 0 ||
				       base64url_encode(to, str_of_datum(&x), e) < 0
			     ? -1
			     : buf_addf(to, e, "\"}");
	if (buf_addf(to, e, "{\"crv\":\"P-256\",\"kty\":\"EC\",\"x\":\"") < 0 ||
	    add_number(to, &x, EC_BYTES, e) < 0 || buf_addf(to, e, "\",\"y\":\"") < 0 ||
	    add_number(to, &y, EC_BYTES, e) < 0)
		return -1;
	return buf_addf(to, e, "\"}");
}

int sign_key_jwk(const struct sign_key *k, struct buf *to, struct err *e)
{
	return k->kind == GNUTLS_PK_RSA ? jwk_rsa(k, to, e) : jwk_curve(k, to, e);
}

int sign_key_thumbprint(const struct sign_key *k, struct buf *to, struct err *e)
{
	autobuf struct buf jwk = BUF_INIT(JWK_MAX);

	if (sign_key_jwk(k, &jwk, e) < 0)
		return -1;
	return sign_digest(buf_str(&jwk), to, e);
}

/* --- signing --- */

/* Converts DER into both numbers, side by side. */
static int add_pair(struct buf *to, const gnutls_datum_t *der, struct err *e)
{
	autodatum gnutls_datum_t r = { NULL, 0 }, s = { NULL, 0 };
	unsigned char both[2 * EC_BYTES] = { 0 };
	int rc = gnutls_decode_rs_value(der, &r, &s);
	gnutls_datum_t *of[] = { &r, &s };

	if (rc < 0)
		return sign_failed(rc, "a signature", e);
	for (size_t i = 0; i < ARRAY_LEN(of); i++) {
		struct str n = str_of_datum(of[i]);

		while (n.n > EC_BYTES && n.p[0] == 0) {
			n.p++;
			n.n--;
		}
		if (n.n > EC_BYTES)
			return err_set(e, ERR_BUG, "a signature is too long");
		memcpy(both + (i + 1) * EC_BYTES - n.n, n.p, n.n);
	}
	return base64url_encode(to, (struct str){ (char *)both, sizeof(both) }, e);
}

int sign_bytes(const struct sign_key *k, enum sign_alg alg, struct str bytes, struct buf *to,
	       struct err *e)
{
	autodatum gnutls_datum_t sig = { NULL, 0 };
	gnutls_datum_t data = datum_of(bytes);
	int rc;

	if (!sign_key_can(k, alg))
		return err_set(e, ERR_INVALID, "the private key can't sign with %s",
			       algs[alg].name);
	rc = gnutls_privkey_sign_data2(k->key, algs[alg].sign, 0, &data, &sig);
	if (rc < 0)
		return sign_failed(rc, "sign", e);
	return alg == SIGN_ES256 ? add_pair(to, &sig, e)
				 : base64url_encode(to, str_of_datum(&sig), e);
}

int sign_digest(struct str bytes, struct buf *to, struct err *e)
{
	unsigned char out[DIGEST_BYTES];
	int rc;

	if (library_load("gnutls", e) < 0)
		return -1;
	rc = gnutls_hash_fast(GNUTLS_DIG_SHA256, bytes.p, bytes.n, out);
	if (rc < 0)
		return sign_failed(rc, "SHA-256", e);
	return base64url_encode(to, (struct str){ (char *)out, sizeof(out) }, e);
}
