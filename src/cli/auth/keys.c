/* `holt auth keys`: the API keys of the hub. Without a subcommand it lists them. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/common/table.h"
#include "cli/common/verb.h"
#include "cli/link/link.h"

enum { BODY_MAX = 64 << 10, NAMES_MAX = 1024 };
#define KEYS "/v1/keys"

/* ---- create -------------------------------------------------------------------------------- */

struct create_options {
	struct verb_options common;
	const char *name, *scopes;
	uint64_t ttl_ms;
	uint32_t output;
};

static const struct option_row create_rows[] = {
	OPTION(struct create_options, name, OPTION_TEXT, "name", .letter = 'n', .arg = "NAME",
	       .doc = "Name of the key; policies call it key:NAME."),
	OPTION(struct create_options, scopes, OPTION_TEXT, "scopes", .letter = 's',
	       .arg = "SCOPE[,SCOPE...]",
	       .doc = "What the key allows: read, execute, lifecycle, admin."),
	OPTION(struct create_options, ttl_ms, OPTION_SECONDS, "ttl", .arg = "TIME", .min = 1000,
	       .max = 10ull * 365 * 86400 * 1000,
	       .doc = "Time until the key expires: 90, 30m, 7d; by default never."),
	OUTPUT_ROW(struct create_options),
	HELP_ROW(struct create_options),
};
static const struct option_table create_table = OPTION_TABLE(create_rows, .mixed = true);

static int key_create_body(const struct create_options *o, struct buf *to, struct err *e)
{
	struct json_writer w = json_writer(to);

	json_write_object(&w);
	hub_link_text(&w, "name", o->name);
	json_write_key(&w, "scopes");
	json_write_array(&w);
	for (const char *at = o->scopes; *at;) {
		size_t n = strcspn(at, ",");

		json_write_str(&w, (struct str){ at, n });
		at += n + (at[n] == ',');
	}
	json_write_array_end(&w);
	json_write_key(&w, "ttl_seconds");
	json_write_uint(&w, (o->ttl_ms + 999) / 1000);
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

static int key_create(const struct create_options *o, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	autobuf struct buf body = BUF_INIT(BODY_MAX);

	if (key_create_body(o, &body, e) < 0 || !(l = hub_link_open(e)) ||
	    hub_link_ask(l, "POST", KEYS, buf_str(&body), &doc, e) < 0)
		return -1;
	if (o->output == OUTPUT_JSON)
		return hub_link_print(json_root(doc), e);
	printf("%.*s\n", STR_ARG(json_str(json_get(json_root(doc), "token"))));
	fputs("holt: nothing keeps this token, so it is shown this once\n", stderr);
	return 0;
}

static int key_create_run(const struct verb_input *in)
{
	const struct create_options *o = in->options;
	struct err e = ERR_INIT;

	if (!o->name || !o->scopes) {
		err_set(&e, ERR_INVALID, "a key needs --name and --scopes");
		return cli_wrong_usage(in->verb, &e);
	}
	return key_create(o, &e) < 0 ? hub_link_fail(&e) : 0;
}

static const struct verb keys_create_verb = {
	.name = "auth keys create",
	.usage = "--name NAME --scopes SCOPE[,SCOPE...] [--ttl TIME]",
	.doc = "Make an API key, and print its token, only this once.",
	.page = "holt-auth",
	.options = &create_table,
	.size = sizeof(struct create_options),
	.usage_exit = 2,
	.run = key_create_run,
};

/* ---- ls ------------------------------------------------------------------------------------ */

struct ls_options {
	struct verb_options common;
	uint32_t output;
};

static const struct option_row ls_rows[] = {
	OUTPUT_ROW(struct ls_options),
	HELP_ROW(struct ls_options),
};
static const struct option_table ls_table = OPTION_TABLE(ls_rows, .mixed = true);

static void key_row(struct table *t, const struct json_val *k)
{
	struct json_iter scopes = json_iter(json_get(k, "scopes"));
	char text[64] = "";
	size_t n = 0;

	while (json_next(&scopes) && n < sizeof(text))
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%.*s", n ? "," : "",
				      STR_ARG(json_str(scopes.val)));
	table_str(t, json_str(json_get(k, "name")));
	table_str(t, json_str(json_get(k, "id")));
	table_str(t, str_of(text));
	table_str(t, json_str(json_get(k, "created_at")));
	table_str(t, json_str(json_get(k, "used_at")));
	if (json_bool(json_get(k, "expired")))
		table_cell(t, "expired");
	else
		table_str(t, json_str(json_get(k, "expires_at")));
}

