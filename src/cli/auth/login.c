/* `holt auth login` and `holt auth whoami`: the token for a server elsewhere. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/common/safe.h"
#include "cli/common/verb.h"
#include "cli/link/credentials.h"
#include "cli/link/link.h"
#include "cli/link/server.h"

#define SERVER_ROW(S)                                                                              \
	OPTION(S, server, OPTION_TEXT, "server", .arg = "URL", .env = "MITOS_BASE_URL",            \
	       .doc = "The server, such as https://hub.example:5757.")

/* Who the server says that the bearer is. A server that is none of ours says nothing of that, but
 * refuses a wrong token. ERR_UNAUTHORIZED: it does. The caller frees *ret_who; NULL: it is not
 * said. */
static int ask_who(const char *url, const struct http_client_options *o, const struct secret *token,
		   char **ret_who, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	struct err why = ERR_INIT;
	struct str name;
	int status = 0;

	*ret_who = NULL;
	doc = server_ask(url, o, token, "/version", &status, &why);
	if (!doc && !status) {
		*e = why;
		return -1;
	}
	if (status == 404) { /* of mitos, which lists sandboxes for whoever may */
		json_free(take_ptr(doc));
		doc = server_ask(url, o, token, "/v1/sandboxes", &status, &why);
	}
	if (status == 401 || status == 403)
		return err_set(e, ERR_UNAUTHORIZED, "%.100s refuses the token", url);
	if (status != 200)
		return err_set(e, ERR_TRANSPORT, "%.100s is no sandbox server (status %d)", url,
			       status);
	name = json_str(json_get(json_root(doc), "principal"));
	*ret_who = name.n ? strndup(name.p, name.n) : NULL;
	return 0;
}

/* ---- login --------------------------------------------------------------------------------- */

struct login_options {
	struct verb_options common;
	const char *server, *file;
	struct tls_options tls;
};

static const struct option_row login_rows[] = {
	SERVER_ROW(struct login_options),
	OPTION(struct login_options, file, OPTION_TEXT, "token-file", .arg = "FILE",
	       .doc = "File with the token; by default standard input."),
	TLS_ROWS(struct login_options, tls),
	HELP_ROW(struct login_options),
};
static const struct option_table login_table = OPTION_TABLE(login_rows, .mixed = true);

static int login_run(const struct verb_input *in, struct err *e)
{
	const struct login_options *o = in->options;
	AUTO(secret_free) struct secret *token = NULL;
	struct http_client_options known;
	autofree char *url = server_url(o->server, &o->tls, &known, e), *who = NULL;
	char path[PATH_MAX];

	token = url ? token_read(o->file, e) : NULL;
	if (!token || ask_who(url, &known, token, &who, e) < 0 ||
	    credentials_write(url, token, path, e) < 0)
		return -1;
	printf("Logged in to %s%s", url, who ? " as " : "");
	if (who)
		safe_line(stdout, str_of(who));
	printf("\nThe token is in %s\n", path);
	return 0;
}

static int login_check(const struct verb_input *in, struct err *e)
{
	const struct login_options *o = in->options;

	return o->server ? 0 : err_set(e, ERR_INVALID, "a log-in needs --server");
}

const struct verb auth_login_verb = {
	.name = "auth login",
	.usage = "--server URL [--token-file FILE]",
	.doc = "Store the token of a remote server, for holt mcp --server.",
	.more = "The token is read from standard input, at a terminal without an echo, and tried\n"
		"at the server first. It is stored for that server alone.",
	.options = &login_table,
	.size = sizeof(struct login_options),
	.check = login_check,
	.run = login_run,
};

/* ---- whoami -------------------------------------------------------------------------------- */

struct whoami_options {
	struct verb_options common;
	const char *server;
	struct token_options token;
	struct tls_options tls;
	uint32_t output;
};

static const struct option_row whoami_rows[] = {
	SERVER_ROW(struct whoami_options),    TOKEN_ROWS(struct whoami_options, token),
	TLS_ROWS(struct whoami_options, tls), OUTPUT_ROW(struct whoami_options),
	HELP_ROW(struct whoami_options),
};
static const struct option_table whoami_table = OPTION_TABLE(whoami_rows, .mixed = true);

static void show(uint32_t output, const char *server, const char *who, const char *from)
{
	const char *const rows[][2] = { { "server", server },
					{ "principal", who },
					{ "token_from", from } };
	struct buf text = BUF_INIT(64 << 10);
	struct json_writer w = json_writer(&text);
	struct err e = ERR_INIT;

	json_write_object(&w);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (output == OUTPUT_JSON) {
			hub_link_text(&w, rows[i][0], rows[i][1]);
			continue;
		}
		printf("%-11s ", rows[i][0]);
		safe_puts(stdout, str_of(rows[i][1] ? rows[i][1] : "(the server does not say)"));
	}
	json_write_object_end(&w);
	if (output == OUTPUT_JSON && json_write_done(&w, &e) == 0)
		safe_json_puts(stdout, buf_str(&text));
	buf_fini(&text);
}

/* Without any server: the hub of this user. */
static int whoami_here(uint32_t output)
{
	struct err e = ERR_INIT;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(&e);
	AUTO(json_free) struct json_doc *doc = NULL;
	autofree char *who = NULL;
	struct str name;

	if (!l || hub_link_ask(l, "GET", "/version", STR_NONE, &doc, &e) < 0)
		return hub_link_fail(&e);
	name = json_str(json_get(json_root(doc), "principal"));
	who = strndup(name.p ? name.p : "", name.n);
	show(output, "the hub of this user", who, "the data folder");
	return 0;
}

static int whoami_there(const struct whoami_options *o, const char *server, struct err *e)
{
	AUTO(secret_free) struct secret *token = NULL;
	struct http_client_options known;
	autofree char *url = server_url(server, &o->tls, &known, e), *who = NULL;
	const char *from;

	if (!url || token_find(&o->token, url, &token, &from, e) < 0 ||
	    ask_who(url, &known, token, &who, e) < 0)
		return -1;
	show(o->output, url, who, from);
	return 0;
}

static int whoami_run(const struct verb_input *in, struct err *e)
{
	const struct whoami_options *o = in->options;
	autofree char *stored = o->server ? NULL : credentials_server();
	const char *server = o->server ? o->server : stored;

	if (!server)
		return whoami_here(o->output);
	return whoami_there(o, server, e);
}

const struct verb auth_whoami_verb = {
	.name = "auth whoami",
	.usage = "[--server URL]",
	.doc = "Show the principal and the source of the token in use.",
	.more = "The server is that of --server, else of MITOS_BASE_URL, else of holt auth login,\n"
		"else the hub of this user. The token is never printed.",
	.options = &whoami_table,
	.size = sizeof(struct whoami_options),
	.run = whoami_run,
};
