#pragma once
/*
 * The inside of the server's role, shared by the files of this folder:
 *
 * 	inbound.c	texts to messages, and the ladder that tells the eras apart
 * 	header.c	what HTTP's headers say beside the message
 * 	session.c	sessions: messages to methods, requests of ours, ends
 * 	out.c		what is sent: answers, batches, faults; the end of a stream
 * 	methods.c	how each method is served; initialize, discover, ping, levels, notifications
 * 	list.c		the four lists, in pages
 * 	listen.c	who hears of changes: subscriptions/listen, resources/subscribe
 * 	start.c		requests that become calls
 * 	call.c		calls: from the request to its one answer
 * 	done.c		how handlers end calls
 * 	log.c		progress and log messages of calls
 * 	tool.c		tools: checked and compiled
 * 	row.c		rows of lists as JSON
 * 	result.c	results and contents as JSON
 * 	ask*.c		questions to the client: asking.c holds them; mcp/message/question.h
 * 			describes each kind
 * 	task*.c		tasks
 *
 * Two counts keep a message that came in: `refs`, as calls borrow their arguments, and `awaited`,
 * the answers that its stream still waits for. What is written goes through one buffer of the
 * server: a message is begun, written and sent without a callback between.
 */
#include "base/id.h"
#include "base/seal.h"
#include "base/spare.h"
#include "json/document/json.h"
#include "json/schema/schema.h"
#include "mcp/message/param.h"
#include "mcp/message/profile.h"
#include "mcp/message/protocol.h"
#include "mcp/server/server.h"
#include "rpc/inflight.h"
#include "rpc/rpc.h"

enum {
	MCP_ROOM = 16 << 10, /* bytes for the document of a text of some KiB */
	MCP_ROOMS = 8, /* when so many messages wait, others have memory of their own */
};

enum { MCP_CLIENT_MAX = 128, MCP_URI_VALUES = 8 };

struct mcp_server {
	struct mcp_server_options o; /* with the defaults filled in */
	unsigned made; /* sessions, ever */
	struct mcp_session *sessions; /* those that are open */
	struct buf out; /* the message being written */
	struct buf spare; /* for faults: reserved, so that they need no memory */
	struct json_writer w;
	uint64_t reached; /* requests of ours, ever: their ids */
	uint64_t strays; /* responses to none of them, ever */
	/* the lists of the offer */
	const struct mcp_tool **tools;
	const struct mcp_resource **resources;
	const struct mcp_template **templates;
	const struct mcp_prompt **prompts;
	char *info; /* the member of modern results' _meta that says who we are; owned */
	struct spare spare_call, spare_inbound, spare_session;
	void *room; /* where the document of the next message goes; NULL: it is to be made */
	unsigned rooms; /* in all */
	struct mcp_tasks *tasks; /* task.c's; NULL until the first */
	struct mcp_seal *seal; /* ask.c's; NULL until the first */
};

struct mcp_session {
	struct mcp_server *server;
	struct mcp_session *next, *prev; /* of the server's */
	const struct mcp_transport *t;
	void *transport;
	void *data;
	enum mcp_road road;
	const struct mcp_profile *profile; /* of initialize; NULL before it */
	unsigned can; /* of initialize */
	unsigned level; /* of logging/setLevel */
	struct inflight inflight; /* calls, and what else is to be answered later */
	unsigned cancelled, listening; /* of them */
	size_t held; /* bytes of messages that calls hold */
	unsigned number;
	unsigned requests; /* ever seen */
	unsigned entered; /* functions of ours on the stack that still use the session */
	bool closed;
	char client[MCP_CLIENT_MAX];
	struct mcp_reach *reaches; /* requests of ours without an answer */
	struct mcp_listen *listens;
	struct mcp_uris *watched; /* resources/subscribe; NULL: none */
};

/* What a request's _meta says that is for us; NULL where it is absent. */
struct mcp_meta {
	const struct json_val *all; /* of any type */
	const struct json_val *version, *capabilities, *client, *level, *token;
};

struct mcp_inbound {
	struct mcp_server *server;
	const struct mcp_http_head *head; /* NULL once taken */
	struct json_doc *doc; /* NULL where the text is no JSON */
	void *room; /* where doc is; NULL: in memory of its own */
	enum mcp_era era;
	const struct mcp_profile *profile; /* of a modern request; else NULL */
	bool is_batch, answered;
	struct rpc_msg m; /* unless it is a batch; m.id also where it is broken */
	struct mcp_meta meta; /* of m */
	struct rpc_fault *fault; /* MCP_BROKEN */

