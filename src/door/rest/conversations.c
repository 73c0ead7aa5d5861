/* /api: conversations with agents (docs/conversations.md). */
#include <inttypes.h>
#include <stdio.h>

#include "door/http/common.h"
#include "op/conversation/conversation.h"

#define SESSION                                                                                    \
	{                                                                                          \
		"conversation_id", .as = "session_id", .in = OP_PATH                               \
	}
/* A person names the conversation, and speaks for none. */
#define NOBODYS                                                                                    \
	{                                                                                          \
		"session_id", .in = OP_HIDDEN                                                      \
	}

static const struct op_member list_members[] = { NOBODYS,
						 { "archived", .in = OP_QUERY },
						 { "workspace", .in = OP_QUERY },
						 { "limit", .in = OP_QUERY },
						 { "cursor", .in = OP_QUERY } };
static const struct op_member by_path[] = { SESSION };
static const struct op_member get_members[] = { NOBODYS, SESSION };
static const struct op_member delete_members[] = { SESSION, { "children", .in = OP_QUERY } };
static const struct op_member message_members[] = { SESSION, { "message_id", .in = OP_PATH } };
static const struct op_member file_members[] = { SESSION, { "file_id", .in = OP_PATH } };
static const struct op_member data_members[] = { { "session_id", .in = OP_PATH },
						 { "key", .in = OP_PATH } };
static const struct op_member info_members[] = { NOBODYS };
static const struct op_member feed_members[] = { { "after", .in = OP_QUERY },
						 { "topics", .in = OP_QUERY } };
static const struct op_member wait_members[] = {
	NOBODYS, SESSION, { "what", .in = OP_QUERY }, { "timeout_seconds", .in = OP_QUERY }
};
static const struct op_member history_members[] = { NOBODYS,
						    SESSION,
						    { "event_types", .in = OP_QUERY },
						    { "text_contains", .in = OP_QUERY },
						    { "after_seq", .in = OP_QUERY },
						    { "before_seq", .in = OP_QUERY },
						    { "since", .in = OP_QUERY },
						    { "until", .in = OP_QUERY },
						    { "limit", .in = OP_QUERY },
						    { "follow", .in = OP_QUERY } };

static void tell_event(struct call *c, const void *event)
{
	const struct history_event *v = event;
	char id[24] = "";

	if (v->seq) /* else it is news of the stream itself */
		snprintf(id, sizeof(id), "%" PRIu64, v->seq);
	exchange_write_sse(c, str_of(id), &history_event_table, v);
}

static void tell_news(struct call *c, const void *event)
{
	exchange_write_sse(c, ((const struct feed_view *)event)->cursor, &feed_view_table, event);
}

#define ONE(op_, id_, method_, more_, members_, ...)                                               \
	{                                                                                          \
		.id = id_, .op = &conversation_##op_##_op, .projected = true,                      \
		.members = OP_MEMBERS(members_), .method = method_,                                \
		.path = "/api/sessions/{session_id}" more_,                                        \
		.errors = API_MAY(NOT_FOUND) | API_MAY(UNSUPPORTED) __VA_ARGS__                    \
	}

