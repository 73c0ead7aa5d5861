#pragma once
/* The tools that Holt serves: a file and a row each. To add one: its file, its row in tools.c. */
#include "hub/tool.h"

extern const struct tool sandbox_create_tool;
extern const struct tool sandbox_exec_tool;
extern const struct tool sandbox_read_file_tool;
extern const struct tool sandbox_write_file_tool;
extern const struct tool sandbox_fork_tool;
extern const struct tool sandbox_terminate_tool;

/* All of them, in the order in which clients list them. */
extern const struct tool *const tools[];
extern const size_t tools_n;
