#pragma once
/*
 * The MCP server as a core without I/O: a transport passes whole messages in and gets whole
 * messages out through a callback. It serves revisions 2024-11-05, 2025-03-26, 2025-06-18 and
 * 2025-11-25 (legacy: initialize and a session) and 2026-07-28 (modern: each request is
 * self-contained). Messages contain only what their revision defines (mcp/message/profile.h).
 *
 * A server offers tools, resources and prompts under a name, with a handler that runs them. A
 * session is one client's connection, made by a transport; for a modern request over HTTP it lasts
 * as long as the request. A call is one request in progress that a handler answers, now or at any
 * later time, so a slow call delays no other message.
 *
 * All functions must be called on one thread. Every callback comes from inside a function of this
 * header. Handlers may call mcp_call_*, mcp_session_* and mcp_server_changed() at any point, but no
 * session may be closed from inside `send`. Strings described as JSON must be valid and on one
 * line.
 *
 * Pages of the specification are cited by their name in 2026-07-28 (server/tools). A page that only
 * an older revision has is cited with that revision (2025-11-25: basic/lifecycle).
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

/* All of this must live at least as long as the server, or as the list that it is in. Members that
 * are NULL or 0, or that a client's revision does not define, are left out on the wire. */

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
	/* of any type; legacy clients see only those of type object. A successful result must then
	 * have structured content that matches it. */
	const char *output_schema;
	const char *meta; /* JSON object for the tool's _meta */
	enum mcp_hint read_only, destructive, idempotent, open_world;
	enum mcp_tasking task;
	struct mcp_icons icons;
	void (*run)(struct mcp_call *c); /* instead of the handler's `call` */
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
	void (*run)(struct mcp_call *c); /* instead of the handler's `read` */
	const void *row;
};

struct mcp_template {
	const char *uri_template, *name; /* required; RFC 6570 */
	const char *title, *description, *mime, *meta;
	struct mcp_annotations annotations;
	struct mcp_icons icons;
	/* instead of `read`, for URIs that match (mcp_uri_match()) */
	void (*run)(struct mcp_call *c);
	const void *row;
};

struct mcp_argument {
	const char *name; /* required */
	const char *title, *description;
	bool required; /* a request without it is refused before the handler runs */
};

/* server/prompts */
struct mcp_prompt {
	const char *name; /* required */
	const char *title, *description, *meta;
	const struct mcp_argument *args;
	size_t args_n;
	struct mcp_icons icons;
	void (*run)(struct mcp_call *c); /* instead of the handler's `get` */
	const void *row;
};

/* Fixed lists; prepared by mcp_server_new(), released by mcp_server_free(). */
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

/* Some of a list of at most MCP_CHOICE_MAX tools, by their places in it. */
enum { MCP_CHOICE_MAX = 256 };
struct mcp_choice {
	uint64_t words[MCP_CHOICE_MAX / 64];
};

static inline void mcp_choice_add(struct mcp_choice *c, size_t i)
{
	c->words[i / 64] |= (uint64_t)1 << i % 64;
}

static inline bool mcp_choice_has(const struct mcp_choice *c, size_t i)
{
	return c->words[i / 64] >> i % 64 & 1;
}

static inline void mcp_choice_join(struct mcp_choice *c, const struct mcp_choice *more)
{
	for (size_t i = 0; i < MCP_CHOICE_MAX / 64; i++)
		c->words[i] |= more->words[i];
}

static inline struct mcp_choice mcp_choice_both(const struct mcp_choice *a,
						const struct mcp_choice *b)
{
	struct mcp_choice both;

	for (size_t i = 0; i < MCP_CHOICE_MAX / 64; i++)
		both.words[i] = a->words[i] & b->words[i];
	return both;
}

static inline bool mcp_choice_empty(const struct mcp_choice *c)
{
	uint64_t any = 0;

	for (size_t i = 0; i < MCP_CHOICE_MAX / 64; i++)
		any |= c->words[i];
	return any == 0;
}

