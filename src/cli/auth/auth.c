/* `holt auth`: who may ask a hub. */
#include "cli/common/home.h"
#include "cli/common/verb.h"

static int token_run(const struct verb_input *in, struct err *e)
{
	AUTO(secret_free) struct secret *token = home_token(e);

	if (!token)
		return -1;
	printf("%.*s\n", STR_ARG(secret_expose(token, "shown to its owner")));
	return 0;
}

static const struct verb auth_token_verb = {
	.name = "auth token",
	.usage = "",
	.doc = "Print the hub's own token, which allows everything.",
	.more = "It is created at the hub's first start, or now. A client sends it as\n"
		"Authorization: Bearer TOKEN. To replace it, remove its file and restart the hub.",
	.options = &verb_bare,
	.size = sizeof(struct verb_options),
	.run = token_run,
};

extern const struct verb auth_keys_verb, auth_login_verb, auth_whoami_verb;
static const struct verb *const words[] = { &auth_token_verb, &auth_keys_verb, &auth_login_verb,
					    &auth_whoami_verb, NULL };

const struct verb auth_verb = {
	.name = "auth",
	.usage = "WORD",
	.doc = "Print the token of holt serve, make API keys, log in to servers.",
	.page = "holt-auth",
	.options = &verb_bare,
	.size = sizeof(struct verb_options),
	.words = words,
};
