#include "agents/conversation/offer.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "json/document/utf8.h"

enum { ARENA_MAX = 512 << 10, TEXT_MAX = 1024 };

const char *const offer_kind_names[OFFER_KINDS] = { "mode", "model", "select", "boolean" };

static const struct field choice_rows[] = {
	FIELD(struct offer_choice, value, .flags = FIELD_REQUIRED, .doc = "Value of the option."),
	FIELD(struct offer_choice, name, .doc = "Name for people, in the agent's words."),
	FIELD(struct offer_choice, description, .doc = "What it means, in the agent's words."),
	FIELD(struct offer_choice, unattended, .flags = FIELD_REQUIRED,
	      .doc = "With it the agent acts without asking for permission."),
};
static const struct field_table choice_table = FIELD_TABLE(struct offer_choice, choice_rows);

#define O struct offer_option
static const struct field option_rows[] = {
	FIELD(O, id, .flags = FIELD_REQUIRED, .doc = "Id of the option, such as mode or model."),
	FIELD(O, name, .doc = "Name for people, in the agent's words."),
	FIELD(O, description, .doc = "What it is, in the agent's words."),
	FIELD(O, category, .doc = "What the agent says it is about, such as mode or model."),
	FIELD_ENUM(O, kind, offer_kind_names, .flags = FIELD_REQUIRED, .doc = "How it is set."),
	FIELD(O, value, .flags = FIELD_REQUIRED, .doc = "Value that it has now."),
	FIELD_OBJECTS(O, choices, choice_table, .flags = FIELD_REQUIRED, .max = OFFER_CHOICES_MAX,
		      .doc = "Values that it can have."),
};
#undef O
const struct field_table offer_option_table = FIELD_TABLE(struct offer_option, option_rows);

static const struct field command_rows[] = {
	FIELD(struct offer_command, name, .flags = FIELD_REQUIRED,
	      .doc = "Name; a prompt that begins with / and this name runs it."),
	FIELD(struct offer_command, description, .doc = "What it does, in the agent's words."),
	FIELD(struct offer_command, hint, .doc = "What may follow the name."),
};
const struct field_table offer_command_table = FIELD_TABLE(struct offer_command, command_rows);

const char *const offer_login_kind_names[OFFER_LOGIN_KINDS] = { "agent", "terminal", "env" };

static const struct field login_rows[] = {
	FIELD(struct offer_login, id, .flags = FIELD_REQUIRED, .doc = "Id of the method."),
	FIELD(struct offer_login, name, .doc = "Name for people, in the agent's words."),
	FIELD(struct offer_login, description, .doc = "What it is, in the agent's words."),
	FIELD_ENUM(struct offer_login, kind, offer_login_kind_names, .flags = FIELD_REQUIRED,
		   .doc = "agent: it logs in by itself; terminal: a person does, in a terminal; "
			  "env: its program needs variables."),
	FIELD(struct offer_login, variables, .doc = "Variables that its program needs."),
};
const struct field_table offer_login_table = FIELD_TABLE(struct offer_login, login_rows);

/* ---- what lets an agent act by itself -------------------------------------------------------- */

static bool offer_has(struct str s, const char *part)
{
	return s.n && memmem(s.p, s.n, part, strlen(part));
}

/* In Codex's mode "agent" a model approves; in that of other agents a person does. */
static bool offer_is_reviewed(const struct offer_option *p, struct str value)
{
	return str_is(value, "agent") && (!p || offer_choice(p, STR_LIT("agent-full-access")));
}

