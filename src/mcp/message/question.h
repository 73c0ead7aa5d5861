#pragma once
/*
 * What a server asks its client: elicitation/create, sampling/createMessage and roots/list. Here is
 * what each needs of a client, how it is written, and what an answer to it must be; who asks when
 * is mcp/server/ask.c. MCP 2025-11-25 and 2026-07-28, client/elicitation, client/sampling,
 * client/roots.
 */
#include "json/document/write.h"
#include "mcp/message/protocol.h"

/* What a client may declare beside MCP_CAN_…. */
struct mcp_can_more {
	bool roots_change; /* it will tell that they did */
	const struct mcp_extension *extensions;
	size_t n;
};

/* MCP_CAN_… as a ClientCapabilities object. more may be NULL. */
void mcp_can_write(struct json_writer *w, unsigned can, const struct mcp_can_more *more);

/* The MCP_CAN_… that a client must have to be asked this; params may be NULL. */
unsigned mcp_question_needs(enum mcp_ask_kind kind, const struct json_val *params);

const char *mcp_question_method(enum mcp_ask_kind kind); /* static */

/* ERR_BUG where params are no parameters of that request. NULL is fit for roots only. */
int mcp_question_check(enum mcp_ask_kind kind, const struct json_val *params,
		       struct err *e) MUST_USE;

/* The parameters without `_meta`: mode and elicitationId are as the revision has them, whatever
 * stands in params. id: what to take for an elicitationId that is not there. Members of an object
 * that the caller opened and closes. */
void mcp_question_write(struct json_writer *w, enum mcp_ask_kind kind, const struct mcp_profile *p,
			const struct json_val *params, const char *id);

/* ERR_INVALID where v is no result of that request, with a JSON pointer; so too where the content
 * of a form is not as its requestedSchema wants it. ERR_LIMIT without memory. */
int mcp_answer_check(enum mcp_ask_kind kind, const struct json_val *params,
		     const struct json_val *v, struct err *e) MUST_USE;

/* Why a client can't be asked that; static. */
const char *mcp_question_lack(enum mcp_ask_kind kind);

/* -1 with -32021 and what the client would have to declare: MCP_CAN_…. */
int mcp_fault_missing(struct rpc_fault *f, unsigned needs);
/* -1 with the code of base/err_table.h. */
int mcp_fault_of(struct rpc_fault *f, const struct err *e);