/* The client's own word for it; STR_NONE: it does not say. */
struct mcp_wish {
	struct str tools, profile, modules, texts;
};

/*
 * Lists that depend on the session, and the functions that run calls. A list function returns what
 * this session may see and use, in the order of the list; anything else does not exist for the
 * session. The array is borrowed until the function's next call, its elements as long as calls of
 * them run. NULL: the list of the offer; if that is empty too, the server lacks the capability.
 *
 * A function that starts a call must end it exactly once, now or later, even when it is cancelled:
 * by mcp_call_done() or another function described as "ends the call".
 */
enum { MCP_HAS_PROMPTS = 1 << 0, MCP_HAS_SUBSCRIBE = 1 << 1, MCP_HAS_LOGGING = 1 << 2 };

struct mcp_handler {
	const struct mcp_tool *const *(*tools)(void *owner, struct mcp_session *s, size_t *ret_n);
	/* Those of tools() that tools/list has; the others can be called all the same. NULL: all.
	 */
	const struct mcp_tool *const *(*shown)(void *owner, struct mcp_session *s, size_t *ret_n);
	const struct mcp_resource *const *(*resources)(void *owner, struct mcp_session *s,
						       size_t *ret_n);
	const struct mcp_template *const *(*templates)(void *owner, struct mcp_session *s,
						       size_t *ret_n);
	const struct mcp_prompt *const *(*prompts)(void *owner, struct mcp_session *s,
						   size_t *ret_n);

	/* Before its first message, a client wants only the tools that it names, or what a profile
	 * has, or the like, whatever that means to the handler: what it keeps of that, for tools(),
	 * is mcp_session_narrowed(), and mcp_session_wish() has the others. -1 refuses the session.
	 * NULL: every such client is refused. */
	int (*narrow)(void *owner, const struct mcp_session *s, const struct mcp_wish *w,
		      struct mcp_choice *ret, struct err *e);
	/* Instructions for this session in place of those of the options; borrowed until the
	 * function's next call. NULL: those. */
	const char *(*instructions)(void *owner, struct mcp_session *s);
	/* Which of the lists that may change do for this session: MCP_TOOLS… of the options'
	 * `changes`. NULL: all of those. */
	unsigned (*changes)(void *owner, const struct mcp_session *s);
	/* What of MCP_HAS_… this session has, where the server has it. NULL: all. */
	unsigned (*has)(void *owner, const struct mcp_session *s);
	/* Whether the session may hear that this resource has changed. NULL: of all. */
	bool (*hears)(void *owner, struct mcp_session *s, struct str uri);
	/* Which resources clients watch has changed: mcp_server_each_watched(). May be NULL. */
	void (*watched)(void *owner);
	/* The session has ended, and all its calls were cancelled; they may still have to end. May
	 * be NULL. */
	void (*closed)(void *owner, struct mcp_session *s);
	/* A call of the tool begins, or is gone. Between the two the tool has to be there, also
	 * while the client is asked something and no function of the handler runs. NULL: all tools
	 * are there as long as the server. */
	void (*hold)(void *owner, const struct mcp_tool *t, bool on);
	/* Calls a listed tool: mcp_call_tool(). NULL: all tools have a `run`. */
	void (*call)(void *owner, struct mcp_call *c);
	/* Reads any URI, listed or not: mcp_call_uri(). Ends with mcp_call_contents() or
	 * mcp_call_not_found(). NULL: only resources with a `run` can be read. */
	void (*read)(void *owner, struct mcp_call *c);
	/* Gets a listed prompt: mcp_call_prompt(). Ends with mcp_call_messages(). NULL: all prompts
	 * have a `run`. */
	void (*get)(void *owner, struct mcp_call *c);
	/* Completes mcp_call_completion(). Ends with mcp_call_values(). NULL: no such capability.
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
	const struct mcp_handler *handler; /* may be NULL if everything offered has a `run` */
	void *owner;

