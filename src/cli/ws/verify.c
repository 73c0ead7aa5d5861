/* `holt ws verify`. */
#include "cli/common/safe.h"
#include "cli/ws/ws.h"

enum { VERIFY_DAMAGED = 3 };

static int verify_show(const struct json_val *v, const char *name, struct err *e)
{
	struct json_iter it = json_iter(json_get(v, "damages"));

	while (json_next(&it)) {
		printf("revision %.0f, /", json_real(json_get(it.val, "number")));
		safe_line(stdout, json_str(json_get(it.val, "path")));
		fputs(": ", stdout);
		safe_puts(stdout, json_str(json_get(it.val, "why")));
	}
	printf("%.0f revisions, %.0f objects, %.0f KiB of contents: %.0f damaged\n",
	       json_real(json_get(v, "revisions")), json_real(json_get(v, "objects")),
	       json_real(json_get(v, "bytes")) / 1024, json_real(json_get(v, "damaged")));
	return 0;
}

static int verify_status(const struct verb_input *in, const struct json_val *v)
{
	return json_real(json_get(v, "damaged")) > 0 ? VERIFY_DAMAGED : 0;
}

const struct verb ws_verify_verb = {
	.name = "ws verify",
	.usage = "[OPTION...] NAME",
	.doc = "Read everything its revisions need; exit with 3 on damage.",
	ASK(verb_output, .of = &workspaces, .more = "/verify", .show = verify_show,
	    .status = verify_status),
	.min_operands = 1,
};
