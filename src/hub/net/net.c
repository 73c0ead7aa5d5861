/*
 * What each sandbox is granted. A change goes step by step, each after the answer to the last:
 *
 * 	WAITING ─ proxy runs ─→ RULES ─ done ─→ SOCKETS ─ the warden made some ─→ HANDING ─┐
 * 	                                          ↑ └─ all are there ─→ IDLE          done │
 * 	                                          └────────────────────────────────────────┘
 *
 * Before SOCKETS is SECRETS where the proxy does not have the present ones.
 * A step that fails leads back to RULES with the grant before. A new proxy makes each net with a
 * grant begin at RULES.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "hub/net/internal.h"

enum net_step { NET_IDLE, NET_WAITING, NET_RULES, NET_SECRETS, NET_SOCKETS, NET_HANDING };

enum { RESOLVER_IP = 0x7f000001, RESOLVER_PORT = 53, PROXY_PORT = 3128 };

/* Rules, and for each the address that its name has; 0 where it has none. */
struct grant {
	struct net_rule *rules;
	uint32_t *ips;
	size_t n;
	struct net_http_rule *http;
	size_t n_http;
};

struct net {
	struct nets *all;
	struct net *next;
	uint64_t key;
	struct sandbox *sb; /* a reference */
	void *of;
	struct grant now, before;
	/* The sockets that the proxy has; those of wildcards are its own affair. */
	struct sandbox_address made[3 + NW_RULES_MAX];
	size_t n_made;
	struct secret *secrets; /* packed; NULL: none */
	bool untold; /* the proxy has others */
	enum net_step step;
	uint32_t seq; /* of the answer that is awaited; of the question to the warden */
	bool goes_back; /* why: the change has failed */
	struct err why;
	net_cb on_done; /* NULL: nobody waits */
	void *arg;
	void (*on_flow)(void *arg, const struct nw_flow *f); /* NULL: nobody watches it */
	void *watching;
};

/* Whether the proxy serves it. */
static bool net_is_open(const struct net *n)
{
	return n->now.n > 0 || n->on_flow;
}

/* ---- grants -------------------------------------------------------------------------------- */

static void grant_fini(struct grant *g)
{
	free(g->rules);
	free(g->ips);
	free(g->http);
	*g = (struct grant){ .n = 0 };
}

static bool has_address(const struct net_rule *r)
{
	return r->kind == NET_RULE_NAME || r->kind == NET_RULE_SERVICE;
}

static uint32_t ip_of(const struct grant *g, size_t n, const char *host)
{
	for (size_t i = 0; i < n; i++) {
		if (g->ips[i] && strcmp(g->rules[i].host, host) == 0)
			return g->ips[i];
	}
	return 0;
}

static bool is_taken(const struct grant *g, size_t n, uint32_t ip)
{
	for (size_t i = 0; i < n; i++) {
		if (g->ips[i] == ip)
			return true;
	}
	return false;
}

