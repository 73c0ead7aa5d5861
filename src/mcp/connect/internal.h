#pragma once
/* What the parts of a link share: connect.c has its beginning, end and time, step.c finds
 * out what the server is and stands between the client and the wire. */
#include "base/arena.h"
#include "base/budget.h"
#include "mcp/connect/child.h"
#include "mcp/connect/connect.h"
#include "mcp/connect/events.h"
#include "mcp/connect/fetch.h"

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
	struct mcp_trip_base base;

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
