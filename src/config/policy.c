#include "config/internal.h"

const char *const config_then_names[CONFIG_THENS] = {
	[CONFIG_ALLOW] = "allow",
	[CONFIG_ASK] = "ask",
	[CONFIG_DENY] = "deny",
};

#define PATTERNS .max = CONFIG_LIST_MAX, .item_min = 1, .item_max = CONFIG_TEXT_MAX

static const struct field rule_fields[] = {
	FIELD(struct config_rule, name, .flags = FIELD_REQUIRED, .min = 1, .max = CONFIG_NAME_MAX,
	      .doc = "Name of the rule in denials and in the audit log."),
	FIELD(struct config_rule, who, PATTERNS,
	      .doc = "Principals, as patterns: local, token, key:NAME, conversation:ID. Default: "
		     "all."),
	FIELD(struct config_rule, tools, PATTERNS,
	      .doc = "MCP tools and sets of tools, as patterns. The rule applies to their "
		     "operations, through every door."),
	FIELD(struct config_rule, actions, PATTERNS,
	      .doc = "Actions, as patterns: sandbox.exec, files.*. Default: all."),
	FIELD(struct config_rule, effects, PATTERNS,
	      .doc = "Effects: read, write, execute, destroy, administer. Default: all."),
	FIELD(struct config_rule, when, .max = CONFIG_LIST_MAX, .item_max = CONFIG_TEXT_MAX,
	      .doc = "JSON pointers into the request, each with a pattern. All of them must "
		     "match."),
	FIELD_ENUM(struct config_rule, then, config_then_names, .flags = FIELD_REQUIRED,
		   .doc = "Decision about a call that matches."),
};
static const struct field_table rule_table = FIELD_TABLE(struct config_rule, rule_fields);

static const struct field policy_fields[] = {
	FIELD_NAMED_ENUM(struct config_policy, def, "default", config_then_names,
			 .def = DEFAULT_ENUM(CONFIG_ALLOW),
			 .doc = "Decision about a call that no rule matches."),
	FIELD_OBJECTS(struct config_policy, rules, rule_table, .max = CONFIG_LIST_MAX,
		      .doc = "Rules, in order; the first one that matches decides."),
};
const struct field_table config_policy_table = FIELD_TABLE(struct config_policy, policy_fields);

static int config_check_rule(struct config_reader *r, struct json_pointer at,
			     const struct config_rule *rule)
{
	const struct json_pointer when = config_at(at, STR_LIT("when"));

	for (size_t i = 0; i < rule->when.n; i++) {
		struct str key = rule->when.p[i].key;

		if (key.n && key.p[0] != '/')
			return config_refuse(r, &when,
					     "\"%.*s\" is no JSON pointer: write \"/%.*s\"",
					     STR_CUT(key, 60), STR_CUT(key, 60));
	}
	return 0;
}

int config_check_policy(struct config_reader *r, struct json_pointer at, struct config_policy *p)
{
	const struct json_pointer rules = config_at(at, STR_LIT("rules"));

	struct config_lines lines;

	if (!p->rules.n && p->def == CONFIG_ALLOW)
		return 0;
	p->line = config_line(r, &at);
	lines = config_lines(r, &rules);
	for (size_t i = 0; i < p->rules.n; i++) {
		struct json_pointer rule = rules;

		json_pointer_index(&rule, i);
		p->rules.p[i].line = config_next_line(&lines);
		if (config_check_rule(r, rule, &p->rules.p[i]) < 0)
			return -1;
	}
	return 0;
}
