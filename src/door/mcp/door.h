#pragma once
/* Operations as MCP tools, and files of sandboxes as MCP resources, for any transport. The data of
 * a session is its principal, a const struct principal *, set by the code that opened the
 * transport. */
#include "call/call.h"
#include "mcp/server/server.h"

struct mcp_door;

struct mcp_door_options {
	/* The tools that clients may have (tools_choose()), and do where they ask for none; empty:
	 * they may have all, and else those of tools_usual(). */
	struct mcp_choice only;
	bool workspaces; /* there are some, so that the tools for coding are usual */
	bool readonly; /* only tools that change nothing */
	struct str prefix; /* before the names of tools of conversations; may be STR_NONE */
	/* Profiles of the operator's file, with commas between, of sessions that name none; may be
	 * STR_NONE. Borrowed until mcp_door_free(). */
	struct str profile;
	/* The modules of the gateway that sessions have that name none, likewise; STR_NONE: all. */
	struct str modules;
	bool full; /* lists of tools have the whole texts of modules */
};
/* Borrows ops until mcp_door_free(), and is in use until their hub is closed. o is copied. */
struct mcp_door *mcp_door_new(struct ops *ops, const struct mcp_door_options *o,
			      struct err *e) MUST_USE;
/* Whether who may have the door's profile. */
int mcp_door_check(const struct mcp_door *d, const struct principal *who, struct err *e) MUST_USE;
/* The operator's file was read again: clients hear that the list of tools may be another. */
void mcp_door_reload(struct mcp_door *d);
/* Before the hub is closed: calls whose clients were to come back are cancelled. */
void mcp_door_end(struct mcp_door *d);
/* The hub is closed, and no session is left. NULL-safe. */
void mcp_door_free(struct mcp_door *d);
AUTO_DEFINE(mcp_door_free, struct mcp_door)

struct mcp_server *mcp_door_server(struct mcp_door *d);
