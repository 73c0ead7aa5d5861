#pragma once
/*
 * Shared by the files of the client's role:
 *
 *	client.c	start and lifetime
 *	in.c		received messages
 *	start.c		initialize, server/discover, and new sessions
 *	request.c	requests of owners
 *	pending.c	requests, from their start to their one end; time
 *	answer.c	handling of answers
 *	check.c		checks of results
 *	send.c		messages as the revision requires
 *	head.c		HTTP headers beside them
 *	tools.c		what is kept of tools
 *	list.c		lists, over all their pages
 *	question.c	questions of the server, and their answers
 *	ask*.c		how each era asks them
 *	form.c		questions to people: forms and URLs
 *	task.c		tasks, followed to their end
 *	watch.c		notifications of changes
 *
 * A pending is one request of the owner, or one of our own. It has at most one message at a time
 * that waits for an answer: the request, its retry, the next page, a poll of the task that it
 * became.
 *
 * Public functions keep what ends in them (mcp_client_enter): a pointer to a pending or a question
 * is valid as long as one of them is on the stack, and `ended` or `gone` tells its state.
 */
#include "base/budget.h"
#include "json/document/put.h"
#include "mcp/client/client.h"
#include "mcp/message/protocol.h"
#include "mcp/message/question.h"
#include "rpc/inflight.h"

enum {
	MCP_PARAMS_BYTES_MAX = 64 << 20,
	MCP_PARAMS_DEPTH = 512,
	MCP_CLIENT_INNER = 64, /* our own requests, besides the owner's limit */
	MCP_CLIENT_NEVER = 0, /* for times in ms */
};

/* A received message, kept as long as it is used. */
struct mcp_in {
	struct budget *memory; /* the budget that counts it, once it is kept */
	struct json_doc *doc;
	struct str text; /* the message, or an element of a batch; while it is handled */
	size_t held; /* bytes that the budget counts */
	unsigned refs;
};

/* The message of a pending that waits for an answer, or will. */
enum mcp_step {
	MCP_STEP_REQUEST, /* the request, its next page or round */
	MCP_STEP_GET, /* tasks/get */
	MCP_STEP_UPDATE, /* tasks/update */
	MCP_STEP_RESULT, /* tasks/result */
};

struct mcp_follow; /* task.c */
struct mcp_listing; /* list.c */

struct mcp_pending {
	/* first: the two are cast. Listed while an answer is awaited */
	struct inflight_entry entry;
	struct mcp_client *client;
	struct mcp_pending *next, **at; /* in the client's list, or that of ended ones */
	bool ended;
	bool inner; /* one of our own */
	bool queued; /* waits for a session */
	bool refreshing; /* waits for tools/list to report its tool */
	bool timeless; /* has no deadline */
	char *method;
	char *text; /* params as text; NULL: none */
	size_t text_n;
	struct json_doc *params; /* params, parsed */
	unsigned timeout_ms;
	unsigned level; /* least level of log messages; MCP_LEVEL_NONE: none */
	bool wants_task;
	unsigned task_ttl_ms;
	void (*on_progress)(void *owner, const struct mcp_progress *p);
	void (*on_task)(void *owner, struct str task_id);
	void (*on_done)(void *owner, const struct mcp_answer *a);
	void *owner;
	void *data; /* belongs to the transport */

	/* Instead of the owner's callbacks. answered: an answer came, and this continues or ends
	 * the request; done: it has ended. */
	void (*answered)(struct mcp_pending *p, struct mcp_in *in, const struct mcp_answer *a);
	void (*done)(struct mcp_pending *p, const struct mcp_answer *a);
	struct mcp_listing *listing;

	enum mcp_step step;
	uint64_t token; /* progressToken */
	bool progressed;
	double progress;
	uint64_t begun_ms, deadline_ms, end_ms;
	unsigned holds; /* open questions that stop its clock */
	uint64_t held_ms; /* when the clock was stopped */
	uint64_t stood_ms; /* total time that the clock was stopped */
	uint64_t waived_ms; /* the part of that for questions of unknown requests */
	unsigned generation; /* of the session in which it was sent */
	bool sent; /* at least once */
	bool resent, refreshed, renegotiated; /* was sent again for this reason; once each */

