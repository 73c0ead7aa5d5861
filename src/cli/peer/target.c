/* Finds the server: from the options, or by name in a configuration file of the common form. */
#include <string.h>

#include "cli/common/file.h"
#include "cli/common/home.h"
#include "cli/link/link.h"
#include "cli/peer/internal.h"
#include "cli/common/split.h"

enum { SECRET_MAX = 64 << 10, CONFIG_MAX = 4 << 20 };

#define UNIX_PREFIX "unix:"

/* ---- files --------------------------------------------------------------------------------- */

struct secret *peer_secret_file(const char *path, struct err *e)
{
	autobuf struct buf text = BUF_INIT(SECRET_MAX);
	struct secret *s = NULL;

	/* Allocated once: growing would leave copies of the secret behind. */
	if (!buf_reserve(&text, SECRET_MAX - 4096, e) || file_read(path, &text, e) < 0)
		return NULL;
	while (text.n > 0 && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == '\r'))
		text.n--;
	if (text.n == 0)
		err_set(e, ERR_INVALID, "%.120s is empty", path);
	else
		s = secret_new(buf_str(&text), e);
	explicit_bzero(text.p, text.cap);
	return s;
}

/* ---- headers ------------------------------------------------------------------------------- */

static bool is_name(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] <= ' ' || s.p[i] > '~' || strchr("()<>@,;:\\\"/[]?={}", s.p[i]))
			return false;
	}
	return s.n > 0;
}

static bool is_value(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
			return false;
	}
	return true;
}

static int add_header(struct peer *p, struct str name, struct str value, struct err *e)
{
	struct http_header *h = &p->headers[p->target.headers_n];
	struct str trimmed = str_trim(value);

	if (p->target.headers_n == PEER_HEADERS_MAX)
		return err_set(e, ERR_INVALID, "more than %d headers", PEER_HEADERS_MAX);
	if (!is_name(name) || !is_value(trimmed))
		return err_set(e, ERR_INVALID, "a header is written 'NAME: VALUE'");
	h->name = arena_dup(p->arena, name, e);
	h->value = (struct str){ arena_dup(p->arena, trimmed, e), trimmed.n };
	if (!h->name || !h->value.p)
		return -1;
	p->target.headers_n++;
	return 0;
}

static int add_headers(struct peer *p, struct err *e)
{
	for (size_t i = 0; i < p->o->headers.n; i++) {
		const char *text = p->o->headers.p[i], *colon = strchr(text, ':');

		if (!colon)
			return err_set(e, ERR_INVALID, "--header takes 'NAME: VALUE'");
		if (add_header(p, (struct str){ text, (size_t)(colon - text) }, str_of(colon + 1),
			       e) < 0)
			return -1;
	}
	return 0;
}

static int add_token(struct peer *p, struct err *e)
{
	struct str token;
	char *value;

	if (p->o->token_file)
		p->token = peer_secret_file(p->o->token_file, e);
	else if (p->module)
		p->token = home_token(e);
	else
		return 0;
	if (!p->token)
		return -1;
	token = secret_expose(p->token, "sent to its server");
	if (!is_value(token))
		return err_set(e, ERR_INVALID, "%.120s holds no token: it has a control character",
			       p->o->token_file);
	value = arena_printf(p->arena, e, "Bearer %.*s", STR_ARG(token));
	return value ? add_header(p, STR_LIT("Authorization"), str_of(value), e) : -1;
}

/* ---- environment --------------------------------------------------------------------------- */

struct env {
	const char *p[OPTION_LIST_MAX + 1];
	size_t n;
};

static int add_env(struct peer *p, struct env *env, struct str name, struct str value,
		   struct err *e)
{
	if (env->n == OPTION_LIST_MAX)
		return err_set(e, ERR_INVALID, "more than %d variables", OPTION_LIST_MAX);
	if (name.n == 0 || memchr(name.p, '=', name.n) || memchr(name.p, '\0', name.n) ||
	    memchr(value.p, '\0', value.n))
		return err_set(e, ERR_INVALID, "a variable is written NAME=VALUE");
	env->p[env->n] = arena_printf(p->arena, e, "%.*s=%.*s", STR_ARG(name), STR_ARG(value));
	return env->p[env->n++] ? 0 : -1;
}

