/* `holt mcp config`: the entry by which another client finds Holt. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/common/home.h"
#include "cli/common/safe.h"
#include "cli/common/verb.h"
#include "cli/import/file.h"
#include "cli/import/foreign.h"
#include "cli/import/recipe.h"
#include "config/config.h"
#include "json/document/write.h"

enum { ENTRY_MAX = 64 << 10, URL_MAX = 2000, ARGS_MAX = 6, MODE = 0600 };

struct config_options {
	struct verb_options common;
	const char *name, *url, *connect, *tools;
	bool with_token, write;
};

static const struct option_row rows[] = {
	OPTION(struct config_options, name, OPTION_TEXT, "name", .arg = "NAME",
	       .doc = "Name of the entry; holt by default."),
	OPTION(struct config_options, url, OPTION_TEXT, "url", .arg = "URL",
	       .doc = "Connect the client to a running hub over HTTP, at this URL."),
	OPTION(struct config_options, connect, OPTION_TEXT, "connect", .arg = "URL",
	       .doc = "Connect the client to a running hub by holt mcp --connect URL."),
	OPTION(struct config_options, tools, OPTION_TEXT, "tools", .arg = "LIST",
	       .doc = "Only these tools: names, and sets such as coding."),
	OPTION(struct config_options, with_token, OPTION_FLAG, "with-token",
	       .doc = "Include the hub's token."),
	OPTION(struct config_options, write, OPTION_FLAG, "write",
	       .doc = "Write the entry to FILE, or to the client's own file of this user."),
	HELP_ROW(struct config_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

/* The parts of an entry. */
struct making {
	const struct foreign_client *client;
	struct recipe recipe;
	char command[PATH_MAX], url[URL_MAX + 1];
	const char *args[ARGS_MAX];
	struct secret *token;
};

/* ---- the entry ----------------------------------------------------------------------------- */

static bool is_word(const char *text, const char *more)
{
	for (; *text; text++) {
		bool plain = (*text >= 'a' && *text <= 'z') || (*text >= '0' && *text <= '9') ||
			     (*text >= 'A' && *text <= 'Z') || strchr(more, *text);

		if (!plain)
			return false;
	}
	return true;
}

/* The hub's MCP server; a list of tools goes with the query. */
static int making_url(struct making *m, const char *url, const char *tools, struct err *e)
{
	const char *host = strstr(url, "://"), *path = host ? strchr(host + 3, '/') : NULL;
	int n;

	if (!host || (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) ||
	    !is_word(url, ":/.-_~[]%?=&,+"))
		return err_set(e, ERR_INVALID, "--url takes http://HOST:PORT or https://HOST");
	n = snprintf(m->url, sizeof(m->url), "%s%s%s%s", url, path ? "" : "/mcp",
		     !tools		? ""
		     : strchr(url, '?') ? "&tools="
					: "?tools=",
		     tools ? tools : "");
	if (n < 0 || n > URL_MAX)
		return err_set(e, ERR_INVALID, "--url is too long");
	m->recipe.url = str_of(m->url);
	return 0;
}

/* Its path, since clients on a desktop may have another PATH. */
static int making_program(struct making *m, const struct config_options *o, struct err *e)
{
	ssize_t n = readlink("/proc/self/exe", m->command, sizeof(m->command) - 1);
	size_t at = 0;

	if (n <= 0)
		return err_sys(e, errno, "the path of holt");
	m->command[n] = '\0';
	m->args[at++] = "mcp";
	if (o->connect) {
		m->args[at++] = "--connect";
		m->args[at++] = o->connect;
	}
	if (o->tools) {
		m->args[at++] = "--tools";
		m->args[at++] = o->tools;
	}
	m->recipe.command = m->command;
	m->recipe.args = m->args;
	return 0;
}

static int making_token(struct making *m, const struct config_options *o, struct err *e)
{
	const char *url = o->url ? o->url : o->connect;

	if (!o->with_token)
		return 0;
	if (!url)
		return err_set(e, ERR_INVALID, "--with-token goes with --url or --connect");
	if (home_token_for(str_starts(str_of(url), "unix:") ? "http://localhost" : url, &m->token,
			   NULL, e) < 0)
		return -1;
	if (!m->token)
		return err_set(e, ERR_INVALID, "HOLT_TOKEN is to have the token of that hub");
	m->recipe.token = secret_expose(m->token, "written into a client's entry");
	return 0;
}

