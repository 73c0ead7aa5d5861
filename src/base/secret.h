#pragma once
/*
 * Secrets: bytes that must not appear in any log record, error, listing or core dump. Their memory
 * is locked if the limits allow it, excluded from core dumps, and wiped at the end. printf refuses
 * the struct, and only one function exposes the bytes.
 */
#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

struct secret;

/* Copies the bytes; the caller wipes the original. NULL if memory is short. */
struct secret *secret_new(struct str bytes, struct err *e) MUST_USE;

/* A new token: the prefix and 256 random bits in hex. */
struct secret *secret_random(const char *prefix, struct err *e) MUST_USE;

void secret_free(struct secret *s); /* NULL-safe */
AUTO_DEFINE(secret_free, struct secret)

/* Compares in constant time; reveals only whether the lengths differ. */
bool secret_is(const struct secret *s, struct str candidate);

/* The bytes, borrowed. why: the purpose ("shown to its owner"), for the log. */
struct str secret_expose(const struct secret *s, const char *why);
