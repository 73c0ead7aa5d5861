#pragma once
/* Shared by expose.c (beginning and end of a request), expose_http.c and expose_socket.c. */
#include "call/call.h"
#include "door/expose/expose.h"
#include "door/expose/expose_head.h"
#include "door/http/error.h"
#include "http/client/hop.h"
#include "http/client/ws.h"
#include "hub/sandbox/forward.h"

struct expose {
	uv_loop_t *loop;
	struct ops *ops;
	bool (*is_token)(void *owner, struct str text);
	void *owner;
	struct exposed *open;
	bool ending;
};

#define EXPOSE_METHODS                                                                             \
	(HTTP_GET | HTTP_HEAD | HTTP_POST | HTTP_PUT | HTTP_PATCH | HTTP_DELETE | HTTP_OPTIONS)

/* One request, from its head to the end of its answer. */
struct exposed {
	struct expose *x;
	struct exposed *next, *prev; /* in x->open */
	struct http_request *q; /* until it is answered or lost */
	struct call *call;
	struct arena *arena;
	struct expose_as as;
	char label[64];
	char prefix[160];
	struct preview_right right; /* of a preview, if as.own_name */
	bool at_hub; /* as.at_hub */
	struct hub_sandbox_port port; /* valid once it has one */
	struct sandbox *sandbox; /* a reference */
	struct dial *dial;
	uint64_t in, out; /* bytes */

	/* HTTP */
	struct http_hop *hop;
	struct http_stream *stream;
	bool chunked; /* the request's body is chunked */
	bool body_ended, body_held;
	bool news; /* the answer is an event stream */
	int status; /* status of the answer that waits for the end of the request's body; 0: none */
	struct http_header *headers;
	size_t n_headers;

	/* a WebSocket */
	bool upgrades;
	struct ws_client *far;
	/* NULL: not accepted yet, or the client has left and the server was told */
	struct http_ws *near;
	bool accepted;
	uv_timer_t timer; /* until the server has upgraded, and for its close frame */
	bool timing;
};

/* right: of a preview, else NULL. */
void expose_start(struct expose *all, struct http_request *q, const struct preview_right *right,
		  bool at_hub);

/* Ends the call with the failure e, or successfully if e is NULL; x is freed. Both sides must have
 * been released. */
void exposed_end(struct exposed *x, const struct err *e);

/* expose_preview.c */
struct expose_as expose_as_preview(uint16_t port);

/* expose_http.c: the server in the sandbox has accepted. Takes fd. */
void expose_http_start(struct exposed *x, int fd);
/* Releases the connections; the answer is cut off. */
void expose_http_stop(struct exposed *x);
/* The request's body, as in struct http_body_events. */
size_t expose_http_bytes(struct exposed *x, struct str bytes);
void expose_http_body_end(struct exposed *x);

/* expose_socket.c: the same. */
bool expose_socket_asked(struct http_request *q);
void expose_socket_start(struct exposed *x, int fd);
void expose_socket_stop(struct exposed *x);
