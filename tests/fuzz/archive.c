/*
 * Archives, unpacked as a confined process does it, but in this one, so that a fault is seen: into
 * a folder of memory where there is one. The first byte says whether it is a layer, and whether it
 * is unpacked twice, as two layers that replace each other's files. What is refused is an error of
 * the kinds that are promised; whatever becomes of it, nothing is made beside the folder, and in it
 * only what an image may have.
 *
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "box/archive/unpack.h"
#include "fuzz.h"

enum { LAYER = 1, TWICE = 2, DEEPEST = 210, FILES = 16 };

static const struct tree_limits limits = { .bytes = 1 << 20, .entries = 500 };

static int hold(const uint8_t *data, size_t n)
{
	int fd = memfd_create("archive", MFD_CLOEXEC);

	MUST(fd >= 0 && write(fd, data, n) == (ssize_t)n && lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

static int check_file(const char *path, const struct stat *st, int type, struct FTW *at)
{
	MUST(S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) || S_ISLNK(st->st_mode));
	MUST(!(st->st_mode & (S_ISUID | S_ISGID)));
	MUST(at->level <= DEEPEST);
	return 0;
}

static void check_beside(const char *top, int dir)
{
	struct stat st;

	MUST(fstatat(dir, "secret", &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size == 6 &&
	     st.st_nlink == 1 && (st.st_mode & 07777) == 0600);
	MUST(stat(top, &st) == 0 && st.st_nlink == 3); /* one folder in it */
}

static void unpack_once(const struct unpack *u, struct tree_count *count)
{
	struct unpacked got = { .size = 0 };
	struct err e = ERR_INIT;

	if (unpack_archive_here(u, count, &got, &e) < 0) {
		MUST(e.code == ERR_IMAGE || e.code == ERR_TOO_LARGE || e.code == ERR_LIMIT ||
		     e.code == ERR_PATH_NOT_FOUND || e.code == ERR_INVALID);
		MUST(strnlen(e.msg, sizeof(e.msg)) < sizeof(e.msg));
		return;
	}
	MUST(got.count.bytes <= limits.bytes && got.count.entries <= limits.entries);
	MUST(strlen(got.digest) == HASH_HEX && strlen(got.stream) == HASH_HEX);
	*count = got.count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char top[] = "/dev/shm/holt-fuzz-XXXXXX", elsewhere[] = "/tmp/fuzz-holt-XXXXXX";
	char *path = mkdtemp(top) ? top : mkdtemp(elsewhere), out[64];
	struct tree_count count = { 0, 0 };
	struct unpack u = { .limits = limits };
	int dir;

	MUST(path && n < 1 << 20);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(mkdirat(dir, "out", 0700) == 0);
	close(openat(dir, "secret", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	MUST(truncate(strcat(strcpy(out, path), "/secret"), 6) == 0);
	u.to = openat(dir, "out", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	u.layer = n > 0 && data[0] & LAYER;
	for (int i = 0; n > 0 && i < (data[0] & TWICE ? 2 : 1); i++) {
		u.from = hold(data + 1, n - 1);
		unpack_once(&u, &count);
		close(u.from);
	}
	check_beside(path, dir);
	snprintf(out, sizeof(out), "%s/out", path);
	MUST(nftw(out, check_file, FILES, FTW_PHYS) == 0);
	close(u.to);
	close(dir);
	MUST(tree_remove(AT_FDCWD, path) == 0);
	return 0;
}
