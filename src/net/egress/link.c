/* The hub's socket: requests are answered in order; events never make the proxy wait. */
#include "net/egress/internal.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/sock.h"
#include "net/egress/vault.h"
#include "net/egress/ways.h"

/* Events wait a little, so that the first bytes of a connection don't wait for the hub to wake. */
enum { QUEUED_EVENTS_MAX = 2048, EVENT_MS = 5 };

struct letter {
	struct letter *next;
	size_t n;
	bool event;
	char bytes[];
};

struct link {
	uv_poll_t *poll;
	uv_timer_t *later; /* of events */
	int fd;
	bool writes;
	struct letter *first, **last; /* what the socket has not taken */
	size_t n_events;
};

/* ---- to the hub ------------------------------------------------------------------------------ */

static void on_link(uv_poll_t *poll, int status, int events);

/* False: the socket is full. */
static bool link_try(struct link *l, const void *m, size_t n)
{
	if (sock_send(l->fd, m, n, NULL, 0, MSG_DONTWAIT) >= 0)
		return true;
	if (errno != EAGAIN && errno != ENOBUFS)
		exit(0); /* the hub is gone */
	return false;
}

static void link_flush(struct link *l)
{
	while (l->first && link_try(l, l->first->bytes, l->first->n)) {
		struct letter *letter = l->first;

		l->first = letter->next;
		l->n_events -= letter->event;
		if (!letter->event)
			explicit_bzero(letter->bytes, letter->n); /* it may have tokens */
		free(letter);
	}
	if (!l->first)
		l->last = &l->first;
	if (l->writes != (l->first != NULL)) {
		l->writes = l->first != NULL;
		uv_poll_start(l->poll, UV_READABLE | (l->writes ? UV_WRITABLE : 0), on_link);
	}
}

static bool link_queue(struct link *l, const void *m, size_t n, bool event)
{
	struct letter *letter = malloc(sizeof(*letter) + n);

	if (!letter)
		return false;
	letter->next = NULL;
	letter->n = n;
	letter->event = event;
	memcpy(letter->bytes, m, n);
	*l->last = letter;
	l->last = &letter->next;
	l->n_events += event;
	return true;
}

static void on_later(uv_timer_t *timer)
{
	link_flush(timer->data);
}

void link_send(struct egress *g, const void *m, size_t n)
{
	struct link *l = g->link;

	if (!link_queue(l, m, n, false)) {
		log_error("no memory for an answer to the hub");
		exit(1); /* it waits for it: a new proxy serves it better */
	}
	link_flush(l);
}

bool link_tell(struct egress *g, const struct nw_flow *event)
{
	struct link *l = g->link;
	struct nw_flow m = *event;

	m.lost = g->lost;
	if (l->n_events >= QUEUED_EVENTS_MAX || !link_queue(l, &m, sizeof(m), true)) {
		g->lost++;
		return false;
	}
	g->lost = 0;
	if (!l->writes && !uv_is_active((uv_handle_t *)l->later))
		uv_timer_start(l->later, on_later, EVENT_MS, 0);
	return true;
}

/* ---- from the hub ---------------------------------------------------------------------------- */

/* A copy of the message's fixed part. */
static int take_head(struct str msg, void *ret, size_t n, struct err *e)
{
	if (msg.n < n)
		return err_set(e, ERR_INVALID, "a message of the hub is too short");
	memcpy(ret, msg.p, n);
	return 0;
}

static bool has_end(const char *text, size_t size)
{
	return memchr(text, 0, size) != NULL;
}

static bool rule_is_right(const struct net_rule *r)
{
	char host[NET_HOST_MAX];

	if (r->kind == NET_RULE_CIDR)
		return r->cidr.addr.family == 4 ? r->cidr.bits <= 32
						: r->cidr.addr.family == 6 && r->cidr.bits <= 128;
	return r->kind >= NET_RULE_NAME && r->kind <= NET_RULE_SERVICE && r->port &&
	       has_end(r->host, sizeof(r->host)) && has_end(r->path, sizeof(r->path)) &&
	       net_host_read(str_of(r->host), host) && strcmp(host, r->host) == 0;
}

