#include "op/profile.h"

#include "guard/policy/policy.h"
#include "op/guard.h"

static int profile_check_names(struct call *c, const struct config_file *f,
			       const struct field_strs *names, struct err *e)
{
	struct str who = str_of(call_principal(c)->name);

	for (size_t i = 0; i < names->n; i++) {
		if (!policy_allows_profile(f, who, STR_NONE, names->p[i]))
			return err_set(e, ERR_DENIED, "%.*s may not ask for the profile %.*s",
				       STR_CUT(who, 80), STR_CUT(names->p[i], CONFIG_NAME_MAX));
	}
	return 0;
}

int profile_of(struct call *c, const struct field_strs *names, struct config_profile *ret,
	       bool *ret_any, struct err *e)
{
	const struct policy *p = call_guard(c)->policy;
	const struct config_file *f = p ? config_file(p->config) : NULL;

	*ret_any = names->n || (f && f->profiles.n && !call_is_operator(c));
	if (!*ret_any)
		return 0;
	if (!f)
		return err_set(e, ERR_UNSUPPORTED, "there are no profiles here");
	return profile_check_names(c, f, names, e) < 0
		     ? -1
		     : config_profiles_join(f, names, call_arena(c), ret, e);
}

int profile_limit(const char *name, bool has_limit, uint32_t limit, bool has, uint32_t *value,
		  struct err *e)
{
	if (!has_limit)
		return 0;
	if (has && *value > limit)
		return err_set(e, ERR_DENIED, "%s: the profile has %u at most", name, limit);
	if (!has)
		*value = limit;
	return 0;
}

int profile_check_server(const struct config_profile *p, struct str server, struct err *e)
{
	return config_profile_names(&p->mcp_servers, server)
		     ? 0
		     : err_set(e, ERR_DENIED, "no profile of this call has the server %.*s",
			       STR_CUT(server, CONFIG_SERVER_NAME_MAX));
}
