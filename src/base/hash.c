#include "base/hash.h"

#include <gnutls/crypto.h>

#include "base/library.h"

/* GnuTLS uses the processor's SHA instructions, which is several times as fast. */
struct hash {
	gnutls_hash_hd_t handle;
};

int hash_load(struct err *e)
{
	return library_load("gnutls", e);
}

struct hash *hash_new(struct err *e)
{
	struct hash *h;

	if (hash_load(e) < 0)
		return NULL;
	h = calloc(1, sizeof(*h));
	if (h && gnutls_hash_init(&h->handle, GNUTLS_DIG_SHA256) == 0)
		return h;
	free(h);
	err_set(e, ERR_LIMIT, "out of memory");
	return NULL;
}

void hash_free(struct hash *h)
{
	if (!h)
		return;
	gnutls_hash_deinit(h->handle, NULL);
	free(h);
}

void hash_add(struct hash *h, const void *p, size_t n)
{
	/* fails for no arguments that can be given here */
	if (n > 0 && gnutls_hash(h->handle, p, n) < 0)
		abort();
}

void hash_end(struct hash *h, char ret_hex[HASH_HEX + 1])
{
	static const char digits[] = "0123456789abcdef";
	unsigned char bytes[HASH_HEX / 2];

	gnutls_hash_output(h->handle, bytes);
	for (size_t i = 0; i < sizeof(bytes); i++) {
		ret_hex[2 * i] = digits[bytes[i] >> 4];
		ret_hex[2 * i + 1] = digits[bytes[i] & 15];
	}
	ret_hex[HASH_HEX] = '\0';
}

int hash_of(struct str bytes, char ret_hex[HASH_HEX + 1], struct err *e)
{
	AUTO(hash_free) struct hash *h = hash_new(e);

	if (!h)
		return -1;
	hash_add(h, bytes.p, bytes.n);
	hash_end(h, ret_hex);
	return 0;
}

bool hash_is_hex(struct str text)
{
	for (size_t i = 0; i < text.n; i++) {
		if (!(text.p[i] >= '0' && text.p[i] <= '9') &&
		    !(text.p[i] >= 'a' && text.p[i] <= 'f'))
			return false;
	}
	return text.n == HASH_HEX;
}
