#pragma once
/*
 * Between the files of OAuth. One mcp_oauth does one thing at a time:
 *
 *	oauth.c			life, options, what the owner does
 *	ask.c		what transports ask, who waits
 *	flow.c		what follows what: the states
 *	discover.c	whose server it is, and who lets us in
 *	client.c		who we are to them: what we were given, and client authentication
 *	register.c	the same where we have to register
 *	authorize.c	the browser's way out and back, and the way without one
 *	listen.c		where it comes back to
 *	grant.c		requests to token endpoints
 *	token.c		the token that we have, in the store too
 *	jwt.c		signed JSON: assertions, proofs of possession
 *	fetch.c		one bounded request
 *	url.c challenge.c metadata.c	pure
 *	keep.c		what is kept, and written while the loop goes on
 *	store.c		files
 *
 * Steps report to flow.c by the functions at the end of this header; a step that can't even start
 * gives -1. Between two steps nothing is on the stack.
 */
#include "http/client/client.h"
#include "json/document/write.h"
#include "mcp/oauth/oauth.h"
#include "mcp/oauth/challenge.h"
#include "mcp/oauth/metadata.h"
#include "mcp/oauth/store.h"

enum {
	OAUTH_FORM_MAX = 128 << 10, /* bytes of a request's body */
	OAUTH_FORM_ROOM = 32 << 10, /* of it from the start, so that secrets are not moved */
	OAUTH_PROOF_MAX = 16 << 10, /* of a DPoP proof or an assertion */
	OAUTH_NONCE_MAX = 512,
	OAUTH_ARENA_MAX = 512 << 10, /* bytes that one round of discovery may keep */
	OAUTH_LOGINS_MAX = 5, /* that brought a token, within OAUTH_LOGINS_MS */
	OAUTH_LOGINS_MS = 600000,
};

enum oauth_state {
	OAUTH_IDLE,
	OAUTH_DISCOVER, /* metadata are fetched */
	OAUTH_REGISTER, /* a client id is asked for */
	OAUTH_ASK_CLIENT, /* the person is asked for one */
	OAUTH_CONSENT, /* the browser is out */
	OAUTH_DEVICE, /* a device code is asked for, and then for the token */
	OAUTH_EXCHANGE, /* the identity provider is asked */
	OAUTH_TOKEN, /* the token endpoint is asked */
	OAUTH_REFRESH, /* the same for a token in place of an old one */
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
	struct err why; /* it ended by itself before the exchange did */
	int status;
	char nonce[OAUTH_NONCE_MAX + 1];
	oauth_fetched *done;
};

struct oauth_request {
	const char *url;
	const char *type; /* of the body; NULL: GET */
	struct str body;
	const char *authorization; /* may be NULL */
	const char *proof; /* DPoP; may be NULL */
	const char *revision; /* MCP-Protocol-Version; may be NULL */
};

/* done follows from the loop. Only one at a time. */
int oauth_fetch_start(struct mcp_oauth *o, const struct oauth_request *q, oauth_fetched *done,
		      struct err *e) MUST_USE;
void oauth_fetch_cancel(struct mcp_oauth *o);

/* --- who we are (client.c, register.c) --- */

struct oauth_client {
	char *id; /* NULL: nobody */
	struct secret *secret;
	struct sign_key *key;
	char *key_id;
	char *issuer; /* the only one that it is for; NULL: any */
	char *redirect; /* that was registered; NULL: any */
	enum sign_alg alg; /* SIGN_ALGS: what fits */
	unsigned method; /* 0: what fits */
	int64_t secret_expires; /* seconds since 1970; 0: never */
};

/* A copy; its id may be NULL. ERR_INVALID for a key, algorithm or method that is none. */
int oauth_client_copy(struct oauth_client *to, const struct mcp_oauth_client *from,
		      struct err *e) MUST_USE;
void oauth_client_fini(struct oauth_client *c);