/* By the name, so that programs may remember it over changes of the grant and of the hub. */
static uint32_t choose_ip(const struct grant *g, size_t n, const char *host)
{
	uint32_t hash = 2166136261u;

	for (const char *p = host; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 16777619u;
	for (;; hash++) {
		uint32_t ip = NW_EXACT_NET + 1 + hash % (NW_NET_SIZE - 2);

		if (!is_taken(g, n, ip))
			return ip;
	}
}

static int grant_copy(struct grant *ret, const struct net_grant *g, const struct grant *before,
		      struct err *e)
{
	struct grant c = { .rules = calloc(g->n + 1, sizeof(*c.rules)),
			   .ips = calloc(g->n + 1, sizeof(*c.ips)),
			   .n = g->n,
			   .http = calloc(g->n_http + 1, sizeof(*c.http)),
			   .n_http = g->n_http };

	if (!c.rules || !c.ips || !c.http) {
		grant_fini(&c);
		return err_set(e, ERR_LIMIT, "out of memory");
	}
	if (g->n)
		memcpy(c.rules, g->rules, g->n * sizeof(*c.rules));
	if (g->n_http)
		memcpy(c.http, g->http, g->n_http * sizeof(*c.http));
	/* those of before first, so that no other name takes one of them */
	for (size_t i = 0; i < c.n; i++)
		c.ips[i] = has_address(&c.rules[i]) ? ip_of(before, before->n, c.rules[i].host) : 0;
	for (size_t i = 0; i < c.n; i++) {
		const char *host = c.rules[i].host;

		if (!has_address(&c.rules[i]) || c.ips[i])
			continue;
		c.ips[i] = ip_of(&c, c.n, host);
		if (!c.ips[i])
			c.ips[i] = choose_ip(&c, c.n, host);
	}
	*ret = c;
	return 0;
}

/* ---- the sockets of a grant ---------------------------------------------------------------- */

static bool same_address(const struct sandbox_address *a, const struct sandbox_address *b)
{
	return a->ip == b->ip && a->port == b->port && a->datagram == b->datagram;
}

static bool is_made(const struct net *n, const struct sandbox_address *a)
{
	for (size_t i = 0; i < n->n_made; i++) {
		if (same_address(&n->made[i], a))
			return true;
	}
	return false;
}

static const struct {
	enum nw_socket_kind kind;
	struct sandbox_address at;
} always[] = {
	{ NW_SOCKET_DNS_UDP, { RESOLVER_IP, RESOLVER_PORT, true } },
	{ NW_SOCKET_DNS_TCP, { RESOLVER_IP, RESOLVER_PORT, false } },
	{ NW_SOCKET_PROXY, { RESOLVER_IP, PROXY_PORT, false } },
};

/* A port of the host's own 127.0.0.1 that is granted by itself: programs find it at the same
 * address as without a sandbox. */
static bool is_local(const struct net_rule *r)
{
	static const uint8_t ip[4] = { 127, 0, 0, 1 };

	return r->kind == NET_RULE_CIDR && r->cidr.addr.family == 4 && r->cidr.bits == 32 &&
	       memcmp(r->cidr.addr.bytes, ip, sizeof(ip)) == 0 && r->port &&
	       r->port != RESOLVER_PORT && r->port != PROXY_PORT;
}

static bool is_still_granted(const struct net *n, const struct sandbox_address *a)
{
	if (a->ip == RESOLVER_IP && (a->port == RESOLVER_PORT || a->port == PROXY_PORT))
		return net_is_open(n);
	for (size_t i = 0; i < n->now.n; i++) {
		const struct net_rule *r = &n->now.rules[i];

		if (r->port == a->port &&
		    (is_local(r) ? a->ip == RESOLVER_IP : n->now.ips[i] == a->ip))
			return true;
	}
	return false;
}

/* The proxy has closed what is no longer granted. */
static void forget_sockets(struct net *n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n->n_made; i++) {
		if (is_still_granted(n, &n->made[i]))
			n->made[kept++] = n->made[i];
	}
	n->n_made = kept;
}

static void add_missing(const struct net *n, enum nw_socket_kind kind,
			const struct sandbox_address *at, const char *name, struct nw_socket *to,
			size_t *count)
{
	if (*count == NW_SOCKETS_MAX || is_made(n, at))
		return;
	for (size_t i = 0; i < *count; i++) { /* a rule that stands there twice */
		if (to[i].kind == kind && to[i].ip == at->ip && to[i].port == at->port)
			return;
	}
	to[*count] = (struct nw_socket){ kind, at->ip, at->port, "" };
	snprintf(to[*count].name, sizeof(to->name), "%s", name);
	++*count;
}

/* As many of those that are missing as one message can carry. */
static size_t missing_sockets(const struct net *n, struct nw_socket *to)
{
	size_t count = 0;

	for (size_t i = 0; net_is_open(n) && i < ARRAY_LEN(always); i++)
		add_missing(n, always[i].kind, &always[i].at, "", to, &count);
	for (size_t i = 0; i < n->now.n; i++) {
		const struct net_rule *r = &n->now.rules[i];
		const struct sandbox_address at = { n->now.ips[i], r->port, false };

		if (at.ip)
			add_missing(n, NW_SOCKET_FLOW, &at, r->host, to, &count);
		else if (is_local(r))
			add_missing(n, NW_SOCKET_FLOW,
				    &(struct sandbox_address){ RESOLVER_IP, r->port, false },
				    "127.0.0.1", to, &count);
	}
	return count;
}

/* ---- asking the warden --------------------------------------------------------------------- */

/* The net may be gone, or the proxy another one, when it answers. */
struct asking {
	struct nets *all;
	uint64_t key, started_ms;
	uint32_t seq; /* of the net's step; or of the proxy's question */
	bool wanted; /* by the proxy */
	size_t n;
	struct nw_socket of[NW_SOCKETS_MAX];
};

static struct net *net_find(const struct nets *all, uint64_t key)
{
	struct net *n = all->first;

	while (n && n->key != key)
		n = n->next;
	return n;
}

