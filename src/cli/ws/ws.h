#pragma once
/* What the words of `holt ws` share. */
#include "cli/link/ask.h"

enum { WS_PATH_MAX = 1024 };
extern const struct ask_noun workspaces;

/* Writes "/v1/workspaces/NAME/export" with a revision, unless that is NULL; of content as it is
 * (hub_link_raw()). */
int ws_export_path(char ret[WS_PATH_MAX], const char *name, const char *revision, bool to_stdout,
		   struct err *e) MUST_USE;
/* Whether a part of the path is what git takes for its own folder. */
bool ws_has_git_part(const char *path);

/* apply.c: before a folder is imported: takes back an apply to it that was interrupted, and tells
 * so. ERR_CONFLICT: one goes on. ERR_INVALID: it has to be undone first. */
int ws_apply_recover(const char *folder, struct err *e) MUST_USE;
/* The folder has the files of this revision, as it was imported from there. */
int ws_applied(const char *folder, const char *name, struct str revision, struct err *e) MUST_USE;

extern const struct verb ws_import_verb, ws_export_verb, ws_apply_verb, ws_verify_verb;
