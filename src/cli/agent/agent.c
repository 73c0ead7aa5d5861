/* `holt agent`: coding agents of others, which run in sandboxes. A file and a row a word. */
#include "cli/common/verb.h"

extern const struct verb agent_acp_verb;
static const struct verb *const words[] = { &agent_acp_verb, NULL };

const struct verb agent_verb = {
	.name = "agent",
	.usage = "WORD [OPTION...]",
	.doc = "Run coding agents, such as Claude Code and Codex, in sandboxes.",
	.page = "holt-conversations",
	.options = &verb_bare,
	.size = sizeof(struct verb_options),
	.words = words,
};
