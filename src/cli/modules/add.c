/* `holt mcp add`: a server for the operator's file, as other clients are told of it. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cli/common/file.h"
#include "cli/common/home.h"
#include "cli/common/safe.h"
#include "cli/common/tty.h"
#include "cli/import/own.h"
#include "cli/modules/modules.h"
#include "cli/secret/secret.h"
#include "guard/redact/redact.h"

enum { FOUND_MAX = 1 << 20, ENTRY_MAX = 1 << 20, EXIT_LEFT = 1, AWAIT_MAX = 100 };

struct add_options {
	struct verb_options common;
	const char *url, *bearer, *config;
	struct option_list env, headers;
	uint32_t transport, scope;
};

static const struct option_row rows[] = {
	OPTION(struct add_options, env, OPTION_LIST, "env", .letter = 'e', .arg = "KEY=VALUE",
	       .doc = "Variable of the program. May be repeated."),
	OPTION(struct add_options, headers, OPTION_LIST, "header", .letter = 'H',
	       .arg = "\"NAME: VALUE\"", .doc = "Header of requests to a URL. May be repeated."),
	OPTION(struct add_options, transport, OPTION_CHOICE, "transport", .letter = 't',
	       .arg = "stdio|http|sse", .same = "local|streamable-http|sse",
	       .doc = "By default stdio for a command and http, Streamable HTTP, for a URL."),
	OPTION(struct add_options, url, OPTION_TEXT, "url", .arg = "URL",
	       .doc = "The URL, if it is no operand."),
	OPTION(struct add_options, bearer, OPTION_TEXT, "bearer-token-env-var", .arg = "VARIABLE",
	       .doc = "Variable of the hub's environment with a token for the URL."),
	OPTION(struct add_options, scope, OPTION_CHOICE, "scope", .letter = 's', .arg = "user",
	       .doc = "Only user: the operator's file is of one user, and of no project."),
	CONFIG_ROW(struct add_options, config),
	HELP_ROW(struct add_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true, .program_at = 1);

/* ---- an entry of words ----------------------------------------------------------------------- */

static int add_pair(struct json_writer *w, const char *word, char sep, const char *option,
		    struct err *e)
{
	const char *at = strchr(word, sep);

	if (!at || at == word)
		return err_set(e, ERR_INVALID, "%s, not '%.40s'", option, word);
	json_write_key_str(w, (struct str){ word, (size_t)(at - word) });
	for (at++; sep == ':' && *at == ' ';)
		at++;
	json_write_text(w, at);
	return 0;
}

static int add_pairs(struct json_writer *w, const char *name, const struct option_list *l, char sep,
		     const char *option, struct err *e)
{
	json_write_key(w, name);
	json_write_object(w);
	for (size_t i = 0; i < l->n; i++) {
		if (add_pair(w, l->p[i], sep, option, e) < 0)
			return -1;
	}
	return 0;
}

static int add_url(const struct add_options *o, const char *url, struct json_writer *w,
		   struct err *e)
{
	if (o->env.n || o->transport == 1)
		return err_set(e, ERR_INVALID, "--env and --transport stdio are for a command");
	json_write_key(w, "type");
	json_write_text(w, o->transport == 3 ? "sse" : "http");
	json_write_key(w, "url");
	json_write_text(w, url);
	if (add_pairs(w, "headers", &o->headers, ':', "--header takes \"NAME: VALUE\"", e) < 0)
		return -1;
	if (o->bearer) {
		autobuf struct buf text = BUF_INIT(ENTRY_MAX);

		if (buf_addf(&text, e, "Bearer ${%s}", o->bearer) < 0)
			return -1;
		json_write_key(w, "Authorization");
		json_write_str(w, buf_str(&text));
	}
	json_write_object_end(w);
	return 0;
}

static int add_command(const struct add_options *o, char **words, struct json_writer *w,
		       struct err *e)
{
	if (o->headers.n || o->bearer || o->transport > 1)
		return err_set(e, ERR_INVALID,
			       "--header, --bearer-token-env-var and --transport %s are for a URL",
			       o->transport == 3 ? "sse" : "http");
	json_write_key(w, "command");
	json_write_text(w, words[0]);
	json_write_key(w, "args");
	json_write_array(w);
	for (size_t i = 1; words[i]; i++)
		json_write_text(w, words[i]);
	json_write_array_end(w);
	if (add_pairs(w, "env", &o->env, '=', "--env takes KEY=VALUE", e) < 0)
		return -1;
	json_write_object_end(w);
	return 0;
}

static bool add_is_url(const char *word)
{
	return str_starts(str_of(word), "http://") || str_starts(str_of(word), "https://");
}

