#pragma once
/*
 * Errors: a fixed-size value that the caller owns. A function that can fail takes `struct err *e`
 * last, returns 0 or more on success and -1 (or NULL) with *e filled otherwise. Whoever ends a
 * request logs the error or returns it, never both.
 *
 * A message is one line that is safe to show to a model: no host path, no secret, no address.
 * What a code means to each kind of client (JSON-RPC, HTTP, exit status, retry, remedy) stands in
 * one table, base/err_table.h, and nowhere else.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#define MUST_USE __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt_at, args_at) __attribute__((format(printf, fmt_at, args_at)))

enum err_code {
	ERR_NONE,
#define ERR_ROW(code, ...) ERR_##code,
#include "base/err_table.h"
#undef ERR_ROW
	ERR_CODES
};

enum { ERR_MSG_MAX = 256, ERR_POINTER_MAX = 168 };

struct err {
	enum err_code code;
	char msg[ERR_MSG_MAX];
	/* JSON pointer (RFC 6901) to the value at fault in the caller's document; empty: there is
	 * none, or it is the whole document. */
	char pointer[ERR_POINTER_MAX];
};

#define ERR_INIT ((struct err){ .code = ERR_NONE })

/* The kind of reaction that helps; err_table.h says what each means. */
enum err_failure {
	FAILURE_POLICY,
	FAILURE_VALIDATION,
	FAILURE_TIMEOUT,
	FAILURE_GUEST,
	FAILURE_TRANSPORT,
	FAILURE_CLEANUP,
	ERR_FAILURES
};

/* The meaning of one code outside; static, never freed. */
struct err_info {
	const char *name; /* on the wire: "sandbox_not_found" */
	const char *remediation; /* what the reader can do, one sentence or two */
	int jsonrpc; /* JSON-RPC 2.0 error code, where the failure is one of the protocol */
	int http; /* HTTP status */
	int exit; /* exit status of the CLI */
	bool retryable; /* the same call may succeed later, unchanged */
	enum err_failure failure;
};

/* Borrowed for ever. An unknown code gives the row of ERR_BUG. */
const struct err_info *err_info(enum err_code code);

/* Fills *e, its pointer empty, and returns -1, so that a failing function ends in one line. */
int err_set(struct err *e, enum err_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Sets the code of ENOSPC in this process. First ERR_DISK_FULL, a sandbox's own disk; where it is
 * the host's, ERR_STORE_FULL. */
void err_full_is(enum err_code code);

/* The same for a system call's errno: picks the code from it (ENOENT, ENOSPC, EMFILE, …; else
 * ERR_IO) and appends strerror's text. */
int err_sys(struct err *e, int errnum, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Puts context before the message of an error already set ("fork: create child: …"); -1. */
int err_wrap(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* A process ended without a result; wait_status: as of waitpid(2). One that was killed, or had no
 * processor time left, says nothing against its input; any other end is `otherwise`. -1. */
int err_ended(struct err *e, int wait_status, enum err_code otherwise, const char *process);

/* Says of an error already set that what has failed may have been done all the same; -1. */
int err_unsure(struct err *e);

/* Sets the pointer of an error already set; -1. */
int err_point(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);
