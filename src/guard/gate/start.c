/* Which agents and workspaces of the operator's file an owner may have in conversations. The
 * operator and keys that administer have all, other keys what the file grants them. An agent
 * without a sandbox has the rights of the hub's user, so a key needs its whole name there. */
#include "guard/gate/internal.h"
#include "guard/key/key.h"

static bool start_granted(const struct gate *g, const struct guard_start *s, enum policy_list l,
			  struct str name)
{
	const struct config_file *f = config_file(g->config);
	struct str who = gate_name_of(s->owner);

	return (gate_owner_scopes(g, s->owner) & KEY_ADMIN || policy_grants(f, who, l)) &&
	       policy_allows(f, who, s->conversation, l, name);
}

static bool start_needs_name(const struct gate *g, const struct guard_start *s)
{
	const struct config_agent *a = config_agent_find(config_file(g->config), s->agent);

	return a && a->program.sandbox.off && str_starts(s->owner, "key:");
}

static int gate_start_check(void *data, const struct guard_start *s, struct err *e)
{
	const struct gate *g = data;
	const struct config_file *f = config_file(g->config);
	struct str who = gate_name_of(s->owner);

	if (s->workspace.n && !start_granted(g, s, POLICY_WORKSPACES, s->workspace))
		return err_set(e, ERR_DENIED,
			       "%.*s may not use the workspace %.*s: the operator grants it by "
			       "\"workspaces\" in \"principals\" of the configuration file",
			       STR_ARG(who), STR_ARG(s->workspace));
	if (!s->agent.n)
		return 0;
	if (start_needs_name(g, s) && !policy_spells(f, who, POLICY_AGENTS, s->agent))
		return err_set(e, ERR_DENIED,
			       "%.*s may not use the agent %.*s, which has no sandbox: the "
			       "operator grants it by its whole name, without a pattern, in "
			       "\"agents\" in \"principals\" of the configuration file",
			       STR_ARG(who), STR_ARG(s->agent));
	if (!start_granted(g, s, POLICY_AGENTS, s->agent))
		return err_set(e, ERR_DENIED,
			       "%.*s may not use the agent %.*s: the operator grants it by "
			       "\"agents\" in \"principals\" of the configuration file",
			       STR_ARG(who), STR_ARG(s->agent));
	return 0;
}

void gate_start_open(struct gate *g)
{
	g->guard.check_start = gate_start_check;
}
