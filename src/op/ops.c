#include "op/ops.h"

const struct op *const all_ops[] = {
	&approval_answer_op,
	&approval_get_op,
	&approval_list_op,
	&audit_get_op,
	&audit_list_op,
	&coding_bash_op,
	&coding_edit_op,
	&coding_events_op,
	&coding_failures_op,
	&coding_glob_op,
	&coding_grep_op,
	&coding_kill_op,
	&coding_lint_op,
	&coding_output_op,
	&coding_read_op,
	&coding_retest_op,
	&coding_script_op,
	&coding_secrets_op,
	&coding_test_op,
	&coding_typecheck_op,
	&coding_watch_op,
	&coding_write_op,
	&run_op,
	&event_list_op,
	&exec_attach_op,
	&exec_delete_op,
	&exec_get_op,
	&exec_kill_op,
	&exec_list_op,
	&exec_output_op,
	&exec_resize_op,
	&exec_signal_op,
	&exec_stdin_op,
	&exec_wait_op,
	&files_download_op,
	&files_list_op,
	&files_mkdir_op,
	&files_move_op,
	&files_read_op,
	&files_remove_op,
	&files_stat_op,
	&files_watch_op,
	&files_write_op,
	&hub_health_op,
	&hub_usage_op,
	&key_create_op,
	&key_list_op,
	&key_revoke_op,
	&network_get_op,
	&network_set_op,
	&port_forward_op,
	&port_list_op,
	&port_preview_op,
	&port_unforward_op,
	&process_list_op,
	&process_signal_op,
	&sandbox_create_op,
	&sandbox_diff_op,
	&sandbox_exec_op,
	&sandbox_fork_op,
	&sandbox_get_op,
	&sandbox_list_op,
	&sandbox_pause_op,
	&sandbox_resume_op,
	&sandbox_set_timeout_op,
	&sandbox_stop_op,
	&sandbox_terminate_op,
	&sandbox_usage_op,
	&sandbox_vitals_op,
	&secret_list_op,
	&secret_remove_op,
	&secret_set_op,
	&snapshot_delete_op,
	&snapshot_export_op,
	&snapshot_get_op,
	&snapshot_list_op,
	&snapshot_restore_op,
	&snapshot_take_op,
	&template_create_op,
	&template_list_op,
	&workspace_attach_op,
	&workspace_commit_op,
	&workspace_create_op,
	&workspace_delete_op,
	&workspace_get_op,
	&workspace_list_op,
};
const size_t all_ops_n = ARRAY_LEN(all_ops);

static const struct field sandbox_fields[] = { OP_SANDBOX_ROW(struct op_sandbox) };
const struct field_table op_sandbox_table = FIELD_TABLE(struct op_sandbox, sandbox_fields);

const struct field_table op_nothing_table = { .size = sizeof(struct op_nothing) };

int op_check_env(const struct field_map *env, struct err *e)
{
	for (size_t i = 0; i < env->n; i++) {
		struct str name = env->p[i].key;

		if (name.n == 0 || memchr(name.p, '=', name.n) || memchr(name.p, '\0', name.n))
			return err_set(e, ERR_INVALID,
				       "env: a variable's name is not empty and has no '='");
	}
	return 0;
}
