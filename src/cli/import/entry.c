/* One server of another client: what each member becomes. */
#include "cli/import/internal.h"

#include <stdio.h>

#include "json/document/utf8.h"

enum { PLACE_MAX = 64 };

struct member;
typedef int (*member_fn)(struct import *im, const struct member *m, const struct json_val *v);

struct member {
	const char *name;
	member_fn map; /* NULL: it says nothing that matters here */
	size_t at; /* of what it fills */
	enum json_type type; /* what it takes; JSON_ABSENT: map() looks */
	const char *says; /* why it has no counterpart */
};

#define AT(m) offsetof(struct import_server, m)
#define FILLS(im, m) ((void *)((char *)(im)->server + (m)->at))

/* ---- texts, lists and maps ----------------------------------------------------------------- */

static int member_wrong(struct import *im, const char *what, const struct json_val *v)
{
	import_note(im, "%s is %s, and is left out", what, json_type_name(json_type(v)));
	return 0;
}

static int member_text(struct import *im, const struct member *m, const struct json_val *v)
{
	return import_value(im, m->name, STR_NONE, str_of(m->name), json_str(v), FILLS(im, m));
}

/* The option of a word "--api-key" or "--api-key=…", without dashes; STR_NONE: it is none. */
static struct str value_option(struct str word)
{
	const char *equals;

	if (word.n < 2 || *word.p != '-')
		return STR_NONE;
	while (word.n && *word.p == '-')
		word = (struct str){ word.p + 1, word.n - 1 };
	equals = word.n ? memchr(word.p, '=', word.n) : NULL;
	return equals ? (struct str){ word.p, (size_t)(equals - word.p) } : word;
}

/* One of several words; that before it may be its option. */
static int member_value(struct import *im, const char *what, const char *name, struct str before,
			struct str word, struct str *ret)
{
	struct str option = value_option(word), value = word, head = STR_NONE;
	const char *text, *colon;
	char as[PLACE_MAX];

	if (option.n && option.p + option.n < word.p + word.n) { /* "--api-key=…" */
		value.p = option.p + option.n + 1;
		value.n = (size_t)(word.p + word.n - value.p);
		head = (struct str){ word.p, word.n - value.n };
	} else {
		option = option.p ? STR_NONE : value_option(before);
	}
	colon = str_is(option, "header") || str_is(option, "H") ? memchr(word.p, ':', word.n)
								: NULL;
	if (colon && !head.n) { /* "Authorization: …" */
		option = (struct str){ word.p, (size_t)(colon - word.p) };
		while (colon + 1 < word.p + word.n && colon[1] == ' ')
			colon++;
		head = (struct str){ word.p, (size_t)(colon + 1 - word.p) };
		value = (struct str){ head.p + head.n, word.n - head.n };
	}
	snprintf(as, sizeof(as), "%.*s%s", STR_CUT(option, sizeof(as) - 2), option.n ? "=" : "");
	if (import_value(im, what, str_of(as), option.n ? option : str_of(name), value, ret) < 0)
		return -1;
	if (!head.n)
		return 0;
	text = arena_printf(im->arena, im->e, "%.*s%.*s", STR_ARG(head), STR_ARG(*ret));
	*ret = str_of(text);
	return text ? 0 : -1;
}

/* Takes texts, which may have variables and secrets. */
static int member_values(struct import *im, const struct member *m, const struct json_val *v)
{
	struct json_iter it = json_iter(v);
	struct str before = STR_NONE;
	char what[PLACE_MAX], name[PLACE_MAX];

	for (; json_next(&it); before = json_str(it.val)) {
		struct str s;

		snprintf(what, sizeof(what), "%s[%zu]", m->name, it.index);
		snprintf(name, sizeof(name), "%s-%zu", m->name, it.index);
		if (json_type(it.val) != JSON_STR)
			member_wrong(im, what, it.val);
		else if (member_value(im, what, name, before, json_str(it.val), &s) < 0 ||
			 import_add(im, FILLS(im, m), STR_NONE, s) < 0)
			return -1;
	}
	return 0;
}

/* Takes names. */
static int member_names(struct import *im, const struct member *m, const struct json_val *v)
{
	struct json_iter it = json_iter(v);

	while (json_next(&it)) {
		if (json_type(it.val) != JSON_STR)
			member_wrong(im, m->name, it.val);
		else if (import_add(im, FILLS(im, m), STR_NONE, json_str(it.val)) < 0)
			return -1;
	}
	return 0;
}

