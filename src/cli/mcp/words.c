/* The subcommands of `holt mcp`: a file and a row each. */
#include "cli/common/verb.h"

extern const struct verb mcp_call_verb, mcp_tools_verb, mcp_read_verb, mcp_discover_verb;
extern const struct verb mcp_logout_verb, mcp_import_verb, mcp_config_verb;
/* Those about the hub's modules: cli/modules. */
extern const struct verb mcp_list_verb, mcp_info_verb, mcp_approve_verb, mcp_revoke_verb;
extern const struct verb mcp_enable_verb, mcp_disable_verb, mcp_test_verb, mcp_logs_verb;
extern const struct verb mcp_search_verb, mcp_disconnect_verb, mcp_add_verb, mcp_remove_verb;
extern const struct verb mcp_allow_verb, mcp_update_verb;

const struct verb *const mcp_words[] = {
	&mcp_discover_verb, &mcp_tools_verb,
	&mcp_call_verb,	    &mcp_read_verb,
	&mcp_logout_verb,   &mcp_list_verb,
	&mcp_info_verb,	    &mcp_approve_verb,
	&mcp_revoke_verb,   &mcp_enable_verb,
	&mcp_disable_verb,  &mcp_test_verb,
	&mcp_logs_verb,	    &mcp_import_verb,
	&mcp_search_verb,   &mcp_disconnect_verb,
	&mcp_config_verb,   &mcp_add_verb,
	&mcp_remove_verb,   &mcp_allow_verb,
	&mcp_update_verb,   NULL,
};
