#pragma once
/* What the parts of the transport share: fetch.c sends and ends, post.c goes the ways
 * there and back. */
#include "base/arena.h"
#include "mcp/connect/fetch.h"

enum post_kind { POST_MESSAGE, POST_STREAM, POST_DELETE };

/* HELD: until notifications/initialized has been taken. SENT: its POST or GET is under way. RESUMING: its
 * events broke off; a GET takes them up again. FAILED: it is told later that it can't be sent. DONE: what
 * was wanted has come; its connection may be used again if it ends soon. */
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
	struct mcp_trip *trip;
	struct arena *heads; /* of the trip's headers */
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
	/* Nothing is sent but initialize and that: from initialize on, or, where it relays, from the loss of a
	 * session on and while that is under way. */
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

/* notifications/initialized was taken, or not: what waited for it goes, and the stream is opened. */
void mcp_fetch_initialized(struct mcp_fetch *f, bool taken);
/* The DELETE is over. */
void mcp_fetch_deleted(struct mcp_fetch *f);
