#pragma once
/*
 * How many requests a second: a bucket of tokens for each key, in a table of fixed size. A bucket
 * that is full again says nothing, so it gives its place to the next key; when none is, the
 * newcomers share one bucket, so that many keys are no way around the limit.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rate;

/* per_second tokens flow in, burst of them fit (both at least 1). NULL without memory. */
struct rate *rate_new(unsigned per_second, unsigned burst);
void rate_free(struct rate *r); /* NULL-safe */

/* Takes a token of the key's bucket (any number but 0); else says after how many seconds there is
 * one, at least 1. now_ms never goes back. */
bool rate_take(struct rate *r, uint64_t key, uint64_t now_ms, unsigned *ret_after);
