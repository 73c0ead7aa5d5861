#include "hub/workspace/room.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/folder.h"
#include "hub/workspace/object.h"

static int add_object(void *arg, const struct object_id *id, uint64_t bytes, struct err *e)
{
	uint64_t *sum = arg;

	*sum += bytes;
	return 0;
}

/* The store in the folder `name` of dir; one that is not there, or goes meanwhile, has nothing. */
static int add_store(int dir, const char *name, uint64_t *sum, struct err *e)
{
	autoclose int store = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	autoclose int objects = store < 0 ? -1
					  : openat(store, "objects",
						   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const struct objects o = { .dir = objects, .new = -1 };

	if (objects < 0)
		return errno == ENOENT || errno == ENOTDIR
			     ? 0
			     : err_sys(e, errno, "measure what is kept of workspaces");
	for (unsigned i = 0; i < OBJECT_FOLDERS; i++) {
		if (objects_each(&o, i, add_object, sum, e) < 0)
			return -1;
	}
	return 0;
}

static int add_shots(const char *folder, uint64_t *sum, struct err *e)
{
	autofolder struct folder f = folder_of(folder);
	int rc = 0, more = 0;

	while (rc == 0 && (more = folder_next(&f)) > 0)
		rc = f.entry->d_name[0] == '.' ? 0
					       : add_store(folder_fd(&f), f.entry->d_name, sum, e);
	if (more < 0 && f.errnum != ENOENT)
		return err_sys(e, f.errnum, "measure what is kept of snapshots");
	return rc;
}

int room_left(const struct room *r, uint64_t *ret, struct err *e)
{
	uint64_t sum = 0;

	*ret = UINT64_MAX;
	if (!r->max)
		return 0;
	if ((r->workspaces && add_store(AT_FDCWD, r->workspaces, &sum, e) < 0) ||
	    (r->shots && add_shots(r->shots, &sum, e) < 0))
		return -1;
	*ret = sum < r->max ? r->max - sum : 0;
	return 0;
}
