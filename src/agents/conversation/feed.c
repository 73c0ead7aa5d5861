#include "agents/conversation/feed.h"

#include <stdio.h>
#include <sys/random.h>

struct feed {
	char epoch[FEED_EPOCH + 1];
	/* In the order of their numbers; `first` is where the oldest stands. Each holds its texts
	 * in one allocation, which id.p begins. */
	struct feed_news ring[FEED_MAX];
	size_t first, n, bytes;
	uint64_t seq;
	struct feed_watch *watches;
};

struct feed *feed_new(struct err *e)
{
	struct feed *f = calloc(1, sizeof(*f));
	uint64_t random;

	if (!f)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	while (getrandom(&random, sizeof(random), 0) != sizeof(random))
		;
	snprintf(f->epoch, sizeof(f->epoch), "%016llx", (unsigned long long)random);
	return f;
}

static size_t news_bytes(const struct feed_news *n)
{
	return n->id.n + n->owner.n + n->data.n + 1;
}

static void feed_drop(struct feed *f)
{
	struct feed_news *oldest = &f->ring[f->first];

	f->bytes -= news_bytes(oldest);
	free((char *)oldest->id.p);
	f->first = (f->first + 1) % FEED_MAX;
	f->n--;
}

void feed_free(struct feed *f)
{
	if (!f)
		return;
	while (f->n)
		feed_drop(f);
	free(f);
}

void feed_publish(struct feed *f, const struct feed_news *n)
{
	struct feed_news kept = *n;
	char *texts;

	if (!f)
		return;
	kept.seq = ++f->seq;
	if (kept.data.n > FEED_DATA_MAX)
		kept.data = STR_LIT("{\"cut\":true}");
	texts = malloc(news_bytes(&kept));
	if (!texts)
		return;
	while (f->n == FEED_MAX || f->bytes + news_bytes(&kept) > FEED_BYTES_MAX)
		feed_drop(f);
	kept.id = str_put(&texts, kept.id);
	kept.owner = str_put(&texts, kept.owner);
	kept.data = str_put(&texts, kept.data);
	f->bytes += news_bytes(&kept);
	f->ring[(f->first + f->n++) % FEED_MAX] = kept;
	for (struct feed_watch *w = f->watches, *next; w; w = next) {
		next = w->next;
		w->on_news(w->data);
	}
}

const char *feed_epoch(const struct feed *f)
{
	return f->epoch;
}

uint64_t feed_newest(const struct feed *f)
{
	return f->seq;
}

/* The place of the first one behind the number, counted from the oldest. */
static size_t feed_place(const struct feed *f, uint64_t seq)
{
	size_t low = 0, high = f->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (f->ring[(f->first + middle) % FEED_MAX].seq <= seq)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool feed_has_all_after(const struct feed *f, uint64_t seq)
{
	return seq <= f->seq && f->seq - seq == f->n - feed_place(f, seq);
}

const struct feed_news *feed_after(const struct feed *f, uint64_t seq)
{
	size_t at = feed_place(f, seq);

	return at < f->n ? &f->ring[(f->first + at) % FEED_MAX] : NULL;
}

void feed_watch_add(struct feed *f, struct feed_watch *w)
{
	w->next = f->watches;
	f->watches = w;
}

void feed_watch_remove(struct feed *f, struct feed_watch *w)
{
	struct feed_watch **at = &f->watches;

	while (*at && *at != w)
		at = &(*at)->next;
	if (*at)
		*at = w->next;
}
