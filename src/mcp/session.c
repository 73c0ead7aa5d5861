/*
 * Sessions. A text comes in whole, is parsed and told apart here, and goes to a method
 * (methods.c); answers leave through mcp_out_*(), on their stream or into their batch.
 *
 * Handlers may end calls, cancel and close from inside any callback. So every function that
 * touches the session after a callback counts itself in `entered`, and a closed session is freed
 * when neither functions nor calls use it.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "mcp/core.h"
#include "rpc/sniff.h"

enum {
	KEEP = 64 << 10, /* a larger buffer is given back after its message */
	FAULT_ROOM = 4096, /* more than any fault needs: id and message are bounded */
};

static_assert(FAULT_ROOM > RPC_ID_MAX + 6 * sizeof(((struct rpc_fault *)0)->message) + 256,
	      "a fault fits its buffer");

static const struct err no_memory = { ERR_LIMIT, "out of memory" };

struct mcp_session *mcp_session_new(struct mcp_server *srv, const struct mcp_transport *t,
				    void *transport, void *data)
{
	struct mcp_session *s = calloc(1, sizeof(*s));
	struct err e;

	if (!s)
		return NULL;
	s->server = srv;
	s->t = t;
	s->transport = transport;
	s->data = data;
	s->out = BUF_INIT(srv->o.reply_max);
	s->spare = BUF_INIT(FAULT_ROOM);
	s->inflight = inflight_new(srv->o.inflight_max);
	if (!s->inflight || !buf_reserve(&s->spare, FAULT_ROOM, &e)) {
		mcp_session_close(s);
		return NULL;
	}
	s->number = ++srv->sessions;
	return s;
}

void mcp_session_settle(struct mcp_session *s)
{
	if (!s->closed || s->entered > 0 || (s->inflight && inflight_count(s->inflight) > 0))
		return;
	inflight_free(s->inflight);
	buf_fini(&s->out);
	buf_fini(&s->spare);
	free(s);
}

/* --- what is sent --- */

static void send(struct mcp_session *s, void *stream, struct str message)
{
	if (!s->closed)
		s->t->send(s->transport, stream, message);
}

static void clear(struct buf *b)
{
	if (b->cap > KEEP)
		buf_fini(b);
	b->n = 0;
}

static void add_to_batch(struct mcp_batch *b, struct str message)
{
	struct err e;

	if (b->failed)
		return;
	if (buf_add(&b->text, b->text.n ? "," : "[", 1, &e) < 0 ||
	    buf_add(&b->text, message.p, message.n, &e) < 0) {
		buf_fini(&b->text);
		b->failed = true;
	}
}

static void send_answer(struct mcp_session *s, const struct mcp_origin *to, struct str message)
{
	if (to->batch)
		add_to_batch(to->batch, message);
	else
		send(s, to->stream, message);
}

struct json_writer *mcp_out_begin(struct mcp_session *s)
{
	clear(&s->out);
	s->w = json_writer(&s->out);
	return &s->w;
}

void mcp_send_fault(struct mcp_session *s, const struct mcp_origin *to, const struct rpc_id *id,
		    const struct rpc_fault *f)
{
	struct json_writer w = json_writer(&s->spare);
	struct err e;
	int rc;

	s->spare.n = 0;
	rpc_write_fault(&w, id, f);
	rc = json_write_done(&w, &e);
	assert(rc == 0);
	send_answer(s, to, buf_str(&s->spare));
}

void mcp_out_end(struct mcp_session *s, const struct mcp_origin *to, const struct rpc_id *id)
{
	struct rpc_fault f;
	struct err e;

	if (json_write_done(&s->w, &e) == 0) {
		send_answer(s, to, buf_str(&s->out));
	} else {
		rpc_fault_set(&f, RPC_INTERNAL_ERROR, "the answer can't be sent: %s", e.msg);
		f.reason = err_info(e.code)->name;
		mcp_send_fault(s, to, id, &f);
	}
	clear(&s->out);
}

void mcp_out_notify(struct mcp_session *s, void *stream)
{
	struct err e;

	if (json_write_done(&s->w, &e) == 0)
		send(s, stream, buf_str(&s->out));
	clear(&s->out);
}

void mcp_session_reject(struct mcp_session *s, const struct err *e, const struct rpc_sniff *sniff,
			void *stream)
{
	const struct mcp_origin from = { .stream = stream };
	struct rpc_id id = { .n = 0 };
	struct rpc_fault f;

	rpc_fault_set(&f, e->code == ERR_LIMIT ? RPC_INTERNAL_ERROR : RPC_INVALID_REQUEST, "%s",
		      e->msg);
	f.reason = err_info(e->code)->name;
	if (sniff)
		rpc_sniff_id(sniff, &id);
	mcp_send_fault(s, &from, &id, &f);
}

/* --- batches --- */

