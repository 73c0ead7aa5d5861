#pragma once
/*
 * MCP, the server's role, as a core without I/O: a transport feeds whole messages in and gets whole
 * messages out through a callback. Revisions 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 (the
 * legacy ones: initialize and a session) and 2026-07-28 (modern: each request says by itself what
 * it needs). A message has only what its revision knows (mcp/message/profile.h).
 *
 * A server is what is offered: a name, tools, resources, prompts, and the handler that runs them. A
 * session is one client's conversation, made by a transport; for a modern request over HTTP it
 * lives as long as that request. A call is one request in progress that a handler answers; it may
 * end at any later time, so that a slow call delays no other message.
 *
 * One thread. Every callback comes from inside a function of this header; handlers may call
 * mcp_call_*, mcp_session_* and mcp_server_changed() back at any point, except that nothing closes
 * a session from inside `send`. Texts that are called JSON are valid, and on one line.
 *
 * Pages of the specification are named as they are of 2026-07-28 (server/tools), with the revision
 * before them where only an older one has the page (2025-11-25: basic/lifecycle).
 */
#include "base/arena.h"
#include "json/field/field.h"
#include "json/document/json.h"
#include "mcp/message/message.h"

struct mcp_server;
struct mcp_session;
struct mcp_call;
struct mcp_prepared;
struct rpc_sniff;

/* === what is offered ====================================================================== */

/* Everything here is static or at least as long-lived as the server, or as the list that it is in.
 * What is NULL or 0 is left out on the wire; so is what a client's revision doesn't know. */

struct mcp_icon {
	const char *src; /* https: or data: */
	const char *mime;
	const char *sizes; /* "48x48 96x96", or "any" */
	const char *theme; /* "light" or "dark" */
};

struct mcp_icons {
	const struct mcp_icon *p;
	size_t n;
};

enum { MCP_FOR_USER = 1 << 0, MCP_FOR_ASSISTANT = 1 << 1 };

struct mcp_annotations {
	unsigned audience; /* MCP_FOR_… */
	bool has_priority;
	double priority; /* 0 to 1 */
	const char *last_modified; /* ISO 8601 */
};

enum mcp_hint { MCP_UNSAID, MCP_NO, MCP_YES };

/* server/tools */
struct mcp_tool {
	const char *name; /* [A-Za-z0-9_.-], 1 to 64 */
	const char *title;
	const char *description; /* required */
	const char *input_schema; /* JSON Schema of type object; may have x-mcp-header */
	/* of any type; legacy clients see only those of type object. Success then needs structured
	 * content that it takes. */
	const char *output_schema;
	const char *meta; /* JSON object for the tool's _meta */
	enum mcp_hint read_only, destructive, idempotent, open_world;
	enum mcp_tasking task;
	struct mcp_icons icons;
	void (*run)(struct mcp_call *c); /* in place of the handler's `call` */
	const void *row; /* the owner's */
	struct mcp_prepared *prepared; /* by mcp_tool_prepare() */
};

/* server/resources */
struct mcp_resource {
	const char *uri, *name; /* required */
	const char *title, *description, *mime, *meta;
	int64_t size; /* bytes; 0: not known */
	struct mcp_annotations annotations;
	struct mcp_icons icons;
	void (*run)(struct mcp_call *c); /* in place of the handler's `read` */
	const void *row;
};

struct mcp_template {
	const char *uri_template, *name; /* required; RFC 6570 */
	const char *title, *description, *mime, *meta;
	struct mcp_annotations annotations;
	struct mcp_icons icons;
	void (*run)(struct mcp_call *c); /* in place of `read` for what mcp_uri_match() takes */
	const void *row;
};

struct mcp_argument {
	const char *name; /* required */
	const char *title, *description;
	bool required; /* its absence is answered for the handler */
};

/* server/prompts */
struct mcp_prompt {
	const char *name; /* required */
	const char *title, *description, *meta;
	const struct mcp_argument *args;
	size_t args_n;
	struct mcp_icons icons;
	void (*run)(struct mcp_call *c); /* in place of the handler's `get` */
	const void *row;
};

