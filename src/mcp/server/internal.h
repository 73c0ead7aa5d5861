#pragma once
/*
 * Shared by the files of the server's role:
 *
 *	inbound.c	texts to messages, and the checks that tell the eras apart
 *	header.c	HTTP headers beside the message
 *	session.c	sessions: messages to methods, our own requests, ends
 *	out.c		outgoing messages: answers, batches, faults; the end of a stream
 *	methods.c	how each method is served; initialize, discover, ping, levels, notifications
 *	list.c		the four lists, in pages
 *	listen.c	notifications of changes: subscriptions/listen, resources/subscribe
 *	start.c		requests that become calls
 *	call.c		calls: from the request to its one answer
 *	done.c		how handlers end calls
 *	log.c		progress and log messages of calls
 *	tool.c		tools: checked and compiled
 *	row.c		list entries as JSON
 *	result.c	results and content as JSON
 *	ask*.c		questions to the client: asking.c holds them; mcp/message/question.h
 *			describes each kind
 *	task*.c		tasks
 *
 * Two counts keep a received message: `refs`, since calls borrow their arguments, and `awaited`,
 * the answers that its stream still waits for. All output goes through one buffer of the server: a
 * message is begun, written and sent without a callback between.
 */
#include "base/id.h"
#include "base/seal.h"
#include "base/spare.h"
#include "json/document/put.h"
#include "json/schema/schema.h"
#include "mcp/message/param.h"
#include "mcp/message/profile.h"
#include "mcp/message/protocol.h"
#include "mcp/server/server.h"
#include "rpc/inflight.h"
#include "rpc/rpc.h"

enum {
	MCP_ROOM = 16 << 10, /* bytes for the document of a text of some KiB */
	MCP_ROOMS = 8, /* beyond this many messages at once, documents are allocated separately */
	/* more than any fault needs: each byte of a message may become six, and it stands twice;
	 * data is JSON already */
	MCP_FAULT_ROOM = RPC_ID_MAX + 12 * sizeof(((struct rpc_fault *)0)->message) + RPC_DATA_MAX +
			 1024,
	MCP_BATCH_MAX = 1024, /* messages */
};

enum { MCP_CLIENT_MAX = 128, MCP_URI_VALUES = 8 };

struct mcp_server {
	struct mcp_server_options o; /* with defaults filled in */
	unsigned made; /* sessions so far */
	struct mcp_session *sessions; /* open ones */
	struct buf out; /* the message being written */
	struct buf spare; /* for faults: allocated in advance */
	struct json_writer w;
	uint64_t reached; /* our own requests so far, which gives their ids */
	uint64_t strays; /* responses to no request of ours, so far */
	/* the lists of the offer */
	const struct mcp_tool **tools;
	const struct mcp_resource **resources;
	const struct mcp_template **templates;
	const struct mcp_prompt **prompts;
	char *info; /* the member of modern results' _meta that identifies us; owned */
	struct spare spare_call, spare_inbound, spare_session;
	void *room; /* memory for the document of the next message; NULL: allocate it */
	unsigned rooms; /* allocated in all */
	struct mcp_tasks *tasks; /* used in task.c; NULL until the first */
	struct mcp_seal *seal; /* used in ask.c; NULL until the first */
};

struct mcp_session {
	struct mcp_server *server;
	struct mcp_session *next, *prev; /* in the server's list */
	const struct mcp_transport *t;
	void *transport;
	void *data;
	struct mcp_choice narrowed;
	struct mcp_wish wish; /* owned, but for tools */
	enum mcp_road road;
	const struct mcp_profile *profile; /* from initialize; NULL before it */
	unsigned can; /* from initialize */
	unsigned level; /* from logging/setLevel */
	struct inflight inflight; /* calls, and other requests that are answered later */
	unsigned cancelled, listening; /* of those in flight */
	size_t held; /* bytes of messages that calls refer to */
	unsigned number;
	unsigned requests; /* seen so far */
	unsigned entered; /* our functions on the stack that still use the session */
	bool closed;
	char client[MCP_CLIENT_MAX];
	struct mcp_reach *reaches; /* our own requests without an answer */
	struct mcp_listen *listens;
	struct mcp_uris *watched; /* by resources/subscribe; NULL: none */
};

