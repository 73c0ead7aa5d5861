/* conversation.create, by a person, and conversation.start, by an agent for a child. */
#include "base/log.h"
#include "call/guard.h"
#include "guard/policy/policy.h"
#include "op/conversation/conversation.h"

enum { CHILDREN_MAX = 10, PATH_LENGTH_MAX = 4095 };

#define MADE_ROWS(S)                                                                               \
	FIELD(S, title, .max = TITLE_MAX, .doc = "Title for people."),                             \
		FIELD(S, initial_prompt, .max = QUEUE_MESSAGE_MAX,                                 \
		      .doc = "Queued as the first prompt.")

/* What is done in common. If its prompt can't be queued there is none: its client would make
 * another. */
static struct conversation *conversation_make(struct call *c, const struct conversation_caller *who,
					      const struct conversation_record *r,
					      struct str prompt, struct err *e)
{
	struct str source = conversation_source(c, who, e);
	const struct queue_item item = { .message = prompt, .source = source };
	char id[QUEUE_ID + 1];
	size_t position;
	struct conversation *t = source.p ? conversation_new(who->all, r, e) : NULL;
	struct err ignored;

	if (!t || (user_data_keep_schema(who->all, t, who->me, e) == 0 &&
		   (!prompt.n || conversation_send(t, &item, id, &position, e) == 0)))
		return t;
	if (conversation_delete(t, &ignored) < 0)
		log_warn("a conversation that failed stays: %s", ignored.msg);
	return NULL;
}

/* ---- conversation.create --------------------------------------------------------------------- */

#define Q struct create_request
struct create_request {
	struct str title, description, acp_server, workspace, working_dir, initial_prompt;
	struct field_map options;
};
static const struct field create_fields[] = {
	MADE_ROWS(Q),
	FIELD(Q, description, .max = DESCRIPTION_MAX, .doc = "What it is about."),
	FIELD(Q, acp_server, .max = CONFIG_NAME_MAX,
	      .doc = "Agent, by its name in the operator's file. Default: that of the workspace."),
	FIELD(Q, workspace, .max = CONFIG_NAME_MAX,
	      .doc = "Workspace in which the agent works, by its name in the operator's file."),
	FIELD(Q, working_dir, .flags = FIELD_PATH, .max = PATH_LENGTH_MAX,
	      .doc = "Instead of workspace: an absolute path. Only the operator may use it."),
	OPTIONS_ROW(Q),
};
#undef Q
static const struct field_table create_table = FIELD_TABLE(struct create_request, create_fields);

static const struct config_workspace *workspace_find(struct call *c, struct str name)
{
	const struct policy *p = call_guard(c)->policy;
	const struct config_file *f = p ? config_file(p->config) : NULL;

	for (size_t i = 0; f && i < f->workspaces.n; i++) {
		if (str_eq(f->workspaces.p[i].name, name))
			return &f->workspaces.p[i];
	}
	return NULL;
}

/* A workspace may name one that comes later; who names it here means one that is there. */
static int create_check_agent(const struct call *c, struct str agent, struct err *e)
{
	const struct conversations *all = call_conversations(c);
	const char *name;

	for (size_t i = 0; (name = conversations_agent(all, i)); i++) {
		if (str_is(agent, name))
			return 0;
	}
	return err_set(e, ERR_INVALID, "acp_server: the operator's file has no agent %.*s",
		       STR_ARG(agent));
}

static int create_place(struct call *c, const struct create_request *q,
			struct conversation_record *r, struct err *e)
{
	const struct config_workspace *w = q->workspace.n ? workspace_find(c, q->workspace) : NULL;

	if (conversation_check_start(c, STR_NONE, q->workspace, e) < 0)
		return -1;
	if (q->workspace.n && !w)
		return err_set(e, ERR_WORKSPACE_NOT_FOUND,
			       "the operator's file has no workspace %.*s", STR_ARG(q->workspace));
	if (q->working_dir.n && (w || !call_is_operator(c)))
		return err_set(e, w ? ERR_INVALID : ERR_DENIED, "working_dir: %s",
			       w ? "the workspace has one" : "only the operator names a folder");
	if (q->working_dir.n && *q->working_dir.p != '/')
		return err_set(e, ERR_INVALID, "working_dir: an absolute path");
	r->workspace = q->workspace;
	r->working_dir = w ? w->dir : q->working_dir;
	r->agent = q->acp_server.n || !w ? q->acp_server : w->agent;
	if (conversation_check_start(c, r->agent, STR_NONE, e) < 0)
		return -1;
	return q->acp_server.n ? create_check_agent(c, q->acp_server, e) : 0;
}

