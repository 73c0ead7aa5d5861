#pragma once
/*
 * Tasks: calls of tools that outlive their request. task_call.c makes them of calls, task.c keeps
 * them, task_view.c is what clients see of them, task_method.c what they say about them. Two protocols, one store: the extension io.modelcontextprotocol/tasks for modern
 * clients, and what was in the core of 2025-11-25 (basic/utilities/tasks). A task is seen by the
 * principal that it was made for, in the era in which it was made; for all others it is not there.
 */
#include "base/id.h"
#include "mcp/server/internal.h"

enum {
	MCP_TASK_WAITERS = 8,
	MCP_TASK_TTL_MAX = 24 * 3600 * 1000,
};

enum mcp_task_state {
	MCP_TASK_WORKING,
	MCP_TASK_ASKS, /* the client has questions to answer */
	MCP_TASK_DONE, /* has a result */
	MCP_TASK_FAULT, /* has a fault */
	MCP_TASK_CANCELLED,
};

struct mcp_task {
	struct inflight_entry entry; /* first: found by it, in mcp_tasks.table. Its id as JSON */
	struct mcp_server *server;
	struct mcp_call *call; /* NULL once it has ended */
	const struct mcp_profile *profile;
	unsigned session; /* number of the one that it came from */
	enum mcp_task_state state;
	char id[ID_MAX];
	char *owner; /* the principal's name */
	char *message; /* of its status; may be NULL */
	uint64_t serial; /* of all ever made */
	uint64_t made_ms, changed_ms; /* wall clock */
	uint64_t expires_ms; /* monotonic */
	unsigned ttl_ms, poll_ms;
	size_t bytes; /* counted for it */
	char *result; /* MCP_TASK_DONE: JSON object */
	size_t result_n;
	bool is_error; /* the tool said so */
	struct rpc_fault *fault; /* MCP_TASK_FAULT */
	struct mcp_call *waiters[MCP_TASK_WAITERS]; /* tasks/result; NULL: free place */
};

struct mcp_tasks {
	struct inflight *table;
	uint64_t made; /* ever */
	uint64_t expires_ms; /* of the first that will; or before */
	size_t bytes;
};

/* A task of the call, in the store, without a time yet. ERR_LIMIT where there is no room. */
struct mcp_task *mcp_task_add(struct mcp_call *c, struct err *e) MUST_USE;
void mcp_task_set_ttl(struct mcp_task *t, unsigned ttl_ms); /* from now; within bounds */
void mcp_task_set_message(struct mcp_task *t, const char *message); /* copied, cut; may be NULL */

/* The task of that id, if q may see it; NULL with the fault -32602. */
struct mcp_task *mcp_task_find(const struct mcp_request *q, struct rpc_fault *f) MUST_USE;
bool mcp_task_is_for(const struct mcp_task *t, const struct mcp_profile *p, struct str owner);
bool mcp_task_has_ended(const struct mcp_task *t);

/* Its members, for an object that is open; details are result, error and inputRequests. */
void mcp_task_write(struct json_writer *w, const struct mcp_task *t, bool details);

/* It changed: tells who wants to know. */
void mcp_task_changed(struct mcp_task *t);

/* Ends it as cancelled, and its call if that can be. */
void mcp_task_cancel(struct mcp_task *t);

/* 2025-11-25: answers a tasks/result, which is gone then. t has ended. */
void mcp_task_deliver(struct mcp_task *t, struct mcp_call *waiter);

/* 2025-11-25: its questions go to whoever waits for the result. */
void mcp_task_send_questions(struct mcp_task *t);