/* The members of a request's _meta that are for us; NULL if absent. */
struct mcp_meta {
	const struct json_val *all; /* may have any type */
	const struct json_val *version, *capabilities, *client, *level, *token;
};

struct mcp_inbound {
	struct mcp_server *server;
	const struct mcp_http_head *head; /* NULL once the message was taken */
	struct json_doc *doc; /* NULL if the text is not JSON */
	void *room; /* where doc is; NULL: separately allocated */
	enum mcp_era era;
	const struct mcp_profile *profile; /* of a modern request; else NULL */
	bool is_batch, answered;
	struct rpc_msg m; /* unless it is a batch; m.id also for a broken message */
	struct mcp_meta meta; /* of m */
	struct rpc_fault *fault; /* MCP_BROKEN */

	/* In a session: */
	void *stream;
	unsigned refs; /* calls, and the function that handles it */
	unsigned awaited; /* answers to come, and the function that handles it */
	size_t held; /* bytes that the session counts for it; 0 until a call refers to it */
	struct buf answers; /* of a batch: collected until the last is there */
	bool lost; /* there was no memory for the batch's answers */
	bool gone; /* the client closed the stream */
};

/* One request being served, as methods get it. */
struct mcp_request {
	struct mcp_session *s;
	struct mcp_inbound *in;
	const struct rpc_msg *m;
	const struct mcp_profile *profile; /* NULL: legacy, before initialize */
	struct mcp_meta meta;
	unsigned can;
};

/* 0: answered, or will be. -1: answer with the fault. */
typedef int mcp_method_fn(const struct mcp_request *q, struct rpc_fault *ret_fault);

/* A method exists only if the server offers this. */
enum mcp_need {
	MCP_NEEDS_NOTHING,
	MCP_NEEDS_TOOLS,
	MCP_NEEDS_RESOURCES,
	MCP_NEEDS_SUBSCRIBE,
	MCP_NEEDS_PROMPTS,
	MCP_NEEDS_COMPLETE,
	MCP_NEEDS_LOGGING,
	MCP_NEEDS_TASKS,
};

/* How a method of mcp/message/protocol.h is served. */
struct mcp_served {
	mcp_method_fn *run;
	enum mcp_need needs;
	bool always; /* also before initialize */
};

/* State of a handler that is on the stack. */
struct mcp_run {
	bool again; /* it has asked, and already has the answers */
	bool gone; /* the call has ended */
};

struct mcp_call {
	struct inflight_entry entry; /* first: the two are cast */
	struct mcp_server *server;
	struct mcp_session *session; /* NULL for a task */
	void *data; /* the session's */
	const char *wanted; /* the session's, in the arena; NULL: none */
	struct mcp_inbound *in;
	const struct mcp_profile *profile;
	enum mcp_call_kind kind;
	unsigned can;
	unsigned level; /* least level of a modern call's log messages; MCP_LEVEL_NONE: none */
	const struct json_val *params; /* of the request; NULL: none */
	const struct json_val *args;
	const struct mcp_tool *tool;
	const struct mcp_prompt *prompt;
	const struct mcp_resource *resource; /* if its `run` is used; else NULL */
	const struct mcp_template *template; /* the same for a template */
	void (*run)(struct mcp_call *c); /* runs the handler; again after each round of questions */
	struct mcp_run *on_stack; /* NULL: the handler is not running */
	bool is_error; /* the tool's result has isError */
	struct arena *arena; /* points to own */
	struct arena own;
	bool cancelled;
	void (*on_cancel)(struct mcp_call *c, void *data);
	void *cancel_data;
	void *handler_data;
	struct rpc_id token; /* progressToken; empty: no progress wanted */
	struct {
		bool any, held; /* any: one was accepted; held: one waits to be sent */
		double value, total;
		char *message;
		uint64_t sent_ms; /* 0: none was sent */
	} progress;
	uint64_t ttl_ms; /* cache time of a read */
	bool cache_public;
	struct str uri_values[MCP_URI_VALUES];
	struct mcp_asking *asking; /* of ask.c; NULL: it never asked */
	struct mcp_task *task; /* of task.c; NULL: it is no task */
	/* For MCP_CALL_INNER: the call was cancelled, or its session ended; ends it with
	 * mcp_call_drop(). */
	void (*inner_cancel)(struct mcp_call *c);
	void *inner; /* owner of the inner call */
	char label[32];
};

