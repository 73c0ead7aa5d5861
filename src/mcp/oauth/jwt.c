/*
 * Signed JSON: assertions of the client's identity (RFC 7523), and proofs of possession (RFC 9449).
 * The key for proofs is made for a server's tokens and stored with them, since a refresh token may
 * be bound to it too.
 */
#include "base/base64.h"
#include "base/id.h"
#include "mcp/oauth/internal.h"

#include <time.h>

enum { JSON_TEXT_MAX = 8192, ASSERTION_SECONDS = 300 };

int oauth_jwt(const struct sign_key *k, enum sign_alg alg, struct str header, struct str payload,
	      struct buf *to, struct err *e)
{
	size_t from = to->n;

	if (base64url_encode(to, header, e) < 0 || buf_add(to, ".", 1, e) < 0 ||
	    base64url_encode(to, payload, e) < 0)
		return -1;
	autobuf struct buf signature = BUF_INIT(JSON_TEXT_MAX);

	if (sign_bytes(k, alg, (struct str){ to->p + from, to->n - from }, &signature, e) < 0 ||
	    buf_add(to, ".", 1, e) < 0)
		return -1;
	return buf_add(to, signature.p, signature.n, e);
}

static int assertion_header(const struct oauth_client *c, enum sign_alg alg, struct buf *to,
			    struct err *e)
{
	struct json_writer w = json_writer(to);

	json_write_object(&w);
	json_put_text(&w, "alg", sign_alg_name(alg));
	json_put_text(&w, "typ", "JWT");
	if (c->key_id)
		json_put_text(&w, "kid", c->key_id);
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

/* RFC 7523 section 3: issued by the client, about itself, for the issuer, valid for a short time,
 * once. */
static int assertion_claims(const struct oauth_client *c, const char *audience, struct buf *to,
			    struct err *e)
{
	struct json_writer w = json_writer(to);
	int64_t now = time(NULL);
	char id[ID_MAX];

	id_make(id, "jti");
	json_write_object(&w);
	json_put_text(&w, "iss", c->id);
	json_put_text(&w, "sub", c->id);
	json_put_text(&w, "aud", audience);
	json_put_int(&w, "iat", now);
	json_put_int(&w, "exp", now + ASSERTION_SECONDS);
	json_put_text(&w, "jti", id);
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

int oauth_jwt_client(const struct oauth_client *c, enum sign_alg alg, const char *audience,
		     struct buf *to, struct err *e)
{
	autobuf struct buf header = BUF_INIT(JSON_TEXT_MAX), claims = BUF_INIT(JSON_TEXT_MAX);

	if (assertion_header(c, alg, &header, e) < 0 ||
	    assertion_claims(c, audience, &claims, e) < 0)
		return -1;
	return oauth_jwt(c->key, alg, buf_str(&header), buf_str(&claims), to, e);
}

/* --- proofs of possession --- */

bool oauth_dpop_nonce(char to[OAUTH_NONCE_MAX + 1], struct str nonce)
{
	if (!oauth_is_opaque(nonce, OAUTH_NONCE_MAX) || memchr(nonce.p, '"', nonce.n) ||
	    memchr(nonce.p, '\\', nonce.n))
		return false;
	memcpy(to, nonce.p, nonce.n);
	to[nonce.n] = '\0';
	return true;
}

/* The algorithms of a challenge, as bits; all if it names none. */
static unsigned said_algs(const char *text)
{
	unsigned algs = *text ? 0 : ~0u;

	for (size_t n; *text; text += n) {
		enum sign_alg alg;

		text += strspn(text, " ");
		n = strcspn(text, " ");
		alg = sign_alg_of((struct str){ text, n });
		algs |= alg < SIGN_ALGS ? 1u << alg : 0;
	}
	return algs;
}

/* Chooses an algorithm that all accept: one of our key, else one of those for which we make
 * keys. */
static enum sign_alg jwt_choose(const struct mcp_oauth *o)
{
	static const enum sign_alg ours[] = { SIGN_ES256, SIGN_EDDSA };
	unsigned algs = o->issuer.dpop_algs & o->resource.dpop_algs & said_algs(o->challenge.algs);
	enum sign_alg best = SIGN_ALGS;

