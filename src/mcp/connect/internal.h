#pragma once
/* What the parts of a link share: connect.c has its beginning, end and time, step.c finds
 * out what the server is and stands between the client and the wire. */
#include "base/arena.h"
#include "base/budget.h"
#include "loop/reader.h"
#include "loop/writer.h"
#include "mcp/client/head.h"
#include "mcp/connect/child.h"
#include "mcp/connect/connect.h"
#include "mcp/connect/events.h"
#include "mcp/connect/fetch.h"
#include "mcp/connect/relay.h"
#include "rpc/line.h"

enum { LINK_STEPS_MAX = 5 };

/* What a server may be. */
struct step {
	enum mcp_wire wire;
	enum mcp_era era;
	bool patient; /* silence is no answer: it may just start slowly */
};

enum link_state { STARTING, READY, OVER, CLOSING };

struct mcp_link {
	struct arena *arena; /* of the target's texts */
	struct mcp_target t;
	uv_loop_t *loop;
	struct mcp_client *client;
	enum link_state state;
	struct step steps[LINK_STEPS_MAX];
	size_t steps_n, at; /* the step that is being tried, or that held */
	bool begun; /* the client's first message of this step was sent */
	bool silent; /* the step ends for want of an answer */
	unsigned refused; /* eras: there was an answer, and it was no */
	struct mcp_pending *first; /* that message, while it has no answer */
	struct err why; /* the last step was none */

	/* At most one. */
	struct mcp_child *child;
	struct mcp_child *ending; /* that was the wire, and is not gone yet */
	struct mcp_fetch *fetch;
	struct mcp_events *events;
	unsigned wires; /* that are not gone yet */
	int child_status;
	struct http_client *http;
	struct budget memory; /* of the client and the wires, where the owner has named no other */
	struct mcp_exchange_base base;

	uv_prepare_t watch; /* before the loop waits: has the client anything that takes time? */
	uv_timer_t tick, turn, start, probe;
	bool stirred; /* something was said since the last tick */
	unsigned handles;
	void (*on_closed)(void *owner);
	void *closed_owner;
};

/* --- step.c --- */

/* Fills the steps: what is known of the target first, then the ladder of its kind. */
void mcp_link_plan(struct mcp_link *l);
/* The wire of the first step. */
int mcp_link_open(struct mcp_link *l, struct err *e) MUST_USE;
/* Begins the step that is next, in a later turn of the loop. */
void mcp_link_turn(struct mcp_link *l);
void mcp_link_close_wire(struct mcp_link *l, unsigned stop_ms);

/* --- connect.c --- */

/* From when on the client may be used; also says so. */
bool mcp_link_is_ready(struct mcp_link *l);
/* The client is told, unless it is over already. */
void mcp_link_lose(struct mcp_link *l, const struct err *e);
/* A wire is gone. */
void mcp_link_go_on_closing(struct mcp_link *l);

/* What the parts of the transport share: fetch.c sends and ends, post.c goes the ways
 * there and back. */

enum post_kind { POST_MESSAGE, POST_STREAM, POST_DELETE };

/* HELD: until notifications/initialized has been taken. SENT: its POST or GET is under way.
 * RESUMING: its events broke off; a GET takes them up again. FAILED: it is told later that it can't
 * be sent. DONE: what was wanted has come; its connection may be used again if it ends soon. */
enum post_state { HELD, SENT, RESUMING, FAILED, DONE };

struct post {
	struct mcp_fetch *f;
	struct post *next, **at;
	enum post_kind kind;
	enum post_state state;
	struct arena *arena; /* of what is said beside the text */
	char *text;
	size_t n;
	bool request, modern, is_initialize, opens_stream;
	struct str version, method, name; /* STR_NONE: not said */
	const struct http_header *params;
	size_t params_n;

	void *pending; /* the sender's request; NULL: none, or it is wanted no more */
	struct mcp_exchange *exchange;
	struct arena *heads; /* of the exchange's headers */
	int status;
	bool events;
	unsigned generation; /* of the session that it was sent in; 0: in none */
	bool resent;
	bool worked; /* a stream that was there once */
	unsigned tries; /* without anything new */
	struct sse_reader sse;
	struct err why; /* FAILED */
	uv_timer_t timer;
	bool busy, dead; /* freed from inside of a call of the client's */
};

