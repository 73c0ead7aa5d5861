#include "guard/audit/key.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/fd.h"

#define TEXT_BYTES(n, how) sodium_base64_ENCODED_LEN(n, sodium_base64_VARIANT_##how)

enum {
	SEED_TEXT = TEXT_BYTES(crypto_sign_SEEDBYTES, ORIGINAL),
	SIG_TEXT = TEXT_BYTES(crypto_sign_BYTES, URLSAFE_NO_PADDING),
	PEM_MAX = 256,
};

#define PEM_BEGIN "-----BEGIN PUBLIC KEY-----"
#define PEM_END "-----END PUBLIC KEY-----"

/* SubjectPublicKeyInfo of Ed25519 (RFC 8410): the key itself follows. */
static const unsigned char spki[] = { 0x30, 0x2a, 0x30, 0x05, 0x06, 0x03,
				      0x2b, 0x65, 0x70, 0x03, 0x21, 0x00 };
enum { SPKI_BYTES = sizeof(spki) + AUDIT_PUBLIC };

struct audit_key {
	unsigned char secret[crypto_sign_SECRETKEYBYTES];
	struct audit_public public;
};

static void public_name(struct audit_public *p)
{
	char hash[AUDIT_HASH];

	sha256_hex((struct str){ (const char *)p->bytes, sizeof(p->bytes) }, hash);
	memcpy(p->id, hash, sizeof(p->id) - 1);
	p->id[sizeof(p->id) - 1] = '\0';
}

void audit_key_free(struct audit_key *k)
{
	if (!k)
		return;
	sodium_munlock(k, sizeof(*k)); /* wipes it, too */
	free(k);
}

/* A whole small file. -1 with errno. */
static ssize_t key_read_file(int folder, const char *name, char *to, size_t max, struct stat *s)
{
	autoclose int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0 || fstat(fd, s) < 0)
		return -1;
	return read(fd, to, max);
}

/* Whole or not at all: a reader never sees a part. */
static int key_write_file(int folder, const char *name, const char *text, mode_t mode,
			  struct err *e)
{
	autoclose int fd = -1;
	char temporary[32];

	snprintf(temporary, sizeof(temporary), "%s.new", name);
	unlinkat(folder, temporary, 0);
	fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0 || fchmod(fd, mode) < 0 || fd_write(fd, text, strlen(text)) < 0 ||
	    fsync(fd) < 0 || renameat(folder, temporary, folder, name) < 0)
		return err_sys(e, errno, "the audit key can't be kept");
	return 0;
}

static int key_write_public(int folder, const struct audit_public *p, struct err *e)
{
	unsigned char der[SPKI_BYTES];
	char text[TEXT_BYTES(SPKI_BYTES, ORIGINAL)];
	char pem[PEM_MAX];

	memcpy(der, spki, sizeof(spki));
	memcpy(der + sizeof(spki), p->bytes, AUDIT_PUBLIC);
	sodium_bin2base64(text, sizeof(text), der, sizeof(der), sodium_base64_VARIANT_ORIGINAL);
	snprintf(pem, sizeof(pem), PEM_BEGIN "\n%s\n" PEM_END "\n", text);
	return key_write_file(folder, "key.pub", pem, 0644, e);
}

static int key_make(int folder, unsigned char seed[crypto_sign_SEEDBYTES], struct err *e)
{
	char text[SEED_TEXT + 1];
	int rc;

	randombytes_buf(seed, crypto_sign_SEEDBYTES);
	sodium_bin2base64(text, SEED_TEXT, seed, crypto_sign_SEEDBYTES,
			  sodium_base64_VARIANT_ORIGINAL);
	memcpy(text + SEED_TEXT - 1, "\n", 2);
	rc = key_write_file(folder, "key", text, 0600, e);
	sodium_memzero(text, sizeof(text));
	return rc;
}

static int key_read(int folder, unsigned char seed[crypto_sign_SEEDBYTES], struct err *e)
{
	char text[SEED_TEXT + 1];
	struct stat s;
	ssize_t n = key_read_file(folder, "key", text, sizeof(text), &s);
	size_t got = 0;
	int rc = 0;

	if (n < 0 && errno == ENOENT)
		return key_make(folder, seed, e);
	if (n < 0)
		return err_sys(e, errno, "the audit key");
	if (!S_ISREG(s.st_mode) || (s.st_mode & 077) || s.st_uid != geteuid())
		rc = err_set(e, ERR_DENIED,
			     "others may read the audit key, or it has another owner");
	else if (n < SEED_TEXT - 1 ||
		 sodium_base642bin(seed, crypto_sign_SEEDBYTES, text, SEED_TEXT - 1, NULL, &got,
				   NULL, sodium_base64_VARIANT_ORIGINAL) < 0 ||
		 got != crypto_sign_SEEDBYTES)
		rc = err_set(e, ERR_INVALID, "the file of the audit key holds no key");
	sodium_memzero(text, sizeof(text));
	return rc;
}

