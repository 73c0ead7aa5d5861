/*
 * The files of a sandbox, opened by its PID 1. Paths are resolved here, inside, with the sandbox's
 * root and rights. A path could lead to descriptors or to /proc/self of PID 1, so nothing is opened
 * before it is known: first with O_PATH, which has no effect on the file, then the check, then the
 * real open through that descriptor.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/folder.h"
#include "box/archive/mount.h"
#include "box/archive/tar_tree.h"
#include "box/wire/file_types.h"
#include "box/init/internal.h"
#include "box/init/message.h"

enum { WRITES_MAX = 512, REMOVALS_MAX = 64, LINKS_MAX = 16, DEPTH_MAX = 8192, TEMPS_MAX = 1000 };

/* A file that is being written: without a name where the file system supports that, so that nobody
 * sees it and no copy of the sandbox has it; else with a temporary name in the same directory. */
struct write_job {
	uint32_t token; /* 0: free */
	int dir, fd;
	uint32_t mode;
	bool replaces; /* an existing file */
	bool durable;
	uid_t uid; /* of the existing file */
	gid_t gid;
	char name[NAME_MAX + 1], temp[NAME_MAX + 1]; /* temp "": none yet */
};

struct removal {
	pid_t pid; /* 0: free */
	uint32_t id; /* 0: nobody waits for it any more */
};

static struct write_job writes[WRITES_MAX] INIT_LARGE;
static struct removal removals[REMOVALS_MAX];
static uint32_t last_token, last_temp;
/* An answer with what follows it; as long as the longest of file_list(). */
static char answer[WIRE_MAX] INIT_LARGE;

/* -1: fd could not be sent, so the hub got this error instead. */
static int file_reply(struct im_file_done *d, int errnum, int fd)
{
	d->h.type = IM_FILE_DONE;
	d->errnum = errnum;
	if (init_send(d, sizeof(*d), fd) == 0)
		return 0;
	d->errnum = errno;
	init_send(d, sizeof(*d), -1);
	return -1;
}

/* The kernel's own file systems contain no files of the sandbox. */
static bool foreign_fs(const struct statfs *s)
{
	static const unsigned long foreign[] = { PROC_SUPER_MAGIC,    SYSFS_MAGIC,
						 CGROUP_SUPER_MAGIC,  CGROUP2_SUPER_MAGIC,
						 DEVPTS_SUPER_MAGIC,  NSFS_MAGIC,
						 ANON_INODE_FS_MAGIC, SOCKFS_MAGIC,
						 PIPEFS_MAGIC };

	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		if ((unsigned long)s->f_type == foreign[i])
			return true;
	}
	return false;
}

static void fill_stat(struct im_stat *out, const struct stat *st)
{
	out->type = S_ISREG(st->st_mode) ? FILE_REGULAR
		  : S_ISDIR(st->st_mode) ? FILE_DIRECTORY
		  : S_ISLNK(st->st_mode) ? FILE_SYMLINK
					 : FILE_OTHER;
	out->mode = st->st_mode & 07777;
	out->size = (uint64_t)st->st_size;
	out->mtime_ms = (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
}

/* The mount of our own program, to which /proc leads: outside of the sandbox's root. */
static dev_t own_device(void)
{
	static dev_t device;
	struct stat st;

	if (!device && stat("/proc/self/exe", &st) == 0)
		device = st.st_dev;
	return device;
}

static bool is_wanted(const struct stat *st, unsigned want)
{
	/* a file without a name is memory that /proc leads to */
	return (want & INIT_DIRECTORY && S_ISDIR(st->st_mode)) ||
	       (want & INIT_FILE && S_ISREG(st->st_mode) && st->st_nlink > 0);
}

/* The C library's adds a call for old kernels. */
static int open_path(const char *path, int flags)
{
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC);
}

enum { NAME_TRIES = 16 };

/* A file that is replaced in this moment has no name either: then the next one has it. */
static int open_named(const char *path, struct stat *ret)
{
	int fd, tries = 0;

	while ((fd = open_path(path, O_PATH)) >= 0) {
		if (fstat(fd, ret) < 0 || !S_ISREG(ret->st_mode) || ret->st_nlink > 0 ||
		    ++tries == NAME_TRIES)
			break;
		close(fd);
	}
	return fd;
}

