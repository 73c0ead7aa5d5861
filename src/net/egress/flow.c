#include "net/egress/flow.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

enum { READ_BYTES = 16 * 1024, LINGER_MS = 2000, MOVED_BYTES = 64 * 1024 };

struct flow *flow_next(const struct flow *f)
{
	return f->next;
}

const char *flow_name(const struct flow *f)
{
	return f->host;
}

bool flow_has_http_rules(const struct flow *f)
{
	for (size_t i = 0; i < f->of->n_http; i++) {
		if ((int)f->of->http[i].rule == f->rule)
			return true;
	}
	return false;
}

void flow_set_state(struct flow *f, enum flow_state state)
{
	f->state = state;
	f->phase_ms = uv_now(&f->of->of->loop);
}

struct nw_flow flow_event(const struct flow *f, enum nw_flow_what what, enum nw_reason reason)
{
	struct nw_flow m = sandbox_event(
		f->of, what, f->via == VIA_ADDRESS ? NW_BY_ADDRESS : NW_BY_PROXY, reason);

	m.flow = f->id;
	m.up = f->up.bytes;
	m.down = f->down.bytes;
	m.ms = uv_now(&f->of->of->loop) - f->start_ms;
	m.rule = f->rule;
	m.port = f->port;
	m.addr = f->addr;
	memcpy(m.host, f->host, sizeof(m.host));
	return m;
}

/* ---- watching -------------------------------------------------------------------------------- */

static void on_client(uv_poll_t *poll, int status, int events);
static void on_server(uv_poll_t *poll, int status, int events);

static void side_watch(struct side *side, int events, uv_poll_cb cb)
{
	if (!side->poll || side->events == events)
		return;
	side->events = events;
	if (events)
		uv_poll_start(side->poll, events, cb);
	else
		uv_poll_stop(side->poll);
}

static bool wants_client(const struct flow *f)
{
	if (f->client_eof && f->state != FLOW_LINGER)
		return false;
	switch (f->state) {
	case FLOW_ASK:
		return !f->asked;
	case FLOW_LOOK:
		return f->speaks == SPEAKS_UNKNOWN ||
		       (f->speaks == SPEAKS_HTTP && f->requests == 0 && !f->in_body && !f->binds);
	case FLOW_HELLO:
		return false;
	case FLOW_HELLO_AGAIN:
		return true;
	case FLOW_HTTP:
		return f->up_state == RELAY_READ && f->up.held.n == 0 && !f->upgrade && !f->refused;
	case FLOW_BOUND:
		return flow_bound_wants_client(f);
	case FLOW_RAW:
		return f->up_state == RELAY_READ;
	case FLOW_LINGER:
		return true;
	}
	return false;
}

static bool wants_server(const struct flow *f)
{
	switch (f->state) {
	case FLOW_LOOK: /* it may be the one that speaks first */
		return f->speaks == SPEAKS_UNKNOWN && f->in.n == 0 && f->port != PORT_HTTP &&
		       f->port != PORT_HTTPS && !flow_has_http_rules(f);
	case FLOW_HELLO:
		return true;
	case FLOW_HELLO_AGAIN:
	case FLOW_HTTP:
	case FLOW_RAW:
		return f->down_state == RELAY_READ;
	case FLOW_BOUND:
		return flow_bound_wants_server(f);
	case FLOW_ASK:
	case FLOW_LINGER:
		break;
	}
	return false;
}

