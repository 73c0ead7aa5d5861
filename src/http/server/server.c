/*
 * The daemons on the loop. Each daemon has one epoll descriptor for all its connections. The loop
 * polls that descriptor and calls MHD_run(). A daemon can't see that a connection was resumed, or
 * that bytes wait in its own buffers. Then server_kick() makes it run in the next turn, from an
 * idle handle, so never from inside a call of server.h and never within itself.
 *
 * While there are connections, a tick every second ends those past their deadline.
 */
#include "base/library.h"
#include "http/server/internal.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TICK_MS = 1000, MEMORY_MIN = 8192 };

static const struct http_limits defaults = {
	.connections = 1024,
	.headers = 100,
	.header_bytes = 8 << 10,
	.body = 4 << 20,
	.bodies = 256 << 20,
	.stream_queue = 1 << 20,
	.header_ms = 10000,
	.body_ms = 60000,
	.idle_ms = 75000,
};

/* The rate of wrong tokens: enough for a client that tries a few, too few to guess one. */
enum { FAILURES_A_SECOND = 10, FAILURES_AT_ONCE = 50 };

#define DEFAULT(field)                                                                             \
	do {                                                                                       \
		if (l->field == 0)                                                                 \
			l->field = defaults.field;                                                 \
	} while (0)

static void fill_limits(struct http_limits *l)
{
	DEFAULT(connections);
	DEFAULT(headers);
	DEFAULT(header_bytes);
	DEFAULT(body);
	DEFAULT(bodies);
	DEFAULT(stream_queue);
	DEFAULT(header_ms);
	DEFAULT(body_ms);
	DEFAULT(idle_ms);
	if (l->streams == 0)
		l->streams = l->connections - (l->connections + 7) / 8;
	if (l->burst == 0)
		l->burst = l->rate > UINT32_MAX / 2 ? UINT32_MAX : 2 * l->rate;
	if (l->header_bytes < MEMORY_MIN)
		l->header_bytes = MEMORY_MIN;
	if (l->header_bytes > 64 << 10)
		l->header_bytes = 64 << 10;
}

/* ---- the daemons --------------------------------------------------------------------------- */

static void on_again(uv_idle_t *idle);

void server_again(struct http_server *srv)
{
	if (!srv->stopped)
		uv_idle_start(&srv->again, on_again);
}

void server_kick_often(struct http_server *srv, struct listener *l, unsigned times)
{
	if (l->kicked < times)
		l->kicked = times;
	server_again(srv);
}

void server_kick(struct http_server *srv, struct listener *l)
{
	server_kick_often(srv, l, 1);
}

static void server_run(struct listener *l)
{
	MHD_UNSIGNED_LONG_LONG wait_ms;
	bool again;

	l->kicked -= l->kicked > 0;
	l->turns++;
	MHD_run(l->daemon);
	again = MHD_get_timeout(l->daemon, &wait_ms) == MHD_YES && wait_ms == 0;
	l->restless = again ? l->restless + 1 : 0;
	if (l->restless == STUCK_TURNS) {
		conn_end_stuck(l);
		l->restless = 0;
	}
	if (l->kicked > 0 || again)
		server_kick(l->srv, l);
}

static void server_settle(struct http_server *srv);

static void on_daemon(uv_poll_t *poll, int status, int events)
{
	struct listener *l = poll->data;

	server_run(l);
	server_settle(l->srv);
}

static void on_again(uv_idle_t *idle)
{
	struct http_server *srv = idle->data;

	uv_idle_stop(idle);
	stream_tell(srv);
	for (size_t i = 0; i < srv->n_listeners; i++) {
		if (srv->listeners[i]->kicked > 0)
			server_run(srv->listeners[i]);
	}
	server_settle(srv);
}

static void on_tick(uv_timer_t *tick)
{
	struct http_server *srv = tick->data;
	uint64_t now_ms = server_now_ms(srv);

	conn_expire(srv, now_ms);
	ws_tick(srv, now_ms);
	linger_expire(srv, now_ms);
	if (srv->closing && !srv->given_up && now_ms >= srv->close_ms) {
		srv->given_up = true;
		conn_give_up(srv);
	}
	if (srv->conns.next == &srv->conns && !srv->lingers && !srv->closing)
		uv_timer_stop(tick);
	/* A daemon finds stalled readers only when it runs. */
	for (size_t i = 0; i < srv->n_listeners; i++)
		server_kick(srv, srv->listeners[i]);
}

