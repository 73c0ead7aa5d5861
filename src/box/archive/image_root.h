#pragma once
/*
 * What an unpacked image lacks to be the root of a sandbox: places for what is mounted there, a
 * /tmp, the names of the sandbox and of its user, the working directory. Done in a confined
 * process, like the unpacking.
 */
#include "box/archive/tree.h"

enum { IMAGE_USER_MAX = 32, IMAGE_HOME_MAX = 255 };

struct image_user {
	char name[IMAGE_USER_MAX + 1], home[IMAGE_HOME_MAX + 1];
};

/*
 * user: what the image says (USER: a name or number, with a group or without; STR_NONE: root). Who
 * it becomes is the sandbox's user, who owns all of the image and has the number 1000. It is called
 * as the image says, with that one's home; "agent" where that is root or nobody that /etc/passwd
 * knows, with root's home or /home/agent. workdir: STR_NONE or an absolute path, made if it is
 * missing.
 */
int image_root_finish(int root, struct str user, struct str workdir, struct image_user *ret,
		      struct err *e) MUST_USE;
