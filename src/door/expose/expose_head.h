#pragma once
/*
 * The header fields that are passed on: of a request to a server in a sandbox, and of its answer.
 * Both are written anew, from what the door has checked and from what http/client/answer.h has
 * parsed. The server is hostile, and the pages that it serves may be too.
 *
 * Under a route of the hub (/v1/…/expose/) its answers have the hub's origin, so they must have no
 * effects there. A policy gives each page an opaque origin and lets it run nothing. Cookies,
 * policies and all other fields that concern an origin are dropped in both directions, and so is
 * the token. A redirect must lead below the route, since clients that follow it send the token
 * along.
 *
 * Under a name of its own (a preview) a server is an ordinary origin, except for what would reach
 * beyond that name.
 */
#include "base/arena.h"
#include "http/client/answer.h"
#include "http/server/server.h"

struct expose_as {
	unsigned port;
	struct str prefix; /* prefix of its own paths, without a slash at the end; "": all paths */
	bool own_name;
	/* Besides, it was asked for at the hub's own name: credentials are meant for the hub. */
	bool at_hub;
	struct str cookie; /* only then: the name of a cookie that belongs to the hub */
	/* Whether the text is a token of this hub. */
	bool (*is_token)(void *owner, struct str text);
	void *owner;
};

/* The path and query that the server sees. */
int expose_target(struct http_request *q, const struct expose_as *as, struct buf *to,
		  struct err *e) MUST_USE;

/* Writes the whole head of the request. */
int expose_request(struct http_request *q, const struct expose_as *as, struct buf *to,
		   struct err *e) MUST_USE;
/* Appends only its fields, one per line. */
int expose_fields(struct http_request *q, const struct expose_as *as, struct buf *to,
		  struct err *e) MUST_USE;

enum { EXPOSE_HEADERS_MAX = HTTP_ANSWER_FIELDS + 4 };

/* Makes the fields of the answer, in the arena: *ret_n of them, in at most so many bytes. */
int expose_answer(const struct http_answer *a, const struct expose_as *as, size_t room,
		  struct arena *arena, struct http_header ret[EXPOSE_HEADERS_MAX], size_t *ret_n,
		  struct err *e) MUST_USE;

/* Rewrites the Location that the server gave; false: the client must not go there. */
bool expose_location(struct str location, const struct expose_as *as, struct buf *to);
