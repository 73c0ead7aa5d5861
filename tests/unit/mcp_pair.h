#pragma once
/*
 * A client and a server of MCP in one process: what one says waits in a queue until the test lets
 * it go to the other, over lines, or as Streamable HTTP has it, with a stream for each modern
 * request. The clock is peer_clock (mcp_peer.h).
 *
 */
#include "mcp/client/client.h"
#include "mcp_peer.h"

enum { PAIR_KINDS = 4, PAIR_POSTS = 256, PAIR_TEXT = 256 };

struct pair {
	struct mcp_server *server;
	struct mcp_session *session;
	struct mcp_client *client;
	bool streams;
	bool mute; /* what the server says is lost */
	struct pair_item *first, *last; /* on the way */
	struct pair_post *posts;
	unsigned to_server, to_client; /* messages so far */

	/* What the client's owner heard. */
	unsigned ready, over, asked, withdrawn, url_done, notified, logs;
	struct err over_err;
	unsigned changed; /* lists, or'ed */
	char updated[PAIR_TEXT], last_log[PAIR_TEXT], last_notified[PAIR_TEXT];
	enum mcp_level last_level;
	/* What it answers by kind; NULL: `question` is left open, "": it is refused. */
	const char *answers[PAIR_KINDS];
	struct mcp_question *question;
};

/* One request, and how it ended. A zeroed one is ready. */
struct want {
	bool done;
	struct json_doc *result, *fault; /* freed by want_fini() */
	char *text;
	int code;
	struct err e; /* ERR_NONE: another ended it */
	unsigned progress; /* how often */
	double last_progress;
	char task[PAIR_TEXT];
	size_t listed, dropped; /* of a list */
	char names[PAIR_TEXT * 4]; /* of what was listed, each with a space behind it */
};

/* A client for a server of its own with those options, in that revision; not begun. */
void pair_init(struct pair *p, const struct mcp_server_options *server,
	       const struct mcp_client_options *client, bool streams);
/* Begins, and fails the test unless that revision is agreed on. */
void pair_start(struct pair *p, const char *version);
void pair_fini(struct pair *p);
/* Lets everything through until nothing is on the way. */
void pair_run(struct pair *p);
/* The same, with time that passes in between, until w is done. */
void pair_wait(struct pair *p, struct want *w);

/* For a request's on_done, on_progress, on_task; the owner is the want. */
void want_done(void *want, const struct mcp_answer *a);
void want_progress(void *want, const struct mcp_progress *now);
void want_task(void *want, struct str id);
void want_listed(void *want, const struct mcp_listed *l);
void want_fini(struct want *w);

/* A whole tools/call. args: JSON, may be NULL. */
void pair_call(struct pair *p, const char *tool, const char *args, struct want *w);
void pair_request(struct pair *p, const char *method, const char *params, struct want *w);
void pair_list(struct pair *p, const char *what, struct want *w);
/* The text of the result's first content. */
const char *want_text(const struct want *w);
