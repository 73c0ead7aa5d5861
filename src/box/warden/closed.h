#pragma once
/*
 * Folders of the host that no sandbox is given: those of the hub itself. A sandbox that could write
 * there could replace the hub's registry or warden, and one that could read there would have its
 * token.
 *
 * A file or folder is closed if it is such a folder, is in one, or contains one, through any links
 * and names. A folder that does not exist yet counts as where it would be.
 *
 * What is below the folder BOX_STATE (box/wire/state.h) of such a folder is not closed, but that
 * folder itself is: there the hub keeps what agents write in their sandboxes.
 */
#include "base/err.h"
#include "box/wire/wire.h"

/* Opens an absolute path below root (O_PATH), and the folder that contains it, without following
 * any link: those who can write to the folders of the path must not redirect it. The open file is
 * then checked and mounted. -1 with errno, ELOOP for a link. */
int closed_open(int root, const char *path, int *ret_fd, int *ret_dir) MUST_USE;

/* Checks the files that closed_open() has opened. paths: absolute, "" for none, found below root.
 * ERR_DENIED for closed files, and for those that can't be checked. The message contains no
 * path. */
int closed_check(const char paths[WIRE_CLOSED_MAX][WIRE_PATH_MAX], int root, int fd, int dir,
		 struct err *e) MUST_USE;
