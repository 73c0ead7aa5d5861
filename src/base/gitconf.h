#pragma once
/*
 * Two files of git, without I/O: its configuration (git-config(1), "Syntax") and its index
 * (gitformat-index(5)). They are read in the privileged process, so both are bounded and fuzzed
 * (tests/fuzz/gitconf.c). What git itself refuses may pass here, but nothing that git accepts is
 * read as something else: the rest is malformed.
 */
#include "base/err.h"
#include "base/str.h"

enum { GITCONF_KEY_MAX = 1024, GITCONF_BYTES_MAX = 1 << 20, GITINDEX_BYTES_MAX = 256 << 20 };

/* key: "section.subsection.name" or "section.name", in small letters but for the subsection. value:
 * NUL-terminated, may be written to. Both are borrowed for the call. Not 0: stop and return it. */
typedef int gitconf_fn(void *data, const char *key, char *value);

/* Each variable with a value. -1 with errno: EINVAL for a file that is malformed. */
int gitconf_read(struct str text, gitconf_fn *fn, void *data) MUST_USE;

enum gitindex_kind {
	GITINDEX_LINK, /* another repository (a gitlink) */
	GITINDEX_HIDDEN, /* git does not look whether the file is as it was */
};

/* Not 0: stop and return it. */
typedef int gitindex_fn(void *data, const char *path, enum gitindex_kind kind);

/* Each path that is one of these, or two. hash: bytes of an object's name. ret_shared:
 * the name of the index that this one adds to, as bytes in `text`; n 0: none. -1 with errno. */
int gitindex_read(struct str text, size_t hash, gitindex_fn *fn, void *data,
		  struct str *ret_shared) MUST_USE;
