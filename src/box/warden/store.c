/*
 * The files of sandboxes. There are two mount namespaces, neither of them the host's:
 *
 * 	store	The warden runs in it. Root tmpfs; /h is the host's tree, /l/N are the layers
 * 		(images among them), /skel is the template's skeleton, a tmpfs of its own, and
 * 		an overlay of many layers is mounted at /many while it is made.
 * 	base	Every sandbox's mount namespace is a copy of it. Root tmpfs, read-only; the
 * 		sandbox's root goes to /r, and /t/... is what its template binds. It has few
 * 		mounts, so that the copy is cheap however many layers the store holds.
 *
 * A sandbox's root is an overlay: the skeleton, its frozen layers, its writable layer. Layers are
 * tmpfs, so a size limit is exact and nothing is ever left on disk.
 *
 * An overlay made without privileges keeps its marks (of directories that were made anew or
 * renamed) in user.* attributes, which tmpfs has since Linux 6.6. Before, such an overlay gives EIO
 * and EXDEV where programs don't expect them, and there are none: layers are plain.
 *
 * The host's /usr is a bind mount, not a lower layer: an overlay does not cross mounts, and / as a
 * lower layer would show /etc.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "box/archive/mount.h"
#include "box/warden/closed.h"
#include "box/warden/sized.h"
#include "box/archive/template_host.h"
#include "box/warden/internal.h"

/* ---- small steps ----------------------------------------------------------------------------- */

/* The mode is exact, as the warden's umask is 0. */
static int make_dir(const char *path, mode_t mode)
{
	if (mkdir(path, mode) == 0)
		return 0;
	return errno == EEXIST ? chmod(path, mode) : -1;
}

/* Detached. */
static int make_tmpfs(uint64_t size, uint64_t inodes, const char *mode, uint64_t attr)
{
	autoclose int fs = mount_fsopen("tmpfs");
	char text[32];

	if (fs < 0)
		return -1;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)size);
	if (mount_fsconfig(fs, "size", text) < 0)
		return -1;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)inodes);
	if (mount_fsconfig(fs, "nr_inodes", text) < 0 || mount_fsconfig(fs, "mode", mode) < 0 ||
	    mount_fsconfig_create(fs) < 0)
		return -1;
	return mount_fsmount(fs, attr);
}

static int new_tmpfs(const char *at, uint64_t size, uint64_t inodes, uint64_t attr)
{
	autoclose int tree = make_tmpfs(size, inodes, "0755", attr);

	return tree < 0 ? -1 : mount_attach(tree, AT_FDCWD, at);
}

enum { ENTER_TRIES = 1000, ENTER_PAUSE_US = 2000 };

/* The kernel's memory may be short for a moment. */
static int enter_mntns(int fd)
{
	int rc, tries = 0;

	while ((rc = setns(fd, CLONE_NEWNS)) < 0 && ++tries < ENTER_TRIES &&
	       (errno == ENOMEM || errno == EAGAIN || errno == EINTR))
		usleep(ENTER_PAUSE_US);
	return rc;
}

int store_enter_base(const struct store *s)
{
	return enter_mntns(s->ns_base);
}

void store_return(const struct store *s)
{
	if (enter_mntns(s->ns_store) == 0)
		return;
	log_error("the warden can't return to its mount namespace: %s", strerror(errno));
	_exit(1);
}

static int open_mntns(int proc)
{
	return openat(proc, "self/ns/mnt", O_RDONLY | O_CLOEXEC);
}

/* ---- the skeleton ---------------------------------------------------------------------------- */

static struct {
	/* the file system that it is copied to, until that is attached */
	int tree;
	/* the process that copies it; 0: none */
	pid_t maker;
	/* why it could not be made */
	int errnum;
} skeleton = { .tree = -1 };

/* The warden needs longer to copy hundreds of small files than for everything else before its first
 * sandbox, so a process of its own copies them meanwhile. `host` is where the host's tree is. */
