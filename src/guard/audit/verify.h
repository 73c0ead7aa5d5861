#pragma once
/*
 * Verifies the log, one file of it, or a receipt, with the public key alone.
 *
 * Of the log: each line follows the one before, by seq and hash; each signature is right; every
 * file that is missing was removed by retention; the log ends where `head` says; and each session
 * has its seal, which is a signature over all that comes before.
 */
#include "guard/audit/key.h"

enum audit_verdict {
	AUDIT_VERIFIED,
	AUDIT_MISMATCH, /* something was changed, or is missing */
	AUDIT_UNSEALED, /* nothing is wrong, but the end is not signed, or a session has no seal */
	AUDIT_NOT_FOUND,
};

struct audit_report {
	enum audit_verdict verdict;
	uint64_t records, calls, sessions;
	unsigned open; /* sessions without a seal, */
	unsigned running; /* of which so many run still */
	char why[320]; /* one line: what is wrong, or not known; "" where all is right */
};

/* All of the log in a folder. */
void audit_verify_log(int folder, const struct audit_public *p, struct audit_report *ret);

/* One file of a log, wherever it is. */
void audit_verify_file(int fd, const struct audit_public *p, struct audit_report *ret);

/* A receipt: one JSON object, however it is spaced. folder: of the log, to compare with what it
 * has, or -1. */
void audit_verify_receipt(struct str text, int folder, const struct audit_public *p,
			  struct audit_report *ret);

/* The line of a call, searched from the newest on. 1: found; 0: not; -1 with *e. */
int audit_find(int folder, struct str id, struct audit_line *ret, struct err *e) MUST_USE;

/* Whether the text is one JSON object and no more, as receipts are. */
bool audit_is_receipt(struct str text);