	/* Capabilities besides the lists. */
	unsigned changes; /* MCP_TOOLS…: these lists may change */
	bool subscribe; /* mcp_server_updated() will be called for resources */
	bool logging; /* mcp_call_log() will be called */
	bool tasks; /* mcp_call_to_task() may be called */
	const struct mcp_extension *extensions;
	size_t extensions_n;

	/* How long a modern client may cache lists and the result of discover, and whether the
	 * cache may be shared. For resources: mcp_call_cache(). server/utilities/caching. */
	uint64_t ttl_ms;
	bool cache_public;

	/* The name of a session's principal. Sealed states and tasks of one principal are unusable
	 * to others. Borrowed until the next call. NULL: there is one principal; over HTTP, anyone
	 * who knows the id of a task may then use it, and tasks are not listed. */
	struct str (*principal)(void *owner, void *data);

	/* Redacts in place what a fault says, which may quote its request. False: the text was cut,
	 * since it has become longer than there is room. NULL: all leaves as it is. */
	bool (*redact)(void *owner, char *text, size_t size);

	/* Keys of requestState: the first seals, all open. keys_n 0: a random key, so that no state
	 * is valid after the server's end. */
	const unsigned char (*keys)[MCP_KEY_BYTES];
	size_t keys_n;

	/* Limits; 0 takes the default. */
	size_t page; /* entries per page of a list: 100 */
	unsigned inflight_max; /* unanswered requests of a session: 256 */
	size_t held_max; /* bytes of unanswered requests of a session: 64 MiB */
	size_t reply_max; /* bytes of an outgoing message: 64 MiB */
	unsigned subscriptions_max; /* resources watched by a session or a listen: 1000 */
	unsigned listens_max; /* subscriptions/listen of one session: 32 */
	unsigned asks_max; /* unanswered questions of a call: 16 */
	unsigned progress_ms; /* least time between progress messages of a call: 100 */
	unsigned ask_ms; /* time for a legacy client to answer: 10 minutes */
	unsigned state_ms; /* validity of a requestState: 30 minutes */
	/* tasks kept by the server: 1000, a tenth of it for each principal; with at most 256 MiB of
	 * requests and results */
	unsigned tasks_max;
	/* a task is kept this long after its creation: 1 hour; at most a day */
	unsigned task_ttl_ms;
	unsigned task_poll_ms; /* suggested interval of polls: 1000 */
	struct json_options json; /* of incoming messages */
	uint64_t (*now_ms)(void); /* monotonic; NULL: clock_ms() */
	uint64_t (*wall_ms)(void); /* since 1970; NULL: the system's */
};

/* Copies the options; what they point to is borrowed until mcp_server_free(). NULL with ERR_BUG:
 * something required is missing or can't be sent; ERR_LIMIT: no memory. */
struct mcp_server *mcp_server_new(const struct mcp_server_options *o, struct err *e) MUST_USE;
/* Cancels running tasks before a shutdown, while their handlers still have a loop to end them. */
void mcp_server_end_tasks(struct mcp_server *srv);

/* NULL-safe. All sessions must be closed and all calls ended. Tasks that still run are cancelled;
 * their handlers must end them inside on_cancel. */
void mcp_server_free(struct mcp_server *srv);
AUTO_DEFINE(mcp_server_free, struct mcp_server)

/* Checks a tool and compiles its schemas; required for every tool that a list function returns.
 * ERR_BUG with the reason if it can't be sent: a bad name, a schema or meta that is not JSON of its
 * kind, a misplaced x-mcp-header, no description. */
int mcp_tool_prepare(struct mcp_tool *t, struct err *e) MUST_USE;
void mcp_tool_release(struct mcp_tool *t); /* also if it was never prepared */