static int keys_ls(const struct ls_options *o, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(e);
	AUTO(json_free) struct json_doc *doc = NULL;
	AUTO(table_free)
	struct table *t = TABLE(e, "NAME", "ID", "SCOPES", "CREATED", "USED", "EXPIRES");
	struct json_iter it;

	if (!l || !t || hub_link_ask(l, "GET", KEYS, STR_NONE, &doc, e) < 0)
		return -1;
	if (o->output == OUTPUT_JSON)
		return hub_link_print(json_root(doc), e);
	it = json_iter(json_root(doc));
	while (json_next(&it))
		key_row(t, it.val);
	table_print(t);
	return 0;
}

static int keys_ls_run(const struct verb_input *in)
{
	struct err e = ERR_INIT;

	return keys_ls(in->options, &e) < 0 ? hub_link_fail(&e) : 0;
}

#define LIST                                                                                       \
	.usage = "[OPTION...]", .doc = "List the API keys of the hub, without their tokens.",      \
	.page = "holt-auth", .options = &ls_table, .size = sizeof(struct ls_options),              \
	.usage_exit = 2, .run = keys_ls_run

static const struct verb keys_ls_verb = { .name = "auth keys ls", LIST };

/* ---- revoke -------------------------------------------------------------------------------- */

struct revoke_options {
	struct verb_options common;
};

static const struct option_row revoke_rows[] = { HELP_ROW(struct revoke_options) };
static const struct option_table revoke_table = OPTION_TABLE(revoke_rows, .mixed = true);

static int key_revoke(struct hub_link *l, const char *name, struct err *e)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-";
	char path[128];

	if (!*name || name[strspn(name, letters)] || strlen(name) > 48 || strchr("._-", *name))
		return err_set(e, ERR_KEY_NOT_FOUND, "no key can be called \"%.80s\"", name);
	snprintf(path, sizeof(path), KEYS "/%s", name);
	if (hub_link_ask(l, "DELETE", path, STR_NONE, NULL, e) == 0)
		return 0;
	if (e->code == ERR_SANDBOX_NOT_FOUND) /* the only not_found that the link knows */
		e->code = ERR_KEY_NOT_FOUND;
	return -1;
}

/* Continues after a failure; the exit status is that of the first one. */
static int key_revoke_run(const struct verb_input *in)
{
	struct err e = ERR_INIT;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(&e);
	int status = l ? 0 : hub_link_fail(&e);

	for (int i = 0; l && i < in->n_operands; i++) {
		int failed = key_revoke(l, in->operands[i], &e) < 0 ? hub_link_fail(&e) : 0;

		status = status ? status : failed;
	}
	return status;
}

static const struct verb keys_revoke_verb = {
	.name = "auth keys revoke",
	.usage = "NAME...",
	.doc = "Revoke API keys; requests that use them end at once.",
	.more = "What a key has made stays. A new key of the same name has it.",
	.page = "holt-auth",
	.options = &revoke_table,
	.size = sizeof(struct revoke_options),
	.min_operands = 1,
	.max_operands = NAMES_MAX,
	.usage_exit = 2,
	.run = key_revoke_run,
};

static const struct verb *const words[] = { &keys_ls_verb, &keys_create_verb, &keys_revoke_verb,
					    NULL };

const struct verb auth_keys_verb = { .name = "auth keys", LIST, .words = words };
