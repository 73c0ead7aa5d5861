#include "door/http/common.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "op/exec.h"
#include "op/files.h"

struct sandbox *api_enter(struct call *c, struct str sandbox, struct str path)
{
	struct err e = ERR_INIT;
	struct sandbox *sb;

	call_about(c)->path = path;
	sb = exchange_sandbox(c, sandbox, &e);
	if (!sb)
		call_fail(c, &e);
	return sb;
}

static const struct field status_fields[] = {
	FIELD(struct api_status, status, .flags = FIELD_REQUIRED, .doc = "ok"),
};
const struct field_table api_status_table = FIELD_TABLE(struct api_status, status_fields);

void api_done(void *arg, const struct err *err)
{
	static const struct api_status ok = { STR_LIT("ok") };

	if (err)
		call_fail(arg, err);
	else
		call_answer(arg, &ok);
}

void api_tell_chunk(struct call *c, const void *event)
{
	exchange_write_bytes(c, ((const struct file_chunk *)event)->data);
}

/* ---- execs ---------------------------------------------------------------------------------- */

void api_exec_timeout(struct call *c, struct err *e)
{
	const struct exec_request *q = call_request(c);
	struct call_about *about = call_about(c);

	/* The result, which is beside it, has these. */
	about->exec_id = STR_NONE;
	about->has_exit_code = false;
	about->dimension = STR_LIT("wall");
	about->has_timeout_s = true;
	about->timeout_s = q->timeout_seconds;
	err_set(e, ERR_TIMEOUT, "the command was killed after %u s", q->timeout_seconds);
}
