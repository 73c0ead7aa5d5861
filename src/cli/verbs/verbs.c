#include "cli/common/verb.h"

/* clang-format off */
#define DAILY &run_verb, &up_verb, &exec_verb, &ls_verb, &down_verb
#define LIVES &inspect_verb, &top_verb, &events_verb, &pause_verb, &resume_verb, &stop_verb, \
	&fork_verb, &snapshot_verb, &build_verb, &images_verb
#define PROGRAMS &ps_verb, &execs_verb, &logs_verb, &attach_verb, &wait_verb, &kill_verb, &js_verb
#define FILES &cp_verb, &fs_verb, &diff_verb, &ws_verb
#define NETWORK &net_verb, &forward_verb, &preview_verb
#define AGENTS &agent_verb, &mcp_verb, &conversations_verb, &inbox_verb
#define OPERATOR &serve_verb, &hub_verb, &web_verb, &auth_verb, &secret_verb, &config_verb, \
	&policy_verb, &why_verb, &audit_verb
#define HOLT &init_verb, &doctor_verb, &self_check_verb, &shell_verb, &completion_verb, \
	&version_verb, &help_verb

const struct verb *const verbs[] = { DAILY, LIVES, PROGRAMS, FILES,
				     NETWORK, AGENTS, OPERATOR, HOLT };
const size_t verbs_n = ARRAY_LEN(verbs);

#define GROUP(heading, ...) { heading, ARRAY_LEN(((const struct verb *[]){ __VA_ARGS__ })) }
const struct verb_group verb_groups[] = {
	GROUP("Every day", DAILY),
	GROUP("Sandboxes", LIVES),
	GROUP("Programs in sandboxes", PROGRAMS),
	GROUP("Files", FILES),
	GROUP("Networks", NETWORK),
	GROUP("Agents", AGENTS),
	GROUP("The hub and its operator", OPERATOR),
	GROUP("Holt itself", HOLT),
	{ NULL, 0 },
};
/* clang-format on */
