/* Whether a call may be: the hook policy. */
#include "guard/gate/internal.h"
#include "guard/policy/policy.h"
#include "hub/core/hub.h"
#include "hub/sandbox/sandbox.h"
#include "hub/workspace/workspaces.h"
#include "op/network.h"

enum { TOOLS_MAX = 32 };

struct gate_policy_look {
	const struct gate_asked *asked;
	const char **unread;
};

static void gate_policy_show(const void *request, const char *pointer, bool whole, field_see_fn see,
			     void *data)
{
	const struct gate_policy_look *l = request;

	if (!op_show(l->asked->op, l->asked->request, l->asked->defaults, pointer, whole, see,
		     data))
		*l->unread = pointer;
}

struct policy_verdict gate_judge(const struct config_file *f, const struct gate_asked *q,
				 const char **ret_unread)
{
	const struct gate_policy_look look = { q, ret_unread };
	struct policy_verdict v;

	*ret_unread = NULL;
	v = policy_decide(f, NULL,
			  &(struct policy_call){
				  .who = q->who,
				  .conversation = q->conversation,
				  .action = q->op->action,
				  .group = q->op->flags & OP_COMMANDS ? OP_COMMANDS_ACTION : NULL,
				  .effect = op_effect_names[q->op->effect],
				  .tools = q->tools,
				  .n_tools = q->n_tools,
				  .show = gate_policy_show,
				  .request = &look,
				  .any_request = !q->request,
				  .image = q->image,
			  });
	if (*ret_unread)
		v.then = CONFIG_DENY;
	return v;
}

static void gate_policy_see(void *data, struct str text)
{
	*(struct str *)data = text;
}

struct str gate_image(const struct op *op, const void *request)
{
	struct str image = STR_NONE;

	for (size_t i = 0; i < policy_image_members_n && !image.p; i++)
		field_visit(op->request, request, policy_image_members[i], gate_policy_see, &image);
	return image;
}

/* The template that a sandbox is to be made from; STR_NONE: the call makes none. */
static struct str gate_policy_image(struct call *c)
{
	const struct op *op = call_op(c);

	if (op->effect != OP_WRITE && op->effect != OP_EXECUTE)
		return STR_NONE;
	return op->image ? op->image(c, call_request(c)) : gate_image(op, call_request(c));
}

/* Keeps what was decided for the hooks behind this one. The texts outlive the file. */
static int gate_policy_note(struct gate *g, struct call *c, const struct policy_verdict *v,
			    struct err *e)
{
	struct gate_call *s = gate_call(c);
	char place[CONFIG_PLACE_MAX];
	char *rule, *at;

	if (!s)
		return err_set(e, ERR_LIMIT, "out of memory");
	s->decision = v->then;
	if (!v->line)
		return 0;
	rule = arena_dup(call_arena(c), v->rule, e);
	at = rule ? arena_dup(call_arena(c), str_of(config_place(g->config, v->line, place)), e)
		  : NULL;
	if (!at)
		return -1;
	s->rule = str_of(rule);
	s->place = str_of(at);
	return 0;
}

/* Names by which rules know the call as one of a tool. One more than tools_of() gives fits. */
static size_t gate_policy_tools(struct gate *g, const struct op *op, const char *name,
				const char **ret)
{
	size_t n = g->tools_of ? g->tools_of(op, ret, TOOLS_MAX) : 0;

	if (name)
		ret[n++] = name;
	return n;
}

/* Whether the operation itself wants a person's word. */
static bool gate_policy_asks(struct call *c)
{
	return call_op(c)->asks && call_op(c)->asks(c, call_request(c));
}

static int gate_policy_check(struct gate *g, struct call *c, struct err *e)
{
	const struct config_file *f = config_file(g->config);
	const struct op *op = call_op(c);
	const char *name = op->tool ? op->tool(c, call_request(c)) : NULL;
	const char *tools[TOOLS_MAX + 1];
	const char *unread;
	const struct gate_asked asked = {
		.op = op,
		.request = call_request(c),
		.who = principal_who(call_principal(c)),
		.conversation = principal_conversation(call_principal(c)),
		.tools = tools,
		.n_tools = gate_policy_tools(g, op, name, tools),
		.image = gate_policy_image(c),
		.defaults = call_defaults(c),
	};
	struct policy_verdict v = gate_judge(f, &asked, &unread);
	char place[CONFIG_PLACE_MAX];

	if (v.then == CONFIG_ALLOW && gate_policy_asks(c))
		v = (struct policy_verdict){ CONFIG_ASK, STR_LIT("mcpServers"), 0 };
	if (gate_policy_note(g, c, &v, e) < 0)
		return -1;
	if (unread)
		return err_set(e, ERR_DENIED,
			       "a rule of the policy is about %s of %s, which can't be read here",
			       unread, call_op(c)->action);
	config_place(g->config, v.line, place);
	if (v.then == CONFIG_DENY)
		return err_set(e, ERR_DENIED, "the policy denies %s: rule \"%.*s\", %s",
			       call_op(c)->action, STR_CUT(v.rule, CONFIG_NAME_MAX), place);
	if (v.then == CONFIG_ASK && call_op(c)->later)
		return err_set(e, ERR_DENIED,
			       "the policy wants a person to approve %s, and here its client tells "
			       "%s only afterwards: rule \"%.*s\", %s",
			       call_op(c)->action, call_op(c)->later,
			       STR_CUT(v.rule, CONFIG_NAME_MAX), place);
	if (v.then == CONFIG_ASK && !gate_can_ask(g, c))
		return err_set(e, ERR_DENIED,
			       "the policy wants a person to approve %s, and nobody can be asked: "
			       "rule \"%.*s\", %s",
			       call_op(c)->action, STR_CUT(v.rule, CONFIG_NAME_MAX), place);
	return 0;
}