	unsigned rounds; /* number of input_required answers */
	struct mcp_question *asked; /* questions of the last round; for a task, all questions */
	unsigned open; /* of these, without an answer */
	struct mcp_in *state_in; /* keeps requestState of the last round; NULL: none */
	const struct json_val *state;
	struct mcp_follow *task; /* NULL: it is no task */
};

struct mcp_question {
	/* in the client's list of open questions, or of those that are gone */
	struct mcp_question *next, **at;
	struct mcp_question *sibling; /* modern: the next of the same pending */
	struct mcp_client *client;
	struct mcp_pending *p; /* modern: the request that asks. Legacy: NULL */
	/* the request whose clock is stopped; NULL: all, or it has ended */
	struct mcp_pending *clock;
	bool loose; /* legacy: all clocks are stopped */
	enum mcp_ask_kind kind;
	enum { MCP_QUESTION_OPEN, MCP_QUESTION_ANSWERED, MCP_QUESTION_SENT } state;
	bool handed; /* the owner has it */
	bool gone;
	struct rpc_id id; /* legacy */
	char *key; /* modern */
	size_t key_n;
	struct mcp_in *in;
	const struct json_val *params; /* NULL: none */
	char *result; /* modern: set once answered */
	size_t result_n;
	void *data;
};

enum mcp_client_state {
	MCP_CLIENT_NEW,
	MCP_CLIENT_BEGINS, /* the first message has no answer yet */
	MCP_CLIENT_READY,
	MCP_CLIENT_REOPENS, /* a new session is started; requests wait */
	MCP_CLIENT_OVER,
};

struct mcp_known; /* a tool, in tools.c */

struct mcp_known_tools {
	struct mcp_known *p; /* sorted by name */
	size_t n;
};

struct mcp_watch {
	bool wanted; /* mcp_client_watch() was called */
	unsigned lists;
	char **uris;
	size_t n;
	/* modern */
	/* live: is open; fresh: will replace it once it is acknowledged */
	struct mcp_pending *live, *fresh;
	uint64_t again_ms; /* when to open it again; MCP_CLIENT_NEVER */
	unsigned delay_ms;
	bool missed; /* it was open before, and changes may have been missed since */
	/* legacy */
	struct mcp_watched {
		char *uri;
		bool wanted; /* still wanted */
	} * on; /* subscribed resources */
	size_t on_n;
	size_t next; /* index into uris: those before were tried */
	struct mcp_pending *step;
	char *stepping; /* its URI */
};

struct mcp_client {
	struct mcp_client_options o; /* with defaults filled in */
	const struct mcp_client_transport *t;
	void *transport;
	enum mcp_client_state state;
	enum mcp_era era;
	const struct mcp_profile *profile; /* the revision in use, or requested */
	bool only; /* no other revision is accepted */
	bool told; /* `ready` was called */
	unsigned can; /* the part of o.can that the revision has */
	unsigned tries; /* first messages so far */
	struct mcp_pending *first; /* the first message, while it waits */
	struct mcp_in *about_in;
	const struct json_val *about;
	unsigned generation; /* number of the session */
	unsigned relapses; /* sessions lost since the last answer */
	uint64_t opened_ms; /* when this session was opened */

	uint64_t ids; /* last id of requests and tokens */
	struct inflight *inflight;
	struct mcp_pending *pendings, *ended;
	unsigned pendings_n; /* those of the owner */
	struct mcp_question *questions, *gone;
	unsigned questions_n;
	unsigned loose; /* questions that stop all clocks */
	uint64_t loose_ms; /* since when */
	struct budget own; /* used if the options name no other */
	uint64_t strays, garbage;

	struct mcp_known_tools tools;
	struct mcp_pending *refresh; /* the tools/list that refreshing requests wait for */
	struct mcp_watch watch;
	int level; /* least level of log messages; -1: not set */
	struct mcp_urls *urls; /* form.c: URLs that the server may report as complete */

	unsigned entered; /* public functions on the stack */
	bool freed;
};

