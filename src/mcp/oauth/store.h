#pragma once
/*
 * What OAuth keeps from one run to the next: texts under names. Names are made of who it belongs to
 * (issuer, resource, client); the texts hold tokens and keys. What begins with "token\n" or
 * "client\n" is what a login can bring again: where there is no room, the one of them that was
 * written longest ago goes.
 */
#include "base/buf.h"
#include "mcp/oauth/oauth.h"

enum {
	OAUTH_STORE_ENTRIES = 1024,
	OAUTH_STORE_NAME_MAX = 8192,
	OAUTH_STORE_TEXT_MAX = 64 << 10,
	OAUTH_STORE_BYTES_MAX = 4 << 20, /* of all together */
	OAUTH_STORE_LOCK_MS = 2000, /* that another process may hold it */
};

/* Files, which several processes may have open; else all of it is in memory, and used by one
 * thread. */
bool oauth_store_is_on_disk(const struct mcp_oauth_store *s);

/* Appends the text of that name to a buffer that is wiped later; 0 where there is none, 1 where
 * there is. Waits for nobody. */
int oauth_store_get(struct mcp_oauth_store *s, struct str name, struct buf *to,
		    struct err *e) MUST_USE;

struct oauth_store_change {
	struct str name;
	/* where it is there: of all names that begin with `name` and end so; to remove */
	struct str end;
	struct str text; /* in place of what is there; STR_NONE: removes it */
	struct str was; /* where it is there: only if that is what is there */
};

/* Whether it is about that name. */
bool oauth_store_is_of(const struct oauth_store_change *c, struct str name);

/* One step under the lock of all processes, whole on the disk when it returns. It waits for both,
 * and may be called from any thread where the store is on disk. 1, or 0 where nothing was changed.
 * ERR_LIMIT: there is no room; ERR_CONFLICT: another process holds the lock and does not let go.
 * Where it fails, all is as it was. */
int oauth_store_change(struct mcp_oauth_store *s, const struct oauth_store_change *c,
		       struct err *e) MUST_USE;
