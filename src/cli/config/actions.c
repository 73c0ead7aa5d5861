/* `holt policy actions`: what rules can be about, and by which pointers. */
#include <stdio.h>
#include <string.h>

#include "base/glob.h"
#include "cli/config/config.h"
#include "door/http/routes.h"
#include "door/mcp/tools.h"
#include "json/document/near.h"
#include "op/ops.h"

/* Actions of verbs that work without a hub. */
static const struct config_action local_actions[] = {
	{ "sandbox.run", "execute" },
	{ "image.build", "execute" },
	{ "host.doctor", "execute" },
};

static bool has_action(const struct config_action *all, size_t n, const char *action)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(all[i].action, action) == 0)
			return true;
	}
	return false;
}

static size_t add_op(struct config_action *all, size_t n, size_t max, const struct op *op)
{
	if (n < max && !has_action(all, n, op->action))
		all[n++] = (struct config_action){ op->action, op_effect_names[op->effect], op };
	return n;
}

size_t config_actions(struct config_action *ret, size_t max)
{
	const struct api_route *r;
	size_t n = 0;

	for (size_t i = 0; i < all_ops_n; i++)
		n = add_op(ret, n, max, all_ops[i]);
	for (size_t i = 0; (r = api_route_at(i)); i++)
		n = add_op(ret, n, max, r->op);
	for (size_t i = 0; i < ARRAY_LEN(local_actions) && n < max; i++)
		ret[n++] = local_actions[i];
	return n;
}

/* The verbs' own run commands, but for the one that looks at the host. */
static bool is_command(const struct config_action *a)
{
	return a->op ? (a->op->flags & OP_COMMANDS) != 0 : strcmp(a->action, "host.doctor") != 0;
}

bool config_is_action(const struct config_action *a, struct str pattern)
{
	return glob_matches(pattern, str_of(a->action)) ||
	       (is_command(a) && glob_matches(pattern, STR_LIT(OP_COMMANDS_ACTION)));
}

/* ---- pointers ------------------------------------------------------------------------------ */

struct near {
	const char *pointer;
	char *ret;
	unsigned best;
};

static void near_see(void *data, const struct field *row, const char *pointer)
{
	struct near *w = data;
	size_t n = strlen(w->pointer), m = strlen(pointer);
	size_t both = n < m ? n : m;
	unsigned d = near_distance(str_of(w->pointer), str_of(pointer));

	if (both > 1 && strncmp(pointer, w->pointer, both) == 0)
		d = 1;
	if (d > near_enough(str_of(w->pointer)) || (*w->ret && d >= w->best))
		return;
	snprintf(w->ret, CONFIG_POINTER_MAX, "%s", pointer);
	w->best = d;
}

/* A member that a door calls so. */
static bool near_alias(struct op_members members, const char *pointer, char *ret)
{
	for (size_t i = 0; i < members.n; i++) {
		const struct op_member *m = &members.p[i];

		if (m->as && strcmp(pointer + 1, m->as) == 0)
			return snprintf(ret, CONFIG_POINTER_MAX, "/%s", m->name) > 0;
	}
	return false;
}

void config_near_pointer(const struct op *op, const char *pointer, char ret[CONFIG_POINTER_MAX])
{
	struct near w = { .pointer = pointer, .ret = ret };
	const struct api_route *r;

	*ret = '\0';
	for (size_t i = 0; *pointer == '/' && (r = api_route_at(i)); i++) {
		if (r->op == op && near_alias(r->members, pointer, ret))
			return;
	}
	for (size_t i = 0; *pointer == '/' && i < tools_n; i++) {
		if (tools[i]->op == op && near_alias(tools[i]->members, pointer, ret))
			return;
	}
	field_pointers(op->request, near_see, &w);
}

/* ---- the verb ------------------------------------------------------------------------------ */

static void actions_print(void *data, const struct field *row, const char *pointer)
{
	printf("\t%-28s %s\n", pointer, row->doc);
}

static void actions_write(void *data, const struct field *row, const char *pointer)
{
	struct json_writer *w = data;

	json_write_object(w);
	json_write_key(w, "pointer");
	json_write_text(w, pointer);
	json_write_key(w, "doc");
	json_write_text(w, row->doc);
	json_write_key(w, "path");
	json_write_bool(w, row->flags & FIELD_PATH);
	json_write_object_end(w);
}

static void actions_write_one(const struct config_action *a, struct json_writer *w)
{
	json_write_object(w);
	json_write_key(w, "action");
	json_write_text(w, a->action);
	json_write_key(w, "effect");
	json_write_text(w, a->effect);
	json_write_key(w, "runs_commands");
	json_write_bool(w, is_command(a));
	if (a->op) {
		json_write_key(w, "arguments");
		json_write_array(w);
		field_pointers(a->op->request, actions_write, w);
		json_write_array_end(w);
	}
	json_write_object_end(w);
}

static int actions_json(const struct config_action *const *shown, size_t n)
{
	autobuf struct buf text = BUF_INIT(4 << 20);
	struct json_writer w = json_writer(&text);
	struct err e = ERR_INIT;

	json_write_array(&w);
	for (size_t i = 0; i < n; i++)
		actions_write_one(shown[i], &w);
	json_write_array_end(&w);
	if (json_write_done(&w, &e) < 0)
		return cli_fail(&e);
	puts(text.p);
	return 0;
}

static int actions_run(const struct verb_input *in, struct err *e)
{
	const struct verb_output *o = in->options;
	struct config_action all[CONFIG_ACTIONS_MAX];
	const struct config_action *shown[CONFIG_ACTIONS_MAX];
	size_t n = config_actions(all, CONFIG_ACTIONS_MAX), n_shown = 0;

	for (size_t i = 0; i < n; i++) {
		if (!in->n_operands || config_is_action(&all[i], str_of(in->operands[0])))
			shown[n_shown++] = &all[i];
	}
	if (!n_shown) {
		err_set(e, ERR_INVALID, "there is no action '%.60s'", in->operands[0]);
		return cli_wrong_usage(in->verb, e);
	}
	if (o->output == OUTPUT_JSON)
		return actions_json(shown, n_shown);
	for (size_t i = 0; i < n_shown; i++) {
		printf("%s (%s%s)\n", shown[i]->action, shown[i]->effect,
		       is_command(shown[i]) ? ", " OP_COMMANDS_ACTION : "");
		if (shown[i]->op)
			field_pointers(shown[i]->op->request, actions_print, NULL);
	}
	return 0;
}

static const struct verb actions_verb = {
	.name = "policy actions",
	.usage = "[OPTION...] [ACTION]",
	.doc = "List the actions of rules, and pointers to their arguments.",
	.more = "ACTION may be a pattern, such as files.*.",
	.options = &verb_output,
	.size = sizeof(struct verb_output),
	.max_operands = 1,
	.run = actions_run,
};
static const struct verb *const words[] = { &actions_verb, NULL };

const struct verb policy_verb = {
	.name = "policy",
	.usage = "[OPTION...] [ACTION]",
	.doc = "List what rules of the operator's file can be about.",
	.page = "holt-config",
	.options = &verb_output,
	.size = sizeof(struct verb_output),
	.max_operands = 1,
	.words = words,
	.run = actions_run,
};