static int on_grant(struct egress *g, struct str msg, struct err *e)
{
	static struct net_rule rules[NW_RULES_MAX];
	static struct net_http_rule http[NW_HTTP_MAX];
	struct nw_grant m;

	if (take_head(msg, &m, sizeof(m), e) < 0)
		return -1;
	if (m.n_rules > NW_RULES_MAX || m.n_http > NW_HTTP_MAX || !has_end(m.id, sizeof(m.id)) ||
	    msg.n != sizeof(m) + m.n_rules * sizeof(*rules) + m.n_http * sizeof(*http))
		return err_set(e, ERR_INVALID, "a grant is malformed");
	memcpy(rules, msg.p + sizeof(m), m.n_rules * sizeof(*rules));
	memcpy(http, msg.p + sizeof(m) + m.n_rules * sizeof(*rules), m.n_http * sizeof(*http));
	for (uint32_t i = 0; i < m.n_rules; i++) {
		if (!rule_is_right(&rules[i]))
			return err_set(e, ERR_INVALID, "rule %u of a grant is malformed", i);
	}
	for (uint32_t i = 0; i < m.n_http; i++) {
		if (http[i].rule >= m.n_rules || http[i].then >= NET_HTTP_THENS ||
		    !has_end(http[i].method, sizeof(http[i].method)) ||
		    !has_end(http[i].pattern, sizeof(http[i].pattern)))
			return err_set(e, ERR_INVALID, "HTTP rule %u is malformed", i);
	}
	return sandbox_grant(g, &m, rules, http, e);
}

static void close_all(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
}

static bool socket_is_right(const struct nw_socket *m)
{
	char host[NET_HOST_MAX];

	if (m->kind < NW_SOCKET_FLOW || m->kind > NW_SOCKET_PROXY || m->ip >> 24 != 127 ||
	    m->port == 0 || m->port > UINT16_MAX || !has_end(m->name, sizeof(m->name)))
		return false;
	return m->kind != NW_SOCKET_FLOW || strcmp(m->name, "127.0.0.1") == 0 ||
	       (net_host_read(str_of(m->name), host) && strcmp(host, m->name) == 0);
}

/* Takes the descriptors. */
static int on_sockets(struct egress *g, struct str msg, const int *fds, size_t n_fds, struct err *e)
{
	struct nw_socket sockets[NW_SOCKETS_MAX];
	struct nw_sockets m = { .n = 0 };
	struct sandbox *s;
	bool right = take_head(msg, &m, sizeof(m), e) == 0 && m.n == n_fds &&
		     msg.n == sizeof(m) + m.n * sizeof(*sockets);

	if (right)
		memcpy(sockets, msg.p + sizeof(m), m.n * sizeof(*sockets));
	for (uint32_t i = 0; right && i < m.n; i++)
		right = socket_is_right(&sockets[i]);
	s = sandbox_find(g, m.key);
	if (!right || !s) {
		close_all(fds, n_fds);
		return right ? err_set(e, ERR_INVALID, "sockets of a sandbox without a grant")
			     : err_set(e, ERR_INVALID, "a message about sockets is malformed");
	}
	if (m.want)
		return wild_answered(s, &m, sockets, fds, e);
	if (listener_add_all(s, sockets, fds, m.n, e) < 0)
		return -1;
	listener_close_ungranted(s);
	return 0;
}

static int on_secrets(struct egress *g, struct str msg, struct err *e)
{
	struct nw_secrets m;
	struct sandbox *s;
	struct vault *v = NULL;

	if (take_head(msg, &m, sizeof(m), e) < 0)
		return -1;
	s = sandbox_find(g, m.key);
	if (!s)
		return err_set(e, ERR_INVALID, "secrets of a sandbox without a grant");
	if (m.n > 0 || m.n_ca > 0) {
		v = vault_new(g->trust, &m, (struct str){ msg.p + sizeof(m), msg.n - sizeof(m) },
			      e);
		if (!v)
			return -1;
	}
	sandbox_bind(s, v, m.renews);
	return 0;
}

static int on_kept(struct egress *g, struct str msg, struct err *e)
{
	struct nw_kept m;
	struct sandbox *s;

	if (take_head(msg, &m, sizeof(m), e) < 0)
		return -1;
	s = sandbox_find(g, m.key);
	if (!has_end(m.why, sizeof(m.why)) || !m.ask || msg.n != sizeof(m) + m.n)
		return err_set(e, ERR_INVALID, "a message about tokens is malformed");
	if (s)
		flow_kept(s, &m, (struct str){ msg.p + sizeof(m), m.n });
	return 0;
}

static int on_verdict(struct egress *g, struct str msg, struct err *e)
{
	struct nw_verdict m;
	struct sandbox *s;

	if (take_head(msg, &m, sizeof(m), e) < 0)
		return -1;
	s = sandbox_find(g, m.key);
	if (!has_end(m.why, sizeof(m.why)) || !m.ask)
		return err_set(e, ERR_INVALID, "a verdict is malformed");
	if (s)
		flow_answered(s, &m);
	return 0;
}

static int on_drop(struct egress *g, struct str msg, struct err *e)
{
	struct nw_drop m;

	if (take_head(msg, &m, sizeof(m), e) < 0)
		return -1;
	sandbox_drop(g, m.key);
	return 0;
}

