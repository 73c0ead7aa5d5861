#pragma once
/* Shared by the files behind agents/acp/acp.h. */
#include <stdio.h>
#include <stdlib.h>

#include "agents/acp/acp.h"
#include "json/document/put.h"
#include "rpc/rpc.h"

enum { ACP_PENDING_MAX = 8, ACP_AUTH_REQUIRED = -32000, ACP_NO_RESOURCE = -32002 };

/* Requests of ours. */
enum acp_method {
	ACP_NONE,
	ACP_INITIALIZE,
	ACP_AUTHENTICATE,
	ACP_SESSION_NEW,
	ACP_SESSION_LOAD,
	ACP_SESSION_RESUME,
	ACP_PROMPT,
	ACP_SET_MODE, /* these three as enum acp_setting */
	ACP_SET_MODEL,
	ACP_SET_OPTION,
	ACP_METHODS,
};

struct acp_pending {
	enum acp_method method; /* ACP_NONE: unused */
	uint64_t id;
};

struct acp {
	struct acp_options o;
	enum acp_state state;
	unsigned asked_version, version;
	/* As the agent says. */
	bool can_load, can_resume, can_http, can_stdio, can_folders, can_images;
	bool authenticated;
	struct buf prompt; /* parameters of one that may need a log-in first; empty: none */
	bool accepted; /* version 2: it has the prompt, and tells when it is idle */
	bool refused, was_refused; /* the last prompt; the one before */
	char *session_id; /* owned; NULL: not open */
	char methods[128]; /* names of authMethods, for a message */
	uint64_t ids, strays;
	struct acp_pending pending[ACP_PENDING_MAX];
	struct ask *asks;
	unsigned asks_n;
	size_t asks_bytes, line_n; /* of their messages; of the one that is read */
	unsigned entered; /* public functions on the stack */
	bool freed;
};

/* A request of the agent. */
struct ask {
	struct acp_ask p; /* first: what the owner has */
	struct ask *next, **at;
	struct acp *of;
	struct rpc_id id;
	bool leaving; /* its owner is told so at the moment, and may end the session for it */
	size_t bytes; /* of its message */
	struct json_doc *doc;
	struct arena arena;
};

/* ---- acp.c ---------------------------------------------------------------------------------- */

struct acp *acp_enter(struct acp *a);
void acp_leave(struct acp *a); /* NULL-safe */
AUTO_DEFINE(acp_leave, struct acp)

bool acp_lives(const struct acp *a);
bool acp_is_open(const struct acp *a); /* the session is */
void acp_end(struct acp *a, const struct err *why);
void acp_end_turn(struct acp *a, struct str why, const struct err *e);

/* Sends the prompt that waited for a log-in. */
void acp_prompt_again(struct acp *a);

/* ---- send.c --------------------------------------------------------------------------------- */

/* A message while it is written: acp_out_X(), its one value, acp_out_end(). */
struct acp_out {
	struct acp *a;
	struct buf b;
	struct json_writer w;
	struct acp_pending *pending; /* of a request; NULL: there are too many */
};

void acp_out_request(struct acp_out *m, struct acp *a, enum acp_method method);
void acp_out_result(struct acp_out *m, struct acp *a, const struct rpc_id *id);
void acp_out_notification(struct acp_out *m, struct acp *a, const char *method);
/* Sends it. -1: it can't be; nothing of it is sent. */
int acp_out_end(struct acp_out *m, struct err *e) MUST_USE;
void acp_send_fault(struct acp *a, const struct rpc_id *id, const struct rpc_fault *f);

/* Takes the request that an id belongs to. ACP_NONE: it is none of ours. */
enum acp_method acp_pending_take(struct acp *a, const struct rpc_id *id);

/* The agent's error, as one of ours. */
int acp_fault_err(enum acp_method method, const struct json_val *fault, struct err *e);

/* ---- open.c: from initialize to the session -------------------------------------------------- */

/* Logs in by the method of the options. */
void acp_authenticate(struct acp *a);
void acp_open_answer(struct acp *a, enum acp_method method, const struct json_val *result,
		     const struct json_val *fault);

/* ---- update.c ------------------------------------------------------------------------------- */

void acp_update_take(struct acp *a, const struct json_val *params);

/* ---- ask.c ---------------------------------------------------------------------------------- */

/* Takes *doc if it is an ask. */
void acp_ask_take(struct acp *a, const struct rpc_msg *m, struct json_doc **doc);
/* The agent needs no answer to the request of this id. */
void acp_ask_cancelled(struct acp *a, const struct rpc_id *id);
/* Ends all, or permissions alone, and tells the owner. */
void acp_ask_withdraw(struct acp *a, bool all);
void acp_ask_drop(struct acp *a); /* the same, and nobody is told */
