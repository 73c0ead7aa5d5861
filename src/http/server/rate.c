#include "http/server/rate.h"

#include <stdlib.h>

enum { BUCKETS = 1024, PROBES = 8, MILLI = 1000 };

struct bucket {
	uint64_t key; /* 0: unused */
	uint64_t at_ms;
	uint64_t milli; /* thousandths of a token, at that time */
};

struct rate {
	uint64_t per_second, full; /* full: in thousandths */
	struct bucket shared;
	struct bucket buckets[BUCKETS];
};

struct rate *rate_new(unsigned per_second, unsigned burst)
{
	struct rate *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->per_second = per_second;
	r->full = (uint64_t)burst * MILLI;
	r->shared = (struct bucket){ .key = 1, .milli = r->full };
	return r;
}

void rate_free(struct rate *r)
{
	free(r);
}

/* One token a second is one thousandth a millisecond. */
static uint64_t level(const struct rate *r, const struct bucket *b, uint64_t now_ms)
{
	uint64_t passed = now_ms - b->at_ms;
	uint64_t lacks = r->full - b->milli;

	return passed >= lacks / r->per_second + 1 ? r->full : b->milli + passed * r->per_second;
}

static struct bucket *rate_find(struct rate *r, uint64_t key, uint64_t now_ms)
{
	size_t at = (size_t)((key * 0x9e3779b97f4a7c15u) >> 32) % BUCKETS;
	struct bucket *spare = NULL;

	for (size_t i = 0; i < PROBES; i++) {
		struct bucket *b = &r->buckets[(at + i) % BUCKETS];

		if (b->key == key)
			return b;
		if (!spare && (b->key == 0 || level(r, b, now_ms) == r->full))
			spare = b;
	}
	if (!spare)
		return &r->shared;
	*spare = (struct bucket){ .key = key, .at_ms = now_ms, .milli = r->full };
	return spare;
}

bool rate_take(struct rate *r, uint64_t key, uint64_t now_ms, unsigned *ret_after)
{
	struct bucket *b = rate_find(r, key, now_ms);

	b->milli = level(r, b, now_ms);
	if (b->milli > r->full)
		b->milli = r->full;
	b->at_ms = now_ms;
	if (b->milli < MILLI) {
		uint64_t wait_ms = (MILLI - b->milli) / r->per_second;

		*ret_after = (unsigned)(wait_ms / MILLI) + 1;
		return false;
	}
	b->milli -= MILLI;
	return true;
}
