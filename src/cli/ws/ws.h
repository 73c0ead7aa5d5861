#pragma once
/* What the words of `holt ws` share. */
#include "cli/link/link.h"
#include "cli/common/verb.h"

enum { WS_PATH_MAX = 1024 };

/* Builds "/v1/workspaces/NAME" and `more`. ERR_WORKSPACE_NOT_FOUND if nothing can be called so. */
int ws_path(char ret[WS_PATH_MAX], const char *name, const char *more, struct err *e) MUST_USE;

/* An option row's table for words without options of their own but -o. */
struct ws_options {
	struct verb_options common;
	uint32_t output;
};
extern const struct option_table ws_options;

/* Asks with a body of up to two texts, and prints one member of the answer, or all of it. */
struct ws_ask {
	const char *name, *more; /* the workspace, or NULL: all of them; what follows in the path */
	struct {
		const char *name, *text; /* NULL: none */
	} members[2];
	const char *prints;
	bool json;
};
/* The exit status. */
int ws_ask(const struct ws_ask *a);

extern const struct verb ws_create_verb, ws_rm_verb, ws_attach_verb, ws_commit_verb;
/* Writes "/v1/workspaces/NAME/export" with a revision, unless that is NULL. */
int ws_export_path(char ret[WS_PATH_MAX], const char *name, const char *revision,
		   struct err *e) MUST_USE;
/* git.c: makes commits of revisions on a branch of a repository. Prints the newest. */
struct ws_git {
	const char *name, *repository;
	const char *revision; /* NULL: the newest one */
	bool history; /* all that the branch does not have yet */
};
int ws_export_git(const struct ws_git *o, struct err *e) MUST_USE;

/* The revision as the hub knows it: its row of the log, in *ret, which the caller frees in any
 * case. digits: the first of its id; NULL: the newest one. */
int ws_find_revision(struct hub_link *l, const char *name, const char *digits,
		     struct json_doc **ret, const struct json_val **ret_row,
		     struct err *e) MUST_USE;
/* Whether a part of the path is what git takes for its own folder. */
bool ws_has_git_part(const char *path);

/* apply.c: before a folder is imported: takes back an apply to it that was interrupted, and tells
 * so. ERR_CONFLICT: one goes on. ERR_INVALID: it has to be undone first. */
int ws_apply_recover(const char *folder, struct err *e) MUST_USE;
/* The folder has the files of this revision, as it was imported from there. */
int ws_applied(const char *folder, const char *name, struct str revision, struct err *e) MUST_USE;

extern const struct verb ws_import_verb, ws_export_verb, ws_apply_verb;
extern const struct verb ws_gc_verb, ws_verify_verb;
extern const struct verb ws_log_verb, ws_diff_verb, ws_revert_verb, ws_fork_verb;
