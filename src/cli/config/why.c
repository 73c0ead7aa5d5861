/* `holt why`: what the operator's file decides of a call, and where that stands. */
#include <stdio.h>
#include <string.h>

#include "cli/common/home.h"
#include "cli/config/config.h"
#include "door/mcp/tools.h"
#include "guard/gate/gate.h"
#include "guard/policy/policy.h"
#include "modules/code/names.h"
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

/* The next step of a pointer. */
static struct str why_step(const char *pointer)
{
	return (struct str){ pointer + 1, strcspn(pointer + 1, "/=") };
}

/* A pointer also leads to all that is below it. */
static bool why_leads(const char *pointer, const char *arg)
{
	while (*pointer == '/' && *arg == '/') {
		struct str step = why_step(pointer), is = why_step(arg);

		if (!str_eq(step, is) && !(field_is_place(step) && field_is_place(is)))
			return false;
		pointer += 1 + step.n;
		arg += 1 + is.n;
	}
	return !*pointer;
}

static void why_show(const void *request, const char *pointer, bool whole, field_see_fn see,
		     void *data)
{
	const struct option_list *l = request;

	for (size_t i = 0; i < l->n; i++) {
		if (why_leads(pointer, l->p[i]))
			see(data, str_of(strchr(l->p[i], '=') + 1));
	}
}

static void why_see(void *data, struct str text)
{
	*(struct str *)data = text;
}

static int why_check_args(const struct op *op, const struct option_list *l, struct err *e)
{
	char near[CONFIG_POINTER_MAX], pointer[CONFIG_POINTER_MAX];

	for (size_t i = 0; i < l->n; i++) {
		const char *sign = strchr(l->p[i], '=');

		if (l->p[i][0] != '/' || !sign || sign - l->p[i] >= CONFIG_POINTER_MAX)
			return err_set(e, ERR_INVALID, "--arg %.80s: write /POINTER=VALUE",
				       l->p[i]);
		snprintf(pointer, sizeof(pointer), "%.*s", (int)(sign - l->p[i]), l->p[i]);
		if (!op || field_of_pointer(op->request, pointer))
			continue;
		config_near_pointer(op, pointer, near);
		return err_set(e, ERR_INVALID, "--arg %.80s: no request of %s has it%s%s%s",
			       pointer, op->action, *near ? "; did you mean " : "", near,
			       *near ? "?" : "");
	}
	return 0;
}

/* ---- the request, as a door would read it -------------------------------------------------- */

/* Writes a value as the row at its pointer takes it: a text as it is, else JSON. */
static void why_write_value(const struct op *op, const char *pointer, const char *value,
			    struct json_writer *w)
{
	const struct field *f = field_of_pointer(op->request, pointer);
	bool text = f->kind == FIELD_IS_STR || f->kind == FIELD_IS_ENUM || f->kind == FIELD_IS_MAP;
	struct err none;
	AUTO(json_free)
	struct json_doc *doc = text ? NULL : json_parse(str_of(value), NULL, &none);

	if (f->kind == FIELD_IS_STRS && (!doc || json_type(json_root(doc)) != JSON_ARRAY))
		json_write_text(w, value); /* of one place of the list */
	else if (doc)
		json_write_val(w, json_root(doc));
	else
		json_write_text(w, value);
}

static bool why_is_below(const char *arg, const char *first, size_t n)
{
	return strncmp(arg, first, n) == 0 && strchr("/=", arg[n]);
}

/* Writes what all --arg have below the first n bytes of one of them. */
static void why_write(const struct op *op, const struct option_list *l, const char *first, size_t n,
		      unsigned depth, struct json_writer *w)
{
	bool list;
	char pointer[CONFIG_POINTER_MAX];

	if (first[n] == '=') {
		snprintf(pointer, sizeof(pointer), "%.*s", (int)n, first);
		why_write_value(op, pointer, first + n + 1, w);
		return;
	}
	list = field_is_place(why_step(first + n));
	if (list)
		json_write_array(w);
	else
		json_write_object(w);
	for (size_t i = 0; i < l->n; i++) {
		bool seen = !why_is_below(l->p[i], first, n) || l->p[i][n] == '=';
		struct str step;

		if (seen)
			continue;
		step = why_step(l->p[i] + n);
		for (size_t k = 0; k < i && !seen; k++)
			seen = why_is_below(l->p[k], l->p[i], n + 1 + step.n);
		if (seen)
			continue;
		if (!list)
			json_write_key_str(w, step);
		if (depth < 16)
			why_write(op, l, l->p[i], n + 1 + step.n, depth + 1, w);
	}
	if (list)
		json_write_array_end(w);
	else
		json_write_object_end(w);
}

/* Decoded and brought into its one form as in a call, but members may be missing. NULL: it can't
 * be. */
