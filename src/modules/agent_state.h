#pragma once
/*
 * What an agent keeps between its sandboxes: log-in, settings, sessions. Each agent has a folder of
 * the data folder for that, state/NAME, which has the folders of its preset's `state` under the
 * paths that they have in its home:
 *
 *	DATA/state/claude/.claude	is ~/.claude in its sandboxes
 *
 * They are mounted without what protects a project (VOLUME_RW_ALL), since nobody but the agent acts
 * on them. So what is in them is hostile: no link in them is followed.
 */
#include "config/agent_preset.h"
#include "hub/sandbox/volumes.h"

#define AGENT_HOME "/home/agent" /* of the template host and of what is built on it */

/* The folder of an agent beside the image store. */
int agent_state_folder(const char *images, struct str name, char ret[PATH_MAX],
		       struct err *e) MUST_USE;

/* Makes it with all that the preset wants (0700), and writes settings where there are none. */
int agent_state_make(const struct agent_preset *p, const char *folder, struct err *e) MUST_USE;

/* Its volumes; their texts are in a. Returns how many, at most VOLUMES_MAX; -1 with *e. */
ssize_t agent_state_volumes(const struct agent_preset *p, const char *folder, struct arena *a,
			    struct volume to[VOLUMES_MAX], struct err *e) MUST_USE;

/* Appends a file of the state, by its path in the preset (~/...). ERR_PATH_NOT_FOUND. */
int agent_state_read(const char *folder, struct str path, struct buf *to, struct err *e) MUST_USE;

/* Removes a file of the state, likewise. 1: it was there. */
int agent_state_remove(const char *folder, struct str path, struct err *e) MUST_USE;

/* Whether an agent's file of a setting says what the preset does; where it does not, the first
 * place that differs (a JSON pointer; "" for a file that is no JSON) in where. 1: it does, or there
 * is none yet; -1: it can't be read. */
enum { AGENT_SETTING_WHERE = JSON_POINTER_MAX + 8 };
int agent_state_check(const struct agent_preset_setting *s, const char *folder,
		      char where[AGENT_SETTING_WHERE], struct err *e) MUST_USE;
