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
 * 	rate		429  over the principal's rate, with Retry-After, or its share of
 * 			     connections
 * 	type		415  a body, or a method that has one, without application/json
 * 	size		413
 * 	draining	503
 *
 * The body of a refusal is {"error":{"code","message","cause","remediation","failure",
 * "retryable"}}, with texts from
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
	bool any_type; /* accept a body of any Content-Type, or without one */
	size_t body_max; /* bytes; 0: the server's */
	/* Must end q, now or later, with exactly one of http_reply(), http_reply_error(),
	 * http_stream_start() and http_ws_accept(). */
	void (*run)(void *owner, struct http_request *q);
	const char *doc; /* one line */
	/* run() is called before the body has arrived, and reads it with http_body_start().
	 * body_max, if set, limits only the Content-Length. */
	bool streams;
};

/* The content of an error reply. */
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
	/* For clients that expect another form of errors: the common prefix of their paths, and a
	 * function that writes the JSON body of an error, below it and of these routes. NULL, each:
	 * the form above. */
	const char *below;
	int (*explain)(const struct http_problem *problem, struct buf *to, struct err *e);
	/* Who asks for one of these routes, instead of http_options.identify; NULL from it: 401.
	 * The route of q is not known yet where claims() is asked. May be NULL, both. */
	const void *(*identify)(void *owner, struct http_request *q);
	/* Whether the table's first row is the route of this request, whatever its path and method:
	 * by a host name that is no other's. */
	bool (*claims)(void *owner, struct http_request *q);
	/* Whether a body that is long is received at all. Where not, run() is called without it,
	 * to say why: http_request_is_unread(). May be NULL. */
	bool (*admits)(void *owner, struct http_request *q);
};

/* ---- the server ---------------------------------------------------------------------------- */

/* 0 stands for the default, in brackets. Of connections with a request, and of streams, a
 * principal gets one more only while it has less than seven times as many as are free. */
struct http_limits {
	/* In all [1024]. Above that the one that has waited longest is closed: idle, or with a
	 * request without a principal, or refused, that no route has. An eighth of them, at most
	 * 32, are for Unix sockets alone, if there is one. */
	unsigned connections;
	unsigned connections_by_address; /* [0: any number]; above that new ones are closed */
	unsigned headers; /* fields of a request [100] */
	size_t header_bytes; /* request line and fields [8 KiB]; at most 64 KiB */
	size_t body; /* of a request [4 MiB]; a route may set another limit */
	size_t bodies; /* of all requests at once [256 MiB]; above that 503 */
	/* Streams and WebSockets at once [7/8 of the connections, so that there is one for a
	 * request]; above that ERR_LIMIT. */
	unsigned streams;
	size_t stream_queue; /* bytes queued for a slow reader [1 MiB] */
	unsigned rate; /* requests per second of one principal [0: any] */
	unsigned burst; /* [2 * rate] */
	unsigned header_ms; /* to receive all fields, from when the first byte can come [10 s] */
	/* to receive the body after them, or the next piece of a streamed one [60 s] */
	unsigned body_ms;
	unsigned idle_ms; /* between requests, and for a reader that reads nothing [75 s] */
};

