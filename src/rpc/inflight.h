#pragma once
/*
 * The requests of one connection that have no answer yet, by id: bounded, O(1). An entry is
 * embedded in the structure of the request and outlives its place in the table.
 */
#include "rpc/rpc.h"

enum { INFLIGHT_MAX_DEFAULT = 256 };

struct inflight_entry {
	struct rpc_id id;
	struct inflight_entry *next; /* in the same slot */
	struct inflight_entry *older, *newer; /* among all entries */
	unsigned hash; /* hash of the id */
	bool listed;
};

/* Private. Slots exist only while there are more than a few entries, since most connections never
 * need them. They are doubled when there are more entries than slots, and freed with the last
 * entry. */
struct inflight {
	struct inflight_entry *first, *last; /* oldest, newest */
	unsigned count, max, mask;
	struct inflight_entry **slots; /* mask + 1; NULL: none */
};

/* max: entries at once. */
void inflight_init(struct inflight *t, unsigned max);
void inflight_fini(struct inflight *t); /* must be empty */

/* NULL when out of memory. */
struct inflight *inflight_new(unsigned max);
void inflight_free(struct inflight *t); /* NULL-safe; must be empty */
AUTO_DEFINE(inflight_free, struct inflight)

/* Lists entry, which the caller owns and must keep until inflight_remove(). -1 with a fault: -32600
 * if the id is already in flight, -32603 with reason limit_exceeded at the maximum. */
int inflight_add(struct inflight *t, struct inflight_entry *entry, const struct rpc_id *id,
		 struct rpc_fault *ret_fault) MUST_USE;

/* NULL if no such id is in flight. */
struct inflight_entry *inflight_find(const struct inflight *t, const struct rpc_id *id);

/* The entry must be listed: a request is answered exactly once. */
void inflight_remove(struct inflight *t, struct inflight_entry *entry);

unsigned inflight_count(const struct inflight *t);

/* The oldest entry; entry->newer is the one after it. NULL at the end. */
struct inflight_entry *inflight_first(const struct inflight *t);