/* --- out.c --- */

/* How a fault shows a name or value that a client sent. A long one is left out: redaction finds no
 * half of a secret in the middle of a text. */
struct str mcp_shown(struct str text);
void mcp_fault_redact(struct mcp_server *srv, struct rpc_fault *f);
/* Starts a message; only one at a time. */
struct json_writer *mcp_out_begin(struct mcp_server *srv);
/* Sends what was written as the answer to request id of `in`, or a fault if writing failed. */
void mcp_out_answer(struct mcp_session *s, struct mcp_inbound *in, const struct rpc_id *id);
/* mcp_out_notify() sends what was written as a notification, mcp_out_request() as a request of
 * ours. Dropped if writing failed, or in a batch. */
void mcp_out_notify(struct mcp_session *s, void *stream);
int mcp_out_request(struct mcp_session *s, void *stream, struct err *e) MUST_USE;
void mcp_send_fault(struct mcp_session *s, struct mcp_inbound *in, const struct rpc_id *id,
		    const struct rpc_fault *f);

/* An answer to the message was sent, or will never come. The last one ends its stream. */
void mcp_inbound_release(struct mcp_session *s, struct mcp_inbound *in);
/* s may be NULL if in->held is 0. */
void mcp_inbound_unref(struct mcp_session *s, struct mcp_inbound *in);

/* --- session.c --- */

/* Frees a closed session that is no longer used. */
void mcp_session_settle(struct mcp_session *s);

/* The name of the principal with that data. */
struct str mcp_principal(const struct mcp_server *srv, void *data);

/*
 * A request of ours to a legacy client, embedded in the structure that waits for it.
 * mcp_reach_start() lists it and begins a message with jsonrpc, id, method and the key params; the
 * caller writes one value and rpc_write_end(), then mcp_out_request(). `done` is called once, when
 * r is no longer listed: with the response, or with NULL when the session ends; not after
 * mcp_reach_drop().
 */
struct mcp_reach {
	struct mcp_reach *next;
	struct mcp_session *session;
	uint64_t id;
	void (*done)(struct mcp_reach *r, const struct rpc_msg *response);
};

struct json_writer *mcp_reach_start(struct mcp_session *s, struct mcp_reach *r, const char *method);
void mcp_reach_drop(struct mcp_reach *r); /* it need not be listed */

/* --- inbound.c --- */

/* True for version names from 2026-07-28 on, served or not. */
bool mcp_version_is_modern(struct str version);
/* _meta of params, which may be NULL. */
void mcp_meta_read(const struct json_val *params, struct mcp_meta *ret);
/* MCP_CAN_… from an object of client capabilities. */
unsigned mcp_read_capabilities(const struct json_val *caps);
/* Writes "name/version" of an implementation's object. */
void mcp_put_client(char text[MCP_CLIENT_MAX], const struct json_val *info);

/* --- tool.c --- */

/* Whether the tool has structured content in that revision. */
bool mcp_tool_is_structured(const struct mcp_tool *t, const struct mcp_profile *p);
/* ERR_BUG unless the JSON text matches the tool's output schema. */
int mcp_tool_check_output(const struct mcp_tool *t, struct str structured, struct err *e) MUST_USE;

/* --- header.c --- */

/* Checks Mcp-Method and Mcp-Name: 0, or -1 with the fault -32020. */
int mcp_header_check(const struct mcp_http_head *head, const struct rpc_msg *m,
		     struct rpc_fault *f) MUST_USE;
/* Checks Mcp-Param-*: the arguments against the tool's x-mcp-header. */
int mcp_header_check_params(const struct mcp_http_head *head, const struct mcp_tool *t,
			    const struct json_val *args, struct rpc_fault *f) MUST_USE;

/* --- methods.c --- */

void mcp_serve_request(struct mcp_session *s, struct mcp_inbound *in, const struct rpc_msg *m);
void mcp_serve_notification(struct mcp_session *s, const struct rpc_msg *m);
bool mcp_offers(const struct mcp_session *s, enum mcp_need need);
/* The lists of the session that may change. */
unsigned mcp_changes(const struct mcp_session *s);
/* Begins the result of an answer, an object that stays open. */
struct json_writer *mcp_answer_begin(const struct mcp_request *q);
/* Ends and sends it; returns 0. */
int mcp_answer_end(const struct mcp_request *q, struct json_writer *w);
/* Answers with an empty result; returns 0. */
int mcp_answer_empty(const struct mcp_request *q);

