#pragma once
/*
 * MCP, the client's role, as a core without I/O: one conversation with one server, in a revision
 * from 2024-11-05 to 2026-07-28. A transport takes whole messages out through a callback and feeds
 * whole messages in. The era is the transport's to choose (it alone can probe): legacy begins with
 * initialize, modern with server/discover.
 *
 * A request is any method of the protocol. The core adds what its revision wants (_meta, headers),
 * answers what the server asks in between (input_required, or requests of its own) through the
 * handler, follows tasks to their end, and checks results; its owner sees one answer.
 *
 * Whatever comes is hostile: answers to nothing, twice or of a wrong kind are counted and dropped,
 * and no message of a server can end more than the connection that it came on.
 *
 * One thread. Callbacks come from inside of the functions of this header, but never from inside
 * mcp_client_request() and the functions that start one: what fails at once fails in the
 * transport's next message or tick. In any callback everything may be called, but mcp_client_free()
 * not in `send`.
 */
#include "base/buf.h"
#include "json/document/json.h"
#include "mcp/message/message.h"

struct mcp_client;
struct mcp_pending;
struct mcp_question;
struct budget; /* base/budget.h */
struct rpc_sniff;

struct mcp_log_message {
	enum mcp_level level;
	struct str logger; /* may be STR_NONE */
	const struct json_val *data;
};

/* All may be NULL. */
struct mcp_client_handler {
	/* The server has answered the first message and may be called. */
	void (*ready)(void *owner);
	/* The conversation is over, or never began; once. Requests have failed before. e:
	 * ERR_UNSUPPORTED where no revision is common to both, ERR_TRANSPORT, ERR_TIMEOUT, … */
	void (*over)(void *owner, const struct err *e);
	/* The server asks; end it by mcp_question_answer() or _refuse(), now or later. Only kinds
	 * that `can` of the options has come here. NULL: all are refused. */
	void (*asked)(void *owner, struct mcp_question *q);
	/* The server wants the question's answer no more; it is gone after it. */
	void (*withdrawn)(void *owner, struct mcp_question *q);
	/* MCP_TOOLS…: a list is not what it was. */
	void (*changed)(void *owner, unsigned lists);
	void (*updated)(void *owner, struct str uri);
	void (*log)(void *owner, const struct mcp_log_message *m);
	/* A URL that was asked for by MCP_ASK_URL has been dealt with, says the server. */
	void (*url_done)(void *owner, struct str elicitation_id);
	/* Any other notification. */
	void (*notified)(void *owner, struct str method, const struct json_val *params);
};

struct mcp_client_options {
	const char *name, *version; /* clientInfo; required */
	const char *title;
	unsigned can; /* MCP_CAN_… */
	const struct mcp_extension *extensions;
	size_t extensions_n;
	const struct mcp_client_handler *handler;
	void *owner;

	/* Limits; 0 takes the default. */
	unsigned pending_max; /* requests without an answer: 256 */
	unsigned questions_max; /* questions of the server without an answer: 32 */
	/* Time that a question waits for its answer does not count for the request that it belongs
	 * to: whose answer it stands in, on whose stream over HTTP it came, whose task it names, or
	 * that is the only one. Of a question of a legacy server that says none of that it counts
	 * for no request, but for each only so long in all: 0: 10 minutes. */
	unsigned hold_max_ms;
	unsigned timeout_ms; /* of a request that names none: 60 s; progress begins it anew */
	/* of any request, whatever progress it makes: 10 minutes. A task may take as long as its
	 * server keeps it, at most a day */
	unsigned timeout_max_ms;
	unsigned rounds_max; /* input_required in a row for one request: 16 */
	unsigned list_max; /* entries of a whole list: 10,000, in at most 1000 pages */
	size_t message_max; /* bytes of a message of the server: 64 MiB */
	/* Bytes of all that is kept of what the server says: what has come of answers over HTTP
	 * that are not whole, pages of lists, open questions, what is known of tools: twice
	 * message_max. The request that would pass it fails with ERR_LIMIT, a question is refused;
	 * the others go on. Not counted: up to 16 KiB for each answer, and the one message that is
	 * just coming in where all share a stream. */
	size_t memory_max;
	/* In place of one of its own, with its maximum: many clients may share it. Borrowed until
	 * mcp_client_free(), with mcp_connect() until on_closed; may be NULL. */
	struct budget *memory;
	unsigned task_poll_min_ms; /* how often a task is asked for at most: 100 */
	struct json_options json; /* of what comes */
	uint64_t (*now_ms)(void); /* monotonic; NULL: clock_ms() */
};

/* Copies the options, not what they point to: borrowed until mcp_client_free(). NULL with ERR_BUG
 * where a name is missing, ERR_LIMIT without memory. */
struct mcp_client *mcp_client_new(const struct mcp_client_options *o, struct err *e) MUST_USE;
/* Requests and questions end without a callback, and the transport is not called. NULL-safe. */
void mcp_client_free(struct mcp_client *c);
AUTO_DEFINE(mcp_client_free, struct mcp_client)