static void hand_over(struct nets *all, const struct asking *a, int *fds)
{
	struct {
		struct nw_sockets m;
		struct nw_socket of[NW_SOCKETS_MAX];
	} out = { .m = { .h = { NW_SOCKETS, ++all->last_seq },
			 .key = a->key,
			 .want = a->wanted ? a->seq : 0,
			 .n = fds ? (uint32_t)a->n : 0 } };

	memcpy(out.of, a->of, a->n * sizeof(*a->of));
	proxy_send(all, &out, sizeof(out.m) + out.m.n * sizeof(*out.of), fds, out.m.n);
	for (size_t i = 0; fds && i < a->n; i++)
		fds[i] = -1;
}

static void net_fail(struct net *n, const struct err *err);

static void on_wanted(const struct asking *a, int *fds, const struct err *err)
{
	if (err)
		log_info("a name of a wildcard gets no address: %s", err->msg);
	hand_over(a->all, a, err ? NULL : fds);
}

static void on_missing(struct net *n, const struct asking *a, int *fds, const struct err *err)
{
	if (n->step != NET_SOCKETS || n->seq != a->seq)
		return;
	if (err) {
		net_fail(n, err);
		return;
	}
	for (size_t i = 0; i < a->n; i++)
		n->made[n->n_made++] = (struct sandbox_address){
			a->of[i].ip, (uint16_t)a->of[i].port, a->of[i].kind == NW_SOCKET_DNS_UDP
		};
	n->step = NET_HANDING;
	hand_over(n->all, a, fds);
	n->seq = n->all->last_seq;
}

static void on_sockets(void *arg, int *fds, size_t n_fds, const struct err *err)
{
	struct asking *a = arg;
	struct net *n = net_find(a->all, a->key);
	struct err e;

	if (!err && n_fds < a->n) {
		err_set(&e, ERR_LIMIT, "too many files are open");
		err = &e;
	}
	if (n && proxy_runs(a->all) && a->all->started_ms == a->started_ms) {
		if (a->wanted)
			on_wanted(a, fds, err);
		else
			on_missing(n, a, fds, err);
	}
	free(a);
}

/* a->of and a->n are filled in. Takes a over. */
static int ask_warden(const struct net *n, struct asking *a, struct err *e)
{
	struct sandbox_address at[NW_SOCKETS_MAX];

	static_assert((int)NW_SOCKETS_MAX <= (int)SANDBOX_SOCKETS_MAX, "one question is enough");
	a->all = n->all;
	a->key = n->key;
	a->started_ms = n->all->started_ms;
	for (size_t i = 0; i < a->n; i++)
		at[i] = (struct sandbox_address){ a->of[i].ip, (uint16_t)a->of[i].port,
						  a->of[i].kind == NW_SOCKET_DNS_UDP };
	if (sandbox_sockets_start(n->sb, at, a->n, on_sockets, a, e) == 0)
		return 0;
	free(a);
	return -1;
}

/* ---- the steps ----------------------------------------------------------------------------- */

static void net_finish(struct net *n, const struct err *err)
{
	net_cb on_done = n->on_done;

	n->step = NET_IDLE;
	n->goes_back = false;
	n->on_done = NULL;
	grant_fini(&n->before);
	if (on_done)
		on_done(n->arg, err);
	else if (err)
		log_warn("the network of sandbox %s: %s", sandbox_id(n->sb), err->msg);
}

static void send_rules(struct net *n)
{
	struct nets *all = n->all;
	size_t rules = n->now.n * sizeof(*n->now.rules);
	size_t http = n->now.n_http * sizeof(*n->now.http);
	size_t size = sizeof(struct nw_grant) + rules + http;
	struct nw_grant *m = calloc(1, size);
	const struct nw_drop drop = { { NW_DROP, ++all->last_seq }, n->key };

	n->step = NET_RULES;
	n->seq = all->last_seq;
	forget_sockets(n);
	if (!net_is_open(n)) /* then the proxy forgets them */
		n->untold = n->secrets != NULL;
	if (m && net_is_open(n)) {
		*m = (struct nw_grant){ .h = { NW_GRANT, n->seq },
					.key = n->key,
					.n_rules = (uint32_t)n->now.n,
					.n_http = (uint32_t)n->now.n_http };
		snprintf(m->id, sizeof(m->id), "%s", sandbox_id(n->sb));
		memcpy(m + 1, n->now.rules, rules);
		memcpy((char *)(m + 1) + rules, n->now.http, http);
		proxy_send(all, m, size, NULL, 0);
	} else {
		proxy_send(all, &drop, sizeof(drop), NULL, 0);
	}
	free(m);
}

