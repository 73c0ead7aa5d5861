#pragma once
/*
 * Coding sessions: where the tools of the set "coding" work, and what a conversation knows.
 *
 * A place is a sandbox. With `holt serve --workspace [NAME=]DIR` there is one for each principal
 * and workspace, with DIR at /workspace, which all sessions of the principal share. Without, each
 * MCP session has a fresh one, with an empty /workspace. A place is made by the first call that
 * needs it, as a sandbox.create of the same principal, with its policy, approval, limits and audit.
 * It ends when it was idle for CODING_IDLE_S; a later call makes another.
 *
 * A conversation is an MCP session; requests without one share one for each principal. It remembers
 * what was read, by path and digest of the content, so that no edit is based on a text that has
 * changed since, and by which marks secrets of it were shown (op/coding/marks.h).
 *
 * One loop. An operation embeds a struct coding_work as its first member, in the call's arena, and
 * ends by coding_answer() or coding_fail().
 */
#include "call/call.h"
#include "op/coding/marks.h"
#include "op/lazy_sandbox.h"

#define CODING_ROOT "/workspace" /* in every place; relative paths begin there */

enum {
	CODING_IDLE_S = 1800,
	CODING_WORKSPACES_MAX = 64,
	CODING_NAME_MAX = 64, /* bytes of a workspace's name */
	CODING_PATH_MAX = 4095,
	/* Bytes of a path as an argument: a file URI has three for one. */
	CODING_PATH_ARG_MAX = 3 * CODING_PATH_MAX + 7,
};

/* ---- of a hub ------------------------------------------------------------------------------ */

struct coding;

struct coding_options {
	/* "[NAME=]DIR[:rw-all]" each: NAME is that of the folder if absent. rw-all: also what
	 * programs of the host act on (hub/sandbox/volumes.h). Borrowed for the call. */
	const char *const *workspaces;
	size_t n_workspaces;
	bool readonly; /* the folders are mounted read-only */
	/* Where snapshots are kept (hub/workspace/shots.h): an absolute path. NULL: nowhere.
	 * Borrowed for the call. */
	const char *snapshots;
};
/* ERR_INVALID: a folder is none, or a name is wrong or occurs twice. */
struct coding *coding_new(const struct coding_options *o, struct err *e) MUST_USE;
void coding_free(struct coding *k); /* no call is under way. NULL-safe */
AUTO_DEFINE(coding_free, struct coding)
bool coding_has_workspaces(const struct coding *k);

/* A session (op_start.session) has ended. */
void coding_forget(struct coding *k, const void *session);

/* ---- for operations ------------------------------------------------------------------------ */

/* The argument that names one of several workspaces. */
#define CODING_WORKSPACE_ROW(S)                                                                    \
	FIELD(S, workspace, .min = 1, .max = CODING_NAME_MAX,                                      \
	      .doc = "Name of the workspace, if there are several.")

struct coding_session; /* a conversation */

/* In the call's arena. */
struct coding_work {
	struct call *call;
	struct sandbox *sandbox; /* busy until the call's end */
	struct hub_sandbox *hs; /* the same, for job_start() */
	/* Private. */
	struct lazy_wait wait;
	struct coding *all;
	struct coding_session *conversation;
	unsigned scope; /* equal for equal files: of a workspace, or of a place without */
	/* The files that a later session has, too: a folder of the host; else id of a sandbox. */
	struct str files;
	bool lasting;
	void (*then)(struct coding_work *w);
	struct coding_turn *turn; /* where it writes a file */
};

/* op.path of all operations here (call/op.h): paths begin at the workspace, or are file URIs. */
/* op.expand of those with a path: one of the host that lies in the folder of the workspace is that
 * below CODING_ROOT. */
int coding_expand(struct call *c, void *request, struct err *e) MUST_USE;
int coding_spell_path(struct str base, struct str said, struct arena *a, struct str *ret,
		      struct err *e) MUST_USE;

/* Finds or makes the place of a call and calls then(), now or later; else the call has failed, also
 * where it is cancelled meanwhile. w is zeroed. */
void coding_enter(struct coding_work *w, struct call *c, struct str workspace,
		  void (*then)(struct coding_work *w));

/* Each ends the call, and w with it. */
void coding_answer(struct coding_work *w, const void *result);
void coding_fail(struct coding_work *w, const struct err *e);

/* The call goes on as that of another operation, whose result has the same table: w is over. */
struct call *coding_leave(struct coding_work *w);

/* State of the conversation that the code which runs programs keeps: NULL at first, freed with the
 * conversation by its first member. */
struct coding_note {
	void (*free)(struct coding_note *n);
};
struct coding_note **coding_note(struct coding_work *w);
/* The same of the place, for what is about its files. NULL: the place is gone. */
struct coding_note **coding_place_note(struct coding_work *w);

/* ---- files --------------------------------------------------------------------------------- */

/* Digest of the content of a file as the conversation knows it; NULL: it was not read. Valid until
 * the next coding_know(). */
const char *coding_known(const struct coding_work *w, struct str path);
/* The marks with which it was shown; NULL: none was kept. Valid as above. */
struct marks *coding_marks(const struct coding_work *w, struct str path);
/* The conversation knows this content. Without memory it does not. Takes what m has. */
void coding_know(struct coding_work *w, struct str path, const char *digest, struct marks *m);

/* The part of a known file that was shown. */
struct coding_sight {
	bool anew; /* this content was not known before, so what was seen before does not count */
	uint64_t first, lines, total;
	bool lossy; /* some of it not as it is */
};
void coding_saw(struct coding_work *w, struct str path, const struct coding_sight *s);
/* ERR_UNREAD: of a file that is known not all was shown as it is. */
int coding_saw_whole(const struct coding_work *w, struct str path, struct err *e) MUST_USE;

/* The files below the workspace that the conversation knows: relative paths in the call's arena,
 * sorted. */
int coding_known_all(struct coding_work *w, struct str **ret, size_t *ret_n,
		     struct err *e) MUST_USE;

/* Calls that write the same file take turns: calls then() when it is w's turn, which
 * lasts until the call's end. */
void coding_wait_turn(struct coding_work *w, struct str path, void (*then)(struct coding_work *w));
/* Likewise of those that work on all files of a workspace, of all workspaces: the work pool has one
 * thread for them. writes: they also come one after the other with writers of its files. */
void coding_wait_whole(struct coding_work *w, bool writes, void (*then)(struct coding_work *w));
/* Where snapshots are kept; NULL: nowhere. */
const char *coding_snapshots(const struct coding_work *w);
/* What they may add to that. */
struct room coding_room(const struct coding_work *w);

/* In its turn, what the path led to. False: a writer by another path has the same file, and then()
 * is called again after that. */
bool coding_has_file(struct coding_work *w, const struct file_stat *st);
