#pragma once
/* The operations, by action. To add one: its struct op in the file of its noun, and a line here
 * and in
 * ops.c. */
#include "call/op.h"

extern const struct op audit_get_op;
extern const struct op audit_list_op;
extern const struct op code_execute_op;
extern const struct op code_register_op;
extern const struct op code_unregister_op;
extern const struct op coding_bash_op;
extern const struct op coding_output_op;
extern const struct op coding_kill_op;
extern const struct op coding_watch_op;
extern const struct op coding_events_op;
extern const struct op coding_test_op;
extern const struct op coding_lint_op;
extern const struct op coding_typecheck_op;
extern const struct op coding_script_op;
extern const struct op coding_retest_op;
extern const struct op coding_failures_op;
extern const struct op coding_secrets_op;
extern const struct op coding_edit_op;
extern const struct op coding_glob_op;
extern const struct op coding_grep_op;
extern const struct op coding_search_op;
extern const struct op coding_read_op;
extern const struct op coding_snapshot_create_op;
extern const struct op coding_snapshot_diff_op;
extern const struct op coding_snapshot_list_op;
extern const struct op coding_snapshot_restore_op;
extern const struct op coding_write_op;
extern const struct op conversation_add_file_op;
extern const struct op conversation_cancel_op;
extern const struct op conversation_config_op;
extern const struct op conversation_create_op;
extern const struct op conversation_delete_op;
extern const struct op conversation_file_op;
extern const struct op conversation_files_op;
extern const struct op conversation_flags_op;
extern const struct op conversation_get_op;
extern const struct op conversation_history_op;
extern const struct op conversation_list_op;
extern const struct op conversation_move_op;
extern const struct op conversation_queue_op;
extern const struct op conversation_remove_op;
extern const struct op conversation_remove_file_op;
extern const struct op conversation_restore_op;
extern const struct op conversation_retry_op;
extern const struct op conversation_runtime_op;
extern const struct op conversation_send_op;
extern const struct op conversation_set_flags_op;
extern const struct op conversation_set_user_data_op;
extern const struct op conversation_settings_op;
extern const struct op conversation_start_op;
extern const struct op conversation_update_op;
extern const struct op conversation_wait_op;
extern const struct op conversation_workspaces_op;
extern const struct op event_list_op;
extern const struct op feed_follow_op;
extern const struct op exec_attach_op;
extern const struct op exec_delete_op;
extern const struct op exec_get_op;
extern const struct op exec_kill_op;
extern const struct op exec_list_op;
extern const struct op exec_output_op;
extern const struct op exec_resize_op;
extern const struct op exec_signal_op;
extern const struct op exec_stdin_op;
extern const struct op exec_wait_op;
extern const struct op files_download_op;
extern const struct op files_list_op;
extern const struct op files_mkdir_op;
extern const struct op files_move_op;
extern const struct op files_read_op;
extern const struct op files_remove_op;
extern const struct op files_stat_op;
extern const struct op files_watch_op;
extern const struct op files_write_op;
extern const struct op hub_health_op;
extern const struct op hub_usage_op;
extern const struct op approval_list_op;
extern const struct op approval_get_op;
extern const struct op approval_answer_op;
extern const struct op key_create_op;
extern const struct op key_list_op;
extern const struct op key_revoke_op;
extern const struct op module_approve_op;
extern const struct op module_call_op;
extern const struct op module_disable_op;
extern const struct op module_disconnect_op;
extern const struct op module_enable_op;
extern const struct op module_info_op;
extern const struct op module_list_op;
extern const struct op module_logs_op;
extern const struct op module_result_op;
extern const struct op module_revoke_op;
extern const struct op module_search_op;
extern const struct op module_test_op;
extern const struct op module_update_op;
extern const struct op network_get_op;
extern const struct op network_set_op;
extern const struct op port_forward_op;
extern const struct op port_list_op;
extern const struct op port_preview_op;
extern const struct op port_unforward_op;
extern const struct op process_list_op;
extern const struct op process_signal_op;
extern const struct op question_answer_op;
extern const struct op question_ask_op;
extern const struct op question_cancel_op;
extern const struct op question_get_op;
extern const struct op question_list_op;
extern const struct op question_result_op;
extern const struct op sandbox_create_op;
extern const struct op sandbox_diff_op;
extern const struct op sandbox_exec_op;
extern const struct op run_op;
extern const struct op sandbox_fork_op;
extern const struct op sandbox_get_op;
extern const struct op sandbox_list_op;
extern const struct op sandbox_pause_op;
extern const struct op sandbox_resume_op;
extern const struct op sandbox_set_timeout_op;
extern const struct op sandbox_stop_op;
extern const struct op sandbox_terminate_op;
extern const struct op sandbox_usage_op;
extern const struct op sandbox_vitals_op;
extern const struct op secret_list_op;
extern const struct op secret_remove_op;
extern const struct op secret_set_op;
extern const struct op snapshot_delete_op;
extern const struct op snapshot_export_op;
extern const struct op snapshot_get_op;
extern const struct op snapshot_list_op;
extern const struct op snapshot_restore_op;
extern const struct op snapshot_take_op;
extern const struct op template_create_op;
extern const struct op template_list_op;
extern const struct op workspace_attach_op;
extern const struct op workspace_commit_op;
extern const struct op workspace_create_op;
extern const struct op workspace_delete_op;
extern const struct op workspace_diff_op;
extern const struct op workspace_export_op;
extern const struct op workspace_fork_op;
extern const struct op workspace_gc_op;
extern const struct op workspace_get_op;
extern const struct op workspace_list_op;
extern const struct op workspace_log_op;
extern const struct op workspace_revert_op;
extern const struct op workspace_verify_op;

extern const struct op *const all_ops[];
extern const size_t all_ops_n;

/* The sandbox that a request is about. */
#define OP_SANDBOX_ROW(S)                                                                          \
	FIELD(S, sandbox, .flags = FIELD_REQUIRED, .min = 1, .max = 64, .doc = "Id of the sandbox.")

/* A request that names a sandbox and nothing else. */
struct op_sandbox {
	struct str sandbox;
};
extern const struct field_table op_sandbox_table;

/* For operations and rows without arguments or results. */
struct op_nothing {
	bool unused;
};
extern const struct field_table op_nothing_table;

/* Names of variables are not empty and have neither '=' nor NUL: ERR_INVALID else. */
int op_check_env(const struct field_map *env, struct err *e) MUST_USE;
