/*
 * HTTP in plain text: every request of a connection is for the granted host, whatever came before.
 * Requests are written anew from what was understood; answers pass as they are.
 */
#include "net/egress/flow.h"

#include <errno.h>
#include <sys/socket.h>

static bool check_host(struct flow *f, const struct request *r)
{
	char host[NET_HOST_MAX];
	char detail[NET_HOST_MAX + 8];

	if (f->by_addr)
		return true;
	if (net_host_read(r->host, host) && strcmp(host, f->host) == 0 &&
	    (!r->port || r->port == f->port))
		return true;
	snprintf(detail, sizeof(detail), "%.*s", STR_CUT(r->host, NET_HOST_MAX));
	return flow_deny(f, NW_REASON_HOST, detail);
}

static const char *why_denied(const struct request *r, const struct net_http_decision *d)
{
	return r->overrides ? "a field of it may name another method or path"
	     : d->odd	    ? "servers could read the path in several ways"
	     : d->found < 0 ? "no rule of the grant matches"
			    : "by the rule ";
}

static enum flow_may deny_by_rule(struct flow *f, const struct request *r,
				  const struct net_http_decision *d, enum nw_reason reason,
				  const char *why)
{
	struct nw_flow m = flow_event(f, NW_FLOW_DENIED, reason);
	char detail[NW_WHY_MAX + NET_HTTP_TEXT + 256];

	snprintf(m.method, sizeof(m.method), "%.*s", STR_ARG(r->method));
	snprintf(m.path, sizeof(m.path), "%.*s", STR_ARG(r->path));
	if (d->found >= 0 && !r->overrides)
		net_http_print(&f->of->http[d->found], m.http);
	link_tell(f->of->of, &m);
	snprintf(detail, sizeof(detail), "%s %.100s: %s%s", m.method, m.path,
		 why ? why : why_denied(r, d), why ? "" : m.http);
	flow_refuse(f, reason, detail);
	return FLOW_GONE;
}

/* Asks a person. Only a connection whose answers are followed can wait between two requests. */
static enum flow_may ask_person(struct flow *f, const struct request *r,
				const struct net_http_decision *d)
{
	struct nw_ask m = { .h = { .type = NW_ASK }, .key = f->of->key, .port = f->port };

	if (f->state != FLOW_BOUND)
		return deny_by_rule(f, r, d, NW_REASON_ASKED,
				    "the rule is newer than the connection, try again");
	if (r->target.n >= sizeof(m.target))
		return deny_by_rule(f, r, d, NW_REASON_ASKED,
				    "its URL is too long to be shown to a person");
	if (!++f->of->of->last_ask)
		f->of->of->last_ask = 1;
	m.h.seq = f->asks = f->of->of->last_ask;
	memcpy(m.host, f->host, sizeof(m.host));
	snprintf(m.method, sizeof(m.method), "%.*s", STR_ARG(r->method));
	snprintf(m.target, sizeof(m.target), "%.*s", STR_ARG(r->target));
	net_http_print(&f->of->http[d->found], m.http);
	link_send(f->of->of, &m, sizeof(m));
	return FLOW_WAITS;
}

static enum flow_may check_rules(struct flow *f, const struct request *r)
{
	const struct net_http_decision d = net_http_decide(f->of->http, f->of->n_http, f->rule,
							   r->method, r->path);

	if (f->verdict == VERDICT_DENIED)
		return deny_by_rule(f, r, &d, NW_REASON_ASKED, f->why);
	if (!d.any)
		return FLOW_MAY;
	if (r->overrides || d.then == NET_HTTP_DENY)
		return deny_by_rule(f, r, &d, NW_REASON_METHOD, NULL);
	if (d.then == NET_HTTP_ASK && f->verdict != VERDICT_ALLOWED)
		return ask_person(f, r, &d);
	return FLOW_MAY;
}

enum flow_may flow_may_ask(struct flow *f, const struct request *r)
{
	if (r->form == REQUEST_CONNECT) {
		flow_deny(f, NW_REASON_CONNECT, NULL);
		return FLOW_GONE;
	}
	return check_host(f, r) ? check_rules(f, r) : FLOW_GONE;
}

static bool take_request(struct flow *f, const struct request *r)
{
	bool upgrade = r->websocket && f->requests == 0 && r->body.kind == BODY_NONE;
	bool once = f->via == VIA_HTTP && !upgrade;
	struct err e;

	if (flow_may_ask(f, r) != FLOW_MAY)
		return false;
	flow_note_placeholder(f, (struct str){ f->in.p, r->n });
	if (request_write(r, upgrade, once, NULL, &f->up.held, &e) < 0)
		return flow_deny(f, NW_REASON_LIMIT_HOST, NULL);
	f->requests++;
	f->body = r->body;
	f->in_body = r->body.kind != BODY_NONE;
	/* a proxy's client may have the next one for another host: it needs a new connection */
	f->last_request = f->says_close = once;
	f->upgrade = upgrade;
	f->scanned = 0;
	buf_drop(&f->in, r->n);
	return true;
}

