#pragma once
/*
 * Shared by the files of OAuth. An mcp_oauth does one thing at a time:
 *
 *	oauth.c		start and end, options, calls of the owner
 *	ask.c		requests of transports, and waiting
 *	flow.c		the order of the steps: the states
 *	discover.c	the resource and its authorization server
 *	client.c	our identity there: configured clients, and client authentication
 *	register.c	the same by registration
 *	authorize.c	the browser's way out and back, and the way without a browser
 *	listen.c	the target of the redirect
 *	grant.c		requests to token endpoints
 *	token.c		the current token, also in the store
 *	jwt.c		signed JSON: assertions, proofs of possession
 *	fetch.c		one bounded request
 *	url.c challenge.c metadata.c	pure
 *	keep.c		what is stored, and written while the loop runs
 *	store.c		files
 *
 * Steps report to flow.c by the functions at the end of this header. A step that can't start
 * returns -1. Between two steps nothing is on the stack.
 */
#include "http/client/client.h"
#include "json/document/put.h"
#include "mcp/oauth/oauth.h"
#include "mcp/oauth/challenge.h"
#include "mcp/oauth/metadata.h"
#include "mcp/oauth/store.h"

enum {
	OAUTH_FORM_MAX = 128 << 10, /* bytes of a request's body */
	OAUTH_FORM_ROOM = 32 << 10, /* allocated at once, so that secrets are not moved */
	OAUTH_PROOF_MAX = 16 << 10, /* bytes of a DPoP proof or an assertion */
	OAUTH_NONCE_MAX = 512,
	OAUTH_ARENA_MAX = 512 << 10, /* bytes that one round of discovery may store */
	OAUTH_LOGINS_MAX = 5, /* logins that brought a token, within OAUTH_LOGINS_MS */
	OAUTH_LOGINS_MS = 600000,
};

enum oauth_state {
	OAUTH_IDLE,
	OAUTH_DISCOVER, /* metadata is being fetched */
	OAUTH_REGISTER, /* a client id is being requested */
	OAUTH_ASK_CLIENT, /* the user is being asked for one */
	OAUTH_CONSENT, /* waiting for the browser */
	OAUTH_DEVICE, /* a device code is requested, then polled for */
	OAUTH_EXCHANGE, /* the identity provider is being asked */
	OAUTH_TOKEN, /* the token endpoint is being asked */
	OAUTH_REFRESH, /* the same, to refresh a token */
	OAUTH_STATES
};

/* --- one bounded request (fetch.c) --- */

struct oauth_answer {
	int status;
	struct str body; /* borrowed for the callback */
	struct str nonce; /* DPoP-Nonce; borrowed likewise */
};

typedef void oauth_fetched(struct mcp_oauth *o, const struct oauth_answer *a, const struct err *e);

struct oauth_fetch {
	uv_timer_t timer;
	struct http_exchange *exchange;
	struct buf body;
	struct err why; /* reason for an end before the exchange's */
	int status;
	char nonce[OAUTH_NONCE_MAX + 1];
	oauth_fetched *done;
	char *url; /* of a GET; NULL: a POST */
	char *next; /* where it was redirected; NULL: nowhere */
	unsigned redirects;
	const char *revision; /* of the GET */
};

struct oauth_request {
	const char *url;
	const char *type; /* of the body; NULL: a GET */
	struct str body;
	const char *authorization; /* may be NULL */
	const char *proof; /* DPoP; may be NULL */
	const char *revision; /* MCP-Protocol-Version; may be NULL; static */
};

/* done follows from the loop. Only one request at a time. */
int oauth_fetch_start(struct mcp_oauth *o, const struct oauth_request *q, oauth_fetched *done,
		      struct err *e) MUST_USE;
void oauth_fetch_cancel(struct mcp_oauth *o);

/* --- our identity (client.c, register.c) --- */

struct oauth_client {
	char *id; /* NULL: none */
	struct secret *secret;
	struct sign_key *key;
	char *key_id;
	char *issuer; /* the only issuer that it is for; NULL: any */
	char *redirect; /* the registered redirect URI; NULL: any */
	enum sign_alg alg; /* SIGN_ALGS: choose one */
	unsigned method; /* 0: choose one */
	int64_t secret_expires; /* seconds since 1970; 0: never */
};

