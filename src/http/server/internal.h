#pragma once
/*
 * Between the files of the door. One server has a list of connections and some listeners, each a
 * libmicrohttpd daemon of its own whose epoll descriptor the loop polls:
 *
 *	server.c	the daemons on the loop, the tick, the end
 *	listen.c	sockets
 *	conn.c		a connection: deadlines, and who went away while it waited
 *	admit.c		the checks before a route, in the order of http.h
 *	request.c	bodies, what a route may ask, how the daemon's calls become one
 *	reply.c		replies, errors
 *	stream.c ws.c	what comes after a reply's head
 *	head.c rate.c sha1.c	pure
 *
 * A connection has one request at a time. From the call of its route to the reply it is suspended:
 * the daemon then neither reads nor watches it, so that pipelined requests wait and nothing of the
 * request can go away; conn.c watches for the client's end instead.
 */
#include <microhttpd.h>
#include <sys/epoll.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/spare.h"
#include "http/message/head.h"
#include "http/server/server.h"
#include "http/server/rate.h"

enum {
	LISTENERS_MAX = 8,
	HOSTS_MAX = 64,
	HOST_KEPT = 64, /* bytes */
	FIELDS_KEPT = 16, /* of a head; most have fewer */
	BODY_KEPT = 4 << 10, /* bytes of memory that are kept for the next body */
};

/* See admit.c; later versions have a level of discipline instead. */
#define PARSES_IN_PLACE (MHD_VERSION < 0x00097701)

enum conn_state {
	CONN_IDLE, /* between requests, and while a request's head comes */
	CONN_BODY, /* the head is there */
	CONN_ROUTED, /* its route has it */
	CONN_REPLYING, /* the reply goes out */
	CONN_STREAMING,
	CONN_UPGRADED, /* a WebSocket has its descriptor */
};

/* The value is trimmed. */
struct http_field {
	struct str name, value;
};

/* Of one request, in the order in which they come. */
struct request_head {
	struct str host, origin, authorization, type, upgrade;
	unsigned n_hosts, n_origins, n_authorizations, n_types, n_lengths, n_encodings, n_fields;
	unsigned long long length;
	bool bad_field, bad_length, bad_encoding, expects;
	const char *at; /* where the next field must begin, or NULL: see admit.c */
	bool cross; /* from an origin of the allow-list */
};

struct http_request {
	struct conn *conn;
	enum http_method method;
	struct str target; /* as it was sent; only its place and length are good for long */
	bool bad_target; /* there were spaces or control characters in it */
	struct str path, rest;
	const struct http_route *route;
	void *route_owner;
	const void *principal;
	struct request_head head;
	struct buf body;
	bool replies; /* body's memory has the reply, and is needed until that is out */
	struct arena *arena; /* of decoded queries; NULL until used */
	bool seen; /* the daemon has shown its head */
	bool running; /* inside of run() */
	bool ended; /* has its reply */
	bool wants_body; /* what comes of it is kept; else dropped */
	bool counted; /* among the server's requests */
	/* of a route that streams: */
	const struct http_body_events *body_events; /* until the body's end, or the reply */
	void *body_owner;
	struct MHD_Response *late; /* the reply, until the body has ended */
	unsigned late_status;
	bool drops; /* what comes of the body */
	bool must_close; /* where the next request would begin is in doubt */
	int refusal; /* the status to refuse it with, 0: none yet */
	struct err why;
	unsigned retry_after;
	unsigned long long received;
	void (*on_gone)(void *data);
	void *on_gone_data;
	bool gone;
};

struct conn {
	struct http_server *srv;
	struct listener *listener;
	struct MHD_Connection *mhd;
	struct conn *next, *prev;
	enum conn_state state;
	int fd;
	bool local; /* over a Unix socket */
	bool suspended;
	bool watched; /* for its client's end */
	bool timed; /* by the daemon, too */
	uint64_t idle_ms; /* since when it is idle */
	uint64_t deadline_ms; /* 0: none */
	struct http_request q;
	struct http_field fields[FIELDS_KEPT]; /* the first of q.head.n_fields */
	struct http_stream *stream;
	struct http_ws *ws;
	char peer[64];
};

struct listener {
	struct http_server *srv;
	struct MHD_Daemon *daemon;
	uv_poll_t poll;
	bool tls, kicked, given; /* given: others have the socket, too */
	int port; /* 0: a Unix socket */
	int quiesced; /* the listening descriptor once it listens no more; else -1 */
	char path[108];
	unsigned long long inode; /* of path */
};

