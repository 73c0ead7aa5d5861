#pragma once
/*
 * Trees of files as tar archives and back, for blocking programs: the helpers of a sandbox's first
 * process, and `holt cp`. Neither end is trusted: the archive may contain anything, and the tree
 * may change meanwhile. Therefore:
 *
 * - Everything stays below one directory. Paths are resolved component by component from there.
 *   Links are never followed, and a directory on another file system (a mount, /proc) is neither
 *   entered nor written to.
 * - What was opened is checked again before it is used.
 * - Entries, bytes and depth are bounded.
 *
 * Only files, directories and links are packed and unpacked. Unpacked files belong to the caller
 * and set-id bits are dropped, unless the caller may keep both (owners). Failures are data (struct
 * tree_failure), since the static programs have no messages.
 */
#include "box/archive/tar.h"

#include <sys/types.h>

enum {
	TREE_PATH_MAX = 256,
	/* The mode of an empty directory that nobody may enter. Directly below the top it is not
	 * packed: it stands for a name that nothing may have (box/wire/project.h). */
	TREE_BARRIER = 01444,
};

/* Names under which a file is written beside its place, with a number between: in place of an old
 * one, and a new one. */
#define TREE_TEMP_FRONT ".holt-"
#define TREE_TEMP_OLD ".tmp"
#define TREE_TEMP_NEW ".new"

/* The limits of what is packed or unpacked at once. */
#define TREE_BYTES_MAX (1ull << 38)
enum { TREE_ENTRIES_MAX = 4 << 20, TREE_DEPTH_MAX = 256 };

enum tree_what {
	TREE_FINE,
	TREE_SYSTEM, /* errnum is the reason */
	TREE_ARCHIVE, /* `why` is the reason */
	TREE_KIND, /* an entry of another kind, such as a device */
	/* it would be outside of the directory: by "..", a link, or on another file system */
	TREE_OUTSIDE,
	/* something of another type is in the way of a file or of a directory */
	TREE_OCCUPIED,
	TREE_OWNER, /* what stands there is another user's, and would not stay so */
	TREE_MANY, /* too many entries */
	TREE_LARGE, /* too many bytes */
	TREE_DEEP,
	TREE_GONE, /* the reader of the archive has gone */
	TREE_KILLED, /* its process was killed */
	TREE_WHATS
};

struct tree_failure {
	uint32_t what; /* enum tree_what */
	int32_t errnum;
	uint32_t why; /* enum tar_why */
	uint32_t left_out; /* of what was packed: pipes, sockets, devices, and what can't be read */
	/* the path that failed, or the first that were left out; cut, may be "" */
	char path[TREE_PATH_MAX];
};

/* ---- packing ------------------------------------------------------------------------------- */

struct tar_pack_opts {
	/* name of the top entry in the archive, and the prefix of all below it; ".": no prefix */
	const char *name;
	const char *const *leave_out; /* names of entries directly below the top */
	size_t n_leave_out;
	/* Leave out entries of other users that can't be read; and a comment at the end of the
	 * archive tells how many were left out for any reason, and which. */
	bool own;
};

/* Writes the directory or file at dir/name (AT_FDCWD with an absolute path works too) as an archive
 * to out. name itself may be a link. A file that changes meanwhile is stored with its initial
 * length. */
int tar_pack(int dir, const char *name, const struct tar_pack_opts *o, int out,
	     struct tree_failure *f);

/* ---- unpacking ----------------------------------------------------------------------------- */

struct tar_unpack_opts {
	/* ".wh.NAME" removes NAME, ".wh..wh..opq" the contents of its directory; other such
	 * names are ignored. A directory replaces other types. */
	bool changes;
	/* Also an archive of changes, to files that others use meanwhile: each file and link takes
	 * the place of the old one in one step and keeps its owner. ".wh.NAME" removes one file or
	 * an empty directory; a directory with something in it stays, and so does what is
	 * mounted. */
	bool exact;
	bool pass_mounts; /* entries on which, or above which, something is mounted are skipped */
	bool keep_top; /* the top keeps its mode and time */
	bool owners; /* owners and set-id bits are the archive's; takes CAP_CHOWN */
	/* the archive must hold one file, which gets this name in the top; or NULL */
	const char *as;
	bool skip_zeros; /* leave holes in files for ranges of zeros, where possible */
	/* NULL or called for each entry but the top that got to its place, or begins to */
	void (*on_entry)(void *arg, const char *path);
	void *arg;
};

enum { TREE_PARTS_MAX = TAR_PATH_MAX / 2, TREE_TEMP_MAX = 32 };

struct tar_unpack {
	struct tree_failure failure;
	uint64_t entries, bytes;
	/* the rest is private */
	struct tar_unpack_opts o;
	int top;
	dev_t device;
	struct tar_reader reader;
	int parent; /* directory of the last entry, or -1 */
	int file; /* the one being written, or -1 */
	bool hole; /* the file ends in zeros that were skipped */
	/* of a file or link on its way to its place, in parent; "" while it has none */
	char temp[TREE_TEMP_MAX];
	unsigned temps; /* names that were tried */
	bool mounted; /* what the last entry is about is mounted, or has something mounted in it */
	/* Directories that the archive has entered: modes and times are set when it leaves them. */
	/* at: the innermost directory; path: the one of parent */
	char at[TAR_PATH_MAX], path[TAR_PATH_MAX];
	struct tree_left {
		size_t n; /* prefix of `at` */
		uint32_t mode, uid, gid, mtime_ns;
		int64_t mtime;
	} left[TREE_PARTS_MAX];
	size_t n_left;
};

/* top, a directory, is borrowed until tar_unpack_end(). The struct is large. */
int tar_unpack_init(struct tar_unpack *u, int top, const struct tar_unpack_opts *o);

/* Unpacks the next bytes of the archive. -1 with u->failure. */
int tar_unpack_take(struct tar_unpack *u, const char *p, size_t n);

/* Ends the archive; whole false: gives it up. Unpacked files stay. -1 with u->failure. */
int tar_unpack_end(struct tar_unpack *u, bool whole);
