#pragma once
/*
 * An MCP server to test with: its tools, a clock that the test moves, and a session whose messages
 * are gathered. Used by the unit tests and the fuzz targets.
 *
 *	echo	gives its text back
 *	add	structured: the sum of a and b
 *	fail	fails with ERR_SANDBOX_NOT_FOUND
 *	media	one content of every type
 *	hold	ends when the test says so
 */
#include "base/buf.h"
#include "mcp/server/server.h"

enum { FIXTURE_HELD = 512, FIXTURE_SENT = 1024 };

struct fixture {
	struct mcp_server *server;
	struct mcp_session *session;
	uint64_t now_ms;
	bool congested;
	bool end_on_cancel; /* hold ends when it is cancelled, else the test ends it */
	unsigned cancels; /* on_cancel of hold so far */
	unsigned idles;
	struct mcp_call *held[FIXTURE_HELD]; /* in the order of their start; NULL once ended */
	unsigned held_n;
	char *sent[FIXTURE_SENT]; /* owned; in order */
	void *streams[FIXTURE_SENT];
	unsigned sent_n;
};

/* overrides: limits to use in place of the defaults; its name and so on are ignored, its handler
 * too unless it has an offer of its own (mcp_full.h). May be NULL. False without memory. */
bool fixture_init(struct fixture *f, const struct mcp_server_options *overrides);
void fixture_fini(struct fixture *f);

void fixture_say(struct fixture *f, const char *text);

/* Ends call i of held with the text "done". */
void fixture_end(struct fixture *f, unsigned i);
void fixture_end_all(struct fixture *f);

/* Forgets what was sent. */
void fixture_clear(struct fixture *f);

/* All tools, for checks of their tables. */
const struct mcp_tool *const *fixture_tools(size_t *ret_n);
