#pragma once
/* Questions to people as clients see them, and the inbox, in which requests for approval stand
 * beside them. */
#include "ask/question.h"
#include "op/approval.h"
#include "op/conversation/conversation.h"

enum { QUESTION_TOOL_SECONDS_MAX = 3600, QUESTION_SECONDS = 300 };

/* What came of a question, for who asked it. */
struct question_said {
	struct str request_id;
	enum question_state state;
	struct str response; /* of yes or no: yes, no, timeout or cancelled; "": pending */
	struct str selected, label; /* the same; "": none */
	int32_t index; /* of the option; -1: none */
	bool timed_out, cancelled;
	bool has_changed, changed; /* of a textbox */
	bool submitted; /* of a form */
	bool success; /* it is asked */
	struct str free_text;
	struct field_json values;
	struct str expires_at, answered_by, answered_at;
};

struct question_view {
	struct str request_id, session_id, principal;
	enum question_kind kind;
	enum question_origin origin;
	enum question_state state;
	struct str title, question;
	struct {
		const struct question_option *p;
		size_t n;
	} options;
	bool allow_free_text;
	struct str text;
	struct field_json schema;
	bool has_style;
	enum question_style style;
	struct str tool_call_id, created_at, expires_at, answered_by, answered_over, answered_at;
	struct str option_id, label, free_text;
	struct field_json values;
	bool has_approval; /* it is a request for approval */
	struct approval_view approval;
	int64_t deadline_ms; /* for the order */
};
extern const struct field_table question_view_table;

/* ERR_UNSUPPORTED: nobody can be asked here. */
struct questions *question_all(const struct call *c, struct err *e) MUST_USE;

/* For whom the call asks: principal, origin, and the conversation if it speaks for one, which must
 * permit it. session_id: of the request; may be STR_NONE. */
int question_asker(struct call *c, struct str session_id, struct question_ask *ask,
		   struct err *e) MUST_USE;

/* The question, if it is; else ERR_QUESTION_NOT_FOUND. */
const struct question *question_seen(const struct call *c, struct str id, struct err *e) MUST_USE;

/* Copies into the call's arena, since the next change of any may free it. */
const struct question_view *question_describe(struct call *c, const struct question *q,
					      struct err *e) MUST_USE;

/* ---- form.c: the same for the person at a client of MCP -------------------------------------- */

/* Text and schema of a form that asks it, of the arena. */
int question_form(const struct question *q, struct arena *a, struct str *ret_text,
		  struct str *ret_schema, struct err *e) MUST_USE;
/* What the form's values answer. */
int question_read_form(const struct question *q, const struct json_val *values, struct arena *a,
		       struct question_reply *ret, struct err *e) MUST_USE;
