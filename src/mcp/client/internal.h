#pragma once
/*
 * The inside of the client's role, shared by the files of this folder:
 *
 * 	client.c	life
 * 	in.c		messages that came in, to what they are for
 * 	start.c		initialize, server/discover, and sessions that are begun anew
 * 	request.c		what owners ask for
 * 	pending.c		requests, from their start to their one end; time
 * 	answer.c		what an answer to a request leads to
 * 	check.c		what a result must be
 * 	send.c		messages as the revision wants them
 * 	head.c		what HTTP says beside them
 * 	tools.c		what is kept of tools
 * 	list.c		lists, over all their pages
 * 	question.c		questions of the server, and their answers
 * 	ask*.c		how each era asks them
 * 	form.c		what is asked: forms and addresses
 * 	task.c		tasks, followed to their end
 * 	watch.c		what the server is to tell of
 *
 * A pending is one request of the owner, or of our own, and has at most one message that waits for
 * an answer at a time: the request, its retry, the next page, a poll of the task that it became.
 *
 * Functions that are called from outside keep what ends in them (mcp_client_enter): a pointer to a
 * pending or a question is good as long as one of them is on the stack, and `ended` or `gone`
 * tells.
 */
#include "base/budget.h"
#include "mcp/client/client.h"
#include "mcp/message/protocol.h"
#include "mcp/message/question.h"
#include "rpc/inflight.h"

enum {
	MCP_PARAMS_BYTES_MAX = 64 << 20,
	MCP_PARAMS_DEPTH = 512,
	MCP_CLIENT_INNER = 64, /* requests of our own that may wait beside the owner's */
	MCP_CLIENT_NEVER = 0, /* of times in ms */
};

/* A message that came in, for as long as anything of it is wanted. */
struct mcp_in {
	struct budget *memory; /* where it counts, once it is kept */
	struct json_doc *doc;
	struct str text; /* of the message, or of the element of a batch; while it is handled */
	size_t held; /* counted for who keeps it */
	unsigned refs;
};

/* What of a pending waits for an answer, or will. */
enum mcp_step {
	MCP_STEP_REQUEST, /* itself, or its next page or round */
	MCP_STEP_GET, /* tasks/get */
	MCP_STEP_UPDATE, /* tasks/update */
	MCP_STEP_RESULT, /* tasks/result */
};

struct mcp_follow; /* task.c's */
struct mcp_listing; /* list.c's */

struct mcp_pending {
	struct inflight_entry entry; /* first: found by it. Listed while an answer is awaited */
	struct mcp_client *client;
	struct mcp_pending *next, **at; /* of the client's; of the ended ones */
	bool ended;
	bool inner; /* our own */
	bool queued; /* waits for a session */
	bool refreshing; /* waits for what tools/list says of its tool */
	bool timeless; /* has no deadline */
	char *method;
	char *text; /* of params; NULL: none */
	size_t text_n;
	struct json_doc *params; /* the same */
	unsigned timeout_ms;
	unsigned level; /* of log messages; MCP_LEVEL_NONE: none */
	bool wants_task;
	unsigned task_ttl_ms;
	void (*on_progress)(void *owner, const struct mcp_progress *p);
	void (*on_task)(void *owner, struct str task_id);
	void (*on_done)(void *owner, const struct mcp_answer *a);
	void *owner;
	void *data; /* the transport's */

	/* Whose it is, where that is not the owner: an answer came, which it goes on with or ends
	 * by; it has ended, in whatever way. */
	void (*answered)(struct mcp_pending *p, struct mcp_in *in, const struct mcp_answer *a);
	void (*done)(struct mcp_pending *p, const struct mcp_answer *a);
	struct mcp_listing *listing;

	enum mcp_step step;
	uint64_t token; /* of progress */
	bool progressed;
	double progress;
	uint64_t begun_ms, deadline_ms, end_ms;
	unsigned holds; /* questions that stop its clock */
	uint64_t held_ms; /* since when */
	uint64_t stood_ms; /* its clock, in all */
	uint64_t waived_ms; /* of that, for questions that may be of any request */
	unsigned generation; /* of the session that it was sent in */
	bool resent, refreshed, renegotiated; /* was sent anew for that reason; once each */

