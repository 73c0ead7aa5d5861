#pragma once
/*
 * The key that signs the audit log. It is made at first use in the log's folder: `key`, a seed of
 * Ed25519 in base64 that only its user may read (0600), and `key.pub`, the public key as PEM
 * (RFC 8410), which anybody may read and keep elsewhere.
 */
#include "guard/audit/record.h"

struct audit_key;

enum { AUDIT_PUBLIC = 32, AUDIT_KEY_ID = 17 };

/* A public key and its name: the first 16 hex digits of its SHA-256. */
struct audit_public {
	unsigned char bytes[AUDIT_PUBLIC];
	char id[AUDIT_KEY_ID];
};

/* The key in the folder, made if it is missing: the caller excludes others meanwhile.
 * ERR_DENIED where others may read it or it has another owner; ERR_INVALID where it is no key. */
struct audit_key *audit_key_open(int folder, struct err *e) MUST_USE;
void audit_key_free(struct audit_key *k); /* NULL-safe; wipes it */
AUTO_DEFINE(audit_key_free, struct audit_key)

/* From PEM. */
int audit_public_read(struct str pem, struct audit_public *ret, struct err *e) MUST_USE;
/* From the file key.pub of a folder, or from a path with folder AT_FDCWD. ERR_PATH_NOT_FOUND where
 * there is none. */
int audit_public_open(int folder, const char *path, struct audit_public *ret,
		      struct err *e) MUST_USE;

/* Puts the key and the signature at the end of the line of a record; one that has them stays. */
int audit_sign(const struct audit_key *k, struct audit_line *line, struct err *e) MUST_USE;

/* ERR_INVALID where the record has no signature of this key. */
int audit_check_sig(const struct audit_public *p, const struct audit_record *r,
		    struct err *e) MUST_USE;
