#pragma once
/*
 * A program that speaks MCP on its standard input and output and that the link's owner runs, in a
 * place that the link knows nothing of, such as a sandbox. The owner moves bytes
 * (struct mcp_runner of mcp/connect/connect.h); this cuts lines out of them, as
 * mcp/connect/child.h does for a program that the link runs itself.
 */
#include "mcp/connect/child.h"
#include "mcp/connect/connect.h"

/* Starts the program by the runner. ev: on_stderr is not called; on_end is the last but on_closed,
 * and it must still be closed. */
struct mcp_program *mcp_program_start(const struct mcp_runner *by, void *by_owner, size_t line_max,
				      const struct mcp_child_events *ev, void *owner,
				      struct err *e) MUST_USE;

/* text has no line breaks. */
void mcp_program_send(struct mcp_program *p, struct str text);
void mcp_program_kill(struct mcp_program *p);

/* The only later callback is on_closed, when it is freed. */
void mcp_program_close(struct mcp_program *p, unsigned stop_ms, void (*on_closed)(void *owner),
		       void *owner);
