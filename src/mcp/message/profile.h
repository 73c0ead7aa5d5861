#pragma once
/* The revisions of MCP, and what a message of each may have. */
#include "base/str.h"

struct mcp_profile {
	const char *version;
	bool modern; /* each request for itself: no initialize, no session */
	bool batch; /* arrays of messages are taken */
	bool annotations; /* tools carry hints; completions is a capability */
	bool audio; /* audio content */
	bool progress_message; /* progress has a text */
	bool title; /* title beside the name, of whatever has a name */
	bool structured; /* outputSchema and structuredContent: objects */
	bool any_structured; /* the same: any JSON */
	bool meta; /* what is listed, and content, carries _meta */
	bool links; /* content may be a link to a resource; annotations say lastModified */
	bool context; /* completion knows the other arguments */
	bool form; /* the client can be asked to fill in a form */
	bool url; /* the client can be asked to open a URL */
	bool icons; /* icons of whatever has a name; a server's description and website */
	bool old_tasks; /* tasks in the core protocol (2025-11-25) */
};

/* The profile of a revision, or NULL. Static. */
const struct mcp_profile *mcp_profile_find(struct str version);

/* Profile i, oldest first; NULL behind the last. */
const struct mcp_profile *mcp_profile_at(size_t i);

/* The newest legacy one: what initialize offers a client that asks for one that we don't have. */
const struct mcp_profile *mcp_profile_latest(void);
