/* /api/prompts: questions to people and their answers (docs/questions.md). */
#include "door/http/routes.h"
#include "op/ops.h"

static const struct op_member session_members[] = { { "session_id", .in = OP_PATH } };
static const struct op_member by_path[] = { { "id", .as = "request_id", .in = OP_PATH } };
static const struct op_member answer_members[] = { { "id", .as = "request_id", .in = OP_PATH },
						   { "session_id", .in = OP_HIDDEN } };
static const struct op_member session_answer_members[] = {
	{ "id", .as = "request_id", .in = OP_PATH }, { "session_id", .in = OP_PATH }
};

#define ENDS (API_MAY(NOT_FOUND) | API_MAY(ALREADY_ANSWERED) | API_MAY(EXPIRED))

static const struct api_route rows[] = {
	{ .id = "prompts.list",
	  .op = &question_list_op,
	  .projected = true,
	  .kind = API_PEOPLE,
	  .method = HTTP_GET,
	  .path = "/api/prompts",
	  .errors = API_MAY(NOT_FOUND) | API_MAY(UNSUPPORTED) },
	{ .id = "prompts.ask",
	  .op = &question_ask_op,
	  .projected = true,
	  .kind = API_PEOPLE,
	  .method = HTTP_POST,
	  .path = "/api/prompts",
	  .errors = API_MAY(NOT_FOUND) | API_MAY(QUOTA_EXCEEDED) | API_MAY(CANCELED) |
		    API_MAY(UNSUPPORTED) },
	{ .id = "prompts.get",
	  .op = &question_get_op,
	  .projected = true,
	  .kind = API_PEOPLE,
	  .members = OP_MEMBERS(by_path),
	  .method = HTTP_GET,
	  .path = "/api/prompts/{request_id}",
	  .errors = API_MAY(NOT_FOUND) | API_MAY(UNSUPPORTED) },
	{ .id = "prompts.result",
	  .op = &question_result_op,
	  .projected = true,
	  .kind = API_PEOPLE,
	  .members = OP_MEMBERS(by_path),
	  .method = HTTP_GET,
	  .path = "/api/prompts/{request_id}/result",
	  .errors = API_MAY(NOT_FOUND) | API_MAY(CANCELED) | API_MAY(UNSUPPORTED) },
	{ .id = "prompts.answer",
	  .op = &question_answer_op,
	  .projected = true,
	  .kind = API_PEOPLE,
	  .members = OP_MEMBERS(answer_members),
	  .method = HTTP_POST,
	  .path = "/api/prompts/{request_id}/answer",
	  .errors = ENDS | API_MAY(UNSUPPORTED) },
	{ .id = "prompts.cancel",
	  .op = &question_cancel_op,
	  .projected = true,
	  .kind = API_PEOPLE,
	  .members = OP_MEMBERS(by_path),
	  .method = HTTP_POST,
	  .path = "/api/prompts/{request_id}/cancel",
	  .errors = ENDS | API_MAY(UNSUPPORTED) },
	{ .id = "sessions.prompts.list",
	  .op = &question_list_op,
	  .projected = true,
	  .kind = API_PEOPLE,
	  .doc = "Lists the questions of a conversation, by deadline.",
	  .members = OP_MEMBERS(session_members),
	  .method = HTTP_GET,
	  .path = "/api/sessions/{session_id}/prompts",
	  .errors = API_MAY(NOT_FOUND) | API_MAY(UNSUPPORTED) },
	{ .id = "sessions.prompts.answer",
	  .op = &question_answer_op,
	  .projected = true,
	  .kind = API_PEOPLE,
	  .doc = "Answers a question of a conversation.",
	  .members = OP_MEMBERS(session_answer_members),
	  .method = HTTP_POST,
	  .path = "/api/sessions/{session_id}/prompts/{request_id}/answer",
	  .errors = ENDS | API_MAY(UNSUPPORTED) },
};
const struct api_resource api_prompts = API_RESOURCE(rows);
