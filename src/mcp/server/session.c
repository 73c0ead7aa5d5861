/*
 * Sessions. A parsed message goes to its method (methods.c); answers leave through out.c.
 *
 * Any callback may end calls, cancel, and close the session. So a function that uses the session
 * after a callback counts itself in `entered`, and a closed session is freed when no function and
 * no call uses it any more.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "mcp/server/internal.h"

enum { UNAVAILABLE = 503 };

static const struct err no_memory = { ERR_LIMIT, "out of memory" };

struct mcp_session *mcp_session_new(struct mcp_server *srv, const struct mcp_transport *t,
				    void *transport, enum mcp_road road, void *data)
{
	struct mcp_session *s = spare_take(&srv->spare_session, sizeof(*s));

	if (!s)
		return NULL;
	inflight_init(&s->inflight, srv->o.inflight_max);
	s->server = srv;
	s->t = t;
	s->transport = transport;
	s->road = road;
	s->data = data;
	s->level = MCP_INFO;
	s->number = ++srv->made;
	s->next = srv->sessions;
	if (s->next)
		s->next->prev = s;
	srv->sessions = s;
	return s;
}

void mcp_session_settle(struct mcp_session *s)
{
	if (!s->closed || s->entered > 0 || inflight_count(&s->inflight) > 0)
		return;
	inflight_fini(&s->inflight);
	mcp_uris_free(s->watched);
	free((char *)s->wish.profile.p);
	free((char *)s->wish.modules.p);
	free((char *)s->wish.texts.p);
	spare_give(&s->server->spare_session, s);
}

unsigned mcp_session_number(const struct mcp_session *s)
{
	return s->number;
}

enum mcp_road mcp_session_road(const struct mcp_session *s)
{
	return s->road;
}

struct str mcp_principal(const struct mcp_server *srv, void *data)
{
	return srv->o.principal ? srv->o.principal(srv->o.owner, data) : STR_LIT("");
}

/* --- requests of ours --- */

struct json_writer *mcp_reach_start(struct mcp_session *s, struct mcp_reach *r, const char *method)
{
	struct json_writer *w = mcp_out_begin(s->server);

	r->session = s;
	r->id = ++s->server->reached;
	r->next = s->reaches;
	s->reaches = r;
	rpc_write_request(w, r->id, method);
	return w;
}

void mcp_reach_drop(struct mcp_reach *r)
{
	struct mcp_reach **at;

	if (!r->session)
		return;
	at = &r->session->reaches;
	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	r->session = NULL;
}

static void take_response(struct mcp_session *s, const struct rpc_msg *m)
{
	char text[24];
	struct str id = rpc_id_str(&m->id);

	for (struct mcp_reach *r = s->reaches; r; r = r->next) {
		snprintf(text, sizeof(text), "%llu", (unsigned long long)r->id);
		if (!str_is(id, text))
			continue;
		mcp_reach_drop(r);
		r->done(r, m);
		return;
	}
	s->server->strays++;
	log_debug("mcp: a response to no request is ignored");
}

/* --- what comes in --- */

static void take_message(struct mcp_session *s, struct mcp_inbound *in, const struct rpc_msg *m)
{
	switch (m->kind) {
	case RPC_REQUEST:
		mcp_serve_request(s, in, m);
		break;
	case RPC_NOTIFICATION:
		mcp_serve_notification(s, m);
		break;
	case RPC_RESPONSE:
		take_response(s, m);
		break;
	}
}

static int check_batch(const struct mcp_session *s, const struct json_val *v, struct rpc_fault *f)
{
	if (!s->profile)
		return rpc_fault_set(f, RPC_INVALID_REQUEST,
				     "a batch before initialize; send one message");
	if (!s->profile->batch)
		return rpc_fault_set(f, RPC_INVALID_REQUEST,
				     "revision %s has no batches; send one message at a time",
				     s->profile->version);
	if (json_len(v) == 0)
		return rpc_fault_set(f, RPC_INVALID_REQUEST, "an empty batch");
	if (json_len(v) > MCP_BATCH_MAX)
		return rpc_fault_set(f, RPC_INVALID_REQUEST,
				     "a batch has at most %d messages; send it in parts",
				     MCP_BATCH_MAX);
	return 0;
}

static void take_batch(struct mcp_session *s, struct mcp_inbound *in)
{
	const struct json_val *root = json_root(in->doc);
	struct json_iter it = json_iter(root);
	struct rpc_fault f;
	struct rpc_msg m;
	bool silent;

	if (check_batch(s, root, &f) < 0) {
		in->is_batch = false; /* one answer for the whole batch */
		f.status = 400;
		mcp_send_fault(s, in, &in->m.id, &f);
		return;
	}
	while (!s->closed && json_next(&it)) {
		if (rpc_read(it.val, &m, &f, &silent) == 0)
			take_message(s, in, &m);
		else if (!silent)
			mcp_send_fault(s, in, &m.id, &f);
	}
}

