#pragma once
/* The tools that Holt serves: a file and a row each. To add one: its file, its row in tools.c. */
#include "door/mcp/tool.h"

extern const struct tool sandbox_create_tool;
extern const struct tool sandbox_exec_tool;
extern const struct tool sandbox_read_file_tool;
extern const struct tool sandbox_write_file_tool;
extern const struct tool sandbox_fork_tool;
extern const struct tool sandbox_terminate_tool;
extern const struct tool sandbox_list_tool;
extern const struct tool sandbox_get_tool;
extern const struct tool sandbox_list_files_tool;
extern const struct tool sandbox_move_file_tool;
extern const struct tool sandbox_remove_file_tool;
extern const struct tool sandbox_pause_tool;
extern const struct tool sandbox_resume_tool;
extern const struct tool sandbox_set_timeout_tool;
extern const struct tool sandbox_processes_tool;
extern const struct tool sandbox_signal_tool;
extern const struct tool sandbox_exec_output_tool;
extern const struct tool sandbox_snapshot_tool;
extern const struct tool sandbox_restore_tool;
extern const struct tool sandbox_diff_tool;
extern const struct tool run_tool;
extern const struct tool workspace_create_tool;
extern const struct tool workspace_list_tool;
extern const struct tool workspace_attach_tool;
extern const struct tool workspace_delete_tool;
extern const struct tool workspace_log_tool;
extern const struct tool workspace_diff_tool;
extern const struct tool workspace_revert_tool;
extern const struct tool workspace_fork_tool;

extern const struct tool execute_javascript_tool, register_module_tool;
extern const struct tool list_modules_tool;
extern const struct tool module_info_tool;
extern const struct tool search_modules_tool;
extern const struct tool list_mcp_servers_tool;
extern const struct tool mcp_server_info_tool;
extern const struct tool manage_mcp_tool;
extern const struct tool module_result_tool;
extern const struct tool ui_ask_yes_no_tool;
extern const struct tool ui_options_buttons_tool;
extern const struct tool ui_options_combo_tool;
extern const struct tool ui_textbox_tool;
extern const struct tool ui_form_tool;
extern const struct tool ui_notify_tool;
extern const struct tool ask_tool;
extern const struct tool ask_result_tool;

/* conversation.c */
extern const struct tool conversation_list_tool;
extern const struct tool conversation_config_tool;
extern const struct tool conversation_runtime_tool;
extern const struct tool conversation_current_tool;
extern const struct tool conversation_get_tool;
extern const struct tool conversation_history_tool;
extern const struct tool conversation_wait_tool;
extern const struct tool conversation_send_tool;
extern const struct tool conversation_start_tool;
extern const struct tool conversation_userdata_tool;

/* coding/ */
extern const struct tool coding_read_tool;
extern const struct tool coding_write_tool;
extern const struct tool coding_edit_tool;
extern const struct tool coding_glob_tool;
extern const struct tool coding_grep_tool;
extern const struct tool coding_symbols_tool;
extern const struct tool coding_bash_tool;
extern const struct tool coding_output_tool;
extern const struct tool coding_kill_tool;
extern const struct tool coding_watch_tool;
extern const struct tool coding_events_tool;
extern const struct tool coding_test_tool;
extern const struct tool coding_lint_tool;
extern const struct tool coding_typecheck_tool;
extern const struct tool coding_script_tool;
extern const struct tool coding_retest_tool;
extern const struct tool coding_failures_tool;
extern const struct tool coding_secrets_tool;
extern const struct tool coding_snapshot_create_tool;
extern const struct tool coding_snapshot_list_tool;
extern const struct tool coding_snapshot_diff_tool;
extern const struct tool coding_snapshot_restore_tool;

/* All of them, in the order in which clients list them. */
extern const struct tool *const tools[];
extern const size_t tools_n;

/* Agents that know Mitto call the tools of conversations and questions by names with this before
 * them. Sessions that choose the set, or a tool by such a name, have them listed so: a choice then
 * has TOOLS_MITTO, a place behind all tools and the gateway's. */
#define MITTO_SET "mitto"
#define MITTO_PREFIX "mitto_"
#define TOOLS_MITTO (tools_n + 1)

/* Names of the tools that do an operation, and of their sets; gives how many, at most max. */
size_t tools_of(const struct op *op, const char **names, size_t max);

/* The name of a set of tools; NULL: there are no more. */
const char *tools_set_name(size_t i);

/* Those that a client has that asks for none: "sandbox", and with workspaces "coding". */
struct mcp_choice tools_usual(bool workspaces);
/* Those of an agent that speaks for a conversation. */
struct mcp_choice tools_talking(void);

/* Which tools a list means, "sandbox_exec,sandbox_read_file": names of tools and of sets
 * ("sandbox", "coding", "all"). ERR_INVALID where a name is neither. */
int tools_choose(struct str list, struct mcp_choice *ret, struct err *e) MUST_USE;
/* "full" or "short": whether lists have the whole texts of modules. */
int tools_texts(struct str word, bool *ret_full, struct err *e) MUST_USE;
