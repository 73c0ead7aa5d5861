/* The folder that `holt ws apply` changes: each file gets to its place by a rename, and paths are
 * resolved without links and mounts, from the descriptor of the folder, which is locked. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/path.h"
#include "box/archive/tar.h"
#include "box/archive/tree.h"
#include "cli/common/home.h"
#include "cli/common/safe.h"
#include "cli/ws/apply.h"

enum { ARENA_MAX = 1 << 30, HEAD_MAX = 128 };

static int open_below(int dir, const char *path, uint64_t flags)
{
	struct open_how how = { .flags = flags | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					   RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV };

	return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

/* Where Holt keeps what it knows of the folder; the key is of both, so that two data folders have
 * two stages. */
static int open_data(struct apply *a, struct err *e)
{
	char all[PATH_MAX], key[HASH_HEX + 1];
	AUTO(hash_free) struct hash *hash = hash_new(e);

	if (!hash || home_file("applied", all, e) < 0)
		return -1;
	hash_add(hash, all, strlen(all) + 1);
	hash_add(hash, a->folder, strlen(a->folder));
	hash_end(hash, key);
	snprintf(a->stage_name, sizeof(a->stage_name), ".holt-apply-%.16s", key);
	if (snprintf(a->data_path, PATH_MAX, "%s/%.32s", all, key) >= PATH_MAX ||
	    snprintf(a->repository, PATH_MAX, "%s/git", a->data_path) >= PATH_MAX)
		return err_set(e, ERR_INVALID, "the path of the data folder is too long");
	if (path_make(a->data_path, e) < 0)
		return -1;
	a->data = open(a->data_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return a->data < 0 ? err_sys(e, errno, "open Holt's data folder") : 0;
}

int apply_find(struct apply *a, const char *folder, struct err *e)
{
	*a = (struct apply){ .dir = -1,
			     .data = -1,
			     .stage = -1,
			     .modes = BUF_INIT(APPLY_MODES_MAX),
			     .record = "last" };
	arena_init(&a->arena, ARENA_MAX);
	a->dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (a->dir < 0 || path_of_fd(a->dir, a->folder) < 0)
		return err_sys(e, errno, "%.160s", folder);
	return open_data(a, e);
}

int apply_lock(const struct apply *a, struct err *e)
{
	if (flock(a->dir, LOCK_EX | LOCK_NB) == 0)
		return 0;
	return errno == EWOULDBLOCK
		     ? err_set(e, ERR_CONFLICT, "another apply goes on in this folder")
		     : err_sys(e, errno, "lock the folder");
}

void apply_close(struct apply *a)
{
	arena_fini(&a->arena);
	buf_fini(&a->modes);
	close_fd(&a->stage);
	close_fd(&a->data);
	close_fd(&a->dir);
}

/* The directory of a path, for *at() calls, and the last name. makes: it is made where it is
 * missing. -1 with errno. */
static int open_parent(const struct apply *a, const char *path, bool makes, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	char above[TAR_PATH_MAX];
	int at = open_below(a->dir, ".", O_PATH | O_DIRECTORY);

	*ret_name = slash ? slash + 1 : path;
	snprintf(above, sizeof(above), "%.*s", slash ? (int)(slash - path) : 0, path);
	for (char *name = above, *end; *name && at >= 0; name = end) {
		int below;

		end = name + strcspn(name, "/");
		if (*end)
			*end++ = '\0';
		if (makes && mkdirat(at, name, 0777) < 0 && errno != EEXIST)
			below = -1;
		else
			below = open_below(at, name, O_PATH | O_DIRECTORY);
		close_fd(&at);
		at = below;
	}
	return at;
}

static bool is_same(const struct stat *st, const struct stat *was)
{
	return st->st_ino == was->st_ino && (st->st_mode & S_IFMT) == (was->st_mode & S_IFMT) &&
	       st->st_size == was->st_size && st->st_mtim.tv_sec == was->st_mtim.tv_sec &&
	       st->st_mtim.tv_nsec == was->st_mtim.tv_nsec;
}

/* Where a link leads, as the content of a file. */
static int open_target(int link)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(link, "", target, sizeof(target));
	autoclose int fd = n < 0 ? -1 : memfd_create("link", MFD_CLOEXEC);

	return fd < 0 || fd_write(fd, target, (size_t)n) < 0 || lseek(fd, 0, SEEK_SET) < 0
		     ? -1
		     : take_fd(&fd);
}

