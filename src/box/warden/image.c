/*
 * Images as the lowest layer of a sandbox's overlay: the image's root/ in the host's tree, mounted
 * on /l/N/u like the files of every other layer, read-only, and mapped so that its owner on the
 * host (the user who imported it) is the sandbox's user. Without privileges both are the same
 * anyway.
 *
 * The tree of a workspace is mounted likewise, but above the sandbox's other layers.
 *
 * Its folder has a shared lock while the layer exists: those who remove images check it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <linux/openat2.h>
#include <unistd.h>

#include "base/mem.h"
#include "box/archive/mount.h"
#include "box/warden/internal.h"

static int open_below(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = { .flags = flags | O_CLOEXEC,
				.resolve = resolve | RESOLVE_NO_MAGICLINKS };

	return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

static int check_place(int root, const char *guest, struct err *e)
{
	autoclose int fd = open_below(root, guest + 1, O_PATH | O_DIRECTORY,
				      RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);

	return fd < 0 ? err_sys(e, errno, "%s of the image", guest) : 0;
}

/* The places of the sandbox's own mounts must be directories: during set-up of a sandbox, a link
 * there would be followed to outside of its root. */
static int check_places(const struct store *s, int root, bool of_host, struct err *e)
{
	for (uint32_t i = 0; i < s->n_binds; i++) {
		if ((of_host || !s->binds[i].of_host) &&
		    check_place(root, s->binds[i].guest, e) < 0)
			return -1;
	}
	return check_place(root, "/proc", e);
}

/* Sets the error for a file system whose mounts can't be mapped, and returns -1. */
static int cannot_map(const struct host *h, int errnum, struct err *e)
{
	/* it belongs to the user namespace that mounted it */
	if (h->nested && errnum == EPERM)
		err_set(e, ERR_UNSUPPORTED,
			"root of a user namespace can have images only on a file system that was "
			"mounted in it: use one, as a tmpfs, or run Holt as another user");
	else
		err_sys(e, errnum, "give the image to the sandbox's user");
	e->code = ERR_UNSUPPORTED;
	return -1;
}

static int was_removed(struct err *e)
{
	return err_set(e, ERR_TEMPLATE_NOT_FOUND, "the image was removed");
}

/* The image's files, as a detached mount. */
static int copy_root(const struct host *h, int folder, uint32_t uid, struct err *e)
{
	const uint64_t attr = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	autoclose int root = open_below(folder, "root", O_PATH | O_DIRECTORY,
					RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	autoclose int userns = -1;
	autoclose int tree = -1;
	struct stat st;

	if (root < 0 && errno == ENOENT)
		return was_removed(e); /* it was removed before we had the lock */
	if (root < 0 || fstat(root, &st) < 0)
		return err_sys(e, errno, "open the image");
	tree = mount_copy(root, "", false);
	if (tree < 0 || mount_setattr_tree(tree, attr, -1) < 0)
		return err_sys(e, errno, "mount the image");
	if (!h->one_uid) {
		userns = store_idmap(h, &(struct idmap){ st.st_uid, st.st_gid, uid, 1 });
		if (userns < 0 || mount_setattr_tree(tree, MOUNT_ATTR_IDMAP, userns) < 0)
			return cannot_map(h, errno, e);
	}
	return take_fd(&tree);
}

static int open_folder(const char *path, struct err *e)
{
	autoclose int host = open("/h", O_PATH | O_DIRECTORY | O_CLOEXEC);
	autoclose int fd = open_below(host, path, O_RDONLY | O_DIRECTORY, RESOLVE_IN_ROOT);

	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0)
		return was_removed(e);
	return take_fd(&fd);
}

/* Mounts the files in place of the layer's own. */
static int image_attach(struct layer *l, int tree)
{
	char path[64];

	l->mounted = true;

	snprintf(path, sizeof(path), "/l/%u", l->id);
	if (mkdir(path, 0755) < 0)
		return -1;
	snprintf(path, sizeof(path), "/l/%u/u", l->id);
	return mkdir(path, 0755) < 0 ? -1 : mount_attach(tree, AT_FDCWD, path);
}

