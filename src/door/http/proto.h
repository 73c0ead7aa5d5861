#pragma once
/*
 * Messages of protocol buffers (proto3's wire), which some clients of Connect speak instead of
 * JSON. Bytes in, bytes out. A message that comes becomes JSON of the same message, for the decoder
 * that checks all else; one that goes is written from a struct and its field table, by the same
 * names. The tables nest as deep as their author wrote them, so a message does, too.
 *
 * Debian's libraries were tried. protobuf-c 1.4.1 has 31 KB of code, where this has 7, and needs
 * protoc at build time. For a request of 1 MiB with unknown fields it allocates 60 MiB. It ends a
 * text at its first NUL, so the checked text would not be the one that was sent, and accepts texts
 * that are not UTF-8. nanopb needs a generator in Python and a callback for each text and list.
 */
#include "json/field/field.h"

enum proto_kind {
	PROTO_TEXT,
	PROTO_BYTES, /* base64 in JSON */
	PROTO_BOOL,
	PROTO_INT, /* int32; int64 in messages that go */
	PROTO_UINT, /* uint32; likewise */
	PROTO_REAL, /* double; only of messages that go */
	PROTO_MESSAGE,
};

struct proto_message;
struct proto_field {
	unsigned number;
	const char *name; /* as JSON has it */
	enum proto_kind kind;
	const struct proto_message *of; /* of PROTO_MESSAGE */
	bool repeated;
};
struct proto_message {
	const struct proto_field *p;
	size_t n;
	bool one_of; /* of its fields, only the last that stands counts */
};
#define PROTO(fields_, ...)                                                                        \
	{                                                                                          \
		.p = (fields_), .n = ARRAY_LEN(fields_), ##__VA_ARGS__                             \
	}

/* At most so many bytes of JSON come of a message of n: each may have to be escaped. */
#define PROTO_JSON_MAX(n) (6 * (n) + 4096)

/* As the format wants, fields without a row or of another form are read over, and of a field that
 * stands several times and is not repeated, the last counts; messages are merged. What is no
 * message is ERR_INVALID. */
int proto_to_json(const struct proto_message *m, struct str bytes, struct buf *to,
		  struct err *e) MUST_USE;

/* Rows of t that m has not are left out, and so is what is 0 or empty, as the format wants. */
int proto_encode(const struct proto_message *m, const struct field_table *t, const void *from,
		 struct buf *to, struct err *e) MUST_USE;