static int member_pair(struct import *im, struct import_list *to, struct str name, struct str value,
		       const char *sep)
{
	char what[PLACE_MAX], before[PLACE_MAX];
	struct str s;

	snprintf(what, sizeof(what), "%.*s", STR_ARG(utf8_cut(name, sizeof(what) - 1)));
	snprintf(before, sizeof(before), "%.*s%s", STR_ARG(utf8_cut(name, sizeof(before) - 3)),
		 sep);
	if (import_value(im, what, str_of(before), name, value, &s) < 0)
		return -1;
	return import_add(im, to, name, s);
}

static int member_map(struct import *im, const struct member *m, const struct json_val *v)
{
	struct json_iter it = json_iter(v);
	const char *sep = m->at == AT(env) ? "=" : ": ";
	char number[32];

	while (json_next(&it)) {
		struct str value = json_str(it.val);
		int64_t i;

		if (json_int64(it.val, &i)) {
			snprintf(number, sizeof(number), "%lld", (long long)i);
			value = str_of(number);
		} else if (json_type(it.val) == JSON_BOOL) {
			value = json_bool(it.val) ? STR_LIT("true") : STR_LIT("false");
		} else if (json_type(it.val) != JSON_STR) {
			import_note(im, "%s: %.*s is %s, and is left out", m->name,
				    STR_CUT(it.key, 60), json_type_name(json_type(it.val)));
			continue;
		}
		if (member_pair(im, FILLS(im, m), it.key, value, sep) < 0)
			return -1;
	}
	return 0;
}

static int member_command(struct import *im, const struct member *m, const struct json_val *v)
{
	return import_command(im, m->name, json_str(v), FILLS(im, m));
}

/* ---- kinds, times and switches ------------------------------------------------------------- */

static int member_type(struct import *im, const struct member *m, const struct json_val *v)
{
	static const struct {
		const char *theirs, *ours;
	} types[] = { { "stdio", "stdio" },	     { "http", "http" },
		      { "streamable-http", "http" }, { "streamableHttp", "http" },
		      { "streamable_http", "http" }, { "sse", "sse" },
		      { "local", "stdio" },	     { "remote", "http" } };

	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		if (str_is(json_str(v), types[i].theirs)) {
			im->server->type = types[i].ours;
			return 0;
		}
	}
	im->server->unfit = arena_printf(im->arena, im->e, "there is no %s %.*s", m->name,
					 STR_CUT(json_str(v), 60));
	return im->server->unfit ? 0 : -1;
}

static int member_url(struct import *im, const struct member *m, const struct json_val *v)
{
	struct str url = json_str(v);

	if (im->server->url.p)
		import_note(im, "%s: it has another URL, too, and this one counts", m->name);
	if (!str_starts(url, "http://") && !str_starts(url, "https://") && !str_starts(url, "${") &&
	    !im->server->unfit)
		im->server->unfit = "its URL is none of http or https";
	if (im->o->client->url_is_sse && !im->server->type && str_is(str_of(m->name), "url"))
		im->server->type = "sse";
	return member_text(im, m, v);
}

static int member_disabled(struct import *im, const struct member *m, const struct json_val *v)
{
	im->server->disabled = json_bool(v) == str_is(str_of(m->name), "disabled");
	return 0;
}

/* Clients do not agree about the unit: nobody waits 1000 seconds, or less than one. */
static int member_time(struct import *im, const struct member *m, const struct json_val *v)
{
	const uint64_t max = 3600;
	double t = json_real(v);

	if (json_type(v) != JSON_INT && json_type(v) != JSON_REAL)
		return member_wrong(im, m->name, v);
	if (t >= 1000)
		t /= 1000;
	if (t <= 0)
		import_note(im, "%s: 1 second is the least", m->name);
	if (t > (double)max)
		import_note(im, "%s: %llu seconds are the most", m->name, (unsigned long long)max);
	im->server->timeout_seconds = t > (double)max ? max : t <= 1 ? 1 : (uint64_t)(t + 0.999);
	return 0;
}

/* ---- approval ------------------------------------------------------------------------------ */

static int member_trust(struct import *im, const struct member *m, const struct json_val *v)
{
	if (!json_bool(v))
		return 0;
	im->server->approval = "allow";
	import_note(im, "%s: nobody is asked about calls of its tools", m->name);
	return 0;
}

static int member_allowed(struct import *im, const struct member *m, const struct json_val *v)
{
	struct json_iter it = json_iter(v);

	while (json_next(&it)) {
		if (json_type(it.val) != JSON_STR)
			member_wrong(im, m->name, it.val);
		else if (import_add(im, &im->server->approvals, json_str(it.val),
				    STR_LIT("allow")) < 0)
			return -1;
	}
	if (json_len(v))
		import_note(im, "%s: nobody is asked about calls of these tools", m->name);
	return 0;
}

static int member_allow_tools(struct import *im, const struct member *m, const struct json_val *v)
{
	im->server->has_allow = true;
	return member_names(im, m, v);
}