	for (size_t i = ARRAY_LEN(ours); i-- > 0;) {
		if (!(algs & 1u << ours[i]))
			continue;
		if (o->dpop_key && sign_key_can(o->dpop_key, ours[i]))
			return ours[i];
		best = ours[i];
	}
	return best;
}

bool oauth_dpop_is_on(const struct mcp_oauth *o)
{
	return o->state == OAUTH_REFRESH ? o->token.dpop : o->dpop;
}

/* A resource that does not support proofs could not use bound tokens, so both servers must support
 * them. */
int oauth_dpop_decide(struct mcp_oauth *o, struct err *e)
{
	enum sign_alg alg = jwt_choose(o);
	bool must = o->opt.dpop == MCP_OAUTH_DPOP_ALWAYS || o->resource.dpop_required;

	o->dpop = false;
	if (o->opt.dpop == MCP_OAUTH_DPOP_NEVER)
		return o->resource.dpop_required
			     ? err_set(e, ERR_DENIED,
				       "the server wants DPoP, which is switched off")
			     : 0;
	if (alg == SIGN_ALGS)
		return must ? err_set(e, ERR_DENIED,
				      "tokens must be bound by DPoP, and there is no algorithm "
				      "that the server, its authorization server and we have")
			    : 0;
	if (!must && !o->resource.dpop && !o->challenge.dpop && !o->token.dpop)
		return 0;
	if (o->dpop_key && !sign_key_can(o->dpop_key, alg)) {
		sign_key_free(take_ptr(o->dpop_key));
		if (o->token.dpop)
			oauth_token_fini(&o->token);
	}
	if (!o->dpop_key)
		o->dpop_key = sign_key_new(alg, e);
	o->dpop = o->dpop_key != NULL;
	return o->dpop ? 0 : -1;
}

static int proof_header(const struct sign_key *k, enum sign_alg alg, struct buf *to, struct err *e)
{
	struct json_writer w = json_writer(to);
	autobuf struct buf jwk = BUF_INIT(JSON_TEXT_MAX);

	if (sign_key_jwk(k, &jwk, e) < 0)
		return -1;
	json_write_object(&w);
	json_put_text(&w, "typ", "dpop+jwt");
	json_put_text(&w, "alg", sign_alg_name(alg));
	json_put_raw(&w, "jwk", buf_str(&jwk));
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

/* htu is the URL without query and fragment; ath is the token's digest. */
static int proof_claims(const char *method, const char *url, struct str ath, const char *nonce,
			struct buf *to, struct err *e)
{
	struct json_writer w = json_writer(to);
	char id[ID_MAX];

	id_make(id, "jti");
	json_write_object(&w);
	json_put_text(&w, "jti", id);
	json_put_text(&w, "htm", method);
	json_put_str(&w, "htu", (struct str){ url, strcspn(url, "?#") });
	json_put_int(&w, "iat", time(NULL));
	if (ath.n > 0)
		json_put_str(&w, "ath", ath);
	if (nonce[0])
		json_put_text(&w, "nonce", nonce);
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

int oauth_dpop_proof(struct mcp_oauth *o, const char *method, const char *url, struct str token,
		     const char *nonce, struct buf *to, struct err *e)
{
	autobuf struct buf header = BUF_INIT(JSON_TEXT_MAX), claims = BUF_INIT(JSON_TEXT_MAX);
	autobuf struct buf ath = BUF_INIT(64);
	enum sign_alg alg = sign_key_can(o->dpop_key, SIGN_ES256) ? SIGN_ES256 : SIGN_EDDSA;

	if (token.n > 0 && sign_digest(token, &ath, e) < 0)
		return -1;
	if (proof_header(o->dpop_key, alg, &header, e) < 0 ||
	    proof_claims(method, url, buf_str(&ath), nonce, &claims, e) < 0)
		return -1;
	return oauth_jwt(o->dpop_key, alg, buf_str(&header), buf_str(&claims), to, e);
}
