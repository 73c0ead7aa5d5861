/*
 * Connections. Whenever the client has to act, its connection has a deadline: for a request's head
 * from the first byte on, for its body, and for the next request. The daemon's own timeout, which
 * every byte restarts, only ends readers that take nothing. It costs something at every step, so it
 * is set only for replies that are still being sent at a tick.
 *
 * A connection is ended by shutting down its socket: the daemon then finds it closed, whatever
 * state it is in. While a route has the request, the connection is suspended, and an epoll
 * descriptor of ours watches for the client's end.
 */
#include "http/server/internal.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WATCHED_AT_ONCE = 64, LAST_WORD_MS = 1000, FULL_SAID_MS = 10000, UNIX_KEPT = 32 };
enum { STRIKES = 8, SILENT_MS = 30000 };

/* A principal has less than so many times the number of connections that are free. */
enum { SHARE = 7 };

struct conn *conn_of(struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

/* ---- they come and go ---------------------------------------------------------------------- */

static void name_peer(struct conn *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	const struct sockaddr *a = info ? info->client_addr : NULL;
	const struct sockaddr_in *in = (const void *)a;
	const struct sockaddr_in6 *in6 = (const void *)a;
	char text[INET6_ADDRSTRLEN] = "";

	if (a && a->sa_family == AF_INET && inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text)))
		snprintf(c->peer, sizeof(c->peer), "%s:%u", text, ntohs(in->sin_port));
	else if (a && a->sa_family == AF_INET6 &&
		 inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof(text)))
		snprintf(c->peer, sizeof(c->peer), "[%s]:%u", text, ntohs(in6->sin6_port));
	else
		snprintf(c->peer, sizeof(c->peer), "unix");
}

/* Over a Unix socket, of which there are some whose mode lets other users connect, by a process of
 * this one's user or of root. */
static bool is_local(int fd)
{
	struct sockaddr_storage a;
	socklen_t n = sizeof(a), n_cred = sizeof(struct ucred);
	struct ucred cred;

	return getsockname(fd, (struct sockaddr *)&a, &n) == 0 && a.ss_family == AF_UNIX &&
	       getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n_cred) == 0 &&
	       (cred.uid == geteuid() || cred.uid == 0);
}

static bool is_unix(const struct listener *l)
{
	return l->path[0] != '\0';
}

static void conn_begin(struct listener *l, struct MHD_Connection *mhd, void **socket_context)
{
	struct http_server *srv = l->srv;
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
	int fd = info ? info->connect_fd : -1; /* *info is valid until the next call */
	struct conn *c = info ? calloc(1, sizeof(*c)) : NULL;

	*socket_context = c;
	if (c) {
		c->mhd = mhd;
		c->fd = fd;
	}
	if (!c || (l->tls && !server_tls_use(l->tls, c))) { /* nothing else would end it */
		shutdown(fd, SHUT_RDWR);
		free(take_ptr(*socket_context));
		return;
	}
	c->tls = l->tls ? server_tls_ref(l->tls) : NULL;
	c->srv = srv;
	c->listener = l;
	name_peer(c);
	c->local = is_local(c->fd);
	c->prev = srv->conns.prev;
	c->next = &srv->conns;
	c->prev->next = c->next->prev = c;
	conn_moved(c);
	c->since_ms = server_now_ms(c->srv);
	c->deadline_ms = c->since_ms + srv->o.limits.header_ms;
	server_tick(srv);
	srv->tcp += !is_unix(l);
	srv->stats.connections++;
	srv->stats.connections_total++;
}

static void unwatch(struct conn *c)
{
	if (c->watched)
		epoll_ctl(c->srv->watch, EPOLL_CTL_DEL, c->fd, NULL);
	c->watched = false;
}

static void end(struct conn *c)
{
	unwatch(c);
	if (c->lingers)
		linger_start(c);
	c->prev->next = c->next;
	c->next->prev = c->prev;
	c->srv->tcp -= !is_unix(c->listener);
	c->srv->stats.connections--;
	if (c->srv->closing)
		server_again(c->srv);
	server_tls_unref(c->tls);
	free(c);
}

