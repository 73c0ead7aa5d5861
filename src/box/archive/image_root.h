#pragma once
/*
 * Completes an unpacked image as the root of a sandbox: mount points, a /tmp, the names of the
 * sandbox and its user, the working directory. Runs in a confined process, like the unpacking.
 */
#include "box/archive/tree.h"

enum { IMAGE_USER_MAX = 32, IMAGE_HOME_MAX = 255 };

struct image_user {
	char name[IMAGE_USER_MAX + 1], home[IMAGE_HOME_MAX + 1];
};

/*
 * user: the image's USER (a name or number, with or without a group; STR_NONE: root). It becomes
 * the sandbox's user, who owns the whole image and has number 1000, with the image's name and home.
 * For root, and for users missing in /etc/passwd, the name is "agent", with root's home or
 * /home/agent. workdir: STR_NONE or an absolute path, created if it is missing.
 */
int image_root_finish(int root, struct str user, struct str workdir, struct image_user *ret,
		      struct err *e) MUST_USE;
