/* Options of an agent, as people see and choose them (agents/conversation/offer.h). */
#include "call/guard.h"
#include "op/approval.h"
#include "op/conversation/conversation.h"

int conversation_check_unattended(struct call *c, struct str owner, const char *what, struct err *e)
{
	if (!(call_principal(c)->scopes & KEY_ADMIN))
		return err_set(e, ERR_DENIED,
			       "%s answers for a person, so it needs a key with the scope admin",
			       what);
	return approval_check_person(c, owner, e);
}

/* ---- what is shown --------------------------------------------------------------------------- */

/* The last option with a value that lets the agent act by itself. */
static const struct offer_option *options_unattended(const struct conversation_view *v)
{
	for (size_t i = v->options.n; i-- > 0;) {
		const struct offer_option *p = &v->options.p[i];
		const struct offer_choice *choice = offer_choice(p, p->value);

		if (choice ? choice->unattended : offer_is_unattended(p->id, p->value))
			return p;
	}
	return NULL;
}

int conversation_options_view(struct call *c, struct conversation *t, struct conversation_view *v,
			      struct err *e)
{
	struct arena *a = call_arena(c);
	const struct agent_offer *o = conversation_offer(t);
	const struct offer_option *p;
	const void *copy;
	size_t n = 0;

	while (offer_at(o, n))
		n++;
	v->options.p = arena_array(a, n, sizeof(*v->options.p), e);
	v->commands.p = arena_array(a, o->commands.n, sizeof(*v->commands.p), e);
	if (!v->options.p || !v->commands.p)
		return -1;
	for (size_t i = 0; (p = offer_at(o, i)); i++) {
		copy = field_copy(&offer_option_table, p, a, conversation_keep, a, e);
		if (!copy)
			return -1;
		v->options.p[v->options.n++] = *(const struct offer_option *)copy;
	}
	for (size_t i = 0; i < o->commands.n; i++) {
		copy = field_copy(&offer_command_table, &o->commands.p[i], a, conversation_keep, a,
				  e);
		if (!copy)
			return -1;
		v->commands.p[v->commands.n++] = *(const struct offer_command *)copy;
	}
	p = options_unattended(v);
	if (!p)
		return 0;
	v->warning = str_of(arena_printf(a, e,
					 "%.*s is %.*s: its agent acts without asking, so "
					 "permissions do not come to the inbox.",
					 STR_ARG(p->id), STR_ARG(p->value)));
	return v->warning.p ? 0 : -1;
}

/* ---- what is chosen -------------------------------------------------------------------------- */

static int options_check(const struct agent_offer *o, const struct field_pair *pair, struct err *e)
{
	const struct offer_option *p = offer_find(o, pair->key);

	if (!offer_at(o, 0))
		return 0; /* nothing is known of them before its first session */
	if (!p)
		return err_set(e, ERR_INVALID, "options: the agent offers no option %.*s",
			       STR_CUT(pair->key, 64));
	return !pair->value.n || offer_choice(p, pair->value)
		     ? 0
		     : err_set(e, ERR_INVALID, "options: %.*s can't be %.*s",
			       STR_CUT(pair->key, 64), STR_CUT(pair->value, 64));
}

int conversation_options_merge(struct call *c, struct conversation *t, struct str owner,
			       const struct field_map *more, struct field_map *to, struct err *e)
{
	static const struct agent_offer none;
	const struct agent_offer *o = t ? conversation_offer(t) : &none;
	struct field_pair *all = arena_array(call_arena(c), to->n + more->n, sizeof(*all), e);
	size_t n = to->n;

	if (!all)
		return -1;
	for (size_t i = 0; i < n; i++)
		all[i] = to->p[i];
	for (size_t i = 0; i < more->n; i++) {
		const struct field_pair *pair = &more->p[i];
		size_t at = 0;

		if (options_check(o, pair, e) < 0 ||
		    (offer_is_unattended(pair->key, pair->value) &&
		     conversation_check_unattended(c, owner,
						   "an option that lets an agent act "
						   "without asking",
						   e) < 0))
			return -1;
		while (at < n && !str_eq(all[at].key, pair->key))
			at++;
		all[at] = *pair;
		n += at == n;
		if (!pair->value.n)
			all[at] = all[--n];
	}
	*to = (struct field_map){ all, n };
	return n <= OFFER_OPTIONS_MAX
		     ? 0
		     : err_set(e, ERR_LIMIT, "more than %d options are set", OFFER_OPTIONS_MAX);
}
