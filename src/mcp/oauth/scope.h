#pragma once
/* Scopes, RFC 6749 section 3.3: words with single spaces between them. Pure. */
#include "base/buf.h"

enum { OAUTH_SCOPE_MAX = 4096 };

/* Words of printable ASCII without quotes and backslashes, however they are spaced; "" is none. */
bool oauth_scope_ok(struct str scope);

bool oauth_scope_has(struct str scope, struct str word);

/* Whether every word of b is in a. */
bool oauth_scope_covers(struct str a, struct str b);

/* Appends those words of more that are not there yet. */
int oauth_scope_add(struct buf *to, struct str more, struct err *e) MUST_USE;
