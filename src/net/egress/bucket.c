#include "net/egress/internal.h"

void bucket_init(struct bucket *b, uint64_t rate, uint64_t most)
{
	*b = (struct bucket){ .rate = rate, .most = most, .thousandths = most * 1000 };
}

uint64_t bucket_has(struct bucket *b, uint64_t now_ms)
{
	uint64_t ms = b->ms && now_ms > b->ms ? now_ms - b->ms : 0;

	if (ms > 3600 * 1000)
		ms = 3600 * 1000;
	b->ms = now_ms;
	b->thousandths += ms * b->rate;
	if (b->thousandths > b->most * 1000)
		b->thousandths = b->most * 1000;
	return b->thousandths / 1000;
}

void bucket_take(struct bucket *b, uint64_t n)
{
	b->thousandths -= n * 1000 < b->thousandths ? n * 1000 : b->thousandths;
}
