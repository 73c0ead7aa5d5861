#pragma once
/*
 * The questions of a server to its client: elicitation/create, sampling/createMessage and
 * roots/list. Here is which capabilities each needs, how it is written, and how its answer is
 * checked; mcp/server/ask.c asks. MCP 2025-11-25 and 2026-07-28, client/elicitation,
 * client/sampling, client/roots.
 */
#include "json/document/write.h"
#include "mcp/message/protocol.h"

/* Details that a client may declare besides MCP_CAN_…. */
struct mcp_can_more {
	bool roots_change; /* it will report changes of its roots */
	const struct mcp_extension *extensions;
	size_t n;
};

/* Writes MCP_CAN_… as a ClientCapabilities object. more may be NULL. */
void mcp_can_write(struct json_writer *w, unsigned can, const struct mcp_can_more *more);

/* The capabilities (MCP_CAN_…) that a client needs for this question; params may be NULL. */
unsigned mcp_question_needs(enum mcp_ask_kind kind, const struct json_val *params);

const char *mcp_question_method(enum mcp_ask_kind kind); /* static */

/* ERR_BUG unless params are valid parameters of that request. NULL is valid for roots only. */
int mcp_question_check(enum mcp_ask_kind kind, const struct json_val *params,
		       struct err *e) MUST_USE;

/* Writes the parameters without `_meta`, as members of an open object. mode and elicitationId
 * follow the revision, whatever params say. id is used if params have no elicitationId. */
void mcp_question_write(struct json_writer *w, enum mcp_ask_kind kind, const struct mcp_profile *p,
			const struct json_val *params, const char *id);

/* ERR_INVALID, with a JSON pointer, unless v is a valid result of that request; the content of a
 * form is checked against its requestedSchema. ERR_LIMIT: no memory. */
int mcp_answer_check(enum mcp_ask_kind kind, const struct json_val *params,
		     const struct json_val *v, struct err *e) MUST_USE;

/* Why a client can't be asked that; static. */
const char *mcp_question_lack(enum mcp_ask_kind kind);

/* Returns -1 with -32021 and the missing capabilities (MCP_CAN_…). */
int mcp_fault_missing(struct rpc_fault *f, unsigned needs);
/* Returns -1 with the code of base/err_table.h. */
int mcp_fault_of(struct rpc_fault *f, const struct err *e);