/* --- client.c --- */

struct mcp_client *mcp_client_enter(struct mcp_client *c);
void mcp_client_leave(struct mcp_client *c);
AUTO_DEFINE(mcp_client_leave, struct mcp_client)

uint64_t mcp_client_now(const struct mcp_client *c);
/* True while callbacks may come and messages may be sent. */
bool mcp_client_lives(const struct mcp_client *c);
/* Ends all requests with e, and tells the owner. */
void mcp_client_end(struct mcp_client *c, const struct err *e);
/* A server's text, made fit for one line of an error; borrowed from room. */
enum { MCP_SAID_MAX = 128 };
struct str mcp_said(struct str text, char room[MCP_SAID_MAX]);

/* --- in.c --- */

/* Keeps a message. ERR_LIMIT: memory_max would be exceeded. */
int mcp_in_keep(struct mcp_in *in, struct err *e) MUST_USE;
void mcp_in_unref(struct mcp_in *in); /* NULL-safe */
AUTO_DEFINE(mcp_in_unref, struct mcp_in)

/* --- pending.c --- */

/* A request with a copy of params, not listed and not sent. ERR_INVALID: params are not an
 * object. */
struct mcp_pending *mcp_pending_new(struct mcp_client *c, const char *method, struct str params,
				    struct err *e) MUST_USE;
void mcp_pending_free(struct mcp_pending *p); /* only if it was never started. NULL-safe */
AUTO_DEFINE(mcp_pending_free, struct mcp_pending)
/* Lists it and sends its request. On failure it is unchanged. */
int mcp_pending_start(struct mcp_pending *p, struct err *e) MUST_USE;
/* Makes a request of our own; done may be NULL. A failure is only logged. */
struct mcp_pending *mcp_pending_inner(struct mcp_client *c, const char *method, struct str params,
				      void (*done)(struct mcp_pending *p,
						   const struct mcp_answer *a));
/* Sends the message of its step, or ends it with the failure. */
void mcp_pending_go_on(struct mcp_pending *p);
bool mcp_pending_awaits(const struct mcp_pending *p);
/* Stops waiting for its answer; nobody is told. */
void mcp_pending_unlist(struct mcp_pending *p);
/* a NULL: only the transport is told. */
void mcp_pending_end(struct mcp_pending *p, const struct mcp_answer *a);
void mcp_pending_fail(struct mcp_pending *p, const struct err *e);
/* Tells the server that no answer is needed. */
void mcp_pending_take_back(struct mcp_pending *p, const char *reason);
/* Stops its clock while its questions are open. */
void mcp_pending_hold(struct mcp_pending *p);
void mcp_pending_unhold(struct mcp_pending *p);
void mcp_clocks_hold(struct mcp_client *c); /* all clocks, each for at most hold_max_ms */
void mcp_clocks_unhold(struct mcp_client *c);
/* Restarts its timeout, since something came for it. */
void mcp_pending_alive(struct mcp_pending *p);
struct mcp_pending *mcp_pending_of_token(const struct mcp_client *c, const struct json_val *token);

/* --- request.c --- */

/* Whether the owner may start a request of that method. */
int mcp_client_may_ask(const struct mcp_client *c, const char *method, struct err *e) MUST_USE;
/* 2025-11-25: whether it could be made as a task. */
bool mcp_request_can_task(const struct mcp_pending *p);

/* --- start.c --- */

int mcp_client_reopen(struct mcp_client *c, struct err *e) MUST_USE;
/* A revision of that era that the server has, by the data of its error, and we have too; NULL:
 * none. */
const struct mcp_profile *mcp_version_common(const struct mcp_client *c,
					     const struct json_val *supported, bool modern);

/* --- answer.c --- */

void mcp_answer_take(struct mcp_pending *p, struct mcp_in *in, const struct mcp_answer *a);
/* True if the request is sent again because of this fault. */
bool mcp_answer_retries(struct mcp_pending *p, const struct mcp_answer *a);
/* Ends it with the result if that is valid for its method, else with the failure. */
void mcp_answer_finish(struct mcp_pending *p, const struct mcp_answer *a);
/* --- check.c --- */

