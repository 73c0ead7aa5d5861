/* `holt secret`: the operator's secrets. Without a subcommand it lists them. */
#include <stdio.h>

#include "cli/common/tty.h"
#include "cli/link/ask.h"
#include "cli/secret/secret.h"
#include "json/document/utf8.h"

static const struct ask_noun secrets = {
	.path = "/v1/secrets",
	.noun = "secret",
	.missing = ERR_INVALID,
	.letters = ASK_LETTERS ".",
	.not_first = "._-",
	.max = 64,
};

/* ---- set ----------------------------------------------------------------------------------- */

int secret_store(struct hub_link *l, const char *name, struct str value, struct err *e)
{
	autowipe struct buf text = BUF_INIT(SECRET_VALUE_MAX * 6 + 256);
	struct json_writer w = json_writer(&text);

	if (!buf_reserve(&text, text.max, e))
		return -1;
	if (value.n > SECRET_VALUE_MAX)
		return err_set(e, ERR_INVALID, "a secret has at most %d bytes", SECRET_VALUE_MAX);
	if (!utf8_valid(value)) /* the writer would replace what is not */
		return err_set(e, ERR_INVALID, "a secret is text in UTF-8");
	json_write_object(&w);
	hub_link_text(&w, "name", name);
	json_write_key(&w, "value");
	json_write_str(&w, value);
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0)
		return -1;
	return hub_link_ask(l, "POST", "/v1/secrets", buf_str(&text), NULL, e);
}

static int secret_set(const struct verb_input *in, struct err *e)
{
	autowipe struct buf value = BUF_INIT(SECRET_VALUE_MAX + 1);
	AUTO(hub_link_close) struct hub_link *l = NULL;

	if (tty_read_secret("Value: ", &value, e) < 0 || !(l = hub_link_open(e)))
		return -1;
	return secret_store(l, in->operands[0], buf_str(&value), e);
}

/* ---- the verbs ----------------------------------------------------------------------------- */

#define LIST                                                                                       \
	.usage = "[OPTION...]", .doc = "List the names of the operator's secrets.",                \
	.more = "PROVIDER is where a value comes from: store, or what config.json says.",          \
	.page = "holt-secret",                                                                     \
	ASK(verb_output, .of = &secrets, .list = "secrets",                                        \
	    ASK_COLUMNS({ "NAME", "name" }, { "PROVIDER", "provider" },                            \
			{ "CHANGED", "changed_at" }))

static const struct verb secret_ls_verb = { .name = "secret ls", LIST };

static const struct verb secret_set_verb = {
	.name = "secret set",
	.usage = "NAME",
	.doc = "Store a secret, or replace it, from standard input.",
	.more = "At a terminal it is a line that is not shown. Nothing prints it again.",
	.options = &verb_bare,
	.size = sizeof(struct ask_options),
	.min_operands = 1,
	.run = secret_set,
	.fail = hub_link_fail,
};

static const struct verb secret_rm_verb = {
	.name = "secret rm",
	.usage = "NAME...",
	.doc = "Delete secrets from the store.",
	.more = "Programs that have them keep them.",
	ASK(verb_bare, .of = &secrets, .method = "DELETE", .each = true),
	.min_operands = 1,
	.max_operands = ASK_NAMES_MAX,
};

static const struct verb *const words[] = {
	&secret_ls_verb,
	&secret_set_verb,
	&secret_rm_verb,
	NULL,
};

const struct verb secret_verb = { .name = "secret", LIST, .words = words };
