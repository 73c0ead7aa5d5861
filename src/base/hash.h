#pragma once
/* SHA-256 (FIPS 180-4) of bytes that come in parts. */
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

enum { HASH_HEX = 64 };

struct hash;

/* Loads the library for hash_new(). Call it before the process loses the right to open files. */
int hash_load(struct err *e) MUST_USE;

struct hash *hash_new(struct err *e) MUST_USE;
void hash_free(struct hash *h); /* NULL-safe */
AUTO_DEFINE(hash_free, struct hash)

void hash_add(struct hash *h, const void *p, size_t n);

/* The digest in lower-case hex; h starts anew. */
void hash_end(struct hash *h, char ret_hex[HASH_HEX + 1]);
/* That of bytes which are all there. */
int hash_of(struct str bytes, char ret_hex[HASH_HEX + 1], struct err *e) MUST_USE;

/* Whether text has the form of hash_end()'s HASH_HEX digits. */
bool hash_is_hex(struct str text);
