#include "box/archive/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <linux/stat.h> /* which clashes with the <sys/stat.h> of some C libraries */
#include <sys/syscall.h>
#include <unistd.h>
#include <asm/unistd.h>

#include "base/mem.h"

/* values of <linux/mount.h>, which clashes with <sys/mount.h> in some versions */
enum {
	FSOPEN_CLOEXEC_ = 1,
	FSMOUNT_CLOEXEC_ = 1,
	FSPICK_CLOEXEC_ = 1,
	FSCONFIG_SET_FLAG_ = 0,
	FSCONFIG_SET_STRING_ = 1,
	FSCONFIG_CMD_CREATE_ = 6,
	FSCONFIG_CMD_RECONFIGURE_ = 7,
	OPEN_TREE_CLONE_ = 1,
	AT_RECURSIVE_ = 0x8000,
	MOVE_MOUNT_F_EMPTY_PATH_ = 0x04,
	MOVE_MOUNT_T_EMPTY_PATH_ = 0x40,
};

struct mount_attr_v0 {
	uint64_t attr_set, attr_clr, propagation, userns_fd;
};

int mount_fsopen(const char *type)
{
	return (int)syscall(__NR_fsopen, type, FSOPEN_CLOEXEC_);
}

int mount_fsconfig(int fs, const char *key, const char *value)
{
	return (int)syscall(__NR_fsconfig, fs, value ? FSCONFIG_SET_STRING_ : FSCONFIG_SET_FLAG_,
			    key, value, 0);
}

int mount_fsconfig_create(int fs)
{
	return (int)syscall(__NR_fsconfig, fs, FSCONFIG_CMD_CREATE_, NULL, NULL, 0);
}

int mount_fsmount(int fs, uint64_t attr)
{
	return (int)syscall(__NR_fsmount, fs, FSMOUNT_CLOEXEC_, attr);
}

int mount_copy(int dir, const char *path, bool recursive)
{
	return (int)syscall(__NR_open_tree, dir, path,
			    OPEN_TREE_CLONE_ | O_CLOEXEC | AT_EMPTY_PATH |
				    (recursive ? AT_RECURSIVE_ : 0));
}

int mount_setattr_tree(int tree, uint64_t attr, int userns)
{
	struct mount_attr_v0 a = { .attr_set = attr };

	if (userns >= 0)
		a.userns_fd = (uint64_t)userns;
	return (int)syscall(__NR_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE_, &a,
			    sizeof(a));
}

int mount_set_readonly(int mount, bool readonly)
{
	const struct mount_attr_v0 a = { .attr_set = readonly ? MOUNT_ATTR_RDONLY : 0,
					 .attr_clr = readonly ? 0 : MOUNT_ATTR_RDONLY };

	return (int)syscall(__NR_mount_setattr, mount, "", AT_EMPTY_PATH, &a, sizeof(a));
}

int mount_attach(int tree, int dir, const char *path)
{
	return (int)syscall(__NR_move_mount, tree, "", dir, path,
			    MOVE_MOUNT_F_EMPTY_PATH_ | (*path ? 0 : MOVE_MOUNT_T_EMPTY_PATH_));
}

int mount_move(const char *from, const char *to)
{
	return (int)syscall(__NR_move_mount, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int mount_id(int fd, uint64_t *ret_id)
{
	struct statx st;

	if (syscall(__NR_statx, fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0)
		return -1;
	if (!(st.stx_mask & STATX_MNT_ID)) {
		errno = ENOSYS;
		return -1;
	}
	*ret_id = st.stx_mnt_id;
	return 0;
}

bool mount_stands_on(int dir, const char *name)
{
	struct statx st;

	return syscall(__NR_statx, dir, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH,
		       0, &st) == 0 &&
	       st.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

int mount_reconfigure(const char *path, const char *key, const char *value)
{
	autoclose int fs = (int)syscall(__NR_fspick, AT_FDCWD, path, FSPICK_CLOEXEC_);

	if (fs < 0 || mount_fsconfig(fs, key, value) < 0)
		return -1;
	return (int)syscall(__NR_fsconfig, fs, FSCONFIG_CMD_RECONFIGURE_, NULL, NULL, 0);
}