/* Ends expired questions to legacy clients, and tasks. The core has no timers: transports on a loop
 * call this every few seconds. */
void mcp_server_tick(struct mcp_server *srv);

struct mcp_counts {
	unsigned sessions, tasks; /* now */
	size_t task_bytes; /* requests and results kept by tasks */
	uint64_t strays; /* responses that match no request: late, repeated, invented */
};
void mcp_server_counts(const struct mcp_server *srv, struct mcp_counts *ret);

/* Notifies clients that lists (MCP_TOOLS…) have changed. basic/patterns/subscriptions. */
void mcp_server_changed(struct mcp_server *srv, unsigned lists);
/* Notifies subscribers that a resource has changed. */
void mcp_server_updated(struct mcp_server *srv, struct str uri);
/* Calls each for the URIs that sessions have subscribed to, also where they may not hear of them;
 * those of a session come together, and one may come often. No session may be opened or closed
 * meanwhile. */
void mcp_server_each_watched(struct mcp_server *srv,
			     void (*each)(void *data, struct mcp_session *s, struct str uri),
			     void *data);

/* True if uri is an expansion of the template. Only {name} and {+name} are supported, and each name
 * once; {name} matches no slash. *ret_values, if not NULL, gets up to max values in the template's
 * order, borrowed from uri and not percent-decoded. */
bool mcp_uri_match(const char *uri_template, struct str uri, struct str *ret_values, size_t max);

/* === messages and sessions: for transports ================================================ */

/* basic/transports/streamable-http: HTTP headers of a message, without surrounding white space.
 * STR_NONE: absent. */
struct mcp_http_head {
	struct str protocol_version, method, name;
	/* The value of Mcp-Param-<name>, case ignored; borrowed as long as the head. */
	struct str (*param)(void *data, struct str name);
	void *data;
};

/* An incoming message, parsed once: a request, notification, response, or batch of them. */
struct mcp_inbound;

/* text is copied; head is borrowed until mcp_session_take() returns, and NULL for a transport
 * without headers. Returns NULL without memory. */
struct mcp_inbound *mcp_inbound_new(struct mcp_server *srv, struct str text,
				    const struct mcp_http_head *head) MUST_USE;
/* Frees a message that no session took. NULL-safe. */
void mcp_inbound_free(struct mcp_inbound *in);
AUTO_DEFINE(mcp_inbound_free, struct mcp_inbound)

/* The body decides, and the head must agree with it: docs/mcp-protocol.md has the rules. */
enum mcp_era mcp_inbound_era(const struct mcp_inbound *in);
/* A legacy initialize, which needs a new session. */
bool mcp_inbound_is_initialize(const struct mcp_inbound *in);
/* True if anything will be sent on its stream. Over HTTP other messages just get 202. */
bool mcp_inbound_is_answered(const struct mcp_inbound *in);
/* subscriptions/listen: a modern request whose stream stays open until the client closes it. */
bool mcp_inbound_is_listen(const struct mcp_inbound *in);
/* The method of a single request or notification; else STR_NONE. Borrowed. */
struct str mcp_inbound_method(const struct mcp_inbound *in);

struct mcp_out {
	/* one JSON text; a response may be a batch. JSON from a tool may bring line breaks between
	 * tokens. Borrowed until `send` returns. */
	struct str text;
	enum mcp_out_kind kind;
	int status; /* of HTTP, if nothing else is sent for the message: 200, 400, 404, … */
};

struct mcp_transport {
	/* stream: that of the message that m belongs to; NULL if it belongs to none, for the GET
	 * stream of a legacy HTTP session. The transport queues m, or drops it if it is broken. */
	void (*send)(void *transport, void *stream, const struct mcp_out *m);

	/* Everything for the stream's message was sent. The last use of stream. May close the
	 * session; may be NULL. */
	void (*stream_done)(void *transport, void *stream);

