#pragma once
/* Between the files of the modules. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/buf.h"
#include "box/host/box.h"
#include "hub/core/hub.h"
#include "hub/sandbox/sandbox.h"
#include "mcp/connect/connect.h"
#include "store/store.h"
#include "modules/package.h"
#include "modules/program_sandbox.h"
#include "modules/upstream.h"

struct upstream_conn;

/* Digits of a list's digest in what is approved. A server chooses its lists, so it must not be able
 * to find two of one digest. */
enum { SEEN_SHOWN = 48 };

enum { INDEXES_KEPT = 4 };

struct upstreams {
	uv_loop_t *loop;
	struct hub *hub;
	struct config *config;
	struct program_sandbox_of place;
	char key[HASH_HEX + 1]; /* of digests */
	struct upstream *first; /* in the order of the file */
	struct upstream *gone; /* no longer in it, with calls or connections that end */
	struct upstreams_watch *watches;
	struct upstream_results *results; /* of results.c; NULL: none was kept yet */
	struct upstreams_index {
		char key[HASH_HEX + 1];
		struct tools *tools; /* owned */
	} indexes[INDEXES_KEPT]; /* the newest first */
	uv_timer_t soon; /* to tell the watches */
	uint64_t revisions; /* the last that one of them got */
	unsigned open; /* modules, connections and fetches that are not freed yet */
	const char *const *build; /* upstreams_options.build */
	unsigned fetching; /* packages */
	struct verb_run *sweeping; /* removes packages that no row has; NULL: nothing does */
	bool sweep_again; /* more may be without a row since */
	bool closing;
	void (*on_closed)(void *arg);
	void *closed_arg;
};

/* Tools as a server has listed them; a connection and a call may have the same. */
struct upstream_tools {
	unsigned refs;
	struct arena *arena;
	struct upstream_tool *p;
	size_t n;
	struct str instructions, title, version;
	bool told;
	bool recalled; /* what was approved: it was not connected since then */
	char seen[HASH_HEX + 1]; /* digest of all of it */
};

/* A list of what a server has. */
struct upstream_offer {
	struct arena *arena; /* NULL: nothing is known */
	struct str *p;
	size_t n;
};

/* An image of the store, and what it was fetched for: digests; "": there is none. */
struct upstream_image {
	char digest[HASH_HEX + 1], for_entry[HASH_HEX + 1];
};

struct upstream {
	struct upstreams *all;
	struct upstream *next;
	struct config *config; /* a reference, for server */
	const struct config_server *server;
	char name[CONFIG_SERVER_NAME_MAX + 1];
	enum upstream_state state;
	char digest[HASH_HEX + 1]; /* of what is approved; "": it has none */
	struct err unfit; /* why it has none */
	struct arena *reach_arena; /* of reach; NULL: none */
	struct field_strs reach; /* as upstream_info.network */
	/* Its row. */
	char approved[HASH_HEX + 1], approved_by[72];
	int64_t approved_ms;
	bool disabled;
	char *pins; /* owned; NULL: none yet; set by pins_swap() */
	struct upstream_names *names; /* of what is pinned; NULL: not made yet */
	uint64_t revision; /* upstream_info.revision */

	/* Of an entry that runs a package: what it runs, and what waits to be approved in its
	 * place; NULL: none. */
	struct package *package, *update;
	/* Their images, as the row has them: also where the entry wants others now, or the files
	 * are not there. */
	struct upstream_image package_image, update_image;
	char fetch_for[HASH_HEX + 1]; /* what is being fetched */
	char update_digest[HASH_HEX + 1]; /* as digest, with the update; "": there is none */
	struct package_fetch *fetch; /* NULL: nothing is fetched */
	struct upstream_fetching *fetching; /* who waits for it; NULL: nobody */

