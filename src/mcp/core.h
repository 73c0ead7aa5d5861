#pragma once
/*
 * The inside of the server's role, shared by the files of this folder:
 *
 *	session.c	sessions: text to messages, messages to methods, what is sent
 *	methods.c	initialize, ping, tools/list, notifications
 *	call.c		tools/call: from the request to its one answer
 *	result.c	results and tools as JSON
 *
 * A message that came in lives as long as a call that it started: calls borrow their arguments.
 */
#include "mcp/profile.h"
#include "mcp/server.h"
#include "rpc/inflight.h"
#include "rpc/rpc.h"

struct mcp_server {
	struct mcp_server_options o; /* with the defaults filled in */
	unsigned sessions; /* ever made */
};

struct mcp_session {
	struct mcp_server *server;
	const struct mcp_transport *t;
	void *transport;
	void *data;
	const struct mcp_profile *profile; /* NULL before initialize */
	struct inflight *inflight; /* calls */
	unsigned cancelled; /* of them */
	size_t held; /* bytes of messages that calls hold */
	unsigned number;
	unsigned requests; /* ever seen */
	unsigned entered; /* functions of ours on the stack that still use the session */
	bool closed;
	char client[128];
	struct buf out; /* the message being written */
	struct buf spare; /* for faults: reserved, so that they need no memory */
	struct json_writer w;
};

/* A message that came in; counted. */
struct mcp_message {
	struct json_doc *doc;
	unsigned refs;
	size_t held; /* what the session counts for it; 0 until a call holds it */
};

/* The answers to a batch, gathered until the last is there. */
struct mcp_batch {
	struct mcp_session *session;
	void *stream;
	struct buf text;
	unsigned waiting; /* calls, and the loop that reads the batch */
	bool failed; /* over the maximum or out of memory */
};

/* Where answers to a message go. */
struct mcp_origin {
	void *stream;
	struct mcp_batch *batch; /* NULL: none */
	struct mcp_message *message;
};

struct mcp_call {
	struct inflight_entry entry; /* first: found by it */
	struct mcp_session *session;
	struct mcp_origin origin;
	const struct mcp_profile *profile;
	const struct mcp_tool *tool;
	const struct json_val *args;
	struct arena *arena;
	bool cancelled;
	void (*on_cancel)(struct mcp_call *c, void *data);
	void *cancel_data;
	struct rpc_id token; /* none: no progress is wanted */
	struct {
		bool any, held; /* accepted one; one waits to be sent */
		double value, total;
		char *message;
		uint64_t sent_ms; /* 0: none was sent */
	} progress;
	char label[32];
};

/* --- session.c --- */

/* Starts a message in s->w; one at a time. */
struct json_writer *mcp_out_begin(struct mcp_session *s);
/* Sends it to where `to` says; a message that failed is answered by a fault in its place. */
void mcp_out_end(struct mcp_session *s, const struct mcp_origin *to, const struct rpc_id *id);
/* Sends it on the request's stream, in no batch; dropped if it failed. */
void mcp_out_notify(struct mcp_session *s, void *stream);
void mcp_send_fault(struct mcp_session *s, const struct mcp_origin *to, const struct rpc_id *id,
		    const struct rpc_fault *f);

/* An answer of the batch is there or will never come. b may be NULL. */
void mcp_batch_release(struct mcp_batch *b);

void mcp_message_unref(struct mcp_session *s, struct mcp_message *m);

/* Frees a closed session that nothing uses any more. */
void mcp_session_settle(struct mcp_session *s);

/* --- methods.c --- */

void mcp_request(struct mcp_session *s, const struct mcp_origin *from, const struct rpc_msg *m);
void mcp_notification(struct mcp_session *s, const struct rpc_msg *m);

/* --- call.c --- */

int mcp_call_start(struct mcp_session *s, const struct mcp_origin *from, const struct rpc_msg *m,
		   struct rpc_fault *ret_fault) MUST_USE;
void mcp_call_cancel(struct mcp_call *c);

/* --- result.c --- */

void mcp_write_tool(struct json_writer *w, const struct mcp_profile *p, const struct mcp_tool *t);
/* max: bytes of structured content. */
void mcp_write_result(struct json_writer *w, const struct mcp_profile *p,
		      const struct mcp_result *r, size_t max);
