#pragma once
/*
 * One HTTP exchange with a server, as all client transports make it. It sends the headers of the
 * target and of the authorization. If the server refuses (401, 403), mcp/connect/auth.h may find a
 * remedy, and the request is sent again. So it is where the server redirects it within itself
 * (http/client/redirect.h). The answer is events or one text. No encoding is accepted, and the
 * answer's size is limited.
 */
#include <uv.h>

#include "http/client/client.h"
#include "http/client/sse.h"
#include "mcp/connect/auth.h"

struct mcp_exchange;

/* Shared by all exchanges of one link; borrowed by each. */
struct mcp_exchange_base {
	struct http_client *http;
	const struct http_header *headers; /* sent with each */
	size_t headers_n;
	struct mcp_auth *auth; /* may be NULL */
	size_t text_max;
	struct budget *memory; /* counts what is kept of answers */
	/* Exchanges that wait for the authorization; a person may be asked. */
	unsigned asking;
	uint64_t went_ms; /* the loop's time when the last one was sent */
	/* Exchanges that will ask for authorization in the loop's next turn, oldest first. */
	struct mcp_exchange *first, **end;
	unsigned waiting;
	uv_timer_t soon;
};

/* The caller fills in the rest of b, and closes its timer when no exchange is left. */
void mcp_exchange_base_init(struct mcp_exchange_base *b, uv_loop_t *loop);

/* Everything it points to is borrowed until the end. */
struct mcp_exchange_spec {
	const char *method;
	const char *url;
	const struct http_header *headers;
	size_t headers_n;
	struct str body; /* STR_NONE: none */
	struct sse_reader *sse; /* for events; NULL: events are an error */
	bool any_type; /* the answer's content does not matter, unless it is a failure */
	unsigned idle_ms; /* 0: no limit on silence */
};

struct mcp_exchange_events {
	/* The final status and the headers have come. May be NULL. */
	void (*on_head)(void *owner, struct mcp_exchange *t);
	void (*on_event)(void *owner, struct mcp_exchange *t, const struct sse_event *ev);
	/* The last callback; t is freed after it. text: the whole answer if it was no events; for a
	 * status of failure, at least its beginning. */
	void (*on_end)(void *owner, struct mcp_exchange *t, struct str text, const struct err *e);
};

/* No callback comes from inside this call. */
struct mcp_exchange *mcp_exchange_start(struct mcp_exchange_base *b,
					const struct mcp_exchange_spec *spec,
					const struct mcp_exchange_events *ev, void *owner,
					struct err *e) MUST_USE;
/* No callback comes after it. May be called inside any callback but on_end. */
void mcp_exchange_cancel(struct mcp_exchange *t);

int mcp_exchange_status(const struct mcp_exchange *t); /* 0 before on_head */
/* In on_end with a failure: whether any of the request went out. */
bool mcp_exchange_sent(const struct mcp_exchange *t);
bool mcp_exchange_is_events(const struct mcp_exchange *t);
struct str mcp_exchange_header(const struct mcp_exchange *t, const char *name); /* in on_head */

/* Whether the status means that the message was accepted. */
bool mcp_exchange_took(int status);
/* Describes a status of failure as an error, with what the server says of it in the text; returns
 * -1. */
int mcp_exchange_err(int status, struct str text, struct err *e);