/* Options may follow a URL, which has no arguments. */
static int add_behind(struct add_options *o, char **words, struct err *e)
{
	int n = 1, at;

	if (o->url)
		return err_set(e, ERR_INVALID, "--url has the URL: leave out '%.40s'", words[0]);
	o->url = words[0];
	while (words[n])
		n++;
	at = option_parse(&options, n, words, o, e);
	return at < 0 || at == n ? at : err_set(e, ERR_INVALID, "too much: '%.40s'", words[at]);
}

static int add_words(const struct verb_input *in, struct buf *to, struct err *e)
{
	struct add_options o = *(const struct add_options *)in->options;
	struct json_writer w = json_writer(to);

	if (in->rest && add_is_url(in->rest[0]) && add_behind(&o, in->rest, e) < 0)
		return -1;
	if (o.url && in->rest && !add_is_url(in->rest[0]))
		return err_set(e, ERR_INVALID, "a server has a command or a URL, not both");
	if (o.url && !add_is_url(o.url))
		return err_set(e, ERR_INVALID, "--url takes http://... or https://...");
	if (!o.url && !in->rest && (add_is_url(in->operands[0]) || strchr(in->operands[0], '/')))
		return err_set(e, ERR_INVALID, "a name stands before it: holt mcp add NAME %.120s",
			       in->operands[0]);
	if (!o.url && (!in->rest || !in->rest[0]))
		return err_set(e, ERR_INVALID,
			       "what is to be started: holt mcp add %.64s -- COMMAND ARGUMENT..., "
			       "or a URL, or - for a block of JSON",
			       in->operands[0]);
	json_write_object(&w);
	json_write_key(&w, "mcpServers");
	json_write_object(&w);
	json_write_key(&w, in->operands[0]);
	json_write_object(&w);
	if (o.url ? add_url(&o, o.url, &w, e) < 0 : add_command(&o, in->rest, &w, e) < 0)
		return -1;
	json_write_object_end(&w);
	json_write_object_end(&w);
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

/* ---- a block --------------------------------------------------------------------------------- */

/* "-", or JSON: after NAME, or in place of it. NULL: neither. */
static const char *add_block(const struct verb_input *in, struct str *ret_name)
{
	const char *first = in->operands[0], *second = in->rest ? in->rest[0] : NULL;
	const char *block = second && !in->rest[1] ? second : second ? NULL : first;

	*ret_name = second ? str_of(first) : STR_NONE;
	if (!block || (strcmp(block, "-") != 0 && !strpbrk(block, "{\"")))
		return NULL;
	return second && *block == '/' ? NULL : block;
}

static int add_paste(const struct verb_input *in, const char *block, struct str name,
		     struct buf *to, struct err *e)
{
	const struct add_options *o = in->options;

	if (o->env.n || o->headers.n || o->url || o->bearer || o->transport)
		return err_set(e, ERR_INVALID,
			       "a block says all of that itself: leave out "
			       "--env, --header, --transport and --url");
	if (strcmp(block, "-") != 0) {
		if (buf_add(to, block, strlen(block), e) < 0)
			return -1;
	} else {
		if (isatty(STDIN_FILENO))
			fputs("Paste the block, then press Enter and Ctrl-D:\n", stderr);
		if (file_read_fd(STDIN_FILENO, "standard input", to, e) < 0)
			return -1;
	}
	return foreign_paste(to, name, e);
}

/* ---- the verb -------------------------------------------------------------------------------- */

static int add_read(const struct config *c, struct buf *text, struct foreign_found *found,
		    struct err *e)
{
	AUTO(redactor_free) struct redactor *redactor = redactor_new(NULL, e);
	AUTO(json_free) struct json_doc *doc = redactor ? foreign_parse(text, e) : NULL;
	struct foreign_options read = { .client = foreign_client_of(json_root(doc)),
					.redactor = redactor,
					.advise = true,
					.have = config_file(c),
					.note = own_note };
	char folder[PATH_MAX];

	if (!doc)
		return -1;
	if (!getcwd(folder, sizeof(folder)))
		return err_sys(e, errno, "the current folder");
	read.folder = str_of(folder);
	return foreign_read(json_root(doc), &read, found, e);
}

/* At a terminal: the values of the secrets that an entry names, each once. */
static int add_secrets(struct hub_link *l, struct str servers, struct err *e)
{
	static const char open[] = "${secret:";
	const char *at = servers.p, *end = servers.p + servers.n, *close;

	while ((at = memmem(at, (size_t)(end - at), open, sizeof(open) - 1)) &&
	       (close = memchr(at, '}', (size_t)(end - at)))) {
		autowipe struct buf value = BUF_INIT(SECRET_VALUE_MAX + 1);
		size_t n = (size_t)(close - at) + 1;
		bool again = memmem(servers.p, (size_t)(at - servers.p), at, n);
		char name[CONFIG_NAME_MAX + 1], prompt[160];

		at += sizeof(open) - 1;
		snprintf(name, sizeof(name), "%.*s", (int)(close - at), at);
		snprintf(prompt, sizeof(prompt), "Value of the secret %s (empty: later): ", name);
		if (again)
			continue;
		if (tty_read_secret(prompt, &value, e) < 0 ||
		    (value.n && secret_store(l, name, buf_str(&value), e) < 0))
			return -1;
	}
	return 0;
}

/* A running hub reads the file a moment after it was written. */
static int add_await(struct hub_link *l, const char *name, struct err *e)
{
	const struct timespec pause = { .tv_nsec = 50000000 };
	char path[256];
	int rc = -1;

	if (hub_ask_path(&modules, path, sizeof(path), name, "", e) < 0)
		return -1;
	for (int i = 0; i < AWAIT_MAX && rc < 0; i++) {
		rc = hub_link_ask(l, "GET", path, STR_NONE, NULL, e);
		if (rc < 0 && e->code != ERR_SANDBOX_NOT_FOUND) /* "not_found" of the hub */
			return -1;
		if (rc < 0)
			nanosleep(&pause, NULL);
	}
	return rc;
}

/* The commands that a person would type next. */
static int add_go_on(const struct verb_input *in, const char *name, struct str servers,
		     struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(e);
	const struct ask_options none = { .output = OUTPUT_DEFAULT };
	char *operands[] = { (char *)name, NULL };
	const struct verb_input next = { .cli = in->cli,
					 .verb = &mcp_approve_verb,
					 .options = &none,
					 .operands = operands,
					 .n_operands = 1 };

	if (!l || add_secrets(l, servers, e) < 0 || add_await(l, name, e) < 0)
		return -1;
	return mcp_approve_verb.run(&next, e);
}

/* What is there now, and what comes next: at a terminal that of a single one. */
static int add_tell(const struct verb_input *in, const struct config *c,
		    const struct foreign_found *found, struct err *e)
{
	const struct add_options *o = in->options;
	AUTO(json_free) struct json_doc *doc = json_parse(buf_str(&found->servers), NULL, e);
	struct json_iter it = json_iter(json_root(doc));
	char name[CONFIG_SERVER_NAME_MAX + 1] = "";

	if (!doc)
		return -1;
	safe_line(stdout, str_of(config_path(c)));
	printf(": %zu added\n", found->n);
	while (json_next(&it)) {
		snprintf(name, sizeof(name), "%.*s", STR_ARG(it.key));
		printf("next: holt mcp approve %s\n", name);
	}
	if (found->n != 1 || o->config || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return 0;
	fflush(stdout);
	return add_go_on(in, name, buf_str(&found->servers), e);
}

static int add_found(const struct verb_input *in, struct buf *text, struct foreign_found *found,
		     struct err *e)
{
	const struct add_options *o = in->options;
	AUTO(config_unref) struct config *c = NULL;
	char path[PATH_MAX];
	bool must;

	c = home_config(o->config, path, &must, e) < 0 ? NULL : config_open(path, false, e);
	if (!c || add_read(c, text, found, e) < 0)
		return -1;
	if (found->n && (own_add(c, found, e) < 0 || add_tell(in, c, found, e) < 0))
		return -1;
	return found->left ? EXIT_LEFT : 0;
}

static int add_run(const struct verb_input *in, struct err *e)
{
	autowipe struct buf text = BUF_INIT(FOREIGN_BYTES_MAX);
	struct foreign_found found = { BUF_INIT(FOUND_MAX), BUF_INIT(FOUND_MAX), 0, 0 };
	struct str name;
	const char *block = add_block(in, &name);
	int rc;

	if (!block && add_words(in, &text, e) < 0)
		return cli_wrong_usage(in->verb, e);
	rc = block && add_paste(in, block, name, &text, e) < 0 ? -1
							       : add_found(in, &text, &found, e);
	buf_fini(&found.servers);
	buf_fini(&found.inputs);
	return rc;
}

const struct verb mcp_add_verb = {
	.name = "mcp add",
	.alias = "mcp add-json",
	.usage = "[OPTION...] NAME -- COMMAND... | NAME URL | [NAME] JSON|-",
	.doc = "Add an MCP server to the operator's file.",
	.more = "COMMAND is what the server's page says: npx -y PACKAGE, uvx PACKAGE, docker run\n"
		"-i IMAGE, or a path. - reads a block of JSON from standard input, as that page\n"
		"has it for any client. All else in the file stays. No secret is copied: holt\n"
		"secret set stores it. Nothing starts before holt mcp approve NAME.",
	.page = "holt-mcp-modules",
	.options = &options,
	.size = sizeof(struct add_options),
	.min_operands = 1,
	.run = add_run,
	.fail = hub_link_fail,
};