	/* A handler wants the client to be disconnected and to reconnect for the rest (2025-11-25,
	 * SEP-1699). May be NULL. */
	void (*stream_drop)(void *transport, void *stream);

	/* True while the queue is so long that progress should be held back; may be NULL. */
	bool (*congested)(void *transport, void *stream);

	/* The last open request was answered by a mcp_call_done() from outside mcp_session_*(). May
	 * close the session; may be NULL. */
	void (*idle)(void *transport);
};

enum mcp_road {
	MCP_ROAD_LINES, /* stdio and other byte streams: both eras in one session, no streams */
	MCP_ROAD_SSE, /* HTTP+SSE of 2024-11-05: the same, as its messages share one stream */
	MCP_ROAD_HTTP, /* a legacy session of Streamable HTTP */
	MCP_ROAD_POST, /* one message of Streamable HTTP that has no session: modern, or broken */
};

/* t is borrowed until mcp_session_close(). data belongs to the owner (for example the principal)
 * and must stay valid as long as the session's calls and tasks. NULL without memory. An idle
 * session takes less than 1 KiB. */
struct mcp_session *mcp_session_new(struct mcp_server *srv, const struct mcp_transport *t,
				    void *transport, enum mcp_road road, void *data);
enum mcp_road mcp_session_road(const struct mcp_session *s);
/* From 1; no other session of the server gets it. */
unsigned mcp_session_number(const struct mcp_session *s);

/* Serves a message; takes in. stream is passed to every send for the message and then to
 * stream_done; NULL for roads without streams. */
void mcp_session_take(struct mcp_session *s, struct mcp_inbound *in, void *stream);

/* The same for a text without head and stream: MCP_ROAD_LINES, MCP_ROAD_SSE. */
void mcp_session_message(struct mcp_session *s, struct str text);

/* Answers a message that the transport could not receive whole: ERR_TOO_LARGE, or ERR_LIMIT without
 * memory. sniff, which may be NULL, has looked for its id. No stream_done follows. */
void mcp_session_reject(struct mcp_session *s, const struct err *e, const struct rpc_sniff *sniff,
			void *stream);

/* The client closed the stream: cancels its requests. Only for modern requests, which are cancelled
 * that way; clients of legacy sessions may come back. No stream_done follows. */
void mcp_session_cancel_stream(struct mcp_session *s, void *stream);

/* For a shutdown: answers all open requests with an error, over HTTP with status 503 if nothing was
 * sent before, and cancels their calls. */
void mcp_session_fail_all(struct mcp_session *s);

/* For a shutdown: ends each subscriptions/listen with its result. Other calls go on. */
void mcp_session_drain(struct mcp_session *s);

/* Number of requests that will still be answered, without subscriptions/listen. Cancelled calls do
 * not count, although they count against inflight_max until they are done. */
unsigned mcp_session_open(const struct mcp_session *s);

/* Ends the session: cancels its calls and sends nothing more. s is no longer valid for the caller;
 * its memory is freed with the last call. Tasks go on. NULL-safe. */
void mcp_session_close(struct mcp_session *s);
AUTO_DEFINE(mcp_session_close, struct mcp_session)

void *mcp_session_data(const struct mcp_session *s);

/* Narrows what a new session has (mcp_handler.narrow). */
int mcp_session_narrow(struct mcp_session *s, const struct mcp_wish *w, struct err *e) MUST_USE;
/* What narrow() gave; empty: the client did not narrow them. Borrowed from s. */
const struct mcp_choice *mcp_session_narrowed(const struct mcp_session *s);
/* What its client wants besides tools. Borrowed from s. */
const struct mcp_wish *mcp_session_wish(const struct mcp_session *s);

/* The revision negotiated by initialize (2025-11-25: basic/lifecycle); NULL before it, and for
 * modern clients. Static. */
const char *mcp_session_version(const struct mcp_session *s);

