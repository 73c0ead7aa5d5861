#pragma once
/* What the engine says of a sandbox's files and processes on both sides of the wire; see box.h. */

enum { FILE_READ_MAX = 8 * 1024 * 1024, FILE_WRITE_MAX = 64 * 1024 * 1024, FILE_LIST_MAX = 1024 };

enum { PROCESS_LIST_MAX = 512, PROCESS_COMMAND_MAX = 256 };

enum file_type { FILE_REGULAR, FILE_DIRECTORY, FILE_SYMLINK, FILE_OTHER };

/* What became of a path of the template, or came beside it. */
enum diff { DIFF_ADDED, DIFF_CHANGED, DIFF_REMOVED, DIFFS };

/* Names in an archive of changes that are about other names (OCI image specification, "Layer
 * Filesystem Changeset"): what begins with the first was removed; of the directory that has the
 * second nothing of the template's shows through. */
#define DIFF_GONE ".wh."
#define DIFF_OPAQUE ".wh..wh..opq"

/* What has happened to something in a directory that is watched. */
enum change_kind {
	CHANGE_READY, /* the watch begins; no path */
	CHANGE_CREATED, /* also what was in a directory that has just come */
	CHANGE_MODIFIED, /* content */
	CHANGE_ATTRIBUTES, /* mode, times, number of names */
	CHANGE_REMOVED,
	CHANGE_MOVED_FROM, /* within or out of what is watched */
	CHANGE_MOVED_TO, /* with the cookie of where it was moved from, if that is watched */
	/* more happened than was read in time, and some of it is not told; no path */
	CHANGE_OVERFLOW,
	CHANGE_ENDED, /* the directory itself is gone; no path */
	CHANGE_KINDS
};