void conn_notify(void *cls, struct MHD_Connection *mhd, void **socket_context,
		 enum MHD_ConnectionNotificationCode code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		conn_begin(cls, mhd, socket_context);
	else if (*socket_context)
		end(take_ptr(*socket_context));
}

/* A client needs no token to connect again and again, so this is not logged each time. */
static void say_full(struct http_server *srv, bool refused)
{
	uint64_t now = server_now_ms(srv);

	if (srv->full_logged_ms && now - srv->full_logged_ms < FULL_SAID_MS) {
		srv->full_unsaid++;
		return;
	}
	log_warn("%u connections are open; %s (%u times since this was last said)",
		 srv->stats.connections,
		 refused ? "one more is refused" : "the one that has waited longest is closed",
		 srv->full_unsaid + 1);
	srv->full_unsaid = 0;
	srv->full_logged_ms = now;
}

/* Places that are kept for Unix sockets: whoever floods the others, the operator gets in. */
static unsigned kept_places(const struct http_server *srv)
{
	unsigned share = srv->o.limits.connections / 8;
	bool unix_too = false;

	for (size_t i = 0; i < srv->n_listeners; i++)
		unix_too |= is_unix(srv->listeners[i]);
	return !unix_too ? 0 : share < UNIX_KEPT ? share : UNIX_KEPT;
}

/* It is idle, or no route has its request, which was refused or has no principal: a body that is
 * dropped, one for an open route, or a reply that nobody reads. */
static bool may_go(const struct conn *c)
{
	const struct http_request *q = &c->q;

	if (c->let_go)
		return false;
	return c->state == CONN_IDLE || ((c->state == CONN_BODY || c->state == CONN_REPLYING) &&
					 (!q->principal || q->refusal) && !q->counted);
}

/* A full server closes such a connection, the one that has waited longest. */
enum MHD_Result conn_admit(void *cls, const struct sockaddr *address, socklen_t n)
{
	const struct listener *l = cls;
	struct http_server *srv = l->srv;
	unsigned max = srv->o.limits.connections;
	bool among_tcp = !is_unix(l) && srv->tcp >= max - kept_places(srv);
	struct conn *oldest = NULL;

	if (srv->closing)
		return MHD_NO;
	if (srv->stats.connections < max && !among_tcp)
		return MHD_YES;
	for (struct conn *c = srv->conns.next; c != &srv->conns; c = c->next) {
		if (may_go(c) && !(among_tcp && is_unix(c->listener)) &&
		    (!oldest || c->since_ms < oldest->since_ms))
			oldest = c;
	}
	say_full(srv, !oldest);
	if (!oldest)
		return MHD_NO;
	conn_kill(oldest);
	oldest->let_go = true;
	return MHD_YES;
}

/* ---- shares of principals ------------------------------------------------------------------- */

/* A connection that may go counts as free. */
bool conn_has_share(const struct conn *c)
{
	const struct http_server *srv = c->srv;
	unsigned room = srv->o.limits.connections - (is_unix(c->listener) ? 0 : kept_places(srv));
	unsigned busy = 0, own = 0;

	if (srv->stats.connections <= room / (SHARE + 1) * SHARE)
		return true;
	for (const struct conn *o = srv->conns.next; o != &srv->conns; o = o->next) {
		if (o == c || o->let_go || may_go(o))
			continue;
		busy++;
		own += o->q.payer == c->q.payer;
	}
	return own == 0 || (busy < room && own < SHARE * (room - busy));
}

int conn_may_stream(const struct conn *c, struct err *e)
{
	const struct http_server *srv = c->srv;
	unsigned all = srv->stats.streams + srv->stats.websockets, own = 0;

	if (all >= srv->o.limits.streams)
		return err_set(e, ERR_LIMIT, "%u streams are open", all);
	for (const struct conn *o = srv->conns.next; o != &srv->conns; o = o->next)
		own += (o->stream || o->ws) && o->q.payer == c->q.payer;
	if (own >= SHARE * (srv->o.limits.streams - all))
		return err_set(e, ERR_LIMIT,
			       "%u streams of this client are open; others have the rest", own);
	return 0;
}

