#pragma once
/*
 * Folders of the host that no sandbox is given: those of the hub itself. Whoever could write there
 * would be the hub's next registry or warden, and whoever could read there would have its token.
 *
 * A file or folder is closed if it is such a folder, is in one, or has one in it, whatever links
 * and names lead there. A folder that does not exist yet counts as where it would be.
 */
#include "base/err.h"
#include "box/wire/wire.h"

/* Opens an absolute path below root (O_PATH), and the folder that it stands in, without following a
 * link anywhere: those who write to the folders of the path must not lead it elsewhere. What is
 * open is what is checked, and then mounted. -1 with errno, ELOOP for a link. */
int closed_open(int root, const char *path, int *ret_fd, int *ret_dir) MUST_USE;

/* Checks what closed_open() has given. paths: absolute, "" for none, found below root. ERR_DENIED
 * for what is closed, and for what can't be looked at. The message names no path. */
int closed_check(const char paths[WIRE_CLOSED_MAX][WIRE_PATH_MAX], int root, int fd, int dir,
		 struct err *e) MUST_USE;
