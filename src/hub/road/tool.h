#pragma once
/*
 * One tool, as a const row: what clients see of it, the tables of its arguments and its result, and
 * the function that runs it. The tables print the schemas, decode the call and encode the answer.
 */
#include "json/field/field.h"
#include "mcp/server/server.h"

struct call;

/* The version of the tools' contract on the wire: raised whenever a name, a required argument or
 * a meaning changes in a way that clients must see. */
#define TOOL_SCHEMA_VERSION "1.0.0"

struct tool {
	const char *name, *title;
	const char *doc; /* for the model that chooses among tools */
	const struct field_table *input, *output;
	enum mcp_hint read_only, destructive, idempotent, open_world;
	enum mcp_tasking task; /* whether a call may outlive its request */

	/* Runs the call: params is the input table's struct, valid until the call ends. Leads to
	 * exactly one call_answer() or call_fail(), now or later. */
	void (*run)(struct call *c, const void *params);
};