struct http_server {
	uv_loop_t *loop;
	struct http_options o; /* with all limits set */
	struct http_authority hosts[HOSTS_MAX]; /* allowed */
	size_t n_hosts;
	struct buf body; /* of a request that has ended */
	char host[HOST_KEPT]; /* the Host that was found among them last */
	size_t host_n;
	char bound[LISTENERS_MAX][64]; /* addresses listened on, among hosts */
	struct listener *listeners[LISTENERS_MAX];
	size_t n_listeners;
	struct conn conns; /* ring */
	struct http_stats stats;
	uint64_t full_logged_ms; /* when it was last said that it is full; 0: never */
	unsigned full_unsaid; /* times since */
	struct rate *rates, *failures; /* of principals; of addresses whose tokens are wrong */

	int watch; /* epoll of suspended connections */
	uv_poll_t watch_poll;
	uv_timer_t tick;
	uv_idle_t again; /* runs in the next turn, before the loop waits */
	struct http_stream *told; /* streams with something to tell their owners */
	struct http_ws *websockets;
	unsigned handles; /* open */

	bool closing, stopped;
	uint64_t close_ms; /* what is left then is ended */
	bool given_up; /* that was done */
	void (*on_closed)(void *arg);
	void *on_closed_arg;
};

/* ---- server.c ---- */
/* The loop's time, as all deadlines and rates here are of so many seconds. */
static inline uint64_t server_now_ms(const struct http_server *srv)
{
	return uv_now(srv->loop);
}
/* The daemon of this connection is to run in the next turn. */
void server_kick(struct http_server *srv, struct listener *l);
void server_again(struct http_server *srv);
/* Deadlines are looked at from now on, while there are connections. */
void server_tick(struct http_server *srv);
/* Takes a listening socket and starts a daemon on it. */
int server_add(struct http_server *srv, int *fd, struct listener *l, const struct http_tls *tls,
	       struct err *e) MUST_USE;

/* ---- conn.c ---- */
void conn_notify(void *cls, struct MHD_Connection *mhd, void **socket_context,
		 enum MHD_ConnectionNotificationCode code);
enum MHD_Result conn_admit(void *cls, const struct sockaddr *address, socklen_t n);
struct conn *conn_of(struct MHD_Connection *mhd);
void conn_set_state(struct conn *c, enum conn_state state);
void conn_suspend(struct conn *c);
void conn_resume(struct conn *c); /* nothing if it is not suspended */
void conn_kill(struct conn *c); /* as if the client had gone */
void conn_watch_ready(uv_poll_t *poll, int status, int events);
void conn_expire(struct http_server *srv, uint64_t now_ms);
void conn_untime(struct conn *c); /* its reply is out */
/* What waits for a request hears no more, and ends. */
void conn_end_idle(struct http_server *srv);
void conn_give_up(struct http_server *srv);

/* ---- admit.c ---- */
/* The first look at a request; 0, or -1 with q->refusal and q->why. */
size_t request_head_size(const struct http_request *q);
int gate_check(struct http_request *q, const char *url, const char *method, const char *version);

/* ---- request.c ---- */
void *request_begin(void *cls, const char *uri, struct MHD_Connection *mhd);
enum MHD_Result request_handle(void *cls, struct MHD_Connection *mhd, const char *url,
			       const char *method, const char *version, const char *upload,
			       size_t *upload_n, void **context);
void request_done(void *cls, struct MHD_Connection *mhd, void **context,
		  enum MHD_RequestTerminationCode code);
void request_end(struct http_request *q); /* its reply is chosen */

/* ---- reply.c ---- */
int reply_headers(struct http_request *q, struct MHD_Response *r, const struct http_reply *reply);
/* Queues the reply and ends the request; takes r. */
void reply_late(struct http_request *q); /* the body has ended */
void reply_queue(struct http_request *q, unsigned status, struct MHD_Response *r);
void reply_refusal(struct http_request *q);

/* ---- stream.c, ws.c ---- */
void stream_lost(struct conn *c, const struct err *why); /* the owner hears of it */
void stream_tell(struct http_server *srv);
void ws_lost(struct http_ws *ws, unsigned code, const struct err *why);
void ws_tick(struct http_server *srv, uint64_t now_ms);