/* ---- sandbox ------------------------------------------------------------------------------- */

static int member_sandboxed(struct import *im, const struct member *m, const struct json_val *v)
{
	im->server->sandbox = json_bool(v);
	if (!json_bool(v))
		import_note(im,
			    "%s is false, and it runs in a sandbox all the same: \"sandbox\": "
			    "false is for the operator to write",
			    m->name);
	return 0;
}

/* Names the members of a part that are not read. */
static void sandbox_lost(struct import *im, const struct json_val *in, const char *a, const char *b)
{
	struct json_iter it = json_iter(in);

	if (in && json_type(in) != JSON_OBJECT)
		import_note(im, "sandbox: a part of it is %s, and is left out",
			    json_type_name(json_type(in)));
	while (json_next(&it)) {
		if (!str_is(it.key, a) && !str_is(it.key, b))
			import_note(im,
				    "sandbox: %.*s has no counterpart: only what is listed is "
				    "there",
				    STR_CUT(it.key, 60));
	}
}

static int sandbox_list(struct import *im, const struct member *m, const struct json_val *in,
			bool paths)
{
	const struct json_val *v = json_get(in, m->name);

	if (v && json_type(v) != JSON_ARRAY)
		return member_wrong(im, m->name, v);
	return paths ? member_values(im, m, v) : member_names(im, m, v);
}

/* VS Code's. */
static int member_sandbox(struct import *im, const struct member *m, const struct json_val *v)
{
	static const struct member write = { "allowWrite", NULL, AT(write), JSON_ARRAY, NULL };
	static const struct member network = { "allowedDomains", NULL, AT(network), JSON_ARRAY,
					       NULL };
	const struct json_val *files = json_get(v, "filesystem"), *net = json_get(v, "network");

	im->server->sandbox = true;
	sandbox_lost(im, v, "filesystem", "network");
	sandbox_lost(im, files, write.name, write.name);
	sandbox_lost(im, net, network.name, network.name);
	return sandbox_list(im, &write, files, true) < 0 ? -1
							 : sandbox_list(im, &network, net, false);
}

/* ---- the table ----------------------------------------------------------------------------- */

#define NO_FILE "put its variables into env"
#define NO_LOGIN "a token may stand in a header, as ${secret:NAME}"

static const struct member members[] = {
	{ "type", member_type, 0, JSON_STR, NULL },
	{ "transport", member_type, 0, JSON_STR, NULL },
	{ "command", member_command, AT(command), JSON_STR, NULL },
	{ "args", member_values, AT(args), JSON_ARRAY, NULL },
	{ "env", member_map, AT(env), JSON_OBJECT, NULL },
	{ "envFile", NULL, 0, JSON_ABSENT, NO_FILE },
	{ "cwd", member_text, AT(cwd), JSON_STR, NULL },
	{ "url", member_url, AT(url), JSON_STR, NULL },
	{ "serverUrl", member_url, AT(url), JSON_STR, NULL },
	{ "httpUrl", member_url, AT(url), JSON_STR, NULL },
	{ "headers", member_map, AT(headers), JSON_OBJECT, NULL },
	{ "enabled", member_disabled, 0, JSON_BOOL, NULL },
	{ "disabled", member_disabled, 0, JSON_BOOL, NULL },
	{ "timeout", member_time, 0, JSON_ABSENT, NULL },
	{ "includeTools", member_allow_tools, AT(allow), JSON_ARRAY, NULL },
	{ "allowTools", member_allow_tools, AT(allow), JSON_ARRAY, NULL },
	{ "disabledTools", member_names, AT(deny), JSON_ARRAY, NULL },
	{ "excludeTools", member_names, AT(deny), JSON_ARRAY, NULL },
	{ "denyTools", member_names, AT(deny), JSON_ARRAY, NULL },
	{ "autoApprove", member_allowed, 0, JSON_ARRAY, NULL },
	{ "alwaysAllow", member_allowed, 0, JSON_ARRAY, NULL },
	{ "trust", member_trust, 0, JSON_BOOL, NULL },
	{ "sandboxEnabled", member_sandboxed, 0, JSON_BOOL, NULL },
	{ "sandbox", member_sandbox, 0, JSON_OBJECT, NULL },
	{ "oauth", NULL, 0, JSON_ABSENT, NO_LOGIN },
	{ "auth", NULL, 0, JSON_ABSENT, NO_LOGIN },
	{ "authProviderType", NULL, 0, JSON_ABSENT, NO_LOGIN },
	{ "scopes", NULL, 0, JSON_ABSENT, NO_LOGIN },
	{ "headersHelper", NULL, 0, JSON_ABSENT,
	  "a secret may come from a command (docs/secrets.md)" },
	{ "name", NULL, 0, JSON_ABSENT, NULL },
	{ "description", NULL, 0, JSON_ABSENT, NULL },
	{ "gallery", NULL, 0, JSON_ABSENT, NULL },
	{ "version", NULL, 0, JSON_ABSENT, NULL },
	{ "dev", NULL, 0, JSON_ABSENT, "nothing watches or debugs it" },
};

