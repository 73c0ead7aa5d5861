#pragma once
/*
 * What OAuth keeps from one run to the next: texts under names. A name says to whom a text belongs
 * (issuer, resource, client); the texts hold tokens and keys. Names that begin with "token\n" or
 * "client\n" hold what a login can replace: without room, the one written longest ago is removed.
 */
#include "base/buf.h"
#include "mcp/oauth/oauth.h"

enum {
	OAUTH_STORE_ENTRIES = 1024,
	OAUTH_STORE_NAME_MAX = 8192,
	OAUTH_STORE_TEXT_MAX = 64 << 10,
	OAUTH_STORE_BYTES_MAX = 4 << 20, /* bytes of all entries */
	OAUTH_STORE_LOCK_MS = 2000, /* that another process may hold the lock */
};

/* Either files, which several processes may have open, or memory, used by one thread. */
bool oauth_store_is_on_disk(const struct mcp_oauth_store *s);

/* Appends the text of that name to a buffer that is wiped later. 1, or 0 if there is none. Does not
 * wait. */
int oauth_store_get(struct mcp_oauth_store *s, struct str name, struct buf *to,
		    struct err *e) MUST_USE;

struct oauth_store_change {
	struct str name;
	/* if set: removes all names that begin with `name` and end with this */
	struct str end;
	struct str text; /* the new text; STR_NONE: remove */
	struct str was; /* if set: only if this is the old text */
};

/* Whether the change affects that name. */
bool oauth_store_is_of(const struct oauth_store_change *c, struct str name);

/* One change under the lock of all processes, synced to disk when it returns. It waits for lock and
 * disk; if the store is on disk, any thread may call it. 1, or 0 if nothing was changed. ERR_LIMIT:
 * no room; ERR_CONFLICT: another process holds the lock for too long. After a failure nothing has
 * changed. */
int oauth_store_change(struct mcp_oauth_store *s, const struct oauth_store_change *c,
		       struct err *e) MUST_USE;
