#include "cli/import/foreign.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/import/internal.h"
#include "cli/import/recipe.h"
#include "config/advice.h"
#include "config/config.h"
#include "json/document/utf8.h"
#include "json/document/where.h"

enum {
	ARENA_MAX = 32 << 20,
	VALUES_MAX = 1 << 20,
	NOTE_MAX = 1024,
};

/* ---- clients ------------------------------------------------------------------------------- */

#define FILES(...)                                                                                 \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

static const struct foreign_client clients[] = {
	{ .name = "vscode",
	  .files = FILES(".vscode/mcp.json", "~/.config/Code/User/mcp.json"),
	  .root = "servers",
	  .variables = FOREIGN_BRACES,
	  .stdio = "stdio",
	  .http = "http",
	  .url = "url",
	  .token = "${input:" RECIPE_INPUT "}" },
	{ .name = "claude-code",
	  .files = FILES(".mcp.json", "~/.claude.json"),
	  .root = "mcpServers",
	  .variables = FOREIGN_BRACES,
	  .stdio = "stdio",
	  .http = "http",
	  .url = "url",
	  .token = "${HOLT_TOKEN}" },
	{ .name = "claude-desktop",
	  .files = FILES("~/.config/Claude/claude_desktop_config.json"),
	  .root = "mcpServers",
	  .variables = FOREIGN_NONE },
	{ .name = "cursor",
	  .files = FILES(".cursor/mcp.json", "~/.cursor/mcp.json"),
	  .root = "mcpServers",
	  .variables = FOREIGN_BRACES,
	  .url = "url",
	  .token = "${env:HOLT_TOKEN}" },
	{ .name = "windsurf",
	  .files = FILES("~/.codeium/windsurf/mcp_config.json"),
	  .root = "mcpServers",
	  .variables = FOREIGN_BRACES,
	  .url = "serverUrl",
	  .token = "${env:HOLT_TOKEN}" },
	{ .name = "zed",
	  .files = FILES(".zed/settings.json", "~/.config/zed/settings.json"),
	  .root = "context_servers",
	  .foreign = true,
	  .variables = FOREIGN_NONE,
	  .url = "url" },
	{ .name = "codex",
	  .files = FILES(".codex/config.toml", "~/.codex/config.toml"),
	  .root = "mcp_servers",
	  .foreign = true,
	  .variables = FOREIGN_NONE,
	  .toml = true,
	  .url = "url",
	  .token = "HOLT_TOKEN" },
	{ .name = "gemini",
	  .files = FILES(".gemini/settings.json", "~/.gemini/settings.json"),
	  .root = "mcpServers",
	  .variables = FOREIGN_SHELL,
	  .url_is_sse = true,
	  .url = "httpUrl",
	  .token = "$HOLT_TOKEN" },
	{ .name = "opencode",
	  .files = FILES("opencode.json", "~/.config/opencode/opencode.json"),
	  .root = "mcp",
	  .foreign = true,
	  .variables = FOREIGN_NONE,
	  .stdio = "local",
	  .http = "remote",
	  .url = "url",
	  .token = "{env:HOLT_TOKEN}",
	  .vector = true },
	{ .name = "augment",
	  .files = FILES("~/.augment/settings.json"),
	  .root = "mcpServers",
	  .variables = FOREIGN_NONE,
	  .http = "http",
	  .url = "url" },
	{ .name = "generic",
	  .files = (const char *const[]){ NULL },
	  .root = "mcpServers",
	  .variables = FOREIGN_BRACES,
	  .http = "http",
	  .url = "url",
	  .token = "${HOLT_TOKEN}" },
};

const char *foreign_client_name(size_t i)
{
	return i < ARRAY_LEN(clients) ? clients[i].name : NULL;
}

const struct foreign_client *foreign_client_find(const char *name, struct err *e)
{
	char known[160];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
		if (str_is(str_of(name), clients[i].name))
			return &clients[i];
	}
	for (size_t i = 0; i < ARRAY_LEN(clients) && n < sizeof(known); i++)
		n += (size_t)snprintf(known + n, sizeof(known) - n, "%s%s", i ? ", " : "",
				      clients[i].name);
	err_set(e, ERR_INVALID, "there is no client %.40s; there are %s", name, known);
	return NULL;
}

const struct foreign_client *foreign_client_read(const char *name, struct err *e)
{
	const struct foreign_client *c = foreign_client_find(name, e);

	if (!c || !c->foreign)
		return c;
	err_set(e, ERR_INVALID,
		"the file of %s is not read: write its servers into mcpServers of the operator's "
		"file",
		c->name);
	return NULL;
}

