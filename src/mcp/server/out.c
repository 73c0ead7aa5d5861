/*
 * Outgoing messages: answers on the stream of their message or in its batch, notifications, and our
 * own requests. All are written into one buffer of the server; faults go into another that needs no
 * allocation. The last answer to a message ends its stream.
 */
#include <assert.h>

#include "mcp/server/internal.h"
#include "rpc/sniff.h"

enum {
	KEEP = 64 << 10, /* a larger buffer is freed after its message */
	HTTP_OK = 200,
	SHOWN_MAX = 64,
};

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

static void batch_add(struct mcp_inbound *in, struct str text)
{
	struct err e;

	if (!in->lost && (buf_add(&in->answers, in->answers.n ? "," : "[", 1, &e) < 0 ||
			  buf_add(&in->answers, text.p, text.n, &e) < 0)) {
		buf_fini(&in->answers);
		in->lost = true;
	}
}

struct json_writer *mcp_out_begin(struct mcp_server *srv)
{
	clear(&srv->out);
	json_writer_init(&srv->w, &srv->out);
	return &srv->w;
}

struct str mcp_shown(struct str text)
{
	return text.n <= SHOWN_MAX ? text : STR_LIT("…");
}

void mcp_fault_redact(struct mcp_server *srv, struct rpc_fault *f)
{
	if (!srv->o.redact)
		return;
	srv->o.redact(srv->o.owner, f->message, sizeof(f->message));
	if (!srv->o.redact(srv->o.owner, f->data, sizeof(f->data)))
		f->data[0] = '\0'; /* half of it is no JSON */
}

/* The text of a fault; can't fail. */
static struct str write_fault(struct mcp_server *srv, const struct rpc_id *id,
			      const struct rpc_fault *f)
{
	struct json_writer w = json_writer(&srv->spare);
	struct rpc_fault said = *f;
	struct err e;
	int rc;

	mcp_fault_redact(srv, &said);
	srv->spare.n = 0;
	rpc_write_fault(&w, id, &said);
	rc = json_write_done(&w, &e);
	assert(rc == 0);
	return buf_str(&srv->spare);
}

void mcp_send_fault(struct mcp_session *s, struct mcp_inbound *in, const struct rpc_id *id,
		    const struct rpc_fault *f)
{
	struct str text = write_fault(s->server, id, f);

	if (in->is_batch)
		batch_add(in, text);
	else
		send(s, in->stream, text, MCP_OUT_RESPONSE, f->status ? f->status : HTTP_OK);
}

/* Where it does not fit beside the others, its request has a fault in its place, for which there is
 * room. */
static void batch_answer(struct mcp_session *s, struct mcp_inbound *in, const struct rpc_id *id,
			 struct str text)
{
	size_t max = s->server->o.reply_max;
	struct rpc_fault f;

	if (in->answers.n + text.n + 2 <= max) {
		batch_add(in, text);
		return;
	}
	rpc_fault_set(&f, RPC_INTERNAL_ERROR,
		      "it was answered, but the answers of a batch have at most %zu bytes", max);
	f.reason = err_info(ERR_UNSURE);
	mcp_send_fault(s, in, id, &f);
}

void mcp_out_answer(struct mcp_session *s, struct mcp_inbound *in, const struct rpc_id *id)
{
	struct mcp_server *srv = s->server;
	struct rpc_fault f;
	struct err e;

	if (json_write_done(&srv->w, &e) < 0) {
		rpc_fault_set(&f, RPC_INTERNAL_ERROR, "the answer can't be sent: %s", e.msg);
		f.reason = err_info(e.code);
		mcp_send_fault(s, in, id, &f);
	} else if (in->is_batch) {
		batch_answer(s, in, id, buf_str(&srv->out));
	} else {
		send(s, in->stream, buf_str(&srv->out), MCP_OUT_RESPONSE, HTTP_OK);
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
	f.reason = err_info(e->code);
	if (sniff)
		rpc_sniff_id(sniff, &id);
	send(s, stream, write_fault(s->server, &id, &f), MCP_OUT_RESPONSE, err_info(e->code)->http);
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
		rpc_fault_set(&f, RPC_INTERNAL_ERROR, "no memory for the answers of the batch");
		f.reason = err_info(ERR_UNSURE);
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
	if (stream && !s->closed)
		mcp_ask_leave(s, stream);
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