static const struct api_route rows[] = {
	{ .id = "sessions.list",
	  .op = &conversation_list_op,
	  .projected = true,
	  .members = OP_MEMBERS(list_members),
	  .method = HTTP_GET,
	  .path = "/api/sessions",
	  .errors = API_MAY(UNSUPPORTED) },
	{ .id = "sessions.create",
	  .op = &conversation_create_op,
	  .projected = true,
	  .method = HTTP_POST,
	  .path = "/api/sessions",
	  .errors = API_MAY(NOT_FOUND) | API_MAY(QUOTA_EXCEEDED) | API_MAY(UNSUPPORTED) },
	ONE(get, "sessions.get", HTTP_GET, "", get_members, ),
	ONE(update, "sessions.update", HTTP_PATCH, "", by_path, ),
	ONE(delete, "sessions.delete", HTTP_DELETE, "", delete_members, | API_MAY(CONFLICT)),
	ONE(restore, "sessions.restore", HTTP_POST, "/restore", by_path, | API_MAY(QUOTA_EXCEEDED)),
	{ .id = "sessions.events",
	  .op = &conversation_history_op,
	  .projected = true,
	  .members = OP_MEMBERS(history_members),
	  .tell = tell_event,
	  .method = HTTP_GET,
	  .path = "/api/sessions/{session_id}/events",
	  .lines = &history_event_table,
	  .sse = "after_seq",
	  .errors = API_MAY(NOT_FOUND) | API_MAY(UNSUPPORTED) | API_MAY(TOO_MANY_STREAMS) },
	ONE(queue, "sessions.queue", HTTP_GET, "/queue", by_path, ),
	ONE(send, "sessions.send", HTTP_POST, "/queue", get_members, | API_MAY(CONFLICT)),
	ONE(remove, "sessions.unqueue", HTTP_DELETE, "/queue/{message_id}", message_members,
	    | API_MAY(CONFLICT)),
	ONE(move, "sessions.move", HTTP_POST, "/queue/{message_id}/move", message_members,
	    | API_MAY(CONFLICT)),
	ONE(retry, "sessions.retry", HTTP_POST, "/queue/{message_id}/retry", message_members,
	    | API_MAY(CONFLICT)),
	ONE(files, "sessions.files", HTTP_GET, "/files", by_path, ),
	ONE(add_file, "sessions.add_file", HTTP_POST, "/files", by_path, | API_MAY(CONFLICT),
	    .body_max = FILE_CONTENT_MAX + API_BODY_MAX),
	ONE(file, "sessions.file", HTTP_GET, "/files/{file_id}", file_members, ),
	ONE(remove_file, "sessions.remove_file", HTTP_DELETE, "/files/{file_id}", file_members, ),
	ONE(cancel, "sessions.cancel", HTTP_POST, "/cancel", by_path, | API_MAY(CONFLICT)),
	ONE(wait, "sessions.wait", HTTP_GET, "/wait", wait_members, | API_MAY(CANCELED)),
	ONE(settings, "sessions.settings", HTTP_GET, "/settings", by_path, ),
	ONE(set_flags, "sessions.set_flags", HTTP_PATCH, "/settings", by_path, ),
	ONE(set_user_data, "sessions.set_user_data", HTTP_PUT, "/user-data/{key}", data_members,
	    | API_MAY(QUOTA_EXCEEDED)),
	{ .id = "flags.list",
	  .op = &conversation_flags_op,
	  .projected = true,
	  .method = HTTP_GET,
	  .path = "/api/advanced-flags",
	  .shape = API_ARRAY },
	{ .id = "conversation.workspaces",
	  .op = &conversation_workspaces_op,
	  .projected = true,
	  .method = HTTP_GET,
	  .path = "/api/workspaces",
	  .errors = API_MAY(UNSUPPORTED) },
	{ .id = "conversation.config",
	  .op = &conversation_config_op,
	  .projected = true,
	  .members = OP_MEMBERS(info_members),
	  .method = HTTP_GET,
	  .path = "/api/config",
	  .errors = API_MAY(UNSUPPORTED) },
	{ .id = "conversation.runtime",
	  .op = &conversation_runtime_op,
	  .projected = true,
	  .members = OP_MEMBERS(info_members),
	  .method = HTTP_GET,
	  .path = "/api/runtime",
	  .errors = API_MAY(UNSUPPORTED) },
	{ .id = "feed.follow",
	  .op = &feed_follow_op,
	  .projected = true,
	  .members = OP_MEMBERS(feed_members),
	  .tell = tell_news,
	  .method = HTTP_GET,
	  .path = "/api/events",
	  .answer = &feed_view_table,
	  .shape = API_LINES,
	  .sse = "after",
	  .errors = API_MAY(UNSUPPORTED) | API_MAY(TOO_MANY_STREAMS) },
};
const struct api_resource api_conversations = API_RESOURCE(rows);