/* Lists that stay as they are; prepared by mcp_server_new(), released by mcp_server_free(). */
struct mcp_offer {
	struct mcp_tool *tools;
	size_t tools_n;
	const struct mcp_resource *resources;
	size_t resources_n;
	const struct mcp_template *templates;
	size_t templates_n;
	const struct mcp_prompt *prompts;
	size_t prompts_n;
};

/*
 * Lists that depend on the session, and what runs calls. A list function gives what this session
 * may see and use, in the order in which it is listed: what is not in it does not exist for the
 * session. The array is borrowed until the next call of it, its elements as long as calls of them.
 * NULL: the list of the offer; where that is empty too, the server has no such capability.
 *
 * A function that starts a call must lead to exactly one ending (mcp_call_done() and the other
 * functions that say "ends the call"), now or later, also when the call is cancelled.
 */
struct mcp_handler {
	const struct mcp_tool *const *(*tools)(void *owner, struct mcp_session *s, size_t *ret_n);
	const struct mcp_resource *const *(*resources)(void *owner, struct mcp_session *s,
						       size_t *ret_n);
	const struct mcp_template *const *(*templates)(void *owner, struct mcp_session *s,
						       size_t *ret_n);
	const struct mcp_prompt *const *(*prompts)(void *owner, struct mcp_session *s,
						   size_t *ret_n);

	/* A listed tool: mcp_call_tool(). NULL: only what has a `run`. */
	void (*call)(void *owner, struct mcp_call *c);
	/* Any URI, listed or not: mcp_call_uri(). Ends with mcp_call_contents() or
	 * mcp_call_not_found(). NULL: only what has a `run`. */
	void (*read)(void *owner, struct mcp_call *c);
	/* A listed prompt: mcp_call_prompt(). Ends with mcp_call_messages(). NULL: as above. */
	void (*get)(void *owner, struct mcp_call *c);
	/* mcp_call_completion(); ends with mcp_call_values(). NULL: no such capability.
	 * server/utilities/completion. */
	void (*complete)(void *owner, struct mcp_call *c);
};

enum { MCP_KEY_BYTES = 32 };

struct mcp_server_options {
	const char *name, *version; /* serverInfo; required */
	const char *title, *description, *website;
	struct mcp_icons icons;
	const char *instructions; /* for the model */
	const char *meta; /* JSON object for the _meta of the results of initialize and discover */
	struct mcp_offer offer;
	const struct mcp_handler *handler; /* may be NULL where all of the offer has `run` */
	void *owner;

	/* What is promised beside the lists. */
	unsigned changes; /* MCP_TOOLS…: these lists may change */
	bool subscribe; /* mcp_server_updated() will be called for resources */
	bool logging; /* mcp_call_log() will be called */
	bool tasks; /* mcp_call_to_task() may be called */
	const struct mcp_extension *extensions;
	size_t extensions_n;

	/* How long a modern client may keep a list or the answer to discover, and whether others
	 * may see it. A read resource: mcp_call_cache(). server/utilities/caching. */
	uint64_t ttl_ms;
	bool cache_public;

	/* The name of a principal, by a session's data: what is sealed or kept for one is of no use
	 * to another. Borrowed until it is called again. NULL: all are the same; a task is then
	 * known over HTTP to who knows its id, and listed for nobody. */
	struct str (*principal)(void *owner, void *data);

	/* Keys of requestState: the first seals, all open. n 0: a random one, so that nothing
	 * sealed outlives the server. */
	const unsigned char (*keys)[MCP_KEY_BYTES];
	size_t keys_n;