struct http_options {
	struct http_limits limits;
	/* Returns the principal of a bearer token, or NULL. local: it came over a Unix socket,
	 * from this process's user or from root. Must compare in constant time. The
	 * pointer is returned by http_request_principal() and identifies the principal for rates.
	 * identify NULL: all routes but open ones give 401, and the server listens on loopback
	 * only. */
	const void *(*identify)(void *owner, struct str bearer, bool local);
	/* The principal of a request without a token, by what a browser sends, such as a cookie; or
	 * NULL. It is never asked about requests from pages of other origins. May be NULL. */
	const void *(*identify_browser)(void *owner, struct http_request *q);
	/* The principal whose shares of connections and streams this one uses. NULL: its own. */
	const void *(*payer)(const void *principal);
	void *owner;
	const struct http_routes *routes; /* n_routes tables; borrowed until on_closed */
	size_t n_routes;
	/* Allowed hosts: "name" or "name:port" in lower case, or "*.name" for all names one label
	 * below it. Loopback names and the listening address are always allowed. Borrowed until
	 * on_closed. */
	const char *const *hosts;
	size_t n_hosts;
	/* Allowed origins, such as "https://app.example", compared exactly; they get CORS headers.
	 * The server's own origin is always allowed. */
	const char *const *origins;
	size_t n_origins;
	/* Where clients find this server behind a proxy, such as "https://holt.example"; or NULL.
	 * That name is allowed, and a request that has it came over that scheme. */
	const char *public_url;
	/* Path of the resource metadata (RFC 9728), such as
	 * "/.well-known/oauth-protected-resource". A 401 names it, with the request's path
	 * appended. NULL: none. */
	const char *metadata;
	const char *expose; /* Access-Control-Expose-Headers for allowed origins; or NULL */
};

/* options is borrowed for this call, what it points to until on_closed. */
struct http_server *http_server_new(uv_loop_t *loop, const struct http_options *options,
				    struct err *e) MUST_USE;

/* PEM texts, borrowed for the call. TLS 1.2 and 1.3 are spoken. */
struct http_tls {
	const char *certificate, *key; /* the chain, and the key of its first */
	/* Authorities: only a client with a certificate of theirs gets through the handshake. NULL:
	 * no client is asked for one. */
	const char *client_ca;
};

/* address: "127.0.0.1:5757", "[::1]:0" or "host.name:80" (its first address). tls may be NULL.
 * Returns the port. ERR_DENIED: the address is not loopback and there is no identify(). */
int http_server_listen(struct http_server *srv, const char *address, const struct http_tls *tls,
		       struct err *e) MUST_USE;

/* Listens on a Unix socket of mode 0600. Replaces a stale one; ERR_CONFLICT: another process
 * listens on it. The socket is removed when the server closes, unless it was replaced. */
int http_server_listen_unix(struct http_server *srv, const char *path, struct err *e) MUST_USE;

/* Serves a socket that somebody else has opened, bound and listens on, and goes on to: nothing of
 * it is removed. *fd is taken, and -1 then. tls is for TCP alone. Gives the port, 0 for a Unix
 * socket. */
int http_server_listen_fd(struct http_server *srv, int *fd, const struct http_tls *tls,
			  struct err *e) MUST_USE;

/* New connections to addresses that speak TLS get these instead; others go on with what they have.
 * Nothing changes on failure. */
int http_server_renew(struct http_server *srv, const struct http_tls *tls, struct err *e) MUST_USE;

/* Stops listening at once and closes idle connections. Requests in flight may finish; new ones get
 * 503. After grace_ms (0: now) the rest is ended: requests get on_gone, streams and WebSockets
 * on_closed with ERR_CANCELLED. What the owner ended itself is written to its last byte. The owner
 * must end streams that belong to no request in flight. on_closed is called later, once, when no
 * connection is left and srv is freed. May be called again with a shorter time. */
void http_server_close(struct http_server *srv, unsigned grace_ms, void (*on_closed)(void *arg),
		       void *arg);

/* The principal is good for nothing any more: its streams, WebSockets and bodies that are still
 * received end, and requests that a route has get on_gone. Replies that are being sent go on. Call
 * it from the loop, never within a call of a route. */
void http_server_end_of(struct http_server *srv, const void *principal);

struct http_stats {
	uint64_t connections_total, requests_total;
	uint64_t by_class[6]; /* replies by the first digit of the status */
	uint64_t refused; /* of them by the server itself, before any route */
	/* streams and WebSockets closed for a full queue, connections past a deadline */
	uint64_t slow;
	/* Connections that were ended because what they sent led nowhere. */
	uint64_t stuck;
	unsigned connections, requests, streams, websockets; /* now */
	size_t body_bytes; /* of bodies held now */
};
void http_server_stats(const struct http_server *srv, struct http_stats *ret);

/* ---- a request ----------------------------------------------------------------------------- */
/* All strings are borrowed until the request is ended. */