enum mcp_result_type { MCP_RESULT_COMPLETE, MCP_RESULT_INPUT, MCP_RESULT_TASK };

/* The kind of a result; -1 with ERR_INVALID: it is none. */
int mcp_result_type(const struct mcp_pending *p, const struct json_val *result, struct err *e);
/* ERR_INVALID if a complete result does not fit its method, or the tool's output schema. */
int mcp_result_check(struct mcp_pending *p, const struct json_val *result, struct err *e) MUST_USE;

/* --- send.c --- */

int mcp_send_request(struct mcp_pending *p, struct err *e) MUST_USE;
/* Sends a notification; params: JSON object or STR_NONE. */
int mcp_send_notification(struct mcp_client *c, const char *method, struct str params,
			  struct err *e) MUST_USE;
/* Answers a request of a legacy server. result: JSON on one line. */
int mcp_send_result(struct mcp_client *c, const struct rpc_id *id, struct str result,
		    struct err *e) MUST_USE;
void mcp_send_refusal(struct mcp_client *c, const struct rpc_id *id, const struct rpc_fault *f);
void mcp_write_self(struct json_writer *w, const struct mcp_client *c); /* clientInfo */
void mcp_write_can(struct json_writer *w, const struct mcp_client *c); /* ClientCapabilities */
/* Writes JSON on one line, from a valid text and the value that was parsed from it. */
void mcp_write_line(struct json_writer *w, struct str text, const struct json_val *v);

/* --- head.c --- */

/* Fills name, params and params_n of m, for the method with these params. Release them
 * (mcp/client/head.h). */
int mcp_head_fill(struct mcp_client_out *m, const struct mcp_client *c, const char *method,
		  const struct json_val *params, struct err *e) MUST_USE;
/* The same with a known name. */
int mcp_head_name(struct mcp_client_out *m, const struct mcp_client *c, struct str name,
		  struct err *e) MUST_USE;

/* --- tools.c --- */

/* Replaces what was known; if not whole, only for tools with these names. Sets tools with bad
 * headers to NULL in `items` and returns their number. -1 without memory, and nothing has
 * changed. */
int mcp_tools_learn(struct mcp_client *c, const struct json_val **items, size_t n, bool whole,
		    struct err *e);
/* Learns from the result of a tools/list that the owner has requested itself. */
void mcp_tools_learn_page(struct mcp_pending *p, const struct json_val *result);
void mcp_tools_forget(struct mcp_client *c, struct mcp_known_tools *all);
/* The tools have changed: drops the output schemas, so that no result is checked against an old
 * one. The server reports other differences. */
void mcp_tools_doubt(struct mcp_client *c);
const struct mcp_params *mcp_tool_params(const struct mcp_client *c, struct str name); /* or NULL */
/* -1: unknown. */
int mcp_tool_tasking(const struct mcp_client *c, struct str name);
/* ERR_INVALID: the tool's output schema refuses v, or is unusable. */
int mcp_tool_check_result(struct mcp_client *c, struct str name, const struct json_val *result,
			  struct err *e) MUST_USE;

/* --- list.c --- */

/* Starts a tools/list of our own. */
struct mcp_pending *mcp_list_tools(struct mcp_client *c,
				   void (*on_done)(void *owner, const struct mcp_listed *l),
				   struct err *e) MUST_USE;
struct str mcp_listing_cursor(
	const struct mcp_listing *l); /* of the next page; STR_NONE: the first */
void mcp_listing_free(struct mcp_listing *l); /* NULL-safe */

/* --- question.c --- */

void mcp_question_free(struct mcp_question *q); /* NULL-safe */
AUTO_DEFINE(mcp_question_free, struct mcp_question)
/* Puts it on the client's list of open questions, and stops the clocks that it concerns. */
void mcp_question_open(struct mcp_question *q);
/* gives it to the owner, who may answer at once */
void mcp_question_hand_out(struct mcp_question *q);
void mcp_question_withdraw(struct mcp_question *q); /* an open one */

/* --- ask.c --- */

