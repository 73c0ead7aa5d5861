#pragma once
/* What the parts of the example share: client.c connects and answers, work.c has what is done. */
#include <json/document/write.h>
#include <mcp/client/client.h>
#include <mcp/connect/connect.h>

struct job;
struct login;

struct client {
	uv_loop_t loop;
	struct mcp_link *link;
	struct login *login; /* may be NULL */
	const char *scenario; /* of the conformance suite; "" for none */
	struct mcp_json_doc *context; /* what it says beside; may be NULL */
	bool modern; /* its protocol version */
	struct job *jobs, **last; /* that are still to be done, in their order */
	unsigned aside; /* calls beside them */
	bool closing;
	int status; /* exit */
};

/* Does everything that there is to do with a server, one after the other, then closes the link. */
void work(struct client *c);
void work_free(struct client *c);

/* A call of a tool while the server waits for an answer to its question. */
void work_aside(struct client *c, const char *tool);

/* Ends the program when the link is closed. */
void leave(struct client *c, int status);