/* --- list.c --- */

mcp_method_fn mcp_tools_list, mcp_resources_list, mcp_templates_list, mcp_prompts_list;
const struct mcp_tool *const *mcp_tools_of(struct mcp_session *s, size_t *ret_n);
const struct mcp_resource *const *mcp_resources_of(struct mcp_session *s, size_t *ret_n);
const struct mcp_template *const *mcp_templates_of(struct mcp_session *s, size_t *ret_n);
const struct mcp_prompt *const *mcp_prompts_of(struct mcp_session *s, size_t *ret_n);

/* --- listen.c --- */

mcp_method_fn mcp_listen_start;
void mcp_listens_end(struct mcp_session *s); /* answers each with its result */

/* Sends a notification of a task to every listen that names it. write adds the members of params
 * besides _meta. Principals were compared when the listen began. */
void mcp_listen_task(struct mcp_server *srv, struct str task_id, const char *method,
		     void (*write)(struct json_writer *w, void *data), void *data);

mcp_method_fn mcp_subscribe, mcp_unsubscribe;
void mcp_uris_free(struct mcp_uris *u); /* NULL-safe */

/* --- start.c --- */

mcp_method_fn mcp_tools_call, mcp_resources_read, mcp_prompts_get, mcp_complete;

/* --- call.c --- */

/* Begins a call in flight for the request, to be ended by the functions below; NULL with the
 * fault. */
struct mcp_call *mcp_call_begin(const struct mcp_request *q, enum mcp_call_kind kind,
				struct rpc_fault *f) MUST_USE;
/* mcp_call_go() checks what must be checked before the first run, then runs the handler. 0: the
 * call is answered, or will be. mcp_call_run() runs the handler again. */
int mcp_call_go(struct mcp_call *c, struct rpc_fault *f) MUST_USE;
/* Tells the handler that the call has its tool, or has it no more. */
void mcp_call_hold(const struct mcp_call *c, bool on);
void mcp_call_run(struct mcp_call *c);
void mcp_call_cancel(struct mcp_call *c);
/* True while somebody wants the answer: not cancelled, session open. */
bool mcp_call_is_wanted(const struct mcp_call *c);
/* Begins the result: alone for a task, else in a response. Write one value, then end the call. */
struct json_writer *mcp_call_result_begin(struct mcp_call *c);
void mcp_call_result_end(struct mcp_call *c);
/* Ends it with a fault. */
void mcp_call_fault(struct mcp_call *c, const struct rpc_fault *f);
/* Ends it without an answer, because it was cancelled or answered otherwise. */
void mcp_call_drop(struct mcp_call *c);
/* Detaches it from its session and request; it continues as the task c->task. The request is
 * answered with what was written after mcp_call_result_begin(), including rpc_write_end(). */
void mcp_call_detach(struct mcp_call *c);

/* --- log.c --- */

void mcp_progress_flush(struct mcp_call *c); /* sends held progress before the answer */

/* --- row.c, result.c --- */

/* ERR_BUG if it can't be sent: a peer that checks formats would refuse the whole list. */
int mcp_uri_check(const char *what, const char *uri, struct err *e) MUST_USE;
int mcp_icons_check(const struct mcp_icons *icons, struct err *e) MUST_USE;

/* Write optional members; absent values are left out. */
void mcp_put_text(struct json_writer *w, const char *key, const char *text);
void mcp_put_raw(struct json_writer *w, const char *key, struct str json);
void mcp_put_annotations(struct json_writer *w, const struct mcp_profile *p,
			 const struct mcp_annotations *a);
/* Writes the members of a resource. */
void mcp_put_resource(struct json_writer *w, const struct mcp_profile *p,
		      const struct mcp_resource *r);

/* Writes {, and "resultType":"complete" if the revision has it. */
void mcp_result_open(struct json_writer *w, const struct mcp_profile *p);
/* Writes "_meta" with serverInfo if the revision has it, and }. meta: JSON object or STR_NONE. */
void mcp_result_close(struct json_writer *w, const struct mcp_server *srv,
		      const struct mcp_profile *p, struct str meta);