static int making_init(struct making *m, const struct verb_input *in, struct err *e)
{
	const struct config_options *o = in->options;

	m->client = foreign_client_find(in->operands[0], e);
	m->recipe.name = o->name ? o->name : "holt";
	if (!m->client)
		return -1;
	if (!*m->recipe.name || strlen(m->recipe.name) > 32 || !is_word(m->recipe.name, "-_"))
		return err_set(e, ERR_INVALID, "--name takes letters, digits, - and _");
	if (o->tools && !is_word(o->tools, ",_-"))
		return err_set(e, ERR_INVALID, "--tools takes names, separated by commas");
	if (o->url && o->connect)
		return err_set(e, ERR_INVALID, "--url and --connect are two ways; take one");
	if (in->n_operands > 1 && !o->write)
		return err_set(e, ERR_INVALID, "FILE goes with --write");
	if (o->url ? making_url(m, o->url, o->tools, e) < 0 : making_program(m, o, e) < 0)
		return -1;
	return making_token(m, o, e) < 0 ? -1 : recipe_check(m->client, &m->recipe, e);
}

/* ---- printing ------------------------------------------------------------------------------ */

static int print(const struct making *m, struct str entry, struct err *e)
{
	autowipe struct buf text = BUF_INIT(2 * ENTRY_MAX);
	AUTO(json_free) struct json_doc *doc = NULL;

	if (m->client->toml) {
		fwrite(entry.p, 1, entry.n, stdout);
		return 0;
	}
	if (!buf_reserve(&text, 2 * ENTRY_MAX, e) || buf_addf(&text, e, "{") < 0 ||
	    (recipe_asks(m->client, &m->recipe) &&
	     (buf_addf(&text, e, "\"inputs\":") < 0 || recipe_write_inputs(&text, e) < 0 ||
	      buf_addf(&text, e, ",") < 0)) ||
	    buf_addf(&text, e, "\"%s\":%.*s}", m->client->root, STR_ARG(entry)) < 0)
		return -1;
	doc = json_parse(buf_str(&text), NULL, e);
	if (!doc || safe_json_lines(stdout, json_root(doc), 0, e) < 0)
		return -1;
	putchar('\n');
	return 0;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* The client's file of this user, which is its last one. */
static int file_of(const struct making *m, const char *said, char ret[PATH_MAX], struct err *e)
{
	const char *last = NULL;

	for (const char *const *file = m->client->files; *file; file++)
		last = *file;
	if (!said && !last)
		return err_set(e, ERR_INVALID, "%s has no file of its own: name one",
			       m->client->name);
	return import_path(said ? said : last, ret, e);
}

static bool has_input(const struct json_val *inputs)
{
	struct json_iter it = json_iter(inputs);

	while (json_next(&it)) {
		if (str_is(json_str(json_get(it.val, "id")), RECIPE_INPUT))
			return true;
	}
	return false;
}

/* text: as it is; root: what it says. */
static int add_json(const struct making *m, struct str text, const struct json_val *root,
		    struct str entry, struct buf *to, struct err *e)
{
	autowipe struct buf lines = BUF_INIT(2 * ENTRY_MAX);
	autobuf struct buf inputs = BUF_INIT(ENTRY_MAX), input = BUF_INIT(ENTRY_MAX),
			   with = BUF_INIT(FOREIGN_BYTES_MAX);
	const struct json_val *have = json_get(root, "inputs");

	if (import_lines(entry, &lines, e) < 0)
		return -1;
	if (!recipe_asks(m->client, &m->recipe) || has_input(have))
		return config_insert(text, m->client->root, "{}", buf_str(&lines), to, e);
	return recipe_write_inputs(&inputs, e) < 0 ||
			       import_lines(buf_str(&inputs), &input, e) < 0 ||
			       config_insert(text, "inputs", "[]", buf_str(&input), &with, e) < 0
		     ? -1
		     : config_insert(buf_str(&with), m->client->root, "{}", buf_str(&lines), to, e);
}

static struct json_doc *parse(struct str text, struct err *e)
{
	autobuf struct buf copy = BUF_INIT(FOREIGN_BYTES_MAX);
	struct str blank = STR_LIT("{}");

	if (buf_add(&copy, text.n ? text.p : blank.p, text.n ? text.n : blank.n, e) < 0)
		return NULL;
	return foreign_parse(&copy, e);
}

static const struct json_val *server_of(const struct making *m, const struct json_doc *doc)
{
	return json_get(json_get(json_root(doc), m->client->root), m->recipe.name);
}

static int add_by_hand(const char *path, struct err *e)
{
	return err_set(e, ERR_INVALID,
		       "%.120s is written in a way to which nothing can be added: do it by hand",
		       path);
}

static int add_is_there(const struct making *m, const char *path, struct err *e)
{
	return err_set(e, ERR_CONFLICT,
		       "%.120s has a server %s already: take it out, or choose a --name", path,
		       m->recipe.name);
}

/* Appends a table. Only headers of tables may name servers before it: any other form could be one
 * that TOML closes, and only its own reader can tell. */
static int add_toml(const struct making *m, const char *path, struct str text, struct str entry,
		    struct buf *to, struct err *e)
{
	autobuf struct buf ours = BUF_INIT(ENTRY_MAX);
	const char *header = "[mcp_servers.", *at = text.p;
	size_t left, n = strlen("mcp_servers");

	if (buf_addf(&ours, e, "%s%s", header, m->recipe.name) < 0)
		return -1;
	while (at && (left = text.n - (size_t)(at - text.p)) > 0 &&
	       (at = memmem(at, left, header + 1, n))) {
		struct str line = STR_NONE;

		if (at > text.p)
			line = (struct str){ at - 1, left + 1 };
		if (!str_starts(line, header) || (line.p > text.p && line.p[-1] != '\n') ||
		    line.n == n + 2 || strchr("\"'", line.p[n + 2]))
			return add_by_hand(path, e);
		if (line.n > ours.n && memcmp(line.p, ours.p, ours.n) == 0 &&
		    !is_word((char[]){ line.p[ours.n], '\0' }, "-_"))
			return add_is_there(m, path, e);
		at += n;
	}
	return buf_addf(to, e, "%.*s%s%.*s", STR_ARG(text), text.n ? "\n" : "", STR_ARG(entry));
}

/* Never replaces a server that is there. */
static int add(const struct making *m, const char *path, struct str text, struct str entry,
	       struct buf *to, struct err *e)
{
	AUTO(json_free) struct json_doc *was = NULL, *now = NULL;

	if (m->client->toml)
		return add_toml(m, path, text, entry, to, e);
	was = parse(text, e);
	if (!was)
		return err_wrap(e, "%.120s", path);
	if (server_of(m, was))
		return add_is_there(m, path, e);
	if (add_json(m, text, json_root(was), entry, to, e) < 0)
		return err_wrap(e, "%.120s", path);
	now = parse(buf_str(to), e);
	return now && server_of(m, now) ? 0 : add_by_hand(path, e);
}

static int write_to(const struct making *m, const char *file, struct str entry, struct err *e)
{
	autowipe struct buf was = BUF_INIT(FOREIGN_BYTES_MAX), now = BUF_INIT(FOREIGN_BYTES_MAX);
	char said[PATH_MAX], path[PATH_MAX];
	struct stat st;

	if (file_of(m, file, said, e) < 0 || import_file_open(said, path, &was, &st, e) < 0 ||
	    !buf_reserve(&now, was.n + 4 * ENTRY_MAX, e) ||
	    add(m, path, buf_str(&was), entry, &now, e) < 0 ||
	    import_file_write(path, MODE, &st, buf_str(&now), e) < 0)
		return -1;
	safe_line(stdout, str_of(path));
	printf(": %s added\n", m->recipe.name);
	return 0;
}

/* ---- the verb ------------------------------------------------------------------------------ */

static int config_run(const struct verb_input *in, struct err *e)
{
	const struct config_options *o = in->options;
	struct making m = { .client = NULL };
	autowipe struct buf entry = BUF_INIT(ENTRY_MAX);
	int status = 0;

	if (making_init(&m, in, e) < 0)
		status = e->code == ERR_INVALID ? cli_wrong_usage(in->verb, e) : cli_fail(e);
	else if (!buf_reserve(&entry, ENTRY_MAX, e) ||
		 recipe_write(m.client, &m.recipe, &entry, e) < 0 ||
		 (o->write ? write_to(&m, in->n_operands > 1 ? in->operands[1] : NULL,
				      buf_str(&entry), e)
			   : print(&m, buf_str(&entry), e)) < 0)
		status = cli_fail(e);
	secret_free(m.token);
	return status;
}

const struct verb mcp_config_verb = {
	.name = "mcp config",
	.usage = "[OPTION...] CLIENT [FILE]",
	.doc = "Print the configuration with which an MCP client uses Holt.",
	.more = "By default the client starts holt mcp, with sandboxes of its own.\n"
		"With --write all else in the file stays as it is, and it gets the mode 0600.\n"
		"CLIENT is one of\n" FOREIGN_NAMES FOREIGN_WRITTEN ".",
	.page = "holt-mcp-client",
	.operand = foreign_client_name,
	.options = &options,
	.size = sizeof(struct config_options),
	.min_operands = 1,
	.max_operands = 2,
	.run = config_run,
};
