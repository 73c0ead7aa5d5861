/* `holt config`: the operator's file, checked and shown without a hub. */
#include "cli/config/config.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/glob.h"
#include "cli/common/home.h"
#include "cli/common/safe.h"
#include "config/config.h"
#include "config/variables.h"
#include "door/mcp/tools.h"
#include "gate/gate.h"
#include "guard/policy/policy.h"
#include "op/ops.h"

enum { TEXT_MAX = 4 << 20, EXIT_DOUBTS = 1 };

struct config_options {
	struct verb_options common;
	const char *config;
};

static const struct option_row rows[] = {
	CONFIG_ROW(struct config_options, config),
	HELP_ROW(struct config_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

struct config *config_of_verb(const char *said, struct err *e)
{
	char path[PATH_MAX];
	bool must;

	return home_config(said, path, &must, e) < 0 ? NULL : config_open(path, must, e);
}

/* ---- check --------------------------------------------------------------------------------- */

struct doubts {
	const struct config *config;
	struct config_action actions[CONFIG_ACTIONS_MAX];
	size_t n_actions;
	unsigned n;
};

static bool doubts_action(const struct doubts *d, struct str pattern)
{
	for (size_t i = 0; i < d->n_actions; i++) {
		if (config_is_action(&d->actions[i], pattern))
			return true;
	}
	return false;
}

static bool doubts_effect(const struct doubts *d, struct str pattern)
{
	for (size_t i = 0; i < OP_EFFECTS; i++) {
		if (glob_matches(pattern, str_of(op_effect_names[i])))
			return true;
	}
	return false;
}

/* SERVER__TOOL, of which only the server is known here. */
static bool doubts_module(const struct doubts *d, struct str pattern)
{
	const struct config_servers *servers = &config_file(d->config)->mcp_servers;
	const char *end = memmem(pattern.p, pattern.n, "__", 2);

	if (!end)
		return servers->n && pattern.p[0] == '*';
	pattern.n = (size_t)(end - pattern.p);
	for (size_t i = 0; i < servers->n; i++) {
		if (glob_matches(pattern, servers->p[i].name))
			return true;
	}
	return false;
}

static bool doubts_tool(const struct doubts *d, struct str pattern)
{
	const char *names[CONFIG_TOOLS_MAX];

	for (size_t i = 0; i < all_ops_n; i++) {
		size_t n = tools_of(all_ops[i], names, ARRAY_LEN(names));

		while (n > 0) {
			if (glob_matches(pattern, str_of(names[--n])))
				return true;
		}
	}
	return doubts_module(d, pattern);
}

static void doubts_list(struct doubts *d, const struct config_rule *r, const char *member,
			const struct field_strs *list,
			bool (*is)(const struct doubts *d, struct str pattern))
{
	char place[CONFIG_PLACE_MAX];

	for (size_t i = 0; i < list->n; i++) {
		if (is(d, list->p[i]))
			continue;
		d->n++;
		fprintf(stderr, "holt: %s: %s: nothing is called \"%.*s\"\n",
			config_place(d->config, r->line, place), member, STR_CUT(list->p[i], 80));
	}
}

static bool doubts_rule_is_of(const struct config_rule *r, const struct config_action *a)
{
	const char *names[CONFIG_TOOLS_MAX];
	size_t n = a->op ? tools_of(a->op, names, ARRAY_LEN(names)) : 0;

	if (r->effects.n && !policy_names(&r->effects, str_of(a->effect)))
		return false;
	for (size_t i = 0; i < n && r->tools.n; i++) {
		if (policy_names(&r->tools, str_of(names[i])))
			return true;
	}
	return r->tools.n == 0;
}

/* A spelling that no path of a call has (op_spell_paths()). */
static bool doubts_spelling(struct str path)
{
	static const char *const wrong[] = { "//", "/./", "/../" };
	bool begins = str_starts(path, "/") || str_starts(path, "*");

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		if (memmem(path.p, path.n, wrong[i], strlen(wrong[i])))
			return !str_starts(path, "file://");
	}
	return !begins || (path.n > 1 && str_ends(path, "/")) || str_ends(path, "/.") ||
	       str_ends(path, "/..");
}

static void doubts_say_pointer(struct doubts *d, const struct config_rule *r, const char *pointer,
			       struct str actions, const char *near)
{
	char place[CONFIG_PLACE_MAX];

	d->n++;
	fprintf(stderr, "holt: %s: when: no request of \"%.*s\" has %.80s%s%s%s\n",
		config_place(d->config, r->line, place), STR_CUT(actions, 80), pointer,
		*near ? "; did you mean " : "", near, *near ? "?" : "");
}

/* The pointer of a rule about the actions of one pattern: the first that has it is enough. */
static void doubts_pointer(struct doubts *d, const struct config_rule *r,
			   const struct field_pair *when, struct str actions)
{
	char near[CONFIG_POINTER_MAX] = "", place[CONFIG_PLACE_MAX];
	bool any = false;

	for (size_t i = 0; i < d->n_actions; i++) {
		const struct config_action *a = &d->actions[i];
		const struct field *f;

		if (!config_is_action(a, actions) || !doubts_rule_is_of(r, a))
			continue;
		f = a->op ? field_of_pointer(a->op->request, when->key.p) : NULL;
		if (f && (f->flags & FIELD_PATH) && doubts_spelling(when->value)) {
			d->n++;
			fprintf(stderr,
				"holt: %s: when: no path is spelt \"%.*s\": they are absolute, "
				"without \".\", \"..\", \"//\" and a slash at the end\n",
				config_place(d->config, r->line, place), STR_CUT(when->value, 80));
			return;
		}
		if (f || !a->op || !*when->key.p)
			return;
		any = true;
		if (!*near)
			config_near_pointer(a->op, when->key.p, near);
	}
	if (any)
		doubts_say_pointer(d, r, when->key.p, actions, near);
}

static void doubts_when(struct doubts *d, const struct config_rule *r)
{
	for (size_t i = 0; i < r->when.n; i++) {
		for (size_t k = 0; k < r->actions.n; k++)
			doubts_pointer(d, r, &r->when.p[i], r->actions.p[k]);
		if (!r->actions.n)
			doubts_pointer(d, r, &r->when.p[i], STR_LIT("*"));
	}
}

/* Whether the rule is about what the action does, whatever else it wants. */
static bool doubts_covers(const struct config_rule *r, const struct config_action *a)
{
	for (size_t i = 0; i < r->actions.n; i++) {
		if (config_is_action(a, r->actions.p[i]))
			return doubts_rule_is_of(r, a);
	}
	return r->actions.n == 0 && doubts_rule_is_of(r, a);
}

/* Who denies one way to run commands may believe that the others are closed, too: no mistake, but
 * told. */
static void doubts_commands(struct doubts *d, const struct config_policy *p,
			    const struct config_rule *r)
{
	char place[CONFIG_PLACE_MAX], open[160] = "";
	size_t n = 0, closed = 0;

	for (size_t i = 0; i < d->n_actions && p->def == CONFIG_ALLOW; i++) {
		const struct config_action *a = &d->actions[i];
		bool covered = false;

		if (a->op && !(a->op->flags & OP_COMMANDS))
			continue;
		closed += doubts_covers(r, a);
		for (size_t k = 0; k < p->rules.n && !covered; k++)
			covered = p->rules.p[k].then != CONFIG_ALLOW &&
				  doubts_covers(&p->rules.p[k], a);
		if (!covered && n + strlen(a->action) + 3 < sizeof(open))
			n += (size_t)snprintf(open + n, sizeof(open) - n, "%s%s", n ? ", " : "",
					      a->action);
	}
	if (closed && n)
		fprintf(stderr,
			"holt: %s: note: commands can still be run by %s; the action \"%s\" is "
			"all of them\n",
			config_place(d->config, r->line, place), open, OP_COMMANDS_ACTION);
}

static void doubts_policy(struct doubts *d, const struct config_policy *p)
{
	for (size_t i = 0; i < p->rules.n; i++) {
		const struct config_rule *r = &p->rules.p[i];

		doubts_list(d, r, "actions", &r->actions, doubts_action);
		doubts_list(d, r, "effects", &r->effects, doubts_effect);
		doubts_list(d, r, "tools", &r->tools, doubts_tool);
		doubts_when(d, r);
		if (r->then != CONFIG_ALLOW)
			doubts_commands(d, p, r);
	}
}

/* Of the environment that this is run in, which a hub may lack. */
static int doubts_value(void *data, enum config_part_kind kind, struct str name, struct buf *to,
			struct err *e)
{
	char text[CONFIG_VARIABLE_MAX + 1];
	const char *value;

	snprintf(text, sizeof(text), "%.*s", STR_ARG(name));
	value = kind == CONFIG_PART_ENV ? getenv(text) : "";
	if (!value)
		return 0;
	return buf_add(to, value, strlen(value), e) < 0 ? -1 : 1;
}

static int doubts_text(void *data, enum config_text what, struct str text, struct err *e)
{
	const struct config_values values = { .value = doubts_value };
	autobuf struct buf to = BUF_INIT(TEXT_MAX);

	return config_expand(text, &values, &to, e);
}

/* A variable without a value keeps its program from starting, and nothing else. */
static void doubts_program(struct doubts *d, const struct config_server *s)
{
	struct err e;

	if (s->disabled || config_server_texts(d->config, s, doubts_text, NULL, &e) == 0)
		return;
	d->n++;
	fprintf(stderr, "holt: %s\n", e.msg);
}

static void doubts_programs(struct doubts *d)
{
	const struct config_file *f = config_file(d->config);

	for (size_t i = 0; i < f->mcp_servers.n; i++)
		doubts_program(d, &f->mcp_servers.p[i]);
	for (size_t i = 0; i < f->agents.n; i++)
		doubts_program(d, &f->agents.p[i].program);
}

static int config_run_check(const struct verb_input *in, struct err *e)
{
	const struct config_options *o = in->options;
	AUTO(config_unref) struct config *c = config_of_verb(o->config, e);
	struct doubts d = { .config = c };

	if (!c)
		return -1;
	if (gate_check_config(c, e) < 0)
		return -1;
	d.n_actions = config_actions(d.actions, CONFIG_ACTIONS_MAX);
	doubts_policy(&d, &config_file(c)->policy);
	for (size_t i = 0; i < config_file(c)->principals.n; i++)
		doubts_policy(&d, &config_file(c)->principals.p[i].policy);
	doubts_programs(&d);
	if (d.n)
		return EXIT_DOUBTS;
	safe_line(stdout, str_of(config_path(c)));
	puts(config_exists(c) ? ": right" : ": not there, so everything is allowed");
	return 0;
}

/* ---- show and schema ----------------------------------------------------------------------- */

static int config_print(struct json_writer *w, struct err *e)
{
	if (json_write_done(w, e) < 0)
		return cli_fail(e);
	printf("%.*s\n", STR_ARG(buf_str(w->buf)));
	return 0;
}

static int config_run_show(const struct verb_input *in, struct err *e)
{
	const struct config_options *o = in->options;
	autobuf struct buf text = BUF_INIT(TEXT_MAX);
	struct json_writer w = json_writer(&text);
	AUTO(config_unref) struct config *c = config_of_verb(o->config, e);

	if (!c)
		return -1;
	field_encode(&config_table, config_file(c), &w);
	return config_print(&w, e);
}

static int config_run_schema(const struct verb_input *in, struct err *e)
{
	autobuf struct buf text = BUF_INIT(TEXT_MAX);
	struct json_writer w = json_writer(&text);

	config_schema(&w);
	return config_print(&w, e);
}

#define WORD(name_, doc_, run_)                                                                    \
	{                                                                                          \
		.name = "config " name_, .usage = "[OPTION...]", .doc = doc_,                      \
		.page = "holt-config", .options = &options, .size = sizeof(struct config_options), \
		.run = run_                                                                        \
	}

static const struct verb check_verb = WORD("check", "Report errors in the operator's file.",
					   config_run_check);
static const struct verb show_verb =
	WORD("show", "Print the configuration in effect, with defaults, as JSON.", config_run_show);
static const struct verb schema_verb = WORD("schema", "Print the JSON Schema of the file.",
					    config_run_schema);
static const struct verb *const words[] = { &check_verb, &show_verb, &schema_verb, NULL };

const struct verb config_verb = {
	.name = "config",
	.usage = "[OPTION...]",
	.doc = "Check the operator's file, Holt's configuration.",
	.more = "By itself it checks. The exit status of that is 1 where a rule names what is not\n"
		"there, or an MCP server a variable that is not set.",
	.page = "holt-config",
	.options = &options,
	.size = sizeof(struct config_options),
	.words = words,
	.run = config_run_check,
};
