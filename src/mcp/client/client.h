#pragma once
/*
 * The MCP client as a core without I/O: one connection to one server, in a revision from 2024-11-05
 * to 2026-07-28. The transport gets whole messages through a callback and passes whole messages in.
 * The transport chooses the era, since only it can probe: legacy starts with initialize, modern
 * with server/discover.
 *
 * A request may use any method of the protocol. The core adds what the revision requires (_meta,
 * headers), passes questions of the server (input_required, or its requests) to the handler,
 * follows tasks to their end, and checks results. The caller gets one answer.
 *
 * All input is untrusted. Unexpected, repeated and malformed answers are counted and dropped. A
 * message of a server can at most end its own connection.
 *
 * All functions must be called on one thread. Callbacks come from inside the functions of this
 * header, but never from inside those that start a request: an immediate failure is reported during
 * the transport's next message or tick. Callbacks may call any function, except mcp_client_free()
 * inside `send`.
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
	struct mcp_pending *pending; /* the request on whose stream it came; NULL: not known */
};

/* All may be NULL. */
struct mcp_client_handler {
	/* The server has answered the first message; requests may be sent. */
	void (*ready)(void *owner);
	/* The connection has ended or could not be made. Called once, after all requests have
	 * failed. ERR_UNSUPPORTED: no common revision; ERR_TRANSPORT, ERR_TIMEOUT, … */
	void (*over)(void *owner, const struct err *e);
	/* The server asks a question of a kind in the options' `can`. Answer it now or later by
	 * mcp_question_answer() or _refuse(). NULL: all are refused. */
	void (*asked)(void *owner, struct mcp_question *q);
	/* The server has withdrawn the question, which is freed afterwards. */
	void (*withdrawn)(void *owner, struct mcp_question *q);
	/* These lists (MCP_TOOLS…) have changed. */
	void (*changed)(void *owner, unsigned lists);
	void (*updated)(void *owner, struct str uri);
	void (*log)(void *owner, const struct mcp_log_message *m);
	/* The server reports that the interaction at a URL (MCP_ASK_URL) is complete. */
	void (*url_done)(void *owner, struct str elicitation_id);
	/* Any other notification. */
	void (*notified)(void *owner, struct str method, const struct json_val *params);
};

struct mcp_client_options {
	const char *name, *version; /* clientInfo; required */
	const char *title;
	const char *label; /* of lines in the log; NULL: "mcp client". Borrowed */
	unsigned can; /* MCP_CAN_… */
	const struct mcp_extension *extensions;
	size_t extensions_n;
	const struct mcp_client_handler *handler;
	void *owner;

	/* Limits; 0 takes the default. */
	unsigned pending_max; /* requests without an answer: 256 */
	unsigned questions_max; /* questions of the server without an answer: 32 */
	/* The timeout of a request stops while a question that belongs to it waits for an answer.
	 * The question is part of the request's answer, came on its stream (HTTP), names its task,
	 * or the request is the only one. A legacy server's question may name none of these: then
	 * the timeouts of all requests stop, each for at most this long in total: 10 minutes. */
	unsigned hold_max_ms;
	unsigned timeout_ms; /* default of requests: 60 s; restarted by progress */
	/* of any request, despite progress: 10 minutes. A task may take as long as its server keeps
	 * it, at most a day. */
	unsigned timeout_max_ms;
	unsigned rounds_max; /* input_required in a row for one request: 16 */
	unsigned list_max; /* entries of a whole list: 10,000, in at most 1000 pages */
	size_t message_max; /* bytes of a message of the server: 64 MiB */
	/* bytes kept from the server: incomplete answers over HTTP, pages of lists, open questions,
	 * descriptions of tools: twice message_max. A request that would exceed it fails with
	 * ERR_LIMIT, and a question is refused; others are not affected. Up to 16 KiB of each
	 * answer, and the message being received on a shared stream, do not count. */
	size_t memory_max;
	/* A budget that replaces memory_max and may be shared by many clients. Borrowed until
	 * mcp_client_free(), with mcp_connect() until on_closed; may be NULL. */
	struct budget *memory;
	unsigned task_poll_min_ms; /* least time between two polls of a task: 100 */
	unsigned task_max_ms; /* how long a task is followed, whatever its server says: a day */
	struct json_options json; /* for incoming messages */
	uint64_t (*now_ms)(void); /* monotonic; NULL: clock_ms() */
};

/* Copies the options, not what they point to: borrowed until mcp_client_free(). NULL with ERR_BUG
 * where a name is missing, ERR_LIMIT without memory. */
struct mcp_client *mcp_client_new(const struct mcp_client_options *o, struct err *e) MUST_USE;
/* Requests and questions end without a callback, and the transport is not called. NULL-safe. */
void mcp_client_free(struct mcp_client *c);
AUTO_DEFINE(mcp_client_free, struct mcp_client)

/* --- the server: valid from `ready` on --- */

