#pragma once
/*
 * What OAuth keeps from one run to the next: texts under names. Names are made of who it belongs to (issuer,
 * resource, client); the texts hold tokens and keys.
 */
#include "base/buf.h"
#include "mcp/oauth.h"

enum {
	OAUTH_STORE_ENTRIES = 1024,
	OAUTH_STORE_NAME_MAX = 8192,
	OAUTH_STORE_TEXT_MAX = 64 << 10,
	OAUTH_STORE_BYTES_MAX = 4 << 20, /* of all together */
};

/* Appends the text of that name to a buffer that is wiped later; 0 where there is none, 1 where there is. */
int oauth_store_get(struct mcp_oauth_store *s, struct str name, struct buf *to,
		    struct err *e) MUST_USE;

/* Keeps it, in place of what has that name. ERR_LIMIT where it does not fit. */
int oauth_store_put(struct mcp_oauth_store *s, struct str name, struct str text,
		    struct err *e) MUST_USE;

/* 0 also where there is none. */
int oauth_store_remove(struct mcp_oauth_store *s, struct str name, struct err *e) MUST_USE;
