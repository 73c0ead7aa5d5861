#pragma once
/*
 * Workspaces: named trees of files that outlive sandboxes. A revision is one immutable state: a
 * tree of objects (object.h, tree.h) and a row of the registry. The tip is the newest one. A
 * sandbox to which a workspace is attached has the tip's files at /workspace, copy-on-write; when
 * it ends, what it has changed there becomes the next revision.
 *
 * A revision exists when its objects are synced and its row is written, in this order. What a
 * failure in between leaves is removed later. One sandbox at a time writes to a workspace; further
 * ones may have copies, of which nothing is kept.
 *
 * Long work runs in the loop's work pool, one piece at a time. All functions must be called on the
 * loop's thread. A `_start` function ends in one callback, never from inside the call. A `struct
 * workspace *` is borrowed until the loop's next turn.
 */
#include "hub/sandbox/sandbox.h"
#include "hub/workspace/tree.h"

struct workspaces;
struct workspace;
struct store;

enum {
	WORKSPACES_MAX = 4096,
	REVISION_ID = BLAKE2B_HEX,
	REVISION_DIGITS_MIN = 4, /* that name one */
	REVISION_MESSAGE_MAX = 1024,
};

/* folder: absolute path, made if missing. All but folder are borrowed until workspaces_close() has
 * ended. Before hub_sandboxes_adopt(). */
struct workspaces *workspaces_new(uv_loop_t *loop, struct store *store,
				  struct hub_sandboxes *sandboxes, const char *folder,
				  struct err *e) MUST_USE;
/* shots: the folder of snapshots that counts, too (hub/workspace/shots.h); copied; NULL: none. */
int workspaces_share(struct workspaces *all, const char *shots, struct err *e) MUST_USE;
/* How many bytes of objects all these stores may keep; 0: no bound. What does not fit is tried
 * again when what nobody needs has gone. */
void workspaces_bound(struct workspaces *all, uint64_t bytes);
const char *workspaces_folder(const struct workspaces *all);
/* Saves what sandboxes have changed, as if they ended, then calls on_done. Nothing starts after
 * it. leave: the sandboxes stay for the next hub, so nothing is saved. */
void workspaces_stop(struct workspaces *all, bool leave, void (*on_done)(void *arg), void *arg);
/* After workspaces_stop() has ended; or, before hub_sandboxes_adopt(), instead. NULL-safe. */
void workspaces_free(struct workspaces *all);

struct workspace_info { /* borrowed until the next change */
	uint64_t seq; /* in order of creation, never reused */
	struct str name, owner, tip;
	int64_t created_ms, changed_ms; /* Unix time; changed: of the tip */
	uint64_t files, bytes; /* of the tip */
	struct str sandbox; /* that writes to it; STR_NONE: none */
};
void workspace_info(const struct workspace *w, struct workspace_info *ret);

/* NULL: none. */
struct workspace *workspaces_get(struct workspaces *all, struct str owner, struct str name);
/* The next one with a seq above `after`; NULL: there is none. */
struct workspace *workspaces_next(struct workspaces *all, uint64_t after);
/* Fails with ERR_WORKSPACE_NOT_FOUND. */
int workspaces_unknown(struct str name, struct err *e);

/* w is NULL with err. */
typedef void (*workspace_cb)(void *arg, struct workspace *w, const struct err *err);

/* An empty one. name: as for a sandbox's id. ERR_NAME_TAKEN: the owner has one of that name. */
void workspace_create_start(struct workspaces *all, struct str name, struct str owner,
			    workspace_cb on_done, void *arg);
/* ERR_WORKSPACE_BUSY: a sandbox writes to it. What no other one needs goes soon afterwards. */
int workspace_delete(struct workspace *w, struct err *e) MUST_USE;

/* Puts the tip's files at the sandbox's /workspace. writes: it is the one that writes to the
 * workspace; ERR_WORKSPACE_BUSY: another one is. */
void workspace_attach_start(struct workspace *w, struct hub_sandbox *l, bool writes,
			    workspace_cb on_done, void *arg);

/* One with the files and history of this revision. ERR_NAME_TAKEN: the owner has one of that
 * name. */
void workspace_fork_start(struct workspace *of, struct str revision, struct str name,
			  struct str owner, workspace_cb on_done, void *arg);
/* Makes a revision with the files of an earlier one. ERR_WORKSPACE_BUSY: a sandbox writes to it.
 * Where the tip has these files, there is no new revision. */
void workspace_revert_start(struct workspace *w, struct str revision, struct str message,
			    workspace_cb on_done, void *arg);

/* Calls each for the revisions with a number below this one, the newest first. */
struct workspace_revision { /* borrowed until each returns */
	uint64_t number; /* from 1 on */
	struct str id, parent, source, message; /* source: the sandbox. STR_NONE: none */
	int64_t created_ms;
	uint64_t files, bytes;
	uint64_t left_out; /* when it was made: files with credentials, which it does not have */
};
typedef int (*workspace_log_fn)(void *arg, const struct workspace_revision *r, struct err *e);
int workspace_log(const struct workspace *w, uint64_t below, uint32_t limit, workspace_log_fn each,
		  void *arg, struct err *e) MUST_USE;

