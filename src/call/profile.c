#include "call/profile.h"

#include <stdio.h>
#include <string.h>

#include "base/words.h"
#include "call/guard.h"
#include "guard/policy/policy.h"

/* The principal that asks for these. */
struct profile_asker {
	const struct guard *guard;
	const struct principal *who; /* NULL: nobody is known */
	bool is_free; /* needs none */
};

static int profile_check_names(const struct profile_asker *by, const struct config_file *f,
			       const struct field_strs *names, struct err *e)
{
	struct str who = by->who ? principal_who(by->who) : STR_NONE;
	struct str conversation = by->who ? principal_conversation(by->who) : STR_NONE;

	for (size_t i = 0; i < names->n; i++) {
		if (!policy_allows(f, who, conversation, POLICY_PROFILES, names->p[i]))
			return err_set(e, ERR_DENIED, "%.80s may not ask for the profile %.*s",
				       by->who ? by->who->name : "",
				       STR_CUT(names->p[i], CONFIG_NAME_MAX));
	}
	return 0;
}

static int profile_join(const struct profile_asker *by, const struct field_strs *names,
			struct arena *a, struct config_profile *ret, bool *ret_any, struct err *e)
{
	const struct policy *p = by->guard->policy;
	const struct config_file *f = p ? config_file(p->config) : NULL;

	*ret_any = names->n || (f && f->profiles.n && !by->is_free);
	if (!*ret_any)
		return 0;
	if (!f)
		return err_set(e, ERR_UNSUPPORTED, "there are no profiles here");
	return profile_check_names(by, f, names, e) < 0 ? -1
							: config_profiles_join(f, names, a, ret, e);
}

int profile_names(const struct call *c, struct field_strs *names, struct err *e)
{
	const struct field_strs *own = call_profiles(c);

	for (size_t i = 0; own->n && i < names->n; i++) {
		if (!config_profile_names(own, names->p[i]))
			return err_set(e, ERR_DENIED, "the profile %.*s is none of this session's",
				       STR_CUT(names->p[i], CONFIG_NAME_MAX));
	}
	if (!names->n)
		*names = *own;
	return 0;
}

int profile_of(struct call *c, const struct field_strs *names, struct config_profile *ret,
	       bool *ret_any, struct err *e)
{
	const struct profile_asker by = { .guard = call_guard(c),
					  .who = call_principal(c),
					  .is_free = call_is_operator(c) || call_unprofiled(c) };
	struct field_strs all = *names;

	return profile_names(c, &all, e) < 0
		     ? -1
		     : profile_join(&by, &all, call_arena(c), ret, ret_any, e);
}

int profile_of_agent(const struct ops *ops, const struct principal *who,
		     const struct field_strs *names, struct arena *a, struct config_profile *ret,
		     bool *ret_any, struct err *e)
{
	const struct profile_asker by = { .guard = ops_guard(ops), .who = who };

	return profile_join(&by, names, a, ret, ret_any, e);
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

int profile_check_call(struct call *c, struct str server, struct err *e)
{
	static const struct field_strs none;
	struct config_profile p;
	bool any;

	if (profile_of(c, &none, &p, &any, e) < 0)
		return -1;
	return any ? profile_check_server(&p, server, e) : 0;
}

int profile_check_sandbox(struct call *c, const struct hub_modules *m, struct err *e)
{
	static const struct field_strs none;
	struct str names = m->names, one;
	struct config_profile p;
	struct err no;
	bool any;

	if (!names.n || !call_by_agent(c) || !str_is(m->profiles, SANDBOX_UNPROFILED))
		return 0;
	if (profile_of(c, &none, &p, &any, e) < 0)
		return -1;
	while (any && str_word(&names, &one)) {
		if (profile_check_server(&p, one, &no) < 0)
			return err_set(e, ERR_DENIED,
				       "this sandbox has modules that no profile of this call has");
	}
	return 0;
}

void profile_text(const struct call *c, char ret[PROFILE_TEXT_MAX + 1])
{
	const struct field_strs *names = call_profiles(c);
	size_t n = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < names->n && n < PROFILE_TEXT_MAX; i++)
		n += (size_t)snprintf(ret + n, PROFILE_TEXT_MAX + 1 - n, "%.*s\n",
				      STR_ARG(names->p[i]));
}

int profile_from_text(const char *text, struct arena *a, struct field_strs *ret, struct err *e)
{
	struct str *names = arena_array(a, CONFIG_PROFILES_ASKED, sizeof(*names), e);
	const char *end;
	size_t n = 0;

	if (!names)
		return -1;
	for (; (end = strchr(text, '\n')) && n < CONFIG_PROFILES_ASKED; text = end + 1)
		names[n++] = (struct str){ text, (size_t)(end - text) };
	*ret = (struct field_strs){ names, n };
	return 0;
}
