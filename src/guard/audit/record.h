#pragma once
/*
 * A line of the audit log: what one call was, or what happened to the log itself, as one JSON
 * object. Members stand in the order of the table, without white space, and texts have only
 * printable ASCII without quotes, so a record has exactly one form. The hash of a line is the
 * SHA-256 of its bytes without the newline; the next line has it in `prev`.
 *
 * A signature is Ed25519 over the line without its last member `sig`. A call's record with a
 * signature is its receipt.
 */
#include "base/buf.h"
#include "base/sha256.h"
#include "json/field/field.h"

enum {
	AUDIT_LINE_MAX = 1024, /* bytes of a line with its signature */
	AUDIT_HASH = SHA256_HEX,
};

/* Texts are borrowed. What is absent is STR_NONE. */
struct audit_record {
	uint64_t seq; /* from 1, without gaps */
	struct str prev; /* hash of the line before; of the first one, zeros */
	struct str time; /* 2026-11-24T15:12:42.123Z: when the call ended */
	/* What happened to the log, where it is no call: one of audit_events. */
	struct str event;
	struct str session; /* the run of a hub; absent for calls without one */

	/* Members of calls: */
	struct str id; /* run_ and 32 hex digits */
	struct str who, action, effect, target;
	struct str args, output; /* digests in hex */
	struct str decision, rule, approval;
	struct str outcome; /* "ok", or the name of the failure */
	bool timed;
	uint64_t ms, bytes;

	/* Members of events: */
	struct str version; /* begin: of Holt */
	bool counted;
	uint64_t count; /* seal: calls; cut: bytes; gap: calls that were refused */
	bool reaches;
	uint64_t upto; /* dropped, lost: the last seq that is gone, */
	struct str hash; /* and its hash */

	struct str key; /* names the public key of the signature */
	struct str sig;
};
extern const struct field_table audit_record_table;

/* A line without its newline. */
struct audit_line {
	size_t n;
	char text[AUDIT_LINE_MAX + 1]; /* NUL-terminated */
};

/* ERR_TOO_LARGE where it does not fit, which cleaned records always do. */
int audit_encode(const struct audit_record *r, struct audit_line *ret, struct err *e) MUST_USE;

/* Cuts texts that come from outside to their length, and replaces characters that a line may not
 * have by '?'. The texts of *r are then in a. */
int audit_clean(struct audit_record *r, struct arena *a, struct err *e) MUST_USE;

/* Strict; texts are borrowed from the document, which the caller frees. NULL with ERR_INVALID. */
struct json_doc *audit_decode(struct str text, struct arena *a, struct audit_record *ret,
			      struct err *e) MUST_USE;

/* "2026-11-24T15:12:42.123Z", in room. */
enum { AUDIT_TIME = 25 };
struct str audit_time(int64_t unix_ms, char room[AUDIT_TIME]);