void server_tick(struct http_server *srv)
{
	if (!uv_is_active((uv_handle_t *)&srv->tick))
		uv_timer_start(&srv->tick, on_tick, TICK_MS, TICK_MS);
}

__attribute__((format(printf, 2, 0))) static void on_log(void *cls, const char *format, va_list ap)
{
	char line[256];

	if (!log_on(LOG_DEBUG))
		return;
	vsnprintf(line, sizeof(line), format, ap);
	log_debug("http: %s", line);
}

/* Keeps escapes: they are decoded, strictly, when a value is read. */
static size_t keep_escapes(void *cls, struct MHD_Connection *mhd, char *text)
{
	return strlen(text);
}

#define FUNCTION(f) ((intptr_t)(f))

static struct MHD_Daemon *server_start(struct listener *l, int fd, const struct http_tls *tls)
{
	const struct http_limits *m = &l->srv->o.limits;
	unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_ALLOW_UPGRADE |
			 MHD_USE_ERROR_LOG | (tls ? MHD_USE_TLS : 0);
	struct MHD_OptionItem options[] = {
		{ MHD_OPTION_LISTEN_SOCKET, fd, NULL },
		/* Room for the head, as much for the daemon's copy of its cookies, and half as much
		 * for its records and for the head of the reply. Each connection has all of it,
		 * even if idle. */
		{ MHD_OPTION_CONNECTION_MEMORY_LIMIT, (intptr_t)(m->header_bytes * 5 / 2), NULL },
		{ MHD_OPTION_CONNECTION_LIMIT, m->connections + 64,
		  NULL }, /* conn_admit() counts instead */
		{ MHD_OPTION_PER_IP_CONNECTION_LIMIT, l->path[0] ? 0 : m->connections_by_address,
		  NULL },
#if PARSES_IN_PLACE
		/* admit.c is stricter, and gives the reason */
		{ MHD_OPTION_STRICT_FOR_CLIENT, 0, NULL },
#else
		{ MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1, NULL },
#endif
		{ MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, NULL },
		{ MHD_OPTION_UNESCAPE_CALLBACK, FUNCTION(keep_escapes), NULL },
		{ MHD_OPTION_URI_LOG_CALLBACK, FUNCTION(request_begin), l },
		{ MHD_OPTION_NOTIFY_COMPLETED, FUNCTION(request_done), l },
		{ MHD_OPTION_NOTIFY_CONNECTION, FUNCTION(conn_notify), l },
		{ tls ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END, 0,
		  tls ? (void *)tls->certificate : NULL },
		{ MHD_OPTION_HTTPS_MEM_KEY, 0, tls ? (void *)tls->key : NULL },
		{ MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)server_tls_priorities },
		{ MHD_OPTION_END, 0, NULL },
	};

	return MHD_start_daemon(flags, 0, conn_admit, l, request_handle, l,
				MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL, MHD_OPTION_ARRAY, options,
				MHD_OPTION_END);
}

int server_add(struct http_server *srv, int *fd, struct listener *l, const struct http_tls *tls,
	       struct err *e)
{
	AUTO(server_tls_unref) struct server_tls *own = NULL;
	const union MHD_DaemonInfo *info;

