#pragma once
/*
 * What the operator's file decides of a call. Pure: a file and a call give a verdict.
 *
 * There is one list of rules for everybody (the hub's), and one for each entry of "principals" that
 * names who asks. In each list the first rule that matches decides, or its default. An agent of a
 * conversation has two names, its owner's and its own: a list decides for each by itself, and the
 * stricter result holds. Of all lists the strictest decides: deny before ask before allow. So
 * whatever is added, nobody may more than before. The same holds for images, networks, secrets and
 * limits: each list only narrows.
 */
#include "config/config.h"

/* The file that holds; the gate replaces it. */
struct policy {
	const struct config *config;
};

/* A call that is to be decided; borrowed. */
struct policy_call {
	/* Who asks, or for whom an agent works: "local", "key:ci"; and the agent's own name,
	 * "conversation:ID", or STR_NONE. */
	struct str who, conversation;
	const char *action, *effect;
	/* The name that rules have for it together with others, matched as an action; or NULL. */
	const char *group;
	/* Names of the MCP tools that do this, and of their sets. */
	const char *const *tools;
	size_t n_tools;
	/* Shows the texts that a JSON pointer leads to in the request. whole: a command as one line
	 * alone, else its words, too. */
	void (*show)(const void *request, const char *pointer, bool whole, field_see_fn see,
		     void *data);
	const void *request;
	/* There is no request yet: what is decided is the mildest that one could get in each list.
	 * So CONFIG_DENY is certain for all of them, and the others are not. */
	bool any_request;
	struct str image; /* what a sandbox is to be made from; STR_NONE: none is made */
};

/* Pointers to what names that in requests. */
extern const char *const policy_image_members[];
extern const size_t policy_image_members_n;

struct policy_verdict {
	enum config_then then;
	/* What decided: a rule's name, "default" of a list, or "images"; borrowed from the file. */
	struct str rule;
	unsigned line; /* of it; 0: the file says nothing */
};

/* Whether one of the patterns is of this text; none is where there are no patterns. */
bool policy_names(const struct field_strs *patterns, struct str text);

/* own: rules that the request or the conversation itself brings; NULL: none. */
struct policy_verdict policy_decide(const struct config_file *f, const struct config_policy *own,
				    const struct policy_call *c);

/* Whether the file says anything of calls: else all are allowed. */
bool policy_has_rules(const struct config_file *f);

/* What it may make sandboxes from. *ret_line: of what refuses it. */
bool policy_allows_image(const struct config_file *f, struct str who, struct str conversation,
			 struct str image, unsigned *ret_line);

/* Lists of names in entries of "principals". */
enum policy_list { POLICY_SECRETS, POLICY_PROFILES, POLICY_AGENTS, POLICY_WORKSPACES };
/* Whether each entry that names it and has the list names this, too. */
bool policy_allows(const struct config_file *f, struct str who, struct str conversation,
		   enum policy_list l, struct str name);
/* Whether an entry for `who` has the list: for those who have nothing by default. */
bool policy_grants(const struct config_file *f, struct str who, enum policy_list l);
/* Whether one has this name in full, not as a pattern. */
bool policy_spells(const struct config_file *f, struct str who, enum policy_list l,
		   struct str name);

/* What it may use: the least of all that name it or a key that made its own, without the hub's,
 * which holds for all clients together. makers: owners, with blanks between. */
struct config_limits policy_limits(const struct config_file *f, struct str makers, struct str who,
				   struct str conversation);
/* The lesser of each. */
struct config_limits policy_least(const struct config_limits *a, const struct config_limits *b);

/* The entries of "principals" that name it, from *at, which begins at 0. NULL: no more. */
const struct config_principal *policy_next(const struct config_file *f, struct str who,
					   struct str conversation, size_t *at);