enum http_method http_request_method(const struct http_request *q);
const struct http_route *http_request_route(const struct http_request *q);

/* path: as sent, without the query; rest: what follows the final slash of a route's path. */
struct str http_request_path(const struct http_request *q);
struct str http_request_rest(const struct http_request *q);

/* The value of {name} in the route's path, not decoded; STR_NONE if the path has no such
 * segment. */
struct str http_request_segment(const struct http_request *q, const char *name);

/* A field by name, case ignored; STR_NONE if absent, the first of several. count: how many. */
struct str http_request_header(struct http_request *q, struct str name);
unsigned http_request_header_count(struct http_request *q, struct str name);

/* All fields in their order; cheaper than several look-ups by name. */
void http_request_each_header(struct http_request *q,
			      void (*each)(void *data, struct str name, struct str value),
			      void *data);

/* A parameter of the query, decoded; STR_NONE if it is absent or not valid UTF-8. */
struct str http_request_query(struct http_request *q, struct str name);

/* All parameters in their order, decoded. Stops and returns false at one that is not UTF-8. */
bool http_request_each_query(struct http_request *q,
			     void (*each)(void *data, struct str name, struct str value),
			     void *data) MUST_USE;

/* Appends the query as sent, without the question mark. Characters that need an escape are escaped.
 */
int http_request_raw_query(struct http_request *q, struct buf *to, struct err *e) MUST_USE;

/* Bytes that a reply's fields may have: names, values, and four per field. A reply with more closes
 * the connection. */
size_t http_request_room(struct http_request *q);

struct str http_request_body(const struct http_request *q);
bool http_request_is_unread(const struct http_request *q); /* see http_routes.admits */

/* Receives a body in pieces, for a route that streams; its run() calls http_body_start() or ends q.
 * Until on_end or on_lost no other callback of the request comes. A reply may be given at any time;
 * it is sent when the body has ended, and the rest of the body is dropped. Streams and WebSockets
 * can start only after on_end. */
struct http_body_events {
	/* Returns how many bytes it took. If not all, reading stops until http_body_resume(). */
	size_t (*on_bytes)(void *owner, struct str bytes);
	/* The body is complete. */
	void (*on_end)(void *owner);
	/* The client went away or took too long before the end; q is ended. */
	void (*on_lost)(void *owner);
};
void http_body_start(struct http_request *q, const struct http_body_events *events, void *owner);
void http_body_resume(struct http_request *q); /* no effect after the end of the body */
const void *http_request_principal(const struct http_request *q); /* NULL on an open route */

/* "127.0.0.1:40000", "[::1]:40000" or "unix"; for log records. */
struct str http_request_peer(struct http_request *q);

/* The port of this server that it came to, as http_server_listen() gave it; 0: a Unix socket. */
int http_request_port(const struct http_request *q);

/* Whether the connection uses TLS, that is, whether the URL's scheme is https. */
bool http_request_is_tls(const struct http_request *q);
/* Whether its own connection is of TLS, not that of a proxy before it. */
bool http_request_is_encrypted(const struct http_request *q);

/* Whether the request names an Origin, and it is the server's own. */
bool http_request_has_own_origin(const struct http_request *q);

/* One header that whatever answers the request will have; value: at most 63 bytes, copied. */
void http_request_mark(struct http_request *q, const char *name, const char *value);

/* on_gone: the client has closed its side, or the server is closing. Called later, at most once,
 * and not after the request is ended. The request must still be ended; a client that only closed
 * its sending side gets the reply. Replaces an earlier on_gone. */
void http_request_on_gone(struct http_request *q, void (*on_gone)(void *data), void *data);

struct http_reply {
	int status;
	const char *type; /* Content-Type; NULL: none, for a reply without a body */
	struct str body; /* copied */
	char *owned; /* NULL, or malloc'ed memory that holds body: taken, not copied */
	const struct http_header *headers; /* copied */
	size_t n_headers;
	bool close; /* close the connection after it */
};

/* Ends the request. Never fails: if the reply can't be sent, the connection is closed. */
void http_reply(struct http_request *q, const struct http_reply *reply);

