#include "door/http/error.h"

#include "base/base64.h"
#include "base/failure.h"
#include "json/document/put.h"

const struct api_code_row api_codes[API_CODES] = {
#define API_ROW(code, ...) [API_##code] = { __VA_ARGS__ },
#include "door/http/error_table.h"
#undef API_ROW
};

/* Maps each code of base/err_table.h; a missing one does not compile. */
enum {
	OF_INVALID = API_INVALID_INPUT,
	OF_SANDBOX_NOT_FOUND = API_NOT_FOUND,
	OF_TEMPLATE_NOT_FOUND = API_NOT_FOUND,
	OF_IMAGE = API_INTERNAL,
	OF_SNAPSHOT_NOT_FOUND = API_NOT_FOUND,
	OF_CONVERSATION_NOT_FOUND = API_NOT_FOUND,
	OF_QUEUE_FULL = API_CONFLICT,
	OF_AGENT = API_MODULE_FAILED,
	OF_AGENT_LOGIN = API_MODULE_FAILED,
	OF_WORKSPACE_NOT_FOUND = API_NOT_FOUND,
	OF_WORKSPACE_BUSY = API_CONFLICT,
	OF_WORKSPACE_LARGE = API_BODY_TOO_LARGE,
	OF_WORKSPACE = API_INTERNAL,
	OF_OWNER = API_FORBIDDEN,
	OF_STORAGE_FULL = API_QUOTA_EXCEEDED,
	OF_MODULE_NOT_FOUND = API_NOT_FOUND,
	OF_MODULE_TOOL = API_NOT_FOUND,
	OF_MODULE_RESULT = API_NOT_FOUND,
	OF_MODULE_FAILED = API_MODULE_FAILED,
	OF_MODULE_START = API_MODULE_NOT_STARTED,
	OF_MODULE_UNAPPROVED = API_FORBIDDEN,
	OF_PACKAGE = API_MODULE_FAILED,
	OF_APPROVAL_NOT_FOUND = API_NOT_FOUND,
	OF_ANSWERED = API_ALREADY_ANSWERED,
	OF_QUESTION_NOT_FOUND = API_NOT_FOUND,
	OF_QUESTION_EXPIRED = API_EXPIRED,
	OF_SNAPSHOT = API_INVALID_INPUT,
	OF_DATA_MISSING = API_INTERNAL,
	OF_IMAGE_LARGE = API_INTERNAL,
	OF_TREE_DEEP = API_BODY_TOO_LARGE,
	OF_IMAGE_DISK = API_INTERNAL,
	OF_BUILD = API_INTERNAL,
	OF_PROGRAM = API_UNSUPPORTED,
	OF_PATH_NOT_FOUND = API_NOT_FOUND,
	OF_PROCESS_NOT_FOUND = API_NOT_FOUND,
	OF_KEY_NOT_FOUND = API_NOT_FOUND,
	OF_UNREAD = API_CONFLICT,
	OF_STALE = API_CONFLICT,
	OF_SECRET_NOT_FOUND = API_NOT_FOUND,
	OF_AUDIT_NOT_FOUND = API_NOT_FOUND,
	OF_PATH_DENIED = API_FORBIDDEN,
	OF_NOT_A_FILE = API_FILE_FAILED,
	OF_COMMAND_NOT_FOUND = API_EXEC_FAILED,
	OF_COMMAND_NOT_RUN = API_EXEC_FAILED,
	OF_DENIED = API_FORBIDDEN,
	OF_CONFLICT = API_CONFLICT,
	OF_NAME_TAKEN = API_CONFLICT,
	OF_UNSURE = API_OUTCOME_UNKNOWN,
	OF_OTHER_BUILD = API_UNAVAILABLE,
	OF_TOO_LARGE = API_BODY_TOO_LARGE,
	OF_LIMIT = API_QUOTA_EXCEEDED,
	OF_DISK_FULL = API_QUOTA_EXCEEDED,
	OF_PIDS_FULL = API_QUOTA_EXCEEDED,
	OF_MEMORY_FULL = API_QUOTA_EXCEEDED,
	OF_TIMEOUT = API_EXEC_TIMEOUT,
	OF_CANCELLED = API_CANCELED,
	OF_GUEST = API_SANDBOX_LOST,
	OF_IDLE = API_IDLE_TIMEOUT,
	OF_PORT = API_PORT_FAILED,
	OF_UNSUPPORTED = API_UNSUPPORTED,
	OF_NO_QUOTA = API_UNSUPPORTED,
	OF_TRANSPORT = API_UNAVAILABLE,
	OF_CLIENT_CANT = API_UNSUPPORTED,
	OF_CLIENT_FAILED = API_UNAVAILABLE,
	OF_CLEANUP = API_INTERNAL,
	OF_IO = API_INTERNAL,
	OF_BUG = API_INTERNAL,
	OF_PAUSED = API_CONFLICT,
	OF_STORE_FULL = API_INTERNAL,
	OF_STORE_CORRUPT = API_INTERNAL,
	OF_STORE_LOCKED = API_UNAVAILABLE,
	OF_STORE_READONLY = API_INTERNAL,
	OF_STORE_NEWER = API_INTERNAL,
	OF_FOLDER = API_INTERNAL,
	OF_UNAUTHORIZED = API_UNAUTHORIZED,
	OF_LINK = API_UNAUTHORIZED,
	OF_HOST = API_FORBIDDEN,
	OF_ORIGIN = API_FORBIDDEN,
	OF_ROUTE = API_NOT_FOUND,
	OF_METHOD = API_METHOD_NOT_ALLOWED,
	OF_MEDIA_TYPE = API_UNSUPPORTED_MEDIA_TYPE,
	OF_NOT_JSON = API_INVALID_JSON,
	OF_MESSAGE = API_INVALID_INPUT,
	OF_NO_METHOD = API_NOT_FOUND,
	OF_NOT_OFFERED = API_NOT_FOUND,
	OF_LOGIN = API_MODULE_FAILED,
	OF_UNTRUSTED = API_MODULE_FAILED,
	OF_NOT_PUBLIC = API_INTERNAL,
};
static const enum api_code of_err[ERR_CODES] = {
#define ERR_ROW(code, ...) [ERR_##code] = (enum api_code)OF_##code,
#include "base/err_table.h"
#undef ERR_ROW
};

