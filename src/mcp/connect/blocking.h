#pragma once
/*
 * The client for programs that have no loop: each function returns when it is done. Around
 * mcp/connect/connect.h, with a loop of its own; what servers ask and tell meanwhile reaches the
 * options' handler from inside of these functions, and only then.
 *
 * One thread uses a connection at a time. A handler's `ready` and `over` are not called. In a
 * callback of a connection its own functions can't be called, but mcp_sync_client() and what that
 * is good for.
 */
#include "mcp/connect/connect.h"

struct mcp_sync;

/* Returns when the server may be called. NULL with what mcp_connect() and `over` say. */
struct mcp_sync *mcp_sync_connect(const struct mcp_target *t, const struct mcp_client_options *o,
				  struct err *e) MUST_USE;

/* Ends the session, and the process where there is one; at most twice the target's stop_ms.
 * NULL-safe. */
void mcp_sync_close(struct mcp_sync *s);
AUTO_DEFINE(mcp_sync_close, struct mcp_sync)

struct mcp_client *mcp_sync_client(struct mcp_sync *s);
/* What was found out about the server, for the next mcp_target. */
struct mcp_found mcp_sync_found(const struct mcp_sync *s);

/* An answer that came; owned. */
struct mcp_sync_answer {
	struct json_doc *doc; /* the result, or the server's error {code, message, data} */
	bool is_fault;
};
void mcp_sync_answer_fini(struct mcp_sync_answer *a);

/* One request; on_done of spec is ignored, its owner is that of on_progress and on_task. 0 where
 * the server has answered, which may be by an error; -1 with *e as mcp_answer has it. */
int mcp_sync_request(struct mcp_sync *s, const struct mcp_request_spec *spec,
		     struct mcp_sync_answer *ret, struct err *e) MUST_USE;

/* tools/call. arguments: JSON object or STR_NONE. The result may say isError. */
int mcp_sync_call(struct mcp_sync *s, const char *tool, struct str arguments,
		  struct mcp_sync_answer *ret, struct err *e) MUST_USE;

/* A whole list as a JSON array: "tools", "resources", … of mcp_client_list(). */
int mcp_sync_list(struct mcp_sync *s, const char *what, struct mcp_sync_answer *ret,
		  struct err *e) MUST_USE;

/* Lets the server speak for that long; -1 with *e as soon as the conversation is over. */
int mcp_sync_wait(struct mcp_sync *s, unsigned ms, struct err *e) MUST_USE;
