#pragma once
/* The revisions of MCP, and what their messages may contain. */
#include "base/str.h"

struct mcp_profile {
	const char *version;
	bool modern; /* each request is self-contained: no initialize, no session */
	bool batch; /* arrays of messages are accepted */
	bool annotations; /* tools carry hints; completions is a capability */
	bool audio; /* audio content */
	bool progress_message; /* progress may have a text */
	bool title; /* whatever has a name may have a title */
	bool structured; /* outputSchema and structuredContent: objects */
	bool any_structured; /* the same with any JSON */
	bool meta; /* content and list entries may carry _meta */
	bool links; /* content may be a link to a resource; annotations have lastModified */
	bool context; /* a completion gets the other arguments */
	bool form; /* the client can be asked to fill in a form */
	bool url; /* the client can be asked to open a URL */
	/* whatever has a name may have icons; servers have a description and a website */
	bool icons;
	bool old_tasks; /* tasks in the core protocol (2025-11-25) */
};

/* The profile of a revision, or NULL. Static. */
const struct mcp_profile *mcp_profile_find(struct str version);

/* Profile i, oldest first; NULL after the last. */
const struct mcp_profile *mcp_profile_at(size_t i);

/* The newest legacy revision, offered by initialize to a client that asks for an unknown one. */
const struct mcp_profile *mcp_profile_latest(void);