/* Writes the members of a JSON object into an open object. */
void mcp_write_members(struct json_writer *w, struct str object);
void mcp_write_cache(struct json_writer *w, const struct mcp_profile *p, uint64_t ttl_ms,
		     bool is_public);
void mcp_write_versions(struct json_writer *w); /* all served ones, newest first */
void mcp_write_implementation(struct json_writer *w, const struct mcp_profile *p,
			      const struct mcp_server_options *o);
void mcp_write_tool(struct json_writer *w, const struct mcp_profile *p, const struct mcp_tool *t);
void mcp_write_resource(struct json_writer *w, const struct mcp_profile *p,
			const struct mcp_resource *r);
void mcp_write_template(struct json_writer *w, const struct mcp_profile *p,
			const struct mcp_template *t);
void mcp_write_prompt(struct json_writer *w, const struct mcp_profile *p,
		      const struct mcp_prompt *t);
void mcp_write_content(struct json_writer *w, const struct mcp_profile *p,
		       const struct mcp_content *c);
void mcp_write_contents(struct json_writer *w, const struct mcp_profile *p,
			const struct mcp_contents *c, struct str uri);
/* structured: that of r, as text; STR_NONE: none. */
void mcp_write_result(struct json_writer *w, const struct mcp_profile *p,
		      const struct mcp_server *srv, const struct mcp_result *r,
		      struct str structured);

/* --- ask.c --- */

/* Before the first run of a modern call that may ask: opens requestState and takes inputResponses
 * from c->params. 1: answers are missing and were asked for again; c is freed. -1 with a fault
 * (in-band: its status stays 0). */
int mcp_ask_resume(struct mcp_call *c, struct rpc_fault *f) MUST_USE;
/* True if its handler has returned after mcp_call_ask() and is not running: nobody else will end
 * the call. */
bool mcp_ask_waits(const struct mcp_call *c);
/* The call ends, cancelled or not: withdraws our requests and frees c->asking, which may be
 * NULL. */
void mcp_ask_end(struct mcp_call *c);
/* The stream is about to end: withdraws the questions on it. A task may ask them elsewhere. */
void mcp_ask_leave(struct mcp_session *s, const void *stream);
/* fails questions that a legacy client did not answer in time */
void mcp_ask_tick(struct mcp_server *srv);
void mcp_seal_free(struct mcp_seal *seal); /* NULL-safe */

/* --- task.c --- */

/* Before the first run of a tool's call. Refuses it if tool and client disagree about tasks; makes
 * it a task if a client of 2025-11-25 asked for one. 1: it was answered, and c is freed. */
int mcp_task_before(struct mcp_call *c, struct rpc_fault *f) MUST_USE;
/* The task's call ended with a result (JSON object) or a fault. */
void mcp_task_result(struct mcp_call *c, struct str result);
void mcp_task_fault(struct mcp_call *c, const struct rpc_fault *f);
/* The session in which a task of 2025-11-25 was made, if it is still open; else NULL. */
struct mcp_session *mcp_task_session(const struct mcp_call *c);
/* Writes "_meta" with the task that the call belongs to, if the revision has that. */
void mcp_task_write_related(struct json_writer *w, const struct mcp_call *c);
/* Must be called before c is freed. */
void mcp_task_forget(struct mcp_call *c);
mcp_method_fn mcp_tasks_get, mcp_tasks_update, mcp_tasks_cancel, mcp_tasks_result, mcp_tasks_list;
/* False over HTTP without principals: tasks of one client must not be shown to another. */
bool mcp_tasks_are_listed(const struct mcp_session *s);
/* Whether that session's principal may watch the task. */
bool mcp_task_is_seen(struct mcp_session *s, struct str id);
void mcp_tasks_count(const struct mcp_server *srv, struct mcp_counts *ret);
void mcp_tasks_purge(struct mcp_server *srv); /* forgets expired tasks */
void mcp_tasks_free(struct mcp_tasks *tasks); /* NULL-safe; cancels running ones */

/*
 * The questions that one call has asked its client, and the answers so far. This is plain data;
 * mcp/server/ask.c asks. Sealed as text, it is the requestState that a modern client keeps for us
 * between two of its requests (MCP 2026-07-28, basic/patterns/mrtr).
 */