void mcp_session_take(struct mcp_session *s, struct mcp_inbound *in, void *stream)
{
	in->stream = stream;
	in->refs = in->awaited = 1;
	s->entered++;
	if (in->era == MCP_BROKEN) {
		in->is_batch = false;
		if (in->answered)
			mcp_send_fault(s, in, &in->m.id, in->fault);
		else
			log_debug("mcp: a broken message is ignored: %s", in->fault->message);
	} else if (in->is_batch) {
		take_batch(s, in);
	} else {
		take_message(s, in, &in->m);
	}
	in->head = NULL;
	mcp_inbound_release(s, in);
	mcp_inbound_unref(s, in);
	s->entered--;
	mcp_session_settle(s);
}

void mcp_session_message(struct mcp_session *s, struct str text)
{
	struct mcp_inbound *in = mcp_inbound_new(s->server, text, NULL);

	if (in)
		mcp_session_take(s, in, NULL);
	else
		mcp_session_reject(s, &no_memory, NULL, NULL);
}

/* --- ends --- */

static struct mcp_call *next_to_cancel(const struct mcp_session *s, const void *stream)
{
	for (struct inflight_entry *x = inflight_first(&s->inflight); x; x = x->newer) {
		struct mcp_call *c = (struct mcp_call *)x;

		if (!c->cancelled && (!stream || c->in->stream == stream))
			return c;
	}
	return NULL;
}

void mcp_session_cancel_stream(struct mcp_session *s, void *stream)
{
	struct mcp_call *c;

	s->entered++;
	mcp_ask_leave(s, stream);
	while ((c = next_to_cancel(s, stream))) {
		c->in->gone = true;
		mcp_call_cancel(c);
	}
	s->entered--;
	mcp_session_settle(s);
}

static void cancel_all(struct mcp_session *s, const struct rpc_fault *answer)
{
	struct mcp_call *c;

	s->entered++;
	while ((c = next_to_cancel(s, NULL))) {
		if (answer)
			mcp_send_fault(s, c->in, &c->entry.id, answer);
		mcp_call_cancel(c);
	}
	s->entered--;
	mcp_session_settle(s);
}

void mcp_session_fail_all(struct mcp_session *s)
{
	struct rpc_fault f;

	rpc_fault_set(&f, RPC_INTERNAL_ERROR, "the server ended before the request did");
	f.reason = err_info(ERR_TRANSPORT);
	f.status = UNAVAILABLE;
	cancel_all(s, &f);
}

void mcp_session_drain(struct mcp_session *s)
{
	s->entered++;
	mcp_listens_end(s);
	s->entered--;
	mcp_session_settle(s);
}

unsigned mcp_session_open(const struct mcp_session *s)
{
	return inflight_count(&s->inflight) - s->cancelled - s->listening;
}

void mcp_session_close(struct mcp_session *s)
{
	const struct mcp_server_options *o;
	struct mcp_reach *r;

	if (!s)
		return;
	o = &s->server->o;
	s->closed = true;
	s->entered++;
	*(s->prev ? &s->prev->next : &s->server->sessions) = s->next;
	if (s->next)
		s->next->prev = s->prev;
	s->next = s->prev = NULL;
	cancel_all(s, NULL);
	while ((r = s->reaches)) {
		mcp_reach_drop(r);
		r->done(r, NULL);
	}
	if (s->watched && o->handler && o->handler->watched)
		o->handler->watched(o->owner);
	if (o->handler && o->handler->closed)
		o->handler->closed(o->owner, s);
	s->entered--;
	mcp_session_settle(s);
}

static int keep_wish(struct str *to, struct str from, struct err *e)
{
	if (!from.p)
		return 0;
	*to = (struct str){ mem_dup(from.p, from.n), from.n };
	return to->p ? 0 : err_set(e, ERR_LIMIT, "out of memory");
}

int mcp_session_narrow(struct mcp_session *s, const struct mcp_wish *w, struct err *e)
{
	const struct mcp_server_options *o = &s->server->o;

	if (!o->handler || !o->handler->narrow)
		return err_set(e, ERR_INVALID, "%s: this server has no choice of them",
			       w->tools.p     ? "tools"
			       : w->profile.p ? "profile"
			       : w->modules.p ? "modules"
					      : "texts");
	if (keep_wish(&s->wish.profile, w->profile, e) < 0 ||
	    keep_wish(&s->wish.modules, w->modules, e) < 0 ||
	    keep_wish(&s->wish.texts, w->texts, e) < 0)
		return -1;
	return o->handler->narrow(o->owner, s, w, &s->narrowed, e);
}

const struct mcp_wish *mcp_session_wish(const struct mcp_session *s)
{
	return &s->wish;
}

const struct mcp_choice *mcp_session_narrowed(const struct mcp_session *s)
{
	return &s->narrowed;
}

void *mcp_session_data(const struct mcp_session *s)
{
	return s->data;
}

const char *mcp_session_version(const struct mcp_session *s)
{
	return s->profile ? s->profile->version : NULL;
}

const char *mcp_session_client(const struct mcp_session *s)
{
	return s->client;
}
