#pragma once
/*
 * Secrets: bytes that no log record, error, listing or core dump may show. They stand in memory of
 * their own, which is locked where the limits allow it, left out of core dumps and wiped at the
 * end. A struct is no printf argument, and its bytes come out of one function only.
 */
#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

struct secret;

/* A copy; wiping the original is the caller's. NULL without memory. */
struct secret *secret_new(struct str bytes, struct err *e) MUST_USE;

/* prefix and 256 random bits in hex, as a token that a client sends. */
struct secret *secret_random(const char *prefix, struct err *e) MUST_USE;

void secret_free(struct secret *s); /* NULL-safe */
AUTO_DEFINE(secret_free, struct secret)

/* Compares in a time that tells nothing of the bytes, only whether the lengths differ. */
bool secret_is(const struct secret *s, struct str candidate);

/* The bytes, borrowed; why says what for ("shown to its owner") and stands in the log. */
struct str secret_expose(const struct secret *s, const char *why);