	unsigned rounds; /* of input_required */
	struct mcp_question *asked; /* of the last round; of a task: of all */
	unsigned open; /* of them, without an answer */
	struct mcp_in *state_in; /* requestState of the last round; NULL: none */
	const struct json_val *state;
	struct mcp_follow *task; /* NULL: it is none */
};

struct mcp_question {
	struct mcp_question *next, **at; /* of the client's open ones; of those that are gone */
	struct mcp_question *sibling; /* modern: of the same pending */
	struct mcp_client *client;
	struct mcp_pending *p; /* modern: whose request asks. Legacy: NULL */
	struct mcp_pending *clock; /* whose stands still; NULL: all, or of one that has ended */
	bool loose; /* legacy: the clocks of all do */
	enum mcp_ask_kind kind;
	enum { MCP_QUESTION_OPEN, MCP_QUESTION_ANSWERED, MCP_QUESTION_SENT } state;
	bool handed; /* to the owner */
	bool gone;
	struct rpc_id id; /* legacy */
	char *key; /* modern */
	size_t key_n;
	struct mcp_in *in;
	const struct json_val *params; /* NULL: none */
	char *result; /* modern: once answered */
	size_t result_n;
	void *data;
};

enum mcp_client_state {
	MCP_CLIENT_NEW,
	MCP_CLIENT_BEGINS, /* the first message has no answer yet */
	MCP_CLIENT_READY,
	MCP_CLIENT_REOPENS, /* the session is begun anew; requests wait */
	MCP_CLIENT_OVER,
};

struct mcp_known; /* a tool: tools.c's */

struct mcp_known_tools {
	struct mcp_known *p; /* by name */
	size_t n;
};

struct mcp_watch {
	bool wanted; /* mcp_client_watch() was called */
	unsigned lists;
	char **uris;
	size_t n;
	/* modern */
	struct mcp_pending *live, *fresh; /* that listens; that will, once it is acknowledged */
	uint64_t again_ms; /* when to listen again; MCP_CLIENT_NEVER */
	unsigned delay_ms;
	bool missed; /* it did listen, and something may have happened since */
	/* legacy */
	struct mcp_watched {
		char *uri;
		bool wanted; /* still */
	} * on; /* subscribed */
	size_t on_n;
	size_t next; /* of uris: those before were tried */
	struct mcp_pending *step;
	char *stepping; /* what the step is about */
};

struct mcp_client {
	struct mcp_client_options o; /* with the defaults filled in */
	const struct mcp_client_transport *t;
	void *transport;
	enum mcp_client_state state;
	enum mcp_era era;
	const struct mcp_profile *profile; /* in use, or asked for */
	bool only; /* that revision, no other */
	bool told; /* `ready` was called */
	unsigned can; /* of o.can: what the revision has */
	unsigned tries; /* of the first message */
	struct mcp_pending *first; /* which that is, while it waits */
	struct mcp_in *about_in;
	const struct json_val *about;
	unsigned generation; /* of sessions */
	unsigned relapses; /* sessions lost since the last answer */
	uint64_t opened_ms; /* this one */

	uint64_t ids; /* of requests and tokens, ever */
	struct inflight *inflight;
	struct mcp_pending *pendings, *ended;
	unsigned pendings_n; /* of the owner's */
	struct mcp_question *questions, *gone;
	unsigned questions_n;
	unsigned loose; /* of them: those which stop all clocks */
	uint64_t loose_ms; /* since when */
	struct budget own; /* where the options name no other */
	uint64_t strays, garbage;

	struct mcp_known_tools tools;
	struct mcp_pending *refresh; /* tools/list for those that wait for it */
	struct mcp_watch watch;
	int level; /* of log messages; -1: none was set */
	struct mcp_urls *urls; /* form.c's: elicitations by URL that may be told of */

	unsigned entered; /* functions of the header on the stack */
	bool freed;
};

/* --- client.c --- */