struct mcp_fetch {
	struct mcp_fetch_options o;
	uv_loop_t *loop;
	struct post *posts;
	unsigned n_posts; /* that are no requests: those have the client's bound */
	char *session, *version; /* of the legacy session; may be NULL */
	unsigned generation; /* of sessions */
	unsigned losses; /* of them, one after the other */
	struct post *initialized; /* notifications/initialized, while it is under way */
	/* Nothing is sent but initialize and that: from initialize on, or, where it relays, from
	 * the loss of a session on and while that is under way. */
	bool holding;
	int status;
	bool closing;
	uv_timer_t timer; /* how long its end may take */
	void (*on_closed)(void *owner);
	void *closed_owner;
};

/* --- post.c --- */

/* NULL without memory. */
struct post *mcp_post_new(struct mcp_fetch *f, enum post_kind kind);
/* Sends it; what goes wrong is told later. */
void mcp_post_start(struct post *p);
/* The same where it was not sent. */
void mcp_post_fail(struct post *p, const struct err *e);
/* Whatever it is at. */
void mcp_post_free(struct post *p);

/* --- fetch.c --- */

/* notifications/initialized was taken, or not: what waited for it goes, and the stream is
 * opened. */
void mcp_fetch_initialized(struct mcp_fetch *f, bool taken);
/* The DELETE is over. */
void mcp_fetch_deleted(struct mcp_fetch *f);

/* What the parts of the relay share: relay.c has the lines, the beginning and the end,
 * relay_call.c the messages on their way and their answers, relay_tools.c what is known of
 * tools. */

enum { RELAY_MESSAGES_MAX = 256 }; /* under way; then no line is read */

/* SERVING: lines are read; DRAINING: what is under way gets its time; ENDING: the session's end is
 * being told; FLUSHING: the client gets time to take what waits; CLOSING: handles are closed. */
enum relay_state {
	RELAY_SERVING,
	RELAY_DRAINING,
	RELAY_ENDING,
	RELAY_FLUSHING,
	RELAY_CLOSING,
};

/* Of the legacy session. LOST: the next message opens it again. */
enum relay_session {
	RELAY_SESSION_NONE,
	RELAY_SESSION_OPENS,
	RELAY_SESSION_OPEN,
	RELAY_SESSION_LOST
};

/* A request that waits for its answer; or a batch with some. */
struct relay_call {
	struct mcp_relay *r;
	struct relay_call *next, **at;
	struct rpc_id id; /* none: a batch */
	size_t left; /* of a batch: answers to come */
	unsigned pages; /* of lists that were asked for it */
	bool modern;
	bool ours; /* the client does not know of it */
	bool is_initialize;
	bool lists; /* a modern tools/list */
	bool refreshed; /* sent again, since the server missed headers */
	char *text; /* to be sent again: initialize, a modern tools/call; else NULL */
	size_t n;
	struct relay_call *caller; /* whose tool a list of ours is for */
};

struct relay_tool; /* relay_tools.c's */

struct mcp_relay {
	struct mcp_relay_options o;
	uv_loop_t *loop;
	char *url;
	struct secret *bearer; /* the whole header, or NULL */
	struct http_header header;
	struct http_client *http;
	struct mcp_exchange_base base;
	struct budget memory;
	struct mcp_fetch *fetch; /* NULL: it has ended, or does */
	struct loop_reader *reader;
	struct loop_writer *writer;
	struct line_reader lines;
	struct str input; /* read and not yet taken */
	bool paused; /* input waits */
	enum relay_state state;
	uv_timer_t timer; /* how long the state may last */
	uv_timer_t turn; /* a look at what may come now */
	struct relay_call *calls;
	enum relay_session session;
	char *version; /* the session's revision; NULL before */
	char *init_text; /* the client's initialize, to open the session again */
	size_t init_n;
	struct relay_tool *tools;
	size_t tools_n;
	unsigned handles; /* still to be closed */
};

/* --- relay.c --- */

/* To the client. */
void relay_put_line(struct mcp_relay *r, struct str text);
void relay_put_fault(struct mcp_relay *r, const struct rpc_id *id, const struct rpc_fault *f);
/* Something has ended: what may come now is looked at in the loop's next turn. */
void relay_look(struct mcp_relay *r);

/* --- relay_call.c --- */

extern const struct mcp_fetch_events relay_events;
/* A line of the client, which is JSON. */
void relay_take(struct mcp_relay *r, struct str line, const struct json_val *root);
void relay_call_free(struct relay_call *c);

/* --- relay_tools.c --- */

/* Of the result of a tools/list. */
void relay_tools_learn(struct mcp_relay *r, const struct json_val *result);
const struct mcp_params *relay_tools_find(const struct mcp_relay *r, struct str name); /* or NULL */
void relay_tools_free(struct mcp_relay *r);
