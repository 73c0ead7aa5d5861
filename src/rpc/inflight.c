#include "rpc/inflight.h"

#include <assert.h>
#include <stdlib.h>

enum {
	FEW = 8, /* up to this many entries are searched one by one */
	SLOTS_MIN = 4 * FEW,
};

void inflight_init(struct inflight *t, unsigned max)
{
	*t = (struct inflight){ .max = max };
}

void inflight_fini(struct inflight *t)
{
	assert(t->count == 0);
	free(take_ptr(t->slots));
}

struct inflight *inflight_new(unsigned max)
{
	struct inflight *t = malloc(sizeof(*t));

	if (t)
		inflight_init(t, max);
	return t;
}

void inflight_free(struct inflight *t)
{
	if (t)
		inflight_fini(t);
	free(t);
}

/* FNV-1a. A client that provokes collisions at worst makes us search its own `max` requests. */
static unsigned inflight_hash(const struct rpc_id *id)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < id->n; i++)
		h = (h ^ (unsigned char)id->json[i]) * 16777619u;
	return h;
}

struct inflight_entry *inflight_find(const struct inflight *t, const struct rpc_id *id)
{
	struct inflight_entry *x = t->slots ? t->slots[inflight_hash(id) & t->mask] : t->first;

	while (x && !str_eq(rpc_id_str(&x->id), rpc_id_str(id)))
		x = t->slots ? x->next : x->newer;
	return x;
}

static void inflight_put(struct inflight *t, struct inflight_entry *entry)
{
	struct inflight_entry **slot = &t->slots[entry->hash & t->mask];

	entry->next = *slot;
	*slot = entry;
}

/* Makes room for one more. A table that can't grow gets slower, but takes no fewer entries. */
static int make_room(struct inflight *t)
{
	unsigned n = t->slots ? 2 * (t->mask + 1) : SLOTS_MIN;
	struct inflight_entry **slots;

	if (t->slots ? t->count <= t->mask : t->count < FEW)
		return 0;
	slots = calloc(n, sizeof(struct inflight_entry *));
	if (!slots)
		return t->slots ? 0 : -1;
	free(t->slots);
	t->slots = slots;
	t->mask = n - 1;
	for (struct inflight_entry *x = t->first; x; x = x->newer)
		inflight_put(t, x);
	return 0;
}

static int inflight_refuse(struct rpc_fault *f)
{
	f->reason = err_info(ERR_LIMIT);
	return -1;
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
		return inflight_refuse(ret_fault);
	}
	if (make_room(t) < 0) {
		rpc_fault_set(ret_fault, RPC_INTERNAL_ERROR, "out of memory");
		return inflight_refuse(ret_fault);
	}
	entry->id.n = id->n;
	memcpy(entry->id.json, id->json, id->n);
	entry->hash = inflight_hash(id);
	if (t->slots)
		inflight_put(t, entry);
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
	assert(entry->listed);
	if (t->slots) {
		struct inflight_entry **at = &t->slots[entry->hash & t->mask];

		while (*at != entry)
			at = &(*at)->next;
		*at = entry->next;
	}
	*(entry->older ? &entry->older->newer : &t->first) = entry->newer;
	*(entry->newer ? &entry->newer->older : &t->last) = entry->older;
	entry->listed = false;
	if (--t->count == 0)
		free(take_ptr(t->slots));
}

unsigned inflight_count(const struct inflight *t)
{
	return t->count;
}

struct inflight_entry *inflight_first(const struct inflight *t)
{
	return t->first;
}
