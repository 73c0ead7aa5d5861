#include "net/egress/flow.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "net/egress/socks.h"

enum { DRAIN_BYTES = 256 * 1024, TEXT_MAX = 4096, RULES_TEXT_MAX = 1024 };

static bool is_failure(enum nw_reason reason)
{
	return reason == NW_REASON_RESOLVE || reason == NW_REASON_DIAL ||
	       reason == NW_REASON_UPSTREAM || reason == NW_REASON_LIMIT_HOST;
}

static void flow_deny_tell(struct flow *f, enum nw_reason reason, const char *detail)
{
	struct nw_flow m = flow_event(f, is_failure(reason) ? NW_FLOW_FAILED : NW_FLOW_DENIED,
				      reason);

	/* what was named instead of the host */
	if (detail && (reason == NW_REASON_SNI || reason == NW_REASON_HOST)) {
		size_t n = strnlen(detail, sizeof(m.host) - 1);

		for (size_t i = 0; i < n; i++)
			m.host[i] = detail[i] > 0x20 && detail[i] < 0x7f ? detail[i] : '?';
		m.host[n] = '\0';
	}
	link_tell(f->of->of, &m);
}

/* ---- HTTP ------------------------------------------------------------------------------------ */

static const char *status_of(enum nw_reason reason)
{
	switch (reason) {
	case NW_REASON_BAD_HTTP:
	case NW_REASON_BAD_PROXY:
		return "400 Bad Request";
	case NW_REASON_SLOW:
		return "408 Request Timeout";
	case NW_REASON_RESOLVE:
	case NW_REASON_DIAL:
	case NW_REASON_UPSTREAM:
	case NW_REASON_TRUST:
	case NW_REASON_ANSWER:
		return "502 Bad Gateway";
	case NW_REASON_LIMIT_HOST:
		return "503 Service Unavailable";
	case NW_REASON_UPGRADE:
		/* Codex then uses plain requests at once; after a 403 it tries six times. */
		return "426 Upgrade Required\r\nUpgrade: HTTP/1.1";
	default:
		return "403 Forbidden";
	}
}

static int write_text(const struct flow *f, enum nw_reason reason, const char *detail,
		      struct buf *out, struct err *e)
{
	char rules[RULES_TEXT_MAX];
	bool named = detail && (reason == NW_REASON_SNI || reason == NW_REASON_HOST);

	if (buf_addf(out, e, "holt: %s%s%.300s%s%s:%u: %s.\n", f->host, named ? " (asked for " : "",
		     named ? detail : "", named ? ")" : "", "", f->port,
		     nw_reason_text(reason)) < 0)
		return -1;
	if (detail && !named && buf_addf(out, e, "%.300s.\n", detail) < 0)
		return -1;
	if (is_failure(reason) || reason == NW_REASON_BAD_HTTP || reason == NW_REASON_BAD_PROXY ||
	    reason == NW_REASON_SLOW || reason == NW_REASON_TRUST || reason == NW_REASON_ANSWER ||
	    reason == NW_REASON_UPGRADE)
		return 0;
	if (reason == NW_REASON_METHOD || reason == NW_REASON_ASKED)
		return buf_addf(out, e,
				"If you need it, ask for another HTTP rule of %s:%u for sandbox "
				"%s.\n",
				f->host, f->port, f->of->id);
	if (reason == NW_REASON_ADDRESS)
		return buf_addf(out, e,
				"If you need it, ask for a grant of a range with its address, such "
				"as 10.1.0.0/16, to sandbox %s as well.\n",
				f->of->id);
	sandbox_list_rules(f->of, rules, sizeof(rules));
	return buf_addf(out, e,
			"Granted: %s.\nIf you need it, ask for a grant of %.253s:%u to sandbox "
			"%s.\n",
			rules, named ? detail : f->host, f->port, f->of->id);
}

/* The whole answer, into out. */
static int write_page(const struct flow *f, enum nw_reason reason, const char *detail,
		      struct buf *out)
{
	autobuf struct buf text = BUF_INIT(TEXT_MAX);
	struct err e;

	if (write_text(f, reason, detail, &text, &e) < 0)
		return -1;
	return buf_addf(out, &e,
			"HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
			"Content-Length: %zu\r\nConnection: close\r\nHolt-Reason: %s\r\n\r\n%s",
			status_of(reason), text.n, nw_reason_name(reason), text.p);
}

