#include "op/budget.h"

#include <string.h>

#include "base/clock.h"
#include "call/guard.h"
#include "guard/key/key.h"
#include "guard/policy/policy.h"
#include "hub/sandbox/sandbox.h"

enum { PAGE = 64 };

/* NULL: there is no file. */
static const struct config_file *budget_file(const struct call *c)
{
	const struct policy *p = call_guard(c)->policy;

	return p ? config_file(p->config) : NULL;
}

static struct config_limits budget_own(const struct call *c, const struct config_file *f)
{
	const struct principal *who = call_principal(c);

	return policy_limits(f, guard_makers(call_guard(c), call_owner(c)), principal_who(who),
			     principal_conversation(who));
}

uint64_t budget_objects(const struct call *c)
{
	const struct config_file *f = budget_file(c);

	return f ? f->storage.objects_mb << 20 : 0;
}

enum { ABOVE_MAX = KEY_MAKERS_MAX + 1 };

/* own: of who asks. above: of each key that made its own, one by the other, of the one it works for
 * last: with all keys that this has made, and all their agents. */
struct budget_count {
	struct str whose[ABOVE_MAX];
	size_t n;
	uint64_t all, own, above[ABOVE_MAX], forks;
};

static struct str budget_family(const struct call *c, struct str owner)
{
	const struct guard *g = call_guard(c);

	return g->works_for ? g->works_for(g->data, owner) : owner;
}

static void budget_count_above(struct call *c, struct str owner, struct budget_count *n)
{
	struct str family = budget_family(c, owner);
	bool own = str_eq(family, n->whose[n->n - 1]);
	struct str makers = own ? STR_NONE : guard_makers(call_guard(c), owner);

	for (size_t i = 0; i < n->n; i++) {
		struct str rest = makers, one;
		bool below = own || str_eq(n->whose[i], family);

		while (!below && str_word(&rest, &one))
			below = str_eq(n->whose[i], one);
		n->above[i] += below;
	}
}

/* Sandboxes that are there or can be again. */
static bool budget_counts(enum hub_sandbox_state state)
{
	return state != SANDBOX_LOST && state != SANDBOX_TERMINATED && state != SANDBOX_FAILED;
}

static struct budget_count budget_count(struct call *c, struct str source)
{
	struct str makers = guard_makers(call_guard(c), call_owner(c));
	struct budget_count n = { .all = 0 };
	struct hub_sandbox *page[PAGE];
	struct hub_sandbox_info i = { .seq = 0 };
	size_t got;

	while (n.n < KEY_MAKERS_MAX && str_word(&makers, &n.whose[n.n]))
		n.n++;
	n.whose[n.n++] = budget_family(c, call_owner(c));
	do {
		got = hub_sandboxes_list(call_sandboxes(c), i.seq, page, PAGE);
		for (size_t k = 0; k < got; k++) {
			hub_sandbox_info(page[k], &i);
			if (!budget_counts(i.state))
				continue;
			n.all++;
			n.own += str_eq(i.owner, call_owner(c));
			budget_count_above(c, i.owner, &n);
			n.forks += source.n && str_eq(i.source, source);
		}
	} while (got == PAGE);
	return n;
}

static int budget_exceeds(uint64_t there, uint64_t more, const struct config_limits *l, bool forks,
			  struct str whose, struct err *e)
{
	uint64_t most = forks ? l->forks : l->sandboxes;

	if (!(forks ? l->has_forks : l->has_sandboxes) || there + more <= most)
		return 0;
	return err_set(e, ERR_LIMIT,
		       "the policy allows %.*s %llu %s, and %llu are there (limits.%s of the "
		       "operator's configuration)",
		       STR_CUT(whose, OWNER_MAX), (unsigned long long)most,
		       forks ? "forks of a sandbox" : "sandboxes", (unsigned long long)there,
		       forks ? "forks" : "sandboxes");
}

/* Without control groups nobody counts a sandbox's processor time. */
static int budget_check_counted(struct call *c, const struct config_limits *l, struct err *e)
{
	struct box_stats stats;

	if (!l->has_cpu_seconds)
		return 0;
	box_stats(call_box(c), &stats);
	if (strcmp(stats.limits, "rlimit") != 0)
		return 0;
	return err_set(e, ERR_UNSUPPORTED,
		       "this host has no control groups to count processor time, which the "
		       "operator's configuration limits (limits.cpu_seconds)");
}

