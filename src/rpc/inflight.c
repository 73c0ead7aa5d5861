#include "rpc/inflight.h"

#include <assert.h>
#include <stdlib.h>

struct inflight {
	struct inflight_entry *first, *last; /* oldest, newest */
	unsigned count, max, mask;
	struct inflight_entry *slots[];
};

struct inflight *inflight_new(unsigned max)
{
	unsigned slots = 1;
	struct inflight *t;

	while (slots < max)
		slots *= 2;
	t = calloc(1, sizeof(*t) + slots * sizeof(t->slots[0]));
	if (!t)
		return NULL;
	t->max = max;
	t->mask = slots - 1;
	return t;
}

void inflight_free(struct inflight *t)
{
	assert(!t || t->count == 0);
	free(t);
}

/* FNV-1a. A client that seeks collisions finds a list of its own `max` requests at worst. */
static unsigned slot_of(const struct inflight *t, const struct rpc_id *id)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < id->n; i++)
		h = (h ^ (unsigned char)id->json[i]) * 16777619u;
	return h & t->mask;
}

struct inflight_entry *inflight_find(const struct inflight *t, const struct rpc_id *id)
{
	for (struct inflight_entry *x = t->slots[slot_of(t, id)]; x; x = x->next) {
		if (str_eq(rpc_id_str(&x->id), rpc_id_str(id)))
			return x;
	}
	return NULL;
}

int inflight_add(struct inflight *t, struct inflight_entry *entry, const struct rpc_id *id,
		 struct rpc_fault *ret_fault)
{
	if (inflight_find(t, id))
		return rpc_fault_set(ret_fault, RPC_INVALID_REQUEST,
				     "a request with this id is in flight");
	if (t->count == t->max) {
		rpc_fault_set(ret_fault, RPC_INTERNAL_ERROR,
			      "%u requests are in flight; wait for an answer", t->max);
		ret_fault->reason = err_info(ERR_LIMIT)->name;
		return -1;
	}
	entry->id.n = id->n;
	memcpy(entry->id.json, id->json, id->n);
	entry->slot = slot_of(t, id);
	entry->next = t->slots[entry->slot];
	t->slots[entry->slot] = entry;
	entry->older = t->last;
	entry->newer = NULL;
	*(t->last ? &t->last->newer : &t->first) = entry;
	t->last = entry;
	t->count++;
	entry->listed = true;
	return 0;
}

void inflight_remove(struct inflight *t, struct inflight_entry *entry)
{
	struct inflight_entry **at = &t->slots[entry->slot];

	assert(entry->listed);
	while (*at != entry)
		at = &(*at)->next;
	*at = entry->next;
	*(entry->older ? &entry->older->newer : &t->first) = entry->newer;
	*(entry->newer ? &entry->newer->older : &t->last) = entry->older;
	t->count--;
	entry->listed = false;
}

unsigned inflight_count(const struct inflight *t)
{
	return t->count;
}

struct inflight_entry *inflight_first(const struct inflight *t)
{
	return t->first;
}