/* Adds client authentication to a form; of Basic, the header's value to `authorization`. methods,
 * algs: what the endpoint takes, 0 for not said; audience: whom an assertion is for. */
int oauth_client_prove(const struct oauth_client *c, unsigned methods, unsigned algs,
		       const char *audience, struct buf *form, struct buf *authorization,
		       struct err *e) MUST_USE;

/* Finds who we are at the issuer, from what is known, for o->me: NULL where we have to register or
 * ask. */
int oauth_client_find(struct mcp_oauth *o, struct err *e) MUST_USE;

/* Asks for a client id, of the issuer or of the person. */
int oauth_register_start(struct mcp_oauth *o, struct err *e) MUST_USE;
/* o->client from and to the store: 1 where it was there. */
int oauth_register_load(struct mcp_oauth *o, struct err *e) MUST_USE;
/* c is taken for o->client and o->me, and kept; what fails of that is logged. */
void oauth_register_take(struct mcp_oauth *o, struct oauth_client *c);
/* Its tokens are of no use without it, and go too. */
int oauth_register_forget(struct mcp_oauth *o, struct err *e) MUST_USE;

/* --- what is kept (keep.c) --- */

/* Has the store changed, in the order of the calls. Copied; done (may be NULL) comes now or later,
 * before o is gone, with e where it could not be written. -1: it is not even tried, and done does
 * not come. */
int oauth_keep(struct mcp_oauth *o, const struct oauth_store_change *change,
	       void (*done)(void *owner, const struct err *e), void *owner, struct err *e) MUST_USE;

/* The record of that name: 1 and the document, or 0. text (may be NULL): its text, the caller's. */
int oauth_kept(struct mcp_oauth *o, struct str name, struct json_doc **ret, struct secret **text,
	       struct err *e) MUST_USE;

/* Members of records: absent ones are written as nothing and read as NULL. */
void oauth_record_put(struct json_writer *w, const char *key, struct str s);
int oauth_record_text(const struct json_val *v, const char *key, char **ret,
		      struct err *e) MUST_USE;
int oauth_record_secret(const struct json_val *v, const char *key, struct secret **ret,
			struct err *e) MUST_USE;
int oauth_record_key(const struct json_val *v, const char *key, struct sign_key **ret,
		     struct err *e) MUST_USE;

/* --- the token that we have (token.c) --- */

enum oauth_origin { OAUTH_KEPT, OAUTH_REFRESHED, OAUTH_GRANTED };

struct oauth_token {
	struct secret *access, *refresh; /* NULL: none */
	struct secret *kept; /* its record as the store should have it; NULL: not known */
	char *issuer, *resource, *client_id; /* whose it is */
	char *wanted; /* scope that was asked for; "" for none */
	bool dpop;
	enum oauth_origin origin;
	uint64_t since; /* ms, monotonic */
	int64_t asked; /* seconds since 1970: when `wanted` was asked for; 0: not known */
	int64_t expires; /* seconds since 1970; 0: not known */
	int64_t renew; /* from here on it is refreshed before it is used; 0: never */
};

void oauth_token_fini(struct oauth_token *t);
/* Takes what the endpoint said as the token, and keeps it. */
int oauth_token_take(struct mcp_oauth *o, struct oauth_token_answer *a, enum oauth_origin origin,
		     struct err *e) MUST_USE;
/* The one of the store for issuer, resource and client as found: 1 where it is another than
 * ours. */
int oauth_token_load(struct mcp_oauth *o, struct err *e) MUST_USE;
/* The last one of this server, whoever issued it. */
int oauth_token_recall(struct mcp_oauth *o, struct err *e) MUST_USE;
/* What can't be refreshed any more. */
int oauth_token_drop_refresh(struct mcp_oauth *o, struct err *e) MUST_USE;
/* Here at once; done is for the store, as of oauth_keep(). */
int oauth_token_forget(struct mcp_oauth *o, void (*done)(void *owner, const struct err *e),
		       void *owner, struct err *e) MUST_USE;
