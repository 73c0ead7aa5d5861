#pragma once
/*
 * JSON-RPC 2.0 messages, without I/O: what a parsed value is, and how answers are written.
 *
 * Ids are strings or 64-bit integers and come back with type and value intact; null, fractions and
 * ids of more than RPC_ID_MAX bytes are refused. Unknown members of a message are ignored, as the
 * specification of MCP wants.
 */
#include "json/document/json.h"
#include "json/document/write.h"

enum rpc_code {
	RPC_PARSE_ERROR = -32700,
	RPC_INVALID_REQUEST = -32600,
	RPC_METHOD_NOT_FOUND = -32601,
	RPC_INVALID_PARAMS = -32602,
	RPC_INTERNAL_ERROR = -32603,
};

enum { RPC_ID_MAX = 256 };

/* An id in its JSON form ("7", "\"a\""), the one form in which it is compared and echoed. */
struct rpc_id {
	unsigned short n; /* 0: there is none, or it could not be read */
	char json[RPC_ID_MAX];
};

/* False, and *ret is none, unless v is an id. */
bool rpc_id_read(const struct json_val *v, struct rpc_id *ret);

enum { RPC_DIGITS = 20 };

/* Writes u in decimal, without a NUL; how many digits. Several times as fast as printf's, and every
 * request has such numbers. */
size_t rpc_put_uint(char to[RPC_DIGITS], uint64_t u);

static inline struct str rpc_id_str(const struct rpc_id *id)
{
	return (struct str){ id->json, id->n };
}

enum rpc_kind {
	RPC_REQUEST,
	RPC_NOTIFICATION,
	RPC_RESPONSE, /* result or error of a request of ours */
};

/* Borrowed from the document. */
struct rpc_msg {
	enum rpc_kind kind;
	struct rpc_id id; /* none in a notification, and in an error response without one */
	struct str method; /* request, notification */
	const struct json_val *params; /* NULL, an object or an array */
	const struct json_val *result, *error; /* response: exactly one */
};

enum { RPC_DATA_MAX = 512 };

/* What to answer to a message that can't be served. */
struct rpc_fault {
	int code; /* enum rpc_code, or one of the protocol above */
	int status; /* for that protocol: 0 unless it sets it */
	char message[256];
	const char *reason; /* data.code, a name of base/err_table.h; NULL for none */
	char data[RPC_DATA_MAX]; /* JSON, in place of reason; "" for none */
};

/* Parses a text for JSON-RPC: 0, or -1 with the fault (-32700 where it is no JSON, -32600 where it
 * goes over a bound of o, -32603 without memory) and the id of the request, if one can be found by
 * its brackets and quotes alone (rpc/sniff.h). Duplicate keys are left to rpc_read(), so that the
 * id can be named. o may be NULL. */
int rpc_parse(struct str text, const struct json_options *o, struct json_doc **ret,
	      struct rpc_fault *ret_fault, struct rpc_id *ret_id) MUST_USE;

/* Classifies one message (not a batch): 0, or -1 with the fault -32600 and, where it could be
 * read, ret->id. A broken message that can only be a response or a notification is never answered:
 * *ret_silent tells. */
int rpc_read(const struct json_val *v, struct rpc_msg *ret, struct rpc_fault *ret_fault,
	     bool *ret_silent) MUST_USE;

/* -1, for returning. */
int rpc_fault_set(struct rpc_fault *f, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* One whole error message. Without an id (NULL, or none) it has no such member: every schema of MCP
 * allows that or requires an id, and none allows null. */
void rpc_write_fault(struct json_writer *w, const struct rpc_id *id, const struct rpc_fault *f);
/* The object of its member "error". */
void rpc_write_error(struct json_writer *w, const struct rpc_fault *f);

/* {"jsonrpc":"2.0","id":…,"result": and, after exactly one value, the end. */
void rpc_write_result(struct json_writer *w, const struct rpc_id *id);
/* {"jsonrpc":"2.0","id":…,"method":…,"params": likewise. */
void rpc_write_request(struct json_writer *w, uint64_t id, const char *method);
/* {"jsonrpc":"2.0","method":…,"params": and, after exactly one value, the end. */
void rpc_write_notification(struct json_writer *w, const char *method);
void rpc_write_end(struct json_writer *w);
