#pragma once
/* The words of `holt mcp` about the hub's modules: MCP servers that the operator's file names. */
#include "cli/common/verb.h"
#include "cli/link/link.h"

struct module_options {
	struct verb_options common;
	uint32_t output;
	bool yes;
};
extern const struct option_table module_options;

enum { MODULE_PATH_MAX = 128 };
/* "/v1/modules/NAME" and `more`. ERR_MODULE_NOT_FOUND: no module can have that name. */
int module_path(char ret[MODULE_PATH_MAX], const char *name, const char *more,
		struct err *e) MUST_USE;

/* Prints what module.info says, for people. */
int module_show(const struct json_val *info, struct err *e) MUST_USE;
