#include "cli/common/home.h"
#include "cli/common/verb.h"

struct auth_options {
	struct verb_options common;
};

static const struct option_row rows[] = { HELP_ROW(struct auth_options) };
static const struct option_table options = OPTION_TABLE(rows);

static int auth_run(const struct verb_input *in)
{
	AUTO(secret_free) struct secret *token = NULL;
	struct err e = ERR_INIT;

	if (strcmp(in->operands[0], "token") != 0) {
		err_set(&e, ERR_INVALID, "there is no 'auth %.40s'; did you mean 'auth token'?",
			in->operands[0]);
		return cli_fail(&e);
	}
	token = home_token(&e);
	if (!token)
		return cli_fail(&e);
	printf("%.*s\n", STR_ARG(secret_expose(token, "shown to its owner")));
	return 0;
}

const struct verb auth_verb = {
	.name = "auth",
	.usage = "token",
	.doc = "Print the token that clients send to holt serve.",
	.more = "It is created at the hub's first start, or now. A client sends it as\n"
		"Authorization: Bearer TOKEN. To replace it, remove its file and restart the hub.",
	.page = "holt-auth",
	.options = &options,
	.size = sizeof(struct auth_options),
	.min_operands = 1,
	.max_operands = 1,
	.usage_exit = 2,
	.run = auth_run,
};