/* *ret_fs: what its file system is. */
static int open_known(const char *path, unsigned want, struct im_file_done *d,
		      struct statfs *ret_fs)
{
	struct stat st = { .st_mode = 0 };
	int fd = open_named(path, &st);

	if (fd < 0) {
		d->errnum = errno;
		return -1;
	}
	if (is_wanted(&st, want) && st.st_dev != own_device() && fstatfs(fd, ret_fs) == 0 &&
	    !foreign_fs(ret_fs)) {
		fill_stat(&d->st, &st);
		d->dev = st.st_dev;
		d->ino = st.st_ino;
		return fd;
	}
	d->errnum = S_ISDIR(st.st_mode) ? EISDIR : want & INIT_DIRECTORY ? ENOTDIR : EACCES;
	d->not_a_file = 1;
	close(fd);
	return -1;
}

int init_open_known(const char *path, unsigned want, struct im_file_done *d)
{
	struct statfs fs;

	return open_known(path, want, d, &fs);
}

int init_reopen(int fd, int flags)
{
	char self[64];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return open_path(self, flags);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Whether all of the n bytes at offset, which the file has, are in the kernel's memory. mincore(2)
 * always claims that of a file of another user. */
static bool is_cached(int fd, const struct stat *st, uint64_t offset, size_t n)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), from = offset & ~(page - 1);
	size_t size = (size_t)(offset - from) + n, pages = (size + page - 1) / page;
	unsigned char there[WIRE_PIECE_MAX / 4096 + 2];
	bool all = pages <= sizeof(there) && st->st_uid == geteuid();
	void *at = all ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, (off_t)from) : MAP_FAILED;

	if (at == MAP_FAILED)
		return false;
	all = mincore(at, size, there) == 0;
	for (size_t i = 0; all && i < pages; i++)
		all = there[i] & 1;
	munmap(at, size);
	return all;
}

/* Reads what the page cache has; less, or -1, where a disk or a network has to be waited for. A
 * tmpfs is in memory; an overlay may be over a slow disk. Both know no RWF_NOWAIT. */
static ssize_t read_now(int fd, const struct statfs *fs, char *to, size_t n, uint64_t offset)
{
	struct iovec v = { to, n };
	struct stat st;

	if (fs->f_type == OVERLAYFS_SUPER_MAGIC &&
	    (fstat(fd, &st) < 0 || !is_cached(fd, &st, offset, n)))
		return -1;
	if (fs->f_type == TMPFS_MAGIC || fs->f_type == OVERLAYFS_SUPER_MAGIC)
		return pread(fd, to, n, (off_t)offset);
	return syscall(SYS_preadv2, fd, &v, 1, offset, 0, RWF_NOWAIT);
}

/* Whether a file is in the mount of the root, which no other sandbox has. Devices do not tell: an
 * overlay shows those of its layers. */
static bool is_in_root(int fd)
{
	static uint64_t root;
	uint64_t id;

	if (!root) {
		int top = open("/", O_PATH | O_CLOEXEC);

		if (top < 0 || mount_id(top, &root) < 0)
			root = 0;
		if (top >= 0)
			close(top);
	}
	return root && mount_id(fd, &id) == 0 && id == root;
}

/* Answers with few bytes that are at hand. False: the hub has to read them, as it can wait. A file
 * that other sandboxes may have too comes along, so that the hub sees itself which it is. */
static bool read_at_once(int fd, const struct statfs *fs, const struct im_file *m,
			 struct im_file_done *d)
{
	uint64_t rest = m->offset < d->st.size ? d->st.size - m->offset : 0;
	size_t want = rest < m->want ? (size_t)rest : m->want;

	if (want > WIRE_PIECE_MAX ||
	    (want > 0 && read_now(fd, fs, answer + sizeof(*d), want, m->offset) != (ssize_t)want))
		return false;
	d->h.type = IM_FILE_DONE;
	d->has_bytes = 1;
	memcpy(answer, d, sizeof(*d));
	if (init_send(answer, sizeof(*d) + want, is_in_root(fd) ? -1 : fd) < 0)
		file_reply(d, errno, -1);
	return true;
}