static int skeleton_start(const char *host)
{
	skeleton.tree = make_tmpfs(64 * MIB, 65536, "0755", MOUNT_ATTR_NOSUID);
	if (skeleton.tree < 0)
		return -1;
	skeleton.maker = fork();
	if (skeleton.maker < 0)
		close_fd(&skeleton.tree);
	if (skeleton.maker != 0)
		return skeleton.maker;
	prctl(PR_SET_NAME, "holt-skeleton");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	_exit(fchdir(skeleton.tree) < 0 || template_host_skeleton(".", host) < 0 ? errno : 0);
}

void store_begin(void)
{
	if (skeleton_start("") < 0)
		log_debug("the skeleton is copied later: %s", strerror(errno));
}

/* ---- the two namespaces ---------------------------------------------------------------------- */

/* Replaces the root by an empty tmpfs, with the old root at `old` in it. */
static int swap_root(const char *old)
{
	char inside[64];

	if (new_tmpfs("/tmp", 64 * MIB, 65536, MOUNT_ATTR_NOSUID) < 0)
		return -1;
	snprintf(inside, sizeof(inside), "/tmp%s", old);
	if (make_dir(inside, 0755) < 0 || syscall(SYS_pivot_root, "/tmp", inside) < 0)
		return -1;
	return chdir("/");
}

static int make_store_ns(struct store *s, const struct host *h)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ||
	    swap_root("/h") < 0)
		return -1;
	if (make_dir("/l", 0755) < 0 || make_dir("/skel", 0755) < 0 || make_dir("/many", 0755) < 0)
		return -1;
	/* without privileges this namespace is the first in which it can be made */
	if ((skeleton.tree < 0 && skeleton_start("/h") < 0) ||
	    mount_attach(skeleton.tree, AT_FDCWD, "/skel") < 0)
		return -1;
	close_fd(&skeleton.tree);
	s->ns_store = open_mntns(h->proc);
	return s->ns_store < 0 ? -1 : 0;
}

/* Makes a device node in the template's /dev: a real one where that is allowed, else a bind of the
 * host's. */
static int add_device(const char *name, dev_t dev)
{
	char path[64], host[64];
	autoclose int tree = -1;

	snprintf(path, sizeof(path), "/t/dev/%s", name);
	if (mknod(path, S_IFCHR | 0666, dev) == 0)
		return chmod(path, 0666);
	snprintf(host, sizeof(host), "/old/h/dev/%s", name);
	if (mknod(path, S_IFREG | 0666, 0) < 0)
		return -1;
	tree = mount_copy(AT_FDCWD, host, false);
	return tree < 0 ? -1 : mount_attach(tree, AT_FDCWD, path);
}

static int make_dev(void)
{
	static const struct {
		const char *name;
		unsigned major, minor;
	} devices[] = {
		{ "null", 1, 3 }, { "zero", 1, 5 },   { "full", 1, 7 },
		{ "tty", 5, 0 },  { "random", 1, 8 }, { "urandom", 1, 9 },
	};
	static const struct {
		const char *name, *target;
	} links[] = {
		{ "fd", "/proc/self/fd" },	 { "stdin", "/proc/self/fd/0" },
		{ "stdout", "/proc/self/fd/1" }, { "stderr", "/proc/self/fd/2" },
		{ "shm", "/run/shm" },		 { "ptmx", "pts/ptmx" },
	};
	char path[64];

	/* not MOUNT_ATTR_NODEV, unlike everything else */
	if (new_tmpfs("/t/dev", MIB, 256, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(devices); i++) {
		if (add_device(devices[i].name, makedev(devices[i].major, devices[i].minor)) < 0)
			return -1;
	}
	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		snprintf(path, sizeof(path), "/t/dev/%s", links[i].name);
		if (symlink(links[i].target, path) < 0)
			return -1;
	}
	return make_dir("/t/dev/pts", 0755); /* see spawn.c */
}