/* The tree below a folder as a layer, without what tells its kind. of_host: -1 for a workspace,
 * which has none of the sandbox's own mounts. */
static struct layer *layer_of_folder(struct store *s, const struct host *h, const char *path,
				     int of_host, uint32_t uid, struct err *e)
{
	autofree struct layer *l = calloc(1, sizeof(*l));
	autoclose int folder = -1;
	autoclose int tree = -1;

	if (!l) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	folder = open_folder(path, e);
	tree = folder < 0 ? -1 : copy_root(h, folder, uid, e);
	if (tree < 0 || (of_host >= 0 && check_places(s, tree, of_host > 0, e) < 0))
		return NULL;
	l->id = ++s->last_layer;
	l->refs = 1;
	l->image = take_fd(&folder);
	if (image_attach(l, tree) == 0)
		return take_ptr(l);
	err_sys(e, errno, "mount the files");
	layer_unref(take_ptr(l));
	return NULL;
}

struct layer *store_layer_image(struct store *s, const struct host *h, const struct origin *from,
				uint32_t uid, struct err *e)
{
	struct layer *l;

	if (s->plain) {
		err_set(e, ERR_UNSUPPORTED,
			"images take overlays, which users without privileges have since Linux "
			"6.6");
		return NULL;
	}
	l = layer_of_folder(s, h, from->image, from->of_host, uid, e);
	if (!l)
		return NULL;
	l->complete = true;
	l->base = true;
	l->of_host = from->of_host;
	l->uid = uid;
	return l;
}

struct layer *store_layer_workspace(struct store *s, const struct host *h, const char *folder,
				    uint32_t uid, struct err *e)
{
	struct layer *l = layer_of_folder(s, h, folder, -1, uid, e);

	if (l)
		l->workspace = true;
	else if (e->code == ERR_TEMPLATE_NOT_FOUND)
		err_set(e, ERR_CONFLICT, "the files of the workspace are being replaced");
	return l;
}

/* Returns a mount of the skeleton in which its files, and copies of them in upper layers, belong to
 * ids of the sandbox. */
static int map_skeleton(const struct host *h, uint32_t uid, struct err *e)
{
	autoclose int userns = store_idmap(h, &(struct idmap){ 0, 0, uid, ROOT_IDS });
	autoclose int tree = mount_copy(AT_FDCWD, "/skel", false);

	if (userns < 0 || tree < 0)
		return err_sys(e, errno, "copy the mount of the skeleton");
	if (mount_setattr_tree(tree, MOUNT_ATTR_RDONLY | MOUNT_ATTR_IDMAP, userns) == 0)
		return take_fd(&tree);
	err_sys(e, errno, "give the skeleton to the sandbox's root");
	if (errno == EINVAL)
		err_set(e, ERR_UNSUPPORTED, "root inside takes Linux 6.3 or later");
	return -1;
}

struct layer *store_layer_skeleton(struct store *s, const struct host *h, uint32_t uid,
				   struct err *e)
{
	autofree struct layer *l = calloc(1, sizeof(*l));
	autoclose int tree = l ? map_skeleton(h, uid, e) : -1;

	if (!l)
		err_set(e, ERR_LIMIT, "out of memory");
	if (tree < 0)
		return NULL;
	*l = (struct layer){ .id = ++s->last_layer,
			     .refs = 1,
			     .image = -1,
			     .complete = true,
			     .base = true,
			     .uid = uid };
	if (image_attach(l, tree) == 0)
		return take_ptr(l);
	err_sys(e, errno, "mount the skeleton");
	layer_unref(take_ptr(l));
	return NULL;
}

const struct layer *chain_base(const struct chain *c)
{
	const struct layer *lowest = c->n_frozen ? c->frozen[c->n_frozen - 1] : NULL;

	return lowest && lowest->base ? lowest : NULL;
}

const struct layer *chain_image(const struct chain *c)
{
	const struct layer *base = chain_base(c);

	return base && base->image >= 0 ? base : NULL;
}

bool chain_of_host(const struct chain *c)
{
	const struct layer *image = chain_image(c);

	return !image || image->of_host;
}
