#pragma once
/*
 * News of the hub, for clients that watch it: a ring in memory with the last of them. Each has a
 * number that counts up; the epoch is another one after each start of the hub. A reader has a
 * place in the ring, not a queue, so one that does not read costs nothing and is told when its
 * place is gone.
 *
 * One thread, the loop's.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

enum {
	FEED_MAX = 4096, /* news that are kept */
	FEED_BYTES_MAX = 8 << 20, /* of all of them */
	FEED_DATA_MAX = 16 << 10, /* of one */
	FEED_EPOCH = 16,
};

struct feed;

struct feed_news {
	uint64_t seq; /* feed_publish() gives it */
	const char *topic; /* static: "conversation", "question" and the like */
	struct str id; /* of what it is about */
	struct str owner; /* whose that is; STR_NONE: it is for those who see all */
	struct str data; /* JSON object on one line */
};

struct feed *feed_new(struct err *e) MUST_USE;
void feed_free(struct feed *f); /* NULL-safe */
AUTO_DEFINE(feed_free, struct feed)

/* Copies the news. Data beyond FEED_DATA_MAX is left out: {"cut":true} stands for it. Without
 * memory a number is missing, which readers take for a gap. f may be NULL. */
void feed_publish(struct feed *f, const struct feed_news *n);

/* 16 hex digits. */
const char *feed_epoch(const struct feed *f);
uint64_t feed_newest(const struct feed *f); /* 0: there was none yet */

/* Whether all news behind this number are still there. */
bool feed_has_all_after(const struct feed *f, uint64_t seq);
/* The first behind this number. NULL: there is none; valid until the next one is published. */
const struct feed_news *feed_after(const struct feed *f, uint64_t seq);

/* Called when there are news. It may remove its own watch, and publishes nothing. */
struct feed_watch {
	void (*on_news)(void *data);
	void *data;
	/* private: */
	struct feed_watch *next;
};
void feed_watch_add(struct feed *f, struct feed_watch *w);
void feed_watch_remove(struct feed *f, struct feed_watch *w);