static int add_env_options(struct peer *p, struct env *env, struct err *e)
{
	for (size_t i = 0; i < p->o->env.n; i++) {
		const char *text = p->o->env.p[i];
		size_t n = strcspn(text, "=");
		const char *value = text[n] ? text + n + 1 : getenv(text);

		if (value && add_env(p, env, (struct str){ text, n }, str_of(value), e) < 0)
			return -1;
	}
	return 0;
}

/* ---- a configuration file ------------------------------------------------------------------ */

/* A text without "${…}", which other clients expand and Holt does not; NUL-terminated. */
static char *config_text(struct peer *p, const struct json_val *v, const char *key, struct err *e)
{
	struct str s = json_str(v);

	if (!s.p || memchr(s.p, '\0', s.n)) {
		err_set(e, ERR_INVALID, "%s takes a string", key);
		return NULL;
	}
	if (memmem(s.p, s.n, "${", 2)) {
		err_set(e, ERR_INVALID, "%s contains ${…}, which Holt does not expand", key);
		return NULL;
	}
	return arena_dup(p->arena, s, e);
}

/* The member has this type, or is absent. */
static int config_check(const struct json_val *server, const char *key, enum json_type type,
			struct err *e)
{
	enum json_type is = json_type(json_get(server, key));

	if (is == JSON_ABSENT || is == type)
		return 0;
	return err_set(e, ERR_INVALID, "%s takes %s, not %s", key, json_type_name(type),
		       json_type_name(is));
}

static int config_program(struct peer *p, const struct json_val *server, struct err *e)
{
	struct json_iter it = json_iter(json_get(server, "args"));
	size_t n = json_len(json_get(server, "args"));
	const char **argv = arena_array(p->arena, n + 2, sizeof(*argv), e);

	if (!argv || config_check(server, "args", JSON_ARRAY, e) < 0)
		return -1;
	argv[0] = config_text(p, json_get(server, "command"), "command", e);
	if (!argv[0])
		return -1;
	while (json_next(&it)) {
		argv[1 + it.index] = config_text(p, it.val, "args", e);
		if (!argv[1 + it.index])
			return -1;
	}
	p->target.argv = argv;
	return 0;
}

static int config_rest(struct peer *p, const struct json_val *server, struct env *env,
		       struct err *e)
{
	const struct json_val *cwd = json_get(server, "cwd");
	struct json_iter envs = json_iter(json_get(server, "env"));
	struct json_iter headers = json_iter(json_get(server, "headers"));

	if (config_check(server, "env", JSON_OBJECT, e) < 0 ||
	    config_check(server, "headers", JSON_OBJECT, e) < 0)
		return -1;
	if (cwd && !p->target.cwd) {
		p->target.cwd = config_text(p, cwd, "cwd", e);
		if (!p->target.cwd)
			return -1;
	}
	while (json_next(&envs)) {
		char *value = config_text(p, envs.val, "env", e);

		if (!value || add_env(p, env, envs.key, str_of(value), e) < 0)
			return -1;
	}
	while (json_next(&headers)) {
		char *value = config_text(p, headers.val, "headers", e);

		if (!value || add_header(p, headers.key, str_of(value), e) < 0)
			return -1;
	}
	return 0;
}

static const struct json_val *find_server(const struct json_val *config, const char *name,
					  struct err *e)
{
	const struct json_val *servers = json_get(config, "mcpServers");
	const struct json_val *found;

	if (!servers)
		servers = json_get(config, "servers"); /* VS Code's */
	found = json_get(servers, name);
	if (json_type(found) == JSON_OBJECT)
		return found;
	err_set(e, ERR_INVALID, "the configuration has no server %.60s (mcpServers or servers)",
		name);
	return NULL;
}

static int from_config(struct peer *p, struct env *env, struct err *e)
{
	autobuf struct buf text = BUF_INIT(CONFIG_MAX);
	AUTO(json_free) struct json_doc *doc = NULL;
	const struct json_val *server;
	struct str type;

	if (file_read(p->o->config, &text, e) < 0)
		return -1;
	doc = json_parse(buf_str(&text), NULL, e);
	if (!doc)
		return err_wrap(e, "%.120s", p->o->config);
	server = find_server(json_root(doc), p->o->server, e);
	if (!server)
		return -1;
	type = json_str(json_get(server, "type"));
	if (str_is(type, "sse"))
		p->target.only.wire = MCP_WIRE_SSE;
	if (json_get(server, "url")) {
		p->target.url = config_text(p, json_get(server, "url"), "url", e);
		if (!p->target.url)
			return -1;
	} else if (config_program(p, server, e) < 0) {
		return -1;
	}
	return config_rest(p, server, env, e);
}

