#pragma once
/*
 * Operations on conversations (docs/conversations.md): who may name which, and what the files here
 * share.
 *
 * A caller is a person, or an agent. An agent that has a conversation's token speaks for that
 * conversation and no other. Any other agent says by session_id for which one it speaks, and then
 * has no more rights than that one. What a conversation may do to another one depends on its flags
 * and on which one it is, never on which arguments are there.
 */
#include "agents/conversation/conversation.h"
#include "agents/store/attachment.h"
#include "call/call.h"
#include "op/ops.h"

enum {
	TITLE_MAX = 200, /* characters */
	DESCRIPTION_MAX = 2000,
	USER_DATA_MAX = 64, /* attributes */
	USER_DATA_NAME_MAX = 64, /* characters */
	USER_DATA_VALUE_MAX = 4096,
	FILE_CONTENT_MAX = (ATTACHMENT_MAX + 2) / 3 * 4, /* of a file in base64 */
};

/* ---- who.c ----------------------------------------------------------------------------------- */

struct conversation_caller {
	struct conversations *all;
	struct conversation *me; /* the conversation that it speaks for; NULL: a person, for none */
	bool by_token;
};

/* session_id: of the request; may be STR_NONE. ERR_DENIED: the token is that of another one. */
int conversation_caller(struct call *c, struct str session_id, struct conversation_caller *ret,
			struct err *e) MUST_USE;

/* The one that it speaks for, if that has the flag, else ERR_DENIED. For tools of a session. */
struct conversation *conversation_permits(struct call *c, struct str session_id,
					  enum conversation_flag flag, struct err *e) MUST_USE;

/* Another one, or STR_NONE: its own. To read its own or a child it needs no flag. */
struct conversation *conversation_target(struct call *c, const struct conversation_caller *who,
					 struct str id, enum conversation_flag flag,
					 struct err *e) MUST_USE;

/* The same to read it, for who asks with this session_id. */
struct conversation *conversation_to_read(struct call *c, struct str session_id, struct str id,
					  struct err *e) MUST_USE;

/* One that a person has. ERR_DENIED: no agent may do this. */
struct conversation *conversation_own(struct call *c, struct str id, struct err *e) MUST_USE;
/* ERR_DENIED: an agent asks. NULL likewise where there are no conversations. */
struct conversations *conversation_person(struct call *c, struct err *e) MUST_USE;

/* Whether the caller may have this agent and workspace in a conversation. Either may be
 * STR_NONE. */
int conversation_check_start(const struct call *c, struct str agent, struct str workspace,
			     struct err *e) MUST_USE;

/* Whether a list shows it. */
bool conversation_listed(const struct call *c, const struct conversation_caller *who,
			 const struct conversation *t);

/* Whose name stands beside a prompt, in the call's arena. */
struct str conversation_source(struct call *c, const struct conversation_caller *who,
			       struct err *e);

/* ---- view.c ---------------------------------------------------------------------------------- */

struct conversation_view {
	struct str session_id, title, description, acp_server, working_dir, workspace, created_at,
		updated_at, last_user_message_at, status, state, cause, remediation, session_folder,
		lock_status, archived_at, archived_reason, parent_session_id, child_origin,
		current_mode_id;
	uint64_t message_count, last_seq, queue_length;
	bool archived, is_running, is_prompting, is_locked;
	struct {
		struct offer_option *p;
		size_t n;
	} options;
	struct {
		struct offer_command *p;
		size_t n;
	} commands;
	struct {
		struct offer_login *p;
		size_t n;
	} logins;
	struct field_map chosen;
	struct str warning;
	struct conversation_flags flags;
	struct field_map user_data;
};
extern const struct field_table conversation_view_table;

/* Copies, in the call's arena. */
int conversation_describe(struct call *c, struct conversation *t, struct conversation_view *ret,
			  struct err *e) MUST_USE;
/* field_text_fn that copies into an arena; without memory the text is gone. */
struct str conversation_keep(void *arena, const struct field *row, struct str s);
/* Answers with it, or fails. */
void conversation_answer(struct call *c, struct conversation *t);

/* Rows of requests that name one. */
#define SESSION_ROW(S)                                                                             \
	FIELD(S, session_id, .max = CONVERSATION_ID,                                               \
	      .doc = "Your conversation's id; may be left out with a conversation's token.")
#define CONVERSATION_NAMED(S)                                                                      \
	FIELD(S, conversation_id, .flags = FIELD_REQUIRED, .min = 1, .max = CONVERSATION_ID,       \
	      .doc = "Id of the conversation.")
#define CONVERSATION_ROW(S, ...) FIELD(S, conversation_id, .max = CONVERSATION_ID, __VA_ARGS__)

/* ---- options.c ------------------------------------------------------------------------------- */

/* Values that people want for options of the agent. An empty one takes a value back. */
#define OPTIONS_ROW(S)                                                                             \
	FIELD(S, options, .max = OFFER_OPTIONS_MAX, .item_max = OFFER_VALUE_MAX,                   \
	      .doc = "Values for the agent's options, by their ids, such as {\"mode\": "           \
		     "\"plan\"}. Empty: the agent's own again.")

/* What is offered and chosen, in the call's arena. */
int conversation_options_view(struct call *c, struct conversation *t, struct conversation_view *v,
			      struct err *e) MUST_USE;
/* More, merged into `to`, which borrows from both and the call's arena. t: NULL before it is there.
 * owner: of the conversation. ERR_INVALID: its agent does not offer that. ERR_DENIED: with it the
 * agent would act without asking anybody, and the caller may not decide that. */
int conversation_options_merge(struct call *c, struct conversation *t, struct str owner,
			       const struct field_map *more, struct field_map *to,
			       struct err *e) MUST_USE;

/* Logs its agent in by this method. ERR_INVALID: that takes more than the agent. */
int conversation_login(struct conversation *t, struct str method, struct err *e) MUST_USE;

/* Whether the caller may decide for a person what an agent of this owner may do. what: for the
 * failure. */
int conversation_check_unattended(struct call *c, struct str owner, const char *what,
				  struct err *e) MUST_USE;

/* ---- user_data.c ----------------------------------------------------------------------------- */

/* The attributes of one, in the call's arena. */
int user_data_read(struct call *c, const struct conversation *t, struct field_map *ret,
		   struct err *e) MUST_USE;

/* Decides which attributes a new conversation may have, for all its life. parent: an agent has made
 * it in this one, and it may have the same. NULL: a person has made it, and files of the workspace
 * say it, unless an agent could have made them. */
int user_data_keep_schema(const struct conversations *all, const struct conversation *t,
			  const struct conversation *parent, struct err *e) MUST_USE;

/* ---- history.c ------------------------------------------------------------------------------- */

struct history_event {
	uint64_t seq;
	struct str type, timestamp, live, state;
	struct field_json data;
};
extern const struct field_table history_event_table;

/* ---- feed.c ---------------------------------------------------------------------------------- */

struct feed_view {
	struct str cursor, topic, id, kind;
	struct field_json data;
};
extern const struct field_table feed_view_table;