static void complete_limits(struct nw_limits *l)
{
	const struct nw_limits d = {
		.flows = 256,
		.flows_per_s = 100,
		.names = 64,
		.queries_per_s = 500,
		.head_bytes = 64 * 1024,
		.handshake_ms = 10 * 1000,
		.idle_ms = 3600 * 1000,
	};

	l->flows = l->flows ? l->flows : d.flows;
	l->flows_per_s = l->flows_per_s ? l->flows_per_s : d.flows_per_s;
	l->names = l->names ? l->names : d.names;
	l->queries_per_s = l->queries_per_s ? l->queries_per_s : d.queries_per_s;
	l->head_bytes = l->head_bytes ? l->head_bytes : d.head_bytes;
	l->handshake_ms = l->handshake_ms ? l->handshake_ms : d.handshake_ms;
	l->idle_ms = l->idle_ms ? l->idle_ms : d.idle_ms;
}

/* Files are only opened here; nothing of a stranger has been read by then. */
static int on_hello(struct egress *g, struct str msg, struct err *e)
{
	struct nw_hello m;
	struct str rest;

	if (take_head(msg, &m, sizeof(m), e) < 0)
		return -1;
	rest = (struct str){ msg.p + sizeof(m), msg.n - sizeof(m) };
	if (m.version != NW_VERSION || g->ways || m.n_resolvers > NW_RESOLVERS_MAX ||
	    m.n_ca > NW_CA_MAX || rest.n < m.n_ca)
		return err_set(e, ERR_INVALID, "the hub is of another build");
	g->limits = m.limits;
	complete_limits(&g->limits);
	g->trust = trust_open((struct str){ rest.p + rest.n - m.n_ca, m.n_ca }, e);
	if (!g->trust)
		return -1;
	rest.n -= m.n_ca;
	g->ways = ways_new(&g->loop, &m, rest, e);
	return g->ways ? confine_end(e) : -1;
}

static int on_message(struct egress *g, struct str msg, const int *fds, size_t n_fds, uint32_t type,
		      struct err *e)
{
	if (type == NW_SOCKETS && g->ways)
		return on_sockets(g, msg, fds, n_fds, e);
	close_all(fds, n_fds);
	if (type == NW_HELLO)
		return on_hello(g, msg, e);
	if (!g->ways)
		return err_set(e, ERR_INVALID, "the hub has not said hello");
	switch (type) {
	case NW_GRANT:
		return on_grant(g, msg, e);
	case NW_DROP:
		return on_drop(g, msg, e);
	case NW_SECRETS:
		return on_secrets(g, msg, e);
	case NW_VERDICT:
		return on_verdict(g, msg, e);
	case NW_KEPT:
		return on_kept(g, msg, e);
	default:
		return err_set(e, ERR_INVALID, "an unknown message of the hub");
	}
}

static void link_answer(struct egress *g, struct nw_head head, int rc, const struct err *e)
{
	struct nw_failed failed = { .h = { NW_FAILED, head.seq }, .err = *e };

	head.type = NW_DONE;
	if (rc < 0)
		link_send(g, &failed, sizeof(failed));
	else
		link_send(g, &head, sizeof(head));
}

static void link_read(struct egress *g)
{
	static char bytes[NW_MAX];
	int fds[SOCK_FDS_MAX];
	size_t n_fds = SOCK_FDS_MAX;
	struct nw_head head;
	struct err e = ERR_INIT;
	bool is_short = false;
	ssize_t n = sock_recv_short(g->link->fd, bytes, sizeof(bytes), fds, &n_fds, MSG_DONTWAIT,
				    &is_short);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		exit(0); /* the hub is gone, and with it all that is granted */
	if ((size_t)n < sizeof(head)) {
		close_all(fds, n_fds);
		return;
	}
	memcpy(&head, bytes, sizeof(head));
	if (is_short) {
		close_all(fds, n_fds);
		err_set(&e, ERR_LIMIT, "the egress proxy is out of descriptors");
		link_answer(g, head, -1, &e);
		return;
	}
	link_answer(g, head,
		    on_message(g, (struct str){ bytes, (size_t)n }, fds, n_fds, head.type, &e), &e);
	if (head.type == NW_SECRETS || head.type == NW_HELLO)
		explicit_bzero(bytes, (size_t)n);
}

static void on_link(uv_poll_t *poll, int status, int events)
{
	struct egress *g = poll->data;

	if (status < 0)
		exit(0);
	if (events & UV_WRITABLE)
		link_flush(g->link);
	if (events & UV_READABLE)
		link_read(g);
}

struct link *link_new(struct egress *g, int fd, struct err *e)
{
	struct link *l = mem_zalloc(sizeof(*l));

	if (l) {
		l->poll = poll_new(&g->loop, fd, g);
		l->later = timer_new(&g->loop, l);
	}
	if (!l || !l->poll || !l->later || uv_poll_start(l->poll, UV_READABLE, on_link) < 0) {
		free(l);
		return err_set(e, ERR_IO, "watch the hub's socket"), NULL;
	}
	l->fd = fd;
	l->last = &l->first;
	return l;
}