struct mcp_client *mcp_client_enter(struct mcp_client *c);
void mcp_client_leave(struct mcp_client *c);
AUTO_DEFINE(mcp_client_leave, struct mcp_client)

uint64_t mcp_client_now(const struct mcp_client *c);
/* True while callbacks may come and messages go. */
bool mcp_client_lives(const struct mcp_client *c);
/* Ends all that waits, with e, and tells the owner. */
void mcp_client_end(struct mcp_client *c, const struct err *e);
/* What a server said, as a part of an error's one line: borrowed from room. */
enum { MCP_SAID_MAX = 128 };
struct str mcp_said(struct str text, char room[MCP_SAID_MAX]);

/* --- in.c --- */

/* Keeps a message. ERR_LIMIT where all that is kept would take too much. */
int mcp_in_keep(struct mcp_in *in, struct err *e) MUST_USE;
void mcp_in_unref(struct mcp_in *in); /* NULL-safe */
AUTO_DEFINE(mcp_in_unref, struct mcp_in)
/* The text of a member of the object that v was read from; STR_NONE: it has none. */
struct str mcp_raw_member(struct str text, const struct json_val *v, const char *key);

/* --- pending.c --- */

/* With the method and a copy of params. Not listed, nothing sent. ERR_INVALID where params are no
 * object. */
struct mcp_pending *mcp_pending_new(struct mcp_client *c, const char *method, struct str params,
				    struct err *e) MUST_USE;
void mcp_pending_free(struct mcp_pending *p); /* one that was never started. NULL-safe */
AUTO_DEFINE(mcp_pending_free, struct mcp_pending)
/* Lists it and sends its request. On failure it is as it was before. */
int mcp_pending_start(struct mcp_pending *p, struct err *e) MUST_USE;
/* A request of our own; done may be NULL. Where it can't be made, it is only said in the log. */
struct mcp_pending *mcp_pending_inner(struct mcp_client *c, const char *method, struct str params,
				      void (*done)(struct mcp_pending *p,
						   const struct mcp_answer *a));
/* Sends what its step wants, or ends it with why not. */
void mcp_pending_go_on(struct mcp_pending *p);
bool mcp_pending_awaits(const struct mcp_pending *p);
/* What it waits for is of no interest any more; nobody is told. */
void mcp_pending_unlist(struct mcp_pending *p);
void mcp_pending_end(struct mcp_pending *p, const struct mcp_answer *a);
void mcp_pending_fail(struct mcp_pending *p, const struct err *e);
/* Tells the server that it need not answer. */
void mcp_pending_take_back(struct mcp_pending *p, const char *reason);
/* Its clock stops while questions of it are open. */
void mcp_pending_hold(struct mcp_pending *p);
void mcp_pending_unhold(struct mcp_pending *p);
void mcp_clocks_hold(struct mcp_client *c); /* of all, for hold_max_ms of each */
void mcp_clocks_unhold(struct mcp_client *c);
/* Something came for it: its timeout begins anew. */
void mcp_pending_alive(struct mcp_pending *p);
struct mcp_pending *mcp_pending_of_token(const struct mcp_client *c, const struct json_val *token);

/* --- request.c --- */

/* May the owner begin a request of that method? */
int mcp_client_may_ask(const struct mcp_client *c, const char *method, struct err *e) MUST_USE;
/* 2025-11-25: could it be made with a request for a task? */
bool mcp_request_can_task(const struct mcp_pending *p);

/* --- start.c --- */

int mcp_client_reopen(struct mcp_client *c, struct err *e) MUST_USE;
/* A revision of that era that the server has, by the data of its error, and we; NULL for none. */
const struct mcp_profile *mcp_version_common(const struct mcp_client *c,
					     const struct json_val *supported, bool modern);

/* --- answer.c --- */

void mcp_answer_take(struct mcp_pending *p, struct mcp_in *in, const struct mcp_answer *a);
/* True where the fault is one after which the request is sent anew, which it will be. */
bool mcp_answer_retries(struct mcp_pending *p, const struct mcp_answer *a);
/* Ends it with the result, if that is one for its method; else with why it is none. */
void mcp_answer_finish(struct mcp_pending *p, const struct mcp_answer *a);
/* --- check.c --- */

