/* What profiles of the operator's file a session asks by: those that it names, else those of the
 * door. */
#include "call/profile.h"

#include "door/mcp/internal.h"

enum { PROFILE_MEMORY = 1 << 20 };

/* Whether the list, with commas between, has the name. */
static bool wish_names(struct str list, struct str name)
{
	while (list.n) {
		const char *comma = memchr(list.p, ',', list.n);
		size_t k = comma ? (size_t)(comma - list.p) : list.n;

		if (str_eq((struct str){ list.p, k }, name))
			return true;
		list.p += k + (comma != NULL);
		list.n -= k + (comma != NULL);
	}
	return false;
}

/* wanted: with commas between. */
static int profile_names_read(struct str wanted, struct arena *a, struct field_strs *ret,
			      struct err *e)
{
	struct str *names;
	size_t n = 0;

	*ret = (struct field_strs){ .n = 0 };
	if (!wanted.n)
		return 0;
	names = arena_array(a, CONFIG_PROFILES_ASKED, sizeof(*names), e);
	if (!names)
		return -1;
	for (struct str left = wanted; left.n;) {
		const char *comma = memchr(left.p, ',', left.n);
		size_t k = comma ? (size_t)(comma - left.p) : left.n;

		if (k == 0 || k > CONFIG_NAME_MAX || n == CONFIG_PROFILES_ASKED)
			return err_set(e, ERR_INVALID,
				       "profile: at most %d names with commas between",
				       CONFIG_PROFILES_ASKED);
		names[n] = (struct str){ arena_dup(a, (struct str){ left.p, k }, e), k };
		if (!names[n++].p)
			return -1;
		left.p += k + (comma != NULL);
		left.n -= k + (comma != NULL);
	}
	*ret = (struct field_strs){ names, n };
	return 0;
}

static int profile_read(struct door_profile *to, const struct mcp_door *d,
			const struct principal *who, struct str wanted, struct err *e)
{
	struct field_strs names;

	*to = (struct door_profile){ .any = false };
	arena_init(&to->arena, PROFILE_MEMORY);
	return profile_names_read(wanted, &to->arena, &names, e) < 0 ||
			       profile_of_agent(d->ops, who, &names, &to->arena, &to->p, &to->any,
						e) < 0
		     ? -1
		     : 0;
}

int profile_init(struct door_profile *to, const struct mcp_door *d, const struct mcp_session *s,
		 struct err *e)
{
	struct str wanted = mcp_session_wish(s)->profile;
	int rc = profile_read(to, d, mcp_session_data(s), wanted.p ? wanted : d->profile, e);

	wanted = mcp_session_wish(s)->modules;
	to->modules = wanted.p ? wanted : d->modules;
	return rc;
}

bool profile_has(const struct door_profile *p, struct str module)
{
	struct err e;

	return (!p->modules.n || wish_names(p->modules, module)) &&
	       (!p->any || profile_check_server(&p->p, module, &e) == 0);
}

void profile_fini(struct door_profile *to)
{
	arena_fini(&to->arena);
}

static int profile_read_tools(const struct config_profile *p, struct mcp_choice *ret, struct err *e)
{
	*ret = (struct mcp_choice){ { 0 } };
	for (size_t i = 0; i < p->tools.n; i++) {
		struct mcp_choice some;

		if (tools_choose(p->tools.p[i], &some, e) < 0)
			return -1;
		mcp_choice_join(ret, &some);
	}
	return 0;
}

int profile_check(const struct mcp_door *d, const struct principal *who, struct str wanted,
		  struct err *e)
{
	struct mcp_choice some;
	struct door_profile p;
	int rc = profile_read(&p, d, who, wanted, e);

	if (rc == 0 && p.any)
		rc = profile_read_tools(&p.p, &some, e);
	profile_fini(&p);
	return rc;
}

int mcp_door_check(const struct mcp_door *d, const struct principal *who, struct err *e)
{
	return profile_check(d, who, d->profile, e);
}

/* A profile that can't be read has none. */
bool profile_tools(const struct mcp_door *d, const struct mcp_session *s, struct mcp_choice *ret)
{
	struct door_profile p;
	struct err e;
	bool ok = profile_init(&p, d, s, &e) == 0;
	bool says = !ok || (p.any && p.p.has_tools);

	if (says && (!ok || profile_read_tools(&p.p, ret, &e) < 0))
		*ret = (struct mcp_choice){ { 0 } };
	profile_fini(&p);
	return says;
}

int profile_of_call(const struct mcp_door *d, const struct mcp_call *mc, struct arena *a,
		    struct field_strs *ret, struct err *e)
{
	struct str wanted = mcp_call_profile(mc);

	return profile_names_read(wanted.p ? wanted : d->profile, a, ret, e);
}