/* The revision in use; static. NULL before `ready`. */
const char *mcp_client_version(const struct mcp_client *c);
enum mcp_era mcp_client_era(const struct mcp_client *c);
/* The result of initialize or discover, with serverInfo, capabilities and instructions. Borrowed
 * until the next such result. NULL before `ready`. */
const struct json_val *mcp_client_about(const struct mcp_client *c);
struct mcp_client_counts {
	unsigned pending, questions;
	uint64_t strays; /* answers that match no request: late, repeated or invented */
	uint64_t garbage; /* input that was no message */
};
void mcp_client_counts(const struct mcp_client *c, struct mcp_client_counts *ret);

/* --- requests --- */

/* The end of a request: exactly one of result, fault, e is set. Borrowed for the callback. */
struct mcp_answer {
	const struct json_val *result; /* an object */
	struct str text; /* result as JSON, as received */
	const struct json_val *fault; /* the server's error: {code, message, data} */
	int code; /* of the fault */
	/* ERR_TIMEOUT, ERR_CANCELLED, ERR_TRANSPORT (lost; the request may have taken effect),
	 * ERR_INVALID (the answer violates the protocol or the tool's output schema), ERR_LIMIT,
	 * ERR_TOO_LARGE */
	const struct err *e;
	bool sent; /* with e: the server may have acted on the request */
};

struct mcp_progress {
	double progress, total; /* total 0: not known */
	struct str message; /* may be STR_NONE */
};

struct mcp_request_spec {
	const char *method; /* any; the core adds what tools/call, prompts/get … need */
	/* JSON object, copied; STR_NONE: none. Members are added to its _meta. */
	struct str params;
	unsigned timeout_ms; /* 0: the client's */
	int log_level; /* modern: 1 + the least mcp_level of log messages to send; 0: none */
	unsigned task_ttl_ms; /* 2025-11-25: ask for a task with this ttl; 0: a plain call */
	/* NULL: no progress is requested */
	void (*on_progress)(void *owner, const struct mcp_progress *p);
	/* The request has become a task, which the core follows; id borrowed. May be NULL. */
	void (*on_task)(void *owner, struct str task_id);
	void (*on_done)(void *owner, const struct mcp_answer *a); /* once; frees the pending */
	void *owner;
};

/* NULL with ERR_INVALID (params are no object, the revision lacks the method, or the core sends it
 * itself: initialize, subscriptions/listen), ERR_LIMIT (too many pending requests, no memory),
 * ERR_TRANSPORT (not ready, or ended). */
struct mcp_pending *mcp_client_request(struct mcp_client *c, const struct mcp_request_spec *s,
				       struct err *e) MUST_USE;
/* Cancels the request and notifies the server. No callback for p comes afterwards. */
void mcp_pending_cancel(struct mcp_pending *p);

/* Sends a notification, such as notifications/roots/list_changed. params: JSON object or
 * STR_NONE. */
int mcp_client_notify(struct mcp_client *c, const char *method, struct str params,
		      struct err *e) MUST_USE;

/* tools/call with these arguments: a JSON object or STR_NONE. s->method and s->params are
 * ignored. */
struct mcp_pending *mcp_client_call(struct mcp_client *c, const char *tool, struct str arguments,
				    const struct mcp_request_spec *s, struct err *e) MUST_USE;

/* Lists all entries over all pages: "tools", "resources", "resourceTemplates", "prompts", "tasks"
 * (2025-11-25). Tools with an invalid x-mcp-header are left out, as the specification requires of a
 * modern client over HTTP. The core keeps the headers, output schemas and taskSupport of tools
 * until the next list, to make calls and check their results. It also keeps those from a tools/list
 * that the owner requests itself, page by page. */
struct mcp_listed {
	const struct json_val *const *items; /* borrowed for the callback */
	size_t n;
	/* entries that were left out: not an object with a name, or a tool with bad headers */
	size_t dropped;
	const struct mcp_answer *failed; /* NULL on success */
};
struct mcp_pending *mcp_client_list(struct mcp_client *c, const char *what,
				    void (*on_done)(void *owner, const struct mcp_listed *l),
				    void *owner, struct err *e) MUST_USE;

/* Subscribes to changes of lists (MCP_TOOLS…) and resources, replacing earlier subscriptions.
 * Modern: subscriptions/listen, repeated when the server ends it. Legacy: resources/subscribe and
 * unsubscribe; list changes come anyway. uris are copied. ERR_UNSUPPORTED: a legacy server without
 * the capability. This function and the next may be called before `ready`, and stay in effect when
 * the session is started again. */
int mcp_client_watch(struct mcp_client *c, unsigned lists, const struct str *uris, size_t n,
		     struct err *e) MUST_USE;

/* Requests log messages from that level up. Legacy: logging/setLevel; modern: for later
 * requests. */
int mcp_client_set_level(struct mcp_client *c, enum mcp_level level, struct err *e) MUST_USE;

/* --- questions of the server: client/elicitation, client/sampling, client/roots --- */