bool offer_is_unattended(const struct offer_option *p, struct str id, struct str value)
{
	/* of Claude Code, Codex, Gemini, Qwen, Copilot; "true" of an option that allows all */
	static const char *const values[] = {
		"auto",	     "acceptEdits",	  "bypassPermissions",
		"dontAsk",   "agent-full-access", "full-access",
		"autoEdit",  "auto-edit",	  "auto_edit",
		"yolo",	     "autopilot",	  "danger-full-access",
		"allow_all", "allow-all"
	};
	const char *hash = value.n ? memrchr(value.p, '#', value.n) : NULL;
	bool permits = !str_is(id, "model") && (offer_has(id, "mode") || offer_has(id, "approv"));

	/* ids of Copilot are URLs */
	if (hash)
		value = (struct str){ hash + 1, value.n - (size_t)(hash + 1 - value.p) };
	if (str_is(id, "allow_all"))
		return str_is(value, "true") || str_is(value, "on");
	if (!permits)
		return false; /* a model may be "auto", too */
	if (!hash && offer_is_reviewed(p, value))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		if (strlen(values[i]) == value.n && strncasecmp(values[i], value.p, value.n) == 0)
			return true;
	}
	return false;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* One of these lists while it is read; failed: there is no room for it. */
struct offer_reader {
	struct arena *arena;
	struct err e;
	bool failed;
};

static struct str offer_text(struct offer_reader *r, const struct json_val *v)
{
	struct str s = utf8_cut(json_str(v), TEXT_MAX);
	char *p = s.n ? arena_dup(r->arena, s, &r->e) : NULL;

	r->failed |= s.n && !p;
	return p ? (struct str){ p, s.n } : STR_NONE;
}

static bool offer_is_value(struct str s)
{
	return s.n > 0 && s.n <= OFFER_VALUE_MAX && !memchr(s.p, '\0', s.n);
}

static void *offer_array(struct offer_reader *r, size_t n, size_t size)
{
	void *p = r->failed ? NULL : arena_array(r->arena, n, size, &r->e);

	r->failed |= !p;
	return p;
}

static void offer_put(struct offer_option *p, struct str value)
{
	if (value.n <= OFFER_VALUE_MAX)
		snprintf(p->current, sizeof(p->current), "%.*s", STR_ARG(value));
	p->value = str_of(p->current);
}

static void offer_add_choice(struct offer_reader *r, struct offer_option *p,
			     const struct json_val *v, const char *value)
{
	struct str id = json_str(json_get(v, value));

	if (offer_is_value(id) && p->choices.n < OFFER_CHOICES_MAX)
		p->choices.p[p->choices.n++] = (struct offer_choice){
			.value = offer_text(r, json_get(v, value)),
			.name = offer_text(r, json_get(v, "name")),
			.description = offer_text(r, json_get(v, "description")),
		};
}

/* list may have groups of choices; value: the member that tells one choice from the others. */
static void offer_add_choices(struct offer_reader *r, struct offer_option *p,
			      const struct json_val *list, const char *value)
{
	struct json_iter it = json_iter(list);
	size_t n = 0;

	while (json_next(&it))
		n += 1 + json_len(json_get(it.val, "options"));
	p->choices.p = offer_array(r, n < OFFER_CHOICES_MAX ? n : OFFER_CHOICES_MAX,
				   sizeof(*p->choices.p));
	it = json_iter(list);
	while (p->choices.p && json_next(&it)) {
		struct json_iter group = json_iter(json_get(it.val, "options"));

		offer_add_choice(r, p, it.val, value);
		while (json_next(&group))
			offer_add_choice(r, p, group.val, value);
	}
	for (size_t i = 0; i < p->choices.n; i++)
		p->choices.p[i].unattended = offer_is_unattended(p, p->id, p->choices.p[i].value);
}

static void offer_drop(struct offer_options *o)
{
	arena_free(o->arena);
	*o = (struct offer_options){ 0 };
}

static bool offer_begin(struct offer_reader *r, struct offer_options *o)
{
	offer_drop(o);
	*r = (struct offer_reader){ .arena = arena_new(ARENA_MAX) };
	o->arena = r->arena;
	o->p = r->arena ? offer_array(r, OFFER_OPTIONS_MAX, sizeof(*o->p)) : NULL;
	return o->p != NULL;
}

