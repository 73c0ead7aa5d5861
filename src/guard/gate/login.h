#pragma once
/*
 * The tokens of a log-in (OAuth), as one secret of the store: a JSON object of each token's value
 * and of the placeholder that stands for it in all sandboxes, also in the files that programs keep
 * there. New tokens have the placeholders of those before. A text that is no such object is the
 * access token alone, as `holt secret set` has stored it.
 */
#include "base/buf.h"
#include "base/secret.h"
#include "config/config.h"
#include "hub/sandbox/bound.h"

enum { LOGIN_TOKENS_MAX = 8, LOGIN_MEMBER_MAX = 33 };

struct login {
	size_t n;
	struct login_token {
		char member[LOGIN_MEMBER_MAX]; /* of answers */
		char mark[BOUND_PLACEHOLDER];
		struct secret *value; /* owned */
	} of[LOGIN_TOKENS_MAX];
};

void login_fini(struct login *l);
#define autologin __attribute__((cleanup(login_fini)))

/* Appends to l, which is empty. */
int login_read(struct login *l, struct str text, struct err *e) MUST_USE;
int login_write(const struct login *l, struct buf *to, struct err *e) MUST_USE;

/* Takes the tokens of an answer's body over, at any depth of it: *ret_taken of them. ret: the same
 * body with what stands for each inside. ERR_INVALID: it is no JSON, or a token is unfit. */
int login_take(struct login *l, const struct config_login *conf, struct str body, struct buf *ret,
	       size_t *ret_taken, struct err *e) MUST_USE;

/* Whether the token goes in headers to the hosts of the secret, or to the log-in's URLs alone. */
bool login_goes_to_hosts(const struct login_token *t);
bool login_refreshes(const struct login_token *t);

/* The text that stands for it inside: its placeholder, with the claims of a JSON Web Token. */
int login_shown(const struct login_token *t, struct buf *to, struct err *e) MUST_USE;
