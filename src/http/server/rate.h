#pragma once
/*
 * Rate limits: a token bucket for each key, in a table of fixed size. A full bucket holds no
 * information, so the next key may take its place. If no bucket is full, new keys share one bucket,
 * so that many keys are no way around the limit.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rate;

/* Each bucket holds `burst` tokens and gains per_second (both at least 1). NULL without memory. */
struct rate *rate_new(unsigned per_second, unsigned burst);
void rate_free(struct rate *r); /* NULL-safe */

/* Takes a token from the bucket of the key (any number but 0). False: *ret_after is the number of
 * seconds until there is one, at least 1. now_ms never goes back. */
bool rate_take(struct rate *r, uint64_t key, uint64_t now_ms, unsigned *ret_after);
