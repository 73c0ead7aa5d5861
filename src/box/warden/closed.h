#pragma once
/*
 * Folders of the host that no sandbox is given: those of the hub itself. A sandbox that could write
 * there could replace the hub's registry or warden, and one that could read there would have its
 * token.
 *
 * A file or folder is closed if it is such a folder, is in one, or contains one, through any links
 * and names. A folder that does not exist yet counts as where it would be.
 *
 * Below the folder BOX_STATE (box/wire/state.h) of such a folder the hub keeps what agents write in
 * their sandboxes, with their log-ins. That is closed but for mounts that the operator or the hub
 * itself named (sandbox_mount.state). The folder BOX_STATE is closed for those, too.
 */
#include "base/err.h"
#include "box/wire/wire.h"

/* Opens an absolute path below root (O_PATH), and the folder that contains it, without following
 * any link: those who can write to the folders of the path must not redirect it. The open file is
 * then checked and mounted. -1 with errno, ELOOP for a link. */
int closed_open(int root, const char *path, int *ret_fd, int *ret_dir) MUST_USE;

/* What closed_open() has opened. state: it may be below BOX_STATE. */
struct closed_asked {
	int fd, dir;
	bool state;
};

/* Checks the files that closed_open() has opened. paths: absolute, "" for none, found below root.
 * ERR_DENIED for closed files, and for those that can't be checked. The message contains no
 * path. */
int closed_check(const char paths[WIRE_CLOSED_MAX][WIRE_PATH_MAX], int root,
		 const struct closed_asked *a, struct err *e) MUST_USE;