/* Makes the directories that a sandbox's first layer has besides the skeleton: those of its
 * user. */
static int own_dirs(const char *top, uint32_t uid, bool root)
{
	const uint32_t owners[] = {
		[OWNED_ROOT] = root ? uid : 0,
		[OWNED_USER] = uid,
		[OWNED_AGENT] = root ? uid + GUEST_UID : uid,
	};
	char path[128];

	for (size_t i = 0; i < template_host_n_owned; i++) {
		const struct owned_dir *d = &template_host_owned[i];

		snprintf(path, sizeof(path), "%s%s", top, d->path);
		if (make_dir(path, d->mode) < 0 ||
		    lchown(path, owners[d->owner], owners[d->owner]) < 0)
			return -1;
	}
	return 0;
}

bool store_settled(bool wait)
{
	int status = 0;
	pid_t pid = 0;

	if (skeleton.maker > 0) {
		do {
			pid = waitpid(skeleton.maker, &status, wait ? 0 : WNOHANG);
		} while (pid < 0 && errno == EINTR);
		if (pid == 0)
			return false;
		skeleton.maker = 0;
		skeleton.errnum = WIFEXITED(status) ? WEXITSTATUS(status) : ECANCELED;
	}
	return true;
}

/* No overlay may use it before it is complete. */
static int skeleton_await(void)
{
	store_settled(true);
	errno = skeleton.errnum;
	return errno ? -1 : 0;
}

/* Decides how overlays keep their marks and whether layers are plain; prepares the skeleton for
 * copies of it as a whole. */
static int choose_layers(struct store *s, const struct host *h)
{
	struct statvfs v;

	s->userxattr = h->nested;
	if (!h->nested || setxattr("/skel", "user.overlay.try", "y", 1, 0) == 0) {
		removexattr("/skel", "user.overlay.try");
		return 0;
	}
	/* Layers that are copied belong to one user. */
	if (errno != EOPNOTSUPP || !h->one_uid || skeleton_await() < 0 ||
	    own_dirs("/skel", h->uid_base, false) < 0 || statvfs("/skel", &v) < 0)
		return -1;
	s->plain = true;
	s->skel_bytes = (uint64_t)(v.f_blocks - v.f_bfree) * v.f_frsize;
	s->skel_inodes = v.f_files - v.f_ffree;
	return 0;
}

static int add_bind(struct store *s, const char *base, const char *guest, bool of_host)
{
	if (s->n_binds == BINDS_MAX) {
		errno = E2BIG;
		return -1;
	}
	snprintf(s->binds[s->n_binds].base, sizeof(s->binds[0].base), "%s", base);
	snprintf(s->binds[s->n_binds].guest, sizeof(s->binds[0].guest), "%s", guest);
	s->binds[s->n_binds].of_host = of_host;
	s->n_binds++;
	return 0;
}

static int set_readonly(const char *path, uint64_t attr)
{
	autoclose int fd = open(path, O_PATH | O_CLOEXEC);

	return fd < 0 ? -1 : mount_setattr_tree(fd, MOUNT_ATTR_RDONLY | attr, -1);
}

/* Binds the host's directory dir, read-only, for every sandbox of the host template. */
static int bind_host_dir(struct store *s, const char *dir)
{
	autoclose int tree = -1;
	char from[64], to[32];

	snprintf(from, sizeof(from), "/old/h%s", dir);
	snprintf(to, sizeof(to), "/t%s", dir);
	tree = mount_copy(AT_FDCWD, from, true);
	if (tree < 0 || make_dir(to, 0755) < 0 ||
	    mount_setattr_tree(tree, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, -1) <
		    0 ||
	    mount_attach(tree, AT_FDCWD, to) < 0)
		return -1;
	return add_bind(s, to, dir, true);
}