/* An agent's sandboxes count for the principal that it works for, too, and a key's for each key of
 * its line. */
static int budget_check_count(struct call *c, const struct config_file *f, size_t n,
			      struct str source, const struct config_limits *least, struct err *e)
{
	const struct principal *p = call_principal(c);
	struct budget_count there = budget_count(c, source);
	struct str agent = principal_conversation(p);
	struct config_limits l = policy_limits(f, STR_NONE, agent, STR_NONE);

	if (budget_exceeds(there.all, n, &f->limits, false, STR_LIT("all clients together"), e) <
		    0 ||
	    (agent.n && budget_exceeds(there.own, n, &l, false, agent, e) < 0))
		return -1;
	for (size_t i = 0; i < there.n; i++) {
		struct str whose = str_before(there.whose[i], '@');

		l = policy_limits(f, STR_NONE, whose, STR_NONE);
		if (budget_exceeds(there.above[i], n, &l, false, whose, e) < 0)
			return -1;
	}
	return source.n ? budget_exceeds(there.forks, n, least, true, str_of(p->name), e) : 0;
}

/* A hidden sandbox has no forks and no deadline here: the call fails later, as not found. */
static struct hub_sandbox *budget_source(struct call *c, struct str source)
{
	struct err none;
	struct hub_sandbox *l = source.n ? hub_sandboxes_find(call_sandboxes(c), source, &none)
					 : NULL;

	return l && call_sees(c, l) ? l : NULL;
}

int budget_admit(struct call *c, size_t n, struct str source, int64_t *ret_until, struct err *e)
{
	const struct config_file *f = budget_file(c);
	struct config_limits own, least;
	struct hub_sandbox_info i = { .runs_until_ms = 0 };
	struct hub_sandbox *l;

	*ret_until = 0;
	if (!f)
		return 0;
	l = budget_source(c, source);
	if (!l)
		source = STR_NONE;
	own = budget_own(c, f);
	least = policy_least(&own, &f->limits);
	if (budget_check_counted(c, &least, e) < 0)
		return -1;
	if ((least.has_sandboxes || least.has_forks) &&
	    budget_check_count(c, f, n, source, &least, e) < 0)
		return -1;
	if (!least.has_wall_seconds)
		return 0;
	if (l)
		hub_sandbox_info(l, &i);
	*ret_until = clock_unix_ms() + (int64_t)least.wall_seconds * 1000;
	if (i.runs_until_ms && i.runs_until_ms < *ret_until)
		*ret_until = i.runs_until_ms;
	return 0;
}

int budget_apply(struct hub_sandbox *l, int64_t until, struct err *e)
{
	int64_t left = until - clock_unix_ms();
	struct hub_sandbox_info i;

	hub_sandbox_info(l, &i);
	if (!until || (i.deadline_ms && i.deadline_ms <= until))
		return 0;
	return hub_sandbox_set_timeout(l, left > 1 ? (uint64_t)left : 1, e);
}

/* Until when it may live, by the least that holds for the caller; 0: no end. A fork has the time of
 * its source, and a chain of forks no more than its first. */
static int64_t budget_until(const struct call *c, const struct hub_sandbox *l)
{
	const struct config_file *f = budget_file(c);
	struct config_limits own, least;
	struct hub_sandbox_info i;
	int64_t until;

	if (!f)
		return 0;
	own = budget_own(c, f);
	least = policy_least(&own, &f->limits);
	if (!least.has_wall_seconds)
		return 0;
	hub_sandbox_info(l, &i);
	until = i.created_ms + (int64_t)least.wall_seconds * 1000;
	return i.source.n && i.runs_until_ms && i.runs_until_ms < until ? i.runs_until_ms : until;
}

int budget_check_timeout(struct call *c, const struct hub_sandbox *l, uint64_t seconds,
			 struct err *e)
{
	int64_t until = budget_until(c, l), now = clock_unix_ms();

	if (!until || (seconds && now + (int64_t)seconds * 1000 <= until))
		return 0;
	return err_set(e, ERR_DENIED,
		       "the policy lets this sandbox live for %lld more seconds at most "
		       "(limits.wall_seconds of the operator's configuration)",
		       (long long)(until > now ? until - now : 0) / 1000);
}
