#pragma once
/*
 * What the agent of a conversation offers to people: options, such as its mode and its model, each
 * with a value, and commands for prompts. Known from the answer to its session on, and kept until
 * the hub ends. All of it is the agent's own text, cut where it is long.
 */
#include "json/document/json.h"
#include "json/field/field.h"

enum {
	OFFER_OPTIONS_MAX = 32,
	OFFER_CHOICES_MAX = 256, /* of one option */
	OFFER_COMMANDS_MAX = 256,
	OFFER_LOGINS_MAX = 16,
	OFFER_VALUE_MAX = 256, /* bytes of an id and of a value */
};

/* How the agent is told: session/set_mode, session/set_model, session/set_config_option. */
enum offer_kind { OFFER_MODE, OFFER_MODEL, OFFER_SELECT, OFFER_BOOLEAN, OFFER_KINDS };
extern const char *const offer_kind_names[OFFER_KINDS]; /* "mode" and so on */

struct offer_choice {
	struct str value, name, description;
	bool unattended; /* it lets the agent act without asking anybody */
};

struct offer_option {
	struct str id, name, description, category;
	enum offer_kind kind;
	struct str value; /* borrowed from current */
	struct {
		struct offer_choice *p;
		size_t n;
	} choices;
	char current[OFFER_VALUE_MAX + 1];
};
extern const struct field_table offer_option_table;

struct offer_command {
	struct str name, description, hint;
};
extern const struct field_table offer_command_table;

/* How one can log in. */
enum offer_login_kind {
	OFFER_LOGIN_AGENT, /* the agent does it, once it is told the id */
	OFFER_LOGIN_TERMINAL, /* a person does it, in a terminal */
	OFFER_LOGIN_ENV, /* its program needs variables */
	OFFER_LOGIN_KINDS
};
extern const char *const offer_login_kind_names[OFFER_LOGIN_KINDS];

struct offer_login {
	struct str id, name, description;
	enum offer_login_kind kind;
	struct str variables; /* with blanks between */
};
extern const struct field_table offer_login_table;

struct offer_options {
	struct arena *arena;
	struct offer_option *p;
	size_t n;
};

struct agent_offer {
	struct offer_options modes; /* of the session: its mode and its model */
	struct offer_options config; /* the agent's own; one for a mode stands for that of modes */
	struct arena *commands_arena, *logins_arena;
	struct {
		struct offer_login *p;
		size_t n;
	} logins;
	struct {
		struct offer_command *p;
		size_t n;
	} commands;
};

void offer_fini(struct agent_offer *o);

/* Each replaces what was there. v: the answer to session/new, or an update. What can't be kept is
 * not offered. */
void offer_read_modes(struct agent_offer *o, const struct json_val *v);
void offer_read_config(struct agent_offer *o,
		       const struct json_val *v); /* if it has configOptions */
void offer_read_commands(struct agent_offer *o, const struct json_val *v);
void offer_read_logins(struct agent_offer *o, const struct json_val *v);
/* The option of this id, or of this category, has another value. */
void offer_set(struct agent_offer *o, struct str id, struct str value);

/* One after the other; NULL: there are no more. */
const struct offer_option *offer_at(const struct agent_offer *o, size_t i);
const struct offer_option *offer_find(const struct agent_offer *o, struct str id);
const struct offer_choice *offer_choice(const struct offer_option *p, struct str value);

/* Whether an option of this id with this value lets an agent act without asking, as far as that can
 * be known by its name and by the other values of p. p NULL: those are not known, so what may be
 * such a value is one. */
bool offer_is_unattended(const struct offer_option *p, struct str id, struct str value);
