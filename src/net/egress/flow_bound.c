/*
 * A connection to a host that secrets are bound to, or that has HTTP rules and speaks TLS. TLS ends
 * here on both sides: the sandbox speaks with a certificate of its own authority, and the host is
 * verified before anything is said to it. Between them is HTTP/1.1, one request at a time:
 *
 *	client --> in --> request_read(), placeholders to values --> server
 *	client <-- values to placeholders, answer_read() <-- from <-- server
 *
 * GnuTLS writes to what the relays hold and reads from the sockets, so it never waits; how much is
 * held bounds how much is read. Answers whose length a replacement would change are sent in chunks.
 */
#include "net/egress/flow_bound.h"

#include <errno.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <sys/socket.h>

#include "net/egress/swap.h"
#include "net/egress/vault.h"

void flow_bound_free(struct flow *f)
{
	struct bound *b = f->bound;

	if (!b)
		return;
	if (b->client.tls)
		gnutls_deinit(b->client.tls);
	if (b->server.tls)
		gnutls_deinit(b->server.tls);
	flow_tokens_end(b);
	buf_wipe(&b->in);
	buf_wipe(&b->from);
	buf_wipe(&b->tail);
	free(take_ptr(f->bound));
}

/* Takes secrets out of answers. */
static const struct swaps *scrub_of(const struct flow *f)
{
	static const struct swaps none;

	return f->has_secrets ? vault_scrub(f->of->vault) : &none;
}

bool flow_bound_broken(struct flow *f)
{
	flow_end(f, NW_REASON_PEER, true);
	return false;
}

/* ---- what GnuTLS reads and writes ------------------------------------------------------------ */

static ssize_t pull_client(gnutls_transport_ptr_t flow, void *to, size_t n)
{
	struct flow *f = flow;
	ssize_t got;

	if (f->in.n > 0) { /* the ClientHello, which was looked at */
		n = n < f->in.n ? n : f->in.n;
		memcpy(to, f->in.p, n);
		buf_drop(&f->in, n);
		return (ssize_t)n;
	}
	got = recv(f->client.fd, to, n, 0);
	if (got == 0)
		f->client_eof = true;
	if (got > 0)
		f->last_ms = uv_now(&f->of->of->loop);
	return got;
}

static ssize_t pull_server(gnutls_transport_ptr_t flow, void *to, size_t n)
{
	struct flow *f = flow;
	ssize_t got = recv(f->server.fd, to, n, 0);

	if (got == 0)
		f->down.eof = true;
	if (got > 0)
		f->last_ms = uv_now(&f->of->of->loop);
	return got;
}

static ssize_t push_to(struct buf *to, const void *bytes, size_t n)
{
	struct err e;

	if (buf_add(to, bytes, n, &e) == 0)
		return (ssize_t)n;
	errno = ENOMEM;
	return -1;
}

static ssize_t push_client(gnutls_transport_ptr_t flow, const void *bytes, size_t n)
{
	return push_to(&((struct flow *)flow)->down.held, bytes, n);
}

static ssize_t push_server(gnutls_transport_ptr_t flow, const void *bytes, size_t n)
{
	return push_to(&((struct flow *)flow)->up.held, bytes, n);
}

