#include "base/failure.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static const struct err_info infos[ERR_CODES] = {
#define ERR_ROW(code_, name_, rpc_, http_, exit_, retry_, failure_, remedy_)                       \
	[ERR_##code_] = { .name = name_,                                                           \
			  .remediation = remedy_,                                                  \
			  .jsonrpc = rpc_,                                                         \
			  .http = http_,                                                           \
			  .exit = exit_,                                                           \
			  .retryable = retry_,                                                     \
			  .failure = FAILURE_##failure_ },
#include "base/err_table.h"
#undef ERR_ROW
};

const char *const err_failure_names[ERR_FAILURES] = {
	[FAILURE_POLICY] = "policy_denied",
	[FAILURE_VALIDATION] = "validation_failed",
	[FAILURE_TIMEOUT] = "timeout",
	[FAILURE_GUEST] = "guest_failed",
	[FAILURE_TRANSPORT] = "transport_failed",
	[FAILURE_CLEANUP] = "cleanup_failed",
};

static const struct {
	int errnum;
	enum err_code code;
} from_errno[] = {
	{ ENOENT, ERR_PATH_NOT_FOUND }, { ENOTDIR, ERR_PATH_NOT_FOUND },
	{ EACCES, ERR_PATH_DENIED },	{ EROFS, ERR_PATH_DENIED },
	{ EPERM, ERR_PATH_DENIED },	{ EISDIR, ERR_NOT_A_FILE },
	{ EEXIST, ERR_CONFLICT },	{ ENOTEMPTY, ERR_CONFLICT },
	{ EBUSY, ERR_CONFLICT },	{ ETXTBSY, ERR_CONFLICT },
	{ EMFILE, ERR_LIMIT },		{ ENFILE, ERR_LIMIT },
	{ ENOMEM, ERR_LIMIT },		{ EAGAIN, ERR_LIMIT },
	{ ETOOMANYREFS, ERR_LIMIT },	{ ENOBUFS, ERR_LIMIT },
	{ EFBIG, ERR_TOO_LARGE },	{ ENAMETOOLONG, ERR_INVALID },
	{ ELOOP, ERR_INVALID },		{ EINVAL, ERR_INVALID },
	{ EXDEV, ERR_INVALID },		{ ETIMEDOUT, ERR_TIMEOUT },
	{ ENOSYS, ERR_UNSUPPORTED },	{ EPIPE, ERR_TRANSPORT },
	{ ECONNRESET, ERR_TRANSPORT },
};

const struct err_info *err_info(enum err_code code)
{
	if (code <= ERR_NONE || code >= ERR_CODES)
		code = ERR_BUG;
	return &infos[code];
}

int err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
	va_list ap;

	e->code = code;
	e->pointer[0] = '\0';
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	return -1;
}

static enum err_code full = ERR_DISK_FULL;

void err_full_is(enum err_code code)
{
	full = code;
}

int err_sys(struct err *e, int errnum, const char *fmt, ...)
{
	va_list ap;
	size_t n;

	e->code = errnum == ENOSPC || errnum == EDQUOT ? full : ERR_IO;
	e->pointer[0] = '\0';
	for (size_t i = 0; i < sizeof(from_errno) / sizeof(from_errno[0]); i++) {
		if (from_errno[i].errnum == errnum)
			e->code = from_errno[i].code;
	}
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	n = strlen(e->msg);
	snprintf(e->msg + n, sizeof(e->msg) - n, ": %s", strerror(errnum));
	return -1;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
	char was[sizeof(e->msg)];
	va_list ap;
	size_t n;

	memcpy(was, e->msg, sizeof(was));
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	n = strlen(e->msg);
	snprintf(e->msg + n, sizeof(e->msg) - n, ": %s", was);
	return -1;
}

int err_unsure(struct err *e)
{
	e->code = ERR_UNSURE;
	return err_wrap(e, "it may have been done");
}

int err_ended(struct err *e, int wait_status, enum err_code otherwise, const char *process)
{
	int signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;

	if (signal == SIGKILL)
		return err_set(e, ERR_IO, "%s was killed, by somebody or because memory is used up",
			       process);
	if (signal == SIGXCPU)
		return err_set(e, ERR_TOO_LARGE, "%s has used up its processor time", process);
	if (signal)
		return err_set(e, otherwise, "%s ended early (signal %d)", process, signal);
	return err_set(e, otherwise, "%s ended early", process);
}

int err_point(struct err *e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(e->pointer, sizeof(e->pointer), fmt, ap);
	va_end(ap);
	return -1;
}