/* The error of the table above, with the status of its row; headers as above or NULL, 0. */
void http_reply_error(struct http_request *q, const struct err *e);

/* ---- streams ------------------------------------------------------------------------------- */

struct http_stream_events {
	/* Called later, once; s is freed. ERR_TRANSPORT: the client went away; ERR_LIMIT: it read
	 * too slowly and the queue is full; ERR_CANCELLED: the server closes. */
	void (*on_closed)(void *owner, const struct err *why);
	/* Called later, when the queue has drained to half of its limit. May be NULL. */
	void (*on_drained)(void *owner);
};

/* Ends the request and starts a body of unknown length, whose first bytes are reply's body. NULL
 * with *e (ERR_LIMIT: too many streams): the caller must still end q. For HEAD the stream closes at
 * once. */
struct http_stream *http_stream_start(struct http_request *q, const struct http_reply *reply,
				      const struct http_stream_events *events, void *owner,
				      struct err *e) MUST_USE;

/* Copies the bytes into the queue. Writes of one turn of the loop are sent together. A queue below
 * its limit takes a text of any size, since one message may exceed the limit. A write to a full
 * queue ends the stream. */
void http_stream_write(struct http_stream *s, struct str bytes);

/* The same for what is in a buffer, which is empty then: much is not copied, where nothing else
 * waits. Its maximum is at most 256 MiB, and it has no budget. */
void http_stream_give(struct http_stream *s, struct buf *b);

/* Writes fail only when this many bytes are queued, if that is above the limit. on_drained still
 * goes by the limit. For an owner that stops writing when much waits, but not within a message. */
void http_stream_allow(struct http_stream *s, size_t bytes);

/* Bytes in the queue. */
size_t http_stream_waiting(const struct http_stream *s);

/* Ends the stream after the queued bytes. s is no longer valid, and no callback comes. */
void http_stream_end(struct http_stream *s);

/* The same, but aborts the connection, so that the client sees that the body is incomplete. */
void http_stream_break(struct http_stream *s);

/* ---- WebSockets (RFC 6455) ----------------------------------------------------------------- */

struct http_ws_events {
	/* A whole message, borrowed for the call. Text is valid UTF-8. */
	void (*on_message)(void *owner, bool is_text, struct str message);
	/* Called later, once; ws is freed. code: of the client's close frame, 1006 without one. */
	void (*on_closed)(void *owner, unsigned code, const struct err *why);
	void (*on_drained)(void *owner); /* as of a stream; may be NULL */
};

struct http_ws_options {
	size_t message_max; /* bytes [1 MiB]; a longer one ends it with 1009 */
	size_t queue_max; /* bytes [the server's stream_queue] */
	unsigned ping_ms; /* [30 s]; ends the connection if the last ping got no answer */
	const char *protocol; /* Sec-WebSocket-Protocol to answer with, or NULL */
};

/* Ends the request, a GET that asks for an upgrade. NULL with *e, and the caller must still end q:
 * ERR_INVALID: the request asks for no upgrade (reply 426, for example); ERR_LIMIT: too many. */
struct http_ws *http_ws_accept(struct http_request *q, const struct http_ws_options *options,
			       const struct http_ws_events *events, void *owner,
			       struct err *e) MUST_USE;

void http_ws_send(struct http_ws *ws, bool is_text, struct str message);
size_t http_ws_waiting(const struct http_ws *ws);

/* True while so many bytes or messages are queued that on_drained will follow. */
bool http_ws_full(const struct http_ws *ws);

/* Stops or resumes reading. A few messages that were read already may still come; the client blocks
 * once the socket is full. Meanwhile no pings are sent, but on_closed still reports that the client
 * went away. */
void http_ws_hold(struct http_ws *ws, bool hold);

/* Sends a close frame after the queued messages, and ends when the client answers, reads nothing
 * more, or some seconds have passed. ws is no longer valid, and no callback comes. */
void http_ws_close(struct http_ws *ws, unsigned code, struct str reason);
