#pragma once
/*
 * Authorization of a client's HTTP requests: a fixed token, or OAuth (mcp/oauth/oauth.h). The
 * transport asks for headers before each request and reports each refusal.
 *
 * These functions are called from the loop, never from inside a call of the transport's owner. They
 * may therefore call the owner, which may do anything, such as close the link. Then cancel() comes
 * while they are on the stack, and the ask is gone.
 */
#include "base/err.h"
#include "http/message/header.h"

struct mcp_auth;
struct mcp_auth_request; /* a pending question to it */

struct mcp_auth_ops {
	/* Asks for the headers of a request: Authorization, DPoP. Calls done once, now or later,
	 * unless the ask is cancelled; headers are borrowed for that call. */
	void (*headers)(struct mcp_auth *a, struct mcp_auth_request *ask, const char *method,
			const char *url);
	/* The server refused with 401 or 403. challenge: WWW-Authenticate (STR_NONE: none); nonce:
	 * DPoP-Nonce. done with e NULL: ask for headers and send again; else give up with e. */
	void (*refused)(struct mcp_auth *a, struct mcp_auth_request *ask, int status,
			struct str challenge, struct str nonce);
	/* The server accepted a request: with 200 and a content type, or with 202 where no answer
	 * is due. nonce: DPoP-Nonce of the answer. May be NULL. */
	void (*answered)(struct mcp_auth *a, struct str nonce);
	void (*cancel)(struct mcp_auth *a, struct mcp_auth_request *ask); /* no done after it */
};

/* Base of an implementation, as its first member. */
struct mcp_auth {
	const struct mcp_auth_ops *ops;
};

/* Owned by the owner; zeroed except done and owner; valid until done or cancel. */
struct mcp_auth_request {
	void (*done)(void *owner, const struct http_header *headers, size_t n, const struct err *e);
	void *owner;
	void *data; /* the mcp_auth's */
	unsigned tries; /* refusals so far of the same request; counted by the owner */
};
