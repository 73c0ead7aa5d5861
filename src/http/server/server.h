#pragma once
/*
 * An HTTP/1.1 server on the loop (RFC 9110, RFC 9112), over TCP and Unix sockets, with or without
 * TLS. It answers at once or later, with streams (such as Server-Sent Events) and WebSockets.
 *
 * A request reaches its route only after these checks, in this order. Each has its own status:
 *
 * 	framing		400  no Host, a bad or repeated Content-Length, Content-Length beside
 * 			     Transfer-Encoding, folded lines, bare line feeds, control
 * 			     characters; 431, 505
 * 	Host		403  not in the allow-list, or repeated
 * 	Origin		403  present, and neither the server's own nor in the allow-list
 * 	route, method	404, 405
 * 	token		401  missing or wrong, unless the route is open
 * 	rate		429  over the principal's rate, with Retry-After
 * 	type		415  a body, or a method that has one, without application/json
 * 	size		413
 * 	draining	503
 *
 * The body of a refusal is {"error":{"code","message","cause","remediation"}}, with texts from
 * base/err_table.h.
 *
 * All functions must be called on the loop's thread, and all callbacks come from it. A callback
 * described as "later" never comes from inside a call of this header. The program must ignore
 * SIGPIPE.
 */
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "http/message/header.h"

struct http_server;
struct http_request;
struct http_stream;
struct http_ws;

enum http_method {
	HTTP_GET = 1,
	HTTP_HEAD = 2,
	HTTP_POST = 4,
	HTTP_PUT = 8,
	HTTP_PATCH = 16,
	HTTP_DELETE = 32,
	HTTP_OPTIONS = 64, /* preflights of allowed origins are answered before any route */
};

/* ---- routes -------------------------------------------------------------------------------- */

struct http_route {
	/* "/mcp"; "/v1/files/" with a slash at the end: all that is below it; "/things/{id}/parts":
	 * any one segment that is not empty. Of several rows that match, the first with the
	 * method. */
	const char *path;
	unsigned methods; /* of enum http_method; HEAD is not implied by GET */
	bool open; /* no token needed */
	bool any_type; /* a body of any Content-Type, or of none */
	size_t body_max; /* bytes; 0: the server's */
	/* Must end q, now or later, by exactly one of http_reply, http_reply_error,
	 * http_stream_start and http_ws_accept. */
	void (*run)(void *owner, struct http_request *q);
	const char *doc; /* one line */
	/* run() is called before the body has come, which http_body_start() is for; body_max, where
	 * there is one, bounds a Content-Length only. */
	bool streams;
};

/* What an error reply says. */
struct http_problem {
	int status;
	const struct err *e;
	unsigned retry_after; /* seconds, with 429 and 503; else 0 */
	struct str path;
};

struct http_routes {
	const struct http_route *p; /* borrowed until on_closed */
	size_t n;
	void *owner; /* of their run() */
	/* Where clients expect errors of another form: the front of all such paths, and what writes
	 * the body of one, which is JSON. NULL for the form above. */
	const char *below;
	int (*explain)(const struct http_problem *problem, struct buf *to, struct err *e);
};

/* ---- the server ---------------------------------------------------------------------------- */

/* 0 stands for the default, in brackets. */
struct http_limits {
	unsigned connections; /* in all [1024]; one too many: the one longest idle is closed */
	unsigned connections_by_address; /* [0: any number]; one too many is closed */
	unsigned headers; /* fields of a request [100] */
	size_t header_bytes; /* request line and fields [8 KiB]; at most 64 KiB */
	size_t body; /* of a request [4 MiB]; a route may say otherwise */
	size_t bodies; /* of all requests at once [256 MiB]; over it 503 */
	unsigned streams; /* streams and WebSockets at once [1024]; over it 503 */
	size_t stream_queue; /* bytes that wait for a slow reader [1 MiB] */
	unsigned rate; /* requests a second of one principal [0: any] */
	unsigned burst; /* [2 * rate] */
	unsigned header_ms; /* from the first byte that can be to the end of the fields [10 s] */
	/* from there to the end of the body, or between pieces of one that streams [60 s] */
	unsigned body_ms;
	unsigned idle_ms; /* between requests, and of a reader that takes nothing [75 s] */
};

struct http_options {
	struct http_limits limits;
	/* The principal of a bearer token, or NULL; it must compare in constant time. The pointer
	 * is what http_request_principal() gives, and what rates are counted by. NULL: the server
	 * knows nobody, open routes aside it answers 401, and listens on loopback only. */
	const void *(*identify)(void *owner, struct str bearer);
	void *owner;
	const struct http_routes *routes; /* several tables; borrowed until on_closed */
	size_t n_routes;
	/* "name" or "name:port", lower case, or "*.name" for all that are one label below it;
	 * beside the names of loopback and the address that is listened on; borrowed until
	 * on_closed. */
	const char *const *hosts;
	size_t n_hosts;
	/* "https://app.example", exact, beside the door's own; these get CORS headers. */
	const char *const *origins;
	size_t n_origins;
	/* Where a resource's metadata stand (RFC 9728), such as
	 * "/.well-known/oauth-protected-resource": a 401 names it with the request's path behind
	 * it. NULL: none. */
	const char *metadata;
	const char *expose; /* Access-Control-Expose-Headers for those origins, or NULL */
};

