/* Rules of the operator's file that are about nothing, as by a name that is not spelt right: they
 * protect nothing. */
#include <stdio.h>

#include "base/glob.h"
#include "base/log.h"
#include "cli/config/config.h"
#include "config/config.h"
#include "door/mcp/tools.h"
#include "guard/policy/policy.h"
#include "op/ops.h"

struct doubts {
	const struct config *config;
	config_say_fn say;
	bool notes;
	struct config_action actions[CONFIG_ACTIONS_MAX];
	size_t n_actions; /* 0: nothing was looked up yet */
	unsigned n;
};

static void doubts_say(const struct doubts *d, const struct config_rule *r, const char *fmt, ...)
	PRINTF_LIKE(3, 4);
static void doubts_say(const struct doubts *d, const struct config_rule *r, const char *fmt, ...)
{
	char line[CONFIG_PLACE_MAX + 1024], place[CONFIG_PLACE_MAX];
	size_t n = (size_t)snprintf(line, sizeof(line),
				    "%s: ", config_place(d->config, r->line, place));
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line + n, sizeof(line) - n, fmt, ap);
	va_end(ap);
	d->say(line);
}

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
	for (size_t i = 0; i < list->n; i++) {
		if (is(d, list->p[i]))
			continue;
		d->n++;
		doubts_say(d, r, "%s: nothing is called \"%.*s\"", member, STR_CUT(list->p[i], 80));
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

/* The pointer of a rule about the actions of one pattern: the first that has it is enough. */
static void doubts_pointer(struct doubts *d, const struct config_rule *r,
			   const struct field_pair *when, struct str actions)
{
	char near[CONFIG_POINTER_MAX] = "";
	bool any = false;

	for (size_t i = 0; i < d->n_actions; i++) {
		const struct config_action *a = &d->actions[i];
		const struct field *f;

		if (!config_is_action(a, actions) || !doubts_rule_is_of(r, a))
			continue;
		f = a->op ? field_of_pointer(a->op->request, when->key.p) : NULL;
		if (f && (f->flags & FIELD_PATH) && doubts_spelling(when->value)) {
			d->n++;
			doubts_say(d, r,
				   "when: no path is spelt \"%.*s\": they are absolute, "
				   "without \".\", \"..\", \"//\" and a slash at the end",
				   STR_CUT(when->value, 80));
			return;
		}
		if (f || !a->op || !*when->key.p)
			return;
		any = true;
		if (!*near)
			config_near_pointer(a->op, when->key.p, near);
	}
	if (!any)
		return;
	d->n++;
	doubts_say(d, r, "when: no request of \"%.*s\" has %.80s%s%s%s", STR_CUT(actions, 80),
		   when->key.p, *near ? "; did you mean " : "", near, *near ? "?" : "");
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

/* A file that denies one way to run commands may be meant to close all of them. That is no mistake,
 * so it is only told. */
static void doubts_commands(struct doubts *d, const struct config_policy *p,
			    const struct config_rule *r)
{
	char open[160] = "";
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
		doubts_say(d, r,
			   "note: commands can still be run by %s; the action \"%s\" is all of "
			   "them",
			   open, OP_COMMANDS_ACTION);
}

static void doubts_policy(struct doubts *d, const struct config_policy *p)
{
	if (p->rules.n && !d->n_actions)
		d->n_actions = config_actions(d->actions, CONFIG_ACTIONS_MAX);
	for (size_t i = 0; i < p->rules.n; i++) {
		const struct config_rule *r = &p->rules.p[i];

		doubts_list(d, r, "actions", &r->actions, doubts_action);
		doubts_list(d, r, "effects", &r->effects, doubts_effect);
		doubts_list(d, r, "tools", &r->tools, doubts_tool);
		doubts_when(d, r);
		if (d->notes && r->then != CONFIG_ALLOW)
			doubts_commands(d, p, r);
	}
}

unsigned config_doubts(const struct config *c, bool notes, config_say_fn say)
{
	const struct config_file *f = config_file(c);
	struct doubts d = { .config = c, .say = say, .notes = notes };

	doubts_policy(&d, &f->policy);
	for (size_t i = 0; i < f->principals.n; i++)
		doubts_policy(&d, &f->principals.p[i].policy);
	return d.n;
}

static void doubts_log(const char *line)
{
	log_warn("%s", line);
}

void config_warn(const struct config *c)
{
	config_doubts(c, false, doubts_log);
}
