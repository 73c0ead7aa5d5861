#pragma once
/*
 * Connections to MCP servers on a libuv loop, whatever they speak: a program over stdio, Streamable
 * HTTP of either era, or HTTP+SSE. Which it is is found out, and told, so that it need not be found
 * out again.
 *
 * stdio: server/discover is asked of a process of its own first, since some servers exit and some
 * are silent at it; where that is no modern server, the one that is asked to initialize is started
 * anew, and has seen nothing else. HTTP: a modern request, then initialize, then GET for the
 * `endpoint` event; what was silent at the first is asked it again at the end. basic/versioning,
 * basic/transports.
 *
 * A link keeps its loop alive until it is closed. SIGPIPE is set to be ignored for the process. A
 * server whose conversation is over is not started again: that is for the link's owner, with
 * another link.
 */
#include <uv.h>

#include "mcp/client/client.h"
#include "mcp/connect/auth.h"

struct mcp_link;

enum mcp_wire { MCP_WIRE_FIND, MCP_WIRE_STDIO, MCP_WIRE_HTTP, MCP_WIRE_SSE };

/* What was found out about a server; may be kept and given for the next connection. */
struct mcp_found {
	enum mcp_wire wire;
	enum mcp_era era; /* MCP_BROKEN: not known */
};

struct mcp_target {
	/* Either a program: an argument vector, never a command line. */
	const char *const *argv; /* NULL-terminated; argv[0] by PATH */
	const char *const *
		env; /* NULL-terminated, all of it; NULL: PATH, HOME, LANG, … of ours, no secrets */
	const char *const
		*env_more; /* NULL-terminated; over what is there where env is NULL; may be NULL */
	const char *cwd; /* NULL: ours */
	void (*on_stderr)(void *owner, struct str bytes); /* NULL: dropped */
	/* or an address, http: or https: */
	const char *url;
	const char *unix_socket; /* may be NULL */
	const struct http_header *headers; /* sent with each request */
	size_t headers_n;
	struct mcp_auth *auth; /* may be NULL; borrowed until the link is gone */
	/* no private, loopback, link-local … address is connected to, and no proxy used */
	bool public_only;

	struct mcp_found only; /* nothing else is tried; zeroes: everything */
	struct mcp_found known; /* zeroes: find out. What does not hold is found out anew */
	const char *version; /* only this revision; NULL: the newest that both have */
	/* What else a server may be is tried when it has been silent for so long: 0: 3 s, 10 s for
	 * an address. One that is only slow is asked once more after all that, for as long as
	 * start_ms allows. */
	unsigned probe_ms;
	/* for all of the beginning, without what its auth asks people: 0: 30 s */
	unsigned start_ms;
	/* after the end of its input, and again after SIGTERM; for the end of a session: 0: 2 s */
	unsigned stop_ms;
	void *owner; /* of on_stderr */
};

/* Copies target. The client's handler hears `ready` or `over` later, never from inside. NULL with
 * ERR_INVALID (no program and no address, or both; a URL or revision that is none; nothing left to
 * try), ERR_COMMAND_NOT_FOUND, ERR_COMMAND_NOT_RUN, ERR_LIMIT. */
struct mcp_link *mcp_connect(uv_loop_t *loop, const struct mcp_target *t,
			     const struct mcp_client_options *o, struct err *e) MUST_USE;

/* For requests; there from the start, until the link is closed. */
struct mcp_client *mcp_link_client(struct mcp_link *l);
/* From `ready` on. */
struct mcp_found mcp_link_found(const struct mcp_link *l);
/* Of a program that has ended: its wait status; -1 while it runs, or where there is none. */
int mcp_link_status(const struct mcp_link *l);

/* SIGKILL to the process and its group, where there is one: for who can't wait for
 * mcp_link_close(), such as a program that is about to end. */
void mcp_link_kill(struct mcp_link *l);

/* Ends the session and the process (all of its group): its input ends, then SIGTERM, then SIGKILL.
 * Its client is gone, and no handler is called after it but on_closed (may be NULL), later, when l
 * is gone. */
void mcp_link_close(struct mcp_link *l, void (*on_closed)(void *owner), void *owner);