	/* In a session: */
	void *stream;
	unsigned refs; /* calls, and who takes it */
	unsigned awaited; /* answers, and who takes it */
	size_t held; /* what the session counts for it; 0 until a call holds it */
	struct buf answers; /* of a batch: gathered until the last is there */
	bool lost; /* over the maximum or out of memory */
	bool gone; /* the client closed the stream */
};

/* One request being served: handed down to methods. */
struct mcp_request {
	struct mcp_session *s;
	struct mcp_inbound *in;
	const struct rpc_msg *m;
	const struct mcp_profile *profile; /* NULL: legacy, before initialize */
	struct mcp_meta meta;
	unsigned can;
};

/* 0: answered, or will be. -1: the fault is the answer. */
typedef int mcp_method_fn(const struct mcp_request *q, struct rpc_fault *ret_fault);

/* What must be offered for the method to exist. */
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

/* How this server serves a method of mcp/message/protocol.h. */
struct mcp_served {
	mcp_method_fn *run;
	enum mcp_need needs;
	bool always; /* before initialize too */
};

/* The handler of a call is on the stack. */
struct mcp_run {
	bool again; /* it asked, and has the answers already */
	bool gone; /* the call has ended */
};

struct mcp_call {
	struct inflight_entry entry; /* first: found by it */
	struct mcp_server *server;
	struct mcp_session *session; /* NULL of a task */
	void *data; /* of the session */
	struct mcp_inbound *in;
	const struct mcp_profile *profile;
	enum mcp_call_kind kind;
	unsigned can;
	unsigned level; /* of a modern call's log messages; MCP_LEVEL_NONE: none */
	const struct json_val *params; /* of the request; NULL for none */
	const struct json_val *args;
	const struct mcp_tool *tool;
	const struct mcp_prompt *prompt;
	const struct mcp_resource *resource; /* that runs it; NULL: another does */
	const struct mcp_template *template; /* the same */
	void (*run)(struct mcp_call *c); /* runs the handler, again and again if it asks */
	struct mcp_run *on_stack; /* NULL: it is not */
	bool is_error; /* the tool's result says so */
	struct arena *arena; /* the next */
	struct arena own;
	bool cancelled;
	void (*on_cancel)(struct mcp_call *c, void *data);
	void *cancel_data;
	void *handler_data;
	struct rpc_id token; /* none: no progress is wanted */
	struct {
		bool any, held; /* accepted one; one waits to be sent */
		double value, total;
		char *message;
		uint64_t sent_ms; /* 0: none was sent */
	} progress;
	uint64_t ttl_ms; /* of what is read */
	bool cache_public;
	struct str uri_values[MCP_URI_VALUES];
	struct mcp_asking *asking; /* ask.c's; NULL: it never asked */
	struct mcp_task *task; /* task.c's; NULL: it is none */
	/* MCP_CALL_INNER: it was cancelled, or its session ended; ends it with mcp_call_drop(). */
	void (*inner_cancel)(struct mcp_call *c);
	void *inner; /* whose that is */
	char label[32];
};

/* --- out.c --- */

/* Starts a message; one at a time. */
struct json_writer *mcp_out_begin(struct mcp_server *srv);
/* Sends what was written as the answer to request id of `in`; if it failed, a fault in its
 * place. */
void mcp_out_answer(struct mcp_session *s, struct mcp_inbound *in, const struct rpc_id *id);
/* Sends it as a notification, or a request of ours; dropped if it failed, or there is a batch. */
void mcp_out_notify(struct mcp_session *s, void *stream);
int mcp_out_request(struct mcp_session *s, void *stream, struct err *e) MUST_USE;
void mcp_send_fault(struct mcp_session *s, struct mcp_inbound *in, const struct rpc_id *id,
		    const struct rpc_fault *f);

/* An answer to the message was sent or will never come; the last one ends its stream. */
void mcp_inbound_release(struct mcp_session *s, struct mcp_inbound *in);
/* s may be NULL where `held` is 0. */
void mcp_inbound_unref(struct mcp_session *s, struct mcp_inbound *in);

/* --- session.c --- */

/* Frees a closed session that nothing uses any more. */
void mcp_session_settle(struct mcp_session *s);

/* The name of the principal of that data. */
struct str mcp_principal(const struct mcp_server *srv, void *data);

