/* The folder that `holt ws apply` changes, and files below it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "box/archive/tree.h"
#include "cli/common/home.h"
#include "cli/common/safe.h"
#include "cli/common/tidy.h"
#include "cli/ws/apply.h"

enum { COPY_PIECE = 64 << 10 };

static int open_below(int dir, const char *path, uint64_t flags)
{
	struct open_how how = { .flags = flags | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					   RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV };

	return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

/* Where Holt keeps what it knows of the folder; the key is of both, so that two data folders have
 * two stages. */
static int open_data(struct apply *a, const char *folder, struct err *e)
{
	char all[PATH_MAX], key[HASH_HEX + 1], path[PATH_MAX];

	if (home_file("applied", all, e) < 0)
		return -1;
	hash_add(a->hash, all, strlen(all) + 1);
	hash_add(a->hash, folder, strlen(folder));
	hash_end(a->hash, key);
	snprintf(a->stage_name, sizeof(a->stage_name), ".holt-apply-%.16s", key);
	if (snprintf(path, sizeof(path), "%s/%.32s", all, key) >= (int)sizeof(path))
		return err_set(e, ERR_INVALID, "the path of the data folder is too long");
	if (path_make(path, e) < 0)
		return -1;
	a->data = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return a->data < 0 ? err_sys(e, errno, "open Holt's data folder") : 0;
}

int apply_find(struct apply *a, const char *folder, struct err *e)
{
	char path[PATH_MAX];

	*a = (struct apply){ .dir = -1, .data = -1, .stage = -1 };
	a->hash = hash_new(e);
	if (!a->hash)
		return -1;
	a->dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (a->dir < 0 || path_of_fd(a->dir, path) < 0)
		return err_sys(e, errno, "%.160s", folder);
	return open_data(a, path, e);
}

int apply_lock(const struct apply *a, struct err *e)
{
	if (flock(a->dir, LOCK_EX | LOCK_NB) == 0)
		return 0;
	return errno == EWOULDBLOCK
		     ? err_set(e, ERR_CONFLICT, "another apply goes on in this folder")
		     : err_sys(e, errno, "lock the folder");
}

int apply_open(struct apply *a, const char *folder, struct err *e)
{
	return apply_find(a, folder, e) < 0 ? -1 : apply_lock(a, e);
}

void apply_close(struct apply *a)
{
	apply_plan_fini(&a->plan);
	hash_free(a->hash);
	close_fd(&a->stage);
	close_fd(&a->data);
	close_fd(&a->dir);
}

static const struct apply *volatile apply_staged;

/* In a signal handler: it is flat, and its names are numbers. */
static void apply_tidy(void)
{
	const struct apply *a = apply_staged;

	for (unsigned n = a ? a->next + 1 : 0; n > 0; n--) {
		char text[16], *p = text + sizeof(text);

		*--p = '\0';
		for (unsigned rest = n; rest; rest /= 10)
			*--p = (char)('0' + rest % 10);
		unlinkat(a->stage, p, 0);
	}
	if (a)
		unlinkat(a->dir, a->stage_name, AT_REMOVEDIR);
}

int apply_stage(struct apply *a, struct err *e)
{
	apply_unstage(a);
	if (mkdirat(a->dir, a->stage_name, 0700) < 0)
		return err_sys(e, errno, "make a folder in the folder");
	a->stage = open_below(a->dir, a->stage_name, O_RDONLY | O_DIRECTORY);
	apply_staged = a;
	tidy_set(apply_tidy);
	if (a->stage >= 0)
		return 0;
	err_sys(e, errno, "open the stage");
	unlinkat(a->dir, a->stage_name, AT_REMOVEDIR);
	return -1;
}

void apply_unstage(struct apply *a)
{
	tidy_set(NULL);
	close_fd(&a->stage);
	tree_remove(a->dir, a->stage_name);
}

