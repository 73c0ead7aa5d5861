#pragma once
/* What the engine says of a sandbox's files and processes on both sides of the wire; see box.h. */

enum { FILE_READ_MAX = 8 * 1024 * 1024, FILE_WRITE_MAX = 64 * 1024 * 1024, FILE_LIST_MAX = 1024 };

enum { PROCESS_LIST_MAX = 512, PROCESS_COMMAND_MAX = 256 };

enum file_type { FILE_REGULAR, FILE_DIRECTORY, FILE_SYMLINK, FILE_OTHER };

/* What became of a path of the template, or came beside it. */
enum diff { DIFF_ADDED, DIFF_CHANGED, DIFF_REMOVED, DIFFS };

/* Names in an archive of changes that are about other names (OCI image specification, "Layer Filesystem
 * Changeset"): what begins with the first was removed; of the directory that has the second nothing of the
 * template's shows through. */
#define DIFF_GONE ".wh."
#define DIFF_OPAQUE ".wh..wh..opq"
