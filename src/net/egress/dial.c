/*
 * From what a rule grants to a connection: resolve, drop the addresses that are forbidden, connect
 * to exactly one of the others, the next if that fails. No name is resolved twice for one flow, so
 * an answer that changes between check and connect changes nothing.
 */
#include "net/egress/internal.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "net/egress/own.h"
#include "net/egress/tunnel.h"
#include "net/egress/ways.h"

enum { TRY_MS = 3000 };

struct dial {
	struct sandbox *of;
	dial_fn *on_done;
	void *owner;
	struct resolve *resolve;
	uv_poll_t *poll; /* of fd */
	uv_timer_t *later; /* calls on_done, which never comes within dial_start() */
	int fd; /* -1: none */
	uint64_t since_ms; /* of this try */
	struct net_addr addrs[RESOLVE_MAX], last;
	size_t n, at; /* the next is addrs[at] */
	uint16_t port;
	char host[NET_HOST_MAX]; /* that was asked for; "": an address */
	char path[NET_PATH_MAX]; /* of a Unix socket; "": none */
	bool by_proxy, talks; /* the addresses are the network's proxy's; it is asked */
	struct tunnel tunnel; /* to what is wanted */
	enum nw_reason reason; /* so far */
};

/* Of a network that is not the host's alone. */
static bool dial_is_private(enum net_class c)
{
	return c == NET_PRIVATE || c == NET_SHARED || c == NET_UNIQUE_LOCAL;
}

bool dial_may(const struct sandbox *s, const struct net_addr *a, uint16_t port, const char *name)
{
	int by = net_rules_find_addr(s->rules, s->n_rules, a, port);
	bool exact = by >= 0 && s->rules[by].cidr.bits == (a->family == 4 ? 32 : 128);
	enum net_class class = net_addr_class(a);

	if (by < 0 && !(name && (class == NET_PUBLIC ||
				 (dial_is_private(class) && ways_are_private(s->of->ways, name)))))
		return false;
	/* the host itself is behind more addresses than its loopback's */
	return exact || (by >= 0 && class == NET_LOOPBACK) || !own_has(s->of->own, a);
}

static void dial_free(struct dial *d)
{
	resolve_cancel(d->resolve);
	poll_drop(&d->poll);
	timer_drop(&d->later);
	close_fd(&d->fd);
	if (d->by_proxy)
		tunnel_fini(&d->tunnel);
	free(d);
}

void dial_cancel(struct dial *d)
{
	if (d)
		dial_free(d);
}

static void dial_end(struct dial *d)
{
	dial_fn *on_done = d->on_done;
	void *owner = d->owner;
	struct net_addr last = d->by_proxy ? (struct net_addr){ .family = 0 } : d->last;
	enum nw_reason reason = d->reason;
	int fd = -1;

	poll_drop(&d->poll);
	if (reason == NW_REASON_NONE)
		fd = take_fd(&d->fd);
	dial_free(d);
	on_done(owner, fd, &last, reason);
}

static void on_later(uv_timer_t *timer)
{
	dial_end(timer->data);
}

static void dial_end_later(struct dial *d, enum nw_reason reason)
{
	d->reason = reason;
	poll_drop(&d->poll);
	uv_timer_start(d->later, on_later, 0, 0);
}

/* ---- connecting ------------------------------------------------------------------------------ */

static void dial_next(struct dial *d);

static void on_proxy(uv_poll_t *poll, int status, int events);

/* The proxy's refusal holds for all of its addresses. */
static void dial_talk(struct dial *d)
{
	enum tunnel_state state = tunnel_run(&d->tunnel, d->fd);

	d->talks = true;
	if ((state == TUNNEL_READ || state == TUNNEL_WRITE) &&
	    uv_poll_start(d->poll, state == TUNNEL_READ ? UV_READABLE : UV_WRITABLE, on_proxy) == 0)
		return;
	d->reason = state == TUNNEL_OPEN ? NW_REASON_NONE : NW_REASON_UPSTREAM;
	dial_end(d);
}

static void on_proxy(uv_poll_t *poll, int status, int events)
{
	struct dial *d = poll->data;

	(void)events;
	if (status >= 0) {
		dial_talk(d);
		return;
	}
	d->reason = NW_REASON_UPSTREAM;
	dial_end(d);
}

static int socket_error(int fd)
{
	int error = 0;
	socklen_t n = sizeof(error);

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0 ? errno : error;
}

static void on_connected(uv_poll_t *poll, int status, int events)
{
	struct dial *d = poll->data;

	(void)events;
	if (status < 0 || socket_error(d->fd) != 0) {
		dial_next(d);
		return;
	}
	d->reason = NW_REASON_NONE;
	if (d->by_proxy)
		dial_talk(d);
	else
		dial_end(d);
}

