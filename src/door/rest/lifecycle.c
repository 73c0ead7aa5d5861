/* The rest of a sandbox's life: how long it lasts, pause, resume. */
#include "door/http/common.h"

/* ---- set_timeout --------------------------------------------------------------------------- */

enum { TIMEOUT_MAX = 30 * 86400 };

struct timeout_body {
	struct str sandbox;
	uint32_t timeout_seconds;
};
static const struct field timeout_fields[] = {
	API_SANDBOX_ROW(struct timeout_body),
	FIELD(struct timeout_body, timeout_seconds, .flags = FIELD_REQUIRED, .min = 1,
	      .doc = "Its time to live, from now; at most 2592000."),
};
static const struct field_table timeout_body = FIELD_TABLE(struct timeout_body, timeout_fields);

struct timeout_params {
	struct timeout_body body;
};
static const struct field timeout_parts[] = {
	FIELD_OBJECT(struct timeout_params, body, timeout_body, .flags = FIELD_REQUIRED,
		     .doc = "The sandbox, and how long."),
};
static const struct field_table timeout_input = FIELD_TABLE(struct timeout_params, timeout_parts);

struct deadline {
	struct str status;
	int64_t deadline_unix;
	uint32_t timeout_seconds;
};
static const struct field deadline_fields[] = {
	FIELD(struct deadline, status, .flags = FIELD_REQUIRED, .doc = "ok"),
	FIELD(struct deadline, deadline_unix, .flags = FIELD_REQUIRED,
	      .doc = "When its time is over, in seconds since 1970."),
	FIELD(struct deadline, timeout_seconds, .flags = FIELD_REQUIRED, .doc = "As asked for."),
};
static const struct field_table deadline_table = FIELD_TABLE(struct deadline, deadline_fields);

static void refuse_timeout(struct call *c, uint32_t seconds)
{
	struct call_about *about = call_about(c);
	struct err e;

	about->has_requested_s = about->has_max_timeout_s = true;
	about->requested_s = seconds;
	about->max_timeout_s = TIMEOUT_MAX;
	err_set(&e, ERR_INVALID, "a sandbox can be given %d seconds, not %u", TIMEOUT_MAX, seconds);
	ask_fail_as(c, API_TIMEOUT_TOO_LARGE, &e);
}

static void run_set_timeout(struct call *c, const void *params)
{
	const struct timeout_body *p = &((const struct timeout_params *)params)->body;
	struct err e = ERR_INIT;
	struct life *l = call_life(c, p->sandbox, &e);
	struct deadline answer = { STR_LIT("ok"), 0, p->timeout_seconds };
	struct life_info i;

	if (l && p->timeout_seconds > TIMEOUT_MAX) {
		refuse_timeout(c, p->timeout_seconds);
	} else if (!l || life_set_timeout(l, p->timeout_seconds * 1000ull, &e) < 0) {
		call_fail(c, &e);
	} else {
		life_info(l, &i);
		answer.deadline_unix = (i.deadline_ms + 999) / 1000;
		call_answer(c, &answer);
	}
}

/* ---- pause and resume ---------------------------------------------------------------------- */

struct sandbox_body {
	struct str sandbox;
};
static const struct field sandbox_fields[] = { API_SANDBOX_ROW(struct sandbox_body) };
static const struct field_table sandbox_body = FIELD_TABLE(struct sandbox_body, sandbox_fields);

struct sandbox_params {
	struct sandbox_body body;
};
static const struct field sandbox_parts[] = {
	FIELD_OBJECT(struct sandbox_params, body, sandbox_body, .flags = FIELD_REQUIRED,
		     .doc = "The sandbox."),
};
static const struct field_table sandbox_input = FIELD_TABLE(struct sandbox_params, sandbox_parts);

static void end(struct call *c, const char *status, const struct err *err)
{
	const struct api_status answer = { str_of(status) };

	if (err)
		call_fail(c, err);
	else
		call_answer(c, &answer);
}

static void on_paused(void *arg, struct life *l, const struct err *err)
{
	end(arg, "paused", err);
}

static void on_resumed(void *arg, struct life *l, const struct err *err)
{
	end(arg, "running", err);
}

static void run_pause(struct call *c, const void *params)
{
	const struct sandbox_params *p = params;
	struct err e = ERR_INIT;
	struct life *l = call_life(c, p->body.sandbox, &e);

	if (l)
		life_pause_start(l, on_paused, c);
	else
		call_fail(c, &e);
}

static void run_resume(struct call *c, const void *params)
{
	const struct sandbox_params *p = params;
	struct err e = ERR_INIT;
	struct life *l = call_life(c, p->body.sandbox, &e);

	if (l)
		life_resume_start(l, on_resumed, c);
	else
		call_fail(c, &e);
}

static const struct api_route rows[] = {
	{ .id = "set_timeout",
	  .op = &(const struct op){ .action = "sandbox.set_timeout",
				    .doc = "Gives a sandbox its time to live anew.",
				    .effect = OP_WRITE,
				    .flags = OP_IDEMPOTENT,
				    .request = &timeout_input,
				    .target = OP_TARGET(struct timeout_params, body.sandbox),
				    .result = &deadline_table,
				    .run = run_set_timeout },
	  .method = HTTP_POST,
	  .path = "/v1/set_timeout",
	  .errors = API_MAY_SANDBOX | API_MAY(TIMEOUT_TOO_LARGE) },
	{ .id = "pause",
	  .op = &(const struct
		  op){ .action = "sandbox.pause",
		       .doc = "Stops all that runs in a sandbox; it uses no processor until it is resumed.",
		       .effect = OP_WRITE,
		       .flags = OP_IDEMPOTENT,
		       .request = &sandbox_input,
		       .target = OP_TARGET(struct sandbox_params, body.sandbox),
		       .result = &api_status_table,
		       .run = run_pause },
	  .method = HTTP_POST,
	  .path = "/v1/pause",
	  .errors = API_MAY_SANDBOX | API_MAY(UNSUPPORTED) },
	{ .id = "resume",
	  .op = &(const struct op){ .action = "sandbox.resume",
				    .doc = "Lets all that runs in a paused sandbox go on.",
				    .effect = OP_WRITE,
				    .flags = OP_IDEMPOTENT,
				    .request = &sandbox_input,
				    .target = OP_TARGET(struct sandbox_params, body.sandbox),
				    .result = &api_status_table,
				    .run = run_resume },
	  .method = HTTP_POST,
	  .path = "/v1/resume",
	  .errors = API_MAY_SANDBOX | API_MAY(UNSUPPORTED) | API_MAY(FILE_FAILED) },
};
const struct api_resource api_lifecycle = API_RESOURCE(rows);
