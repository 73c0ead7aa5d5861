#include "door/mcp/tools.h"

const struct tool *const tools[] = {
	&sandbox_create_tool,	  &sandbox_exec_tool,	     &sandbox_read_file_tool,
	&sandbox_write_file_tool, &sandbox_fork_tool,	     &sandbox_terminate_tool,
	&sandbox_list_tool,	  &sandbox_get_tool,	     &sandbox_list_files_tool,
	&sandbox_move_file_tool,  &sandbox_remove_file_tool, &sandbox_pause_tool,
	&sandbox_resume_tool,	  &sandbox_set_timeout_tool, &sandbox_processes_tool,
	&sandbox_signal_tool,	  &sandbox_exec_output_tool, &sandbox_snapshot_tool,
	&sandbox_restore_tool,	  &sandbox_diff_tool,
};
const size_t tools_n = ARRAY_LEN(tools);
