/* `holt audit show`: one record, or its receipt. */
#include <fcntl.h>
#include <stdio.h>

#include "cli/audit/audit.h"
#include "guard/audit/key.h"
#include "guard/audit/verify.h"

struct show_options {
	struct verb_options common;
	bool receipt;
};

static const struct option_row rows[] = {
	OPTION(struct show_options, receipt, OPTION_FLAG, "receipt",
	       .doc = "Print the receipt of the call: the record with a signature."),
	HELP_ROW(struct show_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static int show_run(const struct verb_input *in, struct err *e)
{
	const struct show_options *o = in->options;
	struct audit_line line;
	AUTO(audit_key_free) struct audit_key *k = NULL;
	autoclose int folder = audit_dir(e);
	int found = folder < 0 ? -1 : audit_find(folder, str_of(in->operands[0]), &line, e);

	if (found == 0 || e->code == ERR_PATH_NOT_FOUND) {
		if (found == 0)
			err_set(e, ERR_PATH_NOT_FOUND, "the audit log has no record %.48s",
				in->operands[0]);
		cli_fail(e);
		return AUDIT_EXIT_NOT_FOUND;
	}
	if (found < 0 ||
	    (o->receipt && (!(k = audit_key_open(folder, e)) || audit_sign(k, &line, e) < 0)))
		return -1;
	puts(line.text);
	return cli_flush(e);
}

const struct verb audit_show_verb = {
	.name = "audit show",
	.usage = "[OPTION...] ID",
	.doc = "Print the record of one call.",
	.more = "ID is the call's Audit-Id. The exit status is 3 where there is no such record.",
	.options = &options,
	.size = sizeof(struct show_options),
	.min_operands = 1,
	.usage_exit = 125,
	.run = show_run,
};
