#pragma once
/*
 * The client for programs without a loop: each function returns when it is done. It wraps
 * mcp/connect/connect.h with a loop of its own. Requests and notifications of the server reach the
 * options' handler only from inside these functions.
 *
 * Only one thread may use a connection at a time. The handler's `ready` and `over` are not called.
 * Inside a callback only mcp_sync_client() and the functions of mcp/client/client.h may be called
 * for the same connection.
 */
#include "mcp/connect/connect.h"

struct mcp_sync;

/* Returns when the server is ready. NULL with the errors of mcp_connect() and `over`. */
struct mcp_sync *mcp_sync_connect(const struct mcp_target *t, const struct mcp_client_options *o,
				  struct err *e) MUST_USE;

/* Ends the session, and the process if there is one, within twice the target's stop_ms.
 * NULL-safe. */
void mcp_sync_close(struct mcp_sync *s);
AUTO_DEFINE(mcp_sync_close, struct mcp_sync)

struct mcp_client *mcp_sync_client(struct mcp_sync *s);
/* What was detected about the server, for the next mcp_target. */
struct mcp_found mcp_sync_found(const struct mcp_sync *s);

/* An answer; owned by the caller, free with mcp_sync_answer_fini(). */
struct mcp_sync_answer {
	struct json_doc *doc; /* the result, or the server's error {code, message, data} */
	bool is_fault;
};
void mcp_sync_answer_fini(struct mcp_sync_answer *a);

/* Sends one request. spec's on_done is ignored; its owner is passed to on_progress and on_task. 0:
 * the server has answered, maybe with an error; -1 with *e as in mcp_answer. */
int mcp_sync_request(struct mcp_sync *s, const struct mcp_request_spec *spec,
		     struct mcp_sync_answer *ret, struct err *e) MUST_USE;

/* tools/call. arguments: JSON object or STR_NONE. The result may have isError. */
int mcp_sync_call(struct mcp_sync *s, const char *tool, struct str arguments,
		  struct mcp_sync_answer *ret, struct err *e) MUST_USE;

/* A whole list as a JSON array: "tools", "resources", … of mcp_client_list(). */
int mcp_sync_list(struct mcp_sync *s, const char *what, struct mcp_sync_answer *ret,
		  struct err *e) MUST_USE;

/* Handles messages of the server for ms; -1 with *e as soon as the connection has ended. */
int mcp_sync_wait(struct mcp_sync *s, unsigned ms, struct err *e) MUST_USE;
