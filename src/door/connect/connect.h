#pragma once
/*
 * The service sandbox.v1.Sandbox as Connect-JSON: a unary method is a POST of application/json, one
 * that streams has application/connect+json, whose messages are frames (door/http/frame.h). Names
 * of members are those of protocol buffers in JSON: in camel case, bytes in base64.
 */
#include "door/http/common.h"
#include "op/files.h"

#define CONNECT_PATH "/sandbox.v1.Sandbox/"

/* ---- requests ------------------------------------------------------------------------------ */

/* The request's header: which sandbox. */
#define CONNECT_BY_HEADER                                                                          \
	{                                                                                          \
		"sandbox", .as = "X-Sandbox-Id", .in = OP_HEADER                                   \
	}

/* Appends the bytes that base64 stands for; name is the member's. */
int connect_bytes(struct buf *to, const char *name, struct str base64, struct err *e) MUST_USE;

/* The text of a message on a WebSocket: each is binary, and one frame. */
int connect_unpack(bool is_text, struct str message, struct str *ret, struct err *e) MUST_USE;

/* ---- answers ------------------------------------------------------------------------------- */

/* The answer of a method that has nothing to say. */
extern const struct field_table connect_empty_table;

/* Answers a call of API_FRAMES with one message, which ends it. */
void connect_answer(struct call *c, const struct field_table *t, const void *from);

/* Tells a struct file_chunk. */
void connect_tell_chunk(struct call *c, const void *event);

struct connect_written {
	uint64_t bytes_written;
};
extern const struct field_table connect_written_table;

/* ---- rows ---------------------------------------------------------------------------------- */

/* The row of a method about a path, which answers with one object; may_: more errors than usual. */
#define CONNECT_PROJECTION_MAY(may_, name_, op_, members_, ...)                                    \
	{                                                                                          \
		.id = name_, .op = op_, .projected = true, .members = OP_MEMBERS(members_),        \
		.kind = API_CONNECT, .method = HTTP_POST, .path = CONNECT_PATH name_,              \
		.errors = API_MAY_SANDBOX | API_MAY(FILE_FAILED) | API_MAY(FORBIDDEN) |            \
			  API_MAY(EXEC_TIMEOUT) | API_MAY(TOO_MANY_STREAMS) | (may_),              \
		__VA_ARGS__                                                                        \
	}
#define CONNECT_PROJECTION(...) CONNECT_PROJECTION_MAY(0, __VA_ARGS__)
