#pragma once
/* The revisions of MCP, and what a message of each may have. */
#include "base/str.h"

struct mcp_profile {
	const char *version;
	bool batch; /* arrays of messages are taken */
	bool annotations; /* tools carry hints */
	bool audio; /* audio content */
	bool progress_message; /* progress has a text */
	bool title; /* title of tools and servers beside the name */
	bool structured; /* outputSchema and structuredContent */
	bool tool_meta; /* tools carry _meta */
};

/* The profile of a revision, or NULL. Static. */
const struct mcp_profile *mcp_profile_find(struct str version);

/* The newest: what is offered to a client that asks for one that we don't have. */
const struct mcp_profile *mcp_profile_latest(void);