/* ---- all of it ----------------------------------------------------------------------------- */

static int from_url(struct peer *p, struct err *e)
{
	const char *path = p->o->url + strlen(UNIX_PREFIX);

	if (!str_starts(str_of(p->o->url), UNIX_PREFIX)) {
		p->target.url = p->o->url;
		return 0;
	}
	if (!*path)
		return err_set(e, ERR_INVALID, "unix: takes the path of a socket");
	p->target.unix_socket = path;
	p->target.url = "http://localhost/mcp";
	return 0;
}

/* A module of this user's hub, through its gateway. */
static int from_hub(struct peer *p, struct err *e)
{
	const char *name = p->o->server;
	char socket[PATH_MAX];

	if (!*name || name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-")])
		return err_set(e, ERR_INVALID, "'%.60s' is no name of a module (holt mcp list)",
			       name);
	if (hub_link_where(socket, e) < 0)
		return -1;
	p->module = name;
	p->target.unix_socket = arena_dup(p->arena, str_of(socket), e);
	p->target.url = arena_printf(
		p->arena, e, "http://localhost/mcp?tools=gateway&texts=full&modules=%s", name);
	return p->target.unix_socket && p->target.url ? 0 : -1;
}

void peer_name_module(const struct verb_input *in, struct peer_verb *o, struct verb_input *ret)
{
	*ret = *in;
	*o = *(const struct peer_verb *)in->options;
	ret->options = o;
	if (o->peer.stdio || o->peer.url || o->peer.config || o->peer.server || in->rest ||
	    in->n_operands == 0)
		return;
	o->peer.server = in->operands[0];
	ret->operands++;
	ret->n_operands--;
}

static int target_choose(struct peer *p, struct env *env, struct err *e)
{
	const struct peer_options *o = p->o;
	int n = !!o->stdio + !!o->url + !!o->server + !!p->in->rest;

	if (n != 1)
		return err_set(
			e, ERR_INVALID,
			"%s server: give --stdio 'COMMAND', --url URL, --config FILE --server "
			"NAME, its program behind --, or a module of the hub",
			n ? "more than one" : "which");
	if (o->config && !o->server)
		return err_set(e, ERR_INVALID, "--config needs --server NAME");
	if (o->url)
		return from_url(p, e);
	if (o->server)
		return o->config ? from_config(p, env, e) : from_hub(p, e);
	if (p->in->rest && !p->in->rest[0])
		return err_set(e, ERR_INVALID, "no program follows --");
	p->target.argv = o->stdio ? (const char *const *)split_command(o->stdio, p->arena, e)
				  : (const char *const *)p->in->rest;
	return p->target.argv ? 0 : err_wrap(e, "--stdio");
}

int peer_target(struct peer *p, struct err *e)
{
	static const enum mcp_wire wires[] = { MCP_WIRE_FIND, MCP_WIRE_STDIO, MCP_WIRE_HTTP,
					       MCP_WIRE_SSE };
	static const enum mcp_era eras[] = { MCP_BROKEN, MCP_LEGACY, MCP_MODERN };
	struct env *env = arena_alloc(p->arena, sizeof(*env), e);

	if (!env)
		return -1;
	p->target.cwd = p->o->cwd;
	p->target.version = p->o->revision;
	p->target.headers = p->headers;
	if (target_choose(p, env, e) < 0 || add_env_options(p, env, e) < 0 ||
	    add_headers(p, e) < 0 || add_token(p, e) < 0)
		return -1;
	if (p->o->transport)
		p->target.only.wire = wires[p->o->transport];
	p->target.only.era = eras[p->o->era];
	p->target.env_more = env->p;
	if (p->o->json && p->o->out)
		return err_set(e, ERR_INVALID, "--json and --out exclude each other");
	if (p->target.argv && p->target.headers_n > 0)
		return err_set(e, ERR_INVALID, "a program takes no headers");
	if (p->target.url && (env->n > 0 || p->target.cwd))
		return err_set(e, ERR_INVALID, "--env and --cwd are for programs");
	return 0;
}
