/*
 * The resolver of a sandbox. It answers from the grants alone, so no query leaves this process and
 * names carry nothing out. A granted name has the IPv4 address that stands for it inside.
 */
#include "net/egress/internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

enum {
	READS = 32, /* at once, before others have their turn */
	MESSAGE_MAX = 1500,
	PENDING_MAX = 64, /* queries of one sandbox that wait for an address */
	CONNECTIONS_MAX = 16,
	TCP_IDLE_MS = 10 * 1000,
	LOCALHOST = 0x7f000001,
};

/* A connection. Over UDP there is none. */
struct stub {
	struct stub *next;
	struct sandbox *of;
	uv_poll_t *poll;
	uv_timer_t *idle;
	int fd;
	size_t n;
	uint8_t bytes[2 + MESSAGE_MAX];
};

/* A query that waits for an address. */
struct pending {
	struct pending *next;
	struct sandbox *of;
	struct stub *stub; /* NULL: UDP */
	struct sockaddr_in from;
	struct dns_query q;
};

/* ---- answers --------------------------------------------------------------------------------- */

static void stub_close(struct stub *c);

static void stub_answer(struct sandbox *s, struct stub *c, const struct sockaddr_in *from,
			const struct dns_query *q, enum dns_code code, uint32_t ip)
{
	uint8_t bytes[2 + DNS_ANSWER_MAX];
	size_t n = dns_write(q, code, ip, bytes + 2);

	if (!c) {
		int fd = listener_dns(s);

		if (fd >= 0)
			(void)sendto(fd, bytes + 2, n, MSG_NOSIGNAL | MSG_DONTWAIT,
				     (const struct sockaddr *)from, sizeof(*from));
		return;
	}
	bytes[0] = (uint8_t)(n >> 8);
	bytes[1] = (uint8_t)n;
	if (send(c->fd, bytes, n + 2, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)n + 2)
		shutdown(c->fd, SHUT_RDWR); /* it is closed when that is read */
}