int apply_parent(int dir, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	char above[TAR_PATH_MAX];

	*ret_name = slash ? slash + 1 : path;
	snprintf(above, sizeof(above), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
	return open_below(dir, above, O_PATH | O_DIRECTORY);
}

static int hash_file(const struct apply *a, int parent, const char *name,
		     char ret_hex[HASH_HEX + 1])
{
	autoclose int fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char piece[COPY_PIECE];
	ssize_t n = fd < 0 ? -1 : 1;

	while (n > 0 || (n < 0 && fd >= 0 && errno == EINTR)) {
		n = read(fd, piece, sizeof(piece));
		if (n > 0)
			hash_add(a->hash, piece, (size_t)n);
	}
	hash_end(a->hash, ret_hex);
	return n < 0 ? -1 : 0;
}

static int hash_link(const struct apply *a, int parent, const char *name,
		     char ret_hex[HASH_HEX + 1])
{
	char target[TAR_PATH_MAX];
	ssize_t n = readlinkat(parent, name, target, sizeof(target));

	if (n < 0)
		return -1;
	hash_add(a->hash, target, (size_t)n);
	hash_end(a->hash, ret_hex);
	return 0;
}

static int look_in(const struct apply *a, int parent, const char *name, struct apply_state *ret,
		   struct apply_seen *ret_seen)
{
	struct stat st;

	*ret = (struct apply_state){ .type = APPLY_NONE };
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -1;
	*ret_seen = (struct apply_seen){ st.st_ino, st.st_size, st.st_mtim };
	ret->mode = st.st_mode & 0777;
	ret->type = S_ISREG(st.st_mode) ? APPLY_FILE
		  : S_ISLNK(st.st_mode) ? APPLY_LINK
		  : S_ISDIR(st.st_mode) ? APPLY_DIR
					: APPLY_OTHER;
	if (ret->type == APPLY_FILE)
		return hash_file(a, parent, name, ret->hash);
	if (ret->type == APPLY_LINK) {
		ret->mode = 0777;
		return hash_link(a, parent, name, ret->hash);
	}
	return 0;
}

int apply_look(const struct apply *a, const char *path, struct apply_state *ret,
	       struct apply_seen *ret_seen)
{
	const char *name;
	autoclose int parent = apply_parent(a->dir, path, &name);

	*ret = (struct apply_state){ .type = APPLY_NONE };
	*ret_seen = (struct apply_seen){ 0 };
	if (parent < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
	return look_in(a, parent, name, ret, ret_seen);
}

bool apply_same(const struct apply_state *x, const struct apply_state *y)
{
	return x->type == y->type && x->mode == y->mode && strcmp(x->hash, y->hash) == 0;
}

struct apply_number apply_number(unsigned n)
{
	struct apply_number number;

	snprintf(number.text, sizeof(number.text), "%u", n);
	return number;
}

static int copy_bytes(const struct apply *a, int from, int to, char ret_hex[HASH_HEX + 1])
{
	char piece[COPY_PIECE];
	ssize_t n = 1;
	int result = 0;

	while (result == 0 && n != 0) {
		n = read(from, piece, sizeof(piece));
		if (n < 0 && errno != EINTR)
			result = -1;
		if (n > 0) {
			hash_add(a->hash, piece, (size_t)n);
			result = fd_write(to, piece, (size_t)n);
		}
	}
	hash_end(a->hash, ret_hex);
	return result;
}

static int copy_file(const struct apply *a, int in, int to, unsigned n, struct apply_state *ret)
{
	autoclose int out = openat(to, apply_number(n).text,
				   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat st;

	if (out < 0 || fstat(in, &st) < 0)
		return -1;
	if (!S_ISREG(st.st_mode)) {
		errno = ESTALE;
		return -1;
	}
	ret->mode = st.st_mode & 0777;
	if (copy_bytes(a, in, out, ret->hash) < 0 || fchmod(out, ret->mode) < 0 ||
	    futimens(out, (const struct timespec[]){ st.st_atim, st.st_mtim }) < 0)
		return -1;
	return fsync(out);
}

int apply_copy(const struct apply *a, int from, const char *name, int to, unsigned n,
	       struct apply_state *ret)
{
	autoclose int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char target[TAR_PATH_MAX];
	ssize_t got;

	*ret = (struct apply_state){ .type = APPLY_FILE };
	if (in >= 0)
		return copy_file(a, in, to, n, ret);
	if (errno != ELOOP)
		return -1;
	got = readlinkat(from, name, target, sizeof(target) - 1);
	if (got < 0)
		return -1;
	target[got] = '\0';
	ret->type = APPLY_LINK;
	ret->mode = 0777;
	return symlinkat(target, to, apply_number(n).text) < 0
		     ? -1
		     : hash_link(a, to, apply_number(n).text, ret->hash);
}

int apply_keep(const struct apply *a, const struct apply_op *op)
{
	const char *slash = strrchr(op->path, '/');
	char dir[32], name[256], told[128];
	autoclose int to = -1;

	snprintf(dir, sizeof(dir), "holt-kept-%s", a->plan.id);
	snprintf(name, sizeof(name), "%u-%.200s", op->n, slash ? slash + 1 : op->path);
	if (mkdirat(a->dir, dir, 0700) < 0 && errno != EEXIST)
		return -1;
	to = open_below(a->dir, dir, O_PATH | O_DIRECTORY);
	if (to < 0 || renameat2(a->stage, apply_number(op->n).text, to, name, RENAME_NOREPLACE) < 0)
		return -1;
	snprintf(told, sizeof(told), "the old one can't get back to its place, and is in %s", dir);
	apply_tell(op->path, told);
	return 0;
}

void apply_tell(const char *path, const char *what)
{
	fputs("holt: ", stderr);
	safe_line(stderr, str_of(path));
	fprintf(stderr, ": %s\n", what);
}