/* VS Code's settings have both of its members in "mcp". */
static const struct json_val *foreign_top(const struct json_val *root)
{
	const struct json_val *mcp = json_get(root, "mcp");

	return json_type(json_get(mcp, "servers")) == JSON_OBJECT ? mcp : root;
}

/* By what only one client has in an entry. */
static const char *foreign_client_by_entry(const struct json_val *servers)
{
	static const struct {
		const char *member, *client;
	} own[] = { { "httpUrl", "gemini" },	  { "trust", "gemini" },
		    { "includeTools", "gemini" }, { "excludeTools", "gemini" },
		    { "serverUrl", "windsurf" },  { "disabledTools", "windsurf" } };
	struct json_iter it = json_iter(servers);

	while (json_next(&it)) {
		for (size_t i = 0; i < ARRAY_LEN(own); i++) {
			if (json_get(it.val, own[i].member))
				return own[i].client;
		}
	}
	return NULL;
}

const struct foreign_client *foreign_client_by_path(const char *path)
{
	struct str p = str_of(path);

	for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
		for (const char *const *file = clients[i].files; *file; file++) {
			const char *name = *file + (**file == '~');
			size_t n = strlen(name);

			if (!clients[i].foreign && p.n > n &&
			    (*name == '/' || p.p[p.n - n - 1] == '/') &&
			    str_is((struct str){ p.p + p.n - n, n }, name))
				return &clients[i];
		}
	}
	return NULL;
}

const struct foreign_client *foreign_client_of(const struct json_val *root)
{
	const char *name = foreign_client_by_entry(json_get(root, "mcpServers"));
	struct err none;

	if (name)
		return foreign_client_find(name, &none);
	root = foreign_top(root);
	for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
		if (!clients[i].foreign &&
		    json_type(json_get(root, clients[i].root)) == JSON_OBJECT)
			return &clients[i];
	}
	return NULL;
}

/* ---- documents ----------------------------------------------------------------------------- */

int foreign_strip(struct buf *text, struct err *e)
{
	if (text->n >= 3 && memcmp(text->p, "\xef\xbb\xbf", 3) == 0)
		memset(text->p, ' ', 3);
	return config_strip_loosely(text->p, text->n, e);
}

struct json_doc *foreign_parse(struct buf *text, struct err *e)
{
	const struct json_options limits = { .bytes = FOREIGN_BYTES_MAX, .values = VALUES_MAX };
	static const char at[] = "at byte ";
	struct json_doc *doc;
	const char *byte;

	if (foreign_strip(text, e) < 0)
		return NULL;
	doc = json_parse(buf_str(text), &limits, e);
	byte = doc ? NULL : strstr(e->msg, at);
	if (byte) /* people want the line */
		err_wrap(e, "line %u",
			 json_line(buf_str(text), strtoull(byte + strlen(at), NULL, 10)));
	return doc;
}

/* ---- lists and notes ----------------------------------------------------------------------- */

