/* A conversation as clients see it; conversation.list and conversation.get. */
#include "base/when.h"
#include "op/conversation/conversation.h"
#include "op/page.h"

#define V struct conversation_view
static const struct field view_fields[] = {
	FIELD(V, session_id, .flags = FIELD_REQUIRED, .doc = "Id of the conversation."),
	FIELD(V, title, .flags = FIELD_REQUIRED, .doc = "Title for people; may be empty."),
	FIELD(V, description, .doc = "What it is about."),
	FIELD(V, acp_server, .flags = FIELD_REQUIRED,
	      .doc = "Agent, by its name in the operator's file; may be empty."),
	FIELD(V, working_dir, .flags = FIELD_REQUIRED,
	      .doc = "Folder in which the agent works; may be empty."),
	FIELD(V, workspace, .doc = "Name of the workspace at this folder."),
	FIELD(V, created_at, .flags = FIELD_REQUIRED, .doc = "When it was created, RFC 3339."),
	FIELD(V, updated_at, .flags = FIELD_REQUIRED,
	      .doc = "When its last event or change was, RFC 3339."),
	FIELD(V, last_user_message_at, .doc = "When its agent was last prompted, RFC 3339."),
	FIELD(V, message_count, .flags = FIELD_REQUIRED, .doc = "Number of events."),
	FIELD(V, last_seq, .flags = FIELD_REQUIRED, .doc = "Number of the last event; 0: none."),
	FIELD(V, status, .flags = FIELD_REQUIRED, .doc = "active, completed or error."),
	FIELD(V, state, .flags = FIELD_REQUIRED,
	      .doc = "idle, running, requires_action (a person is asked), stalled, needs_login, "
		     "failed, or no_agent."),
	FIELD(V, cause,
	      .doc = "Why it needs a log-in or has failed, or what hinders its turn, such as a "
		     "host that is not granted."),
	FIELD(V, remediation, .doc = "What to do about the cause."),
	FIELD(V, archived, .flags = FIELD_REQUIRED, .doc = "It is archived and takes no prompts."),
	FIELD(V, archived_at, .doc = "When it was archived, RFC 3339."),
	FIELD(V, archived_reason,
	      .doc = "Why it was archived: manual, agent, inactivity, or key_ended (its "
		     "owner's key has ended)."),
	FIELD(V, session_folder, .flags = FIELD_REQUIRED,
	      .doc = "Folder of the conversation: its path, or where the caller has no use for "
		     "paths, below Holt's data folder."),
	FIELD(V, is_running, .flags = FIELD_REQUIRED, .doc = "Its agent's program runs."),
	FIELD(V, is_prompting, .flags = FIELD_REQUIRED, .doc = "A turn is under way."),
	FIELD(V, is_locked, .flags = FIELD_REQUIRED,
	      .doc = "Same as is_prompting: nothing else may start."),
	FIELD(V, lock_status, .flags = FIELD_REQUIRED,
	      .doc = "idle, processing or waiting_for_permission."),
	FIELD(V, queue_length, .flags = FIELD_REQUIRED, .doc = "Number of prompts that wait."),
	FIELD(V, parent_session_id, .doc = "The conversation that started it."),
	FIELD(V, child_origin, .doc = "For a child: mcp (an agent started it) or human."),
	FIELD(V, current_mode_id, .doc = "Current mode of the agent."),
	FIELD_OBJECTS(V, options, offer_option_table, .max = OFFER_OPTIONS_MAX + 2,
		      .doc = "What its agent lets people choose, such as mode and model; empty "
			     "before its first session."),
	FIELD_OBJECTS(V, logins, offer_login_table, .max = OFFER_LOGINS_MAX,
		      .doc = "Ways to log in to its agent, as that says; empty before it has run."),
	FIELD(V, chosen, .max = OFFER_OPTIONS_MAX,
	      .doc = "Values that people have chosen for options."),
	FIELD(V, warning, .doc = "An option lets its agent act without asking: which."),
	FIELD_OBJECTS(V, commands, offer_command_table, .max = OFFER_COMMANDS_MAX,
		      .doc = "Commands of its agent for prompts."),
	FIELD_OBJECT(V, flags, conversation_flags_table, .flags = FIELD_REQUIRED,
		     .doc = "Permission flags in force: what its agent may do."),
	FIELD(V, user_data, .max = USER_DATA_MAX, .doc = "Attributes, by name."),
};
#undef V
const struct field_table conversation_view_table = FIELD_TABLE(struct conversation_view,
							       view_fields);