void offer_read_modes(struct agent_offer *o, const struct json_val *v)
{
	static const struct offer_row {
		enum offer_kind kind;
		const char *list, *current, *choices, *value;
	} rows[] = {
		{ OFFER_MODE, "modes", "currentModeId", "availableModes", "id" },
		{ OFFER_MODEL, "models", "currentModelId", "availableModels", "modelId" },
	};
	struct offer_reader r;

	if (!offer_begin(&r, &o->modes))
		return;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct json_val *list = json_get(v, rows[i].list);
		const struct json_val *choices = json_get(list, rows[i].choices);
		struct offer_option *p = &o->modes.p[o->modes.n];

		if (json_len(choices) == 0)
			continue;
		p->kind = rows[i].kind;
		p->id = p->category = str_of(offer_kind_names[p->kind]);
		offer_add_choices(&r, p, choices, rows[i].value);
		offer_put(p, json_str(json_get(list, rows[i].current)));
		o->modes.n++;
	}
	if (r.failed)
		offer_drop(&o->modes);
}

/* A boolean has two choices, as every other option has some. */
static void offer_add_boolean(struct offer_reader *r, struct offer_option *p,
			      const struct json_val *current)
{
	static const struct str values[] = { STR_LIT("true"), STR_LIT("false") };

	p->choices.p = offer_array(r, ARRAY_LEN(values), sizeof(*p->choices.p));
	for (size_t i = 0; p->choices.p && i < ARRAY_LEN(values); i++)
		p->choices.p[p->choices.n++] = (struct offer_choice){
			.value = values[i], .unattended = offer_is_unattended(p, p->id, values[i])
		};
	offer_put(p, values[json_bool(current) ? 0 : 1]);
}

void offer_read_config(struct agent_offer *o, const struct json_val *v)
{
	struct json_iter it = json_iter(json_get(v, "configOptions"));
	struct offer_reader r;

	if (json_type(json_get(v, "configOptions")) != JSON_ARRAY || !offer_begin(&r, &o->config))
		return;
	while (json_next(&it) && o->config.n < OFFER_OPTIONS_MAX) {
		struct offer_option *p = &o->config.p[o->config.n];
		const struct json_val *current = json_get(it.val, "currentValue");

		if (!offer_is_value(json_str(json_get(it.val, "id"))))
			continue;
		*p = (struct offer_option){
			.id = offer_text(&r, json_get(it.val, "id")),
			.name = offer_text(&r, json_get(it.val, "name")),
			.description = offer_text(&r, json_get(it.val, "description")),
			.category = offer_text(&r, json_get(it.val, "category")),
			.kind = str_is(json_str(json_get(it.val, "type")), "boolean")
				      ? OFFER_BOOLEAN
				      : OFFER_SELECT,
		};
		if (p->kind == OFFER_BOOLEAN) {
			offer_add_boolean(&r, p, current);
		} else {
			offer_add_choices(&r, p, json_get(it.val, "options"), "value");
			offer_put(p, json_str(current));
		}
		o->config.n++;
	}
	if (r.failed)
		offer_drop(&o->config);
}

void offer_read_commands(struct agent_offer *o, const struct json_val *v)
{
	struct json_iter it = json_iter(json_get(v, "availableCommands"));
	struct offer_reader r = { .arena = arena_new(ARENA_MAX) };

	arena_free(o->commands_arena);
	o->commands_arena = r.arena;
	o->commands.n = 0;
	o->commands.p = r.arena ? offer_array(&r, OFFER_COMMANDS_MAX, sizeof(*o->commands.p))
				: NULL;
	while (o->commands.p && json_next(&it) && o->commands.n < OFFER_COMMANDS_MAX) {
		if (offer_is_value(json_str(json_get(it.val, "name"))))
			o->commands.p[o->commands.n++] = (struct offer_command){
				offer_text(&r, json_get(it.val, "name")),
				offer_text(&r, json_get(it.val, "description")),
				offer_text(&r, json_get(json_get(it.val, "input"), "hint")),
			};
	}
	if (r.failed)
		o->commands.n = 0;
}

static struct str offer_variables(struct offer_reader *r, const struct json_val *list)
{
	autobuf struct buf b = BUF_INIT(TEXT_MAX);
	struct json_iter it = json_iter(list);
	char *kept;