/* "name/version" from initialize, else "". At most 127 bytes; borrowed. */
const char *mcp_session_client(const struct mcp_session *s);

/* === calls: for handlers ================================================================== */

/* Everything borrowed from a call is valid until the call is done. */

enum mcp_call_kind {
	MCP_CALL_TOOL, /* tools/call */
	MCP_CALL_READ, /* resources/read */
	MCP_CALL_GET, /* prompts/get */
	MCP_CALL_COMPLETE, /* completion/complete */
	MCP_CALL_INNER, /* internal to the library: handlers never see it */
};

enum mcp_call_kind mcp_call_kind(const struct mcp_call *c);
const struct mcp_tool *mcp_call_tool(const struct mcp_call *c); /* NULL unless MCP_CALL_TOOL */
const struct mcp_prompt *mcp_call_prompt(const struct mcp_call *c); /* NULL unless MCP_CALL_GET */
struct str mcp_call_uri(const struct mcp_call *c); /* STR_NONE unless MCP_CALL_READ */
/* The resource or template whose `run` was called; else NULL. */
const struct mcp_resource *mcp_call_resource(const struct mcp_call *c);
const struct mcp_template *mcp_call_template(const struct mcp_call *c);
/* Value i of the template that matched the URI, in its order; else STR_NONE. */
struct str mcp_call_uri_value(const struct mcp_call *c, size_t i);

struct mcp_completion {
	bool is_prompt; /* else a resource template */
	struct str ref; /* the prompt's name, the template's URI */
	struct str argument, value; /* what is being typed */
	const struct json_val *context; /* other arguments by name: object of strings, or NULL */
};
/* Zeroed unless MCP_CALL_COMPLETE. */
struct mcp_completion mcp_call_completion(const struct mcp_call *c);

struct mcp_server *mcp_call_server(const struct mcp_call *c);
void *mcp_call_owner(const struct mcp_call *c); /* of the server */
struct mcp_session *mcp_call_session(const struct mcp_call *c); /* NULL once closed, or a task */
void *mcp_call_principal(const struct mcp_call *c); /* the data of its session, even after close */
struct str mcp_call_profile(
	const struct mcp_call *c); /* that of mcp_session_wish(), even after close */
const char *mcp_call_version(const struct mcp_call *c); /* the revision of the request; static */
/* "name/version" of the client; "" if unknown. */
const char *mcp_call_client(const struct mcp_call *c);

/* The arguments of a tool or prompt: an object, or NULL for none. */
const struct json_val *mcp_call_args(const struct mcp_call *c);
/* The _meta of the request (for example traceparent); NULL for none. */
const struct json_val *mcp_call_meta(const struct mcp_call *c);

/* Memory that lives as long as the call; at most 32 MiB. */
struct arena *mcp_call_arena(const struct mcp_call *c);

/* Decodes the arguments by field_decode() into the call's arena. */
int mcp_call_decode(struct mcp_call *c, const struct field_table *t, void *ret,
		    struct err *e) MUST_USE;

/* "mcp-3-17" (session, request): names the call in log records; see log_request(). It is set
 * while the handler runs. */
const char *mcp_call_label(const struct mcp_call *c);

/* A pointer of the handler, NULL at first; kept when the handler runs again. */
void mcp_call_set_data(struct mcp_call *c, void *data);
void *mcp_call_data(const struct mcp_call *c);

/* basic/patterns/cancellation. on_cancel: the client cancelled, or the session ended. Called at
 * most once and not after the call is done; at once if the call is already cancelled. The handler
 * must still end the call, there or later; its answer is dropped. data is passed to on_cancel. */
void mcp_call_on_cancel(struct mcp_call *c, void (*on_cancel)(struct mcp_call *c, void *data),
			void *data);
bool mcp_call_cancelled(const struct mcp_call *c);

/* True if the client asked for progress. */
bool mcp_call_wants_progress(const struct mcp_call *c);