/*
 * A request of ours to a legacy client, embedded in what waits for it. mcp_reach_start() lists it
 * and begins a message with jsonrpc, id, method and the key params; the caller writes one value and
 * rpc_write_end(), then mcp_out_request(). `done` is called once, after r is no longer listed: with
 * the response, or with NULL when the session ends; not after mcp_reach_drop().
 */
struct mcp_reach {
	struct mcp_reach *next;
	struct mcp_session *session;
	uint64_t id;
	void (*done)(struct mcp_reach *r, const struct rpc_msg *response);
};

struct json_writer *mcp_reach_start(struct mcp_session *s, struct mcp_reach *r, const char *method);
void mcp_reach_drop(struct mcp_reach *r); /* also if it is not listed */

/* --- inbound.c --- */

/* True for a version name from 2026-07-28 on, whether served or not. */
bool mcp_version_is_modern(struct str version);
/* _meta of params, which may be NULL. */
void mcp_meta_read(const struct json_val *params, struct mcp_meta *ret);
/* MCP_CAN_… of an object of client capabilities. */
unsigned mcp_read_capabilities(const struct json_val *caps);
/* "name/version" of an implementation's object. */
void mcp_put_client(char text[MCP_CLIENT_MAX], const struct json_val *info);

/* --- tool.c --- */

/* Has the tool structured content in that revision? */
bool mcp_tool_is_structured(const struct mcp_tool *t, const struct mcp_profile *p);
/* ERR_BUG where the JSON text is not as the tool's output schema wants it. */
int mcp_tool_check_output(const struct mcp_tool *t, struct str structured, struct err *e) MUST_USE;

/* --- header.c --- */

/* The ladder's rungs of Mcp-Method and Mcp-Name: 0, or -1 with the fault -32020. */
int mcp_header_check(const struct mcp_http_head *head, const struct rpc_msg *m,
		     struct rpc_fault *f) MUST_USE;
/* Mcp-Param-*: arguments against the tool's x-mcp-header. */
int mcp_header_check_params(const struct mcp_http_head *head, const struct mcp_tool *t,
			    const struct json_val *args, struct rpc_fault *f) MUST_USE;

/* --- methods.c --- */

void mcp_serve_request(struct mcp_session *s, struct mcp_inbound *in, const struct rpc_msg *m);
void mcp_serve_notification(struct mcp_session *s, const struct rpc_msg *m);
bool mcp_offers(const struct mcp_server *srv, enum mcp_need need);
/* Answers with a result that says nothing; 0. */
int mcp_answer_empty(const struct mcp_request *q);

/* --- list.c --- */

mcp_method_fn mcp_tools_list, mcp_resources_list, mcp_templates_list, mcp_prompts_list;
const struct mcp_tool *const *mcp_tools_of(struct mcp_session *s, size_t *ret_n);
const struct mcp_resource *const *mcp_resources_of(struct mcp_session *s, size_t *ret_n);
const struct mcp_template *const *mcp_templates_of(struct mcp_session *s, size_t *ret_n);
const struct mcp_prompt *const *mcp_prompts_of(struct mcp_session *s, size_t *ret_n);

/* --- listen.c --- */

mcp_method_fn mcp_listen_start;
void mcp_listens_end(struct mcp_session *s); /* each with its result */

/* Sends a notification of a task to every listen that names it: write puts the members of params
 * beside _meta. Principals were compared when the listen began. */
void mcp_listen_task(struct mcp_server *srv, struct str task_id, const char *method,
		     void (*write)(struct json_writer *w, void *data), void *data);

mcp_method_fn mcp_subscribe, mcp_unsubscribe;
void mcp_uris_free(struct mcp_uris *u); /* NULL-safe */

/* --- start.c --- */

mcp_method_fn mcp_tools_call, mcp_resources_read, mcp_prompts_get, mcp_complete;

/* --- call.c --- */

/* A call in flight for the request, to be ended by the functions below; NULL with the fault. */
struct mcp_call *mcp_call_begin(const struct mcp_request *q, enum mcp_call_kind kind,
				struct rpc_fault *f) MUST_USE;
/* Runs the handler: with what comes before its first run (0: the call has its answer or will have
 * it), or again. */
