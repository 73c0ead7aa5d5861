#include "net/egress/resolve.h"

#include <ares.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/select.h>

#include "base/clock.h"
#include "base/mem.h"

enum {
	KEPT = 512, /* names, one a slot */
	KEPT_MS_MAX = 60 * 1000,
	TRY_MS = 2000,
	TRIES = 3,
	SOCKETS_MAX = 64,
};

struct kept {
	char host[NET_HOST_MAX];
	uint64_t until_ms;
	size_t n;
	struct net_addr addrs[RESOLVE_MAX];
};

struct watch {
	uv_poll_t poll;
	struct resolver *of;
	ares_socket_t fd;
	bool used;
};

struct resolver {
	ares_channel channel;
	uv_loop_t *loop;
	uv_timer_t timer;
	struct watch *watches[SOCKETS_MAX];
	struct kept *kept;
};

struct resolve {
	struct resolver *of;
	resolve_fn *on_done; /* NULL: cancelled */
	void *owner;
	bool within; /* resolve_start() */
	bool done;
	char host[NET_HOST_MAX];
};

/* ---- c-ares in the loop ---------------------------------------------------------------------- */

static void resolver_arm(struct resolver *r);

static void on_timer(uv_timer_t *timer)
{
	struct resolver *r = timer->data;

	ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	resolver_arm(r);
}

static void resolver_arm(struct resolver *r)
{
	struct timeval t;

	if (!ares_timeout(r->channel, NULL, &t)) {
		uv_timer_stop(&r->timer);
		return;
	}
	uv_timer_start(&r->timer, on_timer,
		       (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_usec / 1000 + 1, 0);
}

static void on_socket(uv_poll_t *poll, int status, int events)
{
	struct watch *w = poll->data;
	struct resolver *r = w->of;
	ares_socket_t fd = w->fd;
	bool reads = status < 0 || events & UV_READABLE,
	     writes = status < 0 || events & UV_WRITABLE;

	ares_process_fd(r->channel, reads ? fd : ARES_SOCKET_BAD, writes ? fd : ARES_SOCKET_BAD);
	resolver_arm(r);
}

static void on_watch_closed(uv_handle_t *h)
{
	free(h->data);
}

/* c-ares opens, changes and closes (neither) one of its sockets. */
static void on_socket_state(void *arg, ares_socket_t fd, int reads, int writes)
{
	struct resolver *r = arg;
	struct watch **at = NULL;
	int events = (reads ? UV_READABLE : 0) | (writes ? UV_WRITABLE : 0);

	for (size_t i = 0; i < SOCKETS_MAX; i++) {
		if (r->watches[i] && r->watches[i]->fd == fd) {
			at = &r->watches[i];
			break;
		}
		if (!r->watches[i] && !at)
			at = &r->watches[i];
	}
	if (!at)
		return; /* it is left to the timer */
	if (!*at && events) {
		struct watch *w = mem_zalloc(sizeof(*w));

		if (!w)
			return;
		w->of = r;
		w->fd = fd;
		w->poll.data = w;
		if (uv_poll_init(r->loop, &w->poll, fd) < 0) {
			free(w);
			return;
		}
		*at = w;
	}
	if (*at && events)
		uv_poll_start(&(*at)->poll, events, on_socket);
	else if (*at)
		uv_close((uv_handle_t *)&take_ptr(*at)->poll, on_watch_closed);
}

static int set_servers(struct resolver *r, const struct nw_resolver *servers, size_t n,
		       struct err *e)
{
	char text[NW_RESOLVERS_MAX * (NET_ADDR_TEXT + 10)] = "";
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		char addr[NET_ADDR_TEXT];
		bool v6 = servers[i].addr.family == 6;

		net_addr_print(&servers[i].addr, addr);
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s%s%s:%u", i ? "," : "",
				       v6 ? "[" : "", addr, v6 ? "]" : "",
				       servers[i].port ? servers[i].port : 53);
	}
	if (n > 0 && ares_set_servers_ports_csv(r->channel, text) != ARES_SUCCESS)
		return err_set(e, ERR_INVALID, "the resolvers can't be used");
	return 0;
}