void import_note(struct import *im, const char *fmt, ...)
{
	char text[NOTE_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	im->o->note(im->o->data, im->server ? im->server->theirs : STR_NONE, str_of(text));
}

/* A pair replaces one of the same name. */
int import_add(struct import *im, struct import_list *to, struct str name, struct str value)
{
	struct import_item *i;

	for (i = name.p ? to->first : NULL; i; i = i->next) {
		if (str_eq(i->name, name)) {
			i->value = value;
			return 0;
		}
	}
	i = arena_alloc(im->arena, sizeof(*i), im->e);
	if (!i)
		return -1;
	i->name = name;
	i->value = value;
	if (to->last)
		to->last->next = i;
	else
		to->first = i;
	to->last = i;
	to->n++;
	return 0;
}

bool import_has(const struct import_list *l, struct str value)
{
	for (const struct import_item *i = l->first; i; i = i->next) {
		if (str_eq(i->value, value))
			return true;
	}
	return false;
}

/* ---- servers ------------------------------------------------------------------------------- */

/* All of a file. */
struct reading {
	struct import im;
	struct import_list names, inputs; /* of those that were taken */
	struct foreign_found *found;
	struct json_writer w;
};

/* A name that the operator's file takes, as near to theirs as can be. */
static int reading_name(struct reading *r, struct str theirs, struct str *ret)
{
	char name[CONFIG_SERVER_NAME_MAX + 1], with[CONFIG_SERVER_NAME_MAX + 1];
	size_t n = 0;

	for (size_t i = 0; i < theirs.n && n < CONFIG_SERVER_NAME_MAX - 4; i++) {
		char c = theirs.p[i];

		c = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
		if (c >= 'a' && c <= 'z')
			name[n++] = c;
		else if (n > 0 && c >= '0' && c <= '9')
			name[n++] = c;
		else if (n > 0 && name[n - 1] != '-')
			name[n++] = '-';
	}
	while (n > 0 && name[n - 1] == '-')
		n--;
	name[n] = '\0';
	if (n == 0)
		snprintf(name, sizeof(name), "server");
	else if (config_server_name_reserved((struct str){ name, n }))
		snprintf(name + n, sizeof(name) - n, "-server");
	snprintf(with, sizeof(with), "%s", name);
	for (unsigned i = 2; import_has(&r->names, str_of(with)) && i < 1000; i++)
		snprintf(with, sizeof(with), "%.*s-%u", CONFIG_SERVER_NAME_MAX - 4, name, i);
	ret->p = arena_dup(r->im.arena, str_of(with), r->im.e);
	ret->n = strlen(with);
	return ret->p ? import_add(&r->im, &r->names, STR_NONE, *ret) : -1;
}

const struct json_val *import_input(const struct import *im, struct str id)
{
	struct json_iter it = json_iter(im->inputs);

	while (json_next(&it)) {
		struct str own = json_str(json_get(it.val, "id"));

		if (own.p && str_eq(own, id))
			return it.val;
	}
	return NULL;
}

/* A choice is a text, or an object with one. */
static struct str reading_option(const struct json_val *v)
{
	struct str value = json_str(json_get(v, "value"));

	return json_type(v) == JSON_STR ? json_str(v)
	     : value.p			? value
					: json_str(json_get(v, "label"));
}

/* All inputs but a choice are asked for as texts. */
static void reading_write_input(const struct json_val *input, struct json_writer *w)
{
	static const struct {
		const char *name;
		size_t max;
	} texts[] = { { "id", CONFIG_NAME_MAX },
		      { "description", CONFIG_TEXT_MAX / 4 },
		      { "default", CONFIG_TEXT_MAX } };
	struct json_iter it = json_iter(json_get(input, "options"));
	bool choice = false;

	while (!choice && json_next(&it))
		choice = reading_option(it.val).p;
	json_write_object(w);
	json_write_name(w, "type");
	json_write_text(w, choice ? "pickString" : "promptString");
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct str s = json_str(json_get(input, texts[i].name));

		if (!s.p)
			continue;
		json_write_key(w, texts[i].name);
		json_write_str(w, utf8_cut(s, texts[i].max));
	}
	if (choice) {
		json_write_name(w, "options");
		json_write_array(w);
		it = json_iter(json_get(input, "options"));
		while (json_next(&it)) {
			if (reading_option(it.val).p)
				json_write_str(w, reading_option(it.val));
		}
		json_write_array_end(w);
	}
	json_write_object_end(w);
}

static bool reading_has_input(const struct config_file *f, struct str id)
{
	for (size_t i = 0; f && i < f->inputs.n; i++) {
		if (str_eq(f->inputs.p[i].id, id))
			return true;
	}
	return false;
}

/* Those of a list, as an array; all, or what is not there already. */
static void reading_write_inputs(const struct import *im, const struct import_list *used,
				 struct json_writer *w, bool all)
{
	json_write_array(w);
	for (const struct import_item *i = used->first; i; i = i->next) {
		const struct json_val *input = import_input(im, i->value);

		if (input && (all || !reading_has_input(im->o->have, i->value)))
			reading_write_input(input, w);
	}
	json_write_array_end(w);
}

static void reading_say(void *data, const char *text)
{
	struct reading *r = data;

	import_note(&r->im, "%s", text);
}

/* What can't work, and what a server that is known will ask for. */
static void reading_advise(struct reading *r, const struct config_server *s)
{
	struct config_known known;
	struct err none;

	config_advise(s, reading_say, r);
	if (config_known_find(s, r->im.arena, &known, &none) <= 0)
		return;
	for (size_t i = 0; i < known.network.n; i++)
		import_note(
			&r->im,
			"%.*s is proposed by its documentation, and not granted: holt mcp allow "
			"%.*s %.*s",
			STR_ARG(known.network.p[i]), STR_ARG(s->name), STR_ARG(known.network.p[i]));
	for (size_t i = 0; i < known.secrets.n; i++) {
		bool has = false;

		for (size_t k = 0; k < s->env.n; k++)
			has = has || str_eq(s->env.p[k].key, known.secrets.p[i]);
		if (!has)
			import_note(&r->im, "it wants the variable %.*s (%.*s)",
				    STR_ARG(known.secrets.p[i]), STR_ARG(known.about));
	}
}