static const void *why_request(const struct op *op, const struct option_list *l, struct arena *a,
			       struct err *e)
{
	autobuf struct buf text = BUF_INIT(JSON_BYTES_MAX);
	struct json_writer w = json_writer(&text);
	void *request = arena_alloc(a, op->request->size, e);
	struct json_doc *doc;
	struct err none;
	bool relative;
	char *copy;

	if (l->n)
		why_write(op, l, l->p[0], 0, 0, &w);
	else
		json_write_object(&w), json_write_object_end(&w);
	if (!request || json_write_done(&w, e) < 0)
		return NULL;
	copy = arena_dup(a, buf_str(&text), e);
	doc = copy ? json_parse((struct str){ copy, text.n }, NULL, e) : NULL;
	if (!doc || field_decode_part(op->request, json_root(doc), a, request, e) < 0)
		return NULL;
	/* Missing members may keep it from its one form. Rules about those see nothing there. */
	if (op->normalize && op->normalize(request, a, l->n ? e : &none) < 0 && l->n)
		return NULL;
	if (op_spell_paths(op, request, STR_LIT(OP_PATH_BASE), a, &relative, e) < 0)
		return NULL;
	return request; /* doc lives as long as the program */
}

/* The names by which rules know it as a tool: those of tools_of(), and that of a module's tool. */
static size_t why_tools(const struct op *op, const struct option_list *args, struct arena *a,
			const char *ret[CONFIG_TOOLS_MAX + 1])
{
	struct str module = STR_NONE, tool = STR_NONE, kind = STR_NONE;
	struct tool_name name;
	struct err none;
	size_t n = op ? tools_of(op, ret, CONFIG_TOOLS_MAX) : 0;

	why_show(args, "/module", false, why_see, &module);
	why_show(args, "/tool", false, why_see, &tool);
	why_show(args, "/kind", false, why_see, &kind);
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
	if (!json && y->place.p)
		printf("%s: rule \"%.*s\", %.*s\n", config_then_names[y->decision],
		       STR_ARG(y->rule), STR_ARG(y->place));
	else if (!json)
		printf("%s: no rule is about it\n", config_then_names[y->decision]);
	return json ? cli_print_object(&why_table, y, e) : 0;
}

/* Judges an action of a verb, whose request is only what was said. */
static struct policy_verdict why_judge_local(const struct config_file *f,
					     const struct config_action *a, struct str who,
					     const struct option_list *args)
{
	struct policy_call call = { .who = who,
				    .action = a->action,
				    .effect = a->effect,
				    .show = why_show,
				    .request = args };

	if (config_is_action(a, STR_LIT(OP_COMMANDS_ACTION)))
		call.group = OP_COMMANDS_ACTION;
	for (size_t i = 0; i < policy_image_members_n && !call.image.p; i++)
		why_show(args, policy_image_members[i], false, why_see, &call.image);
	return policy_decide(f, NULL, &call);
}

static int why_judge(const struct config *c, const struct config_action *a, struct str who,
		     const struct option_list *args, struct arena *arena,
		     struct policy_verdict *ret, struct err *e)
{
	const char *names[CONFIG_TOOLS_MAX + 1], *unread;
	/* No sandbox is looked at: as one is that was made without options. */
	struct op_defaults without = { .path = STR_LIT(OP_PATH_BASE), .user = STR_LIT("user") };
	struct gate_asked asked = { .op = a->op, .who = who, .tools = names, .defaults = &without };

	if (!a->op) {
		*ret = why_judge_local(config_file(c), a, who, args);
		return 0;
	}
	asked.request = why_request(a->op, args, arena, e);
	if (!asked.request)
		return -1;
	asked.n_tools = why_tools(a->op, args, arena, names);
	if (a->op->effect == OP_WRITE || a->op->effect == OP_EXECUTE)
		asked.image = gate_image(a->op, asked.request);
	*ret = gate_judge(config_file(c), &asked, &unread);
	return 0;
}

static int why_run(const struct verb_input *in, struct err *e)
{
	const struct why_options *o = in->options;
	AUTO(config_unref) struct config *c = NULL;
	struct config_action a = { .action = NULL };
	AUTO(arena_free) struct arena *arena = arena_new(64 << 20);
	char place[CONFIG_PLACE_MAX];
	struct policy_verdict v;
	struct why y;

	if (why_find(in->operands[0], &a, e) < 0 || why_check_args(a.op, &o->args, e) < 0)
		return cli_wrong_usage(in->verb, e);
	c = config_of_verb(o->config, e);
	if (!c || !arena)
		return -1;
	if (why_judge(c, &a, str_of(o->who), &o->args, arena, &v, e) < 0)
		return cli_wrong_usage(in->verb, e);
	y = (struct why){ .decision = v.then };
	if (v.line) {
		y.rule = v.rule;
		y.place = str_of(config_place(c, v.line, place));
	}
	return why_print(&y, o->output == OUTPUT_JSON, e);
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
	.run = why_run,
};
