/* base/sign.h: signatures are verified by the library's other half, and keys by known answers. */
#include "base/sign.h"

#include <gnutls/abstract.h>
#include <gnutls/crypto.h>

#include "base/base64.h"
#include "test.h"

/* RFC 8037 appendix A: an Ed25519 key, its JWK, thumbprint and a signature of
 * "eyJhbGciOiJFZERTQSJ9. RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc". */
static const char ed_pem[] = "-----BEGIN PRIVATE KEY-----\n"
			     "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
			     "-----END PRIVATE KEY-----\n";
static const char ed_jwk[] = "{\"crv\":\"Ed25519\",\"kty\":\"OKP\","
			     "\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}";
static const char ed_print[] = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k";
static const char ed_text[] = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
static const char ed_signature[] =
	"hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";

static void test_known_answer(void **state)
{
	struct err e = ERR_INIT;
	AUTO(sign_key_free) struct sign_key *k = sign_key_read(str_of(ed_pem), &e);
	autobuf struct buf jwk = BUF_INIT(1000), print = BUF_INIT(1000), sig = BUF_INIT(1000);

	assert_non_null(k);
	assert_int_equal(sign_key_jwk(k, &jwk, &e), 0);
	assert_string_equal(jwk.p, ed_jwk);
	assert_int_equal(sign_key_thumbprint(k, &print, &e), 0);
	assert_string_equal(print.p, ed_print);
	assert_int_equal(sign_bytes(k, SIGN_EDDSA, str_of(ed_text), &sig, &e), 0);
	assert_string_equal(sig.p, ed_signature);
}

static void test_digest(void **state)
{
	autobuf struct buf out = BUF_INIT(1000);
	struct err e;

	/* RFC 7636 appendix B */
	assert_int_equal(
		sign_digest(STR_LIT("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"), &out, &e), 0);
	assert_string_equal(out.p, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
}

static int value_of(char c)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789-_";

	return (int)(strchr(letters, c) - letters);
}

static size_t decode(const char *text, unsigned char *to)
{
	size_t n = 0;
	unsigned v = 0, bits = 0;

	for (; *text; text++) {
		v = v << 6 | (unsigned)value_of(*text);
		bits += 6;
		if (bits >= 8)
			to[n++] = (unsigned char)(v >> (bits -= 8));
	}
	return n;
}

/* As a stranger would: with the public half alone. */
static bool verifies(const char *pem, enum sign_alg alg, const char *text, const char *signature)
{
	static const gnutls_sign_algorithm_t algs[] = {
		[SIGN_ES256] = GNUTLS_SIGN_ECDSA_SHA256,
		[SIGN_EDDSA] = GNUTLS_SIGN_EDDSA_ED25519,
		[SIGN_PS256] = GNUTLS_SIGN_RSA_PSS_RSAE_SHA256,
		[SIGN_RS256] = GNUTLS_SIGN_RSA_SHA256,
	};
	gnutls_datum_t in = { (unsigned char *)(uintptr_t)pem, (unsigned)strlen(pem) };
	gnutls_datum_t data = { (unsigned char *)(uintptr_t)text, (unsigned)strlen(text) };
	unsigned char raw[1024];
	gnutls_datum_t sig = { raw, (unsigned)decode(signature, raw) };
	gnutls_datum_t r = { raw, 32 }, s = { raw + 32, 32 };
	gnutls_privkey_t key;
	gnutls_pubkey_t pub;
	int rc;

	assert_int_equal(gnutls_privkey_init(&key), 0);
	assert_int_equal(gnutls_pubkey_init(&pub), 0);
	assert_true(gnutls_privkey_import_x509_raw(key, &in, GNUTLS_X509_FMT_PEM, NULL, 0) >= 0);
	assert_true(gnutls_pubkey_import_privkey(pub, key, 0, 0) >= 0);
	if (alg == SIGN_ES256) {
		assert_int_equal(sig.size, 64);
		assert_true(gnutls_encode_rs_value(&sig, &r, &s) >= 0);
	}
	rc = gnutls_pubkey_verify_data2(pub, algs[alg], 0, &data, &sig);
	if (alg == SIGN_ES256)
		gnutls_free(sig.data);
	gnutls_pubkey_deinit(pub);
	gnutls_privkey_deinit(key);
	return rc >= 0;
}

static void check_signs(struct sign_key *k, enum sign_alg alg)
{
	struct err e = ERR_INIT;
	AUTO(secret_free) struct secret *pem = sign_key_pem(k, &e);
	autobuf struct buf sig = BUF_INIT(2000);
	autofree char *text = NULL;

	assert_non_null(pem);
	text = strndup(secret_expose(pem, "test").p, secret_expose(pem, "test").n);
	assert_int_equal(sign_bytes(k, alg, STR_LIT("what is signed"), &sig, &e), 0);
	assert_true(verifies(text, alg, "what is signed", sig.p));
	assert_false(verifies(text, alg, "what is signer", sig.p));
}