int mcp_call_go(struct mcp_call *c, struct rpc_fault *f) MUST_USE;
void mcp_call_run(struct mcp_call *c);
void mcp_call_cancel(struct mcp_call *c);
/* True while somebody wants its answer: not cancelled, session open. */
bool mcp_call_is_wanted(const struct mcp_call *c);
/* Starts its result, bare of a task, else in a response: write one value, then end the call. */
struct json_writer *mcp_call_result_begin(struct mcp_call *c);
void mcp_call_result_end(struct mcp_call *c);
/* Ends it with a fault. */
void mcp_call_fault(struct mcp_call *c, const struct rpc_fault *f);
/* Ends it without an answer (cancelled, or answered otherwise). */
void mcp_call_drop(struct mcp_call *c);
/* Takes it away from its session and request, which is answered by what was written after
 * mcp_call_result_begin(), with rpc_write_end(): it goes on as a task. c->task is set then. */
void mcp_call_detach(struct mcp_call *c);

/* --- log.c --- */

void mcp_progress_flush(struct mcp_call *c); /* what is held back, before the answer */

/* --- row.c, result.c --- */

/* ERR_BUG where it is not fit to be sent: a peer that checks formats would refuse the whole
 * list. */
int mcp_uri_check(const char *what, const char *uri, struct err *e) MUST_USE;
int mcp_icons_check(const struct mcp_icons *icons, struct err *e) MUST_USE;

/* Members that are left out where they are absent. */
void mcp_put_text(struct json_writer *w, const char *key, const char *text);
void mcp_put_raw(struct json_writer *w, const char *key, struct str json);
void mcp_put_annotations(struct json_writer *w, const struct mcp_profile *p,
			 const struct mcp_annotations *a);
/* All of a resource but the braces. */
void mcp_put_resource(struct json_writer *w, const struct mcp_profile *p,
		      const struct mcp_resource *r);

/* {"resultType":"complete" where the revision has it */
void mcp_result_open(struct json_writer *w, const struct mcp_profile *p);
/* "_meta" with serverInfo where the revision has it, and }. meta: JSON object or STR_NONE. */
void mcp_result_close(struct json_writer *w, const struct mcp_server *srv,
		      const struct mcp_profile *p, struct str meta);
/* The members of a JSON object without its braces, for an object that is open. */
void mcp_write_members(struct json_writer *w, struct str object);
void mcp_write_cache(struct json_writer *w, const struct mcp_profile *p, uint64_t ttl_ms,
		     bool is_public);
void mcp_write_versions(struct json_writer *w); /* all that are served, newest first */
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
/* structured: r's, as text; STR_NONE for none. */
void mcp_write_result(struct json_writer *w, const struct mcp_profile *p,
		      const struct mcp_server *srv, const struct mcp_result *r,
		      struct str structured);

/* --- ask.c --- */

/* Before the first run of a modern call that may ask: opens requestState and takes inputResponses
 * of c->params. 1 where something was left out and asked for again: c is gone. -1 with a fault
 * (in-band: its status stays 0). */
int mcp_ask_resume(struct mcp_call *c, struct rpc_fault *f) MUST_USE;
/* Its handler has returned after mcp_call_ask() and is not running: nobody else will end the
 * call. */
bool mcp_ask_waits(const struct mcp_call *c);
/* The call is over, cancelled or not: drops requests of ours, frees c->asking. NULL-safe in it. */
void mcp_ask_end(struct mcp_call *c);
/* The stream is about to end: what was asked on it is withdrawn. A task may ask it elsewhere. */
void mcp_ask_leave(struct mcp_session *s, const void *stream);
void mcp_ask_tick(struct mcp_server *srv); /* fails questions that legacy clients had too long */
void mcp_seal_free(struct mcp_seal *seal); /* NULL-safe */

/* --- task.c --- */

/* Before the first run of a tool's call: refuses where tool and client don't agree on tasks, or
 * makes it one where 2025-11-25's client asked so. 1 where it was answered and c is gone. */
int mcp_task_before(struct mcp_call *c, struct rpc_fault *f) MUST_USE;
/* The task's call ended: with a result (JSON object) or a fault. */
void mcp_task_result(struct mcp_call *c, struct str result);
void mcp_task_fault(struct mcp_call *c, const struct rpc_fault *f);
/* The session that a task of 2025-11-25 came from, if it is still open; NULL for all else. */
struct mcp_session *mcp_task_session(const struct mcp_call *c);
/* "_meta" with the task that a message of its call belongs to, where the revision has it so. */
void mcp_task_write_related(struct json_writer *w, const struct mcp_call *c);
/* c will be freed. */
void mcp_task_forget(struct mcp_call *c);
mcp_method_fn mcp_tasks_get, mcp_tasks_update, mcp_tasks_cancel, mcp_tasks_result, mcp_tasks_list;
/* Over HTTP, where nobody is told apart, tasks of one must not be shown to another. */
bool mcp_tasks_are_listed(const struct mcp_session *s);
/* May that session's principal watch the task? */
bool mcp_task_is_seen(struct mcp_session *s, struct str id);
void mcp_tasks_count(const struct mcp_server *srv, struct mcp_counts *ret);
void mcp_tasks_purge(struct mcp_server *srv); /* forgets those that are past their time */
void mcp_tasks_free(struct mcp_tasks *tasks); /* NULL-safe; cancels those that run */

