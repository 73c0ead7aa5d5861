#pragma once
/* Shared by the parts of a link. connect.c has its start, end and time; step.c finds out what the
 * server speaks, and connects the client with the wire. */
#include "base/arena.h"
#include "base/budget.h"
#include "loop/reader.h"
#include "loop/writer.h"
#include "mcp/client/head.h"
#include "mcp/connect/child.h"
#include "mcp/connect/connect.h"
#include "mcp/connect/events.h"
#include "mcp/connect/fetch.h"
#include "mcp/connect/program.h"
#include "mcp/connect/relay.h"
#include "rpc/line.h"

enum { LINK_STEPS_MAX = 5 };

/* A possible kind of server. */
struct step {
	enum mcp_wire wire;
	enum mcp_era era;
	bool patient; /* silence is no answer, since it may start slowly */
};

enum link_state { STARTING, READY, OVER, CLOSING };

struct mcp_link {
	struct arena *arena; /* for the target's texts */
	struct mcp_target t;
	uv_loop_t *loop;
	struct mcp_client *client;
	enum link_state state;
	struct step steps[LINK_STEPS_MAX];
	size_t steps_n, at; /* at: the step being tried, or the one that succeeded */
	bool begun; /* the client's first message of this step was sent */
	bool silent; /* the step ends because there was no answer */
	unsigned refused; /* bits of eras that were refused */
	struct mcp_pending *first; /* the first message, while it has no answer */
	struct err why; /* why the last step failed */

	/* At most one is open. */
	struct mcp_child *child;
	struct mcp_child *ending; /* the wire that is being closed */
	struct mcp_program *program; /* in place of a child, where the owner runs it */
	struct mcp_fetch *fetch;
	struct mcp_events *events;
	unsigned wires; /* wires that are not closed yet */
	int child_status;
	struct http_client *http;
	struct budget memory; /* for the client and the wires, if the owner has named no other */
	struct mcp_exchange_base base;

	uv_prepare_t watch; /* before the loop waits: starts the tick if the client needs it */
	uv_timer_t tick, turn, start, probe;
	bool stirred; /* a message was sent since the last tick */
	unsigned handles;
	void (*on_closed)(void *owner);
	void *closed_owner;
};

/* --- step.c --- */

/* Fills the steps: first what is known of the target, then the fixed order of its kind. */
void mcp_link_plan(struct mcp_link *l);
/* Opens the wire of the first step. */
int mcp_link_open(struct mcp_link *l, struct err *e) MUST_USE;
/* Starts the next step, in a later turn of the loop. */
void mcp_link_turn(struct mcp_link *l);
void mcp_link_close_wire(struct mcp_link *l, unsigned stop_ms);

/* --- connect.c --- */

/* Whether the client may be used. The first time, marks the link as ready. */
bool mcp_link_is_ready(struct mcp_link *l);
/* Reports the failure to the client, unless it has ended already. */
void mcp_link_lose(struct mcp_link *l, const struct err *e);
/* A wire is gone. */
void mcp_link_go_on_closing(struct mcp_link *l);

/* Shared by the parts of the transport: fetch.c sends and ends, post.c has each message's way to
 * the server and back. */

enum post_kind { POST_MESSAGE, POST_STREAM, POST_DELETE };

/* HELD: until notifications/initialized was accepted. SENT: its POST or GET is in flight. RESUMING:
 * its events broke off; a GET will resume them. FAILED: it can't be sent, which is reported later.
 * DONE: everything needed has come; the connection may be reused if the answer ends soon. */
enum post_state { HELD, SENT, RESUMING, FAILED, DONE };

struct post {
	struct mcp_fetch *f;
	struct post *next, **at;
	enum post_kind kind;
	enum post_state state;
	struct arena *arena; /* for header values */
	char *text;
	size_t n;
	bool request, modern, is_initialize, opens_stream;
	struct str version, method, name; /* STR_NONE: absent */
	const struct http_header *params;
	size_t params_n;

	void *pending; /* the sender's request; NULL: none, or no longer wanted */
	struct mcp_exchange *exchange;
	struct arena *heads; /* for the exchange's headers */
	int status;
	bool events;
	unsigned generation; /* of the session in which it was sent; 0: none */
	bool resent;
	bool sent; /* the server may have acted on it */
	bool worked; /* this stream was open before */
	unsigned tries; /* attempts without anything new */
	struct sse_reader sse;
	struct err why; /* FAILED */
	uv_timer_t timer;
	bool busy, dead; /* dead: freed inside a callback */
};

