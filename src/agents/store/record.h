#pragma once
/*
 * What is known of a conversation beside its events: metadata.json. Members have the names that
 * clients see (docs/conversations.md); points in time are RFC 3339 in UTC.
 */
#include "json/field/field.h"

enum conversation_status {
	CONVERSATION_ACTIVE,
	CONVERSATION_COMPLETED,
	CONVERSATION_ERROR,
	CONVERSATION_STATUSES
};
extern const char *const conversation_status_names[CONVERSATION_STATUSES];

/* Why it is archived, and who has made it. "" stands for neither. */
enum conversation_why {
	CONVERSATION_NOT_ARCHIVED,
	CONVERSATION_BY_PERSON,
	CONVERSATION_BY_AGENT,
	CONVERSATION_BY_AGE,
	CONVERSATION_BY_KEY, /* that of its owner has ended */
	CONVERSATION_WHYS
};
enum conversation_origin { CONVERSATION_OF_PERSON, CONVERSATION_OF_AGENT, CONVERSATION_ORIGINS };
extern const char *const conversation_why_names[CONVERSATION_WHYS];
extern const char *const conversation_origin_names[CONVERSATION_ORIGINS];

/*
 * The permission flags: name, default, label, description. A flag that a conversation does not have
 * is as the default says. One row here is all that another flag takes.
 */
#define CONVERSATION_FLAGS(FLAG)                                                                   \
	FLAG(can_do_introspection, false, "Read other conversations",                              \
	     "See other conversations, their history and the configuration.")                      \
	FLAG(can_send_prompt, false, "Send prompts",                                               \
	     "Put a prompt into the queue of another conversation.")                               \
	FLAG(can_prompt_user, true, "Ask people",                                                  \
	     "Ask a person a question and wait for the answer.")                                   \
	FLAG(can_start_conversation, false, "Start conversations",                                 \
	     "Make another conversation in the same workspace.")                                   \
	FLAG(auto_approve_permissions, false, "Approve by itself",                                 \
	     "Allow once what the agent asks permission for, without a person.")

enum conversation_flag {
#define FLAG(name, ...) CONVERSATION_FLAG_##name,
	CONVERSATION_FLAGS(FLAG)
#undef FLAG
		CONVERSATION_FLAGS_N
};

struct conversation_flag_info {
	const char *name, *label, *description;
	bool def;
};
extern const struct conversation_flag_info conversation_flag_infos[CONVERSATION_FLAGS_N];

struct conversation_flags {
#define FLAG(name, ...) bool name, has_##name;
	CONVERSATION_FLAGS(FLAG)
#undef FLAG
};
extern const struct field_table conversation_flags_table;

/* The value that holds: the conversation's own, else the default. */
bool conversation_flag(const struct conversation_flags *f, enum conversation_flag flag);

struct conversation_record {
	struct str session_id;
	struct str owner; /* the principal that made it */
	struct str name, description;
	struct str agent; /* of the operator's file */
	struct str agent_session_id; /* what the agent calls it; may be NONE */
	struct str working_dir; /* of the workspace, as the operator's file has it */
	struct str workspace; /* its name there */
	struct str created_at, updated_at, last_user_message_at;
	enum conversation_status status;
	bool archived;
	enum conversation_why archived_reason;
	struct str archived_at;
	struct str parent_session_id;
	enum conversation_origin child_origin;
	struct str current_mode_id;
	struct str login; /* method of the agent to log in by; NONE: that of its entry */
	struct field_map options; /* values that people want for the agent's options */
	struct conversation_flags advanced_settings;
};
extern const struct field_table conversation_record_table;