/* Takes the questions of a map of InputRequests that p was not asked before. Returns their number;
 * -1 if one can't be asked. */
int mcp_ask_take_map(struct mcp_pending *p, struct mcp_in *in, const struct json_val *map,
		     struct err *e) MUST_USE;
void mcp_ask_hand_out(struct mcp_pending *p); /* gives the open ones to the owner */
/* input_required: asks, and repeats the request with the answers. */
void mcp_ask_round(struct mcp_pending *p, struct mcp_in *in, const struct json_val *result);
void mcp_ask_drop_missing(struct mcp_pending *p,
			  /* drops questions that are no longer in it */
			  const struct json_val *map);
void mcp_ask_drop(struct mcp_pending *p); /* all its questions */
/* Writes the answers that were not sent before. */
bool mcp_ask_has_answers(const struct mcp_pending *p);
void mcp_ask_write_answers(struct json_writer *w, const struct mcp_pending *p);
void mcp_ask_sent(struct mcp_pending *p); /* the server has taken them */
void mcp_ask_forget(struct mcp_pending *p); /* drops all questions and answers */

/* --- ask_legacy.c --- */

/* A request of a legacy server; p: the request on whose stream it came, NULL: none. */
void mcp_ask_legacy(struct mcp_client *c, struct mcp_pending *p, struct mcp_in *in,
		    const struct rpc_msg *m);
/* p has ended. The questions that stop its clock stay open. */
void mcp_ask_outlives(struct mcp_pending *p);
/* The server has withdrawn it. */
void mcp_ask_withdrawn(struct mcp_client *c, const struct rpc_id *id);
void mcp_ask_drop_legacy(struct mcp_client *c);

/* --- form.c --- */

/* The kind of a request of the server; -1: it is no question. */
int mcp_question_find(struct str method, const struct json_val *params);
/* ERR_INVALID: it can't be asked. */
int mcp_question_read(enum mcp_ask_kind kind, const struct json_val *params,
		      struct err *e) MUST_USE;
void mcp_urls_note(struct mcp_client *c, const struct json_val *params);
bool mcp_urls_done(struct mcp_client *c, struct str id); /* true if it was asked */
void mcp_urls_free(struct mcp_urls *urls); /* NULL-safe */

/* --- task.c --- */

void mcp_follow_begin(struct mcp_pending *p, struct mcp_in *in, const struct json_val *result);
void mcp_follow_take(struct mcp_pending *p, struct mcp_in *in, const struct mcp_answer *a);
/* Sends the answers, or polls when it is time. */
void mcp_follow_go_on(struct mcp_pending *p);
uint64_t mcp_follow_due(const struct mcp_pending *p); /* UINT64_MAX: not before something comes */
/* Its message got no answer in time, or was lost: true if it is polled again. */
bool mcp_follow_survives(struct mcp_pending *p, const struct err *e);
/* Handles notifications/tasks/status. */
void mcp_follow_hint(struct mcp_client *c, const struct json_val *params);
void mcp_follow_cancel(struct mcp_pending *p); /* tells the server */
struct str mcp_follow_id(const struct mcp_follow *f);
/* The request that became the task; NULL: none. */
struct mcp_pending *mcp_follow_find(const struct mcp_client *c, struct str id);
void mcp_follow_free(struct mcp_follow *f); /* NULL-safe */

/* --- watch.c --- */

void mcp_watch_apply(struct mcp_client *c); /* a session begins */
void mcp_watch_tick(struct mcp_client *c, uint64_t now);
uint64_t mcp_watch_due(const struct mcp_client *c); /* UINT64_MAX: nothing to do */
/* Handles notifications/subscriptions/acknowledged. */
void mcp_watch_acknowledged(struct mcp_client *c, struct mcp_pending *p,
			    const struct json_val *params);
/* True if a modern notification was asked for. */
bool mcp_watch_takes(const struct mcp_client *c, const struct mcp_pending *p,
		     const struct json_val *params);
/* A modern server has ended the listen. */
bool mcp_watch_ended(struct mcp_client *c, const struct rpc_id *id);
void mcp_watch_fini(struct mcp_client *c);
