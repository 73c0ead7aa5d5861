/* Files: bits and nodes that must not come to be, paths that lead out, what was left open. */
#include "probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Rows that make or change the file at here(), which is gone afterwards. */
#define ATTEMPT(name, call)                                                                        \
	static enum result name(struct found *f)                                                   \
	{                                                                                          \
		enum result r = tried(f, (call));                                                  \
		unlink(here());                                                                    \
		return r;                                                                          \
	}

static const char *here(void)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/file-%d", told("HOLT_PROBE_PLACE", "/tmp"), (int)getpid());
	return path;
}

static const char *fresh(void)
{
	unlink(here());
	return here();
}

static int made_fd(void)
{
	return open(fresh(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0755);
}

static const char *made(void)
{
	close(made_fd());
	return here();
}

/* ---- set-user-id bits ------------------------------------------------------------------------ */

/* Open when the file is there with a bit, whatever the call said. */
static enum result tried_bit(struct found *f, long ret)
{
	enum result r = tried(f, ret);
	struct stat st = { 0 };

	if (stat(here(), &st) == 0 && st.st_mode & (S_ISUID | S_ISGID))
		r = OPEN;
	else if (r == OPEN)
		r = DENIED;
	unlink(here());
	return r;
}

#define BIT_ATTEMPT(name, call)                                                                    \
	static enum result name(struct found *f)                                                   \
	{                                                                                          \
		umask(0);                                                                          \
		return tried_bit(f, (call));                                                       \
	}

enum { SETUID = 04755, SETGID = 02755 };

#ifdef SYS_chmod
BIT_ATTEMPT(bit_chmod, syscall(SYS_chmod, made(), SETUID))
BIT_ATTEMPT(bit_open, syscall(SYS_open, fresh(), O_CREAT | O_WRONLY, SETUID))
BIT_ATTEMPT(bit_creat, syscall(SYS_creat, fresh(), SETUID))
BIT_ATTEMPT(bit_mknod, syscall(SYS_mknod, fresh(), S_IFREG | SETUID, 0))
#endif
BIT_ATTEMPT(bit_chmod_gid, fchmodat(AT_FDCWD, made(), SETGID, 0))
BIT_ATTEMPT(bit_fchmod, fchmod(made_fd(), SETUID))
BIT_ATTEMPT(bit_fchmodat, syscall(SYS_fchmodat, AT_FDCWD, made(), SETUID))
BIT_ATTEMPT(bit_fchmodat2, syscall(452 /* fchmodat2 */, AT_FDCWD, made(), SETUID, 0))
BIT_ATTEMPT(bit_fchmod_high, syscall(SYS_fchmod, made_fd(), 1ul << 32 | SETUID))
BIT_ATTEMPT(bit_openat, syscall(SYS_openat, AT_FDCWD, fresh(), O_CREAT | O_WRONLY, SETUID))
BIT_ATTEMPT(bit_openat2, syscall(SYS_openat2, AT_FDCWD, fresh(),
				 &(unsigned long[3]){ O_CREAT | O_WRONLY, SETUID }, 24ul))
BIT_ATTEMPT(bit_mknodat, syscall(SYS_mknodat, AT_FDCWD, fresh(), S_IFREG | SETUID, 0))

/* A file without a name that gets one afterwards. */
static enum result bit_tmpfile(struct found *f)
{
	char self[64];
	int fd;

	umask(0);
	fd = open(told("HOLT_PROBE_PLACE", "/tmp"), O_TMPFILE | O_WRONLY | O_CLOEXEC, SETUID);
	if (fd < 0)
		return tried(f, fd);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return tried_bit(f, linkat(AT_FDCWD, self, AT_FDCWD, fresh(), AT_SYMLINK_FOLLOW));
}

/* ---- nodes and attributes -------------------------------------------------------------------- */

ATTEMPT(try_mknod_block, mknod(fresh(), S_IFBLK | 0600, makedev(7, 0)))
ATTEMPT(try_mknod_char, mknod(fresh(), S_IFCHR | 0600, makedev(1, 1)))
ATTEMPT(try_setcap, setxattr(made(), "security.capability",
			     "\1\0\0\2\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0\0\0\0", 20, 0))
ATTEMPT(try_trusted, setxattr(made(), "trusted.overlay.redirect", "/etc", 4, 0))
ATTEMPT(try_chown_root, chown(made(), 0, 0))

/* ---- what is the host's ---------------------------------------------------------------------- */

/* A file of the host by every name that might lead to it. */
static enum result try_host_file(struct found *f)
{
	static const char *const before[] = { "",
					      "/proc/1/root",
					      "/proc/self/root/..",
					      "/proc/self/cwd/../../../../../../../..",
					      "../../../../../../../../../../../../../../..",
					      "/proc/thread-self/root",
					      "/proc/1/cwd/../../../../..",
					      "/dev/fd/../../../../../..",
					      "/mnt/..",
					      "/usr/../..",
					      "/proc/../.." };
	const char *file = told("HOLT_PROBE_FILE", "/nowhere");
	enum result r = ABSENT;
	char path[4096], text[64];

	for (size_t i = 0; i < PROBE_LEN(before); i++) {
		snprintf(path, sizeof(path), "%s%s", before[i], file);
		r = tried(f, open(path, O_RDONLY | O_CLOEXEC));
		if (r == OPEN || *slurp(path, text, sizeof(text))) {
			tell(f, "by %.40s…", before[i]);
			return OPEN;
		}
	}
	return r;
}

/* Up and up and up, from a directory that is held open. */
static enum result try_dotdot(struct found *f)
{
	const char *file = told("HOLT_PROBE_FILE", "/nowhere");
	int at = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), up;

	for (int i = 0; i < 64 && at >= 0; i++) {
		up = openat(at, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(at);
		at = up;
	}
	return tried_open(f, openat(at, file + 1, O_RDONLY | O_CLOEXEC));
}

static enum result try_symlink(struct found *f)
{
	enum result r;

	r = tried(f, symlink(told("HOLT_PROBE_FILE", "/nowhere"), fresh()));
	if (r == OPEN)
		r = tried_open(f, open(here(), O_RDONLY | O_CLOEXEC));
	unlink(here());
	return r;
}

/* Of a program of the host, which stands in a mount of its own. */
ATTEMPT(try_hardlink, link("/usr/bin/env", fresh()))
ATTEMPT(try_write_usr, open("/usr/bin/env", O_WRONLY | O_CLOEXEC))
ATTEMPT(try_make_usr, open("/usr/holt-probe", O_WRONLY | O_CREAT | O_CLOEXEC, 0644))
ATTEMPT(try_remove_usr, unlink("/usr/share/holt-probe-none") < 0 && errno != EROFS ? 0 : -1)
ATTEMPT(try_shadow, open("/etc/shadow", O_RDONLY | O_CLOEXEC))

/* This program itself, while it runs. */
static enum result try_own_exe(struct found *f)
{
	return tried_open(f, open("/proc/self/exe", O_WRONLY | O_CLOEXEC));
}

static enum result try_init_exe(struct found *f)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", target_pid());
	return tried_open(f, open(path, O_RDONLY | O_CLOEXEC));
}

