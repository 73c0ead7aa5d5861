/*
 * LD_PRELOAD for the hub: makes system calls on the files of one folder fail, and records what a
 * power cut would leave of it. tests/faults/fault.py drives it.
 *
 * FAULT_ROOT is the folder. FAULT_PLAN is a file that is mapped: struct plan. FAULT_POWER is a
 * folder: each sync of a file copies its contents there, and appends to "log" which names are on
 * the disk since then. What was not synced may be gone, be there or be there in part: fault.py
 * chooses. The sync of a file makes its own names durable, too, as every journaling file system
 * does.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { OPEN, READ, WRITE, SYNC, RENAME, UNLINK, MKDIR, READDIR, LINK, TRUNCATE, LOOK };
enum mode { FAIL, DONE, KILL_BEFORE, KILL_AFTER }; /* DONE: it is done, and yet fails */

struct plan {
	int kinds, mode, errnum; /* kinds: a bit for each */
	int from, to; /* the calls that fail, counted from 1 */
	int count; /* of matching calls since it was armed */
	int armed;
	char match[64]; /* part of the path; "": all */
};

static struct plan *plan;
static const char *root, *power;
static int power_fd = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name)                                                                                 \
	static __typeof__(name) *real;                                                             \
	if (!real)                                                                                 \
	real = dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void begin(void)
{
	const char *file = getenv("FAULT_PLAN");
	int fd = file ? open(file, O_RDWR | O_CLOEXEC) : -1;

	if (fd >= 0) {
		plan = mmap(NULL, sizeof(*plan), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
	}
	if (plan == MAP_FAILED)
		plan = NULL;
	root = getenv("FAULT_ROOT");
	power = getenv("FAULT_POWER");
	if (power)
		power_fd = open(power, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Below the root; its path in ret. */
static int ours(int fd, const char *name, char ret[PATH_MAX])
{
	char link[64];
	ssize_t n = 0;

	if (!root)
		return 0;
	if (!name || name[0] != '/') {
		if (fd == AT_FDCWD)
			strcpy(link, "/proc/self/cwd");
		else
			snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, ret, PATH_MAX - 1);
		if (n <= 0)
			return 0;
	}
	ret[n] = '\0';
	if (name && n + (ssize_t)strlen(name) + 2 < PATH_MAX)
		sprintf(ret + n, "%s%s", n ? "/" : "", name);
	return strncmp(ret, root, strlen(root)) == 0;
}

/* Whether this call is the one; then mode says how. */
static int hit(enum kind kind, int fd, const char *name)
{
	char path[PATH_MAX];
	int before = errno, now;

	if (!plan || !plan->armed || !(plan->kinds & 1 << kind))
		return 0;
	if (!ours(fd, name, path) || (plan->match[0] && !strstr(path, plan->match))) {
		errno = before;
		return 0;
	}
	now = __atomic_add_fetch(&plan->count, 1, __ATOMIC_SEQ_CST);
	errno = before;
	if (now < plan->from || now > plan->to)
		return 0;
	if (plan->mode == KILL_BEFORE)
		kill(getpid(), SIGKILL);
	return 1;
}

#define CALL(kind, fd, name, type, call)                                                           \
	do {                                                                                       \
		int hit_ = hit(kind, fd, name);                                                    \
		type rc_;                                                                          \
		if (hit_ && plan->mode == FAIL) {                                                  \
			errno = plan->errnum;                                                      \
			return (type)-1;                                                           \
		}                                                                                  \
		rc_ = (call);                                                                      \
		if (hit_ && plan->mode == KILL_AFTER)                                              \
			kill(getpid(), SIGKILL);                                                   \
		if (hit_) {                                                                        \
			errno = plan->errnum;                                                      \
			return (type)-1;                                                           \
		}                                                                                  \
		return rc_;                                                                        \
	} while (0)

/* ---- what is on the disk --------------------------------------------------------------------- */

/* A number of an inode may be used again: its birth tells. Empty: it is not there, or nothing that
 * a disk keeps, such as a socket. */
static void id_of(int dir, const char *name, int flags, char ret[64], int *ret_dir)
{
	struct statx s;

	ret[0] = '\0';
	if (statx(dir, name, flags | AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &s) < 0)
		return;
	if (S_ISSOCK(s.stx_mode) || S_ISFIFO(s.stx_mode))
		return;
	*ret_dir = S_ISDIR(s.stx_mode);
	snprintf(ret, 64, "%llu-%lld-%u", (unsigned long long)s.stx_ino,
		 (long long)s.stx_btime.tv_sec, s.stx_btime.tv_nsec);
}

static void copy_file(const char *path, const char *id)
{
	static __thread char bytes[1 << 16];
	char temp[80];
	int from = open(path, O_RDONLY | O_CLOEXEC), to;
	ssize_t n;

	snprintf(temp, sizeof(temp), "%s.%d", id, gettid());
	to = openat(power_fd, temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	while (from >= 0 && to >= 0 && (n = read(from, bytes, sizeof(bytes))) > 0)
		if (write(to, bytes, (size_t)n) != n)
			abort();
	close(from);
	close(to);
	renameat(power_fd, temp, power_fd, id);
}

/* "N folder entry name kind": the folder has this entry. */
static void name_on_disk(FILE *log, const char *folder, const char *name)
{
	char own[64], id[64], path[PATH_MAX];
	int is_dir = 0, ignored;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	id_of(AT_FDCWD, folder, 0, own, &ignored);
	id_of(AT_FDCWD, path, 0, id, &is_dir);
	if (own[0] && id[0])
		fprintf(log, "N %s %s %c %s\n", own, id, is_dir ? 'd' : 'f', name);
}

static void path_on_disk(FILE *log, const char *path)
{
	char folder[PATH_MAX], *slash;

	snprintf(folder, sizeof(folder), "%s", path);
	while (strlen(folder) > strlen(root) && (slash = strrchr(folder, '/'))) {
		*slash = '\0';
		name_on_disk(log, folder, slash + 1);
	}
}

static void folder_on_disk(FILE *log, const char *path)
{
	char id[64];
	int ignored;
	DIR *d = opendir(path);
	struct dirent *e;

	id_of(AT_FDCWD, path, 0, id, &ignored);
	fprintf(log, "D %s\n", id); /* no entries but those that follow */
	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			name_on_disk(log, path, e->d_name);
	if (d)
		closedir(d);
	path_on_disk(log, path);
}

static void on_disk(FILE *log, const char *path, int below)
{
	char id[64], one[PATH_MAX];
	int is_dir = 0;
	DIR *d;
	struct dirent *e;

	id_of(AT_FDCWD, path, 0, id, &is_dir);
	if (!id[0])
		return;
	if (!is_dir) {
		copy_file(path, id);
		path_on_disk(log, path);
		return;
	}
	folder_on_disk(log, path);
	d = below ? opendir(path) : NULL;
	while (d && (e = readdir(d))) {
		snprintf(one, sizeof(one), "%s/%s", path, e->d_name);
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			on_disk(log, one, 1);
	}
	if (d)
		closedir(d);
}

static void synced(int fd, int all)
{
	char path[PATH_MAX], *text = NULL;
	int before = errno, armed = plan ? plan->armed : 0, to;
	size_t n = 0;
	FILE *log;

	if (power_fd < 0 || !ours(fd, NULL, path))
		return;
	pthread_mutex_lock(&lock);
	if (plan)
		plan->armed = 0; /* not for what this does */
	log = open_memstream(&text, &n);
	on_disk(log, all ? root : path, all);
	fclose(log);
	to = openat(power_fd, "log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (write(to, text, n) != (ssize_t)n)
		abort();
	close(to);
	free(text);
	if (plan)
		plan->armed = armed;
	pthread_mutex_unlock(&lock);
	errno = before;
}

/* Of a folder as it is now, where no hub writes: the same records, in a folder of their own. */
void tree(const char *folder, const char *to)
{
	char name[PATH_MAX];
	FILE *log;

	root = folder;
	power_fd = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(name, sizeof(name), "%s/log", to);
	log = fopen(name, "w");
	on_disk(log, folder, 1);
	fclose(log);
	close(power_fd);
	power_fd = -1;
	root = NULL;
}

static int with_sync(int rc, int fd, int all)
{
	if (rc == 0)
		synced(fd, all);
	return rc;
}

/* ---- the calls ------------------------------------------------------------------------------- */

#define OPENS(name, at, args, ...)                                                                 \
	int name args                                                                              \
	{                                                                                          \
		va_list ap;                                                                        \
		mode_t m;                                                                          \
		REAL(name);                                                                        \
		va_start(ap, flags);                                                               \
		m = flags & (O_CREAT | __O_TMPFILE) ? va_arg(ap, mode_t) : 0;                      \
		va_end(ap);                                                                        \
		CALL(OPEN, at, path, int, real(__VA_ARGS__, m));                                   \
	}
OPENS(open, AT_FDCWD, (const char *path, int flags, ...), path, flags)
OPENS(open64, AT_FDCWD, (const char *path, int flags, ...), path, flags)
OPENS(openat, at, (int at, const char *path, int flags, ...), at, path, flags)
OPENS(openat64, at, (int at, const char *path, int flags, ...), at, path, flags)

/* Looks at what a name is: fstatat(), and openat2(), which has no function. */
#define LOOKS(name, stat)                                                                          \
	int name(int at, const char *path, struct stat *ret, int flags)                            \
	{                                                                                          \
		REAL(name);                                                                        \
		CALL(LOOK, at, path, int, real(at, path, ret, flags));                             \
	}
LOOKS(fstatat, stat)
LOOKS(fstatat64, stat64)

long syscall(long number, ...)
{
	long a[6];
	va_list ap;
	REAL(syscall);

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (number == SYS_openat2)
		CALL(LOOK, (int)a[0], (const char *)a[1], long,
		     real(number, a[0], a[1], a[2], a[3], a[4], a[5]));
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

#define FD(name, kind, type, args, ...)                                                            \
	type name args                                                                             \
	{                                                                                          \
		REAL(name);                                                                        \
		CALL(kind, fd, NULL, type, real(__VA_ARGS__));                                     \
	}
FD(read, READ, ssize_t, (int fd, void *p, size_t n), fd, p, n)
FD(pread, READ, ssize_t, (int fd, void *p, size_t n, off_t at), fd, p, n, at)
FD(pread64, READ, ssize_t, (int fd, void *p, size_t n, off64_t at), fd, p, n, at)
FD(write, WRITE, ssize_t, (int fd, const void *p, size_t n), fd, p, n)
FD(pwrite, WRITE, ssize_t, (int fd, const void *p, size_t n, off_t at), fd, p, n, at)
FD(pwrite64, WRITE, ssize_t, (int fd, const void *p, size_t n, off64_t at), fd, p, n, at)
FD(writev, WRITE, ssize_t, (int fd, const struct iovec *v, int n), fd, v, n)
FD(ftruncate, TRUNCATE, int, (int fd, off_t n), fd, n)
FD(ftruncate64, TRUNCATE, int, (int fd, off64_t n), fd, n)

#define SYNCS(name, all)                                                                           \
	int name(int fd)                                                                           \
	{                                                                                          \
		REAL(name);                                                                        \
		CALL(SYNC, fd, NULL, int, with_sync(real(fd), fd, all));                           \
	}
SYNCS(fsync, 0)
SYNCS(fdatasync, 0)
SYNCS(syncfs, 1)

int rename(const char *from, const char *to)
{
	REAL(rename);
	CALL(RENAME, AT_FDCWD, to, int, real(from, to));
}

int renameat(int a, const char *from, int b, const char *to)
{
	REAL(renameat);
	CALL(RENAME, b, to, int, real(a, from, b, to));
}

int renameat2(int a, const char *from, int b, const char *to, unsigned flags)
{
	REAL(renameat2);
	CALL(RENAME, b, to, int, real(a, from, b, to, flags));
}

int unlink(const char *path)
{
	REAL(unlink);
	CALL(UNLINK, AT_FDCWD, path, int, real(path));
}

int unlinkat(int at, const char *path, int flags)
{
	REAL(unlinkat);
	CALL(UNLINK, at, path, int, real(at, path, flags));
}

int link(const char *from, const char *to)
{
	REAL(link);
	CALL(LINK, AT_FDCWD, to, int, real(from, to));
}

int linkat(int a, const char *from, int b, const char *to, int flags)
{
	REAL(linkat);
	CALL(LINK, b, to, int, real(a, from, b, to, flags));
}

int mkdir(const char *path, mode_t mode)
{
	REAL(mkdir);
	CALL(MKDIR, AT_FDCWD, path, int, real(path, mode));
}

int mkdirat(int at, const char *path, mode_t mode)
{
	REAL(mkdirat);
	CALL(MKDIR, at, path, int, real(at, path, mode));
}

#define READDIRS(name, type)                                                                       \
	type *name(DIR *d)                                                                         \
	{                                                                                          \
		REAL(name);                                                                        \
		if (hit(READDIR, dirfd(d), NULL)) {                                                \
			if (plan->mode == KILL_AFTER)                                              \
				kill(getpid(), SIGKILL);                                           \
			errno = plan->errnum;                                                      \
			return NULL;                                                               \
		}                                                                                  \
		return real(d);                                                                    \
	}
READDIRS(readdir, struct dirent)
READDIRS(readdir64, struct dirent64)