/* basic/patterns/progress. Sends progress if the client asked for it. Values that do not increase
 * are dropped. Values within progress_ms are delayed and replaced by later ones; the last is always
 * sent, before the answer. total 0: not known. message may be NULL; it is cut at 1 KiB. */
void mcp_call_progress(struct mcp_call *c, double progress, double total, const char *message);

/* server/utilities/logging. Sends a log message on the call's stream if the client wants its level:
 * for legacy clients MCP_INFO and above until they set another level, for modern ones only what the
 * request names. logger may be NULL; data is JSON of any type. */
void mcp_call_log(struct mcp_call *c, enum mcp_level level, const char *logger, struct str data);

/* The least level that the client wants of such messages; -1: it wants none. */
int mcp_call_log_level(const struct mcp_call *c);

/* Asks the transport to disconnect the client for now (2025-11-25 over HTTP). Later messages wait
 * until it reconnects. No effect elsewhere. */
void mcp_call_disconnect(struct mcp_call *c);

/* --- results --- */

enum mcp_content_type {
	MCP_TEXT, /* text */
	MCP_IMAGE, /* data, mime */
	MCP_AUDIO, /* data, mime; a line of text where the revision has no audio */
	MCP_RESOURCE, /* uri, mime, and text, or data where text is STR_NONE */
	MCP_LINK, /* link; a line of text where the revision has no links */
};

/* Strings may hold any bytes; invalid UTF-8 becomes U+FFFD. data is raw and sent as base64. */
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
	/* in place of it: a JSON array on one line, as another server has given it */
	struct str content_json;
	/* Structured content, as JSON or from a table. Legacy clients get it only if it is an
	 * object. Without other content its text is sent as content too. */
	struct str structured;
	const struct field_table *table;
	const void *from;
	bool is_error;
	struct str meta; /* JSON object for _meta; may be STR_NONE */
};

/* Ends the call of a tool and frees c. r is borrowed until it returns. Structured content that does
 * not match the output schema becomes a failure with ERR_BUG. */
void mcp_call_done(struct mcp_call *c, const struct mcp_result *r);

/* The same with one text. */
void mcp_call_text(struct mcp_call *c, struct str text);

/* Ends any call with a failure. For a tool: isError, and the text {"code","cause","remediation",
 * "failure","retryable","pointer"} from base/err_table.h. For others: a protocol error with the
 * table's code, and the same members as its data. */
void mcp_call_fail(struct mcp_call *c, const struct err *e);

/* Returns that text; owned, NUL-terminated. */
char *mcp_error_text(const struct err *e) MUST_USE;

/* Ends any call with a protocol error. data is JSON or STR_NONE; more than 511 bytes are left
 * out. Without data, the codes of JSON-RPC itself get that of mcp_call_fail(). */
void mcp_call_refuse(struct mcp_call *c, int code, const char *message, struct str data);

struct mcp_contents {
	struct str uri; /* STR_NONE: the requested one */
	const char *mime;
	struct str text, data; /* data is used if text is STR_NONE */
	struct str meta; /* JSON object; may be STR_NONE */
};

/* Sets how long a modern client may cache the contents, and whether the cache may be shared. Call
 * it before mcp_call_contents(); the default is no caching. */
void mcp_call_cache(struct mcp_call *c, uint64_t ttl_ms, bool is_public);

/* Ends a resources/read. */
void mcp_call_contents(struct mcp_call *c, const struct mcp_contents *contents, size_t n);
/* Ends a resources/read: there is no such resource. The error code depends on the revision. */
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

/* Ends a resources/read, a prompts/get or a completion/complete with what another server has
 * answered: the members of a JSON object, as all revisions have them, without _meta. */
void mcp_call_members(struct mcp_call *c, struct str object);

/* --- asking the client: one handler for both eras ---
 * basic/patterns/mrtr, client/elicitation, client/sampling, client/roots */