/* --- what the server is: from `ready` on --- */

const char *mcp_client_version(
	const struct mcp_client *c); /* the revision in use; static; NULL before */
enum mcp_era mcp_client_era(const struct mcp_client *c);
/* serverInfo, capabilities, instructions: of the result of initialize or discover; borrowed until
 * it comes again. NULL before. */
const struct json_val *mcp_client_about(const struct mcp_client *c);
struct mcp_client_counts {
	unsigned pending, questions;
	uint64_t strays; /* answers to nothing: late, double, made up */
	uint64_t garbage; /* what was no message */
};
void mcp_client_counts(const struct mcp_client *c, struct mcp_client_counts *ret);

/* --- requests --- */

/* How one ended: exactly one of result, fault, e is set. Borrowed for the callback. */
struct mcp_answer {
	const struct json_val *result; /* an object */
	struct str text; /* result as JSON, as it came */
	const struct json_val *fault; /* the server's error: {code, message, data} */
	int code; /* of the fault */
	/* ERR_TIMEOUT, ERR_CANCELLED, ERR_TRANSPORT (lost; it may have been done), ERR_INVALID (the
	 * answer is none that the protocol allows, or not as the tool's output schema wants it),
	 * ERR_LIMIT, ERR_TOO_LARGE */
	const struct err *e;
};

struct mcp_progress {
	double progress, total; /* total 0: not known */
	struct str message; /* may be STR_NONE */
};

struct mcp_request_spec {
	const char *method; /* any; the core knows what tools/call, prompts/get … want beside it */
	/* JSON object, copied; STR_NONE: none. Its _meta is kept and added to. */
	struct str params;
	unsigned timeout_ms; /* 0: the client's */
	int log_level; /* modern: messages of at least this mcp_level are wanted, + 1; 0: none */
	unsigned task_ttl_ms; /* 2025-11-25: ask for a task of this life; 0: a plain call */
	void (*on_progress)(void *owner,
			    const struct mcp_progress *p); /* NULL: none is asked for */
	/* The request has become a task (id borrowed), which the core follows. May be NULL. */
	void (*on_task)(void *owner, struct str task_id);
	void (*on_done)(void *owner, const struct mcp_answer *a); /* once; p is gone after it */
	void *owner;
};

/* NULL with ERR_INVALID (params are no object, a revision that has no such method, one of those
 * that the core sends by itself: initialize, subscriptions/listen), ERR_LIMIT (too many without an
 * answer, no memory), ERR_TRANSPORT (not ready, or over). */
struct mcp_pending *mcp_client_request(struct mcp_client *c, const struct mcp_request_spec *s,
				       struct err *e) MUST_USE;
/* Tells the server; no callback comes for p after it. */
void mcp_pending_cancel(struct mcp_pending *p);

/* A notification, such as notifications/roots/list_changed. params: JSON object or STR_NONE. */
int mcp_client_notify(struct mcp_client *c, const char *method, struct str params,
		      struct err *e) MUST_USE;

/* tools/call with these arguments: a JSON object or STR_NONE. s->method and s->params are
 * ignored. */
struct mcp_pending *mcp_client_call(struct mcp_client *c, const char *tool, struct str arguments,
				    const struct mcp_request_spec *s, struct err *e) MUST_USE;

/* Every entry of a list, over all its pages: "tools", "resources", "resourceTemplates", "prompts",
 * "tasks" (2025-11-25). Tools whose x-mcp-header are not as they must be are left out, as a modern
 * client has to over HTTP. Of tools their headers, output schemas and taskSupport are kept, until
 * the list comes again: calls are made and their results checked by them. They are also kept of
 * tools/list that the owner requests by itself, page by page, whose results it has as they came. */
struct mcp_listed {
	const struct json_val *const *items; /* borrowed for the callback */
	size_t n;
	/* entries that were left out: no object with a name, tools with bad headers */
	size_t dropped;
	const struct mcp_answer *failed; /* NULL where the list is there */
};
struct mcp_pending *mcp_client_list(struct mcp_client *c, const char *what,
				    void (*on_done)(void *owner, const struct mcp_listed *l),
				    void *owner, struct err *e) MUST_USE;

/* What the server is to tell of from now on, in place of what it was before: lists (MCP_TOOLS…) and
 * resources. Modern: subscriptions/listen, begun again when the server ends it. Legacy: lists are
 * told of anyway, resources by resources/subscribe and unsubscribe. uris are copied. This and the
 * next may also be called before `ready`, and hold in a session that is begun anew. ERR_UNSUPPORTED
 * where a legacy server has no such capability. */
int mcp_client_watch(struct mcp_client *c, unsigned lists, const struct str *uris, size_t n,
		     struct err *e) MUST_USE;

/* Log messages of at least that level. Legacy: logging/setLevel; modern: of every later request. */
int mcp_client_set_level(struct mcp_client *c, enum mcp_level level, struct err *e) MUST_USE;

/* --- questions of the server: client/elicitation, client/sampling, client/roots --- */

