#include "guard/policy/policy.h"

#include "base/glob.h"
#include "base/words.h"

/* ---- one rule ------------------------------------------------------------------------------ */

bool policy_names(const struct field_strs *patterns, struct str text)
{
	for (size_t i = 0; i < patterns->n; i++) {
		if (glob_matches(patterns->p[i], text))
			return true;
	}
	return false;
}

static bool policy_is_tool(const struct field_strs *names, const struct policy_call *c)
{
	for (size_t i = 0; i < c->n_tools; i++) {
		if (policy_names(names, str_of(c->tools[i])))
			return true;
	}
	return names->n == 0;
}

struct policy_seen {
	struct str pattern;
	bool allows; /* then a star does not match what begins another command */
	size_t all, matching;
};

static void policy_see(void *data, struct str text)
{
	struct policy_seen *s = data;

	s->all++;
	s->matching += s->allows ? glob_allows(s->pattern, text) : glob_matches(s->pattern, text);
}

/* One of several texts, such as the hosts of a network, is enough to deny or to ask; to allow, all
 * have to match. */
static bool policy_is_argument(const struct config_rule *r, const struct field_pair *when,
			       const struct policy_call *c)
{
	const bool allows = r->then == CONFIG_ALLOW;
	struct policy_seen s = { .pattern = when->value, .allows = allows };

	if (c->show)
		c->show(c->request, when->key.p, allows, policy_see, &s);
	return s.matching > 0 && (!allows || s.matching == s.all);
}

enum policy_match { POLICY_NO, POLICY_PERHAPS, POLICY_YES };

static enum policy_match policy_matches(const struct config_rule *r, struct str who,
					const struct policy_call *c)
{
	if ((r->who.n && !policy_names(&r->who, who)) || !policy_is_tool(&r->tools, c) ||
	    (r->actions.n && !policy_names(&r->actions, str_of(c->action)) &&
	     !(c->group && policy_names(&r->actions, str_of(c->group)))) ||
	    (r->effects.n && !policy_names(&r->effects, str_of(c->effect))))
		return POLICY_NO;
	if (c->any_request && r->when.n)
		return POLICY_PERHAPS;
	for (size_t i = 0; i < r->when.n; i++) {
		if (!policy_is_argument(r, &r->when.p[i], c))
			return POLICY_NO;
	}
	return POLICY_YES;
}

/* ---- lists --------------------------------------------------------------------------------- */

static struct policy_verdict policy_milder(struct policy_verdict a, struct policy_verdict b)
{
	return b.then < a.then ? b : a;
}

static struct policy_verdict policy_of_name(const struct config_policy *p, struct str who,
					    const struct policy_call *c)
{
	struct policy_verdict v = { .then = CONFIG_THENS }; /* stricter than any */

	for (size_t i = 0; i < p->rules.n; i++) {
		const struct config_rule *r = &p->rules.p[i];
		enum policy_match m = policy_matches(r, who, c);

		if (m != POLICY_NO)
			v = policy_milder(v, (struct policy_verdict){ r->then, r->name, r->line });
		if (m == POLICY_YES)
			return v;
	}
	return policy_milder(v, (struct policy_verdict){ p->def, STR_LIT("default"), p->line });
}

static struct policy_verdict policy_stricter(struct policy_verdict a, struct policy_verdict b)
{
	return b.then > a.then ? b : a;
}

/* An agent may do what both its own name may and the one that it works for: a rule that allows
 * something to one of them does not keep a later rule from the other. */
static struct policy_verdict policy_of_list(const struct config_policy *p,
					    const struct policy_call *c)
{
	struct policy_verdict v = policy_of_name(p, c->who, c);

	return c->conversation.n ? policy_stricter(v, policy_of_name(p, c->conversation, c)) : v;
}

static void policy_narrow(struct policy_verdict *v, const struct config_policy *p,
			  const struct policy_call *c)
{
	*v = policy_stricter(*v, policy_of_list(p, c));
}

const struct config_principal *policy_next(const struct config_file *f, struct str who,
					   struct str conversation, size_t *at)
{
	while (*at < f->principals.n) {
		const struct config_principal *p = &f->principals.p[(*at)++];

		if (glob_matches(p->name, who) ||
		    (conversation.n && glob_matches(p->name, conversation)))
			return p;
	}
	return NULL;
}