int gate_recheck_policy(struct gate *g, struct call *c, struct err *e)
{
	return gate_check_scopes(call_principal(c), call_op(c), e) < 0 ||
			       gate_policy_check(g, c, e) < 0
		     ? -1
		     : 0;
}

static int gate_may(void *data, const struct principal *who, const struct op *op, struct err *e)
{
	(void)data;
	return gate_check_scopes(who, op, e);
}

static bool gate_never(void *data, const struct principal *who, const struct op *op,
		       const char *tool)
{
	struct gate *g = data;
	const struct config_file *f = config_file(g->config);
	const char *tools[TOOLS_MAX + 1];
	const char *unread;
	const struct gate_asked asked = {
		.op = op,
		.who = principal_who(who),
		.conversation = principal_conversation(who),
		.tools = tools,
		.n_tools = gate_policy_tools(g, op, tool, tools),
	};

	return policy_has_rules(f) && gate_judge(f, &asked, &unread).then == CONFIG_DENY;
}

/* Without rules a call costs nothing here. */
static void gate_policy(void *data, struct call *c)
{
	struct gate *g = data;
	const struct config_file *f = config_file(g->config);
	bool decides = f->has_images || policy_has_rules(f) || call_op(c)->asks;
	struct err e;

	if (gate_check_scopes(call_principal(c), call_op(c), &e) < 0)
		call_deny(c, &e);
	else if (!decides || gate_policy_check(g, c, &e) == 0)
		call_allow(c);
	else
		call_deny(c, &e);
}

static int gate_policy_check_file(const struct config_file *f, struct err *e)
{
	return network_check_file(f, e) < 0 || gate_webhook_check(f, e) < 0 ? -1 : 0;
}

/* Checks of a file beyond its tables: what any part would refuse, so that a reload is whole. */
int gate_check_config(const struct config *c, struct err *e)
{
	const struct config_file *f = config_file(c);

	return gate_policy_check_file(f, e) < 0 || gate_redact_check_file(f, e) < 0 ||
			       gate_secret_check_file(f, e) < 0
		     ? -1
		     : 0;
}

static void gate_policy_budget(void *data, struct str owner, struct hub_sandbox_budget *ret)
{
	struct gate *g = data;
	const struct config_file *f = config_file(g->config);
	struct config_limits l;
	struct gate_names by;

	gate_names_of(g, owner, &by);
	l = policy_limits(f, by.makers, by.who, by.conversation);
	l = policy_least(&l, &f->limits);
	ret->cpu_ms = l.has_cpu_seconds ? l.cpu_seconds * 1000 : 0;
	ret->bytes_out = l.has_bytes_out ? l.bytes_out : 0;
	ret->wall_ms = l.has_wall_seconds ? l.wall_seconds * 1000 : 0;
}

void gate_policy_listen(struct gate *g)
{
	struct hub_sandboxes *all = g->hub ? hub_sandboxes(g->hub) : NULL;

	struct workspaces *kept = g->hub ? hub_workspaces(g->hub) : NULL;

	if (all)
		hub_sandboxes_limit(all, gate_policy_budget, g);
	if (kept)
		workspaces_bound(kept, config_file(g->config)->storage.objects_mb << 20);
}

void gate_policy_reload(struct gate *g)
{
	g->policy.config = g->config;
	g->guard.policy = &g->policy;
}

int gate_policy_open(struct gate *g, struct err *e)
{
	if (gate_policy_check_file(config_file(g->config), e) < 0)
		return err_wrap(e, "the configuration");
	g->hooks.may = gate_may;
	g->hooks.never = gate_never;
	g->hooks.policy = gate_policy;
	gate_policy_reload(g);
	return 0;
}

void gate_policy_close(struct gate *g)
{
}
