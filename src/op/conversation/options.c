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

enum { REMEDY_MAX = 8 << 10 };

/* ---- what is shown --------------------------------------------------------------------------- */

/* The last option with a value that lets the agent act by itself. */
static const struct offer_option *options_unattended(const struct conversation_view *v)
{
	for (size_t i = v->options.n; i-- > 0;) {
		const struct offer_option *p = &v->options.p[i];
		const struct offer_choice *choice = offer_choice(p, p->value);

		if (choice ? choice->unattended : offer_is_unattended(p, p->id, p->value))
			return p;
	}
	return NULL;
}

/* Copies n structs of a table. NULL: there is no room. */
static void *options_copy(struct call *c, const struct field_table *t, const void *from, size_t n,
			  size_t size, struct err *e)
{
	char *to = arena_array(call_arena(c), n, size, e);

	for (size_t i = 0; to && i < n; i++) {
		const void *one = field_copy(t, (const char *)from + i * size, call_arena(c),
					     conversation_keep, call_arena(c), e);

		if (!one)
			return NULL;
		memcpy(to + i * size, one, size);
	}
	return to;
}

/* What to do where its agent wants a log-in. */
static int options_remedy(struct call *c, const struct conversation *t, struct conversation_view *v,
			  struct err *e)
{
	autobuf struct buf b = BUF_INIT(REMEDY_MAX);
	struct str agent = conversation_record(t)->agent;

	for (size_t i = 0; i < v->logins.n; i++) {
		const struct offer_login *p = &v->logins.p[i];
		int done = p->kind == OFFER_LOGIN_ENV
				 ? buf_addf(&b, e,
					    "%.*s: give the agent's entry `env` with %.*s "
					    "(`holt secret set`). ",
					    STR_ARG(p->id), STR_ARG(p->variables))
			 : p->kind == OFFER_LOGIN_TERMINAL
				 ? buf_addf(&b, e, "%.*s: `holt agent login %.*s` in a terminal. ",
					    STR_ARG(p->id), STR_ARG(agent))
				 : buf_addf(&b, e, "%.*s: `holt conversations login %s %.*s`. ",
					    STR_ARG(p->id), conversation_id(t), STR_ARG(p->id));

		if (done < 0)
			return -1;
	}
	if (buf_addf(&b, e, "Then send the prompt again.") < 0)
		return -1;
	v->remediation = (struct str){ arena_dup(call_arena(c), buf_str(&b), e), b.n };
	return v->remediation.p ? 0 : -1;
}

int conversation_login(struct conversation *t, struct str method, struct err *e)
{
	const struct agent_offer *o = conversation_offer(t);
	struct str agent = conversation_record(t)->agent;

	for (size_t i = 0; i < o->logins.n; i++) {
		const struct offer_login *p = &o->logins.p[i];

		if (!str_eq(p->id, method))
			continue;
		if (p->kind == OFFER_LOGIN_TERMINAL)
			return err_set(e, ERR_INVALID,
				       "login: %.*s takes a terminal: `holt agent login %.*s`",
				       STR_CUT(method, 64), STR_CUT(agent, 64));
		if (p->kind == OFFER_LOGIN_ENV)
			return err_set(e, ERR_INVALID,
				       "login: %.*s takes variables in the agent's entry: %.*s",
				       STR_CUT(method, 64), STR_CUT(p->variables, 100));
		return conversation_log_in(t, method, e);
	}
	return err_set(e, ERR_INVALID, "login: the agent has no method %.*s", STR_CUT(method, 64));
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
	v->commands.p = options_copy(c, &offer_command_table, o->commands.p, o->commands.n,
				     sizeof(*v->commands.p), e);
	v->logins.p = options_copy(c, &offer_login_table, o->logins.p, o->logins.n,
				   sizeof(*v->logins.p), e);
	if (!v->options.p || !v->commands.p || !v->logins.p)
		return -1;
	v->commands.n = o->commands.n;
	v->logins.n = o->logins.n;
	for (size_t i = 0; (p = offer_at(o, i)); i++) {
		copy = field_copy(&offer_option_table, p, a, conversation_keep, a, e);
		if (!copy)
			return -1;
		v->options.p[v->options.n++] = *(const struct offer_option *)copy;
	}
	if (conversation_state(t) == CONVERSATION_NEEDS_LOGIN && v->logins.n &&
	    options_remedy(c, t, v, e) < 0)
		return -1;
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
		    (offer_is_unattended(offer_find(o, pair->key), pair->key, pair->value) &&
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