enum mcp_ask_kind mcp_question_kind(const struct mcp_question *q);
/* As the server sent them, checked to be well-formed for their kind: a form's requestedSchema can
 * be read, a URL is http: or https: without credentials in it. Borrowed while the question
 * lasts. */
const struct json_val *mcp_question_params(const struct mcp_question *q);
void mcp_question_set_data(struct mcp_question *q, void *data);
void *mcp_question_data(const struct mcp_question *q);

/* result: JSON object as the kind wants it ({"action":"accept","content":…}, …); q is gone. -1 with
 * ERR_INVALID where the server would have to refuse it, and q is still to be answered. */
int mcp_question_answer(struct mcp_question *q, struct str result, struct err *e) MUST_USE;
/* Elicitations are declined. Legacy: a protocol error in place of another answer. Modern, where
 * there is none: no roots, and what asked for sampling fails with ERR_CLIENT_FAILED. q is gone. */
void mcp_question_refuse(struct mcp_question *q, const char *why);

/* Appends a JSON object: what a form holds before anybody has filled it in, the defaults of its
 * requestedSchema. */
int mcp_form_defaults(const struct json_val *params, struct buf *to, struct err *e) MUST_USE;

/* === for transports ======================================================================= */

struct mcp_client_param {
	char *name; /* of "Mcp-Param-<name>" */
	char *value; /* ready for a header */
};

struct mcp_client_out {
	struct str text; /* one JSON text without line breaks; borrowed until `send` returns */
	enum mcp_out_kind kind;
	struct mcp_pending *pending; /* of a request */
	/* What Streamable HTTP says beside it. */
	bool modern;
	bool is_initialize; /* a session comes with its answer; none is named */
	bool opens_stream; /* notifications/initialized: the GET stream may be opened after it */
	const char *version; /* MCP-Protocol-Version; NULL: none is said */
	struct str method;
	const char *name; /* Mcp-Name, ready for a header; NULL: none */
	const struct mcp_client_param *params;
	size_t params_n;
};

struct mcp_client_transport {
	/* Each request has a stream of its own, which is closed to cancel it, and headers are sent:
	 * Streamable HTTP. False: all messages share one (stdio, HTTP+SSE). */
	bool streams;
	/* Queues it. What can't be sent is told by mcp_client_failed() or _lost(), never from
	 * inside. */
	void (*send)(void *transport, const struct mcp_client_out *m);
	/* The last word on p, whatever ended it: answered, failed, cancelled, timed out. Over HTTP
	 * an exchange that still runs is closed, which cancels it where it is modern; elsewhere the
	 * core has sent notifications/cancelled. Not between the requests that are sent for the
	 * same p (pages, rounds of questions, polls of a task), but also for one that was never
	 * sent. May come from inside of mcp_client_message() and the like. May be NULL. */
	void (*let_go)(void *transport, struct mcp_pending *p);
	/* The first message was refused, or its answer is of no use. True: the transport will start
	 * again, from inside or later, in another era; false: it is over. May be NULL. */
	bool (*unfit)(void *transport, const struct mcp_answer *a);
};

/* Begins: sends initialize with the newest legacy revision, or `version` (NULL: that), or
 * server/discover. Once; again after `unfit` said so. How long the beginning may take is for the
 * transport to say. */
int mcp_client_start(struct mcp_client *c, const struct mcp_client_transport *t, void *transport,
		     enum mcp_era era, const char *version, struct err *e) MUST_USE;

/* A message came. p: the request on whose stream it came, NULL where there is none. True where it
 * was the answer that p waited for, or where p is NULL any request; of a batch: one of it. */
bool mcp_client_message(struct mcp_client *c, struct mcp_pending *p, struct str text);

/* The answer of p can't come any more. A JSON-RPC error that comes with an HTTP status of failure
 * is a message, also where it names no id. */
void mcp_client_failed(struct mcp_client *c, struct mcp_pending *p, const struct err *e);

/* A message came that the transport could not take whole: ERR_TOO_LARGE, ERR_LIMIT. Fails the
 * request that it answers: p, or where that is NULL the one that sniff (may be NULL) found. */
void mcp_client_dropped(struct mcp_client *c, struct mcp_pending *p, const struct rpc_sniff *sniff,
			const struct err *e);

/* The server has forgotten the session (HTTP 404, or a 400 that means it): initialize is sent
 * again; p (may be NULL), which the server has refused to take, is sent again after it, once. */
void mcp_client_session_lost(struct mcp_client *c, struct mcp_pending *p);

/* The connection is gone: everything fails with e, and `over` follows. */
void mcp_client_lost(struct mcp_client *c, const struct err *e);

/* Deadlines and tasks' polls: at least every 100 ms while there are pendings. Gives the ms to the
 * next thing to do, UINT64_MAX for none. */
uint64_t mcp_client_tick(struct mcp_client *c);

/* The owner's word beside a pending; a transport keeps its exchange there. */
void mcp_pending_set_data(struct mcp_pending *p, void *data);
void *mcp_pending_data(const struct mcp_pending *p);
