#pragma once
/*
 * Failures as clients of /v1 and of /sandbox.v1.Sandbox see them. error_table.h lists all codes.
 * Code below the doors fails with a code of base/err.h, and api_code_of() maps it to one of these.
 */
#include "call/about.h"
#include "http/server/server.h"
#include "json/field/field.h"

enum api_code {
#define API_ROW(code, ...) API_##code,
#include "door/http/error_table.h"
#undef API_ROW
	API_CODES
};

struct api_code_row {
	const char *name;
	int http;
	const char *connect;
	const char *message, *remediation;
};
extern const struct api_code_row api_codes[API_CODES];

struct api_problem {
	enum api_code code;
	const struct err *e; /* borrowed */
	struct call_about context;
};

/* The code of a failure by its error alone. */
enum api_code api_code_of(enum err_code code);

/* The exhausted resource, as in struct call_about; STR_NONE where the code does not name one. */
struct str api_dimension_of(enum err_code code);

/* {"error":{"code","message","cause","remediation","failure","retryable","pointer","context"}} */
int api_problem_text(const struct api_problem *p, struct buf *to, struct err *e) MUST_USE;
/* {"code","message","details"}, as Connect has it. */
int api_connect_text(const struct api_problem *p, struct buf *to, struct err *e) MUST_USE;
int api_connect_status(const char *code);

/* The door's own refusals, in the form of either (struct http_routes). */
int api_explain(const struct http_problem *problem, struct buf *to, struct err *e);
int api_connect_explain(const struct http_problem *problem, struct buf *to, struct err *e);

/* The schema of the first, as OpenAPI shows it. */
extern const struct field_table api_problem_table;
