#pragma once
/*
 * An MCP tool, as a const row: how clients see an operation (call/op.h). Its arguments are the
 * operation's request; hints are made from the effect.
 */
#include "call/project.h"
#include "mcp/server/server.h"

/* The version of the tools' contract on the wire: raised whenever a name, a required argument or
 * a meaning changes in a way that clients must see. */
#define TOOL_SCHEMA_VERSION "1.2.0"

/* Members of a result's _meta. */
#define TOOL_FACTS "holt/facts"
#define TOOL_AUDIT_ID "holt/audit_id"
#define TOOL_RECEIPT "holt/receipt"

struct tool {
	const struct op *op;
	/* Another operation with the same request. A call in which the member other_if is true, or
	 * the text other_is where there is one, is that operation; the hints are made from it. */
	const struct op *other;
	const char *other_if, *other_is;
	const char *name, *title;
	/* Of the sets conversation and ui: its name has the operator's prefix before it, and an
	 * agent that speaks for a conversation has it unless it asks for others. */
	bool conversations;
	bool serves; /* it is about servers of modules: not listed where these are switched off */
	const char *doc; /* for the model that chooses a tool */
	/* How the arguments differ from the operation's request. */
	struct op_members members;
	/* Members of the operation's result that are shown; NULL: all of them. */
	const struct field_table *output;
	/* A call may ask the client in the middle, so it may outlive the request that began it. */
	bool asks;
	/* Whether a call may outlive its request. */
	enum mcp_tasking task;
	/*
	 * What a model reads: in "says", "{name}" stands for a member of the request or, if it has
	 * none, of the result; or text() writes it. With neither the result itself is the text, as
	 * JSON. Clients hand their model the texts of a result, its structured content or both, so
	 * data is in one of them only: results that are data have no structured content, but where
	 * programs count on it (both).
	 */
	bool both;
	const char *says;
	int (*text)(const void *result, struct buf *to, struct err *e);
	/* Whether what was asked for has failed, though the operation has an answer: the result has
	 * isError. NULL: it never has. A command's exit code is no such failure. */
	bool (*failed)(const void *result);
	/* Another text behind it, where there is something to say. May be NULL. */
	int (*note)(const void *result, struct buf *to, struct err *e);
	/* Of a result whose text() is data: what that does not tell. It is for programs, in the
	 * result's _meta as TOOL_FACTS. */
	const struct field_table *facts;
};

/* Whether the text of its result is the data. */
static inline bool tool_is_data(const struct tool *t)
{
	return t->facts || !(t->says || t->text || t->both);
}
