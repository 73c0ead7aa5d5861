#pragma once
/* What the parts of the relay share: relay.c has the lines, the beginning and the end,
 * relay_call.c the messages on their way and their answers, relay_tools.c what is known of
 * tools. */
#include "base/budget.h"
#include "loop/reader.h"
#include "loop/writer.h"
#include "mcp/client/head.h"
#include "mcp/connect/fetch.h"
#include "mcp/connect/relay.h"
#include "rpc/line.h"

enum { RELAY_MESSAGES_MAX = 256 }; /* under way; then no line is read */

/* SERVING: lines are read; DRAINING: what is under way gets its time; ENDING: the session's end is being told;
 * FLUSHING: the client gets time to take what waits; CLOSING: handles are closed. */
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
	struct mcp_trip_base base;
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
