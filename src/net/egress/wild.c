/*
 * Names that only a wildcard grants have no address before somebody asks for one. Then the name
 * gets an address of NW_WILD_NET, and the hub is asked for listening sockets there. The number of
 * such names is bounded: the one that was used least lately makes room, if no flow is open to it.
 */
#include "net/egress/internal.h"

enum { ANSWER_MS = 5000, SETTLE_MS = 2 * DNS_TTL * 1000 };

struct wait {
	struct wait *next;
	wild_fn *on_done;
	void *owner;
};

struct wild {
	struct wild *next;
	uint32_t ip;
	uint32_t seq; /* of the NW_WANT; 0: its sockets are there */
	uint64_t used_ms;
	struct wait *waits;
	char name[NET_HOST_MAX];
};

static void tell_waits(struct wild *w, uint32_t ip)
{
	while (w->waits) {
		struct wait *wait = w->waits;

		w->waits = wait->next;
		wait->on_done(wait->owner, w->name, ip);
		free(wait);
	}
}

static void wild_free(struct sandbox *s, struct wild *w)
{
	struct wild **at = &s->wilds;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	s->n_wilds--;
	listener_close_at(s, w->ip);
	tell_waits(w, 0);
	free(w);
}

static bool has_flow(const struct sandbox *s, const struct wild *w)
{
	for (const struct flow *f = s->flows; f; f = flow_next(f)) {
		if (strcmp(flow_name(f), w->name) == 0)
			return true;
	}
	return false;
}

/* The one to reuse: not one whose address a program may have just been given. */
static struct wild *wild_oldest(const struct sandbox *s, uint64_t now)
{
	struct wild *oldest = NULL;

	for (struct wild *w = s->wilds; w; w = w->next) {
		if (!w->seq && now - w->used_ms >= SETTLE_MS &&
		    (!oldest || w->used_ms < oldest->used_ms) && !has_flow(s, w))
			oldest = w;
	}
	return oldest;
}

/* An address that nothing has; 0: none. Addresses go around, so that one is not soon another's. */
static uint32_t pick_address(struct sandbox *s)
{
	for (unsigned i = 0; i < NW_NET_SIZE; i++) {
		uint32_t ip;
		const struct wild *w = s->wilds;

		s->last_wild = s->last_wild % (NW_NET_SIZE - 2) + 1;
		ip = NW_WILD_NET + s->last_wild;
		while (w && w->ip != ip)
			w = w->next;
		if (!w && !listener_has(s, ip, 0))
			return ip;
	}
	return 0;
}

/* The ports that wildcards grant to the name; how many. */
static uint32_t granted_ports(const struct sandbox *s, const char *name, uint16_t ret[NW_PORTS_MAX])
{
	uint32_t n = 0;

	for (size_t i = 0; i < s->n_rules; i++) {
		bool has = !net_rule_names(&s->rules[i], name);

		for (uint32_t k = 0; k < n; k++)
			has = has || ret[k] == s->rules[i].port;
		if (!has && n < NW_PORTS_MAX)
			ret[n++] = s->rules[i].port;
	}
	return n;
}

static struct wild *wild_new(struct sandbox *s, const char *name)
{
	struct egress *g = s->of;
	struct nw_want m = { .h.type = NW_WANT, .key = s->key };
	uint64_t now = uv_now(&g->loop);
	struct wild *w = s->n_wilds < g->limits.names ? NULL : wild_oldest(s, now);

	if (w)
		wild_free(s, w);
	if (s->n_wilds >= g->limits.names)
		return NULL;
	m.ip = pick_address(s);
	m.n_ports = granted_ports(s, name, m.ports);
	w = m.ip && m.n_ports ? mem_zalloc(sizeof(*w)) : NULL;
	if (!w)
		return NULL;
	g->last_want = g->last_want + 1 ? g->last_want + 1 : 1;
	m.h.seq = g->last_want;
	memcpy(m.name, name, strlen(name) + 1);
	*w = (struct wild){ .next = s->wilds, .ip = m.ip, .seq = m.h.seq, .used_ms = now };
	memcpy(w->name, name, strlen(name) + 1);
	s->wilds = w;
	s->n_wilds++;
	link_send(g, &m, sizeof(m));
	egress_wake(g);
	return w;
}

