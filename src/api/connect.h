#pragma once
/*
 * The service sandbox.v1.Sandbox as Connect-JSON: a unary method is a POST of application/json, one
 * that streams has application/connect+json, whose messages are frames (api/frame.h). Names of members
 * are those of protocol buffers in JSON: in camel case, bytes in base64.
 */
#include "api/common.h"

#define CONNECT_PATH "/sandbox.v1.Sandbox/"

/* The request's header: which sandbox. */
struct connect_header {
	struct str sandbox;
};
extern const struct field_table connect_header_table;
#define CONNECT_HEADER(S)                                                                          \
	FIELD_OBJECT(S, header, connect_header_table, .flags = FIELD_REQUIRED,                     \
		     .doc = "The sandbox that is meant.")
#define CONNECT_BODY(S, table_, doc_) FIELD_OBJECT(S, body, table_, .doc = doc_)

/* Appends the bytes that base64 stands for; name is the member's. */
int connect_bytes(struct buf *to, const char *name, struct str base64, struct err *e) MUST_USE;