/*
 * The questions that one call has asked its client, and the answers so far: plain data, without
 * anybody asking. mcp/server/ask.c asks. Sealed as text, it is the requestState that a modern
 * client keeps for us between two of its requests (MCP 2026-07-28, basic/patterns/mrtr).
 */

enum {
	MCP_ASK_KEY_MAX = 64,
	MCP_ASK_BYTES_MAX = 4 << 20, /* of all questions and answers of one call, as JSON */
	MCP_ASK_ROUNDS_MAX = 64,
};

struct mcp_asked {
	/* first: found by it. Listed while a legacy client has the question */
	struct mcp_reach reach;
	uint64_t sent_ms; /* since when */
	void *stream; /* where it was sent */
	struct mcp_asked *next; /* of the same call, as they were asked */
	struct mcp_call *call;
	char key[MCP_ASK_KEY_MAX + 1];
	enum mcp_ask_kind kind;
	enum { MCP_ASKED_OPEN, MCP_ASKED_ANSWERED, MCP_ASKED_FAILED } state;
	struct json_doc *params; /* NULL: none */
	struct json_doc *answer; /* once answered */
	char *error; /* why there is no answer, once it failed; NULL without memory */
};

struct mcp_asking {
	struct mcp_asked *first, *last;
	unsigned n, open; /* questions; those without an answer or failure */
	unsigned rounds;
	size_t bytes;
	char *state; /* the handler's; NULL: none */
	size_t state_n;
	bool waits; /* the handler has returned and runs again when `open` is 0 */
};

/* Frees what it holds, not itself. No question is sent. */
void mcp_asking_fini(struct mcp_asking *a);

struct mcp_asked *mcp_asking_find(const struct mcp_asking *a, struct str key);

/* The handler's state is this from now on; copied. */
int mcp_asking_set_state(struct mcp_asking *a, struct str state, struct err *e) MUST_USE;

/* A further open question. ERR_BUG where the key or the parameters are not fit for one,
 * ERR_TOO_LARGE over MCP_ASK_BYTES_MAX, ERR_LIMIT. */
struct mcp_asked *mcp_asking_add(struct mcp_asking *a, struct str key, enum mcp_ask_kind kind,
				 struct str params, struct err *e) MUST_USE;

/* Moves the questions of `from` behind those of a; from is empty then. ERR_TOO_LARGE, and nothing
 * is moved, over MCP_ASK_BYTES_MAX. */
int mcp_asking_append(struct mcp_asking *a, struct mcp_asking *from, struct err *e) MUST_USE;

/* Gives an open question its answer, a copy of v. ERR_INVALID where v is no answer to it, with the
 * key; it stays open then. */
int mcp_asked_answer(struct mcp_asking *a, struct mcp_asked *q, const struct json_val *v,
		     struct err *e) MUST_USE;

/* An open question will have no answer. The text is copied. */
void mcp_asked_fail(struct mcp_asking *a, struct mcp_asked *q, struct str why);

/* Appends all of it, sealed for `context`. */
int mcp_asking_seal(const struct mcp_asking *a, const struct seal_ring *ring, struct str context,
		    uint64_t expires, struct buf *to, struct err *e) MUST_USE;

/* Fills an empty one. Errors as those of seal_open(). */
int mcp_asking_open(struct mcp_asking *a, const struct seal_ring *ring, struct str context,
		    uint64_t now, struct str text, struct err *e) MUST_USE;

/* --- ask.c: who asks --- */

bool mcp_ask_can(const struct mcp_call *c, unsigned needs); /* MCP_CAN_… */
/* That of c, made at the first use; NULL without memory. */
struct mcp_asking *mcp_asking_of(struct mcp_call *c, struct err *e);
/* Runs the handler, at once or when it has returned; c may be gone then. */
void mcp_ask_run_again(struct mcp_call *c);
/* The same, and a task goes on, if no question is open. */
void mcp_ask_settled(struct mcp_call *c);
/* The open questions as InputRequests. */
void mcp_ask_write(struct json_writer *w, const struct mcp_call *c);
/* Takes what answers has for the open questions of c; keys that are none are ignored. */
int mcp_ask_take(struct mcp_call *c, const struct json_val *answers, struct rpc_fault *f) MUST_USE;