/* Makes a copy; the id may be NULL. ERR_INVALID: an invalid key, algorithm or method. */
int oauth_client_copy(struct oauth_client *to, const struct mcp_oauth_client *from,
		      struct err *e) MUST_USE;
void oauth_client_fini(struct oauth_client *c);

/* Adds client authentication to a form; for Basic, writes the header's value to `authorization`.
 * methods, algs: those that the endpoint accepts, 0: unknown; audience: that of an assertion. */
int oauth_client_prove(const struct oauth_client *c, unsigned methods, unsigned algs,
		       const char *audience, struct buf *form, struct buf *authorization,
		       struct err *e) MUST_USE;

/* Chooses our client at the issuer from the known ones, as o->me; NULL: register or ask. */
int oauth_client_find(struct mcp_oauth *o, struct err *e) MUST_USE;

/* Requests a client id from the issuer, or asks the user. */
int oauth_register_start(struct mcp_oauth *o, struct err *e) MUST_USE;
/* Reads o->client from the store: 1 if it was there. The next function writes it. */
int oauth_register_load(struct mcp_oauth *o, struct err *e) MUST_USE;
/* Makes c our o->client and o->me, and stores it; a failure of that is logged. */
void oauth_register_take(struct mcp_oauth *o, struct oauth_client *c);
/* Forgets the client and its tokens, which are of no use without it. */
int oauth_register_forget(struct mcp_oauth *o, struct err *e) MUST_USE;

/* --- the store (keep.c) --- */

/* Changes the store, in the order of the calls. Copied; done (may be NULL) is called now or later,
 * before o is freed, with e if writing failed. -1: it was not tried, and done is not called. */
int oauth_keep(struct mcp_oauth *o, const struct oauth_store_change *change,
	       void (*done)(void *owner, const struct err *e), void *owner, struct err *e) MUST_USE;

/* Reads the record of that name: 1 and the document, or 0. text (may be NULL): its text, owned by
 * the caller. */
int oauth_kept(struct mcp_oauth *o, struct str name, struct json_doc **ret, struct secret **text,
	       struct err *e) MUST_USE;

/* Members of records: absent ones are not written, and read as NULL. */
void oauth_record_put(struct json_writer *w, const char *key, struct str s);
int oauth_record_text(const struct json_val *v, const char *key, char **ret,
		      struct err *e) MUST_USE;
int oauth_record_secret(const struct json_val *v, const char *key, struct secret **ret,
			struct err *e) MUST_USE;
int oauth_record_key(const struct json_val *v, const char *key, struct sign_key **ret,
		     struct err *e) MUST_USE;

/* --- the current token (token.c) --- */

enum oauth_origin { OAUTH_KEPT, OAUTH_REFRESHED, OAUTH_GRANTED };

struct oauth_token {
	struct secret *access, *refresh; /* NULL: none */
	struct secret *kept; /* the record as last stored; NULL: unknown */
	char *issuer, *resource, *client_id; /* whose it is */
	char *wanted; /* requested scope; "": none */
	bool dpop;
	enum oauth_origin origin;
	uint64_t since; /* ms, monotonic */
	int64_t asked; /* when `wanted` was requested, in seconds since 1970; 0: unknown */
	int64_t expires; /* seconds since 1970; 0: unknown */
	int64_t renew; /* from then on it is refreshed before use; 0: never */
};

void oauth_token_fini(struct oauth_token *t);
/* Makes the endpoint's answer the current token, and stores it. */
int oauth_token_take(struct mcp_oauth *o, struct oauth_token_answer *a, enum oauth_origin origin,
		     struct err *e) MUST_USE;
/* Loads the token for the found issuer, resource and client: 1 if it is another one than ours. */
int oauth_token_load(struct mcp_oauth *o, struct err *e) MUST_USE;
/* Loads the last token of this server, from any issuer. */
int oauth_token_recall(struct mcp_oauth *o, struct err *e) MUST_USE;
/* Drops a refresh token that does not work any more. */
int oauth_token_drop_refresh(struct mcp_oauth *o, struct err *e) MUST_USE;
/* Forgets the token at once; done is for the store, as in oauth_keep(). */
int oauth_token_forget(struct mcp_oauth *o, void (*done)(void *owner, const struct err *e),
		       void *owner, struct err *e) MUST_USE;