struct str conversation_keep(void *arena, const struct field *row, struct str s)
{
	struct err e;
	char *text = s.p ? arena_dup(arena, s, &e) : NULL;

	return text ? (struct str){ text, s.n } : STR_NONE;
}

static const char *lock_status(const struct conversation *t)
{
	if (conversation_state(t) == CONVERSATION_REQUIRES_ACTION)
		return "waiting_for_permission";
	return conversation_is_prompting(t) ? "processing" : "idle";
}

static struct conversation_flags view_flags(const struct conversation *t)
{
	struct conversation_flags f = { 0 };

#define FLAG(name_, ...)                                                                           \
	f.name_ = conversation_has_flag(t, CONVERSATION_FLAG_##name_);                             \
	f.has_##name_ = true;
	CONVERSATION_FLAGS(FLAG)
#undef FLAG
	return f;
}

/* The path of it, of no use to a key without admin or to an agent that may not look around. */
static char *view_folder(struct call *c, const struct conversation *t, struct err *e)
{
	struct conversation_caller who;
	struct err none;
	bool found = conversation_caller(c, STR_NONE, &who, &none) == 0;
	bool may = who.me ? conversation_has_flag(who.me, CONVERSATION_FLAG_can_do_introspection)
			  : call_principal(c)->scopes & KEY_ADMIN;

	return found && may
		     ? arena_printf(call_arena(c), e, "%s/%s", conversations_path(who.all),
				    conversation_id(t))
		     : arena_printf(call_arena(c), e, "conversations/%s", conversation_id(t));
}

int conversation_describe(struct call *c, struct conversation *t, struct conversation_view *ret,
			  struct err *e)
{
	const struct conversation_record *r = field_copy(&conversation_record_table,
							 conversation_record(t), call_arena(c),
							 conversation_keep, call_arena(c), e);
	struct err why;
	char *cause = conversation_trouble(t, &why) ? arena_dup(call_arena(c), str_of(why.msg), e)
						    : NULL;
	char *folder = r ? view_folder(c, t, e) : NULL;