	while (json_next(&it)) {
		struct str name = utf8_cut(json_str(json_get(it.val, "name")), OFFER_VALUE_MAX);

		if (name.n && buf_addf(&b, &r->e, "%s%.*s", b.n ? " " : "", STR_ARG(name)) < 0)
			break;
	}
	kept = b.n ? arena_dup(r->arena, buf_str(&b), &r->e) : NULL;
	r->failed |= b.n && !kept;
	return kept ? (struct str){ kept, b.n } : STR_NONE;
}

void offer_read_logins(struct agent_offer *o, const struct json_val *v)
{
	struct json_iter it = json_iter(json_get(v, "authMethods"));
	struct offer_reader r = { .arena = arena_new(ARENA_MAX) };

	arena_free(o->logins_arena);
	o->logins_arena = r.arena;
	o->logins.n = 0;
	o->logins.p = r.arena ? offer_array(&r, OFFER_LOGINS_MAX, sizeof(*o->logins.p)) : NULL;
	while (o->logins.p && json_next(&it) && o->logins.n < OFFER_LOGINS_MAX) {
		const struct json_val *meta = json_get(it.val, "_meta");
		struct str type = json_str(json_get(it.val, "type") ?: json_get(meta, "type"));

		/* "methodId" of version 2 */
		const struct json_val *id = json_get(it.val, "id") ?: json_get(it.val, "methodId");

		if (!offer_is_value(json_str(id)))
			continue;
		o->logins.p[o->logins.n++] = (struct offer_login){
			.id = offer_text(&r, id),
			.name = offer_text(&r, json_get(it.val, "name")),
			.description = offer_text(&r, json_get(it.val, "description")),
			.kind = str_is(type, "terminal") || json_get(meta, "terminal-auth")
				      ? OFFER_LOGIN_TERMINAL
			      : str_is(type, "env_var") ? OFFER_LOGIN_ENV
							: OFFER_LOGIN_AGENT,
			.variables = offer_variables(&r, json_get(it.val, "vars")),
		};
	}
	if (r.failed)
		o->logins.n = 0;
}

void offer_fini(struct agent_offer *o)
{
	arena_free(o->logins_arena);
	offer_drop(&o->modes);
	offer_drop(&o->config);
	arena_free(o->commands_arena);
	*o = (struct agent_offer){ 0 };
}

/* ---- looking --------------------------------------------------------------------------------- */

static bool offer_is_about(const struct offer_option *p, struct str what)
{
	return str_eq(p->id, what) || str_eq(p->category, what);
}

void offer_set(struct agent_offer *o, struct str id, struct str value)
{
	struct offer_options *const lists[] = { &o->modes, &o->config };

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		for (size_t k = 0; k < lists[i]->n; k++) {
			if (offer_is_about(&lists[i]->p[k], id))
				offer_put(&lists[i]->p[k], value);
		}
	}
}

/* Agents that have an option for their mode send the mode beside it, too. */
static bool offer_is_hidden(const struct agent_offer *o, const struct offer_option *p)
{
	for (size_t i = 0; i < o->config.n; i++) {
		if (offer_is_about(&o->config.p[i], p->id))
			return true;
	}
	return false;
}

const struct offer_option *offer_at(const struct agent_offer *o, size_t i)
{
	for (size_t k = 0; k < o->modes.n; k++) {
		if (!offer_is_hidden(o, &o->modes.p[k]) && i-- == 0)
			return &o->modes.p[k];
	}
	return i < o->config.n ? &o->config.p[i] : NULL;
}

const struct offer_option *offer_find(const struct agent_offer *o, struct str id)
{
	const struct offer_option *p;

	for (size_t i = 0; (p = offer_at(o, i)); i++) {
		if (str_eq(p->id, id))
			return p;
	}
	return NULL;
}

const struct offer_choice *offer_choice(const struct offer_option *p, struct str value)
{
	for (size_t i = 0; i < p->choices.n; i++) {
		if (str_eq(p->choices.p[i].value, value))
			return &p->choices.p[i];
	}
	return NULL;
}