enum {
	MCP_ASK_KEY_MAX = 64,
	MCP_ASK_BYTES_MAX = 4 << 20, /* bytes of all questions and answers of one call, as JSON */
	MCP_ASK_ROUNDS_MAX = 64,
};

struct mcp_asked {
	/* first: the two are cast. Listed while a legacy client has the question */
	struct mcp_reach reach;
	uint64_t sent_ms; /* when it was sent */
	void *stream; /* the stream on which it was sent */
	struct mcp_asked *next; /* in the same call, in the order of asking */
	struct mcp_call *call;
	char key[MCP_ASK_KEY_MAX + 1];
	enum mcp_ask_kind kind;
	enum { MCP_ASKED_OPEN, MCP_ASKED_ANSWERED, MCP_ASKED_FAILED } state;
	struct json_doc *params; /* NULL: none */
	struct json_doc *answer; /* set once it is answered */
	char *error; /* the reason, once it has failed; NULL without memory */
};

struct mcp_asking {
	struct mcp_asked *first, *last;
	unsigned n, open; /* n: questions; open: those without an answer or failure */
	unsigned rounds;
	size_t bytes;
	char *state; /* the handler's state; NULL: none */
	size_t state_n;
	bool waits; /* the handler has returned, and runs again when `open` is 0 */
};

/* Frees what it holds, not itself. Questions must not be with a client. */
void mcp_asking_fini(struct mcp_asking *a);

struct mcp_asked *mcp_asking_find(const struct mcp_asking *a, struct str key);

/* Sets the handler's state; copied. */
int mcp_asking_set_state(struct mcp_asking *a, struct str state, struct err *e) MUST_USE;

/* Adds an open question. ERR_BUG: an invalid key or parameters; ERR_TOO_LARGE: over
 * MCP_ASK_BYTES_MAX; ERR_LIMIT. */
struct mcp_asked *mcp_asking_add(struct mcp_asking *a, struct str key, enum mcp_ask_kind kind,
				 struct str params, struct err *e) MUST_USE;

/* Moves the questions of `from`, which is empty then, to the end of a. ERR_TOO_LARGE: over
 * MCP_ASK_BYTES_MAX, and nothing is moved. */
int mcp_asking_append(struct mcp_asking *a, struct mcp_asking *from, struct err *e) MUST_USE;

/* Answers an open question with a copy of v. ERR_INVALID, with the key: v is not a valid answer,
 * and the question stays open. */
int mcp_asked_answer(struct mcp_asking *a, struct mcp_asked *q, const struct json_val *v,
		     struct err *e) MUST_USE;

/* Makes an open question fail. The text is copied. */
void mcp_asked_fail(struct mcp_asking *a, struct mcp_asked *q, struct str why);

/* Appends everything as text, sealed for `context`. */
int mcp_asking_seal(const struct mcp_asking *a, const struct seal_ring *ring, struct str context,
		    uint64_t expires, struct buf *to, struct err *e) MUST_USE;

/* Fills an empty one. Errors as in seal_open(). */
int mcp_asking_open(struct mcp_asking *a, const struct seal_ring *ring, struct str context,
		    uint64_t now, struct str text, struct err *e) MUST_USE;

/* --- ask.c: who asks --- */

bool mcp_ask_can(const struct mcp_call *c, unsigned needs); /* MCP_CAN_… */
/* The asking of c, made at the first use; NULL without memory. */
struct mcp_asking *mcp_asking_of(struct mcp_call *c, struct err *e);
/* Runs the handler, at once or after its return; c may be freed then. */
void mcp_ask_run_again(struct mcp_call *c);
/* The same if no question is open; a task then continues. */
void mcp_ask_settled(struct mcp_call *c);
/* Writes the open questions as InputRequests. */
void mcp_ask_write(struct json_writer *w, const struct mcp_call *c);
/* Takes answers to the open questions of c; other keys are ignored. */
int mcp_ask_take(struct mcp_call *c, const struct json_val *answers, struct rpc_fault *f) MUST_USE;

/* --- ask_modern.c --- */

/* Answers the call with its questions, unless the answers came with it. asked: there are new
 * questions. c may be freed then. */
int mcp_ask_modern(struct mcp_call *c, bool asked, struct err *e) MUST_USE;

/* --- ask_legacy.c --- */