	if (!folder || (why.code && !cause))
		return -1;
	*ret = (struct conversation_view){
		.session_id = r->session_id,
		.title = r->name,
		.description = r->description,
		.acp_server = r->agent,
		.working_dir = r->working_dir,
		.workspace = r->workspace,
		.created_at = r->created_at,
		.updated_at = r->updated_at,
		.last_user_message_at = r->last_user_message_at,
		.status = str_of(conversation_status_names[r->status]),
		.state = str_of(conversation_state_names[conversation_state(t)]),
		.cause = str_of(cause),
		.remediation = why.code ? str_of(err_info(why.code)->remediation) : STR_NONE,
		.archived = r->archived,
		.archived_at = r->archived_at,
		.archived_reason = r->archived ? str_of(conversation_why_names[r->archived_reason])
					       : STR_NONE,
		.session_folder = str_of(folder),
		.is_running = conversation_is_running(t),
		.is_prompting = conversation_is_prompting(t),
		.is_locked = conversation_is_prompting(t),
		.lock_status = str_of(lock_status(t)),
		.queue_length = conversation_queue_length(t),
		.parent_session_id = r->parent_session_id,
		.child_origin = r->parent_session_id.n
				      ? str_of(conversation_origin_names[r->child_origin])
				      : STR_NONE,
		.current_mode_id = r->current_mode_id,
		.chosen = r->options,
		.flags = view_flags(t),
	};
	if (conversation_counts(t, &ret->message_count, &ret->last_seq, e) < 0)
		return -1;
	return conversation_updated_ms(t)
		     ? when_dup(call_arena(c), conversation_updated_ms(t), &ret->updated_at, e)
		     : 0;
}

void conversation_answer(struct call *c, struct conversation *t)
{
	struct conversation_view view;
	struct err e = ERR_INIT;

	if (conversation_describe(c, t, &view, &e) == 0 &&
	    conversation_options_view(c, t, &view, &e) == 0 &&
	    user_data_read(c, t, &view.user_data, &e) == 0) {
		call_answer_by(c, &conversation_view_table, &view);
	} else {
		if (call_op(c)->effect != OP_READ)
			err_unsure(&e);
		call_fail(c, &e);
	}
}

/* ---- conversation.list ----------------------------------------------------------------------- */

#define Q struct list_request
struct list_request {
	struct str session_id, workspace, cursor;
	bool archived, has_archived;
	uint32_t limit;
};
static const struct field list_request_fields[] = {
	SESSION_ROW(Q),
	FIELD(Q, archived, .has = FIELD_HAS(Q, has_archived),
	      .doc = "true: only archived conversations; false: only others."),
	FIELD(Q, workspace, .max = 64, .doc = "Only conversations of this workspace."),
	FIELD(Q, limit, .min = 1, .max = PAGE_MAX, .def = DEFAULT_INT(PAGE_DEFAULT),
	      .doc = "Maximum number of conversations to return, the newest first."),
	FIELD(Q, cursor, .max = CONVERSATION_ID, .doc = "next_cursor of the previous page."),
};
#undef Q
static const struct field_table list_request_table = FIELD_TABLE(struct list_request,
								 list_request_fields);

struct list_view {
	struct {
		struct conversation_view *p;
		size_t n;
	} conversations;
	struct str next_cursor;
};
static const struct field list_fields[] = {
	FIELD_OBJECTS(struct list_view, conversations, conversation_view_table,
		      .flags = FIELD_REQUIRED, .max = PAGE_MAX, .doc = "The newest first."),
	FIELD(struct list_view, next_cursor,
	      .doc = "Value of cursor for the next page, if there is one."),
};
static const struct field_table list_table = FIELD_TABLE(struct list_view, list_fields);

static bool list_wants(const struct list_request *q, const struct conversation *t)
{
	const struct conversation_record *r = conversation_record(t);

	if (q->cursor.n && str_cmp(r->session_id, q->cursor) >= 0)
		return false;
	return (!q->has_archived || r->archived == q->archived) &&
	       (!q->workspace.n || str_eq(r->workspace, q->workspace));
}

static int list_collect(struct call *c, const struct list_request *q,
			const struct conversation_caller *who, struct list_view *ret, struct err *e)
{
	for (size_t i = conversations_count(who->all); i-- > 0;) {
		struct conversation *t = conversations_at(who->all, i);

		if (!list_wants(q, t) || !conversation_listed(c, who, t))
			continue;
		if (ret->conversations.n == q->limit) {
			ret->next_cursor = ret->conversations.p[q->limit - 1].session_id;
			return 0;
		}
		if (conversation_describe(c, t, &ret->conversations.p[ret->conversations.n++], e) <
		    0)
			return -1;
	}
	return 0;
}

static void list_run(struct call *c, const void *request)
{
	const struct list_request *q = request;
	struct conversation_caller who;
	struct list_view view = { .next_cursor = STR_NONE };
	struct err e = ERR_INIT;

	view.conversations.p = arena_array(call_arena(c), q->limit, sizeof(*view.conversations.p),
					   &e);
	if (!view.conversations.p || conversation_caller(c, q->session_id, &who, &e) < 0 ||
	    list_collect(c, q, &who, &view, &e) < 0)
		call_fail(c, &e);
	else
		call_answer(c, &view);
}

const struct op conversation_list_op = {
	.action = "conversation.list",
	.doc = "Lists conversations: an agent's own and its children, or with the flag "
	       "can_do_introspection all of its owner.",
	.effect = OP_READ,
	.request = &list_request_table,
	.result = &list_table,
	.run = list_run,
};

/* ---- conversation.get ------------------------------------------------------------------------ */

struct get_request {
	struct str session_id, conversation_id;
};
static const struct field get_request_fields[] = {
	SESSION_ROW(struct get_request),
	CONVERSATION_ROW(struct get_request, .doc = "Id of the conversation. Default: your own."),
};
static const struct field_table get_request_table = FIELD_TABLE(struct get_request,
								get_request_fields);

static void get_run(struct call *c, const void *request)
{
	const struct get_request *q = request;
	struct err e = ERR_INIT;
	struct conversation *t = conversation_to_read(c, q->session_id, q->conversation_id, &e);

	if (t)
		conversation_answer(c, t);
	else
		call_fail(c, &e);
}

const struct op conversation_get_op = {
	.action = "conversation.get",
	.doc = "Returns a conversation: its state, its flags, and how much is in it.",
	.effect = OP_READ,
	.request = &get_request_table,
	.result = &conversation_view_table,
	.run = get_run,
};