/* Each name once, of those asked for last: programs search and try again. */
static void tell_denied(struct sandbox *s, const struct dns_query *q)
{
	struct nw_flow m = sandbox_event(s, NW_FLOW_DENIED, NW_BY_DNS, NW_REASON_NOT_GRANTED);
	uint64_t hash = 0xcbf29ce484222325u;

	for (const char *p = q->name; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 0x100000001b3u;
	for (size_t i = 0; i < SANDBOX_DENIED_NAMES && i < s->n_denied; i++) {
		if (s->denied[i] == hash)
			return;
	}
	s->denied[s->n_denied++ % SANDBOX_DENIED_NAMES] = hash;
	memcpy(m.host, q->name, sizeof(m.host));
	link_tell(s->of, &m);
}

static void on_address(void *owner, const char *name, uint32_t ip)
{
	struct pending *p = owner, **at = &p->of->pending;

	(void)name;
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	p->of->n_pending--;
	stub_answer(p->of, p->stub, &p->from, &p->q, ip ? DNS_OK : DNS_SERVFAIL, ip);
	free(p);
}

static void ask_for_address(struct sandbox *s, struct stub *c, const struct sockaddr_in *from,
			    const struct dns_query *q)
{
	struct pending *p = s->n_pending < PENDING_MAX ? mem_zalloc(sizeof(*p)) : NULL;

	if (!p) {
		stub_answer(s, c, from, q, DNS_SERVFAIL, 0);
		return;
	}
	*p = (struct pending){ .next = s->pending, .of = s, .stub = c, .q = *q };
	if (from)
		p->from = *from;
	s->pending = p;
	s->n_pending++;
	wild_get(s, p->q.name, on_address, p);
}

static bool is_localhost(const char *name)
{
	size_t n = strlen(name), m = strlen("localhost");

	return n >= m && strcmp(name + n - m, "localhost") == 0 &&
	       (n == m || name[n - m - 1] == '.');
}

static bool is_granted(const struct sandbox *s, const char *name)
{
	for (size_t i = 0; i < s->n_rules; i++) {
		if (net_rule_names(&s->rules[i], name))
			return true;
	}
	return false;
}

static void take_query(struct sandbox *s, struct stub *c, const struct sockaddr_in *from,
		       struct str msg)
{
	struct dns_query q;
	int code = dns_read(msg, &q);
	uint32_t ip;

	if (code < 0)
		return;
	if (code != DNS_OK) {
		stub_answer(s, c, from, &q, (enum dns_code)code, 0);
	} else if (q.is_host && is_localhost(q.name)) {
		stub_answer(s, c, from, &q, DNS_OK, q.type == DNS_A ? LOCALHOST : 0);
	} else if (!q.is_host || !is_granted(s, q.name)) {
		tell_denied(s, &q);
		stub_answer(s, c, from, &q, DNS_NXDOMAIN, 0);
	} else if (q.type != DNS_A) {
		stub_answer(s, c, from, &q, DNS_OK, 0);
	} else if ((ip = listener_address_of(s, q.name)) != 0) {
		wild_touch(s, ip);
		stub_answer(s, c, from, &q, DNS_OK, ip);
	} else {
		ask_for_address(s, c, from, &q);
	}
}

/* Too many are not answered at all. */
static bool may_ask(struct sandbox *s)
{
	if (bucket_has(&s->queries, uv_now(&s->of->loop)) == 0)
		return false;
	bucket_take(&s->queries, 1);
	return true;
}

void stub_read_udp(struct sandbox *s, int fd)
{
	char bytes[MESSAGE_MAX];

	for (unsigned i = 0; i < READS; i++) {
		struct sockaddr_in from = { .sin_family = AF_UNSPEC };
		socklen_t size = sizeof(from);
		ssize_t n = recvfrom(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_TRUNC,
				     (struct sockaddr *)&from, &size);

		if (n < 0 && errno != EINTR)
			return;
		if (n > 0 && n <= (ssize_t)sizeof(bytes) && from.sin_family == AF_INET &&
		    may_ask(s))
			take_query(s, NULL, &from, (struct str){ bytes, (size_t)n });
	}
}

/* ---- TCP ------------------------------------------------------------------------------------- */

static void stub_close(struct stub *c)
{
	struct stub **at = &c->of->stubs;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	c->of->n_stubs--;
	for (struct pending *p = c->of->pending, *next; p; p = next) {
		struct pending **in = &c->of->pending;

		next = p->next;
		if (p->stub != c)
			continue;
		while (*in != p)
			in = &(*in)->next;
		*in = p->next;
		c->of->n_pending--;
		wild_cancel(c->of, p);
		free(p);
	}
	poll_drop(&c->poll);
	timer_drop(&c->idle);
	close(c->fd);
	free(c);
}

static void on_idle(uv_timer_t *timer)
{
	stub_close(timer->data);
}

static void on_stub_readable(uv_poll_t *poll, int status, int events)
{
	struct stub *c = poll->data;
	ssize_t n = recv(c->fd, c->bytes + c->n, sizeof(c->bytes) - c->n, MSG_DONTWAIT);
	size_t length;

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR) && status == 0)
		return;
	if (n <= 0 || status < 0) {
		stub_close(c);
		return;
	}
	c->n += (size_t)n;
	uv_timer_start(c->idle, on_idle, TCP_IDLE_MS, 0);
	while (c->n >= 2) {
		length = (size_t)(c->bytes[0] << 8 | c->bytes[1]);
		if (length > MESSAGE_MAX || length == 0) {
			stub_close(c);
			return;
		}
		if (c->n < 2 + length)
			return;
		if (may_ask(c->of))
			take_query(c->of, c, NULL, (struct str){ (char *)c->bytes + 2, length });
		c->n -= 2 + length;
		memmove(c->bytes, c->bytes + 2 + length, c->n);
	}
}

void stub_accept(struct sandbox *s, int fd)
{
	struct stub *c = s->n_stubs < CONNECTIONS_MAX ? mem_zalloc(sizeof(*c)) : NULL;

	if (!c) {
		fd_reset(fd);
		return;
	}
	c->of = s;
	c->fd = fd;
	c->next = s->stubs;
	s->stubs = c;
	s->n_stubs++;
	c->poll = poll_new(&s->of->loop, fd, c);
	c->idle = timer_new(&s->of->loop, c);
	if (!c->poll || !c->idle || uv_poll_start(c->poll, UV_READABLE, on_stub_readable) < 0) {
		stub_close(c);
		return;
	}
	uv_timer_start(c->idle, on_idle, TCP_IDLE_MS, 0);
}

void stub_close_all(struct sandbox *s)
{
	while (s->stubs)
		stub_close(s->stubs);
	while (s->pending) {
		struct pending *p = s->pending;

		s->pending = p->next;
		s->n_pending--;
		wild_cancel(s, p);
		free(p);
	}
}
