#pragma once
/*
 * A client of an MCP server, to test with what the server asks: a session over lines, in which each
 * message that is sent is kept parsed, and clocks that the test moves. The server is the test's
 * own.
 *
 */
#include "json/document/json.h"
#include "mcp/server/server.h"

enum { PEER_SENT = 512 };

struct peer {
	struct mcp_server *server;
	struct mcp_session *session;
	const char *principal;
	const char *caps; /* client capabilities of modern requests, JSON */
	unsigned ids; /* of our requests, ever */
	struct peer_sent {
		struct json_doc *doc;
		enum mcp_out_kind kind;
		int status;
		void *stream;
	} sent[PEER_SENT]; /* in order */
	unsigned sent_n;
};

/* One clock for all servers: milliseconds. Begins at 1,000,000 */
extern uint64_t peer_clock;

/* A server with those options: name, version and clocks are filled in. Principals are the peers. */
struct mcp_server *peer_server(const struct mcp_server_options *o);

/* A client of it; principal is borrowed. False without memory. */
bool peer_init(struct peer *p, struct mcp_server *srv, const char *principal);
/* The same, but a legacy session over HTTP; its messages have no stream. */
bool peer_init_http(struct peer *p, struct mcp_server *srv, const char *principal);
void peer_fini(struct peer *p); /* closes the session */

/* Sends one message as it is. */
void peer_say(struct peer *p, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* initialize and notifications/initialized; fails the test unless the revision is agreed on. */
void peer_initialize(struct peer *p, const char *version, const char *caps);

/* A modern request with id, _meta and the members of params ("\"name\":\"x\"", may be ""); its
 * response, or NULL where there is none yet. Borrowed until peer_fini(). */
const struct json_val *peer_modern(struct peer *p, const char *method, const char *fmt, ...)
	PRINTF_LIKE(3, 4);
/* The same for a legacy session. */
const struct json_val *peer_legacy(struct peer *p, const char *method, const char *fmt, ...)
	PRINTF_LIKE(3, 4);

/* The response to request id; NULL for none. */
const struct json_val *peer_response(const struct peer *p, unsigned id);
/* The i-th request or notification of that method from the end: 0 is the last. NULL for none. */
const struct json_val *peer_sent(const struct peer *p, const char *method, unsigned i);
unsigned peer_count(const struct peer *p, const char *method);

/* A value below v by path ("result|inputRequests|a"); NULL where there is none. */
const struct json_val *at(const struct json_val *v, const char *path);
/* The string there, for assert_string_equal(); "" where there is none. Static, for one use. */
const char *text_at(const struct json_val *v, const char *path);
int64_t int_at(const struct json_val *v, const char *path); /* INT64_MIN: none */
/* The text of the first content of a result. */
const char *content_of(const struct json_val *response);