enum mcp_result_type { MCP_RESULT_COMPLETE, MCP_RESULT_INPUT, MCP_RESULT_TASK };

/* What kind of result it is; -1 with ERR_INVALID where it can't be one. */
int mcp_result_type(const struct mcp_pending *p, const struct json_val *result, struct err *e);
/* ERR_INVALID where a complete result is not as its method wants it, or as the tool's output schema
 * does. */
int mcp_result_check(struct mcp_pending *p, const struct json_val *result, struct err *e) MUST_USE;

/* --- send.c --- */

int mcp_send_request(struct mcp_pending *p, struct err *e) MUST_USE;
/* A notification; params: JSON object or STR_NONE. */
int mcp_send_notification(struct mcp_client *c, const char *method, struct str params,
			  struct err *e) MUST_USE;
/* The answer to a request of a legacy server. result: JSON on one line. */
int mcp_send_result(struct mcp_client *c, const struct rpc_id *id, struct str result,
		    struct err *e) MUST_USE;
void mcp_send_refusal(struct mcp_client *c, const struct rpc_id *id, const struct rpc_fault *f);
void mcp_write_self(struct json_writer *w, const struct mcp_client *c); /* clientInfo */
void mcp_write_can(struct json_writer *w, const struct mcp_client *c); /* ClientCapabilities */
/* JSON on one line, from a text that is valid and the value that was read from it. */
void mcp_write_line(struct json_writer *w, struct str text, const struct json_val *v);

/* --- head.c --- */

/* name, params and params_n of m, for the method with these params. To be released
 * (mcp/client/head.h). */
int mcp_head_fill(struct mcp_client_out *m, const struct mcp_client *c, const char *method,
		  const struct json_val *params, struct err *e) MUST_USE;
/* The same where the name is known. */
int mcp_head_name(struct mcp_client_out *m, const struct mcp_client *c, struct str name,
		  struct err *e) MUST_USE;

/* --- tools.c --- */

/* Takes the place of what was known; not whole: of the tools of those names only. Tools with bad
 * headers are NULL in `items` after it; how many those are. -1 without memory, and nothing has
 * changed. */
int mcp_tools_learn(struct mcp_client *c, const struct json_val **items, size_t n, bool whole,
		    struct err *e);
/* The result of a tools/list of the owner's own. */
void mcp_tools_learn_page(struct mcp_pending *p, const struct json_val *result);
void mcp_tools_forget(struct mcp_client *c, struct mcp_known_tools *all);
/* They are not what they were: no result is held to a schema of before. What else is wrong by now,
 * the server will say. */
void mcp_tools_doubt(struct mcp_client *c);
const struct mcp_params *mcp_tool_params(const struct mcp_client *c, struct str name); /* or NULL */
/* -1: not known. */
int mcp_tool_tasking(const struct mcp_client *c, struct str name);
/* ERR_INVALID where the tool's output schema refuses v, or is none that can be used. */
int mcp_tool_check_result(struct mcp_client *c, struct str name, const struct json_val *result,
			  struct err *e) MUST_USE;

/* --- list.c --- */

/* tools/list, of our own. */
struct mcp_pending *mcp_list_tools(struct mcp_client *c,
				   void (*on_done)(void *owner, const struct mcp_listed *l),
				   struct err *e) MUST_USE;
struct str mcp_listing_cursor(
	const struct mcp_listing *l); /* of the next page; STR_NONE: the first */
void mcp_listing_free(struct mcp_listing *l); /* NULL-safe */

/* --- question.c --- */

void mcp_question_free(struct mcp_question *q); /* NULL-safe */
AUTO_DEFINE(mcp_question_free, struct mcp_question)
/* It is one of the client's open ones from here on; the clocks that it concerns stand still. */
void mcp_question_open(struct mcp_question *q);
void mcp_question_hand_out(struct mcp_question *q); /* to the owner, who may answer at once */
void mcp_question_withdraw(struct mcp_question *q); /* an open one */

/* --- ask.c --- */