/* Binds /usr, and each of /bin, /lib … that is a directory, not a link into /usr. */
static int bind_host_dirs(struct store *s)
{
	struct stat st;
	char path[64];

	for (size_t i = 0; i < template_host_n_dirs; i++) {
		snprintf(path, sizeof(path), "/old/h%s", template_host_dirs[i]);
		if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
		    bind_host_dir(s, template_host_dirs[i]) < 0)
			return -1;
	}
	return 0;
}

/* Its file system, which is yet to be mounted. */
static int make_host_layer(const struct store *s, const char *base)
{
	autoclose int fs = mount_fsopen("overlay");
	char lower[64];

	snprintf(lower, sizeof(lower), "%s:/t/empty", base); /* one layer alone is refused */
	if (fs < 0 || mount_fsconfig(fs, "lowerdir", lower) < 0 ||
	    (s->userxattr && mount_fsconfig(fs, "userxattr", NULL) < 0) ||
	    mount_fsconfig_create(fs) < 0)
		return -1;
	return take_fd(&fs);
}

int store_host_layer(const struct store *s, const char *base)
{
	autoclose int fs = make_host_layer(s, base);

	return fs < 0 ? -1
		      : mount_fsmount(fs, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

/* Whether something else is mounted below a directory; an overlay would hide it. */
static bool has_mounts_below(const struct host *h, const char *dir)
{
	int fd = openat(h->proc, "self/mountinfo", O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	size_t n = strlen(dir), room = 0;
	autofree char *line = NULL;
	bool found = false;
	char at[512];

	if (!f) {
		close_fd(&fd);
		return true;
	}
	while (!found && getline(&line, &room, f) >= 0)
		found = sscanf(line, "%*s %*s %*s %*s %511s", at) != 1 ||
			(strncmp(at, dir, n) == 0 && at[n] == '/');
	found = found || ferror(f);
	fclose(f);
	return found;
}

/* Where the kernel or the host's mounts don't allow it, the directory itself is bound. The trial is
 * not mounted: to unmount it takes a grace period of the kernel, milliseconds on a busy machine. */
static void choose_host_layers(struct store *s, const struct host *h)
{
	for (uint32_t i = 0; i < s->n_binds; i++) {
		autoclose int fs = has_mounts_below(h, s->binds[i].base)
					 ? -1
					 : make_host_layer(s, s->binds[i].base);

		s->binds[i].layered = fs >= 0;
		if (fs < 0)
			log_info("sandboxes of the host template can watch and lock files of %s: "
				 "no overlay can be made of it",
				 s->binds[i].guest);
	}
}

/* In a user namespace a new /proc may be mounted only where a complete one is visible. Each sandbox
 * unmounts this one once it has its own. */
static int keep_proc(void)
{
	autoclose int tree = mount_copy(AT_FDCWD, "/old/h/proc", true);

	return tree < 0 ? -1 : mount_attach(tree, AT_FDCWD, "/t/proc");
}

/* holt-init lies on a mount that is read-only also for those who find the file through /proc/1/exe:
 * without privileges the sandbox's own user owns the file. */
static int put_init(int from, const char *to)
{
	autoclose int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0555);
	off_t at = 0;
	ssize_t n = 1;

	while (fd >= 0 && n > 0)
		n = sendfile(fd, from, &at, 1 << 20);
	return fd < 0 || n < 0 ? -1 : fchmod(fd, 0555);
}

/* Only for programs to find; a host without them does not matter. */
static void bind_cgroups(struct store *s, const struct cgroups *c)
{
	for (s->n_cgroups = 0; s->n_cgroups < c->n_seen; s->n_cgroups++) {
		autoclose int tree = -1;
		char path[sizeof(c->seen[0].path) + 8], to[32];

		snprintf(path, sizeof(path), "/old/h%s", c->seen[s->n_cgroups].path);
		snprintf(to, sizeof(to), "/t/cgroup/%u", s->n_cgroups);
		tree = mount_copy(AT_FDCWD, path, false);
		if (tree < 0 || make_dir(to, 0755) < 0 ||
		    mount_setattr_tree(tree,
				       MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					       MOUNT_ATTR_NOEXEC,
				       -1) < 0 ||
		    mount_attach(tree, AT_FDCWD, to) < 0)
			break;
	}
}

static int make_base_ns(struct store *s, const struct host *h, const struct cgroups *c)
{
	static const char *const dirs[] = { "/r",	"/n",	    "/t",	 "/t/dev",
					    "/t/empty", "/t/facts", "/t/cgroup", "/t/proc" };

	if (unshare(CLONE_NEWNS) < 0 || make_dir("/tmp", 0755) < 0 || swap_root("/old") < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		if (make_dir(dirs[i], 0755) < 0)
			return -1;
	}
	if (make_dev() < 0 || bind_host_dirs(s) < 0)
		return -1;
	choose_host_layers(s, h);
	if (add_bind(s, "/t/dev", "/dev", false) < 0)
		return -1;
	if ((h->nested && keep_proc() < 0) || put_init(h->init, "/t/holt-init") < 0)
		return -1;
	bind_cgroups(s, c);
	if (umount2("/old", MNT_DETACH) < 0 || rmdir("/old") < 0)
		return -1;
	s->facts = mount_copy(AT_FDCWD, "/", false);
	if (s->facts < 0 || set_readonly("/", MOUNT_ATTR_NOSUID) < 0)
		return -1;
	s->init = open("/t/holt-init", O_PATH | O_CLOEXEC);
	s->base_root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	s->ns_base = open_mntns(h->proc);
	return s->init < 0 || s->base_root < 0 || s->ns_base < 0 ? -1 : enter_mntns(s->ns_store);
}

int store_init(struct store *s, const struct host *h, const struct cgroups *c, struct err *e)
{
	const char *step = NULL;

	if (make_store_ns(s, h) < 0)
		step = "make the mount namespace of the store";
	else if (choose_layers(s, h) < 0)
		step = "prepare the skeleton for copying";
	else if (make_base_ns(s, h, c) < 0)
		step = "make the mount namespace that sandboxes start from";
	if (!step)
		return 0;
	err_sys(e, errno, "%s", step);
	if (e->code != ERR_LIMIT)
		e->code = ERR_UNSUPPORTED; /* whatever failed, this host does not let us */
	return -1;
}

/* ---- layers ---------------------------------------------------------------------------------- */

static void layer_path(char path[64], const struct layer *l, const char *below)
{
	snprintf(path, 64, "/l/%u%s", l->id, below);
}

void store_layer_remove(uint32_t id)
{
	char path[64];

	snprintf(path, sizeof(path), "/l/%u", id);
	umount2(path, MNT_DETACH);
	rmdir(path);
}

static uint64_t inodes_for(uint64_t disk)
{
	/* one for every 4 KiB (file systems on disk have one for every 16), and at least enough for
	 * an empty home */
	return disk / 4096 + 1024;
}

struct layer *store_layer_new(struct store *s, uint64_t disk, struct err *e)
{
	autofree struct layer *l = calloc(1, sizeof(*l));
	char path[64];

	if (!l) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	l->id = ++s->last_layer;
	l->refs = 1;
	l->image = -1;
	layer_path(path, l, "");
	if (make_dir(path, 0755) < 0 ||
	    new_tmpfs(path, disk + s->skel_bytes, inodes_for(disk) + s->skel_inodes,
		      MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV) < 0) {
		err_sys(e, errno, "make a layer of files");
		rmdir(path);
		return NULL;
	}
	layer_path(path, l, "/u");
	if (make_dir(path, 0755) == 0) {
		layer_path(path, l, "/w");
		if (make_dir(path, 0755) == 0)
			return take_ptr(l);
	}
	err_sys(e, errno, "prepare a layer of files");
	layer_unref(take_ptr(l));
	return NULL;
}

int store_layer_own(const struct store *s, const struct layer *l, uint32_t uid, bool root,
		    struct err *e)
{
	char path[64];

	layer_path(path, l, "/u");
	if (!s->plain && own_dirs(path, uid, root) < 0)
		return err_sys(e, errno, "make the home directory");
	return 0;
}

int store_layer_open(const struct layer *l)
{
	char path[64];

	layer_path(path, l, "/u");
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

struct layer *layer_ref(struct layer *l)
{
	l->refs++;
	return l;
}

void layer_unref(struct layer *l)
{
	char path[64];

	if (!l || --l->refs)
		return;
	if (l->mounted) { /* not by the broom: the lock must be held until it is unmounted */
		layer_path(path, l, "/u");
		umount2(path, MNT_DETACH);
		rmdir(path);
		close_fd(&l->image); /* this releases the lock, if there is one */
	}
	if (!broom_take(l->id))
		store_layer_remove(l->id);
	free(l);
}

void chain_fini(struct chain *c)
{
	layer_unref(c->upper);
	for (uint32_t i = 0; i < c->n_frozen; i++)
		layer_unref(c->frozen[i]);
	*c = (struct chain){ 0 };
}

int store_layer_resize(const struct store *s, const struct layer *l, uint64_t disk, struct err *e)
{
	char path[64], text[32];

	layer_path(path, l, "");
	snprintf(text, sizeof(text), "%llu", (unsigned long long)(disk + s->skel_bytes));
	if (mount_reconfigure(path, "size", text) < 0)
		return err_sys(e, errno, "set the disk limit");
	snprintf(text, sizeof(text), "%llu",
		 (unsigned long long)(inodes_for(disk) + s->skel_inodes));
	if (mount_reconfigure(path, "nr_inodes", text) < 0)
		return err_sys(e, errno, "set the limit of files");
	return 0;
}

uint64_t store_layer_used(const struct layer *l)
{
	struct statvfs v;
	char path[64];

	layer_path(path, l, "");
	return statvfs(path, &v) < 0 ? 0 : (uint64_t)(v.f_blocks - v.f_bfree) * v.f_frsize;
}

/* ---- overlays -------------------------------------------------------------------------------- */

enum {
	LOWER_MAX = CHAIN_MAX * 16 + 64,
	FSCONFIG_MAX = 256, /* longest value that the kernel accepts, with its NUL */
};

static size_t list_lower(const struct chain *c, char lower[LOWER_MAX])
{
	size_t n = 0;

	for (uint32_t i = 0; i < c->n_frozen; i++)
		n += (size_t)snprintf(lower + n, LOWER_MAX - n, "/l/%u/u:", c->frozen[i]->id);
	if (c->n_frozen && c->frozen[c->n_frozen - 1]->complete)
		lower[--n] = '\0'; /* the colon */
	else
		n += (size_t)snprintf(lower + n, LOWER_MAX - n, "/skel");
	return n;
}

/* A directory of a lower layer can be renamed only where its mark can be written, which takes
 * privileges; without them programs get EXDEV and copy. */
static const char *marks_option(const struct store *s, const char **ret_value)
{
	*ret_value = s->userxattr ? NULL : "on";
	return s->userxattr ? "userxattr" : "redirect_dir";
}

/* mount(2) takes one page of options. (The new calls have "lowerdir+", for one layer at a time, but
 * only since Linux 6.5.) */
static int overlay_of_many(const struct store *s, const struct chain *c, const char *lower,
			   struct err *e)
{
	const char *value, *marks = marks_option(s, &value);
	char options[LOWER_MAX + 256], dirs[160] = "";
	int tree;

	if (c->upper)
		snprintf(dirs, sizeof(dirs), ",upperdir=/l/%u/u,workdir=/l/%u/w", c->upper->id,
			 c->upper->id);
	snprintf(options, sizeof(options), "lowerdir=%s%s,%s%s%s", lower, dirs, marks,
		 value ? "=" : "", value ? value : "");
	if (mount("overlay", "/many", "overlay",
		  MS_NODEV | (c->set_ids ? 0u : MS_NOSUID) | (c->upper ? 0u : MS_RDONLY),
		  options) < 0)
		return err_sys(e, errno, "stack many layers");
	tree = mount_copy(AT_FDCWD, "/many", false);
	umount2("/many", MNT_DETACH);
	return tree < 0 ? err_sys(e, errno, "copy the stack of layers") : tree;
}

/* The owner of the root directory is that of the topmost layer. */
static int own_root(const struct chain *c)
{
	const struct layer *base = chain_base(c);
	char path[64];

	if (!base || !c->upper)
		return 0;
	layer_path(path, c->upper, "/u");
	return lchown(path, base->uid, base->uid);
}

int store_overlay(const struct store *s, const struct chain *c, struct err *e)
{
	char lower[LOWER_MAX], path[64];
	const char *value, *marks = marks_option(s, &value);
	autoclose int fs = -1;
	int tree;

	if (skeleton_await() < 0)
		return err_sys(e, errno, "make the skeleton of the host template");
	if (own_root(c) < 0)
		return err_sys(e, errno, "give the root to the sandbox's user");
	if (list_lower(c, lower) >= FSCONFIG_MAX)
		return overlay_of_many(s, c, lower, e);
	fs = mount_fsopen("overlay");
	if (fs < 0 || mount_fsconfig(fs, "lowerdir", lower) < 0)
		return err_sys(e, errno, "stack the layers");
	if (c->upper) {
		layer_path(path, c->upper, "/u");
		if (mount_fsconfig(fs, "upperdir", path) < 0)
			return err_sys(e, errno, "stack the layers");
		layer_path(path, c->upper, "/w");
		if (mount_fsconfig(fs, "workdir", path) < 0)
			return err_sys(e, errno, "stack the layers");
	}
	if (mount_fsconfig(fs, marks, value) < 0 || mount_fsconfig_create(fs) < 0)
		return err_sys(e, errno, "stack the layers");
	tree = mount_fsmount(fs, MOUNT_ATTR_NODEV | (c->set_ids ? 0 : MOUNT_ATTR_NOSUID) |
					 (c->upper ? 0 : MOUNT_ATTR_RDONLY));
	return tree < 0 ? err_sys(e, errno, "mount the stack of layers") : tree;
}

int store_plain(struct chain *c, int *ret_fill, struct err *e)
{
	autoclose int fill = c->n_frozen ? store_layer_open(c->frozen[0])
					 : open("/skel", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char path[64];
	int tree;

	layer_path(path, c->upper, "/u");
	tree = mount_copy(AT_FDCWD, path, false);
	if (fill < 0 || tree < 0)
		return err_sys(e, errno, "prepare a layer of files");
	/* an open directory stays usable after its layer is unmounted */
	while (c->n_frozen)
		layer_unref(c->frozen[--c->n_frozen]);
	*ret_fill = take_fd(&fill);
	return tree;
}

/* ---- roots that are kept --------------------------------------------------------------------- */

/* Keeps the same file system, as a new one on the same layer might notice the end of the old one
 * too late. It is mounted over the layer's w, which only that file system itself uses, and ends
 * with the layer. */
int store_keep_root(const struct store *s, struct layer *upper, int pidfd, struct err *e)
{
	autoclose int tree = -1;
	int errnum = 0;
	char path[64];

	if (upper->rooted)
		return 0;
	if (setns(pidfd, CLONE_NEWNS) < 0 || (tree = mount_copy(AT_FDCWD, "/r", false)) < 0)
		errnum = errno;
	store_return(s);
	if (errnum)
		return err_sys(e, errnum, "find the root of the sandbox");
	layer_path(path, upper, "/w");
	if (mount_attach(tree, AT_FDCWD, path) < 0)
		return err_sys(e, errno, "keep the root of the sandbox");
	upper->rooted = true;
	return 0;
}

int store_kept_root(const struct layer *upper, struct err *e)
{
	char path[64];
	int tree;

	layer_path(path, upper, "/w");
	tree = mount_copy(AT_FDCWD, path, false);
	return tree < 0 ? err_sys(e, errno, "take the root that was kept") : tree;
}

void store_forget_root(struct layer *upper)
{
	char path[64];

	if (!upper->rooted)
		return;
	layer_path(path, upper, "/w");
	umount2(path, MNT_DETACH);
	upper->rooted = false;
}

/* ---- mounts of the host ---------------------------------------------------------------------- */

static int write_idmap(const struct host *h, pid_t pid, const char *file, uint32_t on_disk,
		       const struct idmap *m)
{
	char path[64], map[64];

	snprintf(path, sizeof(path), "%d/%s", (int)pid, file);
	snprintf(map, sizeof(map), "%u %u %u\n", on_disk, m->to, m->n);
	return text_write(h->proc, path, map);
}

static int await_death(void *unused)
{
	(void)unused;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pause();
}

/* Makes a process in it, maps it, and ends it once the namespace is open. */
int store_idmap(const struct host *h, const struct idmap *m)
{
	static char stack[4096] __attribute__((aligned(16)));
	char path[64];
	int ns = -1;
	/* it shares our memory, since copying that takes longer than all else */
	pid_t pid = clone(await_death, stack + sizeof(stack), CLONE_NEWUSER | CLONE_VM | SIGCHLD,
			  NULL);

	if (pid < 0)
		return -1;
	snprintf(path, sizeof(path), "%d/ns/user", (int)pid);
	if (write_idmap(h, pid, "uid_map", m->uid, m) == 0 &&
	    write_idmap(h, pid, "gid_map", m->gid, m) == 0)
		ns = openat(h->proc, path, O_RDONLY | O_CLOEXEC);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return ns;
}

int store_empty_tree(struct err *e)
{
	int tree = make_tmpfs(4096, 1, "0555",
			      MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);

	return tree < 0 ? err_sys(e, errno, "make an empty folder") : tree;
}

int store_host_tree(const struct host *h, const struct host_tree *t, bool *ret_is_dir,
		    struct err *e)
{
	const uint64_t attr = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
			      (t->writable ? 0 : MOUNT_ATTR_RDONLY);
	autoclose int root = open("/h", O_PATH | O_DIRECTORY | O_CLOEXEC);
	autoclose int there = -1;
	autoclose int parent = -1;
	autoclose int tree = -1;
	autoclose int userns = -1;
	struct stat st;
	bool own;

	if (closed_open(root, t->path, &there, &parent) < 0 || fstat(there, &st) < 0)
		return err_sys(e, errno, "open what is to be mounted");
	own = t->own && !t->writable && S_ISREG(st.st_mode);
	if (!own &&
	    closed_check(h->closed, root, &(struct closed_asked){ there, parent, t->state }, e) < 0)
		return -1;
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return err_set(e, ERR_NOT_A_FILE, "only directories and regular files are mounted");
	tree = mount_copy(there, "", t->size == 0); /* mounts inside it may have another size */
	if (tree < 0 || mount_setattr_tree(tree, attr, -1) < 0)
		return err_sys(e, errno, "copy the mount");
	if (t->size && sized_check(tree, t->size, e) < 0)
		return -1;
	if (!h->one_uid) {
		userns = store_idmap(h, &(struct idmap){ st.st_uid, st.st_gid, t->uid, 1 });
		if (userns < 0)
			return err_sys(e, errno, "map the owner of the mount");
		/* the file system can't do that: reading still works, as for any other user */
		if (mount_setattr_tree(tree, MOUNT_ATTR_IDMAP, userns) < 0 && t->writable)
			return err_sys(e, errno,
				       "this file system can't be mounted writable for a sandbox");
	}
	*ret_is_dir = S_ISDIR(st.st_mode);
	if (t->project && *ret_is_dir &&
	    (project_hold(t->project, there, e) < 0 || seals_watch(t->project, e) < 0))
		return -1;
	return take_fd(&tree);
}