	/* Limits; 0 takes the default. */
	size_t page; /* entries of one page of a list: 100 */
	unsigned inflight_max; /* requests of one session without an answer: 256 */
	size_t held_max; /* bytes of requests of one session without an answer: 64 MiB */
	size_t reply_max; /* bytes of one message that we send: 64 MiB */
	unsigned subscriptions_max; /* resources that one session or listen watches: 1000 */
	unsigned listens_max; /* subscriptions/listen of one session: 32 */
	unsigned asks_max; /* questions of one call without an answer: 16 */
	unsigned progress_ms; /* at least this long between two progress messages of a call: 100 */
	unsigned ask_ms; /* how long a legacy client may take for an answer: 10 minutes */
	unsigned state_ms; /* how long a requestState opens: 30 minutes */
	/* tasks that are kept: 1000 of the server, a tenth of it a principal; and 256 MiB of
	 * requests and results */
	unsigned tasks_max;
	unsigned task_ttl_ms; /* how long a task is kept after it was made: 1 hour; at most a day */
	unsigned task_poll_ms; /* how often a client is told to ask: 1000 */
	struct json_options json; /* of incoming messages */
	uint64_t (*now_ms)(void); /* monotonic; NULL: clock_ms() */
	uint64_t (*wall_ms)(void); /* since 1970; NULL: the system's */
};

/* Copies the options, not what they point to: that is borrowed until mcp_server_free(). NULL with
 * ERR_BUG where something required is missing or unfit to be sent, ERR_LIMIT without memory. */
struct mcp_server *mcp_server_new(const struct mcp_server_options *o, struct err *e) MUST_USE;
/* Cancels the tasks that run: the server goes down, and their handlers still have a loop to end
 * them with. */
void mcp_server_end_tasks(struct mcp_server *srv);

/* NULL-safe. All sessions are closed and all calls ended; tasks that still run are cancelled, and
 * their handlers end them in on_cancel then. */
void mcp_server_free(struct mcp_server *srv);
AUTO_DEFINE(mcp_server_free, struct mcp_server)

/* Checks a tool and compiles its schemas; every tool that a list function gives was prepared.
 * ERR_BUG with the reason where it is not fit to be sent: its name, a schema or meta that is not
 * JSON of its kind, an x-mcp-header where none may stand, no description. */
int mcp_tool_prepare(struct mcp_tool *t, struct err *e) MUST_USE;
void mcp_tool_release(struct mcp_tool *t); /* also if it was never prepared */

/* Ends what is past its time: questions that legacy clients don't answer, tasks. Nothing here has
 * timers: transports on a loop call it every few seconds. */
void mcp_server_tick(struct mcp_server *srv);

struct mcp_counts {
	unsigned sessions, tasks; /* that are there */
	size_t task_bytes; /* of requests and results that tasks keep */
	uint64_t strays; /* responses to no request of ours, ever: late, double, made up */
};
void mcp_server_counts(const struct mcp_server *srv, struct mcp_counts *ret);

/* A list is not what it was: tells the clients that want to know. basic/patterns/subscriptions. */
void mcp_server_changed(struct mcp_server *srv, unsigned lists);
/* A resource's contents are not what they were: tells who subscribed to it. */
void mcp_server_updated(struct mcp_server *srv, struct str uri);

/* True where uri is an expansion of the template; only {name} and {+name} are understood, a name
 * stands once. *ret_values, if not NULL, gets up to max values as they stand in uri (borrowed; not
 * percent-decoded; {name} never takes a slash), in the order of the template. */
bool mcp_uri_match(const char *uri_template, struct str uri, struct str *ret_values, size_t max);

/* === messages and sessions: for transports ================================================ */

/* basic/transports/streamable-http: what HTTP says beside the text; values without the white
 * space around them. STR_NONE: absent. */
struct mcp_http_head {
	struct str protocol_version, method, name;
	/* The value of Mcp-Param-<name>, case ignored; borrowed as long as the head. */
	struct str (*param)(void *data, struct str name);
	void *data;
};

/* A message that came in, parsed once: a request, notification, response, or batch of them. */
struct mcp_inbound;

/* text is copied; head is borrowed until mcp_session_take() returns, NULL where the transport has
 * none. NULL without memory. */
struct mcp_inbound *mcp_inbound_new(struct mcp_server *srv, struct str text,
				    const struct mcp_http_head *head) MUST_USE;
/* For one that no session took. NULL-safe. */
void mcp_inbound_free(struct mcp_inbound *in);
AUTO_DEFINE(mcp_inbound_free, struct mcp_inbound)

