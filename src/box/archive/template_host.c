#include "box/archive/template_host.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/mem.h"

enum { COPY_DEPTH = 6, COPY_FILE_MAX = 4 * 1024 * 1024 };

#define ALIASES "/opt/holt/bin"
/* Where sandboxes with modules are shown Holt's files for them (hub/sandbox/inlet.c). */
#define MODULES "/opt/holt/modules"

const char *const template_host_dirs[] = {
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
};
const size_t template_host_n_dirs = ARRAY_LEN(template_host_dirs);

const struct owned_dir template_host_owned[] = {
	{ "/workspace", 0755, OWNED_USER },
	{ "/work", 0755, OWNED_USER }, /* where requests of the contract `run` put files */
	{ "/home", 0755, OWNED_ROOT },
	/* Programs look whether they are their own user's, or root's. */
	{ "/tmp", 01777, OWNED_USER },
	{ "/var", 0755, OWNED_ROOT },
	{ "/var/tmp", 01777, OWNED_USER },
	{ "/home/agent", 0755, OWNED_AGENT },
};
const size_t template_host_n_owned = ARRAY_LEN(template_host_owned);

static const struct {
	const char *path;
	mode_t mode;
} dirs[] = {
	{ "/dev", 0755 },      { "/etc", 0755 },       { "/home", 0755 },
	{ "/mnt", 0755 },      { "/opt", 0755 },       { "/opt/holt", 0755 },
	{ ALIASES, 0755 },     { MODULES, 0755 },      { "/proc", 0555 },
	{ "/root", 0711 },     { "/run", 0755 },       { "/run/lock", 01777 },
	{ "/run/shm", 01777 }, { "/srv", 0755 },       { "/sys", 0555 },
	{ "/tmp", 01777 },     { "/usr", 0755 },       { "/var", 0755 },
	{ "/var/lib", 0755 },  { "/var/log", 0755 },   { "/var/cache", 0755 },
	{ "/var/tmp", 01777 }, { "/workspace", 0755 }, { "/work", 0755 },
};

static const struct {
	const char *path, *text;
} files[] = {
	{ "/etc/passwd", "root:x:0:0:root:/root:/usr/sbin/nologin\n"
			 "agent:x:1000:1000:agent:/home/agent:/bin/bash\n"
			 "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
	{ "/etc/group", "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n" },
	{ "/etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost sandbox\n" },
	{ "/etc/hostname", "sandbox\n" },
	{ "/etc/resolv.conf", "# no network is granted to this sandbox\n" },
	{ "/etc/host.conf", "multi on\n" },
	{ "/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"
				"services: files\nprotocols: files\n" },
	{ "/etc/shells", "/bin/sh\n/bin/bash\n" },
	{ "/etc/profile", "# the environment is set by whoever starts the program\n" },
	{ "/etc/machine-id", "" },
};

/*
 * Common names of programs that the host has under another name only: agents type "python", which
 * Debian calls "python3". The folder is the last of PATH (box/host/exec.c), so real programs win.
 * What is mounted is a link in any case, which leads nowhere in a sandbox without modules.
 */
static const struct {
	const char *name, *target;
	bool mounted;
} aliases[] = {
	{ "python", "/usr/bin/python3", false },
	{ "holt-call", MODULES "/holt-call", true },
};

/*
 * What is copied from the host's /etc: public by nature, and needed by programs in /usr that were
 * split between the two. Patterns as of fnmatch(3). Configuration that may name people, hosts or
 * secrets (git, npm, pip, ssh, apt …) is not here on purpose.
 */
static const char *const copied[] = {
	"alternatives",	  "ld.so.cache",   "ld.so.conf",  "ld.so.conf.d",
	"localtime",	  "timezone",	   "mime.types",  "magic",
	"services",	  "protocols",	   "ssl",	  "java-*",
	"python3*",	  "perl",	   "php",	  "lua",
	"ghostscript",	  "fonts",	   "inputrc",	  "bash.bashrc",
	"debian_version", "os-release",	   "lsb-release", "terminfo",
	"texmf",	  "ImageMagick-*", "vim",	  "gdb",
};

/* Only parts of these directories: no private keys, and of the certificates the bundle without
 * its hundreds of links. */
static const struct {
	const char *dir;
	const char *const names[4];
	size_t n;
} partly[] = {
	{ "ssl", { "certs", "openssl.cnf" }, 2 },
	{ "certs", { "ca-certificates.crt", "java" }, 2 },
};

/* Links that are left out: to manual pages. They are three of four links in /etc/alternatives, and
 * copying them took a sixth of the time of `holt run`. */
static const char *const left_out[] = { "*.[1-9]*.gz" };

static bool matches(const char *name, const char *const *patterns, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		/* most differ in the first letter, which takes a fiftieth of the time to see */
		if ((*patterns[i] == *name || *patterns[i] == '*') &&
		    fnmatch(patterns[i], name, 0) == 0)
			return true;
	}
	return false;
}

static int copy_file(int from, int to, const char *name, const struct stat *st)
{
	autoclose int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	autoclose int out = -1;
	off_t left = st->st_size;

	if (in < 0)
		return 0; /* not ours to read: not for sandboxes either */
	out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, st->st_mode & 0755);
	if (out < 0)
		return -1;
	while (left > 0) {
		ssize_t n = sendfile(out, in, NULL, (size_t)left);

		if (n < 0)
			return -1;
		if (n == 0)
			break;
		left -= n;
	}
	return 0;
}

