#pragma once
/* What several tools share: rows of their tables, and small conversions. */
#include "box/host/box.h"
#include "hub/sandbox/life.h"
#include "json/field/field.h"
#include "op/call.h"

/* The first argument of all but sandbox_create. */
#define TOOL_SANDBOX                                                                               \
	{                                                                                          \
		"sandbox",                                                                         \
			.doc = "Id of the sandbox, as sandbox_create or sandbox_fork returned it." \
	}

enum { TOOL_PATH_MAX = 4095 };

enum encoding { ENCODING_UTF8, ENCODING_BASE64, ENCODINGS };
extern const char *const encoding_names[ENCODINGS];

/* The bytes that an argument stands for: itself, or what it is in base64, in the call's arena.
 * name is the argument's, for the error. */
int tool_bytes(struct call *c, const char *name, struct str text, enum encoding encoding,
	       struct str *ret, struct err *e) MUST_USE;
