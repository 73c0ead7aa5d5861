#pragma once
/*
 * A request to a route, as its resource sees it. It is a call of the hub (call/call.h) and takes
 * the same stages as every call. Its client is a `struct exchange`, which decodes it and encodes
 * the answer:
 *
 *	path, query, headers, body -> the route's input -> run() -> call_answer() or call_fail()
 *
 * A route that streams calls exchange_stream_start(), sends messages, and ends with one of these
 * two.
 */
#include "call/call.h"
#include "call/project.h"
#include "door/http/api.h"
#include "door/http/error.h"
#include "door/http/proto.h"

struct exchange;
struct hub_sandbox;

enum api_shape {
	API_OBJECT, /* one object of the output table */
	API_ARRAY, /* an array of the objects in the result's one row */
	API_LINES, /* a stream with one object per line (application/x-ndjson) */
	API_FRAMES, /* a stream of Connect; its request may have several messages too */
	API_DOCUMENT, /* JSON that no table describes */
	API_TAR, /* a stream: a tar archive */
};

/*
 * How clients of HTTP see an operation. A projected route shows the operation's request as its
 * members say (call/project.h). The request of any other route has the rows "path", "query",
 * "header" and "body", as far as it needs them; each is an object with a table of its own. With
 * API_FRAMES the body is the first message.
 */
struct api_route {
	/* The operationId of OpenAPI, or Connect's name. */
	const char *id;
	const struct op *op;
	/* NULL: the operation's. */
	const char *doc;
	bool projected;
	struct op_members members;
	/* Members of the result that are shown; NULL: all of them. */
	const struct field_table *answer;
	/*
	 * For projected routes, where a table is not enough:
	 *
	 * body	the body, with a table of its own; read() takes it from exchange_body()
	 * read	completes the request; on a WebSocket by its first message (exchange_first())
	 * tell	sends an event by exchange_write() or exchange_write_bytes(). NULL: no stream.
	 * hear	on a WebSocket: passes on what the client says after that, by call_hear(). -1 ends
	 * 	the call with *e.
	 * bare	whether the answer is only the items of the list that the result begins with:
	 * 	all with API_ARRAY, else the only one
	 * show	what is shown of a result, and by which table; NULL: a failure with *e
	 */
	const struct field_table *body;
	int (*read)(struct call *c, void *request, struct err *e);
	void (*tell)(struct call *c, const void *event);
	int (*hear)(struct call *c, struct arena *scratch, bool is_text, struct str message,
		    struct err *e);
	bool (*bare)(struct call *c);
	const void *(*show)(struct call *c, const void *result, const struct field_table **t,
			    struct err *e);
	/* With --compat mitos: writes the body as this route takes it, from that of a client of
	 * mitos; NULL: it is the same. */
	int (*mend)(struct mitos *m, const struct principal *who, const struct json_val *body,
		    struct json_writer *w, struct err *e);
	/* Whether a request with this body is of the other route's operation; or NULL. */
	bool (*is_other)(struct ops *ops, const struct principal *who, const struct json_val *body);
	const struct api_route *other;
	enum api_kind kind;
	enum http_method method;
	const char *path;
	bool open; /* needs no token */
	size_t body_max; /* bytes; 0: API_BODY_MAX */
	enum api_shape shape;
	bool messages; /* with API_FRAMES: its request may have several messages */
	/* With API_FRAMES: its messages, where clients may speak protocol buffers instead of JSON.
	 * The answer's table has its rows in the order of that, too. */
	const struct field_table *proto;
	/* Content-Type of API_TAR and of streamed requests; NULL: that of tar */
	const char *bytes_type;
	/* run() takes the request's body by exchange_body_start(): an archive, or the messages of
	 * API_FRAMES. */
	bool streams;
	/* The subprotocol of a WebSocket. Its request is a GET that upgrades; both sides then send
	 * when they like. The server's messages are texts with API_LINES and frames with
	 * API_FRAMES. NULL: no WebSocket. */
	const char *socket;
	/* The head is the whole request: a client need not send anything else. */
	bool listens;
	/* With `socket` or `messages`: what the client sends. On a projected route, whose first
	 * message holds the body as "open", what it sends after that. */
	const struct field_table *heard;
	const struct field_table *page; /* another object that it can answer with, or NULL */
	/* If show() makes a failure of a result: the table of "result" beside the "error". */
	const struct field_table *failed;
	const struct field_table
		*lines; /* objects of another answer, a stream with one per line; or NULL */
	/* The stream is one of Server-Sent Events (text/event-stream), each an object. The name of
	 * the parameter that says where it begins: a client that comes again says it by
	 * Last-Event-ID. NULL: the stream is no such. */
	const char *sse;
	uint32_t errors; /* API_MAY() of the errors that it has beside those of every route */
};