	char shown[HASH_HEX + 1 + SEEN_SHOWN + 1]; /* upstream_info.digest */
	struct upstream_conn *conn; /* that new calls take; NULL: none */
	struct upstream_conn *retired; /* those of before that still have calls */
	struct mcp_found found; /* of the last connection */
	struct upstream_call *waiting, **end; /* for a connection, the oldest first */
	struct upstream_call *refused; /* waited, and are told now that it was in vain */
	bool refusing; /* some of them are being told */
	struct upstream_tools *tools; /* as listed last; NULL: never */
	struct upstream_offer offers[UPSTREAM_LISTS];
	struct str *watched; /* owned, with its texts in one piece; NULL: nothing */
	size_t n_watched;
	uint64_t second_ms; /* when its updates were counted from */
	unsigned updates;
	unsigned calls;
	uint64_t calls_total, connects, used_ms;
	unsigned failures;
	struct err why;
	uv_timer_t again; /* until it may be tried again */
	uint64_t due_ms; /* when that is */
	bool timed; /* `again` is a handle */
	bool is_gone;
	struct buf log;
	/* Since the last connection began: */
	size_t heard; /* bytes of the log */
	struct upstream_denied denied[UPSTREAM_DENIED]; /* that its program asked for */
	size_t n_denied; /* all of them; the first are kept */
};

/* One connection, from the first step to the last. */
struct upstream_conn {
	struct upstream *of; /* NULL: nobody wants it any more */
	struct upstreams *all;
	struct config *config; /* a reference, for server */
	const struct config_server *server;
	bool ready; /* the tools are listed */
	bool retired; /* takes no new call, and ends with its last */
	struct upstream_conn *next; /* retired, too */
	bool ending;
	struct upstream_call *calls; /* sent, and without an answer */
	char who[OWNER_MAX + 1]; /* of the first call; "": none was sent */
	bool mixed; /* others have called since: what names no call may be about any of them */
	struct texts texts;
	struct program_sandbox place;
	struct package *package; /* that it runs, a reference; NULL: its entry's command */
	char template[HASH_HEX + 8]; /* of the package */
	char label[CONFIG_SERVER_NAME_MAX + 8]; /* of lines in the log: "module NAME" */
	struct mcp_link *link;
	bool linked; /* the link is not closed yet */
	struct mcp_pending *listing;
	struct pins_judging *judging; /* what was listed; NULL: nothing is judged */
	bool relist; /* the list has changed meanwhile */
	uint64_t listed_ms; /* when it was asked for last */
	struct {
		struct mcp_pending *pending;
		unsigned wanted; /* 1 << enum upstream_list each */
		enum upstream_list now; /* that is pending */
		uint64_t since_ms;
		uv_timer_t timer;
	} offers;
	enum mcp_level level; /* least of the log messages that it is asked for */
	uv_timer_t limit; /* of the connecting */
};

/* ---- server.c: one module ------------------------------------------------------------------- */

struct upstream *upstream_new(struct upstreams *all, struct config *c,
			      const struct config_server *s, struct err *e) MUST_USE;
void upstream_free(struct upstream *u);
/* It is another in the file now; NULL: it is not there any more. */
void upstream_change(struct upstream *u, struct config *c, const struct config_server *s);
/* The operator's word: ends its connection, and those of before, with all calls. */
void upstream_stop(struct upstream *u, const struct err *e);
/* From its connection: it can be called; it has failed or ended; one of its calls has ended. */
void upstream_ready(struct upstream *u);
void upstream_lost(struct upstream *u, const struct err *e);
void upstream_released(struct upstream *u);
/* This one is not one of its retired connections any more. */
void upstream_unlink(struct upstream *u, const struct upstream_conn *k);
/* Ends its connection at once, with the calls. It is then in this state. */
void upstream_drop(struct upstream *u, enum upstream_state then, const struct err *e);
void upstream_heard(struct upstream *u, struct str bytes); /* on its standard error */

/* ---- why.c: why it failed ------------------------------------------------------------------- */

/* Its program asked for what it is not granted. Told once for each name and connection. */
void why_denied(struct upstream *u, const char *host, uint16_t port);
/* Its connection failed or ended by e. *ret: why, with what its program said and asked for, and a
 * code whose remedy is that of a module. */
void why_lost(const struct upstream *u, const struct err *e, struct err *ret);

/* ---- conn.c: one connection ----------------------------------------------------------------- */

/* Begins to connect. NULL with *e. */
struct upstream_conn *conn_new(struct upstream *u, struct err *e) MUST_USE;
/* Sends a call; -1: on_done is not called. */
int conn_call(struct upstream_conn *k, struct upstream_call *c, struct err *e) MUST_USE;
/* From pins.c: its tools are judged, or why they can't be; t is borrowed. */
void conn_on_judged(struct upstream_conn *k, struct upstream_tools *t, const struct err *err);
/* Its tools as a list has them; each item is an object. Those that no name tells from others are
 * left out, which its log says. */
