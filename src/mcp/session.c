/*
 * Sessions. A message comes in parsed, and goes to a method (methods.c); answers leave through
 * mcp_out_*(), on their stream or into their batch.
 *
 * Handlers may end calls, cancel and close from inside any callback. So every function that
 * touches the session after a callback counts itself in `entered`, and a closed session is freed
 * when neither functions nor calls use it.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "mcp/core.h"
#include "rpc/sniff.h"

enum {
	KEEP = 64 << 10, /* a larger buffer is given back after its message */
	HTTP_OK = 200,
};

static const struct err no_memory = { ERR_LIMIT, "out of memory" };

struct mcp_session *mcp_session_new(struct mcp_server *srv, const struct mcp_transport *t,
				    void *transport, enum mcp_road road, void *data)
{
	struct mcp_session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->inflight = inflight_new(srv->o.inflight_max);
	if (!s->inflight) {
		free(s);
		return NULL;
	}
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

static void unlist(struct mcp_session *s)
{
	*(s->prev ? &s->prev->next : &s->server->sessions) = s->next;
	if (s->next)
		s->next->prev = s->prev;
	s->next = s->prev = NULL;
}

void mcp_session_settle(struct mcp_session *s)
{
	if (!s->closed || s->entered > 0 || inflight_count(s->inflight) > 0)
		return;
	inflight_free(s->inflight);
	mcp_uris_free(s->watched);
	free(s);
}

struct str mcp_principal(const struct mcp_server *srv, void *data)
{
	return srv->o.principal ? srv->o.principal(srv->o.owner, data) : STR_LIT("");
}

/* --- what is sent --- */

static void send(struct mcp_session *s, void *stream, struct str text, enum mcp_out_kind kind,
		 int status)
{
	const struct mcp_out m = { .text = text, .kind = kind, .status = status };

	if (!s->closed)
		s->t->send(s->transport, stream, &m);
}

static void clear(struct buf *b)
{
	if (b->cap > KEEP)
		buf_fini(b);
	b->n = 0;
}

static void add_to_batch(struct mcp_inbound *in, struct str text)
{
	struct err e;

	if (in->lost)
		return;
	if (buf_add(&in->answers, in->answers.n ? "," : "[", 1, &e) < 0 ||
	    buf_add(&in->answers, text.p, text.n, &e) < 0) {
		buf_fini(&in->answers);
		in->lost = true;
	}
}

static void send_answer(struct mcp_session *s, struct mcp_inbound *in, struct str text, int status)
{
	if (in->is_batch)
		add_to_batch(in, text);
	else
		send(s, in->stream, text, MCP_OUT_RESPONSE, status);
}

struct json_writer *mcp_out_begin(struct mcp_server *srv)
{
	clear(&srv->out);
	srv->w = json_writer(&srv->out);
	return &srv->w;
}

/* The text of a fault, which can't fail. */
static struct str write_fault(struct mcp_server *srv, const struct rpc_id *id,
			      const struct rpc_fault *f)
{
	struct json_writer w = json_writer(&srv->spare);
	struct err e;
	int rc;

	srv->spare.n = 0;
	rpc_write_fault(&w, id, f);
	rc = json_write_done(&w, &e);
	assert(rc == 0);
	return buf_str(&srv->spare);
}

/* A modern error without an id has no member for it; JSON-RPC's own has null. */
static const struct rpc_id *id_of(const struct mcp_session *s, const struct mcp_inbound *in,
				  const struct rpc_id *id)
{
	bool modern = s->road == MCP_ROAD_POST || (in && in->profile);

	return modern && id->n == 0 ? NULL : id;
}

void mcp_send_fault(struct mcp_session *s, struct mcp_inbound *in, const struct rpc_id *id,
		    const struct rpc_fault *f)
{
	send_answer(s, in, write_fault(s->server, id_of(s, in, id), f),
		    f->status ? f->status : HTTP_OK);
}

void mcp_out_answer(struct mcp_session *s, struct mcp_inbound *in, const struct rpc_id *id)
{
	struct mcp_server *srv = s->server;
	struct rpc_fault f;
	struct err e;

	if (json_write_done(&srv->w, &e) == 0) {
		send_answer(s, in, buf_str(&srv->out), HTTP_OK);
	} else {
		rpc_fault_set(&f, RPC_INTERNAL_ERROR, "the answer can't be sent: %s", e.msg);
		f.reason = err_info(e.code)->name;
		mcp_send_fault(s, in, id, &f);
	}
	clear(&srv->out);
}

void mcp_out_notify(struct mcp_session *s, void *stream)
{
	struct mcp_server *srv = s->server;
	struct err e;

	if (json_write_done(&srv->w, &e) == 0)
		send(s, stream, buf_str(&srv->out), MCP_OUT_NOTIFICATION, HTTP_OK);
	clear(&srv->out);
}

int mcp_out_request(struct mcp_session *s, void *stream, struct err *e)
{
	struct mcp_server *srv = s->server;
	int rc = json_write_done(&srv->w, e);

	if (rc == 0)
		send(s, stream, buf_str(&srv->out), MCP_OUT_REQUEST, HTTP_OK);
	clear(&srv->out);
	return rc;
}

void mcp_session_reject(struct mcp_session *s, const struct err *e, const struct rpc_sniff *sniff,
			void *stream)
{
	struct rpc_id id = { .n = 0 };
	struct rpc_fault f;

	rpc_fault_set(&f, e->code == ERR_LIMIT ? RPC_INTERNAL_ERROR : RPC_INVALID_REQUEST, "%s",
		      e->msg);
	f.reason = err_info(e->code)->name;
	if (sniff)
		rpc_sniff_id(sniff, &id);
	send(s, stream, write_fault(s->server, id_of(s, NULL, &id), &f), MCP_OUT_RESPONSE,
	     err_info(e->code)->http);
}

/* --- the ends of messages --- */

static void send_batch(struct mcp_session *s, struct mcp_inbound *in)
{
	static const struct rpc_id none = { .n = 0 };
	struct rpc_fault f;
	struct err e;

	if (in->answers.n > 0 && buf_add(&in->answers, "]", 1, &e) == 0) {
		send(s, in->stream, buf_str(&in->answers), MCP_OUT_RESPONSE, HTTP_OK);
	} else if (in->answers.n > 0 || in->lost) {
		rpc_fault_set(&f, RPC_INTERNAL_ERROR, "the answers of the batch are too large");
		f.reason = err_info(ERR_TOO_LARGE)->name;
		send(s, in->stream, write_fault(s->server, &none, &f), MCP_OUT_RESPONSE, HTTP_OK);
	}
	buf_fini(&in->answers);
}

void mcp_inbound_release(struct mcp_session *s, struct mcp_inbound *in)
{
	void *stream;

	if (--in->awaited > 0)
		return;
	if (in->is_batch)
		send_batch(s, in);
	stream = in->gone ? NULL : take_ptr(in->stream);
	if (stream && !s->closed && s->t->stream_done) {
		s->entered++;
		s->t->stream_done(s->transport, stream);
		s->entered--;
	}
}

void mcp_inbound_unref(struct mcp_session *s, struct mcp_inbound *in)
{
	if (--in->refs > 0)
		return;
	if (in->held > 0)
		s->held -= in->held;
	mcp_inbound_free(in);
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

static void take_member(struct mcp_session *s, struct mcp_inbound *in, const struct json_val *v)
{
	struct rpc_fault f;
	struct rpc_msg m;
	bool silent;

	if (rpc_read(v, &m, &f, &silent) == 0)
		take_message(s, in, &m);
	else if (!silent)
		mcp_send_fault(s, in, &m.id, &f);
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
	return 0;
}

static void take_batch(struct mcp_session *s, struct mcp_inbound *in)
{
	const struct json_val *root = json_root(in->doc);
	struct json_iter it = json_iter(root);
	struct rpc_fault f;

	if (check_batch(s, root, &f) < 0) {
		in->is_batch = false; /* one answer for all */
		f.status = 400;
		mcp_send_fault(s, in, &in->m.id, &f);
		return;
	}
	while (!s->closed && json_next(&it))
		take_member(s, in, it.val);
}

static void take_broken(struct mcp_session *s, struct mcp_inbound *in)
{
	in->is_batch = false;
	if (in->answered)
		mcp_send_fault(s, in, &in->m.id, &in->fault);
	else
		log_debug("mcp: a broken message is ignored: %s", in->fault.message);
}

void mcp_session_take(struct mcp_session *s, struct mcp_inbound *in, void *stream)
{
	in->stream = stream;
	in->refs = in->awaited = 1;
	s->entered++;
	if (in->era == MCP_BROKEN)
		take_broken(s, in);
	else if (in->is_batch)
		take_batch(s, in);
	else
		take_message(s, in, &in->m);
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
	for (struct inflight_entry *x = inflight_first(s->inflight); x; x = x->newer) {
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
	while ((c = next_to_cancel(s, stream))) {
		c->in->gone = true;
		mcp_call_cancel(c);
	}
	s->entered--;
	mcp_session_settle(s);
}

void mcp_session_cancel_all(struct mcp_session *s)
{
	struct mcp_call *c;

	s->entered++;
	while ((c = next_to_cancel(s, NULL)))
		mcp_call_cancel(c);
	s->entered--;
	mcp_session_settle(s);
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
	return inflight_count(s->inflight) - s->cancelled - s->listening;
}

void mcp_session_close(struct mcp_session *s)
{
	struct mcp_reach *r;

	if (!s)
		return;
	s->closed = true;
	s->entered++;
	unlist(s);
	mcp_session_cancel_all(s);
	while ((r = s->reaches)) {
		mcp_reach_drop(r);
		r->done(r, NULL);
	}
	s->entered--;
	mcp_session_settle(s);
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