enum mcp_ask_kind mcp_question_kind(const struct mcp_question *q);
/* As sent by the server, and checked: the requestedSchema of a form is valid, and a URL is http: or
 * https: without credentials. Borrowed until the question is answered or withdrawn. */
const struct json_val *mcp_question_params(const struct mcp_question *q);
/* The request that it belongs to, and whose time stands still for it. NULL: the server does not
 * say, or that request has ended. */
struct mcp_pending *mcp_question_pending(const struct mcp_question *q);
void mcp_question_set_data(struct mcp_question *q, void *data);
void *mcp_question_data(const struct mcp_question *q);

/* result: JSON object as its kind requires ({"action":"accept","content":…}, …). Frees q. -1 with
 * ERR_INVALID: the server would have to refuse the result; q must still be answered. */
int mcp_question_answer(struct mcp_question *q, struct str result, struct err *e) MUST_USE;
/* Declines an elicitation. Other kinds: legacy servers get a protocol error; modern ones, which
 * have none, get empty roots, and a request that asked for sampling fails with ERR_CLIENT_FAILED.
 * Frees q. */
void mcp_question_refuse(struct mcp_question *q, const char *why);
/* Says that nobody can answer, also of an elicitation: legacy servers get a protocol error, and a
 * modern request that asked fails with ERR_CLIENT_FAILED. Frees q. */
void mcp_question_fail(struct mcp_question *q, const char *why);

/* Appends a JSON object with the initial content of a form: the defaults of its requestedSchema. */
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
	/* for Streamable HTTP: */
	bool modern;
	bool is_initialize; /* sent without a session; the answer brings one */
	bool opens_stream; /* notifications/initialized: afterwards the GET stream may be opened */
	const char *version; /* MCP-Protocol-Version; NULL: none */
	struct str method;
	const char *name; /* Mcp-Name, ready for a header; NULL: none */
	const struct mcp_client_param *params;
	size_t params_n;
};

struct mcp_client_transport {
	/* True for Streamable HTTP: headers are sent, and each request has its own stream, which is
	 * closed to cancel it. False: all messages share one stream (stdio, HTTP+SSE). */
	bool streams;
	/* Queues a message. Failures are reported by mcp_client_failed() or _lost(), never from
	 * inside send. */
	void (*send)(void *transport, const struct mcp_client_out *m);
	/* p has ended: answered, failed, cancelled or timed out. Over HTTP the transport closes an
	 * exchange that still runs, which cancels a modern request; for others the core has sent
	 * notifications/cancelled. Called once per p, even if it was never sent, and not between
	 * the messages sent for it (pages, rounds of questions, polls of a task). May come from
	 * inside mcp_client_message() and similar functions. May be NULL. */
	void (*let_go)(void *transport, struct mcp_pending *p);
	/* The first message was refused, or its answer is unusable. True: the transport will start
	 * again in another era, from inside or later; false: give up. May be NULL. */
	bool (*unfit)(void *transport, const struct mcp_answer *a);
};

/* Starts the connection. Legacy: sends initialize with `version` (NULL: the newest legacy
 * revision); modern: sends server/discover. Called once, and again after `unfit` returned true. The
 * transport limits the time of the start. */
int mcp_client_start(struct mcp_client *c, const struct mcp_client_transport *t, void *transport,
		     enum mcp_era era, const char *version, struct err *e) MUST_USE;

/* Handles an incoming message. p: the request on whose stream it came, NULL for a shared stream.
 * Returns true if it, or a message of the batch, answered p, or any request if p is NULL. */
bool mcp_client_message(struct mcp_client *c, struct mcp_pending *p, struct str text);

/* Reports that no answer to p can come. sent: the server may have acted on p. A JSON-RPC error with
 * an HTTP error status is a message instead, even without an id. */
void mcp_client_failed(struct mcp_client *c, struct mcp_pending *p, bool sent, const struct err *e);

/* Reports a message that the transport could not receive whole (ERR_TOO_LARGE, ERR_LIMIT). Fails
 * the request that it answers: p, or if that is NULL the one found by sniff (may be NULL). */
void mcp_client_dropped(struct mcp_client *c, struct mcp_pending *p, const struct rpc_sniff *sniff,
			const struct err *e);

/* Reports that the server no longer knows the session (HTTP 404, or an equivalent 400). Sends
 * initialize again, then once more p (may be NULL), which the server has refused. */
void mcp_client_session_lost(struct mcp_client *c, struct mcp_pending *p);

/* Reports that the connection is lost: all requests fail with e, and `over` follows. */
void mcp_client_lost(struct mcp_client *c, const struct err *e);

/* Handles deadlines and polls of tasks; call it at least every 100 ms while requests are pending.
 * Returns the ms until it is next needed, UINT64_MAX for never. */
uint64_t mcp_client_tick(struct mcp_client *c);

/* A pointer stored with a pending, for the transport's exchange. */
void mcp_pending_set_data(struct mcp_pending *p, void *data);
void *mcp_pending_data(const struct mcp_pending *p);
