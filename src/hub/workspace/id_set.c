#include "hub/workspace/id_set.h"

#include <stdlib.h>

static uint64_t key_of(const struct object_id *id)
{
	uint64_t key;

	memcpy(&key, id->b, sizeof(key));
	return key ? key : 1;
}

/* Where the key is, or is to be; there is a free slot. */
static uint64_t *find(uint64_t *slots, size_t room, uint64_t key)
{
	size_t at = (size_t)key & (room - 1);

	while (slots[at] && slots[at] != key)
		at = (at + 1) & (room - 1);
	return &slots[at];
}

static int grow(struct id_set *s, struct err *e)
{
	size_t room = s->room ? 2 * s->room : 1024;
	uint64_t *slots = calloc(room, sizeof(*slots));

	if (!slots)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (size_t i = 0; i < s->room; i++) {
		if (s->slots[i])
			*find(slots, room, s->slots[i]) = s->slots[i];
	}
	free(s->slots);
	s->slots = slots;
	s->room = room;
	return 0;
}

int id_set_add(struct id_set *s, const struct object_id *id, struct err *e)
{
	uint64_t key = key_of(id), *slot;

	if (2 * s->n >= s->room && grow(s, e) < 0)
		return -1;
	slot = find(s->slots, s->room, key);
	if (*slot)
		return 0;
	*slot = key;
	s->n++;
	return 1;
}

bool id_set_has(const struct id_set *s, const struct object_id *id)
{
	return s->room && *find(s->slots, s->room, key_of(id)) != 0;
}

void id_set_fini(struct id_set *s)
{
	free(s->slots);
	*s = (struct id_set){ .n = 0 };
}