/* Borrows options for this call, what it points to until on_closed. */
struct http_server *http_server_new(uv_loop_t *loop, const struct http_options *options,
				    struct err *e) MUST_USE;

/* PEM texts, borrowed for the call. */
struct http_tls {
	const char *certificate, *key;
};

/* "127.0.0.1:5757", "[::1]:0" or "host.name:80" (its first address). tls: NULL for none. Gives the
 * port. ERR_DENIED for an address that is not loopback when there is no identify(). */
int http_server_listen(struct http_server *srv, const char *address, const struct http_tls *tls,
		       struct err *e) MUST_USE;

/* A socket of mode 0600. One that nobody listens on is replaced; ERR_CONFLICT if somebody does.
 * Removed when the server closes, if it is still the same. */
int http_server_listen_unix(struct http_server *srv, const char *path, struct err *e) MUST_USE;

/* Stops listening at once; idle connections end, requests in flight may finish, new ones get 503.
 * After grace_ms (0: now) what is left is ended: requests hear on_gone, streams and WebSockets
 * on_closed with ERR_CANCELLED. on_closed is called later, once, when no connection is left and
 * srv is gone; all that the owner ended itself ends with its last byte written. Streams that
 * belong to no request in flight are the owner's to end. May be called again with a shorter
 * time. */
void http_server_close(struct http_server *srv, unsigned grace_ms, void (*on_closed)(void *arg),
		       void *arg);

struct http_stats {
	uint64_t connections_total, requests_total;
	uint64_t by_class[6]; /* replies by the first digit of the status */
	uint64_t refused; /* of them by the door itself */
	/* streams and WebSockets closed for a full queue, connections past a deadline */
	uint64_t slow;
	unsigned connections, requests, streams, websockets; /* now */
	size_t body_bytes; /* kept of bodies now */
};
void http_server_stats(const struct http_server *srv, struct http_stats *ret);

/* ---- a request ----------------------------------------------------------------------------- */
/* All texts are borrowed until the request is ended. */

enum http_method http_request_method(const struct http_request *q);
const struct http_route *http_request_route(const struct http_request *q);

/* As it was sent, without the query; rest: what follows a route's closing slash. */
struct str http_request_path(const struct http_request *q);
struct str http_request_rest(const struct http_request *q);

/* What stands for {name} of the route's path, not decoded; STR_NONE if its path has no such
 * segment. */
struct str http_request_segment(const struct http_request *q, const char *name);

/* A field by name, in any case; STR_NONE if absent. Of several the first; count says how many. */
struct str http_request_header(struct http_request *q, struct str name);
unsigned http_request_header_count(struct http_request *q, struct str name);

/* All fields in their order, which is cheaper than several looks by name. */
void http_request_each_header(struct http_request *q,
			      void (*each)(void *data, struct str name, struct str value),
			      void *data);

/* A parameter of the query, decoded; STR_NONE if it is absent or not valid UTF-8. */
struct str http_request_query(struct http_request *q, struct str name);

/* All of them in their order, decoded; false where one is not valid UTF-8, which ends it. */
bool http_request_each_query(struct http_request *q,
			     void (*each)(void *data, struct str name, struct str value),
			     void *data) MUST_USE;

/* Appends the query as it was sent, without the question mark; what would need an escape is
 * escaped. */
int http_request_raw_query(struct http_request *q, struct buf *to, struct err *e) MUST_USE;

/* Bytes of fields that a reply can have: names, values, and four for each. With more the connection
 * ends instead. */
size_t http_request_room(struct http_request *q);

struct str http_request_body(const struct http_request *q);

/* A body in pieces, of a route that streams; its run() calls http_body_start() or ends q. Until
 * on_end or on_lost the client is heard of by these alone. A reply may be given at any time, and is
 * sent when the body has ended: what still comes of that is dropped, for as long as a body may
 * take. Streams and WebSockets begin after on_end. */
struct http_body_events {
	/* How many of the bytes it took; if not all, the client is held until
	 * http_body_resume(). */
	size_t (*on_bytes)(void *owner, struct str bytes);
	/* All of it came. */
	void (*on_end)(void *owner);
	/* The client went away before the end of it, or took too long: q is ended. */
	void (*on_lost)(void *owner);
};
void http_body_start(struct http_request *q, const struct http_body_events *events, void *owner);
void http_body_resume(struct http_request *q); /* nothing once the body has ended */
const void *http_request_principal(const struct http_request *q); /* NULL on an open route */

