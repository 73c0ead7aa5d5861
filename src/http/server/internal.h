#pragma once
/*
 * Shared by the files of the server. A server has a list of connections and some listeners, each a
 * libmicrohttpd daemon of its own whose epoll descriptor the loop polls:
 *
 *	server.c	the daemons on the loop, the tick, the end
 *	listen.c	sockets
 *	conn.c		a connection: deadlines, and who went away while it waited
 *	linger.c	its end, where the client still sends
 *	admit.c		the checks before a route, in the order of server.h
 *	request.c	bodies, what a route may ask, how the daemon's calls become one
 *	reply.c		replies, errors
 *	stream.c ws.c	what follows a reply's head
 *	rate.c		pure
 *
 * A connection has one request at a time. From the call of its route to the reply it is suspended:
 * the daemon neither reads nor watches it, so pipelined requests wait and the request stays valid.
 * conn.c watches for the client's end instead.
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
	BODY_KEPT = 4 << 10, /* the memory of a larger body is freed after its request */
};

/* See admit.c. Later versions have an option for strictness instead. */
#define PARSES_IN_PLACE (MHD_VERSION < 0x00097701)

enum conn_state {
	CONN_IDLE, /* between requests, and while a head is received */
	CONN_BODY, /* the head was received */
	CONN_ROUTED, /* the route has the request */
	CONN_REPLYING, /* the reply is being sent */
	CONN_STREAMING,
	CONN_UPGRADED, /* a WebSocket has the descriptor */
};

/* The value is trimmed. */
struct http_field {
	struct str name, value;
};

/* The fields of one request that the checks need, and their counts. */
struct request_head {
	struct str host, origin, authorization, type, upgrade;
	unsigned n_hosts, n_origins, n_authorizations, n_types, n_lengths, n_encodings, n_fields;
	unsigned long long length;
	bool bad_field, bad_length, bad_encoding, expects;
	const char *at; /* where the next field must begin, or NULL: see admit.c */
	bool cross; /* from an allowed origin */
};

struct http_request {
	struct conn *conn;
	enum http_method method;
	struct str target; /* as it was sent; later only its address and length are valid */
	bool bad_target; /* it had spaces or control characters */
	struct str path, rest;
	const struct http_route *route;
	const struct http_routes *table; /* of the route */
	const void *principal, *payer;
	struct request_head head;
	struct buf body;
	bool replies; /* the memory of `body` holds the reply until it is sent */
	struct arena *arena; /* for decoded queries; NULL until used */
	bool seen; /* the daemon has delivered the head */
	bool running; /* run() is on the stack */
	bool ended; /* it has its reply */
	bool wants_body; /* the body is stored; else dropped */
	bool unread; /* the body is not received */
	bool counted; /* in the server's count of requests */
	/* for a route that streams: */
	const struct http_body_events *body_events; /* until the end of the body, or the reply */
	void *body_owner;
	struct MHD_Response *late; /* the reply, which waits for the end of the body */
	unsigned late_status;
	bool drops; /* the rest of the body is dropped */
	bool must_close; /* the start of the next request is uncertain */
	int refusal; /* HTTP status of the refusal; 0: none yet */
	struct err why;
	unsigned retry_after;
	unsigned long long received;
	void (*on_gone)(void *data);
	void *on_gone_data;
	bool gone;
	const char *mark; /* name of a header of its own; NULL: none */
	char mark_value[64];
};

