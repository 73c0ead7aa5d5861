#pragma once
/*
 * OAuth 2.1 for a client of an MCP server, behind mcp/connect/auth.h: discovery, registration,
 * grants, refresh, step-up to more scopes, DPoP. docs/oauth.md describes the order of the steps,
 * and what is refused and why. Specification: basic/authorization of 2026-07-28 and the revisions
 * before it, and the ext-auth extensions.
 *
 * One mcp_oauth serves one server. Requests wait while a log-in is in progress; one log-in serves
 * all of them, and continues when they have given up. All input from servers is bounded and
 * checked: their URLs must be https and lead to public addresses (http is allowed on this machine
 * if the server is there too), and redirects are followed only for metadata, within an origin.
 * Errors and log records contain no token, code or secret.
 *
 * All functions must be called on one thread. Callbacks of the handler come from the loop or from
 * inside a function of this header, and may call any of them, mcp_oauth_close() too.
 */
#include <uv.h>

#include "base/mem.h"
#include "mcp/connect/auth.h"

struct mcp_oauth;
struct mcp_oauth_store;

enum mcp_oauth_grant {
	MCP_OAUTH_CODE, /* a person logs in with a browser; PKCE */
	MCP_OAUTH_DEVICE, /* a person logs in somewhere else (RFC 8628) */
	MCP_OAUTH_CLIENT_CREDENTIALS, /* no person: the client itself */
	MCP_OAUTH_ENTERPRISE, /* an identity provider's assertion, exchanged (ID-JAG) */
	MCP_OAUTH_WORKLOAD, /* a platform's assertion for this workload (RFC 7523) */
};

/* The identity of a client at an authorization server. */
struct mcp_oauth_client {
	const char *id;
	const char *secret; /* NULL: none */
	const char *private_key; /* PEM, for private_key_jwt; NULL: none */
	const char *key_id; /* "kid" of it; may be NULL */
	/* "ES256", "RS256", "PS256", "EdDSA"; NULL: what fits key and server */
	const char *algorithm;
	/* "none", "client_secret_basic", "client_secret_post", "private_key_jwt"; NULL: what fits
	 * the server */
	const char *method;
	/* the only issuer that it is for; NULL: the first that the server names, from then on */
	const char *issuer;
};

enum mcp_oauth_dpop {
	MCP_OAUTH_DPOP_AUTO, /* where the server and its authorization server both have it */
	MCP_OAUTH_DPOP_NEVER,
	MCP_OAUTH_DPOP_ALWAYS, /* a token that is not bound is refused */
};

/* Callbacks that involve the user. Members that the grant does not use may be NULL. */
struct mcp_oauth_handler {
	/* Show the URL in full and open it in a browser; never pass it to a shell. With `redirect`
	 * NULL the answer arrives by itself, else pass it to mcp_oauth_redirected(). */
	void (*browse)(void *owner, const char *url);
	/* Show the URL and the code that the user types in there. complete: a URL that contains
	 * the code, or NULL. expires_s: how long the log-in waits. */
	void (*device)(void *owner, const char *url, const char *code, const char *complete,
		       unsigned expires_s);
	/* The authorization server knows no client of ours: ask the user for a client id, then
	 * call mcp_oauth_client_given(). NULL: the log-in fails. */
	void (*want_client)(void *owner, const char *issuer);
	/* The log-in is done, or failed with e: stop showing the URL or code. */
	void (*settled)(void *owner, const struct err *e);
	/* ENTERPRISE: the user's ID token of the identity provider. WORKLOAD: the JWT of the
	 * workload. audience: the authorization server's issuer. Borrowed until it is called again;
	 * NULL: fails. */
	const char *(*assertion)(void *owner, const char *audience);
};