static void go_back(struct net *n)
{
	grant_fini(&n->now);
	n->now = n->before;
	n->before = (struct grant){ .n = 0 };
	n->goes_back = true;
}

static void net_fail(struct net *n, const struct err *err)
{
	if (n->goes_back || !n->on_done) {
		net_finish(n, n->goes_back ? &n->why : err);
		return;
	}
	n->why = *err;
	go_back(n);
	send_rules(n);
}

/* The secrets, the next sockets, or the end. */
static void make_sockets(struct net *n)
{
	struct asking *a = NULL;
	struct err e = ERR_INIT;

	if (n->untold && net_is_open(n)) {
		n->step = NET_SECRETS;
		n->seq = ++n->all->last_seq;
		n->untold = false;
		secrets_send(n->all, n->key, n->seq, n->secrets, false);
		return;
	}
	a = calloc(1, sizeof(*a));
	if (!a) {
		err_set(&e, ERR_LIMIT, "out of memory");
		net_fail(n, &e);
		return;
	}
	a->n = missing_sockets(n, a->of);
	if (!a->n) {
		free(a);
		net_finish(n, n->goes_back ? &n->why : NULL);
		return;
	}
	n->step = NET_SOCKETS;
	a->seq = n->seq = ++n->all->last_seq;
	if (ask_warden(n, a, &e) < 0)
		net_fail(n, &e);
}

void nets_tell_all(struct nets *all)
{
	for (struct net *n = all->first; n; n = n->next) {
		n->n_made = 0;
		n->untold = n->secrets != NULL;
		if (net_is_open(n) || n->step != NET_IDLE)
			send_rules(n);
	}
}

/* Callbacks may end sandboxes, so the search begins anew after each. */
static struct net *find_waiting(const struct nets *all)
{
	struct net *n = all->first;

	while (n && (n->step == NET_IDLE || !n->on_done))
		n = n->next;
	return n;
}

void nets_fail_all(struct nets *all, const struct err *err)
{
	struct net *n;

	while ((n = find_waiting(all))) {
		if (!n->goes_back) {
			n->why = *err;
			go_back(n);
		}
		net_finish(n, &n->why);
	}
}

/* ---- what the proxy says ------------------------------------------------------------------- */

static void on_answer(struct nets *all, const struct nw_head *m)
{
	struct net *n = all->first;
	struct err err;

	while (n && (n->seq != m->seq ||
		     (n->step != NET_RULES && n->step != NET_SECRETS && n->step != NET_HANDING)))
		n = n->next;
	if (!n)
		return;
	if (m->type == NW_DONE) {
		make_sockets(n);
		return;
	}
	err = ((const struct nw_failed *)m)->err;
	err.msg[sizeof(err.msg) - 1] = '\0';
	if (n->step == NET_SECRETS && n->secrets) { /* rather none than those of before */
		secret_free(take_ptr(n->secrets));
		n->untold = true;
		if (!n->on_done) {
			log_warn("sandbox %s has no secrets: %s", sandbox_id(n->sb), err.msg);
			make_sockets(n);
			return;
		}
	}
	net_fail(n, &err);
}

/* A name of a wildcard needs sockets. */
static void on_want(struct nets *all, const struct nw_want *m)
{
	struct net *n = net_find(all, m->key);
	struct asking *a = n ? calloc(1, sizeof(*a)) : NULL;
	struct err e = ERR_INIT;

	if (!a)
		return; /* the proxy gives up after a while */
	a->wanted = true;
	a->seq = m->h.seq;
	for (uint32_t i = 0; i < m->n_ports; i++) {
		a->of[i] = (struct nw_socket){ NW_SOCKET_FLOW, m->ip, m->ports[i], "" };
		snprintf(a->of[i].name, sizeof(a->of->name), "%.*s", (int)sizeof(m->name) - 1,
			 m->name);
	}
	a->n = m->n_ports;
	if (m->ip <= NW_WILD_NET || m->ip >= NW_WILD_NET + NW_NET_SIZE - 1 || !m->n_ports) {
		a->n = 0;
		hand_over(all, a, NULL);
		free(a);
	} else if (ask_warden(n, a, &e) < 0) {
		log_info("a name of a wildcard gets no address: %s", e.msg);
		hand_over(all, &(struct asking){ .key = m->key, .seq = m->h.seq, .wanted = true },
			  NULL);
	}
}