static void file_read(const char *path, const struct im_file *m, struct im_file_done *d)
{
	struct statfs fs;
	int known = open_known(path, INIT_FILE, d, &fs), fd;

	if (known < 0) {
		file_reply(d, d->errnum, -1);
		return;
	}
	fd = init_reopen(known, O_RDONLY);
	if (fd < 0 || !read_at_once(fd, &fs, m, d))
		file_reply(d, fd < 0 ? errno : 0, fd);
	if (fd >= 0)
		close(fd);
	close(known);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Makes the directories above path's last name, like mkdir -p; 0 or an errno. */
static int make_parents(const char *path)
{
	char part[PATH_MAX];

	for (const char *at = path + 1; (at = strchr(at, '/')); at++) {
		snprintf(part, sizeof(part), "%.*s", (int)(at - path), path);
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return errno;
	}
	return 0;
}

/* Follows the links at path's end, to a file that is no link or to a free name: place (PATH_MAX)
 * then holds its path. */
static int resolve_end(const char *path, char *place)
{
	char target[PATH_MAX], joined[2 * PATH_MAX], *slash;
	ssize_t n;

	if (snprintf(place, PATH_MAX, "%s", path) >= PATH_MAX)
		return ENAMETOOLONG;
	for (int i = 0; i < LINKS_MAX; i++) {
		n = readlink(place, target, sizeof(target) - 1);
		if (n < 0)
			return 0;
		target[n] = '\0';
		slash = strrchr(place, '/');
		if (target[0] == '/')
			snprintf(joined, sizeof(joined), "%s", target);
		else
			snprintf(joined, sizeof(joined), "%.*s/%s", (int)(slash - place), place,
				 target);
		if (snprintf(place, PATH_MAX, "%s", joined) >= PATH_MAX)
			return ENAMETOOLONG;
	}
	return ELOOP;
}

/* Opens the directory of place and returns its last name. */
static int open_place(char *place, struct write_job *w, struct im_file_done *d)
{
	char *slash = strrchr(place, '/');

	if (!slash[1] || strcmp(slash + 1, ".") == 0 || strcmp(slash + 1, "..") == 0) {
		d->not_a_file = 1;
		return EISDIR;
	}
	if (snprintf(w->name, sizeof(w->name), "%s", slash + 1) >= (int)sizeof(w->name))
		return ENAMETOOLONG;
	slash[slash == place ? 1 : 0] = '\0';
	w->dir = init_open_known(place, INIT_DIRECTORY, d);
	return w->dir < 0 ? d->errnum : 0;
}

/* An existing file must be a regular file that may be written; its mode is kept. */
static int check_existing(struct write_job *w, struct im_file_done *d)
{
	struct stat st;

	if (fstatat(w->dir, w->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : errno;
	if (!S_ISREG(st.st_mode)) {
		d->not_a_file = 1;
		return S_ISDIR(st.st_mode) ? EISDIR : EACCES;
	}
	if (faccessat(w->dir, w->name, W_OK, 0) < 0)
		return errno;
	w->mode = st.st_mode & 0777;
	w->replaces = true;
	w->uid = st.st_uid;
	w->gid = st.st_gid;
	return 0;
}

/* Programs may use the same name: then the next one is tried. */
static bool next_temp(struct write_job *w, int tries)
{
	snprintf(w->temp, sizeof(w->temp), TREE_TEMP_FRONT "%u%s", ++last_temp,
		 w->replaces ? TREE_TEMP_OLD : TREE_TEMP_NEW);
	return tries < TEMPS_MAX;
}

static int name_temp(struct write_job *w)
{
	char self[64];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", w->fd);
	for (int i = 0; next_temp(w, i); i++) {
		if (linkat(AT_FDCWD, self, w->dir, w->temp, AT_SYMLINK_FOLLOW) == 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	w->temp[0] = '\0';
	return -1;
}

static int write_begin(const char *path, const struct im_file *m, struct write_job *w,
		       struct im_file_done *d)
{
	char place[PATH_MAX];
	int errnum = m->flags & FILE_FLAG_PARENTS ? make_parents(path) : 0;

	if (!errnum)
		errnum = resolve_end(path, place);
	if (!errnum)
		errnum = open_place(place, w, d);
	if (errnum)
		return errnum;
	w->mode = m->mode & 0777;
	w->replaces = false;
	w->durable = m->flags & FILE_FLAG_DURABLE;
	errnum = check_existing(w, d);
	if (errnum)
		return errnum;
	w->temp[0] = '\0';
	w->fd = openat(w->dir, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
	if (w->fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return w->fd < 0 ? errno : 0;
	for (int i = 0; w->fd < 0 && next_temp(w, i); i++) {
		w->fd = openat(w->dir, w->temp,
			       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (w->fd < 0 && errno != EEXIST)
			return errno;
	}
	return w->fd < 0 ? EEXIST : 0;
}

static void write_end(struct write_job *w)
{
	if (w->fd >= 0)
		close(w->fd);
	if (w->dir >= 0)
		close(w->dir);
	w->token = 0;
}

static void drop_temp(const struct write_job *w)
{
	if (w->temp[0])
		unlinkat(w->dir, w->temp, 0);
}

static struct write_job *find_write(uint32_t token)
{
	for (int i = 0; i < WRITES_MAX; i++) {
		if (writes[i].token == token)
			return &writes[i];
	}
	return NULL;
}

/* Gives the new file the owner of the one that it replaces. */
static int keep_owner(const struct write_job *w)
{
	struct stat st;

	if (!w->replaces || !w->durable)
		return 0;
	if (fstat(w->fd, &st) < 0)
		return -1;
	return st.st_uid == w->uid && st.st_gid == w->gid ? 0 : fchown(w->fd, w->uid, w->gid);
}

/* Moves the file to its place, or drops it. 0 or an errno. */
static int write_finish(struct write_job *w, bool keep)
{
	int errnum = 0;

	if (keep &&
	    (keep_owner(w) < 0 || fchmod(w->fd, w->mode) < 0 || (!w->temp[0] && name_temp(w) < 0) ||
	     renameat(w->dir, w->temp, w->dir, w->name) < 0))
		errnum = errno;
	if (!keep || errnum)
		drop_temp(w);
	write_end(w);
	return errnum;
}

/* Written by init, the memory is charged to the sandbox; written by the hub, it would be the
 * hub's. */
static void write_piece(struct write_job *w, const struct im_file *m, const char *p, size_t n,
			struct im_file_done *d)
{
	int errnum = fd_write(w->fd, p, n) < 0 ? errno : 0;

	if (errnum)
		write_finish(w, false);
	else if (m->flags & FILE_FLAG_LAST)
		errnum = write_finish(w, true);
	else
		d->token = w->token;
	file_reply(d, errnum, -1);
}

/* Not for a folder of the host, whose file system may make a writer wait. */
static bool is_own(int fd)
{
	struct stat root, st;

	return stat("/", &root) == 0 && fstat(fd, &st) == 0 && st.st_dev == root.st_dev;
}

/* There is no disk for which a writer would have to wait, nor one for it to last on. */
static bool is_memory(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

/* p: the first piece, of n bytes. */
static void file_write(const char *path, const struct im_file *m, const char *p, size_t n,
		       struct im_file_done *d)
{
	struct write_job *w = find_write(0);
	int errnum;

	if (!w) {
		file_reply(d, EMFILE, -1);
		return;
	}
	w->dir = -1;
	w->fd = -1;
	errnum = write_begin(path, m, w, d);
	if (errnum) {
		write_end(w);
		file_reply(d, errnum, -1);
		return;
	}
	w->token = ++last_token;
	if (is_own(w->dir) || (m->flags & FILE_FLAG_LAST && is_memory(w->dir))) {
		write_piece(w, m, p, n, d);
		return;
	}
	d->token = w->token;
	if (file_reply(d, 0, w->fd) < 0) {
		drop_temp(w);
		write_end(w);
	}
}

/* The hub makes the directory durable, as its file system may be slow. It is in place already, so
 * that all else is told as success. */
static void write_commit(struct write_job *w, struct im_file_done *d)
{
	int dir = w->durable ? init_reopen(w->dir, O_RDONLY | O_DIRECTORY) : -1;
	int errnum = write_finish(w, true);

	d->h.type = IM_FILE_DONE;
	d->errnum = errnum;
	if (dir < 0 || errnum || init_send(d, sizeof(*d), dir) < 0)
		init_send(d, sizeof(*d), -1);
	if (dir >= 0)
		close(dir);
}

/* Writes a further piece of a file. */
static void file_go_on(const struct im_file *m, const char *p, size_t n, struct im_file_done *d)
{
	struct write_job *w = m->token ? find_write(m->token) : NULL;

	if (!w)
		file_reply(d, EINVAL, -1);
	else if (m->op == FILE_OP_APPEND)
		write_piece(w, m, p, n, d);
	else if (m->op == FILE_OP_COMMIT)
		write_commit(w, d);
	else
		file_reply(d, write_finish(w, false), -1);
}

/* ---- directories ----------------------------------------------------------------------------- */

static void file_stat(const char *path, struct im_file_done *d)
{
	struct stat st;

	if (stat(path, &st) < 0) {
		file_reply(d, errno, -1);
		return;
	}
	fill_stat(&d->st, &st);
	file_reply(d, 0, -1);
}

/* With parents it may exist already, as with mkdir -p. */
static void file_mkdir(const char *path, const struct im_file *m, struct im_file_done *d)
{
	bool parents = m->flags & FILE_FLAG_PARENTS;
	struct stat st;
	int errnum = parents ? make_parents(path) : 0;

	if (!errnum && mkdir(path, m->mode ? m->mode & 0777 : 0755) < 0)
		errnum = errno;
	if (errnum == EEXIST && parents && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		errnum = 0;
	file_reply(d, errnum, -1);
}

static void file_list(const char *path, struct im_file_done *d)
{
	int known = init_open_known(path, INIT_DIRECTORY, d);
	int fd = known < 0 ? -1 : init_reopen(known, O_RDONLY | O_DIRECTORY);
	int why = errno, more;
	struct folder f;
	size_t n = sizeof(*d);
	struct stat st;

	if (known >= 0)
		close(known);
	if (fd < 0) {
		file_reply(d, d->errnum ? d->errnum : why, -1);
		return;
	}
	f = folder_take(fd);
	while ((more = folder_next(&f)) > 0) {
		const char *name = f.entry->d_name;
		struct im_entry entry = { .name_len = (uint32_t)strlen(name) };

		if (d->entries == FILE_LIST_MAX ||
		    n + sizeof(entry) + entry.name_len > sizeof(answer)) {
			d->truncated = 1;
			break;
		}
		if (fstatat(folder_fd(&f), name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue; /* removed meanwhile */
		fill_stat(&entry.st, &st);
		memcpy(answer + n, &entry, sizeof(entry));
		memcpy(answer + n + sizeof(entry), name, entry.name_len);
		n += sizeof(entry) + entry.name_len;
		d->entries++;
	}
	folder_end(&f);
	if (more < 0) {
		file_reply(d, f.errnum, -1);
		return;
	}
	d->h.type = IM_FILE_DONE;
	d->errnum = 0;
	memcpy(answer, d, sizeof(*d));
	init_send(answer, n, -1);
}

/* Removes everything below dir; 0 or an errno. */
static int remove_below(int dirfd_, int depth)
{
	struct folder f = folder_take(dirfd_);
	int errnum = 0, more = 0;

	while (!errnum && (more = folder_next(&f)) > 0) {
		const char *name = f.entry->d_name;
		int dir = folder_fd(&f), sub;

		if (unlinkat(dir, name, 0) == 0)
			continue;
		if (errno != EISDIR)
			errnum = errno == EPERM ? EISDIR : errno;
		if (errnum && errnum != EISDIR)
			break;
		errnum = 0;
		if (depth == DEPTH_MAX) {
			errnum = ENAMETOOLONG;
			break;
		}
		sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub >= 0)
			errnum = remove_below(sub, depth + 1);
		/* an empty directory can be removed even if it can't be read */
		else if (errno != EACCES)
			errnum = errno;
		if (!errnum && unlinkat(dir, name, AT_REMOVEDIR) < 0)
			errnum = errno;
	}
	folder_end(&f);
	return more < 0 ? f.errnum : errnum;
}

static int remove_tree(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int errnum;

	if (fd < 0)
		return errno == ENOTDIR || errno == ELOOP ? (unlink(path) < 0 ? errno : 0) : errno;
	errnum = remove_below(fd, 0);
	if (!errnum && rmdir(path) < 0)
		errnum = errno;
	return errnum;
}

/* Like rm, refuses paths of directories that could be emptied but not removed: /, . and .. */
static bool removable(const char *path)
{
	size_t n = strlen(path);
	const char *name;

	while (n > 1 && path[n - 1] == '/')
		n--;
	name = memrchr(path, '/', n);
	name++;
	n -= (size_t)(name - path);
	return n > 0 && !(n == 1 && name[0] == '.') && !(n == 2 && strncmp(name, "..", 2) == 0);
}

/* A tree can be large, so a helper process removes it while PID 1 continues. */
static void file_remove(const char *path, bool recursive, struct im_file_done *d)
{
	struct removal *r = NULL;
	struct stat st;

	if (!removable(path)) {
		file_reply(d, EINVAL, -1);
		return;
	}
	if (lstat(path, &st) < 0) {
		file_reply(d, errno, -1);
		return;
	}
	if (!recursive || !S_ISDIR(st.st_mode)) {
		file_reply(d, (S_ISDIR(st.st_mode) ? rmdir(path) : unlink(path)) < 0 ? errno : 0,
			   -1);
		return;
	}
	for (int i = 0; i < REMOVALS_MAX && !r; i++) {
		if (!removals[i].pid)
			r = &removals[i];
	}
	if (!r) {
		file_reply(d, EAGAIN, -1);
		return;
	}
	r->id = d->h.id;
	r->pid = init_fork();
	if (r->pid == 0)
		_exit(remove_tree(path) & 0xff);
	if (r->pid < 0) {
		r->pid = 0;
		file_reply(d, errno, -1);
	}
}

int init_file_reaped(pid_t pid, int status)
{
	for (int i = 0; i < REMOVALS_MAX; i++) {
		struct im_file_done d = { .h = { .id = removals[i].id } };

		if (removals[i].pid != pid)
			continue;
		removals[i].pid = 0;
		if (d.h.id)
			file_reply(&d, WIFEXITED(status) ? WEXITSTATUS(status) : EINTR, -1);
		return 1;
	}
	return 0;
}

bool init_file_helps(pid_t pid)
{
	for (int i = 0; i < REMOVALS_MAX; i++) {
		if (removals[i].pid == pid)
			return true;
	}
	return false;
}

void init_file_reset(void)
{
	for (int i = 0; i < WRITES_MAX; i++) {
		if (!writes[i].token)
			continue;
		drop_temp(&writes[i]);
		write_end(&writes[i]);
	}
	for (int i = 0; i < REMOVALS_MAX; i++)
		removals[i].id = 0;
}

void init_file(const struct im_file *m, size_t n, int fd)
{
	struct im_file_done d = { .h = { .id = m->h.id } };
	const char *path, *second, *end;

	if (m->op == FILE_OP_APPEND || m->op == FILE_OP_COMMIT || m->op == FILE_OP_ABORT) {
		file_go_on(m, (const char *)(m + 1), n - sizeof(*m), &d);
		return;
	}
	if (m->op == FILE_OP_STOP) {
		init_helper_stop(m->token);
		return;
	}
	if (message_file(m, n, &path, &second, &end) < 0) {
		file_reply(&d, EINVAL, -1);
		return;
	}
	switch ((enum file_op)m->op) {
	case FILE_OP_READ:
		file_read(path, m, &d);
		return;
	case FILE_OP_WRITE:
		file_write(path, m, second, second < end ? (size_t)(end - second) : 0, &d);
		return;
	case FILE_OP_STAT:
		file_stat(path, &d);
		return;
	case FILE_OP_LIST:
		file_list(path, &d);
		return;
	case FILE_OP_MKDIR:
		file_mkdir(path, m, &d);
		return;
	case FILE_OP_REMOVE:
		file_remove(path, m->flags & FILE_FLAG_RECURSIVE, &d);
		return;
	case FILE_OP_MOVE:
		file_reply(&d, second >= end ? EINVAL : rename(path, second) < 0 ? errno : 0, -1);
		return;
	case FILE_OP_ARCHIVE:
	case FILE_OP_UPLOAD:
	case FILE_OP_WATCH:
		init_tree(m, path, second, end, fd);
		return;
	default:
		file_reply(&d, EINVAL, -1);
	}
}