/* The questions of a map of InputRequests that p was not asked before. How many; -1 with why they
 * can't be asked. */
int mcp_ask_take_map(struct mcp_pending *p, struct mcp_in *in, const struct json_val *map,
		     struct err *e) MUST_USE;
void mcp_ask_hand_out(struct mcp_pending *p); /* those that are open */
/* input_required: asks, and sends the request anew with the answers. */
void mcp_ask_round(struct mcp_pending *p, struct mcp_in *in, const struct json_val *result);
void mcp_ask_drop_missing(struct mcp_pending *p,
			  const struct json_val *map); /* not in it any more */
void mcp_ask_drop(struct mcp_pending *p); /* all of it */
/* The answers that were not sent before. */
bool mcp_ask_has_answers(const struct mcp_pending *p);
void mcp_ask_write_answers(struct json_writer *w, const struct mcp_pending *p);
void mcp_ask_sent(struct mcp_pending *p); /* they were taken */
void mcp_ask_forget(struct mcp_pending *p); /* all that was asked and answered */

/* --- ask_legacy.c --- */

/* A request of a legacy server; p: on whose stream it came, NULL for none. */
void mcp_ask_legacy(struct mcp_client *c, struct mcp_pending *p, struct mcp_in *in,
		    const struct rpc_msg *m);
/* p has ended, which is no end of the questions that stop its clock. */
void mcp_ask_outlives(struct mcp_pending *p);
/* The server has taken it back. */
void mcp_ask_withdrawn(struct mcp_client *c, const struct rpc_id *id);
void mcp_ask_drop_legacy(struct mcp_client *c);

/* --- form.c --- */

/* The kind of a request of the server; -1: it is no question. */
int mcp_question_find(struct str method, const struct json_val *params);
/* ERR_INVALID where it can't be asked. */
int mcp_question_read(enum mcp_ask_kind kind, const struct json_val *params,
		      struct err *e) MUST_USE;
void mcp_urls_note(struct mcp_client *c, const struct json_val *params);
bool mcp_urls_done(struct mcp_client *c, struct str id); /* true where it was one that was asked */
void mcp_urls_free(struct mcp_urls *urls); /* NULL-safe */

/* --- task.c --- */

void mcp_follow_begin(struct mcp_pending *p, struct mcp_in *in, const struct json_val *result);
void mcp_follow_take(struct mcp_pending *p, struct mcp_in *in, const struct mcp_answer *a);
/* What is next: answers, or a poll when it is time. */
void mcp_follow_go_on(struct mcp_pending *p);
uint64_t mcp_follow_due(const struct mcp_pending *p); /* UINT64_MAX: not before something comes */
/* Its message was too long without an answer, or was lost: true where it is polled again. */
bool mcp_follow_survives(struct mcp_pending *p, const struct err *e);
/* notifications/tasks/status */
void mcp_follow_hint(struct mcp_client *c, const struct json_val *params);
void mcp_follow_cancel(struct mcp_pending *p); /* tells the server */
struct str mcp_follow_id(const struct mcp_follow *f);
/* The request that is the task; NULL for none. */
struct mcp_pending *mcp_follow_find(const struct mcp_client *c, struct str id);
void mcp_follow_free(struct mcp_follow *f); /* NULL-safe */

/* --- watch.c --- */

void mcp_watch_apply(struct mcp_client *c); /* a session begins */
void mcp_watch_tick(struct mcp_client *c, uint64_t now);
uint64_t mcp_watch_due(const struct mcp_client *c); /* UINT64_MAX: nothing is to be done */
/* notifications/subscriptions/acknowledged */
void mcp_watch_acknowledged(struct mcp_client *c, struct mcp_pending *p,
			    const struct json_val *params);
/* True where a modern notification is one that was asked for. */
bool mcp_watch_takes(const struct mcp_client *c, const struct mcp_pending *p,
		     const struct json_val *params);
/* A modern server has taken back what is listened to. */
bool mcp_watch_ended(struct mcp_client *c, const struct rpc_id *id);
void mcp_watch_fini(struct mcp_client *c);
