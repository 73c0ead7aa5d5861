#pragma once
/*
 * MCP, the server's role, as a core without I/O: a transport feeds whole messages in and gets whole
 * messages out through a callback. Revisions 2024-11-05, 2025-03-26, 2025-06-18 and 2025-11-25; a
 * message has only what its revision knows (mcp/profile.h).
 *
 * A server is what is offered: a name, tools, and the handler that runs them. A session is one
 * client's conversation, made by a transport. A call is one tools/call in progress; it belongs to
 * no transport and may end at any later time, so that a slow call delays no other message.
 *
 * One thread. Every callback comes from inside a function of this header; handlers may call
 * mcp_call_* and mcp_session_* back at any point, except that nothing closes a session from inside
 * `send`.
 */
#include "base/arena.h"
#include "json/field.h"
#include "json/json.h"

struct mcp_server;
struct mcp_session;
struct mcp_call;
struct rpc_sniff;

enum mcp_hint { MCP_UNSAID, MCP_NO, MCP_YES };

/* One tool, static or at least as long-lived as the server. */
struct mcp_tool {
	const char *name; /* [A-Za-z0-9_.-], 1 to 64 */
	const char *title; /* may be NULL */
	const char *description;
	const char *input_schema; /* JSON text of an object schema, one line */
	const char *output_schema; /* the same, or NULL; success then needs structured content */
	const char *meta; /* JSON object text for the tool's _meta, or NULL */
	enum mcp_hint read_only, destructive, idempotent, open_world;
	const void *row; /* the owner's */
};

struct mcp_handler {
	/* The tools that this session may see and call, in the order in which they are listed:
	 * what is not in it does not exist for the session. Borrowed until the next call of it. */
	const struct mcp_tool *const *(*tools)(void *owner, struct mcp_session *s, size_t *ret_n);

	/* Starts a call of a listed tool. Must lead to exactly one mcp_call_done(), mcp_call_text()
	 * or mcp_call_fail(), now or later, also when the call is cancelled. */
	void (*call)(void *owner, struct mcp_call *c);
};

struct mcp_server_options {
	const char *name, *version; /* serverInfo */
	const char *title; /* may be NULL */
	const char *instructions; /* for the model; may be NULL */
	const char *meta; /* JSON object text for the _meta of the initialize result, or NULL */
	const struct mcp_handler *handler;
	void *owner;

	/* Limits; 0 takes the default. */
	size_t page; /* tools of one tools/list page: 100 */
	unsigned inflight_max; /* requests of one session without an answer: 256 */
	size_t held_max; /* bytes of requests of one session without an answer: 64 MiB */
	size_t reply_max; /* bytes of one message that we send: 64 MiB */
	unsigned progress_ms; /* at least this long between two progress messages of a call: 100 */
	struct json_options json; /* of incoming messages */
	uint64_t (*now_ms)(void); /* monotonic; NULL: clock_ms() */
};

/* Copies the options; the strings in it are borrowed until mcp_server_free(). NULL with ERR_BUG
 * where a required one is missing or ERR_LIMIT without memory. */
struct mcp_server *mcp_server_new(const struct mcp_server_options *o, struct err *e) MUST_USE;
/* NULL-safe. All sessions are closed and all their calls done. */
void mcp_server_free(struct mcp_server *srv);
AUTO_DEFINE(mcp_server_free, struct mcp_server)

/* ERR_BUG with the reason where a tool's row is not fit to be sent: its name, a schema or meta that
 * is not a one-line JSON object, no description. Tests call it for every tool. */
int mcp_tool_check(const struct mcp_tool *t, struct err *e) MUST_USE;

/* --- sessions: for transports ------------------------------------------------------------ */

struct mcp_transport {
	/* One whole message, JSON without a newline, borrowed until it returns. stream is what came
	 * with the request that it belongs to. The transport queues or, broken, drops it. */
	void (*send)(void *transport, void *stream, struct str message);

	/* True while so much waits to be sent that progress should be held back; may be NULL. */
	bool (*congested)(void *transport);

	/* The last request that was open was answered, by a mcp_call_done() that came from outside
	 * of mcp_session_*(). May close the session; may be NULL. */
	void (*idle)(void *transport);
};

/* t is borrowed until mcp_session_close(); data is the owner's (the principal, say). NULL without
 * memory. */
struct mcp_session *mcp_session_new(struct mcp_server *srv, const struct mcp_transport *t,
				    void *transport, void *data);

/* One message of the client: a request, notification, response or batch. text is borrowed until it
 * returns. stream is handed to every send that the message causes. */