/* The body decides, the head is held to it: the ladder of docs/mcp-protocol.md. */
enum mcp_era mcp_inbound_era(const struct mcp_inbound *in);
/* A legacy initialize: needs a session that has seen nothing. */
bool mcp_inbound_is_initialize(const struct mcp_inbound *in);
/* Something will come on the stream. Over HTTP a message that is not answered is just 202. */
bool mcp_inbound_is_answered(const struct mcp_inbound *in);
/* A modern request that opens a stream for as long as the client likes. */
bool mcp_inbound_is_listen(const struct mcp_inbound *in);
/* The method of a single request or notification; STR_NONE for all else. Borrowed. */
struct str mcp_inbound_method(const struct mcp_inbound *in);

struct mcp_out {
	/* one JSON text; a response may be a batch. May have line breaks between tokens, from what
	 * a tool gave as JSON. Borrowed until `send` returns. */
	struct str text;
	enum mcp_out_kind kind;
	int status; /* HTTP's, where this is all that is sent for its message: 200, 400, 404, … */
};

struct mcp_transport {
	/* stream is what came with the message that m belongs to; NULL where it belongs to none:
	 * the GET stream of a legacy HTTP session. The transport queues or, broken, drops it. */
	void (*send)(void *transport, void *stream, const struct mcp_out *m);

	/* All that belongs to the stream's message was sent. The last use of stream. May close the
	 * session; may be NULL. */
	void (*stream_done)(void *transport, void *stream);

	/* A handler asks that the client be disconnected and come back for the rest (2025-11-25,
	 * SEP-1699). May be NULL. */
	void (*stream_drop)(void *transport, void *stream);

	/* True while so much waits to be sent that progress should be held back; may be NULL. */
	bool (*congested)(void *transport, void *stream);

	/* The last request that was open was answered, by a mcp_call_done() that came from outside
	 * of mcp_session_*(). May close the session; may be NULL. */
	void (*idle)(void *transport);
};

enum mcp_road {
	MCP_ROAD_LINES, /* stdio and other byte streams: both eras in one session, no streams */
	MCP_ROAD_SSE, /* HTTP+SSE of 2024-11-05: the same, as its messages share one stream */
	MCP_ROAD_HTTP, /* a legacy session of Streamable HTTP */
	MCP_ROAD_POST, /* one message of Streamable HTTP that has no session: modern, or broken */
};

/* t is borrowed until mcp_session_close(); data is the owner's (the principal, say) and must stay
 * valid as long as calls and tasks of the session. NULL without memory. An idle session costs less
 * than 1 KiB. */
struct mcp_session *mcp_session_new(struct mcp_server *srv, const struct mcp_transport *t,
				    void *transport, enum mcp_road road, void *data);

/* Serves the message; in is the session's from here on. stream is handed to every send that the
 * message causes and then to stream_done; NULL where the road has no streams. */
void mcp_session_take(struct mcp_session *s, struct mcp_inbound *in, void *stream);

/* The same for a text, without head or stream: MCP_ROAD_LINES, MCP_ROAD_SSE. */
void mcp_session_message(struct mcp_session *s, struct str text);

/* Answers a message that the transport could not take whole: ERR_TOO_LARGE, or ERR_LIMIT where it
 * had no memory for it. sniff has looked through the message for its id; NULL where none has. No
 * stream_done follows. */
void mcp_session_reject(struct mcp_session *s, const struct err *e, const struct rpc_sniff *sniff,
			void *stream);

/* The client closed the stream: cancels what was to be answered on it. For modern requests, where
 * that is how a client cancels; not for legacy sessions, whose clients come back. No stream_done
 * follows for it. */
void mcp_session_cancel_stream(struct mcp_session *s, void *stream);

/* The server ends: answers all open requests with an error, over HTTP with status 503 where nothing
 * was sent before, and cancels what works for them. */
void mcp_session_fail_all(struct mcp_session *s);

/* Ends what the client listens to (subscriptions/listen), each with its result: the server goes
 * down. Other calls go on. */