void wild_get(struct sandbox *s, const char *name, wild_fn *on_done, void *owner)
{
	struct wild *w = s->wilds;
	struct wait *wait;

	while (w && strcmp(w->name, name) != 0)
		w = w->next;
	if (w && !w->seq && !listener_has(s, w->ip, 0)) {
		wild_free(s, w); /* its sockets came when nothing granted them any more */
		w = NULL;
	}
	if (!w)
		w = wild_new(s, name);
	wait = w ? mem_zalloc(sizeof(*wait)) : NULL;
	if (!wait) {
		on_done(owner, name, 0);
		return;
	}
	*wait = (struct wait){ .next = w->waits, .on_done = on_done, .owner = owner };
	w->waits = wait;
}

void wild_cancel(struct sandbox *s, void *owner)
{
	for (struct wild *w = s->wilds; w; w = w->next) {
		for (struct wait **at = &w->waits; *at;) {
			struct wait *wait = *at;

			if (wait->owner != owner) {
				at = &wait->next;
				continue;
			}
			*at = wait->next;
			free(wait);
		}
	}
}

void wild_touch(struct sandbox *s, uint32_t ip)
{
	for (struct wild *w = s->wilds; w; w = w->next) {
		if (w->ip == ip)
			w->used_ms = uv_now(&s->of->loop);
	}
}

int wild_answered(struct sandbox *s, const struct nw_sockets *m, const struct nw_socket *sockets,
		  const int *fds, struct err *e)
{
	struct wild *w = s->wilds;
	bool right = true;

	while (w && w->seq != m->want)
		w = w->next;
	for (size_t i = 0; w && i < m->n; i++)
		right = right && sockets[i].kind == NW_SOCKET_FLOW && sockets[i].ip == w->ip &&
			strcmp(sockets[i].name, w->name) == 0;
	if (!w || !right || m->n == 0) {
		for (size_t i = 0; i < m->n; i++)
			close(fds[i]);
		if (w)
			wild_free(s, w);
		/* late or refused is no fault */
		return right ? 0 : err_set(e, ERR_INVALID, "sockets for another name");
	}
	if (listener_add_all(s, sockets, fds, m->n, e) < 0) {
		wild_free(s, w);
		return -1;
	}
	w->seq = 0;
	w->used_ms = uv_now(&s->of->loop);
	listener_close_ungranted(s);
	tell_waits(w, listener_has(s, w->ip, 0) ? w->ip : 0);
	return 0;
}

/* Each port that the rules grant to the name has its socket. */
static bool is_complete(const struct sandbox *s, const struct wild *w)
{
	uint16_t ports[NW_PORTS_MAX];
	uint32_t n = granted_ports(s, w->name, ports);

	for (uint32_t i = 0; i < n; i++) {
		if (!listener_has(s, w->ip, ports[i]))
			return false;
	}
	return n > 0;
}

/* One that lacks a port now is asked for anew. */
void wild_drop_ungranted(struct sandbox *s)
{
	for (struct wild *w = s->wilds, *next; w; w = next) {
		next = w->next;
		if (w->seq || !is_complete(s, w))
			wild_free(s, w);
	}
}

void wild_close_all(struct sandbox *s)
{
	while (s->wilds)
		wild_free(s, s->wilds);
}

bool wild_sweep(struct sandbox *s, uint64_t now_ms)
{
	bool any = false;

	for (struct wild *w = s->wilds, *next; w; w = next) {
		next = w->next;
		if (w->seq && now_ms - w->used_ms >= ANSWER_MS)
			wild_free(s, w);
		else
			any = any || w->seq;
	}
	return any;
}