struct mcp_ask {
	const char *key; /* identifies the answer; 1 to 64 bytes, once per call */
	enum mcp_ask_kind kind;
	struct str params; /* JSON object as the revision requires; STR_NONE for roots */
};

/*
 * Asks questions and ends this run of the handler, which must then return (c may be gone). The
 * handler runs again from its start for the same call when all answers are there. Keys with an
 * answer are not asked again. Only calls of tools, reads and prompts can ask. asks and state are
 * copied. n 0 asks nothing: the handler runs again without waiting for an answer.
 *
 * Modern clients get input_required with a sealed requestState, and the handler runs again in the
 * call of their retry. Legacy clients get requests on the call's stream. Tasks wait for
 * tasks/update. Between the runs only mcp_call_state() is sure to be kept; mcp_call_data() is not.
 * A client may send a valid requestState more than once: the handler must ensure that an effect
 * happens only once.
 *
 * A call that stays (mcp_call_stays()) may be ended while its question is open, which withdraws the
 * question. If it is cancelled meanwhile it ends by itself, unless it has an on_cancel(): then that
 * is called, and the handler has to end it.
 *
 * -1 with ERR_CLIENT_CANT: the client did not declare the capability (mcp_call_cant_ask() is the
 * usual way to end the call); ERR_CLIENT_FAILED: a key got no answer, mcp_call_ask_error() tells
 * why; ERR_LIMIT: more than asks_max, or no memory; ERR_TOO_LARGE: more than 4 MiB of questions and
 * answers; ERR_BUG: an invalid question, or nothing new; ERR_CANCELLED.
 */
int mcp_call_ask(struct mcp_call *c, const struct mcp_ask *asks, size_t n, struct str state,
		 struct err *e) MUST_USE;

/* The client's result for that key, an object that matches the question (for a form, its
 * requestedSchema); NULL if there is none. A legacy client's error, unsuitable answer or timeout is
 * no answer; mcp_call_ask_error() then tells the reason. */
const struct json_val *mcp_call_answer(const struct mcp_call *c, const char *key);
struct str mcp_call_ask_error(const struct mcp_call *c, const char *key);
/* The state given to the last mcp_call_ask() of this call; STR_NONE in the first run. */
struct str mcp_call_state(const struct mcp_call *c);

bool mcp_call_can_ask(const struct mcp_call *c, enum mcp_ask_kind kind);
/* Whether the call goes on while its client is asked: that of a legacy client, and a task. Else
 * mcp_call_ask() answers its request, and the handler runs again in another call. */
bool mcp_call_stays(const struct mcp_call *c);
/* Ends the call: for modern clients with -32021 and the capability, for others with a failure of
 * the tool. */
void mcp_call_cant_ask(struct mcp_call *c, enum mcp_ask_kind kind);

/* --- tasks: calls of tools that outlive their request ---
 * the extension io.modelcontextprotocol/tasks; 2025-11-25: basic/utilities/tasks */

struct mcp_task_options {
	unsigned ttl_ms, poll_ms; /* 0: the server's */
	const char *message; /* status message; may be NULL */
};

/* True if the call may become a task: the client has the extension io.modelcontextprotocol/tasks,
 * or asked for a task (2025-11-25). */
bool mcp_call_can_task(const struct mcp_call *c);
/* Turns the call into a task: its request is answered at once, tasks/cancel cancels it, and the
 * functions that end calls end the task. -1, and the call is unchanged: ERR_CLIENT_CANT: the client
 * lacks tasks; ERR_LIMIT: too many. A call that a 2025-11-25 client requested as a task is one
 * before its handler starts. */
int mcp_call_to_task(struct mcp_call *c, const struct mcp_task_options *o, struct err *e) MUST_USE;
bool mcp_call_is_task(const struct mcp_call *c);
/* Sets the status message of a running task; no effect on other calls. */
void mcp_call_task_status(struct mcp_call *c, const char *message);