static void on_flow(struct nets *all, const struct nw_flow *m)
{
	const struct net *n = net_find(all, m->key);
	struct nw_flow f = *m;

	f.host[sizeof(f.host) - 1] = '\0';
	f.secret[sizeof(f.secret) - 1] = '\0';
	f.method[sizeof(f.method) - 1] = '\0';
	f.path[sizeof(f.path) - 1] = '\0';
	f.http[sizeof(f.http) - 1] = '\0';
	if (n && n->on_flow)
		n->on_flow(n->watching, &f);
	else if (n && all->o.on_flow)
		all->o.on_flow(all->o.owner, n->of, &f);
}

static void on_ask(struct nets *all, const struct nw_ask *m)
{
	const struct net *n = net_find(all, m->key);

	if (n) /* else it has ended, and with it what waits */
		question_hear(all, n->of, m);
}

/* The proxy has strangers on both sides: the net must have this log-in. */
static void on_tokens(struct nets *all, const struct nw_tokens *m)
{
	autowipe struct buf body = BUF_INIT(2 * NW_TOKENS_MAX);
	const struct net *n = net_find(all, m->key);
	const struct str said = { (const char *)(m + 1), m->n };
	struct err e = ERR_INIT;
	bool begins = false;

	if (!memchr(m->name, 0, sizeof(m->name)) || !n || !all->o.on_tokens ||
	    !secrets_have_login(n->secrets, m->name, &begins))
		err_set(&e, ERR_DENIED, "the sandbox does not have this log-in");
	else if (buf_reserve(&body, body.max, &e) &&
		 all->o.on_tokens(all->o.owner, str_of(m->name), begins, said, &body, &e) == 0)
		e = (struct err)ERR_INIT;
	if (e.code)
		log_warn("tokens of a log-in are not kept: %s", e.msg);
	secrets_answer(all, m, buf_str(&body), e.code ? &e : NULL);
}

void nets_renew(struct nets *all, struct str name, const struct net_secret *tokens, size_t n,
		struct str access)
{
	char text[NW_SECRET_NAME_MAX];
	struct err e;
	bool begins;

	snprintf(text, sizeof(text), "%.*s", STR_ARG(name));
	for (struct net *to = all->first; to; to = to->next) {
		struct secret *packed = NULL;

		if (!secrets_have_login(to->secrets, text, &begins))
			continue;
		if (secrets_renew(to->secrets, name, tokens, n, access, &packed, &e) < 0) {
			log_warn("sandbox %s keeps its tokens: %s", sandbox_id(to->sb), e.msg);
			continue;
		}
		secret_free(to->secrets);
		to->secrets = packed;
		if (!to->untold && net_is_open(to) && proxy_runs(all))
			secrets_send(all, to->key, ++all->last_seq, packed, true);
	}
}

void nets_hear(struct nets *all, const struct nw_head *m)
{
	switch (m->type) {
	case NW_WANT:
		on_want(all, (const void *)m);
		break;
	case NW_FLOW:
		on_flow(all, (const void *)m);
		break;
	case NW_ASK:
		on_ask(all, (const void *)m);
		break;
	case NW_LEAVE:
		question_leave(all, (const void *)m);
		break;
	case NW_TOKENS:
		on_tokens(all, (const void *)m);
		break;
	default:
		on_answer(all, m);
	}
}

/* ---- for the hub --------------------------------------------------------------------------- */

struct net *net_new(struct nets *all, struct sandbox *sb, void *of, struct err *e)
{
	struct net *n = calloc(1, sizeof(*n));

	if (!n)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	n->all = all;
	n->key = ++all->last_key;
	n->sb = sandbox_ref(sb);
	n->of = of;
	n->next = all->first;
	all->first = n;
	return n;
}

void net_watch(struct net *n, void (*tell)(void *arg, const struct nw_flow *f), void *arg)
{
	n->on_flow = tell;
	n->watching = arg;
}

struct refusal {
	uv_timer_t timer;
	net_cb on_done;
	void *arg;
	struct err err;
};

static void refusal_free(uv_handle_t *h)
{
	free(h->data);
}

static void refusal_tell(uv_timer_t *timer)
{
	struct refusal *r = timer->data;

	r->on_done(r->arg, &r->err);
	uv_close((uv_handle_t *)timer, refusal_free);
}

