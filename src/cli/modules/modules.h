#pragma once
/* The words of `holt mcp` about the hub's modules: MCP servers that the operator's file names. */
#include "cli/link/ask.h"

extern const struct ask_noun modules;
extern const struct verb mcp_approve_verb;

/* Prints what module.info says, for people. */
int module_show(const struct json_val *info, const char *name, struct err *e) MUST_USE;