/* Removes from the store the tokens of a client that is gone. A failure is logged. */
void oauth_token_forget_client(struct mcp_oauth *o, const char *client_id);
/* A record could not be written. */
void oauth_token_not_kept(struct mcp_oauth *o, struct str record);
bool oauth_token_is_old(const struct oauth_token *t);
/* Stores that the found issuer belongs to this server and the client o->given; a failure is
 * logged. */
void oauth_token_keep_issuer(struct mcp_oauth *o);
/* ERR_UNTRUSTED if the store has another issuer of this server for the client. */
int oauth_token_check_issuer(struct mcp_oauth *o, const char *client_id, struct err *e) MUST_USE;

/* --- the whole --- */

struct oauth_waiter {
	struct oauth_waiter *next;
	struct mcp_auth_request *ask;
	unsigned round; /* the flow that it waits for */
	char *method, *url; /* from headers(); NULL: from refused() */
};

struct mcp_oauth {
	struct mcp_auth auth;
	uv_loop_t *loop;
	uv_timer_t timer; /* the user's time limit, or the next poll for a device */
	unsigned handles; /* open handles of the loop, HTTP clients and servers */
	bool closing;
	void (*on_closed)(void *owner);
	void *closed_owner;

	/* configuration */
	struct arena *told;
	struct mcp_oauth_options opt; /* strings are in `told`; secrets and keys are elsewhere */
	struct oauth_url server;
	enum oauth_reach reach; /* for URLs that servers name */
	bool plain; /* neither https nor on this machine: it gets no token */
	struct oauth_client given; /* registered beforehand */
	bool first_issuer; /* its issuer was not configured, but is the first that came */
	struct oauth_client by_url; /* by our client id metadata document */
	struct oauth_client idp; /* at the identity provider */
	struct mcp_oauth_store *own_store; /* used if none was given */
	struct http_client *http;

	/* waiting changes */
	uv_work_t work;
	struct oauth_change *changes; /* oldest first: that one is in the pool */
	unsigned changes_n;
	bool writes; /* o->work is in the pool */

	/* the flow */
	enum oauth_state state;
	unsigned round; /* flows so far */
	struct oauth_fetch fetch;
	struct oauth_waiter *waiters; /* oldest first */
	unsigned waiters_n;
	struct oauth_challenge challenge;
	bool by_refusal; /* it began with a refusal, else with headers() */
	bool more_scope; /* it began because of a missing scope */
	bool registered_anew; /* done once per flow */
	unsigned at; /* index into the URLs of a step */
	unsigned nonce_tries;
	uint64_t logins[OAUTH_LOGINS_MAX]; /* when the last logins brought a token: ms, monotonic */
	unsigned logins_n; /* so far */
	bool counts; /* the login in progress will be one of them */

	/* findings */
	struct arena *found; /* for resource and issuer */
	bool legacy; /* no authorization server was named: 2025-03-26 */
	struct oauth_resource resource;
	const char *issuer_url; /* as it was named */
	struct oauth_issuer issuer; /* issuer NULL: unknown */
	struct oauth_client client; /* our client there, by registration or from the user */
	const struct oauth_client *me; /* one of the four; NULL: none yet */

	/* the browser, the device, the identity provider */
	struct oauth_door *door; /* NULL: not listening */
	char *redirect; /* redirect URI of this login */
	struct secret *verifier; /* PKCE */
	char consent[OAUTH_STATE_MAX + 1]; /* the state parameter; "": no answer is expected */
	struct secret *code; /* authorization code, device code or assertion */
	bool shown; /* the user was shown a URL or code */
	uint64_t device_end; /* ms, monotonic */
	unsigned device_ms;