void flow_watch(struct flow *f)
{
	bool more = f->state == FLOW_BOUND && flow_bound_has_more(f);

	/* what a program says while it waits stays in its socket */
	side_watch(&f->client,
		   (f->asks ? UV_DISCONNECT : 0) | (wants_client(f) ? UV_READABLE : 0) |
			   (f->down_state == RELAY_WRITE || more ? UV_WRITABLE : 0),
		   on_client);
	side_watch(&f->server,
		   (wants_server(f) ? UV_READABLE : 0) |
			   (f->up_state == RELAY_WRITE ? UV_WRITABLE : 0),
		   on_server);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void side_close(struct side *side, bool reset)
{
	poll_drop(&side->poll);
	if (side->fd < 0)
		return;
	if (reset)
		fd_reset(side->fd);
	else
		close(side->fd);
	side->fd = -1;
}

/* With the bytes that have not been told. */
static void tell_moved(struct flow *f, enum nw_flow_what what, enum nw_reason reason)
{
	struct nw_flow m = flow_event(f, what, reason);

	m.new_up = m.up - f->told_up;
	m.new_down = m.down - f->told_down;
	if (!link_tell(f->of->of, &m))
		return;
	f->told_up = m.up;
	f->told_down = m.down;
}

void flow_end(struct flow *f, enum nw_reason reason, bool reset)
{
	struct egress *g = f->of->of;

	if (f->opened || !f->told)
		tell_moved(f, NW_FLOW_CLOSED, reason);
	if (f->asks) {
		const struct nw_leave m = { { NW_LEAVE, f->asks }, f->of->key };

		link_send(g, &m, sizeof(m));
	}
	dial_cancel(f->dial);
	ech_cancel(f->ech);
	flow_bound_free(f);
	relay_fini(&f->up, &g->pipes);
	relay_fini(&f->down, &g->pipes);
	side_close(&f->client, reset);
	side_close(&f->server, reset);
	buf_fini(&f->in);
	buf_fini(&f->answer);
	buf_fini(&f->page);
	*f->at = f->next;
	if (f->next)
		f->next->at = f->at;
	f->of->n_flows--;
	g->n_flows--;
	free(f);
}

void flow_close_server(struct flow *f)
{
	side_close(&f->server, false);
	f->server.events = 0;
	f->up_state = RELAY_READ;
}

bool flow_is_bound(const struct flow *f)
{
	return f->binds;
}

void flow_close(struct flow *f, enum nw_reason reason)
{
	flow_end(f, reason, true);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Runs one direction within the sandbox's rate; most: of this run, beside. */
static enum relay_state flow_run(struct flow *f, struct relay *r, uint64_t *most)
{
	struct sandbox *s = f->of;
	struct egress *g = s->of;
	uint64_t now = uv_now(&g->loop), has = UINT64_MAX, left;
	enum relay_state state;

	if (g->limits.bytes_per_s)
		has = bucket_has(&s->bytes, now);
	has = has < *most ? has : *most;
	left = has;
	state = relay_run(r, &g->pipes, &left);
	if (left < has)
		f->last_ms = now;
	*most -= has - left;
	if (!g->limits.bytes_per_s)
		return state;
	bucket_take(&s->bytes, has - left);
	if (state == RELAY_PAUSED && *most > 0) {
		s->paused = true;
		egress_pause(g);
	}
	return state;
}

static bool ended(struct flow *f)
{
	if (!f->up.ended || !f->down.ended)
		return false;
	flow_end(f, NW_REASON_NONE, false);
	return true;
}

static bool flow_broken(struct flow *f)
{
	flow_end(f, NW_REASON_PEER, true);
	return false;
}

/* A body of known length passes as anything does, to its last byte. */
static bool pass_body(struct flow *f)
{
	f->up_state = flow_run(f, &f->up, &f->body.left);
	if (f->up_state == RELAY_BROKEN)
		return flow_broken(f);
	if (f->up.ended) /* in the midst of it */
		return !ended(f);
	if (f->body.left == 0 && f->up_state != RELAY_WRITE) {
		f->in_body = false;
		f->up_state = RELAY_READ;
	}
	return true;
}

bool flow_relay_up(struct flow *f)
{
	uint64_t most = UINT64_MAX, was;

	if (f->server.fd < 0)
		return true;
	if (f->state == FLOW_BOUND)
		return flow_bound_run(f);
	if (f->state == FLOW_RAW) {
		f->up_state = flow_run(f, &f->up, &most);
		return f->up_state == RELAY_BROKEN ? flow_broken(f) : !ended(f);
	}
	if (f->state == FLOW_HTTP && f->in_body && f->body.kind == BODY_LENGTH && f->in.n == 0)
		return pass_body(f);
	was = f->up.bytes;
	f->up_state = relay_flush(&f->up);
	bucket_take(&f->of->bytes, f->up.bytes - was);
	return f->up_state == RELAY_BROKEN ? flow_broken(f) : true;
}

bool flow_end_up(struct flow *f)
{
	f->up.ended = true;
	shutdown(f->server.fd, SHUT_WR);
	return !ended(f);
}

/* The server has ended: the program learns why its request was refused. */
static bool show_page(struct flow *f)
{
	struct err e;

	buf_fini(&f->down.held);
	f->down.ended = false;
	if (buf_add(&f->down.held, f->page.p, f->page.n, &e) < 0)
		return flow_broken(f);
	flow_set_state(f, FLOW_LINGER);
	side_close(&f->server, true);
	return flow_linger(f);
}

/* The server's bytes are looked at first, or there is no server yet. */
static bool down_is_held(const struct flow *f)
{
	switch (f->state) {
	case FLOW_HELLO_AGAIN:
	case FLOW_RAW:
		return false;
	case FLOW_HTTP:
		return f->upgrade || f->says_close;
	case FLOW_ASK:
	case FLOW_LOOK:
	case FLOW_HELLO:
	case FLOW_BOUND:
	case FLOW_LINGER:
		break;
	}
	return true;
}

bool flow_relay_down(struct flow *f)
{
	uint64_t most = UINT64_MAX;

	if (f->state == FLOW_BOUND)
		return flow_bound_run(f);
	if (down_is_held(f)) {
		f->down_state = relay_flush(&f->down);
		return f->down_state == RELAY_BROKEN ? flow_broken(f) : true;
	}
	f->down.keep_open = f->refused;
	f->down_state = flow_run(f, &f->down, &most);
	if (f->down_state == RELAY_BROKEN)
		return flow_broken(f);
	if (f->down_state == RELAY_ENDED && f->refused)
		return show_page(f);
	return !ended(f);
}

/* Reads into `in` what there is room for. False: the flow is gone. */
static bool read_client(struct flow *f)
{
	struct err e;
	size_t room = f->in.max - f->in.n;
	char *to = buf_reserve(&f->in, room < READ_BYTES ? room : READ_BYTES, &e);
	ssize_t n = to && room > 0
			  ? recv(f->client.fd, to, room < READ_BYTES ? room : READ_BYTES, 0)
			  : -2;

	if (n == -2)
		return flow_deny(f, NW_REASON_LIMIT_HOST, NULL);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n < 0)
		return flow_broken(f);
	f->client_eof = n == 0;
	buf_advance(&f->in, (size_t)n);
	f->last_ms = uv_now(&f->of->of->loop);
	return true;
}

static bool client_readable(struct flow *f)
{
	if (f->state == FLOW_RAW || f->state == FLOW_BOUND)
		return flow_relay_up(f);
	if (f->state == FLOW_LINGER)
		return flow_linger(f);
	/* the rest of a body is not read into a buffer */
	if (f->state == FLOW_HTTP && f->in_body && f->body.kind == BODY_LENGTH && f->in.n == 0 &&
	    f->up.held.n == 0) {
		if (!flow_relay_up(f))
			return false;
		if (f->in_body || f->up_state != RELAY_READ)
			return true;
	}
	if (!read_client(f))
		return false;
	switch (f->state) {
	case FLOW_ASK:
		return flow_ask(f);
	case FLOW_LOOK:
		return f->speaks == SPEAKS_HTTP ? flow_http(f) : flow_look(f);
	case FLOW_HELLO_AGAIN:
		return flow_look_again(f);
	case FLOW_HTTP:
		return flow_http(f);
	case FLOW_HELLO:
	case FLOW_BOUND:
	case FLOW_RAW:
	case FLOW_LINGER:
		break;
	}
	return true;
}

static void on_client(uv_poll_t *poll, int status, int events)
{
	struct flow *f = poll->data;

	if (status < 0 || (f->asks && events & UV_DISCONNECT)) {
		flow_broken(f);
		return;
	}
	if (events & UV_WRITABLE) {
		bool goes_on = f->state == FLOW_LINGER ? flow_linger(f) : flow_relay_down(f);

		if (!goes_on)
			return;
	}
	if (events & UV_READABLE && wants_client(f) && !client_readable(f))
		return;
	flow_watch(f);
}

static bool server_readable(struct flow *f)
{
	switch (f->state) {
	case FLOW_LOOK:
		/* it speaks first, before there was anything to check */
		f->speaks = SPEAKS_RAW;
		return flow_passed(f);
	case FLOW_HELLO:
		return flow_look_server(f);
	case FLOW_HTTP:
		return f->upgrade || f->says_close ? flow_http_answer(f) : flow_relay_down(f);
	case FLOW_HELLO_AGAIN:
	case FLOW_BOUND:
	case FLOW_RAW:
		return flow_relay_down(f);
	case FLOW_ASK:
	case FLOW_LINGER:
		break;
	}
	return true;
}

static void on_server(uv_poll_t *poll, int status, int events)
{
	struct flow *f = poll->data;

	if (status < 0) {
		flow_broken(f);
		return;
	}
	if (events & UV_WRITABLE) {
		if (!flow_relay_up(f))
			return;
		/* there is room for what waits in the buffer */
		if (f->state == FLOW_HTTP && f->up_state == RELAY_READ && !flow_http(f))
			return;
	}
	if (events & UV_READABLE && wants_server(f) && !server_readable(f))
		return;
	flow_watch(f);
}

/* ---- the host -------------------------------------------------------------------------------- */

static void tune(int fd)
{
	const int on = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

/* Both the checks and the dial are done. */
static bool flow_begin(struct flow *f)
{
	struct nw_flow m = flow_event(f, NW_FLOW_OPENED, NW_REASON_NONE);
	struct err e;

	f->opened = true;
	link_tell(f->of->of, &m);
	if (f->binds)
		return flow_bound_begin(f);
	switch (f->speaks) {
	case SPEAKS_TLS:
		flow_set_state(f, FLOW_HELLO);
		return flow_relay_up(f);
	case SPEAKS_HTTP:
		flow_set_state(f, FLOW_HTTP);
		return flow_relay_up(f) && flow_http(f);
	case SPEAKS_RAW:
	case SPEAKS_UNKNOWN:
		break;
	}
	flow_set_state(f, FLOW_RAW);
	if (buf_add(&f->up.held, f->in.p, f->in.n, &e) < 0)
		return flow_broken(f);
	buf_fini(&f->in);
	f->up.eof = f->client_eof;
	return flow_relay_up(f) && flow_relay_down(f);
}

static void on_ech(void *owner, bool hides)
{
	struct flow *f = owner;

	f->ech = NULL;
	f->hidden = HIDDEN_DUMMY;
	if (hides)
		flow_deny(f, NW_REASON_ECH, NULL);
	else if (f->server.fd < 0)
		flow_dial(f);
	else if (flow_passed(f))
		flow_watch(f);
}

/* The server that the flow is connected to, and no other. */
static struct dial_to flow_server(const struct flow *f)
{
	return (struct dial_to){ .host = f->addr.family ? "" : f->host,
				 .port = f->port,
				 .rule = f->rule,
				 .addr = f->addr };
}

/* A small server may take one connection at a time: that of the flow gives way to the question. */
static bool flow_ask_ech(struct flow *f)
{
	const struct dial_to to = flow_server(f);

	if (f->ech)
		return true;
	f->ech = ech_start(f->of, &to, f->host, on_ech, f);
	if (!f->ech)
		return flow_deny(f, NW_REASON_LIMIT_HOST, NULL);
	if (ech_dials(f->ech)) {
		side_close(&f->server, false);
		f->server.events = 0;
	}
	return true;
}

bool flow_passed(struct flow *f)
{
	if (f->failed != NW_REASON_NONE)
		return flow_deny(f, f->failed, NULL);
	if (f->server.fd < 0 || f->opened)
		return true;
	return f->hidden == HIDDEN_MAYBE ? flow_ask_ech(f) : flow_begin(f);
}

static void on_dialled(void *owner, int fd, const struct net_addr *addr, enum nw_reason reason)
{
	struct flow *f = owner;

	f->dial = NULL;
	f->addr = *addr;
	f->server.fd = fd;
	/* HTTP gets a readable answer, so its first bytes are waited for. */
	if (fd < 0 && f->state == FLOW_LOOK && f->speaks == SPEAKS_UNKNOWN &&
	    f->port == PORT_HTTP && flow_is_checked(f)) {
		f->failed = reason;
		return;
	}
	if (fd < 0) {
		flow_deny(f, reason, NULL);
		return;
	}
	tune(fd);
	f->up.to = f->down.from = fd;
	f->server.poll = poll_new(&f->of->of->loop, fd, f);
	if (!f->server.poll) {
		flow_deny(f, NW_REASON_LIMIT_HOST, NULL);
		return;
	}
	if (f->state == FLOW_ASK && !flow_ask(f))
		return;
	if (f->state == FLOW_BOUND && !flow_bound_dialled(f))
		return;
	if (f->state == FLOW_LOOK && f->speaks != SPEAKS_UNKNOWN &&
	    (f->speaks != SPEAKS_HTTP || f->requests > 0 || f->binds) && !flow_passed(f))
		return;
	flow_watch(f);
}

bool flow_dial(struct flow *f)
{
	const struct dial_to to = f->hidden == HIDDEN_DUMMY
					? flow_server(f)
					: (struct dial_to){ .host = f->by_addr ? "" : f->host,
							    .port = f->port,
							    .rule = f->rule,
							    .addr = f->addr };

	f->dial = dial_start(f->of, &to, on_dialled, f);
	return f->dial ? true : flow_deny(f, NW_REASON_LIMIT_HOST, NULL);
}

/* ---- the beginning --------------------------------------------------------------------------- */

static struct flow *flow_make(struct sandbox *s, int fd)
{
	struct flow *f = mem_zalloc(sizeof(*f));
	struct egress *g = s->of;

	if (f)
		f->client.poll = poll_new(&g->loop, fd, f);
	if (!f || !f->client.poll) {
		free(f);
		return NULL;
	}
	f->of = s;
	f->id = ++g->last_flow;
	f->rule = -1;
	f->client.fd = fd;
	f->server.fd = -1;
	f->start_ms = f->phase_ms = f->last_ms = uv_now(&g->loop);
	f->in = BUF_INIT(g->limits.head_bytes > HELD_HIGH ? g->limits.head_bytes : HELD_HIGH);
	f->answer = BUF_INIT(HELD_HIGH);
	f->page = BUF_INIT(HELD_HIGH);
	relay_init(&f->up, fd, -1, HELD_MAX + 2 * f->in.max);
	relay_init(&f->down, -1, fd, HELD_MAX + f->answer.max);
	f->next = s->flows;
	f->at = &s->flows;
	if (f->next)
		f->next->at = &f->next;
	s->flows = f;
	s->n_flows++;
	g->n_flows++;
	tune(fd);
	egress_wake(g);
	return f;
}

void flow_new(struct sandbox *s, int fd, const char *name, uint16_t port)
{
	struct flow *f = flow_make(s, fd);

	if (!f) {
		fd_reset(fd);
		return;
	}
	if (!name) {
		f->via = VIA_PROXY;
		flow_watch(f);
		return;
	}
	f->state = FLOW_LOOK;
	f->port = port;
	memcpy(f->host, name, strlen(name) + 1);
	f->by_addr = net_addr_parse(str_of(name), &f->addr);
	f->rule = f->by_addr ? net_rules_find_addr(s->rules, s->n_rules, &f->addr, port)
			     : net_rules_find(s->rules, s->n_rules, name, port);
	if (f->rule < 0 || (f->by_addr && !dial_may(s, &f->addr, port, NULL))) {
		flow_deny(f, NW_REASON_NOT_GRANTED, NULL);
		return;
	}
	if (!flow_is_checked(f) && !flow_has_http_rules(f))
		f->speaks = SPEAKS_RAW;
	if (!flow_dial(f))
		return;
	/* most clients have sent something by now */
	if (f->speaks != SPEAKS_UNKNOWN || client_readable(f))
		flow_watch(f);
}

/* ---- changes --------------------------------------------------------------------------------- */

/* Or will, once the host is connected. */
static bool passes_unseen(const struct flow *f)
{
	if (f->binds || f->state == FLOW_HTTP)
		return false;
	return f->opened || f->speaks == SPEAKS_TLS || f->speaks == SPEAKS_RAW;
}

void flow_check_again(struct flow *f, const struct net_rule *old)
{
	struct sandbox *s = f->of;
	int was = f->rule, rule;

	if (f->state == FLOW_LINGER)
		f->rule = -1; /* it has no more use for one */
	if (f->rule < 0)
		return;
	rule = f->by_addr ? net_rules_find_addr(s->rules, s->n_rules, &f->addr, f->port)
			  : net_rules_find(s->rules, s->n_rules, f->host, f->port);
	f->rule = rule;
	if (rule < 0 ||
	    (s->rules[rule].kind == NET_RULE_SERVICE &&
	     !net_rule_same(&s->rules[rule], &old[was])) ||
	    (f->server.fd >= 0 && f->addr.family && s->rules[rule].kind != NET_RULE_SERVICE &&
	     !dial_may(s, &f->addr, f->port, f->by_addr ? NULL : f->host)) ||
	    (flow_has_http_rules(f) && passes_unseen(f))) {
		if (!f->opened)
			f->told = true;
		flow_end(f, NW_REASON_REVOKED, true);
	}
}

void flow_answered(struct sandbox *s, const struct nw_verdict *m)
{
	struct flow *f = s->flows;

	while (f && f->asks != m->ask)
		f = f->next;
	if (!f)
		return;
	f->asks = 0;
	f->phase_ms = f->last_ms = uv_now(&s->of->loop);
	f->verdict = m->allow ? VERDICT_ALLOWED : VERDICT_DENIED;
	snprintf(f->why, sizeof(f->why), "%s", m->why);
	flow_bound_answered(f);
	if (m->allow ? flow_dial(f) : flow_bound_run(f))
		flow_watch(f);
}

void flow_refill(struct flow *f)
{
	if (f->up_state == RELAY_PAUSED && !flow_relay_up(f))
		return;
	if (f->down_state == RELAY_PAUSED && !flow_relay_down(f))
		return;
	flow_watch(f);
}

static bool is_in_time(const struct flow *f, uint64_t now)
{
	const struct nw_limits *l = &f->of->of->limits;
	uint64_t phase = now - f->phase_ms;
	bool waits_for_any = f->server.fd >= 0 && f->in.n == 0 && f->port != PORT_HTTP &&
			     f->port != PORT_HTTPS;

	if (f->asks) /* the hub knows the deadline */
		return true;
	if (f->state == FLOW_LINGER)
		return phase < LINGER_MS;
	if (f->state == FLOW_RAW || f->state == FLOW_HTTP ||
	    (f->state == FLOW_BOUND && flow_bound_is_ready(f)) ||
	    (f->state == FLOW_LOOK && waits_for_any))
		return now - f->last_ms < l->idle_ms;
	return phase < l->handshake_ms;
}

void flow_sweep(struct flow *f, uint64_t now_ms)
{
	if (f->dial)
		dial_sweep(f->dial, now_ms);
	/* a budget must not wait for the end of a connection */
	if (f->opened && (f->up.bytes - f->told_up >= MOVED_BYTES ||
			  f->down.bytes - f->told_down >= MOVED_BYTES))
		tell_moved(f, NW_FLOW_MOVED, NW_REASON_NONE);
	if (f->refused && f->state == FLOW_HTTP && now_ms - f->phase_ms >= LINGER_MS) {
		if (show_page(f))
			flow_watch(f);
		return;
	}
	if (flow_tokens_wait(f)) {
		if (flow_tokens_go_on(f))
			flow_watch(f);
		return;
	}
	if (is_in_time(f, now_ms))
		return;
	if (f->state == FLOW_RAW || f->state == FLOW_HTTP ||
	    (f->state == FLOW_BOUND && flow_bound_is_ready(f)))
		flow_end(f, NW_REASON_IDLE, true);
	else if (f->state == FLOW_LINGER)
		flow_end(f, NW_REASON_NONE, true);
	else
		flow_deny(f,
			  f->dial     ? NW_REASON_DIAL
			  : f->failed ? f->failed
				      : NW_REASON_SLOW,
			  NULL);
}