int apply_open_seen(const struct apply *a, const struct apply_seen *s)
{
	const int flags = S_ISLNK(s->st.st_mode) ? O_PATH : O_RDONLY | O_NONBLOCK;
	const char *name;
	autoclose int parent = open_parent(a, s->path, false, &name);
	autoclose int fd = parent < 0 ? -1
				      : open_below(parent, name, (uint64_t)(flags | O_NOFOLLOW));
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (!is_same(&st, &s->st)) {
		errno = ESTALE;
		return -1;
	}
	return S_ISLNK(st.st_mode) ? open_target(fd) : take_fd(&fd);
}

int apply_look(const struct apply *a, const char *path, struct stat *ret)
{
	const char *name;
	autoclose int parent = open_parent(a, path, false, &name);

	if (parent >= 0 && fstatat(parent, name, ret, AT_SYMLINK_NOFOLLOW) == 0)
		return 1;
	return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
}

void apply_tell(const char *path, const char *what)
{
	fputs("holt: ", stderr);
	safe_line(stderr, str_of(path));
	fprintf(stderr, ": %s\n", what);
}

/* ---- signals --------------------------------------------------------------------------------- */

void apply_hold(struct apply *a)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGPIPE);
	a->holds = sigprocmask(SIG_BLOCK, &set, &a->held) == 0;
}

void apply_release(struct apply *a)
{
	if (a->holds)
		sigprocmask(SIG_SETMASK, &a->held, NULL);
}

static bool is_interrupted(const struct apply *a)
{
	sigset_t set;

	return !a->takes_back && sigpending(&set) == 0 &&
	       (sigismember(&set, SIGINT) || sigismember(&set, SIGTERM) ||
		sigismember(&set, SIGHUP));
}

/* ---- the stage ------------------------------------------------------------------------------- */

/* The name of an operation's file there. */
struct number {
	char text[24];
};

static struct number number_of(const struct apply *a, const struct apply_op *op)
{
	struct number n;

	snprintf(n.text, sizeof(n.text), "%zu", (size_t)(op - a->ops));
	return n;
}

/* The permissions of a file that comes back: those that it had, else only its owner's. */
static mode_t mode_before(const struct apply *a, const char *path)
{
	unsigned mode;
	int at;

	for (size_t i = 0; i < a->modes.n; i += strlen(a->modes.p + i) + 1) {
		if (sscanf(a->modes.p + i, "%o %n", &mode, &at) == 1 &&
		    strcmp(a->modes.p + i + at, path) == 0)
			return mode & 0777;
	}
	return 0600;
}

/* As git has only one of the permissions, a changed file keeps the others. */
static mode_t mode_of(const struct apply *a, const struct apply_op *op)
{
	mode_t mask = umask(0), mode;

	umask(mask);
	if (op->seen && S_ISREG(op->seen->st.st_mode))
		mode = op->seen->st.st_mode & 0777;
	else
		mode = a->undo || a->takes_back ? mode_before(a, op->path) : 0666 & ~mask;
	return op->new == APPLY_PROGRAM ? mode | (mode & 0444) >> 2 : mode & ~(mode_t)0111;
}

static int stage_link(const struct apply *a, const struct apply_op *op, FILE *from, size_t size)
{
	char target[TAR_PATH_MAX];

	errno = ENAMETOOLONG;
	if (size >= sizeof(target) || fread(target, 1, size, from) != size)
		return -1;
	target[size] = '\0';
	return symlinkat(target, a->stage, number_of(a, op).text);
}

