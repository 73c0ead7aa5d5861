#include "cli/common/verb.h"

static int help_run(const struct verb_input *in, struct err *e)
{
	const struct verb *v;

	if (in->n_operands == 0) {
		cli_help_all(stdout);
		return 0;
	}
	v = cli_find(in->operands[0], e);
	for (int i = 1; v && i < in->n_operands; i++)
		v = cli_find_word(v, in->operands[i], e);
	if (!v)
		return -1;
	cli_help(v, stdout);
	return 0;
}

const struct verb help_verb = {
	.name = "help",
	.usage = "[VERB [WORD...]]",
	.doc = "Print this list, or the help of a verb.",
	.options = &verb_bare,
	.size = sizeof(struct verb_options),
	.max_operands = 3,
	.run = help_run,
};
