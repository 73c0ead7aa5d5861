#pragma once
/*
 * Which key an agent gets: a secret of the operator's file that has the name of one of the
 * variables of its preset and at least one host, and whose value is there. Inside it is a
 * placeholder (docs/secrets.md), so the variable may be given to any code.
 */
#include <time.h>

#include "config/agent_preset.h"
#include "config/config.h"

/* images: the path of the image store, beside which secrets are; NULL: there is no data folder.
 * NULL: it has none. */
const struct agent_preset_secret *agent_key_find(const struct agent_preset *p,
						 const struct config_file *f, const char *images);

/*
 * Its log-in: the secret AGENT-login of the operator's file, which is tokens. A sandbox has them as
 * placeholders, so the variable is there to bind them only.
 */
#define AGENT_LOGIN_VARIABLE "HOLT_LOGIN"
enum { AGENT_LOGIN_MAX = CONFIG_SERVER_NAME_MAX + 8 };

void agent_login_name(struct str agent, char ret[AGENT_LOGIN_MAX]);

/* Whether somebody is logged in. since: when its tokens were stored last; may be NULL. */
bool agent_login_find(const struct agent_preset *p, const struct config_file *f, const char *images,
		      struct str agent, time_t *ret_since);

/* Whether a file of the agent's has placeholders. */
bool agent_login_is_marked(struct str text);

/* The rules of all that its requests and renewals reach, in a. The preset has tokens. */
int agent_login_hosts(const struct agent_preset *p, struct arena *a, struct field_strs *ret,
		      struct err *e) MUST_USE;
