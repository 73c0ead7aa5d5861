#include "net/egress/flow.h"

#include <errno.h>
#include <sys/socket.h>

#include "net/egress/hello.h"
#include "net/egress/sniff.h"

/* Hands the first n bytes of `in` to the server. */
static bool hand_up(struct flow *f, size_t n)
{
	struct err e;

	if (buf_add(&f->up.held, f->in.p, n, &e) < 0)
		return flow_deny(f, NW_REASON_LIMIT_HOST, NULL);
	buf_drop(&f->in, n);
	return true;
}

static bool check_name(struct flow *f, const struct hello *h)
{
	if (!h->has_name)
		return flow_deny(f, NW_REASON_NO_SNI, NULL);
	if (strcmp(h->name, f->host) != 0)
		return flow_deny(f, NW_REASON_SNI, h->name);
	return true;
}

static bool look_at_hello(struct flow *f)
{
	struct hello h;

	switch (hello_read(buf_str(&f->in), &h)) {
	case HELLO_MORE:
		if (f->client_eof || f->in.n >= HELLO_MAX)
			return flow_deny(f, NW_REASON_BAD_TLS, NULL);
		return true;
	case HELLO_BAD:
		return flow_deny(f, NW_REASON_BAD_TLS, NULL);
	case HELLO_DONE:
		break;
	}
	if (!check_name(f, &h))
		return false;
	if (flow_binds(f, true)) {
		f->speaks = SPEAKS_TLS;
		return true;
	}
	if (flow_has_http_rules(f))
		return flow_deny(f, NW_REASON_OPAQUE, NULL);
	if (!hand_up(f, h.n))
		return false;
	f->hidden = h.ech ? HIDDEN_MAYBE : HIDDEN_NONE;
	f->speaks = SPEAKS_TLS;
	return true;
}

static bool look_at_raw(struct flow *f)
{
	if (f->port == PORT_HTTPS)
		return flow_deny(f, NW_REASON_NOT_TLS, NULL);
	if (f->port == PORT_HTTP || flow_has_http_rules(f))
		return flow_deny(f, NW_REASON_NOT_HTTP, NULL);
	f->speaks = SPEAKS_RAW;
	return true;
}

/* With HTTP rules also what the operator grants unseen is looked at. */
static bool look(struct flow *f)
{
	enum sniff first = sniff(buf_str(&f->in));

	if (f->client_eof && f->in.n == 0 && (f->port == PORT_HTTP || f->port == PORT_HTTPS)) {
		flow_end(f, NW_REASON_PEER, true);
		return false;
	}
	switch (first) {
	case SNIFF_MORE:
		return f->client_eof ? look_at_raw(f) : true;
	case SNIFF_TLS:
		return look_at_hello(f);
	case SNIFF_RAW:
		return look_at_raw(f);
	case SNIFF_HTTP:
		break;
	}
	f->speaks = SPEAKS_HTTP;
	if (f->port == PORT_HTTPS)
		return flow_deny(f, NW_REASON_NOT_TLS, "This port is for https:// alone");
	return flow_binds(f, false) || flow_http(f);
}

bool flow_look(struct flow *f)
{
	if (!look(f))
		return false;
	if (f->binds)
		return flow_passed(f);
	/* flow_http() goes on by itself */
	return f->speaks == SPEAKS_UNKNOWN || f->speaks == SPEAKS_HTTP || flow_passed(f);
}

/* ---- after the first ClientHello ------------------------------------------------------------- */

/* From here on nothing can name another host. */
static bool go_raw(struct flow *f)
{
	flow_set_state(f, FLOW_RAW);
	f->speaks = SPEAKS_TLS;
	if (!hand_up(f, f->in.n))
		return false;
	buf_fini(&f->in);
	f->up.eof = f->client_eof;
	return flow_relay_up(f);
}

bool flow_look_again(struct flow *f)
{
	struct hello h;
	bool any;

	switch (hello_read_second(buf_str(&f->in), &h, &any)) {
	case HELLO_MORE:
		if (f->client_eof || f->in.n >= f->in.max)
			return flow_deny(f, NW_REASON_BAD_TLS, NULL);
		return true;
	case HELLO_BAD:
		return flow_deny(f, NW_REASON_BAD_TLS, NULL);
	case HELLO_DONE:
		break;
	}
	if (any && !check_name(f, &h))
		return false;
	if (any && h.ech && f->hidden != HIDDEN_DUMMY)
		return flow_deny(f, NW_REASON_ECH, NULL);
	return go_raw(f);
}

bool flow_look_server(struct flow *f)
{
	struct err e;
	char *to = buf_reserve(&f->down.held, HELLO_MAX, &e);
	ssize_t n = to ? recv(f->server.fd, to, HELLO_MAX, 0) : -1;
	bool retry;

	if (n < 0 && to && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n < 0) {
		flow_end(f, NW_REASON_PEER, true);
		return false;
	}
	buf_advance(&f->down.held, (size_t)n);
	f->down.eof = n == 0;
	f->last_ms = uv_now(&f->of->of->loop);
	switch (hello_read_server(buf_str(&f->down.held), &retry)) {
	case HELLO_MORE:
		if (!f->down.eof)
			return true;
		retry = false;
		break;
	case HELLO_BAD:
		return flow_deny(f, NW_REASON_BAD_TLS, "the server's answer is malformed");
	case HELLO_DONE:
		break;
	}
	if (!retry)
		return go_raw(f) && flow_relay_down(f);
	flow_set_state(f, FLOW_HELLO_AGAIN);
	return flow_relay_down(f) && (f->in.n == 0 || flow_look_again(f));
}
