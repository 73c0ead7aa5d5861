#pragma once
/*
 * Which key an agent gets: a secret of the operator's file that has the name of one of the
 * variables of its preset and at least one host, and whose value is there. Inside it is a
 * placeholder (docs/secrets.md), so the variable may be given to any code.
 */
#include "config/agent_preset.h"
#include "config/config.h"

/* images: the path of the image store, beside which secrets are; NULL: there is no data folder.
 * NULL: it has none. */
const struct agent_preset_secret *agent_key_find(const struct agent_preset *p,
						 const struct config_file *f, const char *images);
