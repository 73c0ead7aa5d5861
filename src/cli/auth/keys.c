/* `holt auth keys`: the API keys of the hub. Without a subcommand it lists them. */
#include <stdio.h>

#include "cli/link/ask.h"

static const struct ask_noun keys = {
	.path = "/v1/keys",
	.noun = "key",
	.missing = ERR_KEY_NOT_FOUND,
	.letters = ASK_LETTERS ".",
	.not_first = "._-",
	.max = 48,
	.alone = true,
};

/* ---- ls ------------------------------------------------------------------------------------ */

static void scopes_cell(struct table *t, const struct json_val *k)
{
	struct json_iter scopes = json_iter(json_get(k, "scopes"));
	char text[64] = "";
	size_t n = 0;

	while (json_next(&scopes) && n < sizeof(text))
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%.*s", n ? "," : "",
				      STR_ARG(json_str(scopes.val)));
	table_str(t, str_of(text));
}

static void expires_cell(struct table *t, const struct json_val *k)
{
	table_str(t, json_bool(json_get(k, "expired")) ? STR_LIT("expired")
						       : json_str(json_get(k, "expires_at")));
}

#define LIST                                                                                       \
	.usage = "[OPTION...]", .doc = "List the API keys of the hub, without their tokens.",      \
	.page = "holt-auth",                                                                       \
	ASK(verb_output, .of = &keys, .list = "",                                                  \
	    ASK_COLUMNS({ "NAME", "name" }, { "ID", "id" }, { "SCOPES", .cell = scopes_cell },     \
			{ "CREATED", "created_at" }, { "USED", "used_at" },                        \
			{ "EXPIRES", .cell = expires_cell }))

static const struct verb keys_ls_verb = { .name = "auth keys ls", LIST };

/* ---- create, revoke ------------------------------------------------------------------------ */

static const struct option_row create_rows[] = {
	ASK_OPTION(texts[0], OPTION_TEXT, "name", .letter = 'n', .arg = "NAME", .member = "name",
		   .doc = "Name of the key; policies call it key:NAME."),
	ASK_OPTION(texts[1], OPTION_TEXT, "scopes", .letter = 's', .arg = "SCOPE[,SCOPE...]",
		   .doc = "What the key allows: read, execute, lifecycle, admin."),
	ASK_OPTION(times[0], OPTION_SECONDS, "ttl", .arg = "TIME", .min = 1000,
		   .max = 10ull * 365 * 86400 * 1000, .member = "ttl_seconds",
		   .doc = "Time until the key expires: 90, 30m, 7d; by default never."),
	ASK_END,
};
static const struct option_table create_table = OPTION_TABLE(create_rows, .mixed = true);

static int write_scopes(const struct verb_input *in, struct json_writer *w, struct err *e)
{
	const struct ask_options *o = in->options;

	json_write_key(w, "scopes");
	json_write_array(w);
	for (const char *at = o->texts[1]; *at;) {
		size_t n = strcspn(at, ",");

		json_write_str(w, (struct str){ at, n });
		at += n + (at[n] == ',');
	}
	json_write_array_end(w);
	return 0;
}

static int create_check(const struct verb_input *in, struct err *e)
{
	const struct ask_options *o = in->options;

	return o->texts[0] && o->texts[1]
		     ? 0
		     : err_set(e, ERR_INVALID, "a key needs --name and --scopes");
}

static const struct verb keys_create_verb = {
	.name = "auth keys create",
	.usage = "--name NAME --scopes SCOPE[,SCOPE...] [--ttl TIME]",
	.doc = "Make an API key, and print its token, only this once.",
	.check = create_check,
	ASK(create_table, .of = &keys, .method = "POST", .write = write_scopes, .prints = "token",
	    .said = "nothing keeps this token, so it is shown this once"),
};

static const struct verb keys_revoke_verb = {
	.name = "auth keys revoke",
	.usage = "NAME...",
	.doc = "Revoke API keys; requests that use them end at once.",
	.more = "What a key has made stays. A new key of the same name has it.",
	ASK(verb_bare, .of = &keys, .method = "DELETE", .each = true),
	.min_operands = 1,
	.max_operands = ASK_NAMES_MAX,
};

static const struct verb *const words[] = { &keys_ls_verb, &keys_create_verb, &keys_revoke_verb,
					    NULL };

const struct verb auth_keys_verb = { .name = "auth keys", LIST, .words = words };
