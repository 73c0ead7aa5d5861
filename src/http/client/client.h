#pragma once
/*
 * HTTP requests on the loop (libcurl): HTTP/1.1, http and https only, no redirects followed, no
 * body decoded, certificates checked, and no body sent twice. What comes is handed on piece by
 * piece and never kept, so that bodies and event streams of any length cost no memory here.
 *
 * One thread; every callback comes from the loop, never from inside http_exchange_start() or
 * _cancel(). In a callback exchanges may be started and cancelled; the client may be closed in
 * on_end only.
 */
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "base/err.h"
#include "http/message/header.h"

struct http_client;
struct http_exchange;

struct http_client_options {
	const char *unix_socket; /* all connections go here, whatever the URL's host; may be NULL */
	unsigned connect_ms; /* 0: 10,000 */
	unsigned connections; /* at once; requests over it wait; 0: 64 */
	size_t header_max; /* bytes of all headers of an answer; 0: 64 KiB */
	/* Only addresses of the public Internet are connected to (http/client/address.h), whatever
	 * a name stands for at that moment: for URLs that came from outside. No proxy is used.
	 * ERR_NOT_PUBLIC else. */
	bool public_only;
	/* beside public_only: these as well, where who configured it is there itself */
	bool loopback_too;
};

/* NULL with ERR_LIMIT without memory. Strings are copied. */
struct http_client *http_client_new(uv_loop_t *loop, const struct http_client_options *o,
				    struct err *e) MUST_USE;

/* Cancels all exchanges; on_closed (may be NULL) follows when c is gone. */
void http_client_close(struct http_client *c, void (*on_closed)(void *owner), void *owner);

/* All of it is copied. */
struct http_spec {
	const char *method; /* "GET", "POST", … */
	const char *url;
	const struct http_header *headers;
	size_t n_headers;
	struct str body; /* STR_NONE: none */
	/* In place of body, not copied: puts the next bytes of it, n at most, at `to`; 0: that was
	 * all, SIZE_MAX: it can't go on, which ends the exchange. It may block only who has nothing
	 * else on the loop. */
	size_t (*give)(void *owner, char *to, size_t n);
	unsigned idle_ms; /* ended with ERR_TIMEOUT when nothing comes for so long; 0: never */
};

struct http_exchange_events {
	/* The status and all headers are there. May be NULL. */
	void (*on_head)(void *owner, struct http_exchange *x, int status);
	/* A piece of the body, borrowed until it returns. */
	void (*on_bytes)(void *owner, struct http_exchange *x, struct str bytes);
	/* The last callback; x is gone after it. e is NULL where the body came whole, else
	 * ERR_TRANSPORT, ERR_TIMEOUT, ERR_NOT_PUBLIC (public_only), ERR_TOO_LARGE (headers), or
	 * ERR_LIMIT without memory. */
	void (*on_end)(void *owner, struct http_exchange *x, const struct err *e);
};

/* ERR_INVALID for a URL that is none, or a header that could break out of its line. */
struct http_exchange *http_exchange_start(struct http_client *c, const struct http_spec *spec,
					  const struct http_exchange_events *ev, void *owner,
					  struct err *e) MUST_USE;

/* A header of the answer, from on_head to on_end; STR_NONE where it is absent; borrowed. */
struct str http_exchange_header(const struct http_exchange *x, const char *name);

/* The same for one that may stand in several lines, as a list may: appends all of them with ", "
 * between. */
int http_exchange_headers(const struct http_exchange *x, const char *name, struct buf *to,
			  struct err *e) MUST_USE;

/* No callback comes after it; x is the caller's no more. */
void http_exchange_cancel(struct http_exchange *x);