/* "127.0.0.1:40000", "[::1]:40000" or "unix"; for log records. */
struct str http_request_peer(struct http_request *q);

/* Whether the connection is TLS; "http" or "https" and what the client called us make its URL. */
bool http_request_is_tls(const struct http_request *q);

/* The client has closed its side, or the server gives up: called later, at most once, and not after
 * the request is ended. The request must still be ended; the reply reaches a client that only
 * closed its sending side. Replaces an earlier one. */
void http_request_on_gone(struct http_request *q, void (*on_gone)(void *data), void *data);

struct http_reply {
	int status;
	const char *type; /* Content-Type; NULL: none, for a reply without a body */
	struct str body; /* copied */
	char *owned; /* body is in here: malloc'ed, taken, not copied; NULL otherwise */
	const struct http_header *headers; /* copied */
	size_t n_headers;
	bool close; /* the connection ends with it */
};

/* Ends the request. Never fails: what can't be sent ends the connection. */
void http_reply(struct http_request *q, const struct http_reply *reply);

/* The error of the table above, with the status of its row; headers as above or NULL, 0. */
void http_reply_error(struct http_request *q, const struct err *e);

/* ---- streams ------------------------------------------------------------------------------- */

struct http_stream_events {
	/* Later, once, and s is gone: the client went away (ERR_TRANSPORT), took too little until
	 * the queue was full (ERR_LIMIT), or the server closes (ERR_CANCELLED). */
	void (*on_closed)(void *owner, const struct err *why);
	/* Later: what waits has become half of the queue or less, after it was more. May be
	 * NULL. */
	void (*on_drained)(void *owner);
};

/* Ends the request and starts a body of unknown length. Of reply, its body is the stream's first
 * bytes. NULL with *e (ERR_LIMIT: too many streams): q is then still to be ended. HEAD gives a
 * stream that closes at once. */
struct http_stream *http_stream_start(struct http_request *q, const struct http_reply *reply,
				      const struct http_stream_events *events, void *owner,
				      struct err *e) MUST_USE;

/* Copies the bytes into the queue; what one turn of the loop writes goes out together. A queue that
 * is not full takes a text of any size, as one message may be larger than the whole of it; who
 * writes when it is full is too late, and the stream ends. */
void http_stream_write(struct http_stream *s, struct str bytes);

/* The bytes that no socket has taken yet. */
size_t http_stream_waiting(const struct http_stream *s);

/* The end, after what waits. s is gone for the caller, and no callback comes. */
void http_stream_end(struct http_stream *s);

/* The same, but the connection is cut, so that nobody takes what came for all of it. */
void http_stream_break(struct http_stream *s);

/* ---- WebSockets (RFC 6455) ----------------------------------------------------------------- */

struct http_ws_events {
	/* A whole message, borrowed for the call. Text is valid UTF-8. */
	void (*on_message)(void *owner, bool is_text, struct str message);
	/* Later, once, and ws is gone. code: of the client's close frame, 1006 without one. */
	void (*on_closed)(void *owner, unsigned code, const struct err *why);
	void (*on_drained)(void *owner); /* as of a stream; may be NULL */
};

struct http_ws_options {
	size_t message_max; /* bytes [1 MiB]; a longer one ends it with 1009 */
	size_t queue_max; /* bytes [the server's stream_queue] */
	unsigned ping_ms; /* [30 s]; without an answer until the next one, it ends */
	const char *protocol; /* Sec-WebSocket-Protocol to answer with, or NULL */
};

/* Ends the request, a GET that asks for an upgrade. NULL with *e, and q still to be ended:
 * ERR_INVALID if it does not ask (reply 426 or another), ERR_LIMIT for too many. */
struct http_ws *http_ws_accept(struct http_request *q, const struct http_ws_options *options,
			       const struct http_ws_events *events, void *owner,
			       struct err *e) MUST_USE;

void http_ws_send(struct http_ws *ws, bool is_text, struct str message);
size_t http_ws_waiting(const struct http_ws *ws);

/* So much waits, in bytes or in messages, that on_drained will tell when it has become less. */
bool http_ws_full(const struct http_ws *ws);

/* Reads no further: the client waits once the socket is full, and a few messages that were read
 * already may still come; or goes on. Meanwhile it is not asked whether it is there, but where it
 * goes away, on_closed tells. */
void http_ws_hold(struct http_ws *ws, bool hold);

/* Says goodbye behind what waits, and ends when the client has answered, or did not for some
 * seconds, or takes nothing more. ws is gone for the caller, and no callback comes. */
void http_ws_close(struct http_ws *ws, unsigned code, struct str reason);
