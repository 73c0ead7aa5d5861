#pragma once
/* Revisions as commits of a repository. */
#include "base/hash.h"
#include "cli/ws/ws.h"

enum { COMMIT_HEX_MAX = 64 };

/* The whole id of a revision that the hub has. digits: its first ones; NULL: the newest. */
int ws_find_revision(struct hub_link *l, const char *name, const char *digits,
		     char ret[HASH_HEX + 1], struct err *e) MUST_USE;

/* Revisions become commits of the branch refs/heads/holt/NAME. *ret: its newest one. */
struct ws_git {
	const char *name, *repository;
	const char *revision; /* NULL: the newest one */
	bool history; /* all that the branch does not have yet */
};
int ws_git_take(struct hub_link *l, const struct ws_git *o, char ret[COMMIT_HEX_MAX + 1],
		struct err *e) MUST_USE;
/* The same for `holt ws export`. Prints the commit. */
int ws_export_git(const struct ws_git *o, struct err *e) MUST_USE;