/* ---- what was left open: N3 ------------------------------------------------------------------ */

static enum result try_descriptors(struct found *f)
{
	int n = 0;

	/* the pipe to the parent is the only other one, and it closes on exec */
	for (int fd = 3; fd < 65536; fd++) {
		int flags = fcntl(fd, F_GETFD);

		if (flags >= 0 && !(flags & FD_CLOEXEC)) {
			tell(f, "%d", fd);
			n++;
		}
	}
	return n ? OPEN : DENIED;
}

static enum result try_cwd_by_fd(struct found *f)
{
	char path[64];

	for (int fd = 0; fd < 1024; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (chdir(path) == 0) {
			tell(f, "%d", fd);
			return OPEN;
		}
	}
	return tried(f, -1);
}

/* The working directory must be inside: getcwd() says "(unreachable)" of one that is not. */
static enum result try_cwd_outside(struct found *f)
{
	char cwd[4096] = "";

	if (syscall(SYS_getcwd, cwd, sizeof(cwd)) < 0)
		return tried(f, -1);
	tell(f, "%.100s", cwd);
	return strcmp(cwd, "/workspace") == 0 ? DENIED : OPEN;
}

static const struct attempt rows[] = {
#ifdef SYS_chmod
	{ "suid_chmod", "a set-user-id bit by chmod", "seccomp, nosuid", bit_chmod, PLAIN },
	{ "suid_open", "a set-user-id bit by open", "seccomp, nosuid", bit_open, PLAIN },
	{ "suid_creat", "a set-user-id bit by creat", "seccomp, nosuid", bit_creat, PLAIN },
	{ "suid_mknod", "a set-user-id bit by mknod", "seccomp, nosuid", bit_mknod, PLAIN },
#endif
	{ "suid_fchmod", "a set-user-id bit by fchmod", "seccomp, nosuid", bit_fchmod, PLAIN },
	{ "suid_fchmod_high", "a set-user-id bit by fchmod with a bit set above the 32nd",
	  "seccomp, nosuid", bit_fchmod_high, PLAIN },
	{ "suid_fchmodat", "a set-user-id bit by fchmodat", "seccomp, nosuid", bit_fchmodat,
	  PLAIN },
	{ "suid_fchmodat2", "a set-user-id bit by fchmodat2", "seccomp, nosuid", bit_fchmodat2,
	  PLAIN },
	{ "suid_openat", "a set-user-id bit by openat", "seccomp, nosuid", bit_openat, PLAIN },
	{ "suid_openat2", "a set-user-id bit by openat2", "seccomp, nosuid", bit_openat2, PLAIN },
	{ "suid_mknodat", "a set-user-id bit by mknodat", "seccomp, nosuid", bit_mknodat, PLAIN },
	{ "suid_tmpfile", "a set-user-id bit by O_TMPFILE and linkat", "seccomp, nosuid",
	  bit_tmpfile, PLAIN },
	{ "sgid_fchmodat", "a set-group-id bit by fchmodat", "seccomp, nosuid", bit_chmod_gid,
	  PLAIN },
	{ "mknod_block", "make a block device", "no capability, nodev, Landlock", try_mknod_block,
	  ROOT },
	{ "mknod_char", "make a character device", "no capability, nodev, Landlock", try_mknod_char,
	  ROOT },
	{ "setcap", "give a program capabilities", "no capability, nosuid", try_setcap, ROOT },
	{ "xattr_trusted", "mark a file for the overlay below (trusted.overlay.*)", "no capability",
	  try_trusted, ROOT },
	{ "chown_root", "give a file to user 0", "user namespace with one user", try_chown_root,
	  ROOT },
	{ "host_file", "read a file of the host by eleven paths", "mount namespace", try_host_file,
	  PLAIN },
	{ "host_file_dotdot", "read a file of the host from 64 steps above the root",
	  "mount namespace", try_dotdot, PLAIN },
	{ "host_file_symlink", "read a file of the host by a symbolic link", "mount namespace",
	  try_symlink, PLAIN },
	{ "hardlink_usr", "a hard link to a program of the host", "read-only mount of its own",
	  try_hardlink, LOOK, .path = "/usr/bin/env" },
	{ "write_usr", "write a program of the host", "read-only mount", try_write_usr, LOOK,
	  .path = "/usr/bin/env" },
	{ "make_usr", "make a file in the host's /usr", "read-only mount", try_make_usr, LOOK,
	  .path = "/usr" },
	{ "remove_usr", "remove a file of the host's /usr", "read-only mount", try_remove_usr, LOOK,
	  .path = "/usr/share" },
	{ "read_shadow", "read /etc/shadow", "mount namespace", try_shadow, LOOK,
	  .path = "/etc/shadow" },
	{ "write_own_exe", "write /proc/self/exe", "busy, read-only", try_own_exe, LOOK,
	  .path = "/usr/bin/env" },
	{ "open_init_exe", "open the program of PID 1 by /proc/1/exe", "PID 1 not dumpable",
	  try_init_exe, JAIL, true },
	{ "descriptors", "have descriptors other than 0, 1 and 2", "closed", try_descriptors,
	  PLAIN },
	{ "cwd_by_descriptor", "go to a directory by /proc/self/fd/N", "closed", try_cwd_by_fd,
	  PLAIN },
	{ "cwd_outside", "start in a directory that is outside", "mount namespace", try_cwd_outside,
	  PLAIN },
};

const struct attempts file_attempts = { "Files", rows, PROBE_LEN(rows) };