static int copy_link(int from, int to, const char *name)
{
	char target[PATH_MAX];
	ssize_t n;

	if (matches(name, left_out, ARRAY_LEN(left_out)))
		return 0;
	n = readlinkat(from, name, target, sizeof(target) - 1);
	if (n < 0)
		return -1;
	target[n] = '\0';
	return symlinkat(target, to, name);
}

static int copy_dir(int from, int to, const char *const *patterns, size_t n, int depth);

/* Copies a directory, or the part of it that `partly` names. */
static int copy_subdir(int from, int to, const char *name, int depth)
{
	autoclose int in = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	autoclose int out = -1;

	if (in < 0 || depth == COPY_DEPTH)
		return 0;
	if (mkdirat(to, name, 0755) < 0)
		return -1;
	out = openat(to, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_LEN(partly); i++) {
		if (strcmp(name, partly[i].dir) == 0)
			return copy_dir(take_fd(&in), out, partly[i].names, partly[i].n, depth + 1);
	}
	return copy_dir(take_fd(&in), out, NULL, 0, depth + 1);
}

/* Copies one entry if every user of the host may read it. */
static int copy_entry(int from, int to, const struct dirent *e, int depth)
{
	struct stat st;

	if (e->d_type == DT_LNK)
		return copy_link(from, to, e->d_name);
	if (fstatat(from, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (S_ISLNK(st.st_mode)) /* where directories don't tell types */
		return copy_link(from, to, e->d_name);
	if (!(st.st_mode & S_IROTH))
		return 0;
	if (S_ISDIR(st.st_mode))
		return copy_subdir(from, to, e->d_name, depth);
	if (!S_ISREG(st.st_mode) || st.st_size > COPY_FILE_MAX)
		return 0;
	return copy_file(from, to, e->d_name, &st);
}

/* Copies the matching entries, or all if there are no patterns. Closes `from`. */
static int copy_dir(int from, int to, const char *const *patterns, size_t n, int depth)
{
	autofolder struct folder f = folder_take(from);
	int failed = 0, more = 0;

	while (!failed && (more = folder_next(&f)) > 0) {
		if (!patterns || matches(f.entry->d_name, patterns, n))
			failed = copy_entry(from, to, f.entry, depth);
	}
	return more < 0 ? -1 : failed;
}

/* /bin and its like: the host's link into /usr, or a directory to bind on. */
static int make_top(const char *skel, const char *host, const char *name)
{
	char from[PATH_MAX], to[PATH_MAX], target[PATH_MAX];
	struct stat st;
	ssize_t n;

	snprintf(from, sizeof(from), "%s%s", host, name);
	snprintf(to, sizeof(to), "%s%s", skel, name);
	if (lstat(from, &st) < 0)
		return 0;
	if (S_ISDIR(st.st_mode))
		return mkdir(to, 0755) < 0 && errno != EEXIST ? -1 : 0;
	n = S_ISLNK(st.st_mode) ? readlink(from, target, sizeof(target) - 1) : -1;
	if (n < 0)
		return 0;
	target[n] = '\0';
	return symlink(target, to);
}

static int make_alias(const char *skel, const char *host, size_t i)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s%s", host, aliases[i].target);
	if (!aliases[i].mounted && lstat(path, &st) < 0)
		return 0;
	snprintf(path, sizeof(path), "%s%s/%s", skel, ALIASES, aliases[i].name);
	return symlink(aliases[i].target, path);
}

static int write_text(const char *skel, const char *path, const char *text)
{
	char to[PATH_MAX];
	autoclose int fd = -1;
	size_t n = strlen(text);

	snprintf(to, sizeof(to), "%s%s", skel, path);
	fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	return fd < 0 || write(fd, text, n) != (ssize_t)n ? -1 : 0;
}

int template_host_skeleton(const char *skel, const char *host)
{
	autoclose int from = -1;
	autoclose int to = -1;
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		snprintf(path, sizeof(path), "%s%s", skel, dirs[i].path);
		if (mkdir(path, 0755) < 0 || chmod(path, dirs[i].mode) < 0)
			return -1;
	}
	snprintf(path, sizeof(path), "%s/home/user", skel); /* what clients of E2B call it */
	if (symlink("agent", path) < 0)
		return -1;
	for (size_t i = 0; i < template_host_n_dirs; i++) {
		if (make_top(skel, host, template_host_dirs[i]) < 0)
			return -1;
	}
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		if (write_text(skel, files[i].path, files[i].text) < 0)
			return -1;
	}
	for (size_t i = 0; i < ARRAY_LEN(aliases); i++) {
		if (make_alias(skel, host, i) < 0)
			return -1;
	}
	snprintf(path, sizeof(path), "%s/etc", host);
	from = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (from < 0)
		return errno == ENOENT ? 0 : -1;
	snprintf(path, sizeof(path), "%s/etc", skel);
	to = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return to < 0 ? -1 : copy_dir(take_fd(&from), to, copied, ARRAY_LEN(copied), 0);
}