/* ---- states and deadlines ------------------------------------------------------------------ */

void conn_set_state(struct conn *c, enum conn_state state)
{
	const struct http_limits *l = &c->srv->o.limits;

	c->state = state;
	c->end_shown = false;
	conn_moved(c);
	c->since_ms = server_now_ms(c->srv);
	c->deadline_ms = 0;
	if (state == CONN_IDLE)
		c->deadline_ms = c->since_ms + l->idle_ms;
	else if (state == CONN_BODY)
		c->deadline_ms = c->since_ms + l->body_ms;
	else if (state == CONN_REPLYING && c->srv->given_up)
		c->deadline_ms = c->since_ms + LAST_WORD_MS;
}

void conn_kill(struct conn *c)
{
	if (c->state != CONN_UPGRADED)
		shutdown(c->fd, SHUT_RDWR);
	if (c->state == CONN_BODY && c->q.body_events) {
		c->q.drops = true; /* the daemon finds the end after the bytes that were received */
		conn_resume(c);
	}
}

/* idle_ms 0: no timeout. */
static void set_timeout(struct conn *c, unsigned idle_ms)
{
	unsigned seconds = idle_ms ? idle_ms / 1000 + 1 : 0;

	c->timed = MHD_set_connection_option(c->mhd, MHD_CONNECTION_OPTION_TIMEOUT, seconds) ==
			   MHD_YES &&
		   seconds > 0;
}

void conn_untime(struct conn *c)
{
	if (c->timed)
		set_timeout(c, 0);
}

/* The daemon takes a short read for all there is, and misses an end of file that came with it.
 * Shutting down that side again wakes it. Where its buffer is full that does not help either, and
 * the request, which is not whole, can't become so. */
static void show_end(struct conn *c)
{
	char byte;

	if (recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0)
		return;
	if (c->end_shown)
		conn_kill(c);
	else
		shutdown(c->fd, SHUT_RD);
	c->end_shown = true;
}

void conn_expire(struct http_server *srv, uint64_t now_ms)
{
	for (struct conn *c = srv->conns.next; c != &srv->conns; c = c->next) {
		if ((c->state == CONN_BODY || c->state == CONN_IDLE) && !c->suspended)
			show_end(c);
		if (!c->timed && !c->suspended &&
		    (c->state == CONN_REPLYING || c->state == CONN_STREAMING))
			set_timeout(c, srv->o.limits.idle_ms);
		if (c->deadline_ms == 0 || now_ms < c->deadline_ms)
			continue;
		if (c->state != CONN_IDLE || c->q.conn)
			srv->stats.slow++;
		c->deadline_ms = 0;
		conn_kill(c);
		if (!c->suspended && c->state != CONN_UPGRADED)
			set_timeout(c, 1);
	}
}

/* ---- connections that get nowhere ---------------------------------------------------------- */

void conn_moved(struct conn *c)
{
	c->moved = c->listener->turns;
	c->moved_ms = server_now_ms(c->srv);
	c->strikes = 0;
}

/* Whether nothing came of what it sends in many turns, in each of which it could be read. With a
 * buffer that is full to the byte there is nothing to see; a sender of chunks that is silent is
 * then taken for the cause. */
static bool is_stuck(struct conn *c)
{
	char byte;

	/* the client has sent something, or its end, that the daemon does not take */
	if (recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0)
		return ++c->strikes == STRIKES;
	c->strikes = 0;
	return c->state == CONN_BODY && c->q.head.n_encodings > 0 &&
	       server_now_ms(c->srv) - c->moved_ms >= SILENT_MS;
}

/* libmicrohttpd 0.9 reports no error where a line of a chunked body is longer than its buffer: it
 * neither reads on nor gives up. It does not say either for which connection it runs. */
