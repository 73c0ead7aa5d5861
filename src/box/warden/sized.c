#include "box/warden/sized.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>

#include "base/mem.h"

/* File systems with a size of their own: others report the free space of the moment, or what a
 * server says. */
static bool is_known(const struct statfs *s)
{
	static const uint32_t known[] = { EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
					  F2FS_SUPER_MAGIC, TMPFS_MAGIC };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if ((uint32_t)s->f_type == known[i])
			return s->f_blocks > 0; /* a tmpfs without a limit reports 0 */
	}
	return false;
}

/* A directory under a project quota does not count: statfs(2) reports the quota, with a soft limit
 * the soft one, which stops nothing; and files that were moved into the folder may belong to
 * another project. */
static bool is_in_project(int tree)
{
	autoclose int dir = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct fsxattr x;

	if (dir < 0)
		return errno != ENOTDIR;
	return ioctl(dir, (int)FS_IOC_FSGETXATTR /* musl's ioctl(2) */, &x) == 0 &&
	       (x.fsx_xflags & FS_XFLAG_PROJINHERIT);
}

int sized_check(int tree, uint64_t size, struct err *e)
{
	struct statfs s;

	if (fstatfs(tree, &s) < 0)
		return err_sys(e, errno, "ask for the size of what is to be mounted");
	if (!is_known(&s) || (uint64_t)s.f_blocks > size / (uint64_t)s.f_bsize ||
	    is_in_project(tree))
		return err_set(e, ERR_NO_QUOTA,
			       "nothing on the host ends this folder at %llu bytes",
			       (unsigned long long)size);
	return 0;
}
