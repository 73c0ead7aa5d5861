#pragma once
/*
 * Signatures of JSON Web Tokens (RFC 7518): private keys, their public half as a JSON Web Key (RFC
 * 7517) and its thumbprint (RFC 7638). Keys come from PEM or are made, and are wiped at the end.
 * GnuTLS does it, and is known here only.
 */
#include "base/buf.h"
#include "base/secret.h"

struct sign_key;

enum sign_alg {
	SIGN_ES256, /* P-256 */
	SIGN_EDDSA, /* Ed25519 */
	SIGN_PS256, /* RSA of 2048 bits or more, PSS */
	SIGN_RS256, /* the same, PKCS #1 */
	SIGN_ALGS
};

/* "ES256", … */
const char *sign_alg_name(enum sign_alg alg);

/* SIGN_ALGS where the name is none of these. */
enum sign_alg sign_alg_of(struct str name);

/* Makes a key for SIGN_ES256 or SIGN_EDDSA; ERR_INVALID for the others. */
struct sign_key *sign_key_new(enum sign_alg alg, struct err *e) MUST_USE;

/* Reads an unencrypted private key in PEM: PKCS #8, PKCS #1 or SEC 1. ERR_INVALID if it is none,
 * or fits none of the algorithms. */
struct sign_key *sign_key_read(struct str pem, struct err *e) MUST_USE;

void sign_key_free(struct sign_key *k); /* NULL-safe */
AUTO_DEFINE(sign_key_free, struct sign_key)

/* PKCS #8 in PEM, to be kept. */
struct secret *sign_key_pem(const struct sign_key *k, struct err *e) MUST_USE;

bool sign_key_can(const struct sign_key *k, enum sign_alg alg);

/* Appends the public half: a JSON object with the required members, in alphabetical order. */
int sign_key_jwk(const struct sign_key *k, struct buf *to, struct err *e) MUST_USE;

/* Appends base64url of the SHA-256 of that. */
int sign_key_thumbprint(const struct sign_key *k, struct buf *to, struct err *e) MUST_USE;

/* Appends the signature of the bytes as base64url. ERR_INVALID if the key is of another kind. */
int sign_bytes(const struct sign_key *k, enum sign_alg alg, struct str bytes, struct buf *to,
	       struct err *e) MUST_USE;

/* Appends base64url of the SHA-256 of bytes. */
int sign_digest(struct str bytes, struct buf *to, struct err *e) MUST_USE;