void mcp_session_message(struct mcp_session *s, struct str text, void *stream);

/* Answers a message that the transport could not take whole: ERR_TOO_LARGE, or ERR_LIMIT where it
 * had no memory for it. sniff has looked through the message for its id; NULL where none has. */
void mcp_session_reject(struct mcp_session *s, const struct err *e, const struct rpc_sniff *sniff,
			void *stream);

/* Cancels all open calls as if the client had cancelled each. */
void mcp_session_cancel_all(struct mcp_session *s);

/* Requests that will still be answered. Cancelled calls are none of them, though they count against
 * inflight_max until they are done. */
unsigned mcp_session_open(const struct mcp_session *s);

/* Ends the session: cancels its calls, sends nothing more, and s is no longer the caller's. The
 * memory goes with the last call. NULL-safe. */
void mcp_session_close(struct mcp_session *s);
AUTO_DEFINE(mcp_session_close, struct mcp_session)

void *mcp_session_data(const struct mcp_session *s);

/* The negotiated revision; NULL before initialize. Static. */
const char *mcp_session_version(const struct mcp_session *s);

/* "name/version" as the client said in initialize, else "". At most 127 bytes; borrowed. */
const char *mcp_session_client(const struct mcp_session *s);

/* --- calls: for handlers ----------------------------------------------------------------- */

/* All that is borrowed from a call is borrowed until it is done. */
const struct mcp_tool *mcp_call_tool(const struct mcp_call *c);
struct mcp_session *mcp_call_session(const struct mcp_call *c); /* NULL once it is closed */
void *mcp_call_principal(const struct mcp_call *c); /* the data of its session, also after close */

/* The arguments: an object, or NULL for none. */
const struct json_val *mcp_call_args(const struct mcp_call *c);

/* For what lives as long as the call; at most 32 MiB. */
struct arena *mcp_call_arena(const struct mcp_call *c);

/* field_decode() of the arguments, with the call's arena. */
int mcp_call_decode(struct mcp_call *c, const struct field_table *t, void *ret,
		    struct err *e) MUST_USE;

/* "mcp-3-17" (session, request): names the call in log records; see log_request(). It is set
 * while the handler's `call` runs. */
const char *mcp_call_label(const struct mcp_call *c);

/* on_cancel: the client cancelled, or the session ended. Called at most once and not after the call
 * is done; the handler still ends the call, there or later, and the answer goes nowhere. data is
 * the handler's. Called at once if the call is cancelled already. */
void mcp_call_on_cancel(struct mcp_call *c, void (*on_cancel)(struct mcp_call *c, void *data),
			void *data);
bool mcp_call_cancelled(const struct mcp_call *c);

/* True where the client asked for progress. */
bool mcp_call_wants_progress(const struct mcp_call *c);

/* Sends progress, if the client asked for it. What does not grow is dropped; what comes faster than
 * progress_ms is held and replaced by what follows; the last is always sent, before the answer.
 * total 0: not known. message may be NULL; it is cut at 1 KiB. */
void mcp_call_progress(struct mcp_call *c, double progress, double total, const char *message);

enum mcp_content_type {
	MCP_TEXT, /* text */
	MCP_IMAGE, /* data, mime */
	MCP_AUDIO, /* data, mime; a line of text where the revision has no audio */
	MCP_RESOURCE, /* uri, mime (may be NULL), and text, or data where text is STR_NONE */
};

/* Strings may hold any bytes; what is not UTF-8 becomes U+FFFD. data is raw, sent as base64. */
struct mcp_content {
	enum mcp_content_type type;
	struct str text, data;
	const char *mime, *uri;
};

struct mcp_result {
	const struct mcp_content *content;
	size_t content_n;
	/* Structured content: a JSON object's text, one line; or from a table. Revisions that lack
	 * it get the content only. With structured content and no content, its text is sent too. */
	struct str structured;
	const struct field_table *table;
	const void *from;
	bool is_error;
	struct str meta; /* JSON object text for _meta; may be STR_NONE */
};

/* Ends the call; c is gone. All of r is borrowed until it returns. */
void mcp_call_done(struct mcp_call *c, const struct mcp_result *r);

/* The same with one text. */
void mcp_call_text(struct mcp_call *c, struct str text);

/* The same with a failure: isError, and the text {"code","cause","remediation","retryable"} from
 * base/err_table.h. */
void mcp_call_fail(struct mcp_call *c, const struct err *e);

/* That text; owned, NUL-terminated. */
char *mcp_error_text(const struct err *e) MUST_USE;
