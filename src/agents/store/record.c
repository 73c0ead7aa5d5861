#include "agents/store/internal.h"

enum { RECORD_MAX = 64 << 10, OPTIONS_MAX = 32 }; /* bytes of a record in memory */

const char *const conversation_status_names[] = {
	[CONVERSATION_ACTIVE] = "active",
	[CONVERSATION_COMPLETED] = "completed",
	[CONVERSATION_ERROR] = "error",
};

const char *const conversation_why_names[] = {
	[CONVERSATION_NOT_ARCHIVED] = "",    [CONVERSATION_BY_PERSON] = "manual",
	[CONVERSATION_BY_AGENT] = "agent",   [CONVERSATION_BY_AGE] = "inactivity",
	[CONVERSATION_BY_KEY] = "key_ended",
};

const char *const conversation_origin_names[] = {
	[CONVERSATION_OF_PERSON] = "human",
	[CONVERSATION_OF_AGENT] = "mcp",
};

const struct conversation_flag_info conversation_flag_infos[] = {
#define FLAG(name_, def_, label_, description_) { #name_, label_, description_, def_ },
	CONVERSATION_FLAGS(FLAG)
#undef FLAG
};

static const struct field flag_rows[] = {
#define FLAG(name_, def_, label_, description_)                                                    \
	FIELD(struct conversation_flags, name_,                                                    \
	      .has = FIELD_HAS(struct conversation_flags, has_##name_), .doc = description_),
	CONVERSATION_FLAGS(FLAG)
#undef FLAG
};
const struct field_table conversation_flags_table = FIELD_TABLE(struct conversation_flags,
								flag_rows);

bool conversation_flag(const struct conversation_flags *f, enum conversation_flag flag)
{
	const struct conversation_flag_info *info = &conversation_flag_infos[flag];

	switch (flag) {
#define FLAG(name, ...)                                                                            \
	case CONVERSATION_FLAG_##name:                                                             \
		return f->has_##name ? f->name : info->def;
		CONVERSATION_FLAGS(FLAG)
#undef FLAG
	case CONVERSATION_FLAGS_N:
		break;
	}
	return false;
}

#define R struct conversation_record
static const struct field record_rows[] = {
	FIELD(R, session_id, .flags = FIELD_REQUIRED, .doc = "YYYYMMDD-HHMMSS-xxxxxxxx."),
	FIELD(R, owner, .flags = FIELD_REQUIRED, .doc = "Principal that made it."),
	FIELD(R, name, .max = 200, .doc = "Title for people."),
	FIELD(R, description, .max = 2000, .doc = "What it is about."),
	FIELD(R, agent, .max = 64, .doc = "Agent of the operator's file."),
	FIELD(R, agent_session_id, .max = 512, .doc = "What the agent calls the conversation."),
	FIELD(R, working_dir, .max = 4096, .doc = "Folder in which the agent works."),
	FIELD(R, workspace, .max = 64, .doc = "Workspace of the operator's file."),
	FIELD(R, created_at, .flags = FIELD_REQUIRED, .doc = "When it was made."),
	FIELD(R, updated_at, .flags = FIELD_REQUIRED, .doc = "When anything of it changed."),
	FIELD(R, last_user_message_at, .doc = "When a person or a conversation last prompted it."),
	FIELD_ENUM(R, status, conversation_status_names, .doc = "What became of it."),
	FIELD(R, archived, .doc = "Put away: it takes no prompts."),
	FIELD_ENUM(R, archived_reason, conversation_why_names, .doc = "Why it was put away."),
	FIELD(R, archived_at, .doc = "When it was put away."),
	FIELD(R, parent_session_id, .doc = "Conversation that started it."),
	FIELD_ENUM(R, child_origin, conversation_origin_names, .doc = "Who started it."),
	FIELD(R, current_mode_id, .max = 256, .doc = "Mode of the agent."),
	FIELD(R, login, .max = 256, .doc = "Method of the agent to log in by."),
	FIELD(R, options, .max = OPTIONS_MAX, .doc = "Values wanted for options of the agent."),
	FIELD_OBJECT(R, advanced_settings, conversation_flags_table,
		     .doc = "Permission flags that differ from the defaults, or were set."),
};
#undef R
/* Open: a later Holt may have written more. */
const struct field_table conversation_record_table = FIELD_TABLE(struct conversation_record,
								 record_rows, .open = true);

void record_fini(struct record *r)
{
	arena_free(r->arena);
	json_free(r->doc);
	*r = (struct record){ 0 };
}

int record_decode(struct record *ret, struct json_doc *doc, struct err *e)
{
	struct record r = { .doc = doc, .arena = doc ? arena_new(RECORD_MAX) : NULL };

	if (doc && !r.arena)
		err_set(e, ERR_LIMIT, "out of memory");
	r.r = r.arena ? arena_alloc(r.arena, sizeof(*r.r), e) : NULL;
	if (!r.r || field_decode(&conversation_record_table, json_root(doc), r.arena, r.r, e) < 0) {
		record_fini(&r);
		return -1;
	}
	*ret = r;
	return 0;
}

int record_write(int folder, const struct conversation_record *r, struct record *kept,
		 struct err *e)
{
	autofree char *text = field_encode_text(&conversation_record_table, r, RECORD_MAX, e);
	struct record written;

	if (!text || record_decode(&written, json_parse(str_of(text), NULL, e), e) < 0)
		return -1;
	if (document_write(folder, RECORD_NAME, str_of(text), e) < 0) {
		record_fini(&written);
		return -1;
	}
	record_fini(kept);
	*kept = written;
	return 0;
}