/* Whether the operator's file takes the server: it is left out otherwise. */
static int reading_check(struct reading *r, const struct import_server *s)
{
	autobuf struct buf text = BUF_INIT(CONFIG_BYTES_MAX);
	struct json_writer w = json_writer(&text);
	struct err e = ERR_INIT;
	struct config *c = NULL;
	const char *at;

	if (r->im.o->have && config_server_find(r->im.o->have, s->name)) {
		import_note(
			&r->im,
			"it is left out: %.*s is there already, and holt mcp remove %.*s removes "
			"that",
			STR_ARG(s->name), STR_ARG(s->name));
		return -1;
	}
	if (s->unfit) {
		import_note(&r->im, "it is left out: %s", s->unfit);
		return -1;
	}
	json_write_object(&w);
	json_write_key(&w, "inputs");
	reading_write_inputs(&r->im, &r->im.used, &w, true);
	json_write_key(&w, "mcpServers");
	json_write_object(&w);
	import_write(s, &w);
	json_write_object_end(&w);
	json_write_object_end(&w);
	if (json_write_done(&w, &e) == 0)
		c = config_parse(buf_str(&text), "import", &e);
	if (c) {
		if (r->im.o->advise)
			reading_advise(r, config_server_find(config_file(c), s->name));
		config_unref(c);
		return 0;
	}
	at = strstr(e.msg, ": "); /* the line of a file that nobody has */
	import_note(&r->im, "it is left out: %s", at ? at + 2 : e.msg);
	return -1;
}

static int reading_server(struct reading *r, struct str theirs, const struct json_val *entry)
{
	struct import_server s = { .theirs = theirs };

	r->im.server = &s;
	r->im.used = (struct import_list){ .n = 0 };
	if (json_type(entry) != JSON_OBJECT) {
		import_note(&r->im, "it is left out: it is %s", json_type_name(json_type(entry)));
		r->found->left++;
		return 0;
	}
	if (reading_name(r, theirs, &s.name) < 0 || import_entry(&r->im, entry) < 0)
		return -1;
	if (reading_check(r, &s) < 0) {
		r->found->left++;
		return 0;
	}
	r->found->n++;
	for (const struct import_item *i = r->im.used.first; i; i = i->next) {
		if (!import_has(&r->inputs, i->value) &&
		    import_add(&r->im, &r->inputs, STR_NONE, i->value) < 0)
			return -1;
	}
	if (!str_eq(s.name, s.theirs))
		import_note(&r->im, "it is called %.*s now", STR_ARG(s.name));
	import_write(&s, &r->w);
	return 0;
}

static int reading_servers(struct reading *r, const struct json_val *servers)
{
	struct json_iter it = json_iter(servers);

	if (r->names.n + json_len(servers) > FOREIGN_SERVERS_MAX)
		return err_set(r->im.e, ERR_TOO_LARGE, "more than %d servers", FOREIGN_SERVERS_MAX);
	while (json_next(&it)) {
		if (reading_server(r, it.key, it.val) < 0)
			return -1;
	}
	r->im.server = NULL;
	return 0;
}

int foreign_read(const struct json_val *root, const struct foreign_options *o,
		 struct foreign_found *to, struct err *e)
{
	AUTO(arena_free) struct arena *arena = arena_new(ARENA_MAX);
	const struct json_val *top = foreign_top(root);
	const struct json_val *project = json_get_str(json_get(root, "projects"), o->folder);
	struct json_writer inputs = json_writer(&to->inputs);
	struct reading r = { .im = { .o = o, .arena = arena, .e = e }, .found = to };

	if (!arena)
		return err_set(e, ERR_LIMIT, "out of memory");
	r.im.inputs = json_get(top, "inputs");
	json_writer_init(&r.w, &to->servers);
	json_write_object(&r.w);
	if (reading_servers(&r, json_get(top, o->client->root)) < 0 ||
	    reading_servers(&r, json_get(project, "mcpServers")) < 0)
		return -1;
	json_write_object_end(&r.w);
	reading_write_inputs(&r.im, &r.inputs, &inputs, false);
	return json_write_done(&r.w, e) < 0 ? -1 : json_write_done(&inputs, e);
}
