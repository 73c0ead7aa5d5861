#pragma once
/*
 * A set of objects in 16 bytes of memory each or less. It keeps 64 bits of an id, so it may take
 * one object in billions for another one. Zeroed, it is empty.
 */
#include "hub/workspace/object.h"

struct id_set {
	uint64_t *slots; /* 0: free */
	size_t n, room;
};

/* 1: it is new, 0: it was there. */
int id_set_add(struct id_set *s, const struct object_id *id, struct err *e) MUST_USE;
bool id_set_has(const struct id_set *s, const struct object_id *id);
void id_set_fini(struct id_set *s);
