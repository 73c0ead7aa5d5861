#include "call/guard.h"
#include "op/conversation/conversation.h"

static struct conversations *who_all(const struct call *c, struct err *e)
{
	struct conversations *all = call_conversations(c);

	if (!all)
		err_set(e, ERR_UNSUPPORTED, "only `holt serve` has conversations");
	return all;
}

static struct conversation *who_not_found(struct str id, struct err *e)
{
	err_set(e, ERR_CONVERSATION_NOT_FOUND, "there is no conversation %.*s",
		STR_CUT(id, CONVERSATION_ID));
	return NULL;
}

/* The id in the name of a conversation's principal; STR_NONE: it is another one. */
static struct str who_token_id(const struct call *c)
{
	struct str name = str_of(call_principal(c)->name);
	size_t n = sizeof(CONVERSATION_PRINCIPAL) - 1;

	return str_starts(name, CONVERSATION_PRINCIPAL) ? (struct str){ name.p + n, name.n - n }
							: STR_NONE;
}

/* One that the principal may know of. */
static struct conversation *who_find(const struct call *c, const struct conversations *all,
				     struct str id, struct err *e)
{
	struct conversation *t = conversations_find(all, id);

	return t && call_sees_owner(c, conversation_record(t)->owner) ? t : who_not_found(id, e);
}

int conversation_caller(struct call *c, struct str session_id, struct conversation_caller *ret,
			struct err *e)
{
	struct str mine = who_token_id(c);

	*ret = (struct conversation_caller){ .all = who_all(c, e), .by_token = mine.n > 0 };
	if (!ret->all)
		return -1;
	if (ret->by_token && session_id.n && !str_eq(session_id, mine))
		return err_set(e, ERR_DENIED,
			       "session_id: this token speaks for conversation %.*s alone",
			       STR_ARG(mine));
	if (ret->by_token)
		ret->me = conversations_find(ret->all, mine);
	else if (session_id.n)
		ret->me = who_find(c, ret->all, session_id, e);
	else
		return 0;
	if (ret->by_token && !ret->me)
		who_not_found(mine, e);
	if (ret->me && conversation_record(ret->me)->archived && call_by_agent(c))
		return err_set(e, ERR_CONVERSATION_NOT_FOUND,
			       "conversation %s is archived, and speaks for nobody",
			       conversation_id(ret->me));
	return ret->me ? 0 : -1;
}

/* Agents speak for a conversation: else what they leave out would give them more. */
static int who_needs_session(const struct call *c, const struct conversation_caller *who,
			     struct err *e)
{
	return who->me || !call_by_agent(c)
		     ? 0
		     : err_set(e, ERR_INVALID,
			       "session_id is required of clients without a conversation's token");
}

static int who_check_flag(const struct call *c, const struct conversation *t,
			  enum conversation_flag flag, struct err *e)
{
	const struct conversation_flag_info *info = &conversation_flag_infos[flag];

	return conversation_has_flag(t, flag)
		     ? 0
		     : err_set(e, ERR_DENIED, "%s requires the flag %s (%s) of conversation %s",
			       call_op(c)->action, info->name, info->label, conversation_id(t));
}

struct conversation *conversation_permits(struct call *c, struct str session_id,
					  enum conversation_flag flag, struct err *e)
{
	struct conversation_caller who;

	if (conversation_caller(c, session_id, &who, e) < 0)
		return NULL;
	if (!who.me)
		return err_set(e, ERR_INVALID, "session_id is required"), NULL;
	return who_check_flag(c, who.me, flag, e) < 0 ? NULL : who.me;
}

static bool is_child_of(const struct conversation *t, const struct conversation *parent)
{
	return str_is(conversation_record(t)->parent_session_id, conversation_id(parent));
}

/* One that the caller may know to be there. */
static struct conversation *who_see(const struct call *c, const struct conversation_caller *who,
				    struct str id, struct err *e)
{
	struct conversation *t;

	if (!who->by_token)
		return who_find(c, who->all, id, e);
	t = conversations_find(who->all, id);
	return t && str_eq(conversation_record(t)->owner, conversation_record(who->me)->owner)
		     ? t
		     : who_not_found(id, e);
}

struct conversation *conversation_target(struct call *c, const struct conversation_caller *who,
					 struct str id, enum conversation_flag flag, struct err *e)
{
	struct conversation *t;

	if (who_needs_session(c, who, e) < 0)
		return NULL;
	if (!id.n && !who->me)
		return err_set(e, ERR_INVALID, "conversation_id is required"), NULL;
	t = id.n ? who_see(c, who, id, e) : who->me;
	if (!t || !who->me)
		return t;
	if (flag == CONVERSATION_FLAG_can_do_introspection &&
	    (t == who->me || is_child_of(t, who->me)))
		return t;
	return who_check_flag(c, who->me, flag, e) < 0 ? NULL : t;
}

struct conversation *conversation_to_read(struct call *c, struct str session_id, struct str id,
					  struct err *e)
{
	struct conversation_caller who;

	return conversation_caller(c, session_id, &who, e) < 0
		     ? NULL
		     : conversation_target(c, &who, id, CONVERSATION_FLAG_can_do_introspection, e);
}

struct conversations *conversation_person(struct call *c, struct err *e)
{
	if (!who_token_id(c).n && !call_by_agent(c))
		return who_all(c, e);
	err_set(e, ERR_DENIED, "%s is for people: no agent may do it", call_op(c)->action);
	return NULL;
}

struct conversation *conversation_own(struct call *c, struct str id, struct err *e)
{
	const struct conversations *all = conversation_person(c, e);

	return all ? who_find(c, all, id, e) : NULL;
}

int conversation_check_start(const struct call *c, struct str agent, struct str workspace,
			     struct err *e)
{
	const struct guard *g = call_guard(c);
	const struct guard_start s = { .owner = g->works_for ? g->works_for(g->data, call_owner(c))
							     : call_owner(c),
				       .conversation = principal_conversation(call_principal(c)),
				       .agent = agent,
				       .workspace = workspace };

	return g->check_start ? g->check_start(g->data, &s, e) : 0;
}

bool conversation_listed(const struct call *c, const struct conversation_caller *who,
			 const struct conversation *t)
{
	if (!who->me)
		return call_sees_owner(c, conversation_record(t)->owner);
	if (t == who->me || is_child_of(t, who->me))
		return true;
	return str_eq(conversation_record(t)->owner, conversation_record(who->me)->owner) &&
	       conversation_has_flag(who->me, CONVERSATION_FLAG_can_do_introspection);
}

struct str conversation_source(struct call *c, const struct conversation_caller *who, struct err *e)
{
	char *text = who->me ? arena_printf(call_arena(c), e, CONVERSATION_PRINCIPAL "%s",
					    conversation_id(who->me))
			     : arena_dup(call_arena(c), str_of(call_principal(c)->name), e);

	return str_of(text);
}
