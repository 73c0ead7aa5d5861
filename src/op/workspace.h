#pragma once
/* A workspace as clients see it: workspace.create, .list, .get, .attach, .commit, .delete; its
 * history: workspace.log, .diff, .revert, .fork; their store: workspace.gc, .verify. */
#include "call/call.h"
#include "hub/workspace/workspaces.h"

struct workspace_view {
	struct str workspace, revision, created_at, changed_at, sandbox;
	uint64_t files, bytes;
};
extern const struct field_table workspace_view_table;

struct workspaces_view {
	struct {
		const struct workspace_view *p;
		size_t n;
	} workspaces;
	struct str next_cursor;
};

struct workspace_deleted {
	struct str workspace, status; /* "deleted" */
};

enum workspace_mode { WORKSPACE_WRITE, WORKSPACE_COPY, WORKSPACE_MODES };
extern const char *const workspace_mode_names[WORKSPACE_MODES];

struct workspace_attached {
	struct str workspace, revision, sandbox, path; /* path: "/workspace" */
	enum workspace_mode mode;
};

struct workspace_committed {
	struct str workspace, revision, left_out_names;
	bool changed;
	uint64_t files, bytes, added_bytes;
	uint32_t left_out;
};

struct workspace_log_entry {
	uint64_t number;
	struct str revision, parent, created_at, sandbox, message;
	uint64_t files, bytes, left_out;
	bool has_left_out;
};
struct workspace_log_view {
	struct str workspace;
	struct {
		struct workspace_log_entry *p;
		size_t n;
	} revisions;
	struct str next_cursor;
};

struct workspace_diff_view {
	struct str workspace, from, to;
	struct {
		const struct workspace_change *p;
		size_t n;
	} changes;
	bool truncated;
};

struct workspace_verify_view {
	struct str workspace;
	uint64_t revisions, objects, bytes, damaged;
	struct {
		const struct workspace_damage *p;
		size_t n;
	} damages;
};

extern const struct field_table workspace_committed_table;
/* What a commit made of this workspace, as the call's answer has it; borrowed from made. */
struct workspace_committed workspace_committed(struct str workspace,
					       const struct workspace_commit *made);

/* Answers with it, or fails. As a workspace_cb, its arg is the call. */
void workspace_answer(void *call, struct workspace *w, const struct err *err);

/* NULL with ERR_UNSUPPORTED: this hub keeps none. */
struct workspaces *call_workspaces_kept(struct call *c, struct err *e) MUST_USE;
/* The workspace of a request, among those that the principal may know of, its own first. */
struct workspace *call_workspace(struct call *c, struct str name, struct err *e) MUST_USE;

#define WORKSPACE_NAME_ROW(S)                                                                      \
	FIELD(S, workspace, .flags = FIELD_REQUIRED, .min = 1, .max = 64,                          \
	      .doc = "Name of the workspace.")
#define REVISION_ROW(S, member, ...)                                                               \
	FIELD(S, member, .min = REVISION_DIGITS_MIN, .max = REVISION_ID, __VA_ARGS__)
#define MESSAGE_ROW(S)                                                                             \
	FIELD(S, message, .max = REVISION_MESSAGE_MAX / 4,                                         \
	      .doc = "Message for people: what was done.")
