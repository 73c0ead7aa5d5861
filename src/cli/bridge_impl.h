#pragma once
/* What the parts of the bridge share: bridge.c has the lines and the client, bridge_post.c the server. */
#include "base/buf.h"
#include "cli/bridge.h"
#include "http/client/client.h"
#include "http/client/sse.h"
#include "loop/reader.h"
#include "loop/writer.h"
#include "rpc/line.h"
#include "rpc/rpc.h"

enum { BRIDGE_POSTS_MAX = 256 }; /* under way; then no line is read */

enum post_state { WAITING, SENT, RESUMING };

/* SERVING: lines are read; DRAINING: what is under way gets its time; ENDING: the session's end is being
 * told; FLUSHING: the client gets time to take what waits; CLOSING: handles are closed. */
enum bridge_state { SERVING, DRAINING, ENDING, FLUSHING, CLOSING };

/* One message on its way, or, without text, the stream of what belongs to no request. */
struct post {
	struct bridge *b;
	struct post *next, **at;
	enum post_state state;
	char *text;
	size_t n;
	struct rpc_id id; /* of the request; none: a notification, a response, a batch */
	char *version; /* the era's claim, of a modern message */
	char *method, *name; /* of a modern message; may be NULL */
	bool is_initialize, opens_stream, is_batch;
	bool ends; /* the session */
	bool ours; /* the client does not know of it: its answer is not for it */
	bool resent;
	unsigned generation; /* the session's that it was sent in; 0: in none */
	bool answered;
	unsigned tries;
	struct http_exchange *x;
	int status;
	bool events; /* the answer is a stream of them */
	struct sse_reader sse;
	struct buf body;
	uv_timer_t timer; /* to the next try */
};

struct bridge {
	struct bridge_options o;
	char *url;
	struct secret *bearer; /* the whole header, or NULL */
	uv_loop_t *loop;
	struct http_client *http;
	struct loop_reader *reader;
	struct loop_writer *writer;
	struct line_reader lines;
	struct str input; /* read and not yet taken */
	bool paused; /* input waits */
	enum bridge_state state;
	uv_timer_t timer; /* how long the state may last */
	struct post *posts;
	unsigned n_posts;
	struct post *opening; /* the initialize that is under way */
	char *init_text; /* the client's initialize, to open the session again */
	size_t init_n;
	struct rpc_id init_id;
	char *session, *version;
	unsigned generation; /* of sessions */
	unsigned handles; /* still to be closed */
};

/* --- bridge.c --- */

/* One message to the client. */
void bridge_put_line(struct bridge *b, struct str text);
void bridge_put_fault(struct bridge *b, const struct rpc_id *id, const struct rpc_fault *f);

/* After the end of a post: what may come now? */
void bridge_settle(struct bridge *b);

/* --- bridge_post.c --- */

/* text: STR_NONE for the stream of what belongs to no request. NULL without memory. */
struct post *bridge_post_new(struct bridge *b, struct str text);
/* Without a callback, without an answer. */
void bridge_post_free(struct post *p);
/* The same, and goes on with what waited for it. */
void bridge_post_end(struct post *p);
/* Takes what HTTP wants to know of a modern message. */
void bridge_post_read_modern(struct post *p, const struct rpc_msg *m);
/* p may be gone when it returns. */
void bridge_post_send(struct post *p);
/* Answers a request that gets no other answer. */
void bridge_post_fail(struct post *p, const struct err *e);