	if (srv->closing)
		return err_set(e, ERR_CANCELLED, "the server is closing");
	if (srv->n_listeners == LISTENERS_MAX)
		return err_set(e, ERR_LIMIT, "at most %d addresses", LISTENERS_MAX);
	if (library_load("microhttpd", e) < 0 || library_load("wslay", e) < 0)
		return -1;
	if (tls && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
		return err_set(e, ERR_UNSUPPORTED, "this libmicrohttpd has no TLS");
	l->srv = srv;
	l->quiesced = -1;
	own = tls ? server_tls_new(tls, e) : NULL;
	if (tls && !own)
		return -1;
	l->daemon = server_start(l, *fd, tls);
	if (!l->daemon)
		return err_set(e, ERR_IO, "the HTTP daemon does not start");
	take_fd(fd);
	l->poll.data = l;
	info = MHD_get_daemon_info(l->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	if (uv_poll_init(srv->loop, &l->poll, info ? info->epoll_fd : -1) < 0) {
		MHD_stop_daemon(l->daemon);
		return err_set(e, ERR_IO, "the loop can't watch the HTTP daemon");
	}
	uv_poll_start(&l->poll, UV_READABLE, on_daemon);
	l->tls = take_ptr(own);
	srv->listeners[srv->n_listeners++] = l;
	srv->handles++;
	server_kick(srv, l); /* it starts to listen when it first runs */
	return 0;
}

int http_server_renew(struct http_server *srv, const struct http_tls *tls, struct err *e)
{
	AUTO(server_tls_unref) struct server_tls *own = server_tls_new(tls, e);

	if (!own)
		return -1;
	for (size_t i = 0; i < srv->n_listeners; i++) {
		struct listener *l = srv->listeners[i];

		if (!l->tls)
			continue;
		server_tls_unref(l->tls);
		l->tls = server_tls_ref(own);
	}
	return 0;
}

/* ---- the beginning ------------------------------------------------------------------------- */

static const struct http_authority loopback[] = {
	{ STR_LIT("localhost"), -1 },
	{ STR_LIT("127.0.0.1"), -1 },
	{ STR_LIT("[::1]"), -1 },
};

static int fill_hosts(struct http_server *srv, struct err *e)
{
	const struct http_options *o = &srv->o;

	if (o->n_hosts > HOSTS_MAX - LISTENERS_MAX - ARRAY_LEN(loopback) - 1)
		return err_set(e, ERR_LIMIT, "too many allowed hosts");
	memcpy(srv->hosts, loopback, sizeof(loopback));
	srv->n_hosts = ARRAY_LEN(loopback);
	for (size_t i = 0; i < o->n_hosts; i++) {
		struct http_authority *a = &srv->hosts[srv->n_hosts++];
		bool below = strncmp(o->hosts[i], "*.", 2) == 0;

		if (!http_authority_parse(str_of(o->hosts[i] + (below ? 2 : 0)), a))
			return err_set(e, ERR_INVALID, "'%.80s' is no host name", o->hosts[i]);
		a->below = below;
	}
	return 0;
}

/* scheme://authority in lower case, as browsers send it. */
static int parse_origin(const char *origin, struct http_authority *ret, struct err *e)
{
	const char *authority = strstr(origin, "://");

	if (!authority || authority == origin || strpbrk(origin, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") ||
	    !http_authority_parse(str_of(authority + 3), ret))
		return err_set(e, ERR_INVALID, "'%.80s' is no origin, such as https://app.example",
			       origin);
	return 0;
}

static int check_origins(struct http_server *srv, struct err *e)
{
	static const struct str tls = STR_LIT("https://");
	const struct http_options *o = &srv->o;
	struct http_authority a;

	for (size_t i = 0; i < o->n_origins; i++) {
		if (parse_origin(o->origins[i], &a, e) < 0)
			return -1;
	}
	if (!o->public_url)
		return 0;
	if (parse_origin(o->public_url, &srv->hosts[srv->n_hosts++], e) < 0)
		return -1;
	if (str_starts(str_of(o->public_url), tls.p))
		srv->public_tls = str_of(o->public_url + tls.n);
	return 0;
}

void server_handle_closed(struct http_server *srv)
{
	void (*on_closed)(void *) = srv->on_closed;
	void *arg = srv->on_closed_arg;

	if (--srv->handles > 0)
		return;
	close_fd(&srv->watch);
	rate_free(srv->rates);
	rate_free(srv->failures);
	buf_fini(&srv->body);
	free(srv);
	if (on_closed)
		on_closed(arg);
}

static void on_handle_closed(uv_handle_t *handle)
{
	server_handle_closed(handle->data);
}

static int server_prepare(struct http_server *srv, struct err *e)
{
	struct http_limits *l = &srv->o.limits;

	fill_limits(l);
	srv->failures = rate_new(FAILURES_A_SECOND, FAILURES_AT_ONCE);
	if (l->rate > 0)
		srv->rates = rate_new(l->rate, l->burst);
	if (!srv->failures || (l->rate > 0 && !srv->rates))
		return err_set(e, ERR_LIMIT, "out of memory");
	if (fill_hosts(srv, e) < 0 || check_origins(srv, e) < 0)
		return -1;
	srv->watch = epoll_create1(EPOLL_CLOEXEC);
	if (srv->watch < 0)
		return err_sys(e, errno, "epoll");
	if (uv_poll_init(srv->loop, &srv->watch_poll, srv->watch) < 0)
		return err_set(e, ERR_IO, "the loop takes no descriptor");
	uv_timer_init(srv->loop, &srv->tick);
	uv_idle_init(srv->loop, &srv->again);
	srv->handles = 3;
	srv->watch_poll.data = srv->tick.data = srv->again.data = srv;
	uv_poll_start(&srv->watch_poll, UV_READABLE, conn_watch_ready);
	return 0;
}

struct http_server *http_server_new(uv_loop_t *loop, const struct http_options *options,
				    struct err *e)
{
	struct http_server *srv = calloc(1, sizeof(*srv));

	if (!srv)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	srv->loop = loop;
	srv->o = *options;
	srv->watch = -1;
	srv->conns.next = srv->conns.prev = &srv->conns;
	if (server_prepare(srv, e) == 0)
		return srv;
	close_fd(&srv->watch);
	rate_free(srv->rates);
	rate_free(srv->failures);
	buf_fini(&srv->body);
	free(srv);
	return NULL;
}

void http_server_stats(const struct http_server *srv, struct http_stats *ret)
{
	*ret = srv->stats;
}

/* ---- the end ------------------------------------------------------------------------------- */

/* The descriptor stays open until the daemon has stopped, since its epoll may still contain it. */
static void stop_listening(struct listener *l)
{
	struct stat st;

	l->quiesced = MHD_quiesce_daemon(l->daemon);
	if (l->quiesced >= 0 && !l->given)
		shutdown(l->quiesced, SHUT_RDWR);
	if (l->path[0] && !l->given && lstat(l->path, &st) == 0 && st.st_ino == l->inode)
		unlink(l->path);
}

static void on_listener_closed(uv_handle_t *handle)
{
	struct listener *l = handle->data;

	handle->data = l->srv;
	MHD_stop_daemon(l->daemon);
	close_fd(&l->quiesced);
	server_tls_unref(l->tls);
	on_handle_closed(handle);
	free(l);
}

/* Continues when the last connection has ended. */
static void server_settle(struct http_server *srv)
{
	if (!srv->closing || srv->stopped || srv->conns.next != &srv->conns)
		return;
	linger_expire(srv, UINT64_MAX);
	for (size_t i = 0; i < srv->n_listeners; i++)
		uv_close((uv_handle_t *)&srv->listeners[i]->poll, on_listener_closed);
	srv->n_listeners = 0;
	srv->stopped = true;
	uv_close((uv_handle_t *)&srv->tick, on_handle_closed);
	uv_close((uv_handle_t *)&srv->again, on_handle_closed);
	uv_close((uv_handle_t *)&srv->watch_poll, on_handle_closed);
}

void http_server_close(struct http_server *srv, unsigned grace_ms, void (*on_closed)(void *arg),
		       void *arg)
{
	uint64_t until_ms = server_now_ms(srv) + grace_ms;

	srv->on_closed = on_closed;
	srv->on_closed_arg = arg;
	if (!srv->closing || until_ms < srv->close_ms)
		srv->close_ms = until_ms;
	if (!srv->closing) {
		srv->closing = true;
		for (size_t i = 0; i < srv->n_listeners; i++)
			stop_listening(srv->listeners[i]);
		conn_end_idle(srv);
	}
	uv_timer_start(&srv->tick, on_tick, grace_ms < TICK_MS ? grace_ms : TICK_MS, TICK_MS);
	server_again(srv);
}