struct mcp_oauth_options {
	/* the MCP server's URL; required. No token is sent over http, except to this machine:
	 * ERR_NOT_PUBLIC. */
	const char *server;
	enum mcp_oauth_grant grant;
	struct mcp_oauth_client client; /* registered beforehand; id NULL: not */
	const char *client_id_url; /* https URL of our client id metadata document; NULL: none */
	const char *client_name; /* of registrations; NULL: "libmcp" */
	bool web; /* of registrations: application_type web, else native */
	/* redirect URI; NULL: libmcp listens on 127.0.0.1 while it waits for the answer */
	const char *redirect;
	const char *scope; /* NULL: what the server says */
	/* issuer of the authorization server to use; NULL: the first that the server names */
	const char *issuer;
	bool online; /* do not request offline_access, even where it is supported */
	/* allow connections to addresses that are not public, and use the environment's proxy */
	bool private_ok;
	enum mcp_oauth_dpop dpop;
	struct {
		const char *token_endpoint; /* of the identity provider */
		struct mcp_oauth_client client; /* there; issuer is not used */
	} enterprise;
	/* borrowed until on_closed; NULL: kept in memory, by it alone */
	struct mcp_oauth_store *store;
	const struct mcp_oauth_handler *handler; /* borrowed likewise */
	void *owner;

	/* Limits; 0 takes the default. */
	unsigned step_ms; /* for one request to a server: 30 s */
	unsigned person_ms; /* to log in: 5 minutes */
};

/* Copies the options, secrets into memory of their own. ERR_INVALID: a bad URL or key;
 * ERR_BUG: options that the grant needs are missing; ERR_LIMIT: no memory. */
struct mcp_oauth *mcp_oauth_new(uv_loop_t *loop, const struct mcp_oauth_options *o,
				struct err *e) MUST_USE;

/* For a transport; lives as long as o. */
struct mcp_auth *mcp_oauth_auth(struct mcp_oauth *o);

/* Takes the full URL that the browser was redirected to. ERR_INVALID: it does not belong to this
 * log-in, which goes on waiting. Otherwise the log-in succeeds or fails later. */
int mcp_oauth_redirected(struct mcp_oauth *o, const char *url, struct err *e) MUST_USE;

/* Answers want_client; copied. ERR_INVALID: nothing was asked, or the client is unusable and the
 * question still open. */
int mcp_oauth_client_given(struct mcp_oauth *o, const struct mcp_oauth_client *c,
			   struct err *e) MUST_USE;

/* The user declines: a log-in in progress ends with ERR_CANCELLED. */
void mcp_oauth_give_up(struct mcp_oauth *o);

/* Deletes the tokens of this server, here and in the store, and gives up a log-in in progress. done
 * (may be NULL) comes now or later, before o is freed, once the store has deleted them, or with e
 * if it failed. -1: it could not be started, and done does not come. */
int mcp_oauth_forget(struct mcp_oauth *o, void (*done)(void *owner, const struct err *e),
		     void *owner, struct err *e) MUST_USE;

/* Ends pending asks without an answer and finishes pending writes. on_closed (may be NULL) comes
 * later, when o is freed. */
void mcp_oauth_close(struct mcp_oauth *o, void (*on_closed)(void *owner), void *owner);

/* --- where tokens are kept --- */

/* In memory. */
struct mcp_oauth_store *mcp_oauth_store_new(struct err *e) MUST_USE;

/* A store in a folder of its own: an absolute path, made with mode 0700 if missing. It has a sealed
 * file and its key, both of mode 0600. ERR_DENIED: folder or files are accessible to others or
 * owned by another user; ERR_INVALID: a file is damaged, or one is missing while the other exists.
 * Nothing is overwritten then. Several processes may have it open. Writing a new key blocks on the
 * disk; later writes run on libuv's threads. */
struct mcp_oauth_store *mcp_oauth_store_open(const char *folder, struct err *e) MUST_USE;

void mcp_oauth_store_free(struct mcp_oauth_store *s); /* NULL-safe; wipes the memory */
AUTO_DEFINE(mcp_oauth_store_free, struct mcp_oauth_store)