	/* the token */
	struct buf scope; /* the scope to request */
	struct oauth_token token;
	/* number of the token; a request's data says with which one it was sent */
	uintptr_t serial;
	bool used, accepted; /* used: the token was sent; accepted: a request with it succeeded */
	bool recalled; /* the store was read */
	struct sign_key *dpop_key;
	bool dpop; /* request bound tokens; a refresh follows its token */
	char nonce_issuer[OAUTH_NONCE_MAX + 1];
	char nonce_server[OAUTH_NONCE_MAX + 1];
};

struct mcp_oauth_store *oauth_store_of(struct mcp_oauth *o);

/* Counts down the handles; the last one frees o. */
void oauth_handle_gone(struct mcp_oauth *o);

static inline int oauth_no_memory(struct err *e)
{
	return err_set(e, ERR_LIMIT, "out of memory");
}

/* --- steps --- */

int oauth_discover_start(struct mcp_oauth *o, struct err *e) MUST_USE;

/* Makes PKCE, state and URL, and shows the URL. */
int oauth_authorize_start(struct mcp_oauth *o, struct err *e) MUST_USE;
/* Checks the redirect. -1 and *is_ours false: it does not belong to this login. */
int oauth_authorize_read(struct mcp_oauth *o, const struct oauth_redirect *r, bool *is_ours,
			 struct err *e) MUST_USE;
/* Forgets state, verifier and code. */
void oauth_authorize_end(struct mcp_oauth *o);

/* Listens on 127.0.0.1, on the port of `before` if that is free; sets o->redirect. */
int oauth_listen_start(struct mcp_oauth *o, const char *before, struct err *e) MUST_USE;
void oauth_listen_stop(struct mcp_oauth *o);

int oauth_device_start(struct mcp_oauth *o, struct err *e) MUST_USE;

/* Requests a token, as o->opt.grant and the state require. */
int oauth_grant_start(struct mcp_oauth *o, struct err *e) MUST_USE;

/* Appends a proof for a request; token: the one that it is sent with, or STR_NONE. */
int oauth_dpop_proof(struct mcp_oauth *o, const char *method, const char *url, struct str token,
		     const char *nonce, struct buf *to, struct err *e) MUST_USE;
/* Decides whether new tokens will be bound, from what was found, and makes the key. Forgets a token
 * that is bound to a key of no use for that. */
int oauth_dpop_decide(struct mcp_oauth *o, struct err *e) MUST_USE;
/* Whether the token being requested is bound. */
bool oauth_dpop_is_on(const struct mcp_oauth *o);
/* Stores a nonce if it is valid. */
bool oauth_dpop_nonce(char to[OAUTH_NONCE_MAX + 1], struct str nonce);

/* Appends header.payload.signature. */
int oauth_jwt(const struct sign_key *k, enum sign_alg alg, struct str header, struct str payload,
	      struct buf *to, struct err *e) MUST_USE;
/* Appends the assertion of private_key_jwt. */
int oauth_jwt_client(const struct oauth_client *c, enum sign_alg alg, const char *audience,
		     struct buf *to, struct err *e) MUST_USE;

/* --- reports of steps (flow.c) --- */

void oauth_set_state(struct mcp_oauth *o, enum oauth_state to);
int oauth_flow_start(struct mcp_oauth *o, struct err *e) MUST_USE;
/* Refreshes with what is known. 1 if another process has done it. */
int oauth_flow_refresh(struct mcp_oauth *o, struct err *e) MUST_USE;

void oauth_flow_found(struct mcp_oauth *o);
void oauth_flow_known(struct mcp_oauth *o); /* o->me is set */
void oauth_flow_came_back(struct mcp_oauth *o); /* o->code is set */
void oauth_flow_device_shown(struct mcp_oauth *o);
void oauth_flow_granted(struct mcp_oauth *o, struct oauth_token_answer *a);
/* The token endpoint's error code; "": none. */
void oauth_flow_refused(struct mcp_oauth *o, const char *word);
void oauth_flow_failed(struct mcp_oauth *o, const struct err *e);

/* --- waiting (ask.c) --- */

extern const struct mcp_auth_ops oauth_ops;
/* Tells all that wait for this round that it has ended. */
void oauth_wake(struct mcp_oauth *o, unsigned round, const struct err *e);
void oauth_forget_waiters(struct mcp_oauth *o);