static bool take_body(struct flow *f)
{
	bool end = false;
	ssize_t n = body_take(&f->body, buf_str(&f->in), &end);
	struct err e;

	if (n < 0)
		return flow_deny(f, NW_REASON_BAD_HTTP, "the chunks of the body are malformed");
	if (buf_add(&f->up.held, f->in.p, (size_t)n, &e) < 0)
		return flow_deny(f, NW_REASON_LIMIT_HOST, NULL);
	buf_drop(&f->in, (size_t)n);
	f->in_body = !end;
	return true;
}

/* Takes from `in` what is whole and may pass. */
static bool take_all(struct flow *f)
{
	while (f->in.n > 0 && f->up.held.n < HELD_HIGH && !f->refused) {
		struct request r;
		const char *why;

		if (f->in_body) {
			if (!take_body(f))
				return false;
			continue;
		}
		if (f->upgrade)
			return true;
		if (f->last_request) {
			flow_end(f, NW_REASON_NONE, true); /* it was told */
			return false;
		}
		switch (request_read(buf_str(&f->in), &f->scanned, &r, &why)) {
		case REQUEST_MORE:
			if (f->client_eof)
				return flow_deny(f, NW_REASON_BAD_HTTP, "the head has no end");
			if (f->in.n < f->in.max)
				return true;
			return flow_deny(f, NW_REASON_BAD_HTTP, "the head is too large");
		case REQUEST_BAD:
			return flow_deny(f, NW_REASON_BAD_HTTP, why);
		case REQUEST_DONE:
			if (!take_request(f, &r))
				return false;
			break;
		}
	}
	return true;
}

bool flow_http(struct flow *f)
{
	size_t had;

	do {
		had = f->in.n;
		if (!take_all(f))
			return false;
		if (f->state == FLOW_LOOK)
			return f->requests > 0 ? flow_passed(f) : true;
		if (!flow_relay_up(f))
			return false;
	} while (f->in.n > 0 && f->in.n < had && f->up_state == RELAY_READ);
	if (f->up_state == RELAY_READ && (f->refused || (f->client_eof && !f->upgrade)) &&
	    !f->up.ended)
		return flow_end_up(f);
	return true;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Hands the first n bytes of the answer to the client. */
static bool hand_down(struct flow *f, size_t n)
{
	struct err e;

	if (buf_add(&f->down.held, f->answer.p, n, &e) < 0) {
		flow_end(f, NW_REASON_LIMIT_HOST, true);
		return false;
	}
	buf_drop(&f->answer, n);
	return true;
}

static bool say_close(struct flow *f, size_t head)
{
	struct err e;

	if (response_write_close((struct str){ f->answer.p, head }, &f->down.held, &e) < 0) {
		flow_end(f, NW_REASON_LIMIT_HOST, true);
		return false;
	}
	buf_drop(&f->answer, head);
	return true;
}

static bool switch_to_raw(struct flow *f)
{
	struct err e;

	f->upgrade = false;
	flow_set_state(f, FLOW_RAW);
	if (buf_add(&f->up.held, f->in.p, f->in.n, &e) < 0) {
		flow_end(f, NW_REASON_LIMIT_HOST, true);
		return false;
	}
	buf_fini(&f->in);
	f->up.eof = f->client_eof;
	return flow_relay_down(f) && flow_relay_up(f);
}

bool flow_http_answer(struct flow *f)
{
	struct err e;
	char *to = buf_reserve(&f->answer, HELD_HIGH - f->answer.n, &e);
	ssize_t n = to && f->answer.n < HELD_HIGH
			  ? recv(f->server.fd, to, HELD_HIGH - f->answer.n, 0)
			  : 0;
	int status = 0;
	size_t head;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n < 0) {
		flow_end(f, NW_REASON_PEER, true);
		return false;
	}
	buf_advance(&f->answer, (size_t)n);
	f->last_ms = uv_now(&f->of->of->loop);
	/* interim answers first */
	while ((status = response_status(buf_str(&f->answer), &head)) >= 100 && status < 200 &&
	       status != 101) {
		if (!hand_down(f, head))
			return false;
	}
	if (status == 0 && n > 0)
		return flow_relay_down(f);
	if (f->says_close && status > 0 && !say_close(f, head))
		return false;
	f->says_close = false;
	if (!hand_down(f, f->answer.n))
		return false;
	f->down.eof = n == 0;
	if (status == 101)
		return switch_to_raw(f);
	f->upgrade = false; /* what the client says next is a request */
	return flow_relay_down(f) && flow_http(f);
}