void mcp_session_drain(struct mcp_session *s);

/* Requests that will still be answered, without those that listen. Cancelled calls are none of
 * them, though they count against inflight_max until they are done. */
unsigned mcp_session_open(const struct mcp_session *s);

/* Ends the session: cancels its calls, sends nothing more, and s is no longer the caller's. The
 * memory goes with the last call. Tasks go on. NULL-safe. */
void mcp_session_close(struct mcp_session *s);
AUTO_DEFINE(mcp_session_close, struct mcp_session)

void *mcp_session_data(const struct mcp_session *s);

/* The revision negotiated by initialize (2025-11-25: basic/lifecycle); NULL before it, and for
 * modern clients. Static. */
const char *mcp_session_version(const struct mcp_session *s);

/* "name/version" as the client said in initialize, else "". At most 127 bytes; borrowed. */
const char *mcp_session_client(const struct mcp_session *s);

/* === calls: for handlers ================================================================== */

/* All that is borrowed from a call is borrowed until it is done. */

enum mcp_call_kind {
	MCP_CALL_TOOL, /* tools/call */
	MCP_CALL_READ, /* resources/read */
	MCP_CALL_GET, /* prompts/get */
	MCP_CALL_COMPLETE, /* completion/complete */
	MCP_CALL_INNER, /* the library's own: never seen by a handler */
};

enum mcp_call_kind mcp_call_kind(const struct mcp_call *c);
const struct mcp_tool *mcp_call_tool(const struct mcp_call *c); /* NULL unless MCP_CALL_TOOL */
const struct mcp_prompt *mcp_call_prompt(const struct mcp_call *c); /* NULL unless MCP_CALL_GET */
struct str mcp_call_uri(const struct mcp_call *c); /* STR_NONE unless MCP_CALL_READ */
/* Whose `run` it is, if it is one's. */
const struct mcp_resource *mcp_call_resource(const struct mcp_call *c);
const struct mcp_template *mcp_call_template(const struct mcp_call *c);
/* Value i of the template that took the URI, in its order; STR_NONE where there is none. */
struct str mcp_call_uri_value(const struct mcp_call *c, size_t i);

struct mcp_completion {
	bool is_prompt; /* else a resource template */
	struct str ref; /* the prompt's name, the template's URI */
	struct str argument, value; /* what is being typed */
	const struct json_val *context; /* other arguments by name: object of strings, or NULL */
};
/* Zeroed unless MCP_CALL_COMPLETE. */
struct mcp_completion mcp_call_completion(const struct mcp_call *c);

void *mcp_call_owner(const struct mcp_call *c); /* of the server */
struct mcp_session *mcp_call_session(const struct mcp_call *c); /* NULL once closed, or a task */
void *mcp_call_principal(const struct mcp_call *c); /* the data of its session, also after close */
const char *mcp_call_version(const struct mcp_call *c); /* the revision of the request; static */
/* "name/version" as the client says; "" where it does not. */
const char *mcp_call_client(const struct mcp_call *c);

/* The arguments of a tool or prompt: an object, or NULL for none. */
const struct json_val *mcp_call_args(const struct mcp_call *c);
/* The _meta of the request (traceparent, say); NULL for none. */
const struct json_val *mcp_call_meta(const struct mcp_call *c);

/* For what lives as long as the call; at most 32 MiB. */
struct arena *mcp_call_arena(const struct mcp_call *c);

/* field_decode() of the arguments, with the call's arena. */
int mcp_call_decode(struct mcp_call *c, const struct field_table *t, void *ret,
		    struct err *e) MUST_USE;

/* "mcp-3-17" (session, request): names the call in log records; see log_request(). It is set
 * while the handler runs. */
const char *mcp_call_label(const struct mcp_call *c);

/* The handler's own, NULL at first; kept when the handler runs again. */
void mcp_call_set_data(struct mcp_call *c, void *data);
void *mcp_call_data(const struct mcp_call *c);

/* basic/patterns/cancellation. on_cancel: the client cancelled, or the session ended. Called at
 * most once and not after the call is done; the handler still ends the call, there or later, and
 * the answer goes nowhere. data is the handler's. Called at once if the call is cancelled
 * already. */