static const struct member *member_find(struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		if (str_is(name, members[i].name))
			return &members[i];
	}
	return NULL;
}

static int entry_member(struct import *im, const struct json_iter *it)
{
	const struct member *m = member_find(it->key);

	if (!m) {
		import_note(im, "%.*s has no counterpart", STR_CUT(it->key, 60));
		return 0;
	}
	if (json_type(it->val) == JSON_NULL)
		return 0;
	if (!m->map) {
		if (m->says)
			import_note(im, "%s has no counterpart: %s", m->name, m->says);
		return 0;
	}
	if (m->type != JSON_ABSENT && m->type != json_type(it->val))
		return member_wrong(im, m->name, it->val);
	return m->map(im, m, it->val);
}

/* Absolute, where it is not and is no variable either. */
static int entry_absolute(struct import *im, struct str *path)
{
	size_t dot = str_starts(*path, "./") ? 2 : 0;
	const char *text;

	if (!path->n || *path->p == '/' || str_starts(*path, "${"))
		return 0;
	text = str_starts(*path, "~/")
		     ? arena_printf(im->arena, im->e, "${HOME}%.*s", (int)path->n - 1, path->p + 1)
		     : arena_printf(im->arena, im->e, "%.*s/%.*s", STR_ARG(im->o->folder),
				    (int)(path->n - dot), path->p + dot);
	if (!text)
		return -1;
	*path = str_of(text);
	return 0;
}

int import_entry(struct import *im, const struct json_val *entry)
{
	struct import_server *s = im->server;
	struct json_iter it = json_iter(entry);

	while (json_next(&it)) {
		if (entry_member(im, &it) < 0)
			return -1;
	}
	for (struct import_item *w = s->write.first; w; w = w->next) {
		if (entry_absolute(im, &w->value) < 0)
			return -1;
	}
	/* A command with a slash is a path; without one it is searched for. */
	if (s->command.n && memchr(s->command.p, '/', s->command.n) &&
	    entry_absolute(im, &s->command) < 0)
		return -1;
	return entry_absolute(im, &s->cwd);
}

/* ---- writing ------------------------------------------------------------------------------- */

static void write_list(const struct import_list *l, const char *name, struct json_writer *w)
{
	json_write_key(w, name);
	json_write_array(w);
	for (const struct import_item *i = l->first; i; i = i->next)
		json_write_str(w, i->value);
	json_write_array_end(w);
}

static void write_map(const struct import_list *l, const char *name, struct json_writer *w)
{
	json_write_key(w, name);
	json_write_object(w);
	for (const struct import_item *i = l->first; i; i = i->next) {
		json_write_key_str(w, i->name);
		json_write_str(w, i->value);
	}
	json_write_object_end(w);
}

static void write_text(struct str s, const char *name, struct json_writer *w)
{
	if (!s.p)
		return;
	json_write_key(w, name);
	json_write_str(w, s);
}

void import_write(const struct import_server *s, struct json_writer *w)
{
	json_write_key_str(w, s->name);
	json_write_object(w);
	if (s->type && !(s->command.p && str_is(str_of(s->type), "stdio")))
		write_text(str_of(s->type), "type", w);
	write_text(s->command, "command", w);
	if (s->args.n)
		write_list(&s->args, "args", w);
	if (s->env.n)
		write_map(&s->env, "env", w);
	write_text(s->cwd, "cwd", w);
	write_text(s->url, "url", w);
	if (s->headers.n)
		write_map(&s->headers, "headers", w);
	if (s->sandbox) {
		json_write_key(w, "sandbox");
		json_write_object(w);
		if (s->write.n)
			write_list(&s->write, "write", w);
		if (s->network.n)
			write_list(&s->network, "network", w);
		json_write_object_end(w);
	}
	if (s->has_allow)
		write_list(&s->allow, "allowTools", w);
	if (s->deny.n)
		write_list(&s->deny, "denyTools", w);
	if (s->approval && !str_is(str_of(s->approval), "ask"))
		write_text(str_of(s->approval), "approval", w);
	if (s->approvals.n)
		write_map(&s->approvals, "approvals", w);
	if (s->timeout_seconds) {
		json_write_key(w, "timeoutSeconds");
		json_write_uint(w, s->timeout_seconds);
	}
	if (s->disabled) {
		json_write_key(w, "disabled");
		json_write_bool(w, true);
	}
	json_write_object_end(w);
}