static void create_run(struct call *c, const void *request)
{
	const struct create_request *q = request;
	struct conversation_record r = { .owner = call_owner(c),
					 .name = q->title,
					 .description = q->description };
	struct err e = ERR_INIT;
	const struct conversation_caller who = { .all = conversation_person(c, &e) };
	struct conversation *t = !who.all || create_place(c, q, &r, &e) < 0 ||
						 conversation_options_merge(c, NULL, r.owner,
									    &q->options, &r.options,
									    &e) < 0
				       ? NULL
				       : conversation_make(c, &who, &r, q->initial_prompt, &e);

	if (t)
		conversation_answer(c, t);
	else
		call_fail(c, &e);
}

const struct op conversation_create_op = {
	.action = "conversation.create",
	.doc = "Starts a conversation with an agent.",
	.effect = OP_WRITE,
	.request = &create_table,
	.result = &conversation_view_table,
	.run = create_run,
};

/* ---- conversation.start ---------------------------------------------------------------------- */

#define Q struct start_request
struct start_request {
	struct str session_id, title, initial_prompt;
};
static const struct field start_fields[] = { SESSION_ROW(Q), MADE_ROWS(Q) };
#undef Q
static const struct field_table start_table = FIELD_TABLE(struct start_request, start_fields);

#define V struct started_view
struct started_view {
	bool success;
	struct str session_id, title, acp_server, working_dir, parent_session_id;
	bool has_position;
	uint64_t queue_position;
};
static const struct field started_fields[] = {
	FIELD(V, success, .flags = FIELD_REQUIRED, .doc = "Always true."),
	FIELD(V, session_id, .flags = FIELD_REQUIRED, .doc = "Id of the new conversation."),
	FIELD(V, title, .doc = "Title of the new conversation."),
	FIELD(V, acp_server, .doc = "Its agent, the same as yours."),
	FIELD(V, working_dir, .flags = FIELD_REQUIRED, .doc = "Its folder, the same as yours."),
	FIELD(V, parent_session_id, .flags = FIELD_REQUIRED, .doc = "Id of your conversation."),
	FIELD(V, queue_position, .has = FIELD_HAS(V, has_position),
	      .doc = "Number of prompts before the initial one, if there is one."),
};
#undef V
static const struct field_table started_table = FIELD_TABLE(struct started_view, started_fields);

/* A child starts none, so that no chain has no end. */
static int start_check(const struct conversation *me, struct err *e)
{
	size_t from = 0, n = 0;

	if (conversation_record(me)->parent_session_id.n)
		return err_set(e, ERR_DENIED, "a child starts no conversations");
	while (conversation_child(me, &from))
		n++;
	return n < CHILDREN_MAX
		     ? 0
		     : err_set(e, ERR_LIMIT, "conversation %s has %d children, as many as it may",
			       conversation_id(me), CHILDREN_MAX);
}

static struct conversation *start_child(struct call *c, const struct start_request *q,
					struct conversation *me, struct err *e)
{
	const struct conversation_record *mine = conversation_record(me);
	const struct conversation_caller who = { .all = call_conversations(c), .me = me };
	const struct conversation_record r = {
		.owner = mine->owner,
		.name = q->title,
		.agent = mine->agent,
		.working_dir = mine->working_dir,
		.workspace = mine->workspace,
		.parent_session_id = mine->session_id,
		.child_origin = CONVERSATION_OF_AGENT,
		/* A child asks nobody whom its parent may not ask. */
		.advanced_settings = { .has_can_start_conversation = true,
				       .has_can_prompt_user = true,
				       .can_prompt_user = conversation_has_flag(
					       me, CONVERSATION_FLAG_can_prompt_user) },
	};

	return start_check(me, e) < 0 || conversation_check_start(c, r.agent, r.workspace, e) < 0
		     ? NULL
		     : conversation_make(c, &who, &r, q->initial_prompt, e);
}

static void start_run(struct call *c, const void *request)
{
	const struct start_request *q = request;
	struct err e = ERR_INIT;
	struct conversation *me = conversation_permits(
		c, q->session_id, CONVERSATION_FLAG_can_start_conversation, &e);
	struct conversation *t = me ? start_child(c, q, me, &e) : NULL;
	struct conversation_view view;

	if (!t || (conversation_describe(c, t, &view, &e) < 0 && err_unsure(&e) < 0))
		call_fail(c, &e);
	else
		call_answer(c, &(struct started_view){
				       .success = true,
				       .session_id = view.session_id,
				       .title = view.title,
				       .acp_server = view.acp_server,
				       .working_dir = view.working_dir,
				       .parent_session_id = view.parent_session_id,
				       .has_position = q->initial_prompt.n > 0,
			       });
}

const struct op conversation_start_op = {
	.action = "conversation.start",
	.doc = "Starts a child of an agent's own conversation, with the same agent and folder.",
	.effect = OP_WRITE,
	.request = &start_table,
	.result = &started_table,
	.run = start_run,
};
