#include "base/id.h"
#include "base/base64.h"
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

static int write_header(const struct oauth_client *c, enum sign_alg alg, struct buf *to,
			struct err *e)
{
	struct json_writer w = json_writer(to);

	json_write_object(&w);
	json_write_key(&w, "alg");
	json_write_text(&w, sign_alg_name(alg));
	json_write_key(&w, "typ");
	json_write_text(&w, "JWT");
	if (c->key_id) {
		json_write_key(&w, "kid");
		json_write_text(&w, c->key_id);
	}
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

/* RFC 7523 section 3: by us, about us, for the issuer, for a short while, once. */
static int write_claims(const struct oauth_client *c, const char *audience, struct buf *to,
			struct err *e)
{
	struct json_writer w = json_writer(to);
	int64_t now = time(NULL);
	char id[ID_MAX];

	id_make(id, "jti");
	json_write_object(&w);
	json_write_key(&w, "iss");
	json_write_text(&w, c->id);
	json_write_key(&w, "sub");
	json_write_text(&w, c->id);
	json_write_key(&w, "aud");
	json_write_text(&w, audience);
	json_write_key(&w, "iat");
	json_write_int(&w, now);
	json_write_key(&w, "exp");
	json_write_int(&w, now + ASSERTION_SECONDS);
	json_write_key(&w, "jti");
	json_write_text(&w, id);
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

int oauth_jwt_client(const struct oauth_client *c, enum sign_alg alg, const char *audience,
		     struct buf *to, struct err *e)
{
	autobuf struct buf header = BUF_INIT(JSON_TEXT_MAX), claims = BUF_INIT(JSON_TEXT_MAX);

	if (write_header(c, alg, &header, e) < 0 || write_claims(c, audience, &claims, e) < 0)
		return -1;
	return oauth_jwt(c->key, alg, buf_str(&header), buf_str(&claims), to, e);
}