struct mcp_fetch {
	struct mcp_fetch_options o;
	uv_loop_t *loop;
	struct post *posts;
	unsigned n_posts; /* messages that are no requests; requests have the client's limit */
	char *session, *version; /* of the legacy session; may be NULL */
	unsigned generation; /* number of the session */
	unsigned losses; /* sessions lost in a row */
	struct post *initialized; /* notifications/initialized, while it is in flight */
	/* Only initialize and notifications/initialized are sent: from initialize on; with
	 * `relays`, from the loss of a session on, and while the notification is in flight. */
	bool holding;
	int status;
	bool closing;
	uv_timer_t timer; /* limits the end */
	void (*on_closed)(void *owner);
	void *closed_owner;
};

/* --- post.c --- */

/* NULL without memory. */
struct post *mcp_post_new(struct mcp_fetch *f, enum post_kind kind);
/* Sends it; failures are reported later. */
void mcp_post_start(struct post *p);
/* Makes it fail later, without sending it. */
void mcp_post_fail(struct post *p, const struct err *e);
/* Frees it in any state. */
void mcp_post_free(struct post *p);

/* --- fetch.c --- */

/* notifications/initialized was accepted, or has failed: sends what waited for it, and opens the
 * stream. */
void mcp_fetch_initialized(struct mcp_fetch *f, bool taken);
/* Frees its posts and itself: the DELETE has ended, or is not waited for. */
void mcp_fetch_shut(struct mcp_fetch *f);

/* Shared by the parts of the relay. relay.c has the lines, the start and the end; relay_call.c
 * messages in flight and their answers; relay_tools.c what is known of tools. */

enum { RELAY_MESSAGES_MAX = 256 }; /* in flight; beyond that no line is read */

/* SERVING: lines are read. DRAINING: messages in flight get their time. ENDING: the session is
 * being ended. FLUSHING: the client gets time to read what is queued. CLOSING: handles are being
 * closed. */
enum relay_state {
	RELAY_SERVING,
	RELAY_DRAINING,
	RELAY_ENDING,
	RELAY_FLUSHING,
	RELAY_CLOSING,
};

/* The state of the legacy session. LOST: the next message opens it again. */
enum relay_session {
	RELAY_SESSION_NONE,
	RELAY_SESSION_OPENS,
	RELAY_SESSION_OPEN,
	RELAY_SESSION_LOST
};

/* A request that waits for its answer, or a batch with such requests. */
struct relay_call {
	struct mcp_relay *r;
	struct relay_call *next, **at;
	struct rpc_id id; /* empty for a batch */
	size_t left; /* for a batch: answers to come */
	unsigned pages; /* pages of lists that were requested for it */
	bool modern;
	bool ours; /* the client does not know of it */
	bool is_initialize;
	bool acts; /* it calls a tool */
	bool lists; /* it is a modern tools/list */
	bool refreshed; /* it was sent again, because the server missed headers */
	char *text; /* to be sent again: initialize, a modern tools/call; else NULL */
	size_t n;
	struct relay_call *caller; /* the call whose tool a list of ours is for */
};

struct relay_tool; /* in relay_tools.c */

struct mcp_relay {
	struct mcp_relay_options o;
	uv_loop_t *loop;
	char *url;
	struct secret *bearer; /* the whole header, or NULL */
	struct http_header header;
	struct http_client *http;
	struct mcp_exchange_base base;
	struct budget memory;
	struct mcp_fetch *fetch; /* NULL: it has ended, or is ending */
	struct loop_reader *reader;
	struct loop_writer *writer;
	struct line_reader lines;
	struct str input; /* read but not processed yet */
	bool paused; /* input waits */
	enum relay_state state;
	uv_timer_t timer; /* limits the state */
	uv_timer_t turn; /* checks what may be done next */
	struct relay_call *calls;
	enum relay_session session;
	char *version; /* revision of the session; NULL before */
	char *init_text; /* the client's initialize, to open the session again */
	size_t init_n;
	struct relay_tool *tools;
	size_t tools_n;
	unsigned handles; /* handles that are not closed yet */
};

/* --- relay.c --- */

/* Writes a line to the client. */
void relay_put_line(struct mcp_relay *r, struct str text);
void relay_put_fault(struct mcp_relay *r, const struct rpc_id *id, const struct rpc_fault *f);
/* Something has ended: the loop's next turn checks what may be done next. */
void relay_look(struct mcp_relay *r);

/* --- relay_call.c --- */

extern const struct mcp_fetch_events relay_events;
/* Handles a line of the client, parsed as JSON. */
void relay_take(struct mcp_relay *r, struct str line, const struct json_val *root);
void relay_call_free(struct relay_call *c);

/* --- relay_tools.c --- */

/* Learns from the result of a tools/list. */
void relay_tools_learn(struct mcp_relay *r, const struct json_val *result);
const struct mcp_params *relay_tools_find(const struct mcp_relay *r, struct str name); /* or NULL */
void relay_tools_free(struct mcp_relay *r);
