#include "base/secret.h"

#include <sodium.h>

#include "base/log.h"

struct secret {
	size_t n;
	char bytes[];
};

static struct secret *secret_make(size_t n, struct err *e)
{
	/* sodium_malloc() aligns the end, so an odd size would misalign the start */
	size_t whole = (sizeof(struct secret) + n + 7) & ~(size_t)7;
	struct secret *s = sodium_init() < 0 ? NULL : sodium_malloc(whole);

	if (!s) {
		err_set(e, ERR_LIMIT, "no memory for a secret");
		return NULL;
	}
	s->n = n;
	return s;
}

struct secret *secret_new(struct str bytes, struct err *e)
{
	struct secret *s = secret_make(bytes.n, e);

	if (s && bytes.n > 0)
		memcpy(s->bytes, bytes.p, bytes.n);
	return s;
}

struct secret *secret_random(const char *prefix, struct err *e)
{
	unsigned char raw[32];
	char hex[2 * sizeof(raw) + 1];
	size_t n = strlen(prefix);
	struct secret *s = secret_make(n + sizeof(hex) - 1, e);

	if (!s)
		return NULL;
	randombytes_buf(raw, sizeof(raw));
	sodium_bin2hex(hex, sizeof(hex), raw, sizeof(raw));
	memcpy(s->bytes, prefix, n);
	memcpy(s->bytes + n, hex, sizeof(hex) - 1);
	sodium_memzero(raw, sizeof(raw));
	sodium_memzero(hex, sizeof(hex));
	return s;
}

void secret_free(struct secret *s)
{
	sodium_free(s);
}

bool secret_is(const struct secret *s, struct str candidate)
{
	bool same_length = candidate.n == s->n;

	/* The time does not depend on the length. */
	return sodium_memcmp(s->bytes, same_length ? candidate.p : s->bytes, s->n) == 0 &&
	       same_length;
}

struct str secret_expose(const struct secret *s, const char *why)
{
	log_debug("a secret is read: %s", why);
	return (struct str){ s->bytes, s->n };
}
