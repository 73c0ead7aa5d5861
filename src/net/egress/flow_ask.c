/* The explicit proxy, at 127.0.0.1:3128 of a sandbox: HTTP with CONNECT or http:// URLs, or SOCKS 5
 * with names, as the first byte says. What it connects to is checked as all else is. */
#include "net/egress/flow.h"

#include <sys/socket.h>

#include "net/egress/socks.h"

static bool flow_ask_say(struct flow *f, const void *bytes, size_t n)
{
	struct err e;

	if (buf_add(&f->down.held, bytes, n, &e) < 0) {
		flow_end(f, NW_REASON_LIMIT_HOST, true);
		return false;
	}
	f->down_state = relay_flush(&f->down);
	if (f->down_state != RELAY_BROKEN)
		return true;
	flow_end(f, NW_REASON_PEER, true);
	return false;
}

/* Answers bytes that are no request. */
static bool flow_ask_refuse(struct flow *f, const void *bytes, size_t n)
{
	struct err e;

	f->via = VIA_PROXY;
	(void)!buf_add(&f->down.held, bytes, n, &e);
	return flow_deny(f, NW_REASON_BAD_PROXY, NULL);
}

/* For events and answers: what was asked for, whatever it is. */
static void note_host(struct flow *f, struct str host, uint16_t port)
{
	size_t n = host.n < NET_HOST_MAX - 1 ? host.n : NET_HOST_MAX - 1;

	for (size_t i = 0; i < n; i++)
		f->host[i] = host.p[i] > 0x20 && host.p[i] < 0x7f ? host.p[i] : '?';
	f->host[n] = '\0';
	f->port = port;
}

static bool ask_for_addr(struct flow *f, const struct net_addr *a)
{
	struct sandbox *s = f->of;

	f->by_addr = true;
	f->addr = *a;
	net_addr_print(a, f->host);
	f->rule = net_rules_find_addr(s->rules, s->n_rules, a, f->port);
	if (f->rule < 0)
		return flow_deny(f, NW_REASON_LITERAL, net_class_text(net_addr_class(a)));
	if (!dial_may(s, a, f->port, NULL)) {
		f->rule = -1;
		return flow_deny(f, NW_REASON_ADDRESS, NULL);
	}
	return flow_dial(f);
}

static bool ask_for(struct flow *f, struct str host, uint16_t port)
{
	struct sandbox *s = f->of;
	struct net_addr a;

	f->asked = true;
	note_host(f, host, port);
	if (net_addr_parse(host, &a))
		return ask_for_addr(f, &a);
	if (!net_host_read(host, f->host))
		return flow_deny(f, NW_REASON_NOT_GRANTED, "that is no host name");
	f->rule = net_rules_find(s->rules, s->n_rules, f->host, port);
	if (f->rule < 0)
		return flow_deny(f, NW_REASON_NOT_GRANTED, NULL);
	return flow_dial(f);
}

static bool ask_http(struct flow *f)
{
	struct request r;
	const char *why;
	bool connects;

	f->via = VIA_CONNECT;
	switch (request_read(buf_str(&f->in), &f->scanned, &r, &why)) {
	case REQUEST_MORE:
		if (f->in.n < f->in.max && !f->client_eof)
			return true;
		return flow_deny(f, NW_REASON_BAD_HTTP, "the head is too large or has no end");
	case REQUEST_BAD:
		return flow_deny(f, NW_REASON_BAD_HTTP, why);
	case REQUEST_DONE:
		break;
	}
	f->scanned = 0;
	if (r.form == REQUEST_ORIGIN)
		return flow_deny(f, NW_REASON_BAD_PROXY,
				 "this is a proxy: use CONNECT, or an http:// URL");
	connects = r.form == REQUEST_CONNECT;
	if (!connects) {
		f->via = VIA_HTTP;
		f->speaks = SPEAKS_HTTP;
	}
	if (!ask_for(f, r.host, r.port ? r.port : PORT_HTTP))
		return false;
	if (connects) {
		buf_drop(&f->in, r.n);
		return true;
	}
	flow_set_state(f, FLOW_LOOK); /* the same bytes are its first request */
	return flow_binds(f, false) ? flow_passed(f) : flow_http(f);
}

static bool greet_socks(struct flow *f)
{
	uint8_t method[SOCKS_METHOD_BYTES];
	size_t n;

	switch (socks_read_methods(buf_str(&f->in), &n, method)) {
	case SOCKS_MORE:
		return true;
	case SOCKS_BAD:
		return flow_ask_refuse(f, method, sizeof(method));
	case SOCKS_DONE:
		break;
	}
	f->greeted = true;
	buf_drop(&f->in, n);
	return flow_ask_say(f, method, sizeof(method));
}

static bool ask_socks(struct flow *f)
{
	struct socks_request r = { .n = 0 };
	uint8_t reply[SOCKS_REPLY_BYTES];

	f->via = VIA_SOCKS;
	if (!f->greeted) {
		if (!greet_socks(f))
			return false;
		if (!f->greeted)
			return true;
	}
	switch (socks_read_request(buf_str(&f->in), &r)) {
	case SOCKS_MORE:
		return true;
	case SOCKS_BAD:
		socks_write_reply(r.reply, reply);
		return flow_ask_refuse(f, reply, sizeof(reply));
	case SOCKS_DONE:
		break;
	}
	if (!ask_for(f, str_of(r.host), r.port))
		return false;
	buf_drop(&f->in, r.n);
	return true;
}

/* The host is connected: the client hears of it, and its next bytes are the first to be checked. */
static bool flow_ask_answer(struct flow *f)
{
	static const char ok[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	uint8_t reply[SOCKS_REPLY_BYTES];

	socks_write_reply(SOCKS_OK, reply);
	flow_set_state(f, FLOW_LOOK);
	if (f->via == VIA_SOCKS ? !flow_ask_say(f, reply, sizeof(reply))
				: !flow_ask_say(f, ok, sizeof(ok) - 1))
		return false;
	if (!flow_is_checked(f) && !flow_has_http_rules(f)) {
		f->speaks = SPEAKS_RAW;
		return flow_passed(f);
	}
	return f->in.n == 0 || flow_look(f);
}

bool flow_ask(struct flow *f)
{
	if (f->asked)
		return f->server.fd < 0 || flow_ask_answer(f);
	if (f->client_eof && f->in.n == 0) {
		flow_end(f, NW_REASON_PEER, true);
		return false;
	}
	if (f->in.n == 0)
		return true;
	if (f->in.p[0] == 5)
		return ask_socks(f);
	if (f->in.p[0] < 'A' || f->in.p[0] > 'Z') {
		if (!f->greeted)
			return flow_deny(f, NW_REASON_BAD_PROXY, NULL);
		return ask_socks(f);
	}
	return f->greeted ? ask_socks(f) : ask_http(f);
}