void mcp_call_on_cancel(struct mcp_call *c, void (*on_cancel)(struct mcp_call *c, void *data),
			void *data);
bool mcp_call_cancelled(const struct mcp_call *c);

/* True where the client asked for progress. */
bool mcp_call_wants_progress(const struct mcp_call *c);

/* basic/patterns/progress. Sends progress, if the client asked for it. What does not grow is
 * dropped; what comes faster than progress_ms is held and replaced by what follows; the last is
 * always sent, before the answer. total 0: not known. message may be NULL; it is cut at 1 KiB. */
void mcp_call_progress(struct mcp_call *c, double progress, double total, const char *message);

/* server/utilities/logging. A log message for the client, on the call's stream, if it wants that
 * level: legacy clients get MCP_INFO and above until they set another, modern ones nothing unless
 * the request names a level. logger may be NULL; data is JSON of any type. */
void mcp_call_log(struct mcp_call *c, enum mcp_level level, const char *logger, struct str data);

/* Asks the transport to disconnect the client for now (2025-11-25 over HTTP); what is sent later
 * waits for it. Without effect elsewhere. */
void mcp_call_disconnect(struct mcp_call *c);

/* --- results --- */

enum mcp_content_type {
	MCP_TEXT, /* text */
	MCP_IMAGE, /* data, mime */
	MCP_AUDIO, /* data, mime; a line of text where the revision has no audio */
	MCP_RESOURCE, /* uri, mime, and text, or data where text is STR_NONE */
	MCP_LINK, /* link; a line of text where the revision has no links */
};

/* Strings may hold any bytes; what is not UTF-8 becomes U+FFFD. data is raw, sent as base64. */
struct mcp_content {
	enum mcp_content_type type;
	struct str text, data;
	const char *mime, *uri;
	const struct mcp_resource *link;
	struct mcp_annotations annotations; /* of MCP_LINK: the link's own */
	struct str meta; /* JSON object; may be STR_NONE */
};

struct mcp_result {
	const struct mcp_content *content;
	size_t content_n;
	/* Structured content: JSON (legacy clients get it only where it is an object); or from a
	 * table. With structured content and no content, its text is sent too. */
	struct str structured;
	const struct field_table *table;
	const void *from;
	bool is_error;
	struct str meta; /* JSON object for _meta; may be STR_NONE */
};

/* Ends a tool's call; c is gone. All of r is borrowed until it returns. Structured content that the
 * output schema refuses becomes a failure with ERR_BUG. */
void mcp_call_done(struct mcp_call *c, const struct mcp_result *r);

/* The same with one text. */
void mcp_call_text(struct mcp_call *c, struct str text);

/* Ends any call with a failure. A tool's: isError, and the text {"code","cause","remediation",
 * "retryable"} from base/err_table.h. Another's: a protocol error with the table's code. */
void mcp_call_fail(struct mcp_call *c, const struct err *e);

/* That text; owned, NUL-terminated. */
char *mcp_error_text(const struct err *e) MUST_USE;

/* Ends any call with a protocol error in place of a result. data is JSON, STR_NONE for none; what
 * has more than 511 bytes is left out. */
void mcp_call_refuse(struct mcp_call *c, int code, const char *message, struct str data);

struct mcp_contents {
	struct str uri; /* STR_NONE: the one that was asked for */
	const char *mime;
	struct str text, data; /* data where text is STR_NONE */
	struct str meta; /* JSON object; may be STR_NONE */
};

/* How long a modern client may keep what is read; before mcp_call_contents(). Else: not at all, and
 * for nobody else. */
void mcp_call_cache(struct mcp_call *c, uint64_t ttl_ms, bool is_public);

/* Ends a resources/read. */
void mcp_call_contents(struct mcp_call *c, const struct mcp_contents *contents, size_t n);
/* The same where there is no such resource; the code is the revision's. */
void mcp_call_not_found(struct mcp_call *c);