const char *const policy_image_members[] = { "/template", "/image" };
const size_t policy_image_members_n = ARRAY_LEN(policy_image_members);

struct policy_verdict policy_decide(const struct config_file *f, const struct config_policy *own,
				    const struct policy_call *c)
{
	struct policy_verdict v = policy_of_list(&f->policy, c);
	const struct config_principal *p;
	unsigned line;
	size_t at = 0;

	while (v.then != CONFIG_DENY && (p = policy_next(f, c->who, c->conversation, &at)))
		policy_narrow(&v, &p->policy, c);
	if (own && v.then != CONFIG_DENY)
		policy_narrow(&v, own, c);
	if (c->image.p && v.then != CONFIG_DENY &&
	    !policy_allows_image(f, c->who, c->conversation, c->image, &line))
		v = (struct policy_verdict){ CONFIG_DENY, STR_LIT("images"), line };
	return v;
}

bool policy_has_rules(const struct config_file *f)
{
	return f->policy.rules.n || f->policy.def != CONFIG_ALLOW || f->principals.n;
}

/* ---- what else is narrowed ----------------------------------------------------------------- */

bool policy_allows_image(const struct config_file *f, struct str who, struct str conversation,
			 struct str image, unsigned *ret_line)
{
	const struct config_principal *p;
	size_t at = 0;

	*ret_line = f->images_line;
	if (f->has_images && !policy_names(&f->images, image))
		return false;
	while ((p = policy_next(f, who, conversation, &at))) {
		*ret_line = p->line;
		if (p->has_images && !policy_names(&p->images, image))
			return false;
	}
	return true;
}

/* NULL: the entry does not have it. */
static const struct field_strs *policy_list(const struct config_principal *p, enum policy_list l)
{
	switch (l) {
	case POLICY_SECRETS:
		return p->has_secrets ? &p->secrets : NULL;
	case POLICY_PROFILES:
		return p->has_profiles ? &p->profiles : NULL;
	case POLICY_AGENTS:
		return p->has_agents ? &p->agents : NULL;
	case POLICY_WORKSPACES:
		return p->has_workspaces ? &p->workspaces : NULL;
	}
	return NULL;
}

bool policy_allows(const struct config_file *f, struct str who, struct str conversation,
		   enum policy_list l, struct str name)
{
	const struct config_principal *p;
	const struct field_strs *list;
	size_t at = 0;

	while ((p = policy_next(f, who, conversation, &at))) {
		list = policy_list(p, l);
		if (list && !policy_names(list, name))
			return false;
	}
	return true;
}

bool policy_grants(const struct config_file *f, struct str who, enum policy_list l)
{
	const struct config_principal *p;
	size_t at = 0;

	while ((p = policy_next(f, who, STR_NONE, &at))) {
		if (policy_list(p, l))
			return true;
	}
	return false;
}

bool policy_spells(const struct config_file *f, struct str who, enum policy_list l, struct str name)
{
	const struct config_principal *p;
	const struct field_strs *list;
	size_t at = 0;

	while ((p = policy_next(f, who, STR_NONE, &at))) {
		list = policy_list(p, l);
		for (size_t i = 0; list && i < list->n; i++) {
			if (str_eq(list->p[i], name))
				return true;
		}
	}
	return false;
}

struct config_limits policy_least(const struct config_limits *a, const struct config_limits *b)
{
	struct config_limits l = *a;

#define LEAST(m)                                                                                   \
	if (b->has_##m && (!l.has_##m || b->m < l.m)) {                                            \
		l.has_##m = true;                                                                  \
		l.m = b->m;                                                                        \
	}
	LEAST(sandboxes)
	LEAST(forks)
	LEAST(wall_seconds)
	LEAST(cpu_seconds)
	LEAST(bytes_out)
#undef LEAST
	return l;
}

struct config_limits policy_limits(const struct config_file *f, struct str makers, struct str who,
				   struct str conversation)
{
	struct config_limits l = { .has_forks = false };
	const struct config_principal *p;
	struct str maker;
	size_t at = 0;

	while ((p = policy_next(f, who, conversation, &at)))
		l = policy_least(&l, &p->limits);
	while (str_word(&makers, &maker)) {
		at = 0;
		while ((p = policy_next(f, str_before(maker, '@'), STR_NONE, &at)))
			l = policy_least(&l, &p->limits);
	}
	return l;
}
