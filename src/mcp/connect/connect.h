#pragma once
/*
 * Connections to MCP servers on a libuv loop: a program over stdio, which the link or its owner
 * runs, Streamable HTTP of either era, or HTTP+SSE. The library detects which one a server speaks
 * and reports it (struct mcp_found), so that the next connection can skip the detection.
 *
 * stdio: server/discover is sent to a process of its own first, since some servers exit or stay
 * silent on it. If that is no modern server, a new process is started for initialize. HTTP: a
 * modern request is tried, then initialize, then GET for the `endpoint` event. A server that was
 * silent at the first request is sent it again at the end. basic/versioning, basic/transports.
 *
 * A link keeps its loop alive until it is closed. The process ignores SIGPIPE from then on. A
 * server that has ended is not restarted: the owner opens another link for that.
 */
#include <uv.h>

#include "mcp/client/client.h"
#include "mcp/connect/auth.h"

struct mcp_link;

enum mcp_wire { MCP_WIRE_FIND, MCP_WIRE_STDIO, MCP_WIRE_HTTP, MCP_WIRE_SSE };

/* What was detected about a server; may be kept for the next connection. */
struct mcp_found {
	enum mcp_wire wire;
	enum mcp_era era; /* MCP_BROKEN: not known */
};

/* A program that the owner of a link runs (struct mcp_target.runner), such as one in a sandbox. */
struct mcp_program;
struct mcp_runner {
	/* Starts it, maybe again after it has ended. Returns what the others take; NULL with *e.
	 * Nothing is told from inside any of these. */
	void *(*start)(void *owner, struct mcp_program *p, struct err *e);
	/* Queues a line for its input, whose end is added. */
	void (*write)(void *run, struct str line);
	/* Ends it: the end of its input, and after stop_ms by force. mcp_program_gone() follows,
	 * and nothing else. Called once, also for one that has ended. */
	void (*close)(void *run, unsigned stop_ms);
	/* Ends it at once; close() still follows. */
	void (*kill)(void *run);
};
/* What the owner tells of it: output as it comes; that it has ended, or is of no use; and once it
 * was closed, that nothing of it is left. */
void mcp_program_said(struct mcp_program *p, struct str bytes);
void mcp_program_ended(struct mcp_program *p, const struct err *why);
void mcp_program_gone(struct mcp_program *p);

struct mcp_target {
	/* Either a program: an argument vector, never a command line. */
	const char *const *argv; /* NULL-terminated; argv[0] by PATH */
	/* the whole environment, NULL-terminated; NULL: PATH, HOME, LANG, … of this process, no
	 * secrets */
	const char *const *env;
	/* added to that default when env is NULL, NULL-terminated; may be NULL */
	const char *const *env_more;
	const char *cwd; /* NULL: that of this process */
	bool tethered; /* its process group ends with this process, also if that is killed */
	/* Its standard error, and lines of its standard output that are no messages; NULL: dropped
	 */
	void (*on_stderr)(void *owner, struct str bytes);
	/* or one that the owner runs, borrowed until the link is gone */
	const struct mcp_runner *runner;
	/* or an address, http: or https: */
	const char *url;
	const char *unix_socket; /* may be NULL */
	const struct http_header *headers; /* sent with each request */
	size_t headers_n;
	struct mcp_auth *auth; /* may be NULL; borrowed until the link is gone */
	/* refuse private, loopback, link-local … addresses, and use no proxy */
	bool public_only;

	struct mcp_found only; /* try only this; zeroes: everything */
	/* from an earlier connection, detected anew if wrong; zeroes: detect */
	struct mcp_found known;
	const char *version; /* only this revision; NULL: the newest that both have */
	/* Time until a silent server is tried with the next protocol; 0: 3 s, 10 s for an address.
	 * A slow server is asked once more at the end, until start_ms. */
	unsigned probe_ms;
	/* limit of the whole start, without the time that log-ins take; 0: 30 s */
	unsigned start_ms;
	/* wait after closing its input, again after SIGTERM, and for the end of a session; 0: 2
	 * s */
	unsigned stop_ms;
	void *owner; /* of on_stderr and of the runner */
};

/* Copies target. The client's handler gets `ready` or `over` later, never from inside. NULL with
 * ERR_INVALID (not exactly one of programs and address; a bad URL or revision; nothing left to
 * try), ERR_COMMAND_NOT_FOUND, ERR_COMMAND_NOT_RUN, ERR_LIMIT. */
struct mcp_link *mcp_connect(uv_loop_t *loop, const struct mcp_target *t,
			     const struct mcp_client_options *o, struct err *e) MUST_USE;

/* For requests; valid until the link is closed. */
struct mcp_client *mcp_link_client(struct mcp_link *l);
/* Valid from `ready` on. */
struct mcp_found mcp_link_found(const struct mcp_link *l);
/* The wait status of a program that has ended; -1 while it runs, or without a program. */
int mcp_link_status(const struct mcp_link *l);

/* Sends SIGKILL to the process and its group, if there is one: for a caller that can't wait for
 * mcp_link_close(), such as a program that is about to end. */
void mcp_link_kill(struct mcp_link *l);

/* Ends the session and the process with its group: closes its input, then SIGTERM, then SIGKILL.
 * The client is freed. The only later callback is on_closed (may be NULL), once l is freed. */
void mcp_link_close(struct mcp_link *l, void (*on_closed)(void *owner), void *owner);