struct audit_key *audit_key_open(int folder, struct err *e)
{
	unsigned char seed[crypto_sign_SEEDBYTES];
	AUTO(audit_key_free) struct audit_key *k = NULL;

	if (sodium_init() < 0)
		return err_set(e, ERR_IO, "libsodium can't start"), NULL;
	k = calloc(1, sizeof(*k));
	if (!k)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	sodium_mlock(k, sizeof(*k));
	if (key_read(folder, seed, e) < 0)
		return NULL;
	crypto_sign_seed_keypair(k->public.bytes, k->secret, seed);
	sodium_memzero(seed, sizeof(seed));
	public_name(&k->public);
	if (faccessat(folder, "key.pub", F_OK, 0) < 0 &&
	    key_write_public(folder, &k->public, e) < 0)
		return NULL;
	return take_ptr(k);
}

int audit_public_read(struct str pem, struct audit_public *ret, struct err *e)
{
	unsigned char der[SPKI_BYTES];
	const char *from = pem.n ? memmem(pem.p, pem.n, PEM_BEGIN, sizeof(PEM_BEGIN) - 1) : NULL;
	size_t left, got = 0;

	if (from)
		from += sizeof(PEM_BEGIN) - 1;
	left = from ? (size_t)(pem.p + pem.n - from) : 0;
	if (!from ||
	    sodium_base642bin(der, sizeof(der), from, left, "\r\n ", &got, &from,
			      sodium_base64_VARIANT_ORIGINAL) < 0 ||
	    got != sizeof(der) || memcmp(der, spki, sizeof(spki)) != 0)
		return err_set(e, ERR_INVALID, "this is no public key of Ed25519 in PEM");
	memcpy(ret->bytes, der + sizeof(spki), AUDIT_PUBLIC);
	public_name(ret);
	return 0;
}

int audit_public_open(int folder, const char *path, struct audit_public *ret, struct err *e)
{
	char pem[PEM_MAX];
	struct stat s;
	ssize_t n = key_read_file(folder, path, pem, sizeof(pem), &s);

	if (n < 0)
		return errno == ENOENT ? err_set(e, ERR_PATH_NOT_FOUND, "there is no public key")
				       : err_sys(e, errno, "the public key");
	return audit_public_read((struct str){ pem, (size_t)n }, ret, e);
}

/* A member more; texts of a record need no escapes. */
static int line_add(struct audit_line *line, const char *name, const char *text, struct err *e)
{
	size_t room = sizeof(line->text) - --line->n; /* it begins at the brace */
	int n = snprintf(line->text + line->n, room, ",\"%s\":\"%s\"}", name, text);

	if ((size_t)n >= room)
		return err_set(e, ERR_TOO_LARGE, "a record has no room for its signature");
	line->n += (size_t)n;
	return 0;
}

int audit_sign(const struct audit_key *k, struct audit_line *line, struct err *e)
{
	unsigned char sig[crypto_sign_BYTES];
	char text[SIG_TEXT];

	if (strstr(line->text, ",\"sig\":\""))
		return 0;
	if (line_add(line, "key", k->public.id, e) < 0)
		return -1;
	crypto_sign_detached(sig, NULL, (const unsigned char *)line->text, line->n, k->secret);
	sodium_bin2base64(text, sizeof(text), sig, sizeof(sig),
			  sodium_base64_VARIANT_URLSAFE_NO_PADDING);
	return line_add(line, "sig", text, e);
}

int audit_check_sig(const struct audit_public *p, const struct audit_record *r, struct err *e)
{
	unsigned char sig[crypto_sign_BYTES];
	struct audit_record bare = *r;
	struct audit_line line;
	size_t n = 0;

	bare.sig = STR_NONE;
	if (!r->sig.n)
		return err_set(e, ERR_INVALID, "it has no signature");
	if (!str_is(r->key, p->id))
		return err_set(e, ERR_INVALID, "it is signed with another key, %.*s, not %s",
			       STR_CUT(r->key, 16), p->id);
	if (audit_encode(&bare, &line, e) < 0)
		return -1;
	if (sodium_base642bin(sig, sizeof(sig), r->sig.p, r->sig.n, NULL, &n, NULL,
			      sodium_base64_VARIANT_URLSAFE_NO_PADDING) < 0 ||
	    n != sizeof(sig) ||
	    crypto_sign_verify_detached(sig, (const unsigned char *)line.text, line.n, p->bytes) <
		    0)
		return err_set(e, ERR_INVALID, "its signature is wrong");
	return 0;
}
