#pragma once
/*
 * HTTP requests on the loop (libcurl): HTTP/1.1, http and https only. No redirect is followed, no
 * body is decoded, no body is sent twice, and certificates are checked. Answers are passed on piece
 * by piece, so bodies and event streams of any length need no memory here.
 *
 * One thread; every callback comes from the loop, never from inside http_exchange_start() or
 * _cancel(). A callback may start and cancel exchanges; only on_end may close the client.
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
	const char *unix_socket; /* connect here, whatever the URL's host; may be NULL */
	unsigned connect_ms; /* 0: 10,000 */
	unsigned connections; /* at once; further requests wait; 0: 64 */
	size_t header_max; /* bytes of all headers of an answer; 0: 64 KiB */
	/* PEM files: the authorities that servers are trusted by, instead of the host's; what is
	 * shown to a server that wants to know its clients. May be NULL. */
	const char *ca, *certificate, *key;
	/* For URLs from untrusted sources. Connect only to addresses of the public Internet
	 * (http/client/address.h), checked at the time of each connection, and use no proxy. Others
	 * fail with ERR_NOT_PUBLIC. */
	bool public_only;
	/* with public_only: allow loopback addresses too, if the operator is on this machine */
	bool loopback_too;
	/* For what is secret to all but this user: nothing is sent where another user's program
	 * answers, or another machine (http/client/peer.h). Fails with ERR_DENIED. */
	bool own_only;
};

/* NULL with ERR_LIMIT: no memory. Strings are copied. */
struct http_client *http_client_new(uv_loop_t *loop, const struct http_client_options *o,
				    struct err *e) MUST_USE;

/* Cancels all exchanges; on_closed (may be NULL) follows when c is freed. */
void http_client_close(struct http_client *c, void (*on_closed)(void *owner), void *owner);

/* Everything is copied. */
struct http_spec {
	const char *method; /* "GET", "POST", … */
	const char *url;
	const struct http_header *headers;
	size_t n_headers;
	struct str body; /* STR_NONE: none */
	/* Instead of body, not copied: writes the next bytes of it, at most n, to `to`; 0: the body
	 * has ended, SIZE_MAX: failure, which ends the exchange. It may block only if nothing else
	 * is on the loop. */
	size_t (*give)(void *owner, char *to, size_t n);
	unsigned idle_ms; /* ERR_TIMEOUT if nothing comes for this long; 0: no limit */
	unsigned whole_ms; /* the same for all of it, until the end of the answer */
};

struct http_exchange_events {
	/* The status and all headers have come. May be NULL. */
	void (*on_head)(void *owner, struct http_exchange *x, int status);
	/* A piece of the body, borrowed until it returns. */
	void (*on_bytes)(void *owner, struct http_exchange *x, struct str bytes);
	/* The last callback; x is freed after it. e is NULL if the body is complete; else
	 * ERR_TRANSPORT, ERR_TIMEOUT, ERR_NOT_PUBLIC (public_only), ERR_TOO_LARGE (headers), or
	 * ERR_LIMIT (no memory). */
	void (*on_end)(void *owner, struct http_exchange *x, const struct err *e);
};

/* ERR_INVALID: an invalid URL, or a header with a line break. */
struct http_exchange *http_exchange_start(struct http_client *c, const struct http_spec *spec,
					  const struct http_exchange_events *ev, void *owner,
					  struct err *e) MUST_USE;

/* A header of the answer, from on_head to on_end; borrowed; STR_NONE if it is absent. */
struct str http_exchange_header(const struct http_exchange *x, const char *name);

/* The same for a header that may come in several lines, such as a list: appends them all, separated
 * by ", ". */
int http_exchange_headers(const struct http_exchange *x, const char *name, struct buf *to,
			  struct err *e) MUST_USE;

/* Whether any of the request went out: then the server may have acted on it. */
bool http_exchange_sent(const struct http_exchange *x);

/* No callback comes after it; x is freed. */
void http_exchange_cancel(struct http_exchange *x);