struct resolver *resolver_new(uv_loop_t *loop, const struct nw_resolver *servers, size_t n,
			      struct err *e)
{
	struct resolver *r = mem_zalloc(sizeof(*r));
	struct ares_options options = {
		.flags = ARES_FLAG_NOSEARCH, /* a granted name is all of a name */
		.timeout = TRY_MS,
		.tries = TRIES,
		.sock_state_cb = on_socket_state,
		.sock_state_cb_data = r,
		.lookups = (char[]){ "fb" }, /* the hosts file, then the DNS */
	};

	if (r)
		r->kept = calloc(KEPT, sizeof(*r->kept));
	if (!r || !r->kept || ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS ||
	    ares_init_options(&r->channel, &options,
			      ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
				      ARES_OPT_SOCK_STATE_CB | ARES_OPT_LOOKUPS) != ARES_SUCCESS) {
		if (r)
			free(r->kept);
		free(r);
		return err_set(e, ERR_IO, "start the resolver"), NULL;
	}
	r->loop = loop;
	r->timer.data = r;
	uv_timer_init(loop, &r->timer);
	if (set_servers(r, servers, n, e) < 0)
		return NULL; /* the process ends */
	return r;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* The slot that a name has, whoever is in it. */
static struct kept *kept_of(struct resolver *r, const char *host)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (const char *p = host; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 0x100000001b3u;
	return &r->kept[(hash ^ hash >> 32) % KEPT];
}

static void take_addrs(const struct ares_addrinfo *info, struct kept *k)
{
	int ttl = KEPT_MS_MAX / 1000;

	for (const struct ares_addrinfo_node *n = info->nodes; n && k->n < RESOLVE_MAX;
	     n = n->ai_next) {
		struct net_addr a = { .family = n->ai_family == AF_INET ? 4 : 6 };

		if (n->ai_family == AF_INET)
			memcpy(a.bytes, &((const struct sockaddr_in *)n->ai_addr)->sin_addr, 4);
		else if (n->ai_family == AF_INET6)
			memcpy(a.bytes, &((const struct sockaddr_in6 *)n->ai_addr)->sin6_addr, 16);
		else
			continue;
		k->addrs[k->n++] = a;
		ttl = n->ai_ttl < ttl ? n->ai_ttl : ttl;
	}
	k->until_ms = clock_ms() + (uint64_t)(ttl > 0 ? ttl : 0) * 1000;
}

static void on_answer(void *arg, int status, int timeouts, struct ares_addrinfo *info)
{
	struct resolve *q = arg;
	struct kept k = { .n = 0 };

	(void)timeouts;
	if (status == ARES_SUCCESS && info)
		take_addrs(info, &k);
	if (info)
		ares_freeaddrinfo(info);
	if (k.n > 0 && k.until_ms > clock_ms()) {
		memcpy(k.host, q->host, sizeof(k.host));
		*kept_of(q->of, q->host) = k;
	}
	q->done = true;
	if (q->on_done)
		q->on_done(q->owner, k.addrs, k.n);
	if (!q->within)
		free(q);
}

struct resolve *resolve_start(struct resolver *r, const char *host, resolve_fn *on_done,
			      void *owner)
{
	const struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC,
						   .ai_socktype = SOCK_STREAM };
	struct kept *kept = kept_of(r, host);
	struct resolve *q;

	if (kept->until_ms > clock_ms() && strcmp(kept->host, host) == 0) {
		struct kept k = *kept;

		on_done(owner, k.addrs, k.n);
		return NULL;
	}
	q = mem_zalloc(sizeof(*q));
	if (!q) {
		on_done(owner, NULL, 0);
		return NULL;
	}
	*q = (struct resolve){ .of = r, .on_done = on_done, .owner = owner, .within = true };
	memcpy(q->host, host, strlen(host) + 1);
	ares_getaddrinfo(r->channel, host, NULL, &hints, on_answer, q);
	if (q->done) {
		free(q);
		return NULL;
	}
	q->within = false;
	resolver_arm(r);
	return q;
}

void resolve_cancel(struct resolve *q)
{
	if (q)
		q->on_done = NULL;
}
