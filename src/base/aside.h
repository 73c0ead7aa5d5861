#pragma once
/* Files that nobody seems to need are moved aside instead of deleted. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

/* Renames an entry of `from` into the folder `to` of dir, which is made, beside what has its name
 * there. -1 with errno. */
static inline int move_aside(int from, const char *name, int dir, const char *to)
{
	char path[512];
	int n = 0, rc;

	if (mkdirat(dir, to, 0700) < 0 && errno != EEXIST)
		return -1;
	do {
		if (snprintf(path, sizeof(path), n ? "%s/%.255s.%d" : "%s/%.255s", to, name, n) >=
		    (int)sizeof(path)) {
			errno = ENAMETOOLONG;
			return -1;
		}
		rc = renameat2(from, name, dir, path, RENAME_NOREPLACE);
	} while (rc < 0 && errno == EEXIST && ++n < 1000);
	return rc;
}