/* Sends the open questions that no legacy client has to this one. */
int mcp_ask_send(struct mcp_call *c, struct mcp_session *s, void *stream, struct err *e) MUST_USE;
/* Withdraws the questions that clients have. */
void mcp_ask_withdraw(struct mcp_call *c, const char *reason);

/* --- task.c: of a task's questions --- */

void mcp_task_asks(struct mcp_call *c); /* it has open questions */
/* The client with some of its questions is gone. No effect on calls that are not tasks. */
void mcp_task_asks_others(struct mcp_call *c);
void mcp_task_goes_on(struct mcp_call *c); /* it has no more open questions */

/*
 * Tasks: calls of tools that outlive their request. task_call.c makes them, task.c stores them,
 * task_method.c has the methods of clients. Two protocols share one store: the extension
 * io.modelcontextprotocol/tasks for modern clients, and the core of 2025-11-25
 * (basic/utilities/tasks). A task is visible only to the principal that it was made for, in the era
 * in which it was made; for all others it does not exist.
 */

enum {
	MCP_TASK_WAITERS = 8,
	MCP_TASK_TTL_MAX = 24 * 3600 * 1000,
};

enum mcp_task_state {
	MCP_TASK_WORKING,
	MCP_TASK_ASKS, /* the client has questions to answer */
	MCP_TASK_DONE, /* has a result */
	MCP_TASK_FAULT, /* has a fault */
	MCP_TASK_CANCELLED,
};

struct mcp_task {
	/* first: the two are cast. In mcp_tasks.table, with its id as JSON */
	struct inflight_entry entry;
	struct mcp_server *server;
	struct mcp_call *call; /* NULL once the call has ended */
	const struct mcp_profile *profile;
	unsigned session; /* number of the session in which it was made */
	enum mcp_task_state state;
	char id[ID_MAX];
	char *owner; /* the principal's name */
	char *message; /* status message; may be NULL */
	uint64_t serial; /* counts all tasks ever made */
	uint64_t made_ms, changed_ms; /* wall clock */
	uint64_t expires_ms; /* monotonic */
	unsigned ttl_ms, poll_ms;
	size_t bytes; /* counted for it */
	char *result; /* MCP_TASK_DONE: JSON object */
	size_t result_n;
	bool is_error; /* the tool's result has isError */
	struct rpc_fault *fault; /* MCP_TASK_FAULT */
	struct mcp_call *waiters[MCP_TASK_WAITERS]; /* waiting tasks/result; NULL: unused */
};

struct mcp_tasks {
	struct inflight *table;
	uint64_t made; /* so far */
	uint64_t expires_ms; /* no later than the first expiry */
	size_t bytes;
};

/* Adds a task for the call to the store, without a time to live yet. ERR_LIMIT: there is no
 * room. */
struct mcp_task *mcp_task_add(struct mcp_call *c, struct err *e) MUST_USE;
void mcp_task_set_ttl(struct mcp_task *t, unsigned ttl_ms); /* from now; clamped to the limits */
/* copied and cut; may be NULL */
void mcp_task_set_message(struct mcp_task *t, const char *message);

/* The task with that id, if q may see it; NULL with the fault -32602. */
struct mcp_task *mcp_task_find(const struct mcp_request *q, struct rpc_fault *f) MUST_USE;
bool mcp_task_is_for(const struct mcp_task *t, const struct mcp_profile *p, struct str owner);
bool mcp_task_has_ended(const struct mcp_task *t);

/* Writes its members into an open object; details: also result, error and inputRequests. */
void mcp_task_write(struct json_writer *w, const struct mcp_task *t, bool details);

/* Notifies those who watch it of a change. */
void mcp_task_changed(struct mcp_task *t);

/* Ends it as cancelled, and its call if possible. */
void mcp_task_cancel(struct mcp_task *t);

/* 2025-11-25: answers a waiting tasks/result and frees it. t has ended. */
void mcp_task_deliver(struct mcp_task *t, struct mcp_call *waiter);

/* 2025-11-25: sends its questions to a client that waits for the result. */
void mcp_task_send_questions(struct mcp_task *t);

/* The compiled schemas of a tool; for this folder only. */

struct mcp_prepared {
	struct json_doc *input; /* the document that params borrow from; NULL: none */
	struct mcp_params params;
	struct schema *output; /* NULL: none */
	bool object_output; /* it is of type object, as revisions before 2026-07-28 require */
};
