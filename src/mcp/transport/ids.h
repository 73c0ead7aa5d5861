#pragma once
/*
 * Sessions by their ids, for the HTTP transports. Ids can't be guessed, and each is valid for its
 * principal only. Their number is bounded in all and for each principal. Embed an entry; O(1).
 */
#include <stddef.h>

#include "base/err.h"
#include "base/id.h"
#include "base/str.h"

/* A principal that has entries. */
struct mcp_id_owner {
	struct mcp_id_owner *next;
	const void *who;
	unsigned n;
	size_t stored; /* the user's: bytes of what its sessions store */
};

struct mcp_id_entry {
	char id[ID_MAX];
	const void *who; /* the principal; NULL: there are none */
	struct mcp_id_entry *next; /* in the same slot */
	struct mcp_id_owner *owner;
};

struct mcp_ids {
	struct mcp_id_entry **slots;
	size_t slots_n; /* a power of two */
	struct mcp_id_owner *owners;
	unsigned n, max, max_each;
};

/* max: entries at once, in all and of one principal. */
int mcp_ids_init(struct mcp_ids *t, unsigned max, unsigned max_each, struct err *e) MUST_USE;
/* It must be empty. */
void mcp_ids_fini(struct mcp_ids *t);

/* Gives entry an id, "PREFIX-" and 32 hex digits, and lists it. ERR_LIMIT at a maximum. */
int mcp_ids_add(struct mcp_ids *t, struct mcp_id_entry *entry, const char *prefix, const void *who,
		struct err *e) MUST_USE;
void mcp_ids_remove(struct mcp_ids *t, struct mcp_id_entry *entry);

/* NULL if the id does not exist or belongs to another principal, which looks the same from
 * outside. */
struct mcp_id_entry *mcp_ids_find(const struct mcp_ids *t, struct str id, const void *who);

/* The number of entries of one principal. */
unsigned mcp_ids_count(const struct mcp_ids *t, const void *who);