struct mcp_prompt_message {
	bool is_assistant; /* else the user */
	struct mcp_content content;
};

/* Ends a prompts/get. description may be NULL. */
void mcp_call_messages(struct mcp_call *c, const char *description,
		       const struct mcp_prompt_message *messages, size_t n);

/* Ends a completion/complete. At most 100 values are sent. total 0: not known. */
void mcp_call_values(struct mcp_call *c, const struct str *values, size_t n, uint64_t total,
		     bool has_more);

/* --- asking the client: one handler for both eras ---
 * basic/patterns/mrtr, client/elicitation, client/sampling, client/roots */

struct mcp_ask {
	const char *key; /* names the answer; 1 to 64 bytes; a call asks it once */
	enum mcp_ask_kind kind;
	struct str params; /* JSON object as the revision wants it; STR_NONE for roots */
};

/*
 * Asks, and ends this run of the handler: it returns then (c may be gone), and is run again from
 * its start for the same call when all answers are there. Keys that have an answer are not asked
 * again. Only calls of tools, reads and prompts can ask. asks and state are copied; n 0 comes back
 * at once.
 *
 * Modern clients get input_required with a sealed requestState and the handler runs in the call of
 * their retry, legacy clients get requests of ours on the call's stream, tasks wait for
 * tasks/update. So between the runs only mcp_call_state() is certain to be kept: mcp_call_data() is
 * not. A client may send a requestState more than once while it is valid: what must happen once is
 * the handler's affair.
 *
 * -1 where it can't be asked: ERR_CLIENT_CANT where the client did not declare the capability (what
 * the handler then ends the call with is its own affair: mcp_call_cant_ask() is the usual way),
 * ERR_CLIENT_FAILED where mcp_call_ask_error() has it that there is no answer to one of the keys,
 * ERR_LIMIT over asks_max or without memory, ERR_TOO_LARGE over 4 MiB of questions and answers,
 * ERR_BUG for what is no question, or nothing new, ERR_CANCELLED.
 */
int mcp_call_ask(struct mcp_call *c, const struct mcp_ask *asks, size_t n, struct str state,
		 struct err *e) MUST_USE;

/* The client's result for that key, an object; NULL where there is none. It is as the question
 * wants it: the content of a form as its requestedSchema does. Legacy: an error, an answer to
 * something else or none in time is no answer; mcp_call_ask_error() then says what it was. */
const struct json_val *mcp_call_answer(const struct mcp_call *c, const char *key);
struct str mcp_call_ask_error(const struct mcp_call *c, const char *key);
/* What the last mcp_call_ask() of this call was given; STR_NONE in the first run. */
struct str mcp_call_state(const struct mcp_call *c);

bool mcp_call_can_ask(const struct mcp_call *c, enum mcp_ask_kind kind);
/* Ends the call: -32021 with the capability for modern clients, a failure of the tool for
 * others. */
void mcp_call_cant_ask(struct mcp_call *c, enum mcp_ask_kind kind);

/* --- tasks: calls of tools that outlive their request ---
 * the extension io.modelcontextprotocol/tasks; 2025-11-25: basic/utilities/tasks */

struct mcp_task_options {
	unsigned ttl_ms, poll_ms; /* 0: the server's */
	const char *message; /* of its status; may be NULL */
};

/* True where the client can have the call as a task: it has the extension
 * io.modelcontextprotocol/tasks, or asked for a task (2025-11-25). */
bool mcp_call_can_task(const struct mcp_call *c);
/* From here on the call is a task: its request is answered at once, cancelling is by tasks/cancel,
 * and the functions that end calls end the task. -1, and the call stays a call: ERR_CLIENT_CANT
 * where the client can't, ERR_LIMIT where there are too many. A call that 2025-11-25's client
 * wanted as a task is one before its handler starts. */
int mcp_call_to_task(struct mcp_call *c, const struct mcp_task_options *o, struct err *e) MUST_USE;
bool mcp_call_is_task(const struct mcp_call *c);
/* What a client sees of a running task; no effect on other calls. */
void mcp_call_task_status(struct mcp_call *c, const char *message);
