#pragma once
/* The new mount calls of Linux (5.2 and later), which neither C library here wraps fully. Each
 * returns a descriptor or 0, or -1 with errno. */
#include <stdbool.h>
#include <stdint.h>

/* as <linux/mount.h> has them, which some headers include */
#define MOUNT_ATTR_RDONLY 0x00000001
#define MOUNT_ATTR_NOSUID 0x00000002
#define MOUNT_ATTR_NODEV 0x00000004
#define MOUNT_ATTR_NOEXEC 0x00000008
#define MOUNT_ATTR_IDMAP 0x00100000

int mount_fsopen(const char *type);
int mount_fsconfig(int fs, const char *key, const char *value); /* value NULL: a flag */
int mount_fsconfig_create(int fs);
int mount_fsmount(int fs, uint64_t attr); /* detached */

/* A detached copy of the mount at path, with those below it when recursive. */
int mount_copy(int dir, const char *path, bool recursive);
int mount_setattr_tree(int tree, uint64_t attr, int userns); /* recursive; userns -1: none */
/* One mount alone. EBUSY: a file is open for writing. */
int mount_set_readonly(int mount, bool readonly);
/* Attaches a detached mount to path; "" means dir itself. */
int mount_attach(int tree, int dir, const char *path);
int mount_move(const char *from, const char *to);

/* The id of the mount that an open file is on, as /proc/self/mountinfo has it. */
int mount_id(int fd, uint64_t *ret_id);
/* Whether something is mounted on an entry of a directory; "": on what dir itself is. */
bool mount_stands_on(int dir, const char *name);

/* Changes options of a mounted file system. */
int mount_reconfigure(const char *path, const char *key, const char *value);
