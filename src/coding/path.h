#pragma once
/*
 * Paths in an agent's words. They are relative to the workspace, or absolute inside the sandbox.
 * Names may have any bytes, but JSON has only UTF-8, and a list one name a line: a path that would
 * not survive that is a file URI (RFC 8089), which percent-encodes bytes.
 */
#include "base/buf.h"

/* The absolute path, NUL-terminated, without "." and doubled slashes; ".." stays, as it may stand
 * behind a link. ERR_INVALID: empty, longer than max bytes, a NUL, or a URI that is none. */
int path_read(struct str root, struct str said, size_t max, struct buf *to, struct err *e) MUST_USE;

/* Likewise in its one spelling (base/path.h): absolute, or a file URI where the path would
 * not survive. */
int path_read_spelt(struct str root, struct str said, size_t max, struct buf *to,
		    struct err *e) MUST_USE;

/* How a path is said: relative where it is below root. */
int path_say(struct str root, struct str path, struct buf *to, struct err *e) MUST_USE;