void conn_end_stuck(struct listener *l)
{
	struct http_server *srv = l->srv;

	for (struct conn *c = srv->conns.next; c != &srv->conns; c = c->next) {
		if (c->listener != l || c->suspended || c->timed ||
		    (c->state != CONN_IDLE && c->state != CONN_BODY) ||
		    l->turns - c->moved < STUCK_TURNS || !is_stuck(c))
			continue;
		log_info("%s: ended, since nothing comes of what it sends", c->peer);
		srv->stats.stuck++;
		conn_kill(c);
		set_timeout(c, 1); /* a daemon that waits for room does not look at the socket */
	}
}

/* Requests that were received already are still read and answered. */
void conn_end_idle(struct http_server *srv)
{
	for (struct conn *c = srv->conns.next; c != &srv->conns; c = c->next) {
		if (c->state == CONN_IDLE)
			shutdown(c->fd, SHUT_RD);
	}
}

/* ---- while a route has the request --------------------------------------------------------- */

void conn_suspend(struct conn *c)
{
	struct epoll_event event = { .events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = c };

	if (c->suspended)
		return;
	c->suspended = true;
	MHD_suspend_connection(c->mhd);
	c->watched = epoll_ctl(c->srv->watch, EPOLL_CTL_ADD, c->fd, &event) == 0;
}

void conn_resume(struct conn *c)
{
	if (!c->suspended)
		return;
	c->suspended = false;
	unwatch(c);
	MHD_resume_connection(c->mhd);
	server_kick(c->srv, c->listener);
}

static void gone(struct conn *c, enum err_code code, const char *why)
{
	struct http_request *q = &c->q;
	void (*on_gone)(void *) = take_ptr(q->on_gone);
	struct err e;

	if (c->state == CONN_STREAMING) {
		err_set(&e, code, "%s", why);
		stream_lost(c, &e);
	} else if (c->state == CONN_ROUTED) {
		q->gone = true;
		if (on_gone)
			on_gone(q->on_gone_data);
	}
}

void conn_watch_ready(uv_poll_t *poll, int status, int events)
{
	struct http_server *srv = poll->data;
	struct epoll_event ready[WATCHED_AT_ONCE];
	int n = epoll_wait(srv->watch, ready, WATCHED_AT_ONCE, 0);

	for (int i = 0; i < n; i++) {
		struct conn *c = ready[i].data.ptr;

		/* A callback of an earlier one may have resumed this one. No connection is freed
		 * before a daemon runs. */
		if (!c->watched)
			continue;
		/* A client that is held has at least shut down its sending side, maybe after the
		 * whole body, so the received bytes may still be used. */
		if (c->state != CONN_BODY)
			gone(c, ERR_TRANSPORT, "the client went away");
		else if (ready[i].events & (EPOLLHUP | EPOLLERR))
			conn_kill(c);
		else
			c->deadline_ms = server_now_ms(srv) + srv->o.limits.body_ms;
	}
}

void http_server_end_of(struct http_server *srv, const void *principal)
{
	static const char why[] = "its key was revoked or has expired";
	struct err e;

	err_set(&e, ERR_CANCELLED, why);
	for (struct conn *c = srv->conns.next; c != &srv->conns; c = c->next) {
		if (c->q.principal != principal)
			continue;
		if (c->state == CONN_UPGRADED && c->ws)
			ws_lost(c->ws, 1008, &e);
		else if (c->state == CONN_STREAMING || c->state == CONN_ROUTED)
			gone(c, ERR_CANCELLED, why);
		else if (c->state == CONN_BODY)
			conn_kill(c);
	}
}

void conn_give_up(struct http_server *srv)
{
	struct err e;

	err_set(&e, ERR_CANCELLED, "the server ends");
	for (struct conn *c = srv->conns.next; c != &srv->conns; c = c->next) {
		if (c->state == CONN_UPGRADED && c->ws)
			ws_lost(c->ws, 1001, &e);
		else if (c->state == CONN_STREAMING || c->state == CONN_ROUTED)
			gone(c, ERR_CANCELLED, "the server ends");
		else
			conn_kill(c);
		/* The daemon notices the end only when the client has taken the bytes sent before,
		 * if ever. */
		if (c->state == CONN_STREAMING)
			c->deadline_ms = server_now_ms(srv) + LAST_WORD_MS;
	}
}