/* 0: connected, or it will be. */
static int dial_try(struct dial *d, const struct sockaddr *to, socklen_t n)
{
	d->since_ms = uv_now(&d->of->of->loop);
	d->fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (d->fd < 0) {
		d->reason = errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
					    errno == ENOMEM
				  ? NW_REASON_LIMIT_HOST
				  : NW_REASON_DIAL;
		return -1;
	}
	d->reason = d->by_proxy ? NW_REASON_UPSTREAM : NW_REASON_DIAL;
	if (connect(d->fd, to, n) == 0 && !d->by_proxy) {
		dial_end_later(d, NW_REASON_NONE);
		return 0;
	}
	if (d->by_proxy || errno == EINPROGRESS)
		d->poll = poll_new(&d->of->of->loop, d->fd, d);
	if (d->poll && uv_poll_start(d->poll, UV_WRITABLE, on_connected) == 0)
		return 0;
	poll_drop(&d->poll);
	close_fd(&d->fd);
	return -1;
}

static int dial_try_addr(struct dial *d, const struct net_addr *a)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(d->port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(d->port) };

	d->last = *a;
	memcpy(&v4.sin_addr, a->bytes, 4);
	memcpy(&v6.sin6_addr, a->bytes, 16);
	return a->family == 4 ? dial_try(d, (const struct sockaddr *)&v4, sizeof(v4))
			      : dial_try(d, (const struct sockaddr *)&v6, sizeof(v6));
}

static void dial_next(struct dial *d)
{
	poll_drop(&d->poll);
	close_fd(&d->fd);
	while (d->at < d->n) {
		if (dial_try_addr(d, &d->addrs[d->at++]) == 0)
			return;
	}
	dial_end_later(d, d->reason);
}

void dial_sweep(struct dial *d, uint64_t now_ms)
{
	if (d->poll && !d->talks && d->at < d->n && now_ms - d->since_ms >= TRY_MS)
		dial_next(d);
}

static void dial_unix(struct dial *d)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	static_assert(sizeof(to.sun_path) >= NET_PATH_MAX, "a rule's path is a socket's");
	memcpy(to.sun_path, d->path, strlen(d->path) + 1);
	if (dial_try(d, (const struct sockaddr *)&to, sizeof(to)) < 0)
		dial_end_later(d, d->reason);
}

/* ---- what there is to connect to ------------------------------------------------------------- */

static void on_resolved(void *owner, const struct net_addr *addrs, size_t n)
{
	struct dial *d = owner;

	d->resolve = NULL;
	d->reason = NW_REASON_RESOLVE;
	for (size_t i = 0; i < n; i++) {
		if (dial_may(d->of, &addrs[i], d->port, d->host)) {
			d->addrs[d->n++] = addrs[i];
			continue;
		}
		d->last = addrs[i];
		d->reason = NW_REASON_ADDRESS;
	}
	dial_next(d);
}

/* The operator has named the proxy, so it may be anywhere. */
static void on_proxy_resolved(void *owner, const struct net_addr *addrs, size_t n)
{
	struct dial *d = owner;

	d->resolve = NULL;
	d->reason = NW_REASON_UPSTREAM;
	for (size_t i = 0; i < n; i++)
		d->addrs[d->n++] = addrs[i];
	dial_next(d);
}

static void dial_by_proxy(struct dial *d, const struct ways_proxy *p)
{
	struct net_addr a;
	struct err e;
	uint16_t port = d->port;

	d->by_proxy = true;
	d->port = p->port;
	if (tunnel_init(&d->tunnel, d->host, port, p->auth, &e) < 0)
		dial_end_later(d, NW_REASON_LIMIT_HOST);
	else if (net_addr_parse(str_of(p->host), &a))
		on_proxy_resolved(d, &a, 1);
	else
		d->resolve = resolve_start(ways_resolver(d->of->of->ways, p->host), p->host,
					   on_proxy_resolved, d);
}

static void dial_by_name(struct dial *d, const char *host)
{
	const struct ways_proxy *p = ways_proxy(d->of->of->ways, host);

	memcpy(d->host, host, strlen(host) + 1);
	if (p)
		dial_by_proxy(d, p);
	else
		d->resolve = resolve_start(ways_resolver(d->of->of->ways, host), d->host,
					   on_resolved, d);
}

struct dial *dial_start(struct sandbox *s, const struct dial_to *to, dial_fn *on_done, void *owner)
{
	const struct net_rule *rule = &s->rules[to->rule];
	struct dial *d = mem_zalloc(sizeof(*d));

	if (d)
		d->later = timer_new(&s->of->loop, d);
	if (!d || !d->later) {
		free(d);
		return NULL;
	}
	d->of = s;
	d->on_done = on_done;
	d->owner = owner;
	d->fd = -1;
	d->port = to->port;
	if (rule->kind == NET_RULE_SERVICE && rule->path[0]) {
		memcpy(d->path, rule->path, sizeof(d->path));
		dial_unix(d);
	} else if (rule->kind == NET_RULE_SERVICE) {
		d->port = rule->service_port;
		d->addrs[d->n++] = rule->service;
		dial_next(d);
	} else if (!to->host[0]) {
		d->addrs[d->n++] = to->addr;
		dial_next(d);
	} else {
		dial_by_name(d, to->host);
	}
	return d;
}