struct conn {
	struct http_server *srv;
	struct listener *listener;
	struct MHD_Connection *mhd;
	struct conn *next, *prev;
	enum conn_state state;
	int fd;
	bool local; /* over a Unix socket, of this process's user or of root */
	bool suspended;
	bool watched; /* the client's end is watched for */
	bool timed; /* the daemon's timeout is set */
	bool let_go; /* it was killed to make room, and is not chosen again */
	bool lingers; /* it was answered before the client had sent everything */
	uint64_t since_ms; /* when its state was last set */
	uint64_t deadline_ms; /* 0: none */
	/* The listener's turn, and when, in which something last came of what the client sends, and
	 * in how many looks in a row since then it was not read. */
	uint64_t moved, moved_ms;
	unsigned strikes;
	bool end_shown; /* the client's end was shown to the daemon at a tick */
	struct http_request q;
	struct http_field fields[FIELDS_KEPT]; /* the first of q.head.n_fields */
	struct http_stream *stream;
	struct http_ws *ws;
	struct server_tls *tls; /* that its session uses, referred to; NULL: it speaks plain HTTP */
	bool tls_reads, tls_more; /* the WebSocket, not the daemon, reads; more to write follows */
	char peer[64];
};

struct listener {
	struct http_server *srv;
	struct MHD_Daemon *daemon;
	uv_poll_t poll;
	struct server_tls *tls; /* of new connections; NULL: plain HTTP */
	unsigned kicked; /* how often its daemon has to run in the next turns */
	uint64_t turns; /* how often its daemon has run */
	unsigned restless; /* how often in a row the daemon then wanted to run again at once */
	bool given; /* others have the socket, too */
	int port; /* 0: a Unix socket */
	int quiesced; /* the listening descriptor after it stopped listening; else -1 */
	char path[108];
	unsigned long long inode; /* of the socket at path */
};

struct http_server {
	uv_loop_t *loop;
	struct http_options o; /* with defaults filled in */
	struct http_authority hosts[HOSTS_MAX]; /* those that are allowed */
	size_t n_hosts;
	struct str public_tls; /* authority of a public URL of https; STR_NONE: there is none */
	struct buf body; /* memory of a past request's body, for the next one */
	char host[HOST_KEPT]; /* the Host that was last found among them */
	size_t host_n;
	char bound[LISTENERS_MAX][64]; /* addresses that are listened on; also in hosts */
	struct listener *listeners[LISTENERS_MAX];
	size_t n_listeners;
	struct conn conns; /* ring */
	unsigned tcp; /* of them */
	struct http_stats stats;
	uint64_t full_logged_ms; /* when the last warning that it is full was logged; 0: never */
	unsigned full_unsaid; /* warnings left out since */
	struct rate *rates, *failures; /* by principal; by address, for wrong tokens */

	int watch; /* epoll descriptor of suspended connections */
	uv_poll_t watch_poll;
	uv_timer_t tick;
	uv_idle_t again; /* runs in the next turn, before the loop waits */
	struct http_stream *told; /* streams whose owners are to be told something */
	struct http_ws *websockets;
	unsigned handles; /* open */

	bool closing, stopped;
	uint64_t close_ms; /* what remains at that time is ended */
	bool given_up; /* that was done */
	struct lingering *lingers;
	unsigned n_lingers;
	void (*on_closed)(void *arg);
	void *on_closed_arg;
};

/* ---- server.c ---- */
/* The loop's time. It is exact enough for deadlines and rates in seconds. */
static inline uint64_t server_now_ms(const struct http_server *srv)
{
	return uv_now(srv->loop);
}
/* Makes the connection's daemon run in the next turn, or in several turns. */
void server_kick(struct http_server *srv, struct listener *l);
void server_kick_often(struct http_server *srv, struct listener *l, unsigned times);
void server_again(struct http_server *srv);
/* Starts the tick, which checks deadlines as long as there are connections. */
void server_tick(struct http_server *srv);
/* Takes a listening socket and starts a daemon on it. */
int server_add(struct http_server *srv, int *fd, struct listener *l, const struct http_tls *tls,
	       struct err *e) MUST_USE;

void server_handle_closed(struct http_server *srv); /* one of srv->handles */