enum api_code api_code_of(enum err_code code)
{
	return code > ERR_NONE && code < ERR_CODES ? of_err[code] : API_INTERNAL;
}

struct str api_dimension_of(enum err_code code)
{
	switch (code) {
	case ERR_DISK_FULL:
		return STR_LIT("disk");
	case ERR_PIDS_FULL:
		return STR_LIT("pids");
	case ERR_MEMORY_FULL:
		return STR_LIT("memory");
	case ERR_STORE_FULL:
		return STR_LIT("host_disk");
	default:
		return STR_NONE;
	}
}

/* ---- the envelope of /v1 ------------------------------------------------------------------- */

#define ABOUT(m, doc_) FIELD(struct call_about, m, .doc = doc_)
#define ABOUT_NUMBER(m, doc_)                                                                      \
	FIELD(struct call_about, m, .has = FIELD_HAS(struct call_about, has_##m), .doc = doc_)

static const struct field context_fields[] = {
	ABOUT(sandbox, "Id of the sandbox."),
	ABOUT(snapshot, "Id of the snapshot."),
	ABOUT(path, "Path in the sandbox."),
	ABOUT(exec_id, "Id of the exec that was started, whose output can be read."),
	ABOUT(op, "Operation that was requested."),
	ABOUT(dimension, "Resource whose limit was reached, such as disk or streams."),
	ABOUT_NUMBER(timeout_s, "Time limit that was exceeded, in seconds."),
	ABOUT_NUMBER(requested_s, "Requested time limit, in seconds."),
	ABOUT_NUMBER(max_timeout_s, "Maximum time limit, in seconds."),
	ABOUT_NUMBER(retry_after_ms, "Time to wait before trying again, in milliseconds."),
	ABOUT_NUMBER(exit_code, "Exit code that a shell would return: 127 if the program does "
				"not exist, 126 if it can't be run."),
};
static const struct field_table context_table = FIELD_TABLE(struct call_about, context_fields);

struct problem {
	struct str code, message, cause, remediation, pointer;
	enum err_failure failure;
	bool retryable;
	struct call_about context;
};
static const struct field problem_fields[] = {
	FIELD(struct problem, code, .flags = FIELD_REQUIRED,
	      .doc = "Stable error code, for programs."),
	FIELD(struct problem, message, .flags = FIELD_REQUIRED,
	      .doc = "Short description of the kind of error."),
	FIELD(struct problem, cause, .flags = FIELD_REQUIRED,
	      .doc = "What went wrong in this case."),
	FIELD(struct problem, remediation, .flags = FIELD_REQUIRED,
	      .doc = "What can be done about it."),
	FIELD_ENUM(struct problem, failure, err_failure_names, .flags = FIELD_REQUIRED,
		   .doc = "Class of the error, by the reaction that helps."),
	FIELD(struct problem, retryable, .flags = FIELD_REQUIRED,
	      .doc = "Whether the same request may succeed later, unchanged."),
	FIELD(struct problem, pointer,
	      .doc = "JSON pointer to the wrong value in the body, if there is one."),
	FIELD_OBJECT(struct problem, context, context_table, .flags = FIELD_REQUIRED,
		     .doc = "Details of the error."),
};
static const struct field_table problem_table = FIELD_TABLE(struct problem, problem_fields);

struct envelope {
	struct problem error;
};
static const struct field envelope_fields[] = {
	FIELD_OBJECT(struct envelope, error, problem_table, .flags = FIELD_REQUIRED,
		     .doc = "The error."),
};
const struct field_table api_problem_table = FIELD_TABLE(struct envelope, envelope_fields);

/* That of the code, where the failure is one of many kinds that clients need not tell apart: each
 * has a remedy of its own. */
static const char *remedy_of(const struct api_problem *p)
{
	bool many = p->code == API_INTERNAL || p->code == API_QUOTA_EXCEEDED ||
		    p->code == API_MODULE_FAILED || p->code == API_UNAUTHORIZED ||
		    p->code == API_FORBIDDEN;

	return many && api_code_of(p->e->code) == p->code ? err_info(p->e->code)->remediation
							  : api_codes[p->code].remediation;
}

static struct problem problem_of(const struct api_problem *p)
{
	const struct api_code_row *row = &api_codes[p->code];

	return (struct problem){
		.code = str_of(row->name),
		.message = str_of(row->message),
		.cause = str_of(p->e->msg),
		.remediation = str_of(remedy_of(p)),
		.failure = err_info(p->e->code)->failure,
		.retryable = err_info(p->e->code)->retryable,
		.pointer = *p->e->pointer ? str_of(p->e->pointer) : STR_NONE,
		.context = p->context,
	};
}

int api_problem_text(const struct api_problem *p, struct buf *to, struct err *e)
{
	struct json_writer w = json_writer(to);

	field_encode(&api_problem_table, &(struct envelope){ problem_of(p) }, &w);
	return json_write_done(&w, e);
}

/* ---- the envelope of Connect --------------------------------------------------------------- */

/* A string of a protocol buffer's message; 127 bytes at most. */
static int put_string(struct buf *to, unsigned field, struct str s, struct err *e)
{
	char head[2] = { (char)(field << 3 | 2), (char)s.n };

	return buf_add(to, head, sizeof(head), e) < 0 ? -1 : buf_add(to, s.p, s.n, e);
}

/* google.rpc.ErrorInfo: reason and domain, in base64 as a string of JSON. Connect wants no
 * padding. */
static void write_info(struct json_writer *w, const struct api_problem *p)
{
	autobuf struct buf info = BUF_INIT(256), text = BUF_INIT(512);
	struct err e;

	if (put_string(&info, 1, str_of(api_codes[p->code].name), &e) < 0 ||
	    put_string(&info, 2, STR_LIT("holt"), &e) < 0 ||
	    base64_encode(&text, buf_str(&info), &e) < 0) {
		json_write_fail(w, &e);
		return;
	}
	while (text.n && text.p[text.n - 1] == '=')
		text.n--;
	json_write_str(w, buf_str(&text));
}

int api_connect_text(const struct api_problem *p, struct buf *to, struct err *e)
{
	struct json_writer w = json_writer(to);
	struct problem problem = problem_of(p);

	json_write_object(&w);
	json_put_text(&w, "code", api_codes[p->code].connect);
	json_put_text(&w, "message", p->e->msg);
	json_put_array(&w, "details");
	json_write_object(&w);
	json_put_text(&w, "type", "google.rpc.ErrorInfo");
	json_write_key(&w, "value");
	write_info(&w, p);
	json_write_key(&w, "debug");
	field_encode(&problem_table, &problem, &w);
	json_write_object_end(&w);
	json_write_array_end(&w);
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

int api_connect_status(const char *code)
{
	static const struct {
		const char *code;
		int status;
	} rows[] = {
		{ "canceled", 499 },
		{ "invalid_argument", 400 },
		{ "deadline_exceeded", 504 },
		{ "not_found", 404 },
		{ "already_exists", 409 },
		{ "permission_denied", 403 },
		{ "resource_exhausted", 429 },
		{ "failed_precondition", 400 },
		{ "aborted", 409 },
		{ "unimplemented", 501 },
		{ "unavailable", 503 },
		{ "unauthenticated", 401 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (strcmp(rows[i].code, code) == 0)
			return rows[i].status;
	}
	return 500;
}

/* ---- what the door refuses ----------------------------------------------------------------- */

static struct api_problem of_door(const struct http_problem *problem)
{
	struct api_problem p = {
		.code = problem->status == 429 ? API_RATE_LIMITED
		      : problem->status == 503 ? API_UNAVAILABLE
					       : api_code_of(problem->e->code),
		.e = problem->e,
		.context = { .has_retry_after_ms = problem->retry_after > 0,
			     .retry_after_ms = problem->retry_after * 1000ull },
	};

	return p;
}

int api_explain(const struct http_problem *problem, struct buf *to, struct err *e)
{
	struct api_problem p = of_door(problem);

	return api_problem_text(&p, to, e);
}

int api_connect_explain(const struct http_problem *problem, struct buf *to, struct err *e)
{
	struct api_problem p = of_door(problem);

	return api_connect_text(&p, to, e);
}