static void net_refuse(const struct nets *all, net_cb on_done, void *arg, const struct err *err)
{
	struct refusal *r = calloc(1, sizeof(*r));

	if (!r)
		abort(); /* out of memory: no callback could report it */
	*r = (struct refusal){ .on_done = on_done, .arg = arg, .err = *err };
	uv_timer_init(all->loop, &r->timer);
	r->timer.data = r;
	uv_timer_start(&r->timer, refusal_tell, 0, 0);
}

void net_free(struct net *n)
{
	struct net **at;
	struct err e;

	if (!n)
		return;
	if (n->on_done) {
		err_set(&e, ERR_SANDBOX_NOT_FOUND, "sandbox %s has ended", sandbox_id(n->sb));
		net_refuse(n->all, n->on_done, n->arg, &e);
	}
	questions_drop(n->all, n->key);
	at = &n->all->first;
	while (*at != n)
		at = &(*at)->next;
	*at = n->next;
	if (proxy_runs(n->all)) {
		const struct nw_drop m = { { NW_DROP, ++n->all->last_seq }, n->key };

		proxy_send(n->all, &m, sizeof(m), NULL, 0);
	}
	grant_fini(&n->now);
	grant_fini(&n->before);
	secret_free(n->secrets);
	sandbox_unref(n->sb);
	free(n);
}

void net_grant_start(struct net *n, const struct net_grant *g, net_cb on_done, void *arg)
{
	struct err e = ERR_INIT;
	struct grant now;

	if (n->step != NET_IDLE)
		err_set(&e, ERR_CONFLICT, "the sandbox's network is being changed: try again");
	else if (g->n > NW_RULES_MAX || g->n_http > NW_HTTP_MAX)
		err_set(&e, ERR_LIMIT, "at most %d grants, with %d HTTP rules", NW_RULES_MAX,
			NW_HTTP_MAX);
	if (e.code || proxy_need(n->all, &e) < 0 || grant_copy(&now, g, &n->now, &e) < 0) {
		net_refuse(n->all, on_done, arg, &e);
		return;
	}
	n->before = n->now;
	n->now = now;
	n->on_done = on_done;
	n->arg = arg;
	n->step = NET_WAITING;
	if (proxy_runs(n->all))
		send_rules(n);
}

int net_bind(struct net *n, const struct net_secrets *s, struct err *e)
{
	struct secret *packed;

	if (secrets_pack(s, &packed, e) < 0)
		return -1;
	n->untold = n->untold || packed || n->secrets;
	secret_free(n->secrets);
	n->secrets = packed;
	if (n->step == NET_IDLE && n->untold && net_is_open(n) && proxy_runs(n->all))
		make_sockets(n);
	return 0;
}

/* ---- texts --------------------------------------------------------------------------------- */

static int find_service(const struct nets *all, struct str text, struct net_rule *ret,
			struct err *e)
{
	char printed[NET_RULE_TEXT];

	for (size_t i = 0; i < all->o.n_services; i++) {
		net_rule_print(&all->o.services[i], printed);
		if (str_is(text, printed)) {
			*ret = all->o.services[i];
			return 0;
		}
	}
	return err_set(e, ERR_INVALID, "there is no service %.*s here", STR_ARG(text));
}

/* A rule, or an HTTP rule of the last one. */
static int parse_word(const struct nets *all, struct str word, struct net_grant *g, struct err *e)
{
	if (str_starts(word, "=")) {
		if (g->n == 0 || g->n_http == NW_HTTP_MAX)
			return err_set(e, ERR_LIMIT, "at most %d HTTP rules", NW_HTTP_MAX);
		if (net_http_parse_word(word, &g->http[g->n_http], e) < 0)
			return -1;
		g->http[g->n_http++].rule = (uint32_t)(g->n - 1);
		return 0;
	}
	if (g->n == NW_RULES_MAX)
		return err_set(e, ERR_LIMIT, "at most %d grants", NW_RULES_MAX);
	if (net_is_service(word) ? find_service(all, word, &g->rules[g->n], e) < 0
				 : net_rule_parse(word, true, &g->rules[g->n], e) < 0)
		return -1;
	g->n++;
	return 0;
}

int net_grant_parse(const struct nets *all, struct str text, struct net_grant *ret, struct err *e)
{
	while (text.n) {
		const char *space = memchr(text.p, ' ', text.n);
		const struct str one = { text.p, space ? (size_t)(space - text.p) : text.n };

		if (parse_word(all, one, ret, e) < 0)
			return -1;
		text.p += one.n + (space != NULL);
		text.n -= one.n + (space != NULL);
	}
	return 0;
}
