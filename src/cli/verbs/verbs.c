#include "cli/common/verb.h"

const struct verb *const verbs[] = {
	&run_verb,     &up_verb,	 &ls_verb,    &ps_verb,		&top_verb,
	&events_verb,  &exec_verb,	 &execs_verb, &logs_verb,	&attach_verb,
	&wait_verb,    &kill_verb,	 &fs_verb,    &cp_verb,		&fork_verb,
	&pause_verb,   &resume_verb,	 &down_verb,  &build_verb,	&images_verb,
	&mcp_verb,     &serve_verb,	 &auth_verb,  &doctor_verb,	&version_verb,
	&help_verb,    &snapshot_verb,	 &diff_verb,  &stop_verb,	&forward_verb,
	&inspect_verb, &completion_verb, &hub_verb,   &preview_verb,	&net_verb,
	&secret_verb,  &config_verb,	 &why_verb,   &audit_verb,	&approvals_verb,
	&ws_verb,      &js_verb,	 &web_verb,   &shell_verb,	&conversations_verb,
	&prompts_verb, &policy_verb,	 &init_verb,  &self_check_verb,
};
const size_t verbs_n = ARRAY_LEN(verbs);
