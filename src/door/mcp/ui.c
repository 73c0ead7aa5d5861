/*
 * Questions to people (docs/questions.md): the tools of the set "ui". Each is question.ask of one
 * kind, and answers when a person has; ask and ask_result are for clients whose calls end before.
 */
#include "door/mcp/tools.h"
#include "op/ops.h"
#include "op/question/question.h"

enum { CHARS = 500, BUTTONS_MAX = 4, COMBO_MAX = 10, NOTICE_SECONDS = 24 * 3600 };

/* Members of each tool that do not belong to its kind. */
#define HIDDEN(name_)                                                                              \
	{                                                                                          \
		(name_), .in = OP_HIDDEN                                                           \
	}
#define KIND(kind_)                                                                                \
	{                                                                                          \
		"kind", .in = OP_HIDDEN, .presence = OP_OPTIONAL, .def = DEFAULT_ENUM(kind_)       \
	}
#define QUESTION                                                                                   \
	{                                                                                          \
		"question", .presence = OP_REQUIRED, .min = 1, .max = CHARS                        \
	}
#define TIMEOUT                                                                                    \
	{                                                                                          \
		"timeout_seconds", .max = QUESTION_TOOL_SECONDS_MAX                                \
	}

#define S struct question_said
static const struct field yes_no_fields[] = {
	FIELD(S, response, .flags = FIELD_REQUIRED, .doc = "yes, no, timeout or cancelled."),
	FIELD(S, label, .flags = FIELD_REQUIRED, .doc = "Label of the button."),
};
static const struct field option_fields[] = {
	FIELD(S, selected, .flags = FIELD_REQUIRED,
	      .doc = "Label of the chosen option; empty: none."),
	FIELD(S, index, .flags = FIELD_REQUIRED, .doc = "Index of the option, from 0; -1: none."),
	FIELD(S, timed_out, .flags = FIELD_REQUIRED, .doc = "Nobody answered in time."),
	FIELD(S, cancelled, .flags = FIELD_REQUIRED, .doc = "A person cancelled it."),
	FIELD(S, free_text, .doc = "Text given instead of an option."),
};
static const struct field textbox_fields[] = {
	FIELD_NAMED(S, free_text, "result", .doc = "The text."),
	FIELD(S, changed, .flags = FIELD_REQUIRED, .doc = "The text was changed."),
	FIELD_NAMED(S, cancelled, "aborted", .flags = FIELD_REQUIRED,
		    .doc = "A person cancelled it."),
	FIELD(S, timed_out, .flags = FIELD_REQUIRED, .doc = "Nobody answered in time."),
};
static const struct field form_fields[] = {
	FIELD(S, submitted, .flags = FIELD_REQUIRED, .doc = "The form was submitted."),
	FIELD(S, cancelled, .flags = FIELD_REQUIRED, .doc = "A person cancelled it."),
	FIELD(S, timed_out, .flags = FIELD_REQUIRED, .doc = "Nobody answered in time."),
	FIELD(S, values, .doc = "Values of the form, by name."),
};
static const struct field notify_fields[] = {
	FIELD(S, success, .flags = FIELD_REQUIRED, .doc = "People can see it."),
	FIELD(S, request_id, .flags = FIELD_REQUIRED, .doc = "Id of the notification."),
};
#undef S
static const struct field_table yes_no_table = FIELD_TABLE(struct question_said, yes_no_fields);
static const struct field_table option_table = FIELD_TABLE(struct question_said, option_fields);
static const struct field_table textbox_table = FIELD_TABLE(struct question_said, textbox_fields);
static const struct field_table form_table = FIELD_TABLE(struct question_said, form_fields);
static const struct field_table notify_table = FIELD_TABLE(struct question_said, notify_fields);

static const struct op_member yes_no_members[] = {
	KIND(QUESTION_YES_NO), QUESTION,       TIMEOUT,		 HIDDEN("title"),
	HIDDEN("options"),     HIDDEN("text"), HIDDEN("schema"), HIDDEN("allow_free_text"),
	HIDDEN("style"),       HIDDEN("wait"),
};
const struct tool ui_ask_yes_no_tool = {
	.conversations = true,
	.both = true,
	.op = &question_ask_op,
	.members = OP_MEMBERS(yes_no_members),
	.name = "ui_ask_yes_no",
	.title = "Ask yes or no",
	.doc = "Asks a person a question and waits for yes or no.",
	.output = &yes_no_table,
	.task = MCP_TASK_OPTIONAL,
};

#define OPTION_MEMBERS(kind_, max_)                                                                \
	{                                                                                          \
		KIND(kind_), TIMEOUT,                                                              \
			{ "question", .max = CHARS,                                                \
			  .def = DEFAULT_STR("Please select an option:") },                        \
			{ "options", .presence = OP_REQUIRED, .min = 1, .max = (max_) },           \
			HIDDEN("title"), HIDDEN("text"), HIDDEN("yes_label"), HIDDEN("no_label"),  \
			HIDDEN("schema"), HIDDEN("style"), HIDDEN("wait"),                         \
	}