/* The differences of two revisions, in the order of their paths. */
enum workspace_what {
	WORKSPACE_ADDED = DIFF_ADDED,
	WORKSPACE_CHANGED = DIFF_CHANGED,
	WORKSPACE_REMOVED = DIFF_REMOVED,
	WORKSPACE_RENAMED = DIFFS,
	WORKSPACE_WHATS
};
extern const char *const workspace_what_names[WORKSPACE_WHATS];
struct workspace_change {
	enum workspace_what change;
	enum file_type type; /* a path whose type changes is removed and added */
	struct str path, path_bytes; /* path_bytes: the same, where it is not UTF-8 */
	struct str path_before, path_before_bytes; /* of one that was renamed */
	uint32_t mode, mode_before; /* 0: there is none */
	uint64_t bytes, bytes_before;
	struct str text; /* unified hunks; STR_NONE: not asked for, not text, or too much */
	bool binary; /* there are no hunks, since it is not UTF-8 text */
	bool cut; /* not all of the hunks are told */
};
struct workspace_diff { /* all texts: borrowed until the callback returns */
	struct str from, to;
	const struct workspace_change *changes;
	size_t n;
	bool truncated; /* there are more */
};
enum {
	WORKSPACE_CHANGES_MAX = 50000,
	WORKSPACE_HUNKS_MAX = 1 << 20, /* bytes of all hunks */
	WORKSPACE_COMPARED_MAX = 1 << 19, /* bytes of a file that is compared by lines */
};
struct workspace_diff_spec {
	struct str from, to; /* STR_NONE: the one before `to`; the tip */
	bool text;
	bool renames; /* tell them as such */
	bool live; /* `to` is what the sandbox that writes to it has now; from: the tip if absent */
	uint32_t limit; /* changes */
};
typedef void (*workspace_diff_cb)(void *arg, const struct workspace_diff *diff,
				  const struct err *err);
void workspace_diff_start(struct workspace *w, const struct workspace_diff_spec *spec,
			  workspace_diff_cb on_done, void *arg);

/* The outcome of a commit. Texts are borrowed until the callback returns. */
struct workspace_commit {
	bool changed; /* false: the files are as before, so there is no new revision */
	struct str revision; /* the tip now */
	uint64_t files, bytes, added_bytes; /* added: to the store */
	uint32_t left_out;
	struct str left_out_names;
};
typedef void (*workspace_commit_cb)(void *arg, const struct workspace_commit *made,
				    const struct err *err);

/* A revision as a tar archive, which comes as it is asked for. All callbacks borrow. */
struct workspace_export_events {
	void (*on_bytes)(void *arg, struct str bytes);
	void (*on_end)(void *arg, const struct err *err); /* the last one; x is freed */
};
struct workspace_export;
/* revision: STR_NONE: the tip. NULL with *e. */
struct workspace_export *workspace_export_new(struct workspace *w, struct str revision,
					      const struct workspace_export_events *events,
					      void *arg, struct err *e) MUST_USE;
/* Asks for more. One callback follows, never from inside this call. */
void workspace_export_next(struct workspace_export *x);
/* No callback follows. */
void workspace_export_stop(struct workspace_export *x);

/* Reads up to max bytes of a file of the tip at offset, as file_read_start(). path: as
 * tar_path_clean() makes it. */
typedef file_read_cb workspace_read_cb;
void workspace_read_start(struct workspace *w, const char *path, uint64_t offset, size_t max,
			  workspace_read_cb on_done, void *arg);

/* Makes a revision of a tar archive: all that the workspace has is in it. fd: its bytes, taken;
 * they may come slowly. failed: if it has a code at their end, they are not whole; borrowed until
 * on_done. ERR_WORKSPACE_BUSY: a sandbox writes to it. */
void workspace_import_start(struct workspace *w, int fd, struct str message,
			    const struct err *failed, workspace_commit_cb on_done, void *arg);

/* Removes what no revision needs any more, while others write. */
struct workspaces_gc {
	uint64_t revisions; /* removed rows */
	uint64_t removed, removed_bytes, kept, kept_bytes; /* objects */
};
typedef void (*workspaces_gc_cb)(void *arg, const struct workspaces_gc *result,
				 const struct err *err);
void workspaces_gc_start(struct workspaces *all, workspaces_gc_cb on_done, void *arg);

/* Reads all that the revisions of a workspace need. */
enum { WORKSPACE_DAMAGES_MAX = 100 };
struct workspace_damage {
	uint64_t number; /* the newest revision that needs it */
	struct str revision, path, path_bytes; /* as in struct workspace_change; "" for the top */
	struct str why;
};
struct workspace_verified { /* borrowed until the callback returns */
	uint64_t revisions, objects, bytes; /* that were read */
	uint64_t damaged; /* objects */
	const struct workspace_damage *damages; /* the first of them */
	size_t n;
};
typedef void (*workspace_verify_cb)(void *arg, const struct workspace_verified *result,
				    const struct err *err);
void workspace_verify_start(struct workspace *w, workspace_verify_cb on_done, void *arg);

/* Makes a revision of what the sandbox that writes to it has changed; it goes on. */
void workspace_commit_start(struct workspace *w, struct str message, workspace_commit_cb on_done,
			    void *arg);