static struct mcp_batch *batch_new(struct mcp_session *s, void *stream)
{
	struct mcp_batch *b = calloc(1, sizeof(*b));

	if (b)
		*b = (struct mcp_batch){ .session = s,
					 .stream = stream,
					 .text = BUF_INIT(s->server->o.reply_max),
					 .waiting = 1 };
	return b;
}

static void batch_send(struct mcp_batch *b)
{
	const struct mcp_origin to = { .stream = b->stream };
	struct rpc_fault f;
	struct err e;

	if (b->text.n > 0 && buf_add(&b->text, "]", 1, &e) == 0) {
		send(b->session, b->stream, buf_str(&b->text));
	} else if (b->text.n > 0 || b->failed) {
		rpc_fault_set(&f, RPC_INTERNAL_ERROR, "the answers of the batch are too large");
		f.reason = err_info(ERR_TOO_LARGE)->name;
		mcp_send_fault(b->session, &to, NULL, &f);
	}
}

void mcp_batch_release(struct mcp_batch *b)
{
	if (!b || --b->waiting > 0)
		return;
	batch_send(b);
	buf_fini(&b->text);
	free(b);
}

/* --- what comes in --- */

static void ignore(const char *why, const struct rpc_fault *f)
{
	log_debug("mcp: %s is ignored%s%s", why, f ? ": " : "", f ? f->message : "");
}

static void take_one(struct mcp_session *s, const struct json_val *v, const struct mcp_origin *from)
{
	struct rpc_fault f;
	struct rpc_msg m;
	bool silent;

	if (rpc_read(v, &m, &f, &silent) < 0) {
		if (silent)
			ignore("a broken message", &f);
		else
			mcp_send_fault(s, from, &m.id, &f);
		return;
	}
	switch (m.kind) {
	case RPC_REQUEST:
		mcp_request(s, from, &m);
		break;
	case RPC_NOTIFICATION:
		mcp_notification(s, &m);
		break;
	case RPC_RESPONSE:
		ignore("a response to no request", NULL);
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
	return 0;
}

static void take_batch(struct mcp_session *s, const struct json_val *v,
		       const struct mcp_origin *from)
{
	struct mcp_origin member = *from;
	struct json_iter it = json_iter(v);
	struct rpc_fault f;

	if (check_batch(s, v, &f) < 0) {
		mcp_send_fault(s, from, NULL, &f);
		return;
	}
	member.batch = batch_new(s, from->stream);
	if (!member.batch) {
		mcp_session_reject(s, &no_memory, NULL, from->stream);
		return;
	}
	while (!s->closed && json_next(&it))
		take_one(s, it.val, &member);
	mcp_batch_release(member.batch);
}

static struct mcp_message *message_new(struct json_doc *doc)
{
	struct mcp_message *m = calloc(1, sizeof(*m));

	if (!m) {
		json_free(doc);
		return NULL;
	}
	m->doc = doc;
	m->refs = 1;
	return m;
}

void mcp_message_unref(struct mcp_session *s, struct mcp_message *m)
{
	if (--m->refs > 0)
		return;
	s->held -= m->held;
	json_free(m->doc);
	free(m);
}

void mcp_session_message(struct mcp_session *s, struct str text, void *stream)
{
	struct mcp_origin from = { .stream = stream };
	struct json_doc *doc = NULL;
	const struct json_val *root;
	struct rpc_fault f;
	struct rpc_id id;

	if (rpc_parse(text, &s->server->o.json, &doc, &f, &id) < 0) {
		mcp_send_fault(s, &from, &id, &f);
		return;
	}
	from.message = message_new(doc);
	if (!from.message) {
		mcp_session_reject(s, &no_memory, NULL, stream);
		return;
	}
	root = json_root(doc);
	s->entered++;
	if (json_type(root) == JSON_ARRAY)
		take_batch(s, root, &from);
	else
		take_one(s, root, &from);
	mcp_message_unref(s, from.message);
	s->entered--;
	mcp_session_settle(s);
}

/* --- ends --- */

static struct mcp_call *first_uncancelled(const struct mcp_session *s)
{
	for (struct inflight_entry *x = inflight_first(s->inflight); x; x = x->newer) {
		struct mcp_call *c = (struct mcp_call *)x;

		if (!c->cancelled)
			return c;
	}
	return NULL;
}

void mcp_session_cancel_all(struct mcp_session *s)
{
	struct mcp_call *c;

	s->entered++;
	while ((c = first_uncancelled(s)))
		mcp_call_cancel(c);
	s->entered--;
	mcp_session_settle(s);
}

unsigned mcp_session_open(const struct mcp_session *s)
{
	return inflight_count(s->inflight) - s->cancelled;
}

void mcp_session_close(struct mcp_session *s)
{
	if (!s)
		return;
	s->closed = true;
	if (s->inflight)
		mcp_session_cancel_all(s);
	else
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
