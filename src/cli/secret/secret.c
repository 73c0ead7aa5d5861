/* `holt secret`: the operator's secrets. Without a subcommand it lists them. */
#include <stdio.h>

#include "cli/common/safe.h"
#include "cli/common/table.h"
#include "cli/common/tty.h"
#include "cli/common/verb.h"
#include "cli/link/link.h"
#include "json/document/utf8.h"

enum { VALUE_MAX = 32 << 10, NAMES_MAX = 1024 };

struct secret_verb_options {
	struct verb_options common;
	uint32_t output;
};

static const struct option_row list_rows[] = {
	OUTPUT_ROW(struct secret_verb_options),
	HELP_ROW(struct secret_verb_options),
};
static const struct option_table list_options = OPTION_TABLE(list_rows, .mixed = true);
static const struct option_row bare_rows[] = { HELP_ROW(struct secret_verb_options) };
static const struct option_table bare_options = OPTION_TABLE(bare_rows, .mixed = true);

/* Names have no character that a path would escape. */
static int secret_path(char *ret, size_t size, const char *name, struct err *e)
{
	size_t n = strlen(name);

	if (n == 0 || n > 64 || strchr("._-", name[0]) ||
	    strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") != n)
		return err_set(e, ERR_INVALID, "no secret can be called \"%.80s\"", name);
	snprintf(ret, size, "/v1/secrets/%s", name);
	return 0;
}

/* ---- ls ------------------------------------------------------------------------------------ */

static int secret_list(bool json, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(e);
	AUTO(json_free) struct json_doc *doc = NULL;
	AUTO(table_free) struct table *t = TABLE(e, "NAME", "PROVIDER", "CHANGED");
	struct json_iter it;

	if (!l || !t || hub_link_ask(l, "GET", "/v1/secrets", STR_NONE, &doc, e) < 0)
		return -1;
	if (json)
		return hub_link_print(json_get(json_root(doc), "secrets"), e);
	it = json_iter(json_get(json_root(doc), "secrets"));
	while (json_next(&it)) {
		table_str(t, json_str(json_get(it.val, "name")));
		table_str(t, json_str(json_get(it.val, "provider")));
		table_str(t, json_str(json_get(it.val, "changed_at")));
	}
	table_print(t);
	return 0;
}

static int run_list(const struct verb_input *in)
{
	const struct secret_verb_options *o = in->options;
	struct err e = ERR_INIT;

	return secret_list(o->output == OUTPUT_JSON, &e) < 0 ? hub_link_fail(&e) : 0;
}

/* ---- set ----------------------------------------------------------------------------------- */

static int secret_set(const char *name, struct err *e)
{
	autowipe struct buf value = BUF_INIT(VALUE_MAX + 1), text = BUF_INIT(VALUE_MAX * 6 + 256);
	AUTO(hub_link_close) struct hub_link *l = NULL;
	struct json_writer w = json_writer(&text);

	if (tty_read_secret("Value: ", &value, e) < 0 || !buf_reserve(&text, text.max, e))
		return -1;
	if (value.n > VALUE_MAX)
		return err_set(e, ERR_INVALID, "a secret has at most %d bytes", VALUE_MAX);
	if (!utf8_valid(buf_str(&value))) /* the writer would replace what is not */
		return err_set(e, ERR_INVALID, "a secret is text in UTF-8");
	json_write_object(&w);
	hub_link_text(&w, "name", name);
	json_write_key(&w, "value");
	json_write_str(&w, buf_str(&value));
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0 || !(l = hub_link_open(e)))
		return -1;
	return hub_link_ask(l, "POST", "/v1/secrets", buf_str(&text), NULL, e);
}

static int run_set(const struct verb_input *in)
{
	struct err e = ERR_INIT;

	return secret_set(in->operands[0], &e) < 0 ? hub_link_fail(&e) : 0;
}

/* ---- rm ------------------------------------------------------------------------------------ */

static int secret_remove(struct hub_link *l, const char *name, struct err *e)
{
	char path[128];

	return secret_path(path, sizeof(path), name, e) < 0
		     ? -1
		     : hub_link_ask(l, "DELETE", path, STR_NONE, NULL, e);
}

/* Continues after a failure; the exit status is that of the first one. */
static int run_remove(const struct verb_input *in)
{
	struct err e = ERR_INIT;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(&e);
	int status = l ? 0 : hub_link_fail(&e);

	for (int i = 0; l && i < in->n_operands; i++) {
		int failed = secret_remove(l, in->operands[i], &e) < 0 ? hub_link_fail(&e) : 0;

		status = status ? status : failed;
	}
	return status;
}

/* ---- the verbs ----------------------------------------------------------------------------- */

#define LIST                                                                                       \
	.usage = "[OPTION...]", .doc = "List the names of the operator's secrets.",                \
	.more = "PROVIDER is where a value comes from: store, or what config.json says.",          \
	.page = "holt-secret", .options = &list_options,                                           \
	.size = sizeof(struct secret_verb_options), .usage_exit = 2, .run = run_list

static const struct verb secret_ls_verb = { .name = "secret ls", LIST };

static const struct verb secret_set_verb = {
	.name = "secret set",
	.usage = "NAME",
	.doc = "Store a secret, or replace it, from standard input.",
	.more = "At a terminal it is a line that is not shown. Nothing prints it again.",
	.page = "holt-secret",
	.options = &bare_options,
	.size = sizeof(struct secret_verb_options),
	.min_operands = 1,
	.max_operands = 1,
	.usage_exit = 2,
	.run = run_set,
};

static const struct verb secret_rm_verb = {
	.name = "secret rm",
	.usage = "NAME...",
	.doc = "Delete secrets from the store.",
	.more = "Programs that have them keep them.",
	.page = "holt-secret",
	.options = &bare_options,
	.size = sizeof(struct secret_verb_options),
	.min_operands = 1,
	.max_operands = NAMES_MAX,
	.usage_exit = 2,
	.run = run_remove,
};

static const struct verb *const words[] = {
	&secret_ls_verb,
	&secret_set_verb,
	&secret_rm_verb,
	NULL,
};

const struct verb secret_verb = { .name = "secret", LIST, .words = words };