/* Often enough that numbers with zeros before them come by. */
static void test_new_keys(void **state)
{
	for (unsigned i = 0; i < 300; i++) {
		enum sign_alg alg = i % 8 ? SIGN_ES256 : SIGN_EDDSA;
		struct err e = ERR_INIT;
		AUTO(sign_key_free) struct sign_key *k = sign_key_new(alg, &e);
		autobuf struct buf jwk = BUF_INIT(1000), again = BUF_INIT(1000);
		AUTO(secret_free) struct secret *pem = k ? sign_key_pem(k, &e) : NULL;
		AUTO(sign_key_free)
		struct sign_key *same = pem ? sign_key_read(secret_expose(pem, "test"), &e) : NULL;

		assert_non_null(same);
		check_signs(k, alg);
		assert_int_equal(sign_key_jwk(k, &jwk, &e), 0);
		assert_int_equal(sign_key_jwk(same, &again, &e), 0);
		assert_string_equal(jwk.p, again.p);
		assert_int_equal(jwk.n, alg == SIGN_ES256 ? 126 : 79);
	}
}

static char *make_rsa(unsigned bits)
{
	gnutls_x509_privkey_t x;
	gnutls_datum_t pem;
	char *text;

	assert_int_equal(gnutls_x509_privkey_init(&x), 0);
	assert_true(gnutls_x509_privkey_generate(x, GNUTLS_PK_RSA, bits, 0) >= 0);
	assert_true(gnutls_x509_privkey_export2(x, GNUTLS_X509_FMT_PEM, &pem) >= 0);
	text = strdup((char *)pem.data);
	gnutls_free(pem.data);
	gnutls_x509_privkey_deinit(x);
	return text;
}

static void test_rsa(void **state)
{
	autofree char *pem = make_rsa(2048), *weak = make_rsa(1024);
	struct err e = ERR_INIT;
	AUTO(sign_key_free) struct sign_key *k = sign_key_read(str_of(pem), &e);
	autobuf struct buf jwk = BUF_INIT(1000), sig = BUF_INIT(1000);

	assert_non_null(k);
	assert_true(sign_key_can(k, SIGN_RS256) && sign_key_can(k, SIGN_PS256));
	assert_false(sign_key_can(k, SIGN_ES256) || sign_key_can(k, SIGN_EDDSA));
	check_signs(k, SIGN_RS256);
	check_signs(k, SIGN_PS256);
	assert_int_equal(sign_key_jwk(k, &jwk, &e), 0);
	assert_true(str_starts(buf_str(&jwk), "{\"e\":\"AQAB\",\"kty\":\"RSA\",\"n\":\""));
	assert_int_equal(sign_bytes(k, SIGN_ES256, STR_LIT("x"), &sig, &e), -1);
	assert_int_equal(e.code, ERR_INVALID);
	assert_null(sign_key_read(str_of(weak), &e));
	assert_int_equal(e.code, ERR_INVALID);
}

static void test_refused(void **state)
{
	static const char *const broken[] = {
		"",
		"hello",
		"-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n",
		"-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1h\n-----END PRIVATE "
		"KEY-----\n",
		"-----BEGIN PUBLIC KEY-----\n"
		"MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n"
		"-----END PUBLIC KEY-----\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
		struct err e = ERR_INIT;

		assert_null(sign_key_read(str_of(broken[i]), &e));
		assert_int_equal(e.code, ERR_INVALID);
	}
	for (enum sign_alg alg = SIGN_PS256; alg < SIGN_ALGS; alg++) {
		struct err e = ERR_INIT;

		assert_null(sign_key_new(alg, &e));
		assert_int_equal(e.code, ERR_INVALID);
	}
}

static void test_names(void **state)
{
	for (enum sign_alg alg = 0; alg < SIGN_ALGS; alg++)
		assert_int_equal(sign_alg_of(str_of(sign_alg_name(alg))), alg);
	assert_int_equal(sign_alg_of(STR_LIT("none")), SIGN_ALGS);
	assert_int_equal(sign_alg_of(STR_LIT("HS256")), SIGN_ALGS);
	assert_int_equal(sign_alg_of(STR_NONE), SIGN_ALGS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_answer), cmocka_unit_test(test_digest),
		cmocka_unit_test(test_new_keys),     cmocka_unit_test(test_rsa),
		cmocka_unit_test(test_refused),	     cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
