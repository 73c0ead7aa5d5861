#pragma once
/*
 * One way to a server and back, as all clients' transports over HTTP go it: with the headers of the
 * target and of what authorizes it, again where the server refuses (401, 403) and
 * mcp/connect/auth.h knows what to do about it; and with an answer that is events or one text. No
 * redirect is followed, no encoding taken, and what comes has a bound.
 */
#include <uv.h>

#include "http/client/client.h"
#include "http/client/sse.h"
#include "mcp/connect/auth.h"

struct mcp_exchange;

/* What all exchanges of one link share; borrowed by each. */
struct mcp_exchange_base {
	struct http_client *http;
	const struct http_header *headers; /* on each */
	size_t headers_n;
	struct mcp_auth *auth; /* may be NULL */
	size_t text_max;
	struct budget *memory; /* what is kept of answers counts there */
	/* So many exchanges wait for what authorizes them: a person may be asked. */
	unsigned asking;
	uint64_t went_ms; /* the loop's time when the last one went to the server */
	/* Exchanges that have yet to ask for it, oldest first, in the loop's next turn. */
	struct mcp_exchange *first, **end;
	unsigned waiting;
	uv_timer_t soon;
};

/* The rest of b is filled in. Its timer is closed by who has it, when no exchange is left. */
void mcp_exchange_base_init(struct mcp_exchange_base *b, uv_loop_t *loop);

/* All that it points to is borrowed until the end. */
struct mcp_exchange_spec {
	const char *method;
	const char *url;
	const struct http_header *headers;
	size_t headers_n;
	struct str body; /* STR_NONE: none */
	struct sse_reader *sse; /* of events; NULL: they are an error */
	bool any_type; /* what the answer says is of no interest, unless it is a failure */
	unsigned idle_ms; /* 0: the server may be silent for ever */
};

struct mcp_exchange_events {
	/* A status that is the answer, and the headers. May be NULL. */
	void (*on_head)(void *owner, struct mcp_exchange *t);
	void (*on_event)(void *owner, struct mcp_exchange *t, const struct sse_event *ev);
	/* The last; t is gone after it. text: all of an answer that was no events. Of an answer
	 * with a status of failure its beginning at least. */
	void (*on_end)(void *owner, struct mcp_exchange *t, struct str text, const struct err *e);
};

/* No event comes from inside. */
struct mcp_exchange *mcp_exchange_start(struct mcp_exchange_base *b,
					const struct mcp_exchange_spec *spec,
					const struct mcp_exchange_events *ev, void *owner,
					struct err *e) MUST_USE;
/* No event comes after it; also from inside of one, but on_end. */
void mcp_exchange_cancel(struct mcp_exchange *t);

int mcp_exchange_status(const struct mcp_exchange *t); /* 0 before on_head */
bool mcp_exchange_is_events(const struct mcp_exchange *t);
struct str mcp_exchange_header(const struct mcp_exchange *t, const char *name); /* in on_head */

/* Whether the transport has that status for what was taken: 200, 202, 204. */
bool mcp_exchange_took(int status);
/* What a status of failure means, as an error; -1. */
int mcp_exchange_err(int status, struct err *e);
