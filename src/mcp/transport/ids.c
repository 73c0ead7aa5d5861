#include "mcp/transport/ids.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/word.h"

enum { SLOTS_MIN = 16, SLOTS_MAX = 4096 };

int mcp_ids_init(struct mcp_ids *t, unsigned max, unsigned max_each, struct err *e)
{
	size_t n = SLOTS_MIN;

	while (n < max && n < SLOTS_MAX)
		n *= 2;
	*t = (struct mcp_ids){ .slots_n = n, .max = max, .max_each = max_each };
	t->slots = calloc(n, sizeof(struct mcp_id_entry *));
	return t->slots ? 0 : err_set(e, ERR_LIMIT, "out of memory");
}

void mcp_ids_fini(struct mcp_ids *t)
{
	free(take_ptr(t->slots));
}

/* The listed ids are random up to their ends. A looked-up id comes from outside; it at worst
 * searches the entries of one slot. */
static struct mcp_id_entry **slot(const struct mcp_ids *t, struct str id)
{
	uint64_t end = id.n < WORD ? 0 : word_at(id.p + id.n - WORD);

	return &t->slots[(end * 0x9e3779b97f4a7c15u >> 32) & (t->slots_n - 1)];
}

static struct mcp_id_owner **find_owner(struct mcp_ids *t, const void *who)
{
	struct mcp_id_owner **at = &t->owners;

	while (*at && (*at)->who != who)
		at = &(*at)->next;
	return at;
}

static struct mcp_id_owner *want_owner(struct mcp_ids *t, const void *who, struct err *e)
{
	struct mcp_id_owner **at = find_owner(t, who);

	if (*at)
		return *at;
	*at = calloc(1, sizeof(**at));
	if (!*at)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	(*at)->who = who;
	return *at;
}

int mcp_ids_add(struct mcp_ids *t, struct mcp_id_entry *entry, const char *prefix, const void *who,
		struct err *e)
{
	struct mcp_id_entry **at;
	struct mcp_id_owner *owner;

	if (t->n >= t->max)
		return err_set(e, ERR_LIMIT, "%u sessions are open, which is all there can be",
			       t->n);
	if (mcp_ids_count(t, who) >= t->max_each)
		return err_set(e, ERR_LIMIT, "%u sessions are yours, which is all you can have",
			       t->max_each);
	owner = want_owner(t, who, e);
	if (!owner)
		return -1;
	owner->n++;
	t->n++;
	entry->who = who;
	entry->owner = owner;
	id_make(entry->id, prefix);
	at = slot(t, str_of(entry->id));
	entry->next = *at;
	*at = entry;
	return 0;
}

void mcp_ids_remove(struct mcp_ids *t, struct mcp_id_entry *entry)
{
	struct mcp_id_entry **at = slot(t, str_of(entry->id));
	struct mcp_id_owner **owner = find_owner(t, entry->who);

	while (*at != entry)
		at = &(*at)->next;
	*at = entry->next;
	t->n--;
	if (--(*owner)->n == 0) {
		struct mcp_id_owner *gone = *owner;

		*owner = gone->next;
		free(gone);
	}
}

struct mcp_id_entry *mcp_ids_find(const struct mcp_ids *t, struct str id, const void *who)
{
	struct mcp_id_entry *x = *slot(t, id);

	while (x && (x->who != who || !str_is(id, x->id)))
		x = x->next;
	return x;
}

unsigned mcp_ids_count(const struct mcp_ids *t, const void *who)
{
	const struct mcp_id_owner *o = t->owners;

	while (o && o->who != who)
		o = o->next;
	return o ? o->n : 0;
}
