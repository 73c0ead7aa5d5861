#pragma once
/* Between exchange.c, which has the beginning and the end, and what reads and writes for it. */
#include "door/http/exchange.h"
#include "door/http/frame.h"
#include "door/http/routes.h"
#include "base/budget.h"
#include "call/aside.h"

struct api {
	uv_loop_t *loop;
	struct ops *ops;
	enum api_kind kind;
	struct mitos *mitos; /* NULL: its clients are not served */
	struct http_route *rows; /* one for each of its routes, in their order */
	const struct api_route **routes;
	struct api_parts *parts; /* of each */
	size_t n;
	struct budget bodies; /* what is kept of those that stream */
	struct exchange *drained; /* that are told when the server goes down */
};

enum { ASK_DOCS = 2 };

struct exchange {
	struct aside_work parsing; /* of a long body; first: the two are cast */
	struct api *api;
	const struct api_route *route;
	const struct api_parts *parts; /* of the route */
	struct api_parts own; /* where the body led to another route */
	struct http_request *q; /* until it is answered */
	struct http_stream *stream; /* while it streams */
	struct http_ws *ws; /* or speaks */
	bool silent; /* nothing was heard yet */
	struct buf kept; /* what was said before it could be heard */
	bool hears;
	bool *gone; /* is set where it is freed; or NULL */
	bool first_is_text;
	struct str first; /* the first message, until it is read */
	struct err refused; /* what was said and is wrong */
	const struct principal *who;
	const void *session; /* op_start.session */
	struct call *call; /* NULL: it has not begun, or has ended */
	struct str target; /* before it has begun */
	struct arena *arena;
	bool parsed, mended; /* the body: into docs[1], or it is wrong */
	struct err wrong;
	bool left; /* the client, while it was parsed */
	struct json_doc *docs[ASK_DOCS]; /* of the request: what the strings of the input borrow */
	struct json_doc *message; /* of API_FRAMES: the last one behind the first */
	size_t n_messages; /* behind the first */
	struct frames frames; /* what is left of the body */
	bool binary; /* its messages are protocol buffers, in both directions */
	struct str key; /* of an operation that is done once for it */
	enum api_code code; /* API_CODES: as the failure's own says */
	const void *failed; /* a result that is a failure here; until it is told */
	char *document;
	const struct exchange_body_events *body; /* NULL: nobody takes it yet */
	void *body_data;
	bool body_ended;
	void (*on_room)(void *data);
	void *on_room_data;
	uint64_t timeout_ms;
	uv_timer_t timer;
	bool timing;
	uv_timer_t later; /* exchange_later() */
	bool has_later;
	void (*on_later)(struct call *c);
	unsigned closing; /* timers that are not closed yet */
	void *state; /* the route's own */
	char label[64];
	char audit_id[AUDIT_ID_MAX];
	bool going_down; /* the server does: a stream of news ends, and no failure is told */
	void (*on_drain)(void *data); /* NULL: not on the list */
	void *on_drain_data;
	struct exchange *drained_before, *drained_next;
};

/* exchange.c */
void exchange_start(struct api *api, size_t route, struct http_request *q);

/* The call of a WebSocket, once there is a first message; -1 where it can't be made. */
int exchange_begin(struct exchange *a, struct err *e) MUST_USE;
void exchange_finish(struct exchange *a);

/* exchange_read.c: decodes the operation's request, or only its sandbox before there is a call. */
int exchange_read(struct exchange *a, void *request, struct err *e) MUST_USE;
int exchange_read_target(struct exchange *a, struct str *ret, struct err *e) MUST_USE;
/* Whether the client wants a stream, as it says by its type; sets a->binary. */
bool exchange_speaks_frames(struct exchange *a);
/* The body as JSON, into docs[1], if there is one. exchange_parse_text(): what takes long of that,
 * which a thread of the work pool may do before: it reads the body and the route. */
void exchange_parse_text(struct exchange *a);
int exchange_parse_body(struct exchange *a, struct err *e) MUST_USE;

/* exchange.c: from now on the call has so long. */
void exchange_time(struct exchange *a, uint64_t ms);

/* exchange_write.c */
int exchange_stream_begin(struct exchange *a, struct err *e) MUST_USE;
void exchange_write_answer(struct exchange *a, const struct field_table *t, const void *from);
/* A refusal without a call may quote its request: it is redacted here. */
void exchange_write_problem(struct exchange *a, const struct err *e);
/* A call redacts how it fails. It may end after the hub's gate and this door's api. */
void exchange_write_failure(struct exchange *a, const struct err *e);
/* The text of a problem, in the form of the route's kind. */
int exchange_problem_text(const struct exchange *a, const struct api_problem *p, struct buf *to,
			  struct err *e) MUST_USE;
/* A message of the route's shape. */
void exchange_write_frame(struct exchange *a, unsigned flags, struct str text);

/* exchange_socket.c: upgrades. */
int exchange_socket_open(struct exchange *a, struct err *e) MUST_USE;
/* The same before there is a call, and waits for the first message. */
void exchange_socket_await(struct exchange *a);
/* Holds what the client says, or lets it be heard. */
void exchange_socket_hear(struct exchange *a, bool hold);
/* A binary message of two parts. */
void exchange_socket_frame(struct exchange *a, struct str head, struct str rest);
/* Says goodbye, and in a text what failed; p: NULL if nothing did. */
void exchange_socket_end(struct exchange *a, const struct api_problem *p);