static int stage_file(const struct apply *a, const struct apply_op *op, FILE *from, size_t size)
{
	autoclose int to = openat(a->stage, number_of(a, op).text,
				  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	char piece[64 << 10];

	while (to >= 0 && size > 0) {
		size_t n = fread(piece, 1, size < sizeof(piece) ? size : sizeof(piece), from);

		if (n == 0) {
			errno = EIO;
			return -1;
		}
		if (fd_write(to, piece, n) < 0)
			return -1;
		size -= n;
	}
	return to < 0 || fchmod(to, mode_of(a, op)) < 0 ? -1 : fsync(to);
}

/* One file, as `git cat-file --batch` prints it: "ID blob SIZE", its bytes and a line break. */
static int stage_one(const struct apply *a, const struct apply_op *op, FILE *from, struct err *e)
{
	char head[HEAD_MAX], kind[16];
	size_t size;

	if (!fgets(head, sizeof(head), from) || sscanf(head, "%*s %15s %zu", kind, &size) != 2)
		return err_set(e, ERR_IO, "git has not the content of %.120s", op->path);
	if ((op->new == APPLY_LINK ? stage_link(a, op, from, size)
				   : stage_file(a, op, from, size)) < 0)
		return err_sys(e, errno, "write into the folder");
	return fgetc(from) == '\n' ? 0 : err_set(e, ERR_IO, "git ended early");
}

static int stage_fill(const struct apply *a, FILE *from, struct err *e)
{
	for (size_t i = 0; i < a->n; i++) {
		if (is_interrupted(a))
			return err_set(e, ERR_CANCELLED, "it was interrupted");
		if (a->ops[i].new &&stage_one(a, &a->ops[i], from, e) < 0)
			return -1;
	}
	return fsync(a->stage) < 0 || fsync(a->dir) < 0 ? err_sys(e, errno, "write into the folder")
							: 0;
}

static int stage_make(struct apply *a, struct err *e)
{
	static const char *const words[] = { "cat-file", "--batch", NULL };
	autobuf struct buf ids = BUF_INIT(256 << 20);
	struct err ignored = ERR_INIT;
	int fd, result;
	FILE *from;
	pid_t pid;

	for (size_t i = 0; i < a->n; i++) {
		if (a->ops[i].new &&buf_addf(&ids, e, "%s\n", a->ops[i].content.hex) < 0)
			return -1;
	}
	if (mkdirat(a->dir, a->stage_name, 0700) < 0)
		return err_sys(e, errno, "make a folder in the folder");
	a->stage = open_below(a->dir, a->stage_name, O_RDONLY | O_DIRECTORY);
	if (a->stage < 0)
		return err_sys(e, errno, "open the stage");
	pid = git_open(a->repository, true, words, buf_str(&ids), &fd, e);
	if (pid < 0)
		return -1;
	from = fdopen(fd, "r");
	result = from ? stage_fill(a, from, e) : err_sys(e, errno, "read what git prints");
	if (from)
		fclose(from);
	else
		close(fd);
	return git_wait(pid, 0, result < 0 ? &ignored : e) < 0 ? -1 : result;
}

/* ---- one step -------------------------------------------------------------------------------- */

static bool is_seen(const struct apply *a, const char *name, const struct stat *was)
{
	struct stat st;

	return fstatat(a->stage, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && is_same(&st, was);
}

/* ESTALE: it is another file than the one that was shown, and stays. */
static int step_swap(const struct apply *a, const struct apply_op *op, int parent, const char *name)
{
	const struct number number = number_of(a, op);
	unsigned flags = op->new ? RENAME_EXCHANGE : RENAME_NOREPLACE;

	if (renameat2(parent, name, a->stage, number.text, flags) < 0)
		return -1;
	if (is_seen(a, number.text, &op->seen->st))
		return 0;
	if (renameat2(a->stage, number.text, parent, name, flags) == 0)
		errno = ESTALE;
	return -1;
}

/* git has no empty directories. */
static void step_prune(const struct apply *a, const char *path)
{
	char above[TAR_PATH_MAX], *slash;

	snprintf(above, sizeof(above), "%s", path);
	while ((slash = strrchr(above, '/'))) {
		const char *name;
		int parent;

		*slash = '\0';
		parent = open_parent(a, above, false, &name);
		if (parent < 0 || unlinkat(parent, name, AT_REMOVEDIR) < 0)
			*above = '\0';
		close_fd(&parent);
	}
}

static int step_do(const struct apply *a, const struct apply_op *op)
{
	const char *name;
	autoclose int parent = open_parent(a, op->path, op->new != 0, &name);

	if (parent < 0)
		return -1;
	if (op->old && step_swap(a, op, parent, name) < 0)
		return -1;
	if (!op->new)
		step_prune(a, op->path);
	if (op->old)
		return 0;
	unlinkat(parent, name, AT_REMOVEDIR); /* an empty directory gives way to a file */
	return renameat2(a->stage, number_of(a, op).text, parent, name, RENAME_NOREPLACE);
}

/* A file may take the place of a directory, so old files go first. */
static int write_all(const struct apply *a, struct err *e)
{
	for (int removes = 1; removes >= 0; removes--) {
		for (size_t i = 0; i < a->n; i++) {
			const struct apply_op *op = &a->ops[i];

			if ((op->new == 0) != removes)
				continue;
			if (is_interrupted(a))
				return err_set(e, ERR_CANCELLED, "it was interrupted");
			if (step_do(a, op) == 0)
				continue;
			if (errno == ESTALE)
				return err_set(e, ERR_CONFLICT, "%.120s was changed meanwhile",
					       op->path);
			return err_sys(e, errno,
				       errno == ELOOP ? "%.120s: a link is in the way" : "%.120s",
				       op->path);
		}
	}
	return syncfs(a->dir) < 0 ? err_sys(e, errno, "write into the folder") : 0;
}

int apply_write(struct apply *a, struct err *e)
{
	int result = stage_make(a, e) < 0 ? -1 : write_all(a, e);

	close_fd(&a->stage);
	/* where it failed, an old file may be in the stage */
	if (result == 0 && tree_remove(a->dir, a->stage_name) < 0)
		return err_sys(e, errno, "remove the stage");
	return result;
}
