/* The subcommands of `holt mcp`: a file and a row each. */
#include "cli/common/verb.h"

extern const struct verb mcp_call_verb, mcp_tools_verb, mcp_resources_verb, mcp_prompts_verb;
extern const struct verb mcp_read_verb, mcp_get_verb, mcp_complete_verb, mcp_discover_verb;
extern const struct verb mcp_request_verb, mcp_logout_verb, mcp_import_verb;

const struct verb *const mcp_words[] = {
	&mcp_discover_verb, &mcp_tools_verb,   &mcp_call_verb,	 &mcp_resources_verb,
	&mcp_read_verb,	    &mcp_prompts_verb, &mcp_get_verb,	 &mcp_complete_verb,
	&mcp_request_verb,  &mcp_logout_verb,  &mcp_import_verb, NULL,
};
