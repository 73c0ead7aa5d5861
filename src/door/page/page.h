#pragma once
/*
 * The web page of a hub: its files, which are parts of this program (ui/), and the log-ins of
 * browsers. What the page shows and does goes through /v1 and /api like the requests of any client.
 *
 * A person gets a link from `holt web`. It has a code in its fragment, which no server and no log
 * sees; the page posts it to /session, once, within LINK_MS. A log-in is two secrets. The cookie is
 * the browser's, and no script can read it. But browsers send cookies to all ports of a host name,
 * so that a hostile server on another port may learn it. The key is the page's: it is in the
 * storage of its origin, which is of one port, and is sent with each request, in a header that no
 * page of another origin can send. Neither opens anything alone.
 */
#include "call/call.h"
#include "http/server/server.h"

struct page;

struct page_options {
	uv_loop_t *loop;
	const char *url; /* where browsers find the page, "" nowhere; may change */
	const char *token; /* SHA-256 of the hub's: log-ins that are kept end with it */
	int folder; /* which has the file of log-ins; -1: they end with the hub */
	/* The principal of this name, where it is there again after a restart; else NULL. */
	const struct principal *(*named)(void *owner, struct str name);
	/* A log-in is over: what goes on for it must end. Never called within a route. */
	void (*on_ended)(void *owner, const struct principal *who);
	/* For the audit log. who has made a link (login.link), has logged in with one (login.begin)
	 * or does so no more (login.end). id: of the log-in, "" of a link. */
	void (*on_login)(void *owner, const struct principal *who, const char *action,
			 const char *id);
	void *owner;
};

/* What o points to is borrowed until page_close(); folder is taken. */
struct page *page_new(const struct page_options *o, struct err *e) MUST_USE;

/* After the door is closed. on_closed is called later. */
void page_close(struct page *p, void (*on_closed)(void *arg), void *arg);

/* Borrowed from p. */
struct http_routes page_routes(struct page *p);

/* For http_options.identify_browser: the log-in's own principal, which may do what the principal
 * may whose link it was, but is never the operator. It lives as long as p. */
const void *page_identify(struct page *p, struct http_request *q);

/* The principal is good for nothing any more: neither are its links and log-ins. */
void page_end_of(struct page *p, const struct principal *who);
