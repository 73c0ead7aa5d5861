/* `holt why`: what the operator's file decides of a call, and where that stands. */
#include <stdio.h>
#include <string.h>

#include "cli/common/home.h"
#include "cli/config/config.h"
#include "code/names.h"
#include "door/mcp/tools.h"
#include "guard/policy/policy.h"
#include "op/ops.h"

struct why_options {
	struct verb_options common;
	const char *who, *config;
	struct option_list args;
	uint32_t output;
};

static const struct option_row rows[] = {
	OPTION(struct why_options, who, OPTION_TEXT, "who", .arg = "PRINCIPAL",
	       .doc = "Principal of the call: local, the default, token, or key:NAME."),
	OPTION(struct why_options, args, OPTION_LIST, "arg", .arg = "/POINTER=VALUE",
	       .doc = "A value in the request, such as /command=ls. May be repeated."),
	CONFIG_ROW(struct why_options, config),
	OUTPUT_ROW(struct why_options),
	HELP_ROW(struct why_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);
static const struct why_options defaults = { .who = "local" };

/* A pointer also leads to all that is below it. */
static void why_show(const void *request, const char *pointer, field_see_fn see, void *data)
{
	const struct option_list *l = request;
	size_t n = strlen(pointer);

	for (size_t i = 0; i < l->n; i++) {
		if (strncmp(l->p[i], pointer, n) == 0 && strchr("=/", l->p[i][n]))
			see(data, str_of(strchr(l->p[i], '=') + 1));
	}
}

static void why_see(void *data, struct str text)
{
	*(struct str *)data = text;
}

static int why_check_args(const struct option_list *l, struct err *e)
{
	for (size_t i = 0; i < l->n; i++) {
		if (l->p[i][0] != '/' || !strchr(l->p[i], '='))
			return err_set(e, ERR_INVALID, "--arg %.80s: write /POINTER=VALUE",
				       l->p[i]);
	}
	return 0;
}

/* The names by which rules know it as a tool: those of tools_of(), and that of a module's tool. */
static size_t why_tools(const struct op *op, const struct option_list *args, struct arena *a,
			const char *ret[CONFIG_TOOLS_MAX + 1])
{
	struct str module = STR_NONE, tool = STR_NONE, kind = STR_NONE;
	struct tool_name name;
	struct err none;
	size_t n = op ? tools_of(op, ret, CONFIG_TOOLS_MAX) : 0;

	why_show(args, "/module", why_see, &module);
	why_show(args, "/tool", why_see, &tool);
	why_show(args, "/kind", why_see, &kind);
	if (op != &module_call_op || !module.n || !tool.n)
		return n;
	if (kind.n && !str_is(kind, "tool"))
		ret[n] = arena_printf(a, &none, "%.*s__%.*s", STR_ARG(module), STR_ARG(tool));
	else if (names_make(module, &tool, 1, a, &name, &none) == 0)
		ret[n] = name.gateway.p;
	else
		return n;
	return ret[n] ? n + 1 : n;
}

static const char *why_action_name(const void *of, size_t i)
{
	return ((const struct config_action *)of)[i].action;
}

static int why_find(const char *action, struct config_action *ret, struct err *e)
{
	struct config_action all[CONFIG_ACTIONS_MAX];
	size_t n = config_actions(all, CONFIG_ACTIONS_MAX);
	const char *near;

	for (size_t i = 0; i < n; i++) {
		if (strcmp(all[i].action, action) == 0) {
			*ret = all[i];
			return 0;
		}
	}
	near = option_nearest(action, why_action_name, all, n);
	return err_set(e, ERR_INVALID, "there is no action '%.60s'%s%s%s", action,
		       near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

struct why {
	enum config_then decision;
	struct str rule, place;
};
static const struct field why_fields[] = {
	FIELD_ENUM(struct why, decision, config_then_names, .flags = FIELD_REQUIRED,
		   .doc = "Decision about the call."),
	FIELD(struct why, rule, .doc = "What decides: a rule, the default of a list, or images."),
	FIELD(struct why, place, .doc = "Place in the configuration file."),
};
static const struct field_table why_table = FIELD_TABLE(struct why, why_fields);

static int why_print(const struct why *y, bool json, struct err *e)
{
	autofree char *text = NULL;

	if (!json && y->place.p)
		printf("%s: rule \"%.*s\", %.*s\n", config_then_names[y->decision],
		       STR_ARG(y->rule), STR_ARG(y->place));
	else if (!json)
		printf("%s: no rule is about it\n", config_then_names[y->decision]);
	if (!json)
		return 0;
	text = field_encode_text(&why_table, y, 4096, e);
	if (text)
		puts(text);
	return text ? 0 : -1;
}

static int why_run(const struct verb_input *in)
{
	const struct why_options *o = in->options;
	struct err e = ERR_INIT;
	AUTO(config_unref) struct config *c = NULL;
	struct config_action a = { .action = NULL };
	AUTO(arena_free) struct arena *arena = arena_new(1 << 16);
	const char *names[CONFIG_TOOLS_MAX + 1];
	char place[CONFIG_PLACE_MAX];
	struct policy_call call = { .who = str_of(o->who), .show = why_show, .request = &o->args };
	struct policy_verdict v;
	struct why y;

	if (why_find(in->operands[0], &a, &e) < 0 || why_check_args(&o->args, &e) < 0)
		return cli_wrong_usage(in->verb, &e);
	c = config_of_verb(o->config, &e);
	if (!c)
		return cli_fail(&e);
	call.action = a.action;
	call.effect = a.effect;
	call.tools = names;
	call.n_tools = arena ? why_tools(a.op, &o->args, arena, names) : 0;
	for (size_t i = 0; i < policy_image_members_n && !call.image.p; i++)
		why_show(&o->args, policy_image_members[i], why_see, &call.image);
	v = policy_decide(config_file(c), NULL, &call);
	y = (struct why){ .decision = v.then };
	if (v.line) {
		y.rule = v.rule;
		y.place = str_of(config_place(c, v.line, place));
	}
	return why_print(&y, o->output == OUTPUT_JSON, &e) < 0 ? cli_fail(&e) : 0;
}

const struct verb why_verb = {
	.name = "why",
	.usage = "[OPTION...] ACTION",
	.doc = "Explain how the operator's file decides about a call.",
	.more = "ACTION is an operation, such as sandbox.exec. It prints the decision, and the\n"
		"rule and line that make it.",
	.page = "holt-config",
	.options = &options,
	.defaults = &defaults,
	.size = sizeof(struct why_options),
	.min_operands = 1,
	.max_operands = 1,
	.usage_exit = 2,
	.run = why_run,
};
