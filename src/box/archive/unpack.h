#pragma once
/*
 * Archives (tar, plain or with gzip or zstd) and directories become trees of files
 * (box/archive/tree.h), read in a confined process (box/archive/confine.h).
 *
 * ERR_IMAGE: what is no such archive, is cut off or broken, or says what no image may: see tree.h;
 * devices, pipes and sockets (in /dev they are left out: sandboxes have their own).
 * ERR_TOO_LARGE: over the limits, or a stream that is over 250 times as long as what it is unpacked
 * from.
 *
 * Not taken over: owners, since all of an image belongs to the sandbox's user; set-user-id and
 * set-group-id bits and file capabilities, since nobody in a sandbox gains privileges while on the
 * host's disk they would give some; other attributes, since user.overlay.* and trusted.overlay.*
 * are commands to the kernel's overlays.
 */
#include "base/hash.h"
#include "box/archive/ignore.h"
#include "box/archive/tree.h"

struct unpack {
	int from; /* the archive, read from its position; or a directory or file */
	int to; /* directory to unpack below */
	bool layer; /* it has whiteouts (OCI image specification, "Layer Filesystem Changeset") */
	struct tree_limits limits;

	/* Only for copies: */
	/* path below `to`; STR_NONE: a directory's contents go to the top */
	struct str at;
	/* permissions of the copy itself, not of what is below it; 0: its own */
	uint32_t mode;
	bool merge; /* existing directories, and links to such, stay unchanged */
	const struct ignore *ignore; /* what of a directory is left out; NULL: nothing */
	struct str below; /* with ignore: the directory's cleaned path in its patterns */
};

struct unpacked {
	struct tree_count count; /* with what was there before */
	uint64_t size; /* bytes of the archive */
	char digest
		[HASH_HEX +
		 1]; /* of the archive; of a directory: of names, kinds, modes, contents, links */
	char stream[HASH_HEX + 1]; /* of the tar that was in it */
};

/* count: of earlier layers. */
int unpack_archive(const struct unpack *u, const struct tree_count *count, struct unpacked *ret,
		   struct err *e) MUST_USE;

/* The same in this process, for who is confined. */
int unpack_archive_here(const struct unpack *u, const struct tree_count *count,
			struct unpacked *ret, struct err *e) MUST_USE;

/* Copies a directory or a file. Names are sorted, so that the same contents at the same place have
 * the same digest. */
int unpack_copied(const struct unpack *u, const struct tree_count *count, struct unpacked *ret,
		  struct err *e) MUST_USE;