/* In the store, those of a client of the issuer that is none any more. What fails is logged. */
void oauth_token_forget_client(struct mcp_oauth *o, const char *client_id);
/* A record could not be written. */
void oauth_token_not_kept(struct mcp_oauth *o, struct str record);
bool oauth_token_is_old(const struct oauth_token *t);
/* That the issuer found is the one of this server and client o->given; what fails is logged. */
void oauth_token_keep_issuer(struct mcp_oauth *o);
/* ERR_UNTRUSTED where this server had another issuer for a client, as far as the store knows. */
int oauth_token_check_issuer(struct mcp_oauth *o, const char *client_id, struct err *e) MUST_USE;

/* --- all of it --- */

struct oauth_waiter {
	struct oauth_waiter *next;
	struct mcp_auth_request *ask;
	unsigned round; /* of the flow that it waits for */
	char *method, *url; /* of headers(); NULL: of refused() */
};

struct mcp_oauth {
	struct mcp_auth auth;
	uv_loop_t *loop;
	uv_timer_t timer; /* a person's time, or the next question for a device */
	unsigned handles; /* of the loop, clients and doors that are open */
	bool closing;
	void (*on_closed)(void *owner);
	void *closed_owner;

	/* what we were told */
	struct arena *told;
	struct mcp_oauth_options opt; /* strings in `told`; secrets and keys not here */
	struct oauth_url server;
	enum oauth_reach reach; /* of what they name */
	bool plain; /* neither https nor on this machine: it gets no token */
	struct oauth_client given; /* registered beforehand */
	bool first_issuer; /* its issuer is the first that came, not one that we were told */
	struct oauth_client by_url; /* our client id metadata document */
	struct oauth_client idp; /* at the identity provider */
	struct mcp_oauth_store *own_store; /* where none was given */
	struct http_client *http;

	/* what is to be written */
	uv_work_t work;
	struct oauth_change *changes; /* the oldest first: it is in the pool */
	unsigned changes_n;
	bool writes; /* o->work is out */

	/* what goes on */
	enum oauth_state state;
	unsigned round; /* flows so far */
	struct oauth_fetch fetch;
	struct oauth_waiter *waiters; /* the oldest first */
	unsigned waiters_n;
	struct oauth_challenge challenge;
	bool by_refusal; /* a refusal began it, else headers() */
	bool more_scope; /* for want of scope */
	bool registered_anew; /* once a flow */
	unsigned at; /* which of the URLs of a step */
	unsigned nonce_tries;
	uint64_t logins[OAUTH_LOGINS_MAX]; /* ms, monotonic: when the last ones brought a token */
	unsigned logins_n; /* so far */
	bool counts; /* the login that goes on is one of them */

	/* what was found */
	struct arena *found; /* of resource and issuer */
	bool legacy; /* nobody named an authorization server: 2025-03-26 */
	struct oauth_resource resource;
	const char *issuer_url; /* that was named */
	struct oauth_issuer issuer; /* issuer NULL: not known */
	struct oauth_client client; /* who we are there by registration or a person's word */
	const struct oauth_client *me; /* one of the four; NULL: nobody yet */

	/* the browser, the device, the identity provider */
	struct oauth_door *door; /* listens; NULL: not */
	char *redirect; /* URI of this login */
	struct secret *verifier; /* PKCE */
	char consent[OAUTH_STATE_MAX + 1]; /* state; "" where nothing may come back */
	struct secret *code; /* authorization code, device code or assertion */
	bool shown; /* the person has something before them */
	uint64_t device_end; /* ms, monotonic */
	unsigned device_ms;

	/* what we have */
	struct buf scope; /* that is asked for */
	struct oauth_token token;
	uintptr_t serial; /* of the token; an ask's data says which one it went out with */
	bool used, accepted; /* the token was sent; a request with it went through */
	bool recalled; /* the store was asked what it has */
	struct sign_key *dpop_key;
	bool dpop; /* new tokens are asked for bound to it; a refresh does as its token is */
	char nonce_issuer[OAUTH_NONCE_MAX + 1];
	char nonce_server[OAUTH_NONCE_MAX + 1];
};