struct upstream_tools *upstream_tools_new(struct upstream *u, const struct json_val *const *items,
					  size_t n, struct str instructions,
					  struct err *e) MUST_USE;
/* A call that was sent has ended. */
void conn_release(struct upstream_call *c);
/* Nobody wants it any more: calls that are under way fail with e. It is freed later. */
void conn_end(struct upstream_conn *k, const struct err *e);

/* ---- ask.c: what its server asks ------------------------------------------------------------ */

enum { ASK_KINDS = MCP_CAN_FORM | MCP_CAN_URL | MCP_CAN_SAMPLING };
/* Callbacks of struct mcp_client_handler; the owner is the connection. */
void ask_on_asked(void *owner, struct mcp_question *q);
void ask_on_withdrawn(void *owner, struct mcp_question *q);
/* The request of the call has ended: nobody is asked for it any more. */
void ask_end(struct upstream_call *c);

/* ---- grant.c: what was approved ------------------------------------------------------------- */

/* Reads its row of the registry. */
int grant_read(struct upstream *u, struct err *e) MUST_USE;
/* Fills u->digest or u->unfit, and u->reach. */
void grant_digest(struct upstream *u);
void grant_forget_reach(struct upstream *u);
bool grant_holds(const struct upstream *u);
int grant_write(const struct upstream *u, struct err *e) MUST_USE;

/* ---- packages.c: the packages that entries run ----------------------------------------------- */

/* Whether its entry runs a package: as package_wanted(). */
int packages_wanted(const struct upstream *u, struct err *e) MUST_USE;
/* Opens those images that the entry wants, and forgets the others. */
void packages_fit(struct upstream *u);
/* What a connection starts in place of the entry's command. */
int packages_target(const struct package *p, const struct config_server *s, struct config_target *t,
		    struct err *e) MUST_USE;
/* Removes fetched packages that no row has, in a while. */
void packages_sweep(struct upstreams *all);
/* Ends what is fetched or removed. */
void packages_close(struct upstreams *all);
/* All of its calls and fetches may have ended. */
void upstream_try_free(struct upstream *u);

/* ---- pins.c: what its tools were ------------------------------------------------------------ */

/* Judges what was listed, and fills t->seen; takes t. conn_on_judged() is called later, but for -1.
 * One at a time. */
int pins_judge_start(struct upstream_conn *k, struct upstream_tools *t, struct err *e) MUST_USE;
/* It is not called any more. */
void pins_judge_leave(struct upstream_conn *k);
/* The first list after an approval is taken as it is. */
int pins_take(struct upstream *u, struct err *e) MUST_USE;
/* Approves what is listed now. */
int pins_approve(struct upstream *u, const struct field_strs *tools, struct err *e) MUST_USE;
/* Before it is connected, its tools are those that were approved, as long as the approval holds. */
void pins_recall(struct upstream *u);
/* Sets u->pins; the old one is returned, and owned. */
char *pins_swap(struct upstream *u, char *pins) MUST_USE;
void pins_free(struct upstream *u);

/* ---- offers.c: resources and prompts -------------------------------------------------------- */

/* It is ready; and these lists (MCP_RESOURCES…) have changed. */
void offers_begin(struct upstream_conn *k);
void offers_changed(struct upstream_conn *k, unsigned lists);
/* Asks for changes of lists and of what is watched. */
void offers_watch(struct upstream_conn *k);
void offers_forget(struct upstream *u);
/* mcp_client_handler.updated, .log; owner is the connection. */
void offers_on_updated(void *owner, struct str uri);
void offers_on_log(void *owner, const struct mcp_log_message *m);

/* ---- results.c ----------------------------------------------------------------------------- */

void results_close(struct upstreams *all);

/* ---- upstreams.c ---------------------------------------------------------------------------- */

/* Makes room for one more connection: ERR_LIMIT where all are in use. */
int upstreams_make_room(struct upstreams *all, struct err *e) MUST_USE;
void upstreams_changed(struct upstreams *all);
void upstreams_updated(struct upstreams *all, struct str module, struct str uri);
void upstreams_try_close(struct upstreams *all);
