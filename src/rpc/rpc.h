#pragma once
/*
 * JSON-RPC 2.0 messages, without I/O: classifies parsed values, and writes messages.
 *
 * Ids are strings or 64-bit integers, and are echoed with type and value intact; null, fractions
 * and ids of more than RPC_ID_MAX bytes are refused; in a response, 1.0 is 1. Unknown members of a
 * message are ignored, as MCP requires, and so are params, and members of other kinds of messages,
 * that are null.
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

/* An id in its JSON form ("7", "\"a\""), in which it is compared and echoed. */
struct rpc_id {
	unsigned short n; /* 0: absent or unreadable */
	char json[RPC_ID_MAX];
};

/* False, with *ret empty, unless v is an id. */
bool rpc_id_read(const struct json_val *v, struct rpc_id *ret);

enum { RPC_DIGITS = 20 };

/* Writes u in decimal without a NUL and returns the number of digits. Several times faster than
 * printf, and every request has such numbers. */
size_t rpc_put_uint(char to[RPC_DIGITS], uint64_t u);

static inline struct str rpc_id_str(const struct rpc_id *id)
{
	return (struct str){ id->json, id->n };
}

enum rpc_kind {
	RPC_REQUEST,
	RPC_NOTIFICATION,
	RPC_RESPONSE, /* result or error of our own request */
};

/* Borrowed from the document. */
struct rpc_msg {
	enum rpc_kind kind;
	struct rpc_id id; /* empty in a notification, and in an error response without an id */
	struct str method; /* request, notification */
	const struct json_val *params; /* NULL, an object or an array */
	const struct json_val *result, *error; /* response: exactly one */
};

enum { RPC_DATA_MAX = 512 };

/* The error to answer a message with. */
struct rpc_fault {
	int code; /* enum rpc_code, or one of the protocol above */
	int status; /* used by the protocol above; 0 unless it sets it */
	char message[256];
	/* For data: {"code","cause","remediation","failure","retryable"}; NULL for none. Set by
	 * rpc_fault_set() for the codes above. */
	const struct err_info *reason;
	/* With a reason, an object whose members data has as well; else all of data. "": none */
	char data[RPC_DATA_MAX];
};

/* Parses a text for JSON-RPC. 0, or -1 with the fault: -32700 if it is not JSON, -32600 if it
 * exceeds a limit of o, -32603 without memory. *ret_id is then the request's id, if brackets and
 * quotes alone are enough to find it (rpc/sniff.h). Duplicate keys are left to rpc_read(), so that
 * it can name the id. o may be NULL. */
int rpc_parse(struct str text, const struct json_options *o, struct json_doc **ret,
	      struct rpc_fault *ret_fault, struct rpc_id *ret_id) MUST_USE;

/* Classifies one message (not a batch). 0, or -1 with the fault -32600 and, if it could be read,
 * ret->id. *ret_silent is set for a broken message that can only be a response or a notification:
 * it must not be answered. */
int rpc_read(const struct json_val *v, struct rpc_msg *ret, struct rpc_fault *ret_fault,
	     bool *ret_silent) MUST_USE;

/* Returns -1. */
int rpc_fault_set(struct rpc_fault *f, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Writes a whole error message. The id is left out if it is NULL or empty: every schema of MCP
 * either allows that or requires an id; none allows null. */
void rpc_write_fault(struct json_writer *w, const struct rpc_id *id, const struct rpc_fault *f);
/* Writes the object of the member "error". */
void rpc_write_error(struct json_writer *w, const struct rpc_fault *f);

/* Writes {"jsonrpc":"2.0","id":…,"result": . The caller writes one value and rpc_write_end(). */
void rpc_write_result(struct json_writer *w, const struct rpc_id *id);
/* Writes {"jsonrpc":"2.0","id":…,"method":…,"params": . The caller goes on as above. */
void rpc_write_request(struct json_writer *w, uint64_t id, const char *method);
/* Writes {"jsonrpc":"2.0","method":…,"params": . The caller goes on as above. */
void rpc_write_notification(struct json_writer *w, const char *method);
void rpc_write_end(struct json_writer *w);