struct mcp_oauth_store *oauth_store_of(struct mcp_oauth *o);

/* One handle less; the last one ends o. */
void oauth_handle_gone(struct mcp_oauth *o);

static inline int oauth_no_memory(struct err *e)
{
	return err_set(e, ERR_LIMIT, "out of memory");
}

/* --- steps --- */

int oauth_discover_start(struct mcp_oauth *o, struct err *e) MUST_USE;

/* PKCE, state and the URL, which is shown. */
int oauth_authorize_start(struct mcp_oauth *o, struct err *e) MUST_USE;
/* Checks what came back. -1 and *is_ours false: it is no answer to what was asked. */
int oauth_authorize_read(struct mcp_oauth *o, const struct oauth_redirect *r, bool *is_ours,
			 struct err *e) MUST_USE;
/* Forgets state, verifier and code. */
void oauth_authorize_end(struct mcp_oauth *o);

/* Listens on 127.0.0.1, on the port of `before` if that can be had; sets o->redirect. */
int oauth_listen_start(struct mcp_oauth *o, const char *before, struct err *e) MUST_USE;
void oauth_listen_stop(struct mcp_oauth *o);

int oauth_device_start(struct mcp_oauth *o, struct err *e) MUST_USE;

/* To token endpoints: with what o->opt.grant and the state say. */
int oauth_grant_start(struct mcp_oauth *o, struct err *e) MUST_USE;

/* Appends a proof for a request; token: what it is sent with, or STR_NONE. */
int oauth_dpop_proof(struct mcp_oauth *o, const char *method, const char *url, struct str token,
		     const char *nonce, struct buf *to, struct err *e) MUST_USE;
/* Whether a new token is to be bound, by what was found; makes the key. A token that is bound to a
 * key that is of no use for that is gone. */
int oauth_dpop_decide(struct mcp_oauth *o, struct err *e) MUST_USE;
/* Whether what is asked for now is bound. */
bool oauth_dpop_is_on(const struct mcp_oauth *o);
/* Keeps a nonce if it is one. */
bool oauth_dpop_nonce(char to[OAUTH_NONCE_MAX + 1], struct str nonce);

/* Appends header.payload.signature. */
int oauth_jwt(const struct sign_key *k, enum sign_alg alg, struct str header, struct str payload,
	      struct buf *to, struct err *e) MUST_USE;
/* Appends the assertion of private_key_jwt. */
int oauth_jwt_client(const struct oauth_client *c, enum sign_alg alg, const char *audience,
		     struct buf *to, struct err *e) MUST_USE;

/* --- what steps report (flow.c) --- */

void oauth_set_state(struct mcp_oauth *o, enum oauth_state to);
int oauth_flow_start(struct mcp_oauth *o, struct err *e) MUST_USE;
/* With what is found already. 1 where another process has done it. */
int oauth_flow_refresh(struct mcp_oauth *o, struct err *e) MUST_USE;

void oauth_flow_found(struct mcp_oauth *o);
void oauth_flow_known(struct mcp_oauth *o); /* o->me is there */
void oauth_flow_came_back(struct mcp_oauth *o); /* o->code is there */
void oauth_flow_device_shown(struct mcp_oauth *o);
void oauth_flow_granted(struct mcp_oauth *o, struct oauth_token_answer *a);
/* The token endpoint's word; "" where it had none. */
void oauth_flow_refused(struct mcp_oauth *o, const char *word);
void oauth_flow_failed(struct mcp_oauth *o, const struct err *e);

/* --- who waits (ask.c) --- */

extern const struct mcp_auth_ops oauth_ops;
/* All who wait for this round hear of its end. */
void oauth_wake(struct mcp_oauth *o, unsigned round, const struct err *e);
void oauth_forget_waiters(struct mcp_oauth *o);
