#include "config/internal.h"

#define NAMES .max = CONFIG_LIST_MAX, .item_min = 1, .item_max = CONFIG_TEXT_MAX
#define L struct config_profile_limits
#define LIMIT(m, min_, max_, doc_)                                                                 \
	FIELD(L, m, .min = min_, .max = max_, .has = FIELD_HAS(L, has_##m), .doc = doc_)

/* The bounds are those of the requests that they are for. */
static const struct field limits_fields[] = {
	LIMIT(cpu_ms, 10, 60000, "CPU time of a run of code in ms."),
	LIMIT(wall_ms, 10, 600000, "Time limit of a run of code in ms."),
	LIMIT(heap_mb, 1, 512, "Memory for the values of a run of code, in MiB."),
	LIMIT(output_kb, 1, 4096, "Output of a run of code, its value included, in KiB."),
	LIMIT(max_calls, 1, 100000, "Number of calls of modules by a run of code."),
	LIMIT(memory_mb, 1, 1 << 20, "Memory of a sandbox in MiB."),
	LIMIT(disk_mb, 1, 1 << 20, "Part of the memory for files, in MiB."),
	LIMIT(pids, 1, 32768, "Number of processes and threads of a sandbox."),
	LIMIT(ttl_seconds, 1, 31536000, "Lifetime of a sandbox in seconds."),
};
#undef L
static const struct field_table limits_table = FIELD_TABLE(struct config_profile_limits,
							   limits_fields);

#define P struct config_profile
static const struct field profile_fields[] = {
	FIELD_OBJECT(P, limits, limits_table,
		     .doc = "Defaults and maximums for a run of code or a sandbox."),
	FIELD_NAMED(P, mcp_servers, "mcpServers", NAMES, .doc = "MCP servers that code may use."),
	FIELD(P, network, NAMES, .doc = "Network rules and presets that are granted to a sandbox."),
	FIELD(P, tools, NAMES, .has = FIELD_HAS(P, has_tools),
	      .doc = "MCP tools and sets of tools that a client sees."),
	FIELD_ENUM(P, approval, config_then_names, .has = FIELD_HAS(P, has_approval),
		   .doc = "Decision about calls of these servers, if it is stricter than theirs."),
};
#undef P
const struct field_table config_profile_table = FIELD_TABLE(struct config_profile, profile_fields);

static const struct config_profile *profile_find(const struct config_file *f, struct str name)
{
	for (size_t i = 0; i < f->profiles.n; i++) {
		if (str_eq(f->profiles.p[i].name, name))
			return &f->profiles.p[i];
	}
	return NULL;
}

static int profile_check(struct config_reader *r, const struct json_pointer *at,
			 const struct config_profile *p, const struct config_file *f)
{
	const struct json_pointer servers = config_at(*at, STR_LIT("mcpServers"));

	if (str_is(p->name, CONFIG_PROFILE_DEFAULT) && (p->mcp_servers.n || p->network.n))
		return config_refuse(r, at, "the default profile has no servers and no network");
	for (size_t i = 0; i < p->mcp_servers.n; i++) {
		struct json_pointer here = servers;

		json_pointer_index(&here, i);
		if (!config_server_find(f, p->mcp_servers.p[i]))
			return config_refuse(r, &here, "mcpServers has no %.*s",
					     STR_CUT(p->mcp_servers.p[i], 80));
	}
	return 0;
}

int config_check_profiles(struct config_reader *r, struct json_pointer at,
			  const struct config_file *f)
{
	for (size_t i = 0; i < f->profiles.n; i++) {
		const struct json_pointer here = config_at(at, f->profiles.p[i].name);

		if (profile_check(r, &here, &f->profiles.p[i], f) < 0)
			return -1;
	}
	return 0;
}

/* ---- joining ------------------------------------------------------------------------------- */

static void join_limits(struct config_profile_limits *to, const struct config_profile_limits *l)
{
#define MOST(m)                                                                                    \
	if (l->has_##m && (!to->has_##m || l->m > to->m)) {                                        \
		to->has_##m = true;                                                                \
		to->m = l->m;                                                                      \
	}
	MOST(cpu_ms)
	MOST(wall_ms)
	MOST(heap_mb)
	MOST(output_kb)
	MOST(max_calls)
	MOST(memory_mb)
	MOST(disk_mb)
	MOST(pids)
	MOST(ttl_seconds)
#undef MOST
}

static int join_names(struct field_strs *to, const struct field_strs *names, struct arena *a,
		      struct err *e)
{
	struct str *all = arena_array(a, to->n + names->n, sizeof(*all), e);
	size_t n = to->n;

	if (!all)
		return -1;
	for (size_t i = 0; i < n; i++)
		all[i] = to->p[i];
	for (size_t i = 0; i < names->n; i++) {
		*to = (struct field_strs){ all, n };
		if (!config_profile_names(to, names->p[i]))
			all[n++] = names->p[i];
	}
	*to = (struct field_strs){ all, n };
	return 0;
}

bool config_profile_names(const struct field_strs *names, struct str name)
{
	for (size_t i = 0; i < names->n; i++) {
		if (str_eq(names->p[i], name))
			return true;
	}
	return false;
}

static int profile_join(struct config_profile *to, const struct config_profile *p, struct arena *a,
			struct err *e)
{
	join_limits(&to->limits, &p->limits);
	if (p->has_approval && (!to->has_approval || p->approval > to->approval)) {
		to->has_approval = true;
		to->approval = p->approval;
	}
	to->has_tools |= p->has_tools;
	return join_names(&to->mcp_servers, &p->mcp_servers, a, e) < 0 ||
			       join_names(&to->network, &p->network, a, e) < 0
		     ? -1
		     : join_names(&to->tools, &p->tools, a, e);
}

int config_profiles_join(const struct config_file *f, const struct field_strs *names,
			 struct arena *a, struct config_profile *ret, struct err *e)
{
	static const struct str usual = { CONFIG_PROFILE_DEFAULT,
					  sizeof(CONFIG_PROFILE_DEFAULT) - 1 };
	const struct field_strs all = names->n ? *names : (struct field_strs){ &usual, 1 };

	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < all.n; i++) {
		const struct config_profile *p = profile_find(f, all.p[i]);

		if (!p && names->n)
			return err_set(e, ERR_INVALID, "there is no profile \"%.*s\"",
				       STR_CUT(all.p[i], CONFIG_NAME_MAX));
		if (p && profile_join(ret, p, a, e) < 0)
			return -1;
	}
	return 0;
}
