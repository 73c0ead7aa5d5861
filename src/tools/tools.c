#include "tools/tools.h"

const struct tool *const tools[] = {
	&sandbox_create_tool,	  &sandbox_exec_tool, &sandbox_read_file_tool,
	&sandbox_write_file_tool, &sandbox_fork_tool, &sandbox_terminate_tool,
};
const size_t tools_n = ARRAY_LEN(tools);
