#pragma once
/*
 * What authorizes requests of a client over HTTP: a fixed token, or OAuth (mcp/oauth/oauth.h). A
 * transport asks for headers before each request and tells of each refusal.
 *
 * All of these come from the loop, never from inside of a call of the transport's owner. So they
 * may call that owner, and it may do anything, such as to close the link: then cancel() comes while
 * they are on the stack, and the ask is gone.
 */
#include "base/err.h"
#include "http/message/header.h"

struct mcp_auth;
struct mcp_auth_ask; /* a question to it without an answer */

struct mcp_auth_ops {
	/* The headers of a request: Authorization, DPoP. done comes once, now or later, unless the
	 * ask is cancelled; headers are borrowed for it. */
	void (*headers)(struct mcp_auth *a, struct mcp_auth_ask *ask, const char *method,
			const char *url);
	/* The server refused with 401 or 403. challenge: WWW-Authenticate (STR_NONE: none); nonce:
	 * DPoP-Nonce. done with e NULL: send again, with headers anew; else with why not. */
	void (*refused)(struct mcp_auth *a, struct mcp_auth_ask *ask, int status,
			struct str challenge, struct str nonce);
	/* The server let a request in: an answer is 200 and says its type, what needs none was
	 * taken with 202. nonce: DPoP-Nonce of the answer. May be NULL. */
	void (*answered)(struct mcp_auth *a, struct str nonce);
	void (*cancel)(struct mcp_auth *a, struct mcp_auth_ask *ask); /* no done after it */
};

/* First member of whatever it is. */
struct mcp_auth {
	const struct mcp_auth_ops *ops;
};

/* The asker's; zeroed but for done and owner. It lives until done or cancel. */
struct mcp_auth_ask {
	void (*done)(void *owner, const struct http_header *headers, size_t n, const struct err *e);
	void *owner;
	void *data; /* the mcp_auth's */
	unsigned tries; /* refusals so far of the same request; counted by the asker */
};