/* The answers to earlier requests are the server's, and come first. */
static bool refuse_later(struct flow *f, enum nw_reason reason, const char *detail)
{
	if (write_page(f, reason, detail, &f->page) < 0) {
		flow_end(f, reason, true);
		return false;
	}
	f->refused = true;
	f->upgrade = f->says_close = false;
	f->phase_ms = uv_now(&f->of->of->loop);
	buf_fini(&f->in);
	if (f->state == FLOW_LOOK ? flow_passed(f) : flow_http(f))
		flow_watch(f);
	return false;
}

/* ---- the others ------------------------------------------------------------------------------ */

static enum socks_reply socks_reply_of(enum nw_reason reason)
{
	return reason == NW_REASON_DIAL	   ? SOCKS_REFUSED
	     : reason == NW_REASON_RESOLVE ? SOCKS_UNREACHABLE
	     : is_failure(reason)	   ? SOCKS_FAILED
					   : SOCKS_DENIED;
}

/* Writes the client's answer; 0 bytes: it is reset. */
static int write_answer(struct flow *f, enum nw_reason reason, const char *detail)
{
	/* fatal: access_denied (RFC 8446 section 6) */
	static const uint8_t alert[] = { 21, 3, 3, 0, 2, 2, 49 };
	uint8_t reply[SOCKS_REPLY_BYTES];
	struct err e;

	if (f->state == FLOW_BOUND) {
		autobuf struct buf page = BUF_INIT(2 * TEXT_MAX);

		if (write_page(f, reason, detail, &page) < 0)
			return -1;
		return flow_bound_say(f, buf_str(&page));
	}
	if (f->state == FLOW_ASK && f->via == VIA_SOCKS) {
		socks_write_reply(socks_reply_of(reason), reply);
		return buf_add(&f->down.held, reply, sizeof(reply), &e);
	}
	if (f->state == FLOW_HELLO || f->state == FLOW_HELLO_AGAIN || f->speaks == SPEAKS_TLS ||
	    (f->state == FLOW_LOOK && f->in.n > 0 && f->in.p[0] == 22)) {
		buf_fini(&f->down.held);
		return buf_add(&f->down.held, alert, sizeof(alert), &e);
	}
	if (f->speaks == SPEAKS_HTTP || (f->state == FLOW_ASK && f->via == VIA_CONNECT) ||
	    (f->state == FLOW_LOOK && f->in.n > 0 && f->port == PORT_HTTP && f->in.p[0] >= 'A' &&
	     f->in.p[0] <= 'Z'))
		return write_page(f, reason, detail, &f->down.held);
	return 0;
}

bool flow_deny(struct flow *f, enum nw_reason reason, const char *detail)
{
	flow_deny_tell(f, reason, detail);
	return flow_refuse(f, reason, detail);
}

bool flow_refuse(struct flow *f, enum nw_reason reason, const char *detail)
{
	f->told = true;
	if (f->requests > 0 && !f->refused && (f->dial || f->server.fd >= 0) &&
	    !is_failure(reason) && f->state != FLOW_LINGER && f->state != FLOW_BOUND)
		return refuse_later(f, reason, detail);
	if (write_answer(f, reason, detail) < 0 || f->down.held.n == 0) {
		flow_end(f, reason, true);
		return false;
	}
	dial_cancel(take_ptr(f->dial));
	ech_cancel(take_ptr(f->ech));
	poll_drop(&f->server.poll);
	if (f->server.fd >= 0)
		fd_reset(take_fd(&f->server.fd));
	f->server.events = 0;
	f->up_state = RELAY_READ;
	buf_fini(&f->in);
	flow_set_state(f, FLOW_LINGER);
	if (flow_linger(f))
		flow_watch(f);
	return false;
}

/* A close with unread bytes would be a reset, which takes the answer with it. */
bool flow_linger(struct flow *f)
{
	static char bytes[16 * 1024];
	ssize_t n;

	if (!f->down.ended) {
		f->down_state = relay_flush(&f->down);
		if (f->down_state == RELAY_READ) {
			f->down.ended = true;
			shutdown(f->client.fd, SHUT_WR);
		}
	}
	if (f->down_state == RELAY_BROKEN) {
		flow_end(f, NW_REASON_PEER, true);
		return false;
	}
	while ((n = recv(f->client.fd, bytes, sizeof(bytes), 0)) > 0 && f->drained < DRAIN_BYTES)
		f->drained += (size_t)n;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	flow_end(f, NW_REASON_NONE, n != 0);
	return false;
}