/* --- ask_modern.c --- */

/* Answers the call with its questions, unless answers came with it. asked: there are new ones. c
 * may be gone then. */
int mcp_ask_modern(struct mcp_call *c, bool asked, struct err *e) MUST_USE;

/* --- ask_legacy.c --- */

/* Sends the open questions that no legacy client has to this one. */
int mcp_ask_send(struct mcp_call *c, struct mcp_session *s, void *stream, struct err *e) MUST_USE;
/* Takes back those that clients have. */
void mcp_ask_withdraw(struct mcp_call *c, const char *reason);

/* --- task.c: of a task's questions --- */

void mcp_task_asks(struct mcp_call *c); /* some are open */
/* Who had some is gone. Without effect on calls that are no tasks. */
void mcp_task_asks_others(struct mcp_call *c);
void mcp_task_goes_on(struct mcp_call *c); /* none is any more */

/*
 * Tasks: calls of tools that outlive their request. task_call.c makes them of calls, task.c keeps
 * them, task_method.c is what clients see of them and say about them. Two protocols, one store:
 * the extension io.modelcontextprotocol/tasks for modern clients, and what was in the core of
 * 2025-11-25 (basic/utilities/tasks). A task is seen by the principal that it was made for, in
 * the era in which it was made; for all others it is not there.
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
	struct inflight_entry entry; /* first: found by it, in mcp_tasks.table. Its id as JSON */
	struct mcp_server *server;
	struct mcp_call *call; /* NULL once it has ended */
	const struct mcp_profile *profile;
	unsigned session; /* number of the one that it came from */
	enum mcp_task_state state;
	char id[ID_MAX];
	char *owner; /* the principal's name */
	char *message; /* of its status; may be NULL */
	uint64_t serial; /* of all ever made */
	uint64_t made_ms, changed_ms; /* wall clock */
	uint64_t expires_ms; /* monotonic */
	unsigned ttl_ms, poll_ms;
	size_t bytes; /* counted for it */
	char *result; /* MCP_TASK_DONE: JSON object */
	size_t result_n;
	bool is_error; /* the tool said so */
	struct rpc_fault *fault; /* MCP_TASK_FAULT */
	struct mcp_call *waiters[MCP_TASK_WAITERS]; /* tasks/result; NULL: free place */
};

struct mcp_tasks {
	struct inflight *table;
	uint64_t made; /* ever */
	uint64_t expires_ms; /* of the first that will; or before */
	size_t bytes;
};

/* A task of the call, in the store, without a time yet. ERR_LIMIT where there is no room. */
struct mcp_task *mcp_task_add(struct mcp_call *c, struct err *e) MUST_USE;
void mcp_task_set_ttl(struct mcp_task *t, unsigned ttl_ms); /* from now; within bounds */
void mcp_task_set_message(struct mcp_task *t, const char *message); /* copied, cut; may be NULL */

/* The task of that id, if q may see it; NULL with the fault -32602. */
struct mcp_task *mcp_task_find(const struct mcp_request *q, struct rpc_fault *f) MUST_USE;
bool mcp_task_is_for(const struct mcp_task *t, const struct mcp_profile *p, struct str owner);
bool mcp_task_has_ended(const struct mcp_task *t);

/* Its members, for an object that is open; details are result, error and inputRequests. */
void mcp_task_write(struct json_writer *w, const struct mcp_task *t, bool details);

/* It changed: tells who wants to know. */
void mcp_task_changed(struct mcp_task *t);

/* Ends it as cancelled, and its call if that can be. */
void mcp_task_cancel(struct mcp_task *t);

/* 2025-11-25: answers a tasks/result, which is gone then. t has ended. */
void mcp_task_deliver(struct mcp_task *t, struct mcp_call *waiter);

/* 2025-11-25: its questions go to whoever waits for the result. */
void mcp_task_send_questions(struct mcp_task *t);

/* What a tool's schemas are compiled to; inside the folder only. */

struct mcp_prepared {
	struct json_doc *input; /* what params borrow from; NULL where there are none */
	struct mcp_params params;
	struct schema *output; /* NULL: none */
	bool object_output; /* it is of type object, as revisions before 2026-07-28 want it */
};
