#pragma once
/*
 * A request to a route, as its resource sees it. It is a call of the hub (op/call.h), so it takes
 * the one road; its client is a `struct exchange`, which decoded it and encodes what it is answered:
 *
 *	path, query, headers, body -> the route's input -> run() -> call_answer() or call_fail()
 *
 * A route that streams starts with exchange_stream_start(), sends messages, and ends with the same two.
 */
#include "door/http/api.h"
#include "door/http/error.h"
#include "op/call.h"
#include "op/project.h"

struct exchange;
struct hub_sandbox;

enum api_shape {
	API_OBJECT, /* of the output table */
	API_ARRAY, /* of such objects; of a projected route, of those in the result's one row */
	API_LINES, /* a stream: an object a line (application/x-ndjson) */
	API_FRAMES, /* a stream of Connect, which has also several messages as its request */
	API_DOCUMENT, /* JSON that no table describes */
	API_TAR, /* a stream: a tar archive */
};

/*
 * How clients of HTTP see an operation. A projected route shows the operation's request, as its members say
 * (op/project.h). Of one that is not, the request has the rows "path", "query", "header" and "body" as far as there are
 * such, each an object with a table of its own. Of API_FRAMES the body is the first message.
 */
struct api_route {
	/* The operationId of OpenAPI, or Connect's name. */
	const char *id;
	const struct op *op;
	/* NULL: the operation's. */
	const char *doc;
	bool projected;
	struct op_members members;
	/* What is shown of the result; NULL: all. */
	const struct field_table *answer;
	/*
	 * Of a projected route, where a table is not enough:
	 *
	 * body	of a table of its own, which read() takes from exchange_body()
	 * read	completes the request; of a WebSocket by its first message (exchange_first())
	 * tell	sends an event, by exchange_write() or exchange_write_bytes(); NULL: it does not stream
	 * hear	of a WebSocket: hands on what the client says behind that, by call_hear(). -1 ends
	 *	the call with *e.
	 * bare	whether only the items of the list are shown that the answer begins with: of
	 *	API_ARRAY all, else the one
	 * show	what is shown of a result, by which table; NULL: here it is a failure, *e
	 */
	const struct field_table *body;
	int (*read)(struct call *c, void *request, struct err *e);
	void (*tell)(struct call *c, const void *event);
	int (*hear)(struct call *c, struct arena *scratch, bool is_text, struct str message,
		    struct err *e);
	bool (*bare)(struct call *c);
	const void *(*show)(struct call *c, const void *result, const struct field_table **t,
			    struct err *e);
	enum api_kind kind;
	enum http_method method;
	const char *path;
	bool open; /* needs no token */
	size_t body_max; /* bytes; 0: API_BODY_MAX */
	enum api_shape shape;
	bool messages; /* of API_FRAMES: its request can have several */
	const char *bytes_type; /* of API_TAR and of what streams: its Content-Type; NULL: of tar */
	/* Its request's body is taken by run() with exchange_body_start(): an archive, or of API_FRAMES messages. */
	bool streams;
	/* The subprotocol of a WebSocket: its request is a GET that upgrades, and both sides speak as they like; what the
	 * server says is of API_LINES a text, of API_FRAMES a frame, each a message. NULL: none. */
	const char *socket;
	/* Its request is the head alone: a client need not say anything. */
	bool listens;
	/* With it, and of messages that stream: what the client says; of a projected one, whose
	 * first message holds the body as "open", what it says behind that. */
	const struct field_table *heard;
	const struct field_table *page; /* an object that it can answer with as well; or NULL */
	/* Of a result that show() makes a failure of: what stands as "result" beside the "error". */
	const struct field_table *failed;
	const struct field_table
		*lines; /* likewise a stream of such objects, a line each; or NULL */
	uint32_t errors; /* of API_MAY(): beside those that any route has */
};

#define API_MAY(code) (1u << API_##code)
/* Of all that names a sandbox. */
#define API_MAY_SANDBOX                                                                            \
	(API_MAY(NOT_FOUND) | API_MAY(SANDBOX_LOST) | API_MAY(IDLE_TIMEOUT) | API_MAY(CONFLICT) |  \
	 API_MAY(QUOTA_EXCEEDED) | API_MAY(CANCELED))

enum {
	API_BODY_MAX = 1 << 20,
	API_PATH_MAX = 4095,
	API_ID_MAX = 64,
	API_TEMPLATE_MAX = 255,
	API_ENV_MAX = 256
};

/* ---- for resources ------------------------------------------------------------------------- */

struct exchange *exchange_of(struct call *c);

/* What read() works on. The body as JSON, NULL: there is none. The first message of a WebSocket,
 * until read() returns. A text of it or of the body as JSON, which lives as long as the call. An
 * object by what the members of the request have in the body. */
const struct json_val *exchange_body(struct call *c);
struct str exchange_first(struct call *c, bool *ret_is_text);
const struct json_val *exchange_parse_first(struct call *c, struct str text, struct err *e);
int exchange_decode_body(struct call *c, const struct json_val *v, void *request,
			 struct err *e) MUST_USE;

/* The sandbox of a request, running, as call_sandbox() has it. A failure is then about it. */
struct sandbox *exchange_sandbox(struct call *c, struct str id, struct err *e) MUST_USE;

/* The client went away, and nobody hears of it. */
void exchange_fail_gone(struct call *c);

/* An answer of n objects of the output's table. */
void exchange_answer_array(struct call *c, const void *p, size_t n);
/* Takes text, which was malloc'ed. */
void exchange_answer_document(struct call *c, char *text);

/* ---- streams ------------------------------------------------------------------------------- */

/* Starts the answer; from here on a failure is its last message. on_room is called when the client
 * has taken half of what waits, after exchange_stream_full() was true. */
int exchange_stream_start(struct call *c, void (*on_room)(void *data), void *data,
			  struct err *e) MUST_USE;

/* A message, as redaction lets it; for tell(), which is given what was redacted, exchange_write(), and
 * of API_TAR and as a binary message of WebSockets exchange_write_bytes(). */
void exchange_send(struct call *c, const struct field_table *t, const void *from);
void exchange_write(struct call *c, const struct field_table *t, const void *from);
void exchange_write_bytes(struct call *c, struct str message);
void exchange_send_bytes(struct call *c, struct str bytes); /* of API_TAR */
bool exchange_stream_full(struct call *c);

/* The body of a route that streams, from here on; as struct http_body_events. Where the client goes away the call is
 * cancelled. */
struct exchange_body_events {
	size_t (*on_bytes)(void *data, struct str bytes);
	void (*on_end)(void *data); /* may come from inside of exchange_body_start() */
};
void exchange_body_start(struct call *c, const struct exchange_body_events *events, void *data);
void exchange_body_resume(struct call *c);
/* A message of such a body, owned; NULL with *e, with which the call is to fail. */
struct json_doc *exchange_parse(struct call *c, struct str text, struct err *e) MUST_USE;
/* What is kept of all such bodies counts there. */
struct budget *exchange_bodies(struct call *c);

/* The next message of the request behind the first (API_FRAMES); NULL at the end, or with *e->code.
 * It lives as long as the call. Before exchange_stream_start(). */
const struct json_val *exchange_next_message(struct call *c, struct err *e);

/* Of what waits for nothing but news: f is called once when the server goes down, and ends the call. Not after
 * its end. */
void exchange_on_drain(struct call *c, void (*f)(void *data), void *data);

/* From here on somebody waits whom Connect's deadline can concern; exchange_sandbox() does that, too. */
void exchange_wait(struct call *c);
