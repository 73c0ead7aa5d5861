#pragma once
/*
 * Between the files of `holt serve`. What is served besides the routes of the hub's own state is a
 * row of serve_parts; a part is opened before the door, and closed behind it.
 */
#include <uv.h>

#include "agents/agent.h"
#include "agents/conversation/conversation.h"
#include "agents/conversation/feed.h"
#include "base/sha256.h"
#include "door/mcp/door.h"
#include "http/server/server.h"
#include "hub/core/hub.h"
#include "loop/lag.h"

enum { SERVE_PARTS_MAX = 10 };

struct serve_part;

struct gate;
struct serving {
	uv_loop_t loop;
	struct lag lag; /* of the loop */
	struct hub *hub;
	struct gate *gate;
	struct coding *coding;
	struct code *code;
	struct upstreams *upstreams;
	struct agents *agents;
	struct feed *feed;
	struct conversations *conversations;
	struct ops *ops;
	struct mcp_door *mcp;
	struct http_server *door;
	/* Those of the operator, by their names; else NULL. */
	const struct principal *(*named)(struct str name);
	/* As http_options.identify. */
	const void *(*identify)(void *serving, struct str token, bool local);
	struct config *config;
	/* --compat, or compat.apis of the operator's file. Without tokens clients of mitos may ask
	 * from this machine. */
	bool compat_e2b, compat_mitos, compat_tokenless;
	struct mitos *mitos; /* NULL: its clients are not served */
	char token[SHA256_HEX]; /* of the hub's own token */
	int data; /* the data folder, for the page; -1: none */
	int agents_port; /* where agents find the door; 0: not yet */
	char url[320]; /* of the first address of TCP, for browsers; "" without one */
	bool stopping;
	void *parts[SERVE_PARTS_MAX]; /* by the row; what open() gave */
};

struct serve_part {
	const char *name;
	/* Whether it is served at all. NULL: always. */
	bool (*wanted)(const struct serving *s);
	/* Its routes; NULL with *e. */
	void *(*open)(struct serving *s, struct http_routes *ret, struct err *e);
	/* Who a request without a token comes from (http_options.identify_browser). May be NULL. */
	const void *(*identify)(void *part, struct http_request *q);
	/* Ends the sessions of a principal that is good for nothing any more. NULL: it has none. */
	void (*end_of)(void *part, const void *who);
	/* The operator's file was read again. May be NULL. */
	void (*configure)(void *part, struct config *c);
	/* The server goes down: what waits for nothing ends now. May be NULL. */
	void (*drain)(void *part);
	/* No connection is left; on_closed is called later. NULL: there is nothing to close. */
	void (*close)(void *part, void (*on_closed)(void *arg), void *arg);
	/* Instead of close, where that takes no time. */
	void (*free)(void *part);
	/* Its routes of a door of their own, for previews. May be NULL. */
	struct http_routes (*previews)(void *part);
	/* Adds to the sessions that /metrics shows by the part's name. May be NULL. */
	unsigned (*sessions)(const void *part);
};

/* mcp.c */
extern const struct serve_part serve_http, serve_sse;

/* doors.c */
extern const struct serve_part *const serve_parts[];
extern const size_t serve_parts_n;

/* state.c: /healthz, /readyz, /version, /metrics. */
struct http_routes serve_state_routes(struct serving *s);