static const struct op_member buttons_members[] = OPTION_MEMBERS(QUESTION_BUTTONS, BUTTONS_MAX);
const struct tool ui_options_buttons_tool = {
	.conversations = true,
	.both = true,
	.op = &question_ask_op,
	.members = OP_MEMBERS(buttons_members),
	.name = "ui_options_buttons",
	.title = "Ask by buttons",
	.doc = "Asks a person to choose one of up to 4 options, and waits.",
	.output = &option_table,
	.task = MCP_TASK_OPTIONAL,
};

static const struct op_member combo_members[] = OPTION_MEMBERS(QUESTION_SELECT, COMBO_MAX);
const struct tool ui_options_combo_tool = {
	.conversations = true,
	.both = true,
	.op = &question_ask_op,
	.members = OP_MEMBERS(combo_members),
	.name = "ui_options_combo",
	.title = "Ask by a list",
	.doc = "Asks a person to choose one of up to 10 options, and waits.",
	.output = &option_table,
	.task = MCP_TASK_OPTIONAL,
};

static const struct op_member textbox_members[] = {
	KIND(QUESTION_TEXTBOX),
	TIMEOUT,
	{ "title", .presence = OP_REQUIRED, .min = 1 },
	{ "question", .max = CHARS },
	HIDDEN("options"),
	HIDDEN("yes_label"),
	HIDDEN("no_label"),
	HIDDEN("schema"),
	HIDDEN("style"),
	HIDDEN("allow_free_text"),
	HIDDEN("wait"),
};
const struct tool ui_textbox_tool = {
	.conversations = true,
	.both = true,
	.op = &question_ask_op,
	.members = OP_MEMBERS(textbox_members),
	.name = "ui_textbox",
	.title = "Ask for a text",
	.doc = "Asks a person to write or change a text, and waits for it.",
	.output = &textbox_table,
	.task = MCP_TASK_OPTIONAL,
};

static const struct op_member form_members[] = {
	KIND(QUESTION_FORM),
	TIMEOUT,
	{ "title", .presence = OP_REQUIRED, .min = 1 },
	{ "question", .max = CHARS },
	{ "schema", .presence = OP_REQUIRED },
	HIDDEN("text"),
	HIDDEN("options"),
	HIDDEN("yes_label"),
	HIDDEN("no_label"),
	HIDDEN("style"),
	HIDDEN("wait"),
	HIDDEN("allow_free_text"),
};
const struct tool ui_form_tool = {
	.conversations = true,
	.both = true,
	.op = &question_ask_op,
	.members = OP_MEMBERS(form_members),
	.name = "ui_form",
	.title = "Ask by a form",
	.doc = "Asks a person to fill in a form, and waits for its values.",
	.output = &form_table,
	.task = MCP_TASK_OPTIONAL,
};

static const struct op_member notify_members[] = {
	KIND(QUESTION_NOTIFY),
	{ "title", .presence = OP_REQUIRED, .min = 1 },
	{ "question", .as = "message", .presence = OP_REQUIRED, .min = 1,
	  .doc = "Text of the notification." },
	{ "timeout_seconds", .in = OP_HIDDEN, .def = DEFAULT_INT(NOTICE_SECONDS) },
	{ "wait", .in = OP_HIDDEN, .def = DEFAULT_BOOL(false) },
	HIDDEN("text"),
	HIDDEN("options"),
	HIDDEN("yes_label"),
	HIDDEN("no_label"),
	HIDDEN("schema"),
	HIDDEN("allow_free_text"),
};
const struct tool ui_notify_tool = {
	.conversations = true,
	.both = true,
	.op = &question_ask_op,
	.members = OP_MEMBERS(notify_members),
	.name = "ui_notify",
	.title = "Tell a person",
	.doc = "Shows people a notification, and does not wait.",
	.output = &notify_table,
};

static const struct op_member ask_members[] = {
	{ "question", .max = CHARS },
	{ "timeout_seconds", .def = DEFAULT_INT(QUESTION_TOOL_SECONDS_MAX) },
	{ "wait", .in = OP_HIDDEN, .def = DEFAULT_BOOL(false) },
	HIDDEN("style"),
};
const struct tool ask_tool = {
	.conversations = true,
	.both = true,
	.op = &question_ask_op,
	.members = OP_MEMBERS(ask_members),
	.name = "ask",
	.title = "Ask without waiting",
	.doc = "Asks a person and returns at once with a request_id; ask_result has the answer.",
};

static const struct op_member result_members[] = { { "id", .as = "request_id" } };
const struct tool ask_result_tool = {
	.conversations = true,
	.both = true,
	.op = &question_result_op,
	.members = OP_MEMBERS(result_members),
	.name = "ask_result",
	.title = "Answer to a question",
	.doc = "Returns the answer to ask, or to a call that was cut off.",
};
