/* The sockets in a sandbox's network namespace: what exists there of the world. */
#include "net/egress/internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "base/clock.h"

enum { ACCEPTS = 16 /* at once, before others have their turn */, LIMIT_TOLD_MS = 1000 };

struct listener {
	struct listener *next;
	struct sandbox *of;
	uv_poll_t *poll;
	int fd;
	enum nw_socket_kind kind;
	uint32_t ip;
	uint16_t port;
	char name[NET_HOST_MAX];
};

/* ---- accepting ------------------------------------------------------------------------------- */

/* A storm of them is told once a second. */
static void tell_limit(struct listener *l, enum nw_reason reason)
{
	struct sandbox *s = l->of;
	uint64_t now = uv_now(&s->of->loop);
	struct nw_flow m = sandbox_event(
		s, NW_FLOW_DENIED, l->kind == NW_SOCKET_FLOW ? NW_BY_ADDRESS : NW_BY_PROXY, reason);

	if (s->limit_told_ms && now - s->limit_told_ms < LIMIT_TOLD_MS) {
		s->of->lost++;
		return;
	}
	s->limit_told_ms = now;
	m.port = l->port;
	memcpy(m.host, l->name, sizeof(m.host));
	link_tell(s->of, &m);
}

/* Out of descriptors: the connection must not wait in the queue, which would keep the loop busy. */
static void refuse_one(struct listener *l)
{
	struct egress *g = l->of->of;
	int fd;

	close_fd(&g->spare);
	fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		fd_reset(fd);
	g->spare = dup(0);
	tell_limit(l, NW_REASON_LIMIT_HOST);
}

static void take_one(struct listener *l, int fd)
{
	struct sandbox *s = l->of;
	uint64_t now = uv_now(&s->of->loop);

	if (s->n_flows >= s->of->limits.flows) {
		tell_limit(l, NW_REASON_LIMIT_FLOWS);
		fd_reset(fd);
	} else if (bucket_has(&s->new_flows, now) == 0) {
		tell_limit(l, NW_REASON_LIMIT_RATE);
		fd_reset(fd);
	} else {
		bucket_take(&s->new_flows, 1);
		if (l->kind == NW_SOCKET_DNS_TCP)
			stub_accept(s, fd);
		else
			flow_new(s, fd, l->kind == NW_SOCKET_FLOW ? l->name : NULL, l->port);
	}
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	struct listener *l = poll->data;

	(void)events;
	if (status < 0)
		return;
	if (l->kind == NW_SOCKET_DNS_UDP) {
		stub_read_udp(l->of, l->fd);
		return;
	}
	for (unsigned i = 0; i < ACCEPTS; i++) {
		int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			take_one(l, fd);
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
			   errno == ENOMEM) {
			refuse_one(l);
		} else if (errno != ECONNABORTED && errno != EINTR) {
			return;
		}
	}
}

/* ---- their life ------------------------------------------------------------------------------ */

static void listener_close(struct listener **at)
{
	struct listener *l = *at;

	*at = l->next;
	poll_drop(&l->poll);
	close(l->fd);
	free(l);
}

static int check_socket(const struct nw_socket *m, int fd, struct err *e)
{
	int type = 0;
	socklen_t n = sizeof(type);
	bool udp = m->kind == NW_SOCKET_DNS_UDP;

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) < 0 ||
	    type != (udp ? SOCK_DGRAM : SOCK_STREAM))
		return err_set(e, ERR_INVALID, "a descriptor is not the socket that it should be");
	return 0;
}

static struct listener *listener_new(struct sandbox *s, const struct nw_socket *m, int fd)
{
	struct listener *l = mem_zalloc(sizeof(*l));

	if (!l)
		return NULL;
	*l = (struct listener){
		.of = s, .fd = fd, .kind = m->kind, .ip = m->ip, .port = (uint16_t)m->port
	};
	memcpy(l->name, m->name, sizeof(l->name));
	l->poll = poll_new(&s->of->loop, fd, l);
	if (l->poll && uv_poll_start(l->poll, UV_READABLE, on_readable) == 0)
		return l;
	poll_drop(&l->poll);
	free(l);
	return NULL;
}

static void close_same(struct sandbox *s, const struct listener *new)
{
	struct listener **at = &s->listeners;

	while (*at) {
		if ((*at)->kind == new->kind && (*at)->ip == new->ip && (*at)->port == new->port)
			listener_close(at);
		else
			at = &(*at)->next;
	}
}

int listener_add_all(struct sandbox *s, const struct nw_socket *sockets, const int *fds, size_t n,
		     struct err *e)
{
	struct listener *added = NULL;
	size_t i = 0;
	int rc = 0;

	for (; i < n && rc == 0; i++) {
		struct listener *l = NULL;

		rc = check_socket(&sockets[i], fds[i], e);
		if (rc == 0) {
			l = listener_new(s, &sockets[i], fds[i]);
			rc = l ? 0 : err_set(e, ERR_LIMIT, "the egress proxy is out of memory");
		}
		if (!l) {
			close(fds[i]);
			continue;
		}
		l->next = added;
		added = l;
	}
	for (; i < n; i++)
		close(fds[i]);
	while (rc < 0 && added)
		listener_close(&added);
	while (added) {
		struct listener *l = added;

		added = l->next;
		close_same(s, l);
		l->next = s->listeners;
		s->listeners = l;
	}
	return rc;
}

/* The name is one, or an address that stands for itself. */
static bool listener_is_granted(const struct sandbox *s, const struct listener *l)
{
	struct net_addr a;

	return net_addr_parse(str_of(l->name), &a)
		     ? net_rules_find_addr(s->rules, s->n_rules, &a, l->port) >= 0
		     : net_rules_find(s->rules, s->n_rules, l->name, l->port) >= 0;
}

void listener_close_ungranted(struct sandbox *s)
{
	struct listener **at = &s->listeners;

	while (*at) {
		if ((*at)->kind == NW_SOCKET_FLOW && !listener_is_granted(s, *at))
			listener_close(at);
		else
			at = &(*at)->next;
	}
}

void listener_close_all(struct sandbox *s)
{
	while (s->listeners)
		listener_close(&s->listeners);
}

void listener_close_at(struct sandbox *s, uint32_t ip)
{
	struct listener **at = &s->listeners;

	while (*at) {
		if ((*at)->kind == NW_SOCKET_FLOW && (*at)->ip == ip)
			listener_close(at);
		else
			at = &(*at)->next;
	}
}

uint32_t listener_address_of(const struct sandbox *s, const char *name)
{
	for (const struct listener *l = s->listeners; l; l = l->next) {
		if (l->kind == NW_SOCKET_FLOW && strcmp(l->name, name) == 0)
			return l->ip;
	}
	return 0;
}

bool listener_has(const struct sandbox *s, uint32_t ip, uint16_t port)
{
	for (const struct listener *l = s->listeners; l; l = l->next) {
		if (l->kind == NW_SOCKET_FLOW && l->ip == ip && (!port || l->port == port))
			return true;
	}
	return false;
}

int listener_dns(const struct sandbox *s)
{
	for (const struct listener *l = s->listeners; l; l = l->next) {
		if (l->kind == NW_SOCKET_DNS_UDP)
			return l->fd;
	}
	return -1;
}