#define API_MAY(code) (1u << API_##code)
/* For every route that names a sandbox. */
#define API_MAY_SANDBOX                                                                            \
	(API_MAY(NOT_FOUND) | API_MAY(SANDBOX_LOST) | API_MAY(IDLE_TIMEOUT) | API_MAY(CONFLICT) |  \
	 API_MAY(QUOTA_EXCEEDED) | API_MAY(CANCELED))

enum { API_BODY_MAX = 1 << 20, API_PATH_MAX = 4095, API_ID_MAX = 64, API_ENV_MAX = 256 };

/* ---- for resources ------------------------------------------------------------------------- */

struct exchange *exchange_of(struct call *c);

/* What serves clients of mitos; NULL: nobody does. exchange_write_others(): for mend(), the members
 * of an object but these. */
struct mitos *exchange_mitos(struct call *c);
void exchange_write_others(struct json_writer *w, const struct json_val *body,
			   const char *const *names, size_t n);

/* For read(). exchange_body(): the body as JSON; NULL: none. exchange_forget_body(): frees it, of a
 * call that lasts, once nothing borrows from it. exchange_first(): the first message of a
 * WebSocket, valid until read() returns. exchange_parse_first(): a text in either as JSON, which
 * lives as long as the call. exchange_decode_body(): decodes an object by the members of the
 * request that belong to the body. */
const struct json_val *exchange_body(struct call *c);
void exchange_forget_body(struct call *c);
struct str exchange_first(struct call *c, bool *ret_is_text);
const struct json_val *exchange_parse_first(struct call *c, struct str text, struct err *e);
int exchange_decode_body(struct call *c, const struct json_val *v, void *request,
			 struct err *e) MUST_USE;

/* The running sandbox of a request, as from call_sandbox(). A later failure names it. */
struct sandbox *exchange_sandbox(struct call *c, struct str id, struct err *e) MUST_USE;

/* Ends the call of a client that went away. */
void exchange_fail_gone(struct call *c);

/* Takes text, which was malloc'ed. */
void exchange_answer_document(struct call *c, char *text);

/* ---- streams ------------------------------------------------------------------------------- */

/* Starts the answer; from here on a failure is its last message. on_room is called when the client
 * has taken half of the queue, after exchange_stream_full() was true. */
int exchange_stream_start(struct call *c, void (*on_room)(void *data), void *data,
			  struct err *e) MUST_USE;

/* exchange_send() sends a message after redaction. tell() is given what was redacted, so it uses
 * exchange_write(), or exchange_write_bytes() for API_TAR and for binary messages of WebSockets. */
void exchange_send(struct call *c, const struct field_table *t, const void *from);
void exchange_write(struct call *c, const struct field_table *t, const void *from);
void exchange_write_bytes(struct call *c, struct str message);
/* The same for a route with `sse`; id: where a client goes on behind it, without line ends. Empty:
 * as before it. */
void exchange_write_sse(struct call *c, struct str id, const struct field_table *t,
			const void *from);
bool exchange_stream_full(struct call *c);

/* For tell(): a pointer of the route's own, NULL at first; and a call of f in ms ms, instead of one
 * that was wanted before, unless the call has ended by then. f may end it with a failure, which
 * tell() may not. */
void **exchange_state(struct call *c);
void exchange_later(struct call *c, uint64_t ms, void (*f)(struct call *c));
void exchange_end_with(struct call *c, const struct err *e);

/* Receives the body of a route that streams, as struct http_body_events describes. If the client
 * goes away, the call is cancelled. */
struct exchange_body_events {
	size_t (*on_bytes)(void *data, struct str bytes);
	void (*on_end)(void *data); /* may be called inside exchange_body_start() */
};
void exchange_body_start(struct call *c, const struct exchange_body_events *events, void *data);
void exchange_body_resume(struct call *c);
/* Parses a message of such a body; owned. NULL with *e, with which the call must fail. */
struct json_doc *exchange_parse(struct call *c, struct str text, struct err *e) MUST_USE;
/* The budget that counts the stored bytes of all such bodies, and of others that last. */
struct budget *exchange_bodies(struct call *c);

/* The next message of the request after the first (API_FRAMES); NULL at the end, or on failure with
 * *e->code. It lives until the next one is asked for, and so does what is decoded of it. Call it
 * before exchange_stream_start(). */
const struct json_val *exchange_next_message(struct call *c, struct err *e);

/* For calls that only wait for news: f is called once when the server goes down, and ends the call.
 * Not called after the end of the call. */
void exchange_on_drain(struct call *c, void (*f)(void *data), void *data);

/* From here on Connect's deadline applies, since somebody waits. exchange_sandbox() does that
 * too. */
void exchange_wait(struct call *c);
