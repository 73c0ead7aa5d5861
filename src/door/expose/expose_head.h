#pragma once
/*
 * What goes over of the fields of a request to a server in a sandbox, and of its answer. Both are written anew: a request from what
 * the door has judged, an answer from what http/client/answer.h has. The server is hostile, and so may the pages be that it serves.
 *
 * Under a route of the hub's own (/v1/…/expose/) its answers have the hub's origin, so nothing may follow from them: a page is
 * closed in by a policy that makes it an origin of nobody's and lets it run nothing; cookies, policies and whatever else
 * concerns an origin goes in neither direction; nor does the token. Where it sends the client must be below the route,
 * since clients that follow it bring the token along.
 *
 * Under a name of its own (a preview) it is an origin like others, but for what reaches beyond that name.
 */
#include "base/arena.h"
#include "http/client/answer.h"
#include "http/server/server.h"

struct expose_as {
	unsigned port;
	struct str prefix; /* of the paths that are its own, without a slash at the end; "": all */
	bool own_name;
	struct str cookie; /* with it: the name of one that is the hub's */
};

/* The path and query that the server sees. */
int expose_target(struct http_request *q, const struct expose_as *as, struct buf *to,
		  struct err *e) MUST_USE;

/* The head of the request, all of it. */
int expose_request(struct http_request *q, const struct expose_as *as, struct buf *to,
		   struct err *e) MUST_USE;
/* Appends its fields alone, a line each. */
int expose_fields(struct http_request *q, const struct expose_as *as, struct buf *to,
		  struct err *e) MUST_USE;

enum { EXPOSE_HEADERS_MAX = HTTP_ANSWER_FIELDS + 4 };

/* Those of the answer, in the arena; *ret_n of them, which have room in so many bytes. */
int expose_answer(const struct http_answer *a, const struct expose_as *as, size_t room,
		  struct arena *arena, struct http_header ret[EXPOSE_HEADERS_MAX], size_t *ret_n,
		  struct err *e) MUST_USE;

/* Where a Location leads that the server gave; false: nowhere where the client should go. */
bool expose_location(struct str location, const struct expose_as *as, struct buf *to);