static int end_start(struct flow *f, struct bound_end *end, unsigned role,
		     gnutls_certificate_credentials_t credentials)
{
	static const gnutls_datum_t http = { (unsigned char *)(uintptr_t) "http/1.1", 8 };
	static const char priorities[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";
	bool to_server = role == GNUTLS_CLIENT;
	int rc = gnutls_init(&end->tls,
			     role | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS);

	if (rc < 0) {
		end->tls = NULL;
		return rc;
	}
	rc = gnutls_priority_set_direct(end->tls, priorities, NULL);
	if (rc >= 0)
		rc = gnutls_credentials_set(end->tls, GNUTLS_CRD_CERTIFICATE, credentials);
	if (rc >= 0)
		rc = gnutls_alpn_set_protocols(end->tls, &http, 1,
					       to_server ? 0 : GNUTLS_ALPN_MANDATORY);
	if (rc >= 0 && to_server)
		rc = gnutls_server_name_set(end->tls, GNUTLS_NAME_DNS, f->host, strlen(f->host));
	if (to_server) {
		gnutls_typed_vdata_st *m = f->bound->must_be;

		m[0] = (gnutls_typed_vdata_st){ GNUTLS_DT_DNS_HOSTNAME, (void *)f->host, 0 };
		m[1] = (gnutls_typed_vdata_st){
			GNUTLS_DT_KEY_PURPOSE_OID,
			(unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_SERVER, 0
		};
		gnutls_session_set_verify_cert2(end->tls, m, 2, 0);
	}
	gnutls_transport_set_ptr(end->tls, f);
	gnutls_transport_set_pull_function(end->tls, to_server ? pull_server : pull_client);
	gnutls_transport_set_push_function(end->tls, to_server ? push_server : push_client);
	return rc;
}

/* > 0: bytes; 0: it has ended; -1: none yet. */
static ssize_t end_read(struct flow *f, struct bound_end *end, char *to, size_t n)
{
	ssize_t got;

	if (!end->tls) {
		got = end == &f->bound->client ? pull_client(f, to, n) : pull_server(f, to, n);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return -1;
	} else {
		do
			got = gnutls_record_recv(end->tls, to, n);
		while (got == GNUTLS_E_INTERRUPTED || got == GNUTLS_E_WARNING_ALERT_RECEIVED);
		if (got == GNUTLS_E_AGAIN)
			return -1;
	}
	end->ended = got <= 0;
	end->cut = got < 0;
	return got < 0 ? 0 : got;
}

/* All of it goes to what is held. */
static int end_write(struct flow *f, struct bound_end *end, struct str bytes)
{
	while (bytes.n > 0) {
		ssize_t n = !end->tls
				  ? (end == &f->bound->client ? push_client(f, bytes.p, bytes.n)
							      : push_server(f, bytes.p, bytes.n))
				  : gnutls_record_send(end->tls, bytes.p, bytes.n);

		if (n <= 0)
			return -1;
		bytes.p += n;
		bytes.n -= (size_t)n;
	}
	return 0;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Always false. What is held goes to the client, and then the end of the connection. */
static bool hang_up(struct flow *f)
{
	flow_close_server(f);
	flow_set_state(f, FLOW_LINGER);
	if (flow_linger(f))
		flow_watch(f);
	return false;
}

/* The same, and the client knows that nothing is missing. */
static bool flow_bound_finish(struct flow *f)
{
	struct bound *b = f->bound;

	if (b->client.tls && b->client.ready)
		gnutls_bye(b->client.tls, GNUTLS_SHUT_WR);
	return hang_up(f);
}

int flow_bound_say(struct flow *f, struct str page)
{
	struct bound *b = f->bound;

	if (!b->client.ready || b->step == STEP_BODY || end_write(f, &b->client, page) < 0)
		return -1;
	if (b->client.tls)
		gnutls_bye(b->client.tls, GNUTLS_SHUT_WR);
	return 0;
}

/* ---- handshakes ------------------------------------------------------------------------------ */

static void note_refusal(struct bound *b, int rc)
{
	gnutls_datum_t text = { NULL, 0 };

	b->refuse = rc == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR ? NW_REASON_TRUST
								  : NW_REASON_ANSWER;
	if (b->refuse == NW_REASON_TRUST &&
	    gnutls_certificate_verification_status_print(
		    gnutls_session_get_verify_cert_status(b->server.tls), GNUTLS_CRT_X509, &text,
		    0) >= 0)
		snprintf(b->why, sizeof(b->why), "%s", (const char *)text.data);
	else
		snprintf(b->why, sizeof(b->why), "TLS with the server failed: %s",
			 gnutls_strerror(rc));
	gnutls_free(text.data);
	for (size_t n = strlen(b->why); n > 0 && (b->why[n - 1] == ' ' || b->why[n - 1] == '.');)
		b->why[--n] = '\0'; /* a sentence is made of it */
}

/* 1: done, 0: not yet, or why it failed. */
static int end_shake(struct bound_end *end)
{
	int rc;

	if (end->ready)
		return 1;
	if (!end->tls) /* it is not there */
		return 0;
	do
		rc = gnutls_handshake(end->tls);
	while (rc == GNUTLS_E_INTERRUPTED || rc == GNUTLS_E_WARNING_ALERT_RECEIVED);
	if (rc == GNUTLS_E_AGAIN)
		return 0;
	end->ready = rc >= 0;
	return rc >= 0 ? 1 : rc;
}

static bool shake_hands(struct flow *f, bool *moved)
{
	struct bound *b = f->bound;
	bool was = b->client.ready && b->server.ready;
	int rc = b->refuse ? 0 : end_shake(&b->server);

	if (rc < 0)
		note_refusal(b, rc);
	rc = end_shake(&b->client);
	if (rc < 0) {
		gnutls_alert_send_appropriate(b->client.tls, rc);
		return flow_bound_finish(f);
	}
	*moved = *moved || was != (b->client.ready && b->server.ready);
	return true;
}

bool flow_bound_is_ready(const struct flow *f)
{
	return f->bound->client.ready && f->bound->server.ready;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void tell_secret(struct flow *f, enum nw_flow_what what, size_t i)
{
	struct nw_flow m = flow_event(f, what, NW_REASON_NONE);

	snprintf(m.secret, sizeof(m.secret), "%s", vault_name(f->of->vault, i));
	link_tell(f->of->of, &m);
}

void flow_note_placeholder(struct flow *f, struct str text)
{
	int found = f->told_placeholder ? -1 : vault_find(f->of->vault, text);

	if (found < 0)
		return;
	f->told_placeholder = true;
	tell_secret(f, NW_FLOW_PLACEHOLDER, (size_t)found);
}

bool flow_bound_up(struct flow *f, struct str bytes)
{
	return end_write(f, &f->bound->server, bytes) == 0 || flow_bound_broken(f);
}

/* With the values in it, so it is wiped. */
bool flow_bound_send(struct flow *f, const struct request *r)
{
	autowipe struct buf out = BUF_INIT(OUT_MAX);
	struct bound *b = f->bound;
	struct swap swaps[NW_SECRETS_MAX];
	size_t of[NW_SECRETS_MAX];
	struct swaps all = { .n = 0 };
	struct err e;

	if (f->has_secrets)
		vault_fill(f->of->vault, f->host, f->port, b->client.tls != NULL, swaps, of, &all);
	if (!buf_reserve(&out, OUT_MAX, &e) ||
	    request_write(r, false, false, f->has_secrets ? &all : NULL, &out, &e) < 0)
		return flow_deny(f, NW_REASON_BAD_HTTP, "the head is too large");
	for (size_t i = 0; i < all.n; i++) {
		if (swaps[i].hits == 0 || b->told_secret[of[i]])
			continue;
		b->told_secret[of[i]] = true;
		tell_secret(f, NW_FLOW_SECRET, of[i]);
	}
	flow_note_placeholder(f, buf_str(&out));
	if (!flow_bound_up(f, buf_str(&out)))
		return false;
	f->requests++;
	f->scanned = 0;
	b->bodiless = str_is(r->method, "HEAD");
	b->old = b->last = r->old;
	b->step = STEP_HEAD;
	return true;
}

/* A person may take longer than the server's patience: it is dialled anew for the request. */
static bool wait_for_person(struct flow *f)
{
	struct bound *b = f->bound;

	b->step = STEP_PERSON;
	if (b->server.tls)
		gnutls_deinit(b->server.tls);
	b->server = (struct bound_end){ .tls = NULL };
	buf_wipe(&b->from);
	b->scanned = 0;
	f->scanned = 0;
	buf_fini(&f->up.held);
	flow_close_server(f);
	f->up.to = f->down.from = -1;
	f->down.eof = false;
	return true;
}

static bool take_request(struct flow *f, bool *moved)
{
	struct bound *b = f->bound;
	enum flow_tokens tokens;
	struct request r;
	const char *why;

	switch (request_read(buf_str(&b->in), &f->scanned, &r, &why)) {
	case REQUEST_MORE:
		if (b->in.n < b->in.max && !b->client.ended)
			return true;
		if (b->client.ended)
			return flow_bound_broken(f);
		return flow_deny(f, NW_REASON_BAD_HTTP, "the head is too large");
	case REQUEST_BAD:
		return flow_deny(f, NW_REASON_BAD_HTTP, why);
	case REQUEST_DONE:
		break;
	}
	if (b->refuse)
		return flow_deny(f, b->refuse, b->why);
	tokens = flow_tokens_read(f, &r);
	if (tokens > FLOW_TOKENS_READ)
		return tokens == FLOW_TOKENS_TAKEN;
	switch (flow_may_ask(f, &r)) {
	case FLOW_GONE:
		return false;
	case FLOW_WAITS:
		return wait_for_person(f);
	case FLOW_MAY:
		f->verdict = VERDICT_NONE;
		break;
	}
	if (r.websocket)
		return flow_deny(f, NW_REASON_UPGRADE,
				 "Upgrades are not possible where requests are looked into");
	if (tokens == FLOW_TOKENS_READ)
		return flow_tokens_send(f, &r, moved);
	if (!flow_bound_send(f, &r))
		return false;
	f->body = r.body;
	f->in_body = r.body.kind != BODY_NONE;
	buf_drop(&b->in, r.n);
	*moved = true;
	return true;
}

static bool take_request_body(struct flow *f, bool *moved)
{
	struct bound *b = f->bound;
	struct str bytes = { b->in.p, b->in.n < PIECE ? b->in.n : PIECE };
	bool end = false;
	ssize_t n = body_take(&f->body, bytes, &end);

	if (n < 0)
		return flow_deny(f, NW_REASON_BAD_HTTP, "the chunks of the body are malformed");
	bytes.n = (size_t)n;
	flow_note_placeholder(f, bytes);
	if (!flow_bound_up(f, bytes))
		return false;
	buf_drop(&b->in, bytes.n);
	f->in_body = !end;
	*moved = true;
	return true;
}

static bool read_end(struct flow *f, struct bound_end *end, struct buf *to, bool *moved)
{
	size_t room = to->max - to->n;
	struct err e;
	char *at = buf_reserve(to, room < PIECE ? room : PIECE, &e);
	ssize_t n = at ? end_read(f, end, at, room < PIECE ? room : PIECE) : 0;

	if (!at)
		return flow_bound_broken(f);
	if (n < 0)
		return true;
	buf_advance(to, (size_t)n);
	*moved = true;
	return true;
}

static bool go_up(struct flow *f, bool *moved)
{
	struct bound *b = f->bound;

	if (b->step == STEP_PERSON)
		return true;
	if (!b->client.ended && b->in.n < b->in.max && f->up.held.n < HELD_HIGH &&
	    !read_end(f, &b->client, &b->in, moved))
		return false;
	if (!b->server.ready && !b->refuse && f->verdict != VERDICT_DENIED)
		return true;
	if (b->in.n > 0 && f->up.held.n < HELD_HIGH) {
		if (f->in_body)
			return take_request_body(f, moved);
		if (b->step == STEP_REQUEST)
			return take_request(f, moved);
	}
	if (!b->client.ended || b->in.n > 0)
		return true;
	if (f->in_body)
		return flow_bound_broken(f);
	return b->step != STEP_REQUEST || flow_bound_finish(f);
}

/* ---- answers --------------------------------------------------------------------------------- */

bool flow_bound_bad_answer(struct flow *f, const char *why)
{
	return flow_deny(f, NW_REASON_ANSWER, why);
}

bool flow_bound_down(struct flow *f, struct str bytes)
{
	return end_write(f, &f->bound->client, bytes) == 0 || flow_bound_broken(f);
}

bool flow_bound_head(struct flow *f, const struct answer *a, enum answer_frame frame, uint64_t n)
{
	autobuf struct buf out = BUF_INIT(OUT_MAX);
	struct bound *b = f->bound;
	struct err e;

	if (answer_write(a, scrub_of(f), frame, n, b->last && a->status >= 200, &out, &e) < 0)
		return flow_bound_bad_answer(f, "the head of the server's answer is too large");
	return flow_bound_down(f, buf_str(&out));
}

bool flow_bound_end_answer(struct flow *f)
{
	struct bound *b = f->bound;

	b->step = STEP_REQUEST;
	buf_wipe(&b->tail);
	if (b->last || b->server.ended)
		return flow_bound_finish(f);
	return true;
}

/* With its head, since its length depends on what is replaced; as soon as all of it is there. */
static bool say_whole(struct flow *f, const struct answer *a)
{
	autowipe struct buf out = BUF_INIT(PIECE * NW_PLACEHOLDER_MAX);
	struct bound *b = f->bound;
	size_t n = (size_t)a->body.left;
	struct err e;

	b->want = a->n + n;
	if (b->from.n < b->want) {
		b->step = STEP_WHOLE;
		return true;
	}
	if (swaps_run(scrub_of(f), (struct str){ b->from.p + a->n, n }, true, &out, &e) < 0)
		return flow_bound_broken(f);
	if (!flow_bound_head(f, a, ANSWER_LENGTH, out.n) || !flow_bound_down(f, buf_str(&out)))
		return false;
	buf_drop(&b->from, b->want);
	return flow_bound_end_answer(f);
}

/* Only a body in which nothing is replaced keeps its length. */
static enum answer_frame frame_of(const struct flow *f, const struct answer *a)
{
	if (a->body.kind == BODY_NONE && !a->until_end)
		return ANSWER_NO_BODY;
	if (!f->has_secrets && a->body.kind == BODY_LENGTH)
		return ANSWER_LENGTH;
	return f->bound->old ? ANSWER_UNTIL_END : ANSWER_CHUNKED;
}

static const char malformed[] = "the body of the server's answer is malformed";

/* Whether the part of a body that has come is broken. That is found out before the head is passed
 * on, after which the client can't be told any more. */
static bool is_malformed(struct body body, struct str bytes)
{
	bool end;

	return body.kind == BODY_CHUNKED && body_take(&body, bytes, &end) < 0;
}

static bool take_answer(struct flow *f, bool *moved)
{
	struct bound *b = f->bound;
	enum answer_frame frame;
	struct answer a;
	const char *why;

	switch (answer_read(buf_str(&b->from), &b->scanned, b->bodiless, &a, &why)) {
	case REQUEST_MORE:
		if (b->server.ended)
			return flow_bound_bad_answer(f, "the server ended the connection");
		if (b->from.n < b->from.max)
			return true;
		return flow_bound_bad_answer(f, "the head of the server's answer is too large");
	case REQUEST_BAD:
		return flow_bound_bad_answer(f, why);
	case REQUEST_DONE:
		break;
	}
	b->scanned = 0;
	if (a.status == 101)
		return flow_bound_bad_answer(f, "the server upgrades without being asked to");
	if (f->has_secrets && a.coded && (a.body.kind != BODY_NONE || a.until_end))
		return flow_bound_bad_answer(f,
					     "it is compressed, although that was not asked for");
	if (a.status >= 200)
		b->last = b->last || a.last;
	if (b->tokens && a.status >= 200 && a.status < 300)
		return flow_tokens_answer(f, &a, moved);
	*moved = true;
	if (a.status >= 300)
		flow_tokens_end(b);
	if (f->has_secrets && a.body.kind == BODY_LENGTH && a.body.left <= WHOLE_MAX)
		return say_whole(f, &a);
	if (is_malformed(a.body, (struct str){ b->from.p + a.n, b->from.n - a.n }))
		return flow_bound_bad_answer(f, malformed);
	frame = frame_of(f, &a);
	b->chunks = frame == ANSWER_CHUNKED;
	if (!flow_bound_head(f, &a, frame, a.body.left))
		return false;
	buf_drop(&b->from, a.n);
	if (a.status < 200)
		return true;
	b->step = STEP_BODY;
	b->body = a.body;
	b->until_end = a.until_end;
	return a.body.kind != BODY_NONE || a.until_end || flow_bound_end_answer(f);
}

static bool wait_for_whole(struct flow *f, bool *moved)
{
	struct bound *b = f->bound;

	if (b->from.n < b->want && !b->server.ended)
		return true;
	b->step = STEP_HEAD;
	if (b->from.n < b->want)
		return flow_bound_bad_answer(f, "the server ended the connection");
	return take_answer(f, moved);
}

enum body_part {
	PART_SURE, /* what is sure to hold no secret */
	PART_REST, /* all that has come */
	PART_END, /* the same, and that there is no more */
};

static bool say_body(struct flow *f, enum body_part part)
{
	autowipe struct buf out = BUF_INIT(TAIL_MAX * NW_PLACEHOLDER_MAX);
	struct bound *b = f->bound;
	struct err e;
	ssize_t n = swaps_run(scrub_of(f), buf_str(&b->tail), part != PART_SURE, &out, &e);
	char size[32];

	if (n < 0)
		return flow_bound_broken(f);
	buf_drop(&b->tail, (size_t)n);
	if (out.n > 0 && b->chunks) {
		snprintf(size, sizeof(size), "%zx\r\n", out.n);
		if (!flow_bound_down(f, str_of(size)))
			return false;
	}
	if (!flow_bound_down(f, buf_str(&out)) ||
	    (out.n > 0 && b->chunks && !flow_bound_down(f, STR_LIT("\r\n"))))
		return false;
	return part != PART_END || !b->chunks || flow_bound_down(f, STR_LIT("0\r\n\r\n"));
}

static bool take_answer_body(struct flow *f, bool *moved)
{
	struct bound *b = f->bound;
	struct str bytes = { b->from.p, b->from.n < PIECE ? b->from.n : PIECE }, data = bytes;
	bool end = b->until_end && b->server.ended && !b->server.cut && b->from.n == 0;
	ssize_t n = (ssize_t)bytes.n;
	struct err e;

	if (!b->until_end)
		n = body_piece(&b->body, bytes, &data, &end);
	if (n < 0)
		return flow_bound_bad_answer(f, malformed);
	/* at an early end the client gets what has come, and sees that this is not all */
	if (n == 0 && !end)
		return !b->server.ended || (say_body(f, PART_REST) && hang_up(f));
	*moved = true;
	if (buf_add(&b->tail, data.p, data.n, &e) < 0)
		return flow_bound_broken(f);
	if (!say_body(f, end ? PART_END : PART_SURE))
		return false;
	buf_drop(&b->from, (size_t)n);
	return !end || flow_bound_end_answer(f);
}

static bool go_down(struct flow *f, bool *moved)
{
	struct bound *b = f->bound;

	if (!b->server.ready)
		return true;
	if (!b->server.ended && b->from.n < b->from.max && f->down.held.n < HELD_HIGH &&
	    !read_end(f, &b->server, &b->from, moved))
		return false;
	if (f->down.held.n >= HELD_HIGH)
		return true;
	switch (b->step) {
	case STEP_TURN:
	case STEP_REQUEST: /* what it says behind its answer is for nobody */
		return (b->from.n == 0 && !b->server.ended) || flow_bound_finish(f);
	case STEP_PERSON:
		if (b->from.n > 0)
			return flow_bound_broken(f);
		return !b->server.ended || flow_bound_finish(f);
	case STEP_HEAD:
		return take_answer(f, moved);
	case STEP_WHOLE:
		return wait_for_whole(f, moved);
	case STEP_TOKENS:
		return true;
	case STEP_BODY:
		break;
	}
	return take_answer_body(f, moved);
}

/* ---- both ------------------------------------------------------------------------------------ */

/* The sandbox has no bytes left for now. */
static bool is_paused(struct flow *f)
{
	struct sandbox *s = f->of;

	if (!s->of->limits.bytes_per_s || bucket_has(&s->bytes, uv_now(&s->of->loop)) > 0)
		return false;
	f->up_state = f->down_state = RELAY_PAUSED;
	s->paused = true;
	egress_pause(s->of);
	return true;
}

static bool flow_bound_flush(struct flow *f)
{
	uint64_t was = f->up.bytes + f->down.bytes;

	f->up_state = relay_flush(&f->up);
	f->down_state = relay_flush(&f->down);
	if (f->of->of->limits.bytes_per_s)
		bucket_take(&f->of->bytes, f->up.bytes + f->down.bytes - was);
	return (f->up_state != RELAY_BROKEN && f->down_state != RELAY_BROKEN) ||
	       flow_bound_broken(f);
}

static bool is_full(const struct flow *f)
{
	return f->up.held.n >= HELD_HIGH || f->down.held.n >= HELD_HIGH;
}

bool flow_bound_run(struct flow *f)
{
	struct bound *b = f->bound;
	bool moved = true;

	b->more = false;
	if (is_paused(f))
		return true;
	for (unsigned turns = 0; moved; turns++) {
		bool full;

		b->more = turns == TURNS; /* the loop comes back at once */
		if (b->more)
			break;
		moved = false;
		if (!shake_hands(f, &moved))
			return false;
		if (b->client.ready && (!go_up(f, &moved) || !go_down(f, &moved)))
			return false;
		full = is_full(f);
		if ((full || !moved) && !flow_bound_flush(f))
			return false;
		moved = moved || (full && !is_full(f));
	}
	return flow_bound_flush(f);
}

bool flow_bound_wants_client(const struct flow *f)
{
	const struct bound *b = f->bound;

	return b->step != STEP_PERSON && !b->client.ended && b->in.n < b->in.max &&
	       f->up.held.n < HELD_HIGH && f->up_state != RELAY_PAUSED;
}

bool flow_bound_wants_server(const struct flow *f)
{
	const struct bound *b = f->bound;

	return !b->server.ended && !b->refuse && !f->down.eof && b->from.n < b->from.max &&
	       f->down.held.n < HELD_HIGH && f->up_state != RELAY_PAUSED;
}

bool flow_bound_has_more(const struct flow *f)
{
	return f->bound->more;
}

static bool start_server(struct flow *f, struct err *e)
{
	gnutls_certificate_credentials_t trust = vault_trust(f->of->vault, f->host, f->port, e);

	return trust && end_start(f, &f->bound->server, GNUTLS_CLIENT, trust) >= 0;
}

static bool start_tls(struct flow *f, struct err *e)
{
	gnutls_certificate_credentials_t own = vault_prove(f->of->vault, f->host, e);

	return own && end_start(f, &f->bound->client, GNUTLS_SERVER, own) >= 0 &&
	       start_server(f, e);
}

void flow_bound_answered(struct flow *f)
{
	f->bound->step = STEP_REQUEST;
}

bool flow_bound_dialled(struct flow *f)
{
	struct bound *b = f->bound;
	struct err e;

	if (b->client.tls && !start_server(f, &e))
		return flow_deny(f, NW_REASON_LIMIT_HOST, NULL);
	b->server.ready = !b->client.tls;
	return flow_bound_run(f);
}

/* Some requests have to wait for a person. */
static bool asks(const struct flow *f)
{
	for (size_t i = 0; i < f->of->n_http; i++) {
		if ((int)f->of->http[i].rule == f->rule && f->of->http[i].then == NET_HTTP_ASK)
			return true;
	}
	return false;
}

bool flow_binds(struct flow *f, bool tls)
{
	const struct vault *v = f->of->vault;

	f->has_secrets = vault_binds(v, f->host, f->port, tls);
	f->binds = f->has_secrets ||
		   (tls ? v && flow_is_checked(f) && flow_has_http_rules(f) : asks(f));
	return f->binds;
}

bool flow_bound_begin(struct flow *f)
{
	struct bound *b = f->bound = mem_zalloc(sizeof(*b));
	struct err e = ERR_INIT;

	if (!b)
		return flow_deny(f, NW_REASON_LIMIT_HOST, NULL);
	b->in = BUF_INIT(f->in.max);
	b->from = BUF_INIT(HELD_HIGH + WHOLE_MAX);
	b->tail = BUF_INIT(TAIL_MAX);
	if (f->speaks == SPEAKS_TLS) {
		if (!start_tls(f, &e))
			return flow_deny(f, NW_REASON_LIMIT_HOST, NULL);
	} else {
		b->client.ready = b->server.ready = true;
	}
	flow_set_state(f, FLOW_BOUND);
	return flow_bound_run(f);
}
