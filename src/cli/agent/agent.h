#pragma once
/* What the words of `holt agent` share. */
#include "cli/common/verb.h"
#include "config/agent_preset.h"
#include "config/config.h"

/* The operator's file, and the presets beside it. Zeros have nothing to free. */
struct agent_file {
	struct config *config;
	struct agent_presets *presets;
};
/* said: --config, or NULL. */
int agent_file_open(struct agent_file *f, const char *said, struct err *e) MUST_USE;
/* Appends the operator's file's text with the members of an object in a section. */
int agent_file_add(struct str object, const char *section, struct str text, struct buf *to,
		   struct err *e) MUST_USE;
void agent_file_fini(struct agent_file *f);
#define autoagentfile __attribute__((cleanup(agent_file_fini)))