/* ---- tls.c ---- */
extern const char server_tls_priorities[];
/* ERR_INVALID: what it is given can't be used. */
struct server_tls *server_tls_new(const struct http_tls *from, struct err *e) MUST_USE;
struct server_tls *server_tls_ref(struct server_tls *t);
void server_tls_unref(struct server_tls *t); /* NULL-safe */
AUTO_DEFINE(server_tls_unref, struct server_tls)
/* Before the handshake of a connection, which then refers to t; false: it must not begin. */
bool server_tls_use(struct server_tls *t, struct conn *c);
/* In an upgrade: the session is the WebSocket's from now on, until the daemon says goodbye with it
 * and frees it. Appends what was decrypted already. */
int server_tls_take(struct conn *c, struct buf *to, struct err *e) MUST_USE;
/* As recv(2) and send(2). Reading takes room for a whole record, 16 KiB. */
ssize_t server_tls_read(struct conn *c, void *to, size_t n);
/* more: the rest follows at once. After EAGAIN it must be called with the same bytes again. */
ssize_t server_tls_write(struct conn *c, const void *p, size_t n, bool more);
/* Says that nothing more is written. */
void server_tls_bye(struct conn *c);

/* ---- conn.c ---- */
void conn_notify(void *cls, struct MHD_Connection *mhd, void **socket_context,
		 enum MHD_ConnectionNotificationCode code);
enum MHD_Result conn_admit(void *cls, const struct sockaddr *address, socklen_t n);
/* Whether one more request of its principal leaves connections to others. */
bool conn_has_share(const struct conn *c);
/* Whether its request may become a stream or WebSocket; ERR_LIMIT. */
int conn_may_stream(const struct conn *c, struct err *e) MUST_USE;
struct conn *conn_of(struct MHD_Connection *mhd);
void conn_set_state(struct conn *c, enum conn_state state);
void conn_suspend(struct conn *c);
void conn_resume(struct conn *c); /* no effect if it is not suspended */
void conn_kill(struct conn *c); /* as if the client had closed it */
void conn_watch_ready(uv_poll_t *poll, int status, int events);
void conn_expire(struct http_server *srv, uint64_t now_ms);
/* Ends connections that make the daemon run again and again and get nowhere. */
enum { STUCK_TURNS = 64 };
void conn_moved(struct conn *c);
void conn_end_stuck(struct listener *l);
void conn_untime(struct conn *c); /* its reply was sent */
/* Connections that wait for a request are read no further, and end. */
void conn_end_idle(struct http_server *srv);
void conn_give_up(struct http_server *srv);

/* ---- linger.c ---- */
/* Keeps the socket of a connection that ends, and drops what still comes. */
void linger_start(const struct conn *c);
void linger_expire(struct http_server *srv, uint64_t now_ms); /* UINT64_MAX: all */

/* ---- admit.c ---- */
/* Checks a new request; 0, or -1 with q->refusal and q->why. */
size_t request_head_size(const struct http_request *q);
int gate_check(struct http_request *q, const char *url, const char *method, const char *version);

/* ---- request.c ---- */
void *request_begin(void *cls, const char *uri, struct MHD_Connection *mhd);
enum MHD_Result request_handle(void *cls, struct MHD_Connection *mhd, const char *url,
			       const char *method, const char *version, const char *upload,
			       size_t *upload_n, void **context);
void request_done(void *cls, struct MHD_Connection *mhd, void **context,
		  enum MHD_RequestTerminationCode code);
void request_end(struct http_request *q); /* its reply was chosen */
int request_say_large(size_t max, struct err *e); /* -1 */

/* ---- reply.c ---- */
int reply_headers(struct http_request *q, struct MHD_Response *r, const struct http_reply *reply);
/* Queues the reply and ends the request; takes r. */
void reply_late(struct http_request *q); /* the body has ended */
void reply_queue(struct http_request *q, unsigned status, struct MHD_Response *r);
void reply_refusal(struct http_request *q);

/* ---- stream.c, ws.c ---- */
void stream_lost(struct conn *c, const struct err *why); /* tells the owner */
void stream_tell(struct http_server *srv);
void ws_lost(struct http_ws *ws, unsigned code, const struct err *why);
void ws_tick(struct http_server *srv, uint64_t now_ms);
