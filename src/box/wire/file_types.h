#pragma once
/* Types for files and processes of a sandbox, shared by both sides of the wire; see box.h. */

enum { FILE_READ_MAX = 8 * 1024 * 1024, FILE_WRITE_MAX = 64 * 1024 * 1024, FILE_LIST_MAX = 1024 };

enum { PROCESS_LIST_MAX = 512, PROCESS_COMMAND_MAX = 256 };

enum file_type { FILE_REGULAR, FILE_DIRECTORY, FILE_SYMLINK, FILE_OTHER };

/* How a path differs from the template. */
enum diff { DIFF_ADDED, DIFF_CHANGED, DIFF_REMOVED, DIFFS };

/* Special names in an archive of changes (OCI image specification, "Layer Filesystem Changeset"). A
 * name with the first prefix means that the rest of it was removed; the second in a directory hides
 * everything that the template has there. */
#define DIFF_GONE ".wh."
#define DIFF_OPAQUE ".wh..wh..opq"

/* A change in a watched directory. */
enum change_kind {
	CHANGE_READY, /* the watch begins; no path */
	CHANGE_CREATED, /* also for what was in a directory that has just appeared */
	CHANGE_MODIFIED, /* content */
	CHANGE_ATTRIBUTES, /* mode, times, number of names */
	CHANGE_REMOVED,
	CHANGE_MOVED_FROM, /* within the watched tree or out of it */
	CHANGE_MOVED_TO, /* with the cookie of its CHANGE_MOVED_FROM, if that place is watched */
	/* changes were lost, since they were not read in time; no path */
	CHANGE_OVERFLOW,
	CHANGE_ENDED, /* the watched directory is gone; no path */
	CHANGE_KINDS
};
