#include "cli/serve/data.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "cli/common/home.h"

static const char *const folders[] = {
	"workspaces", "workspaces/trees",   "workspaces/objects", "workspaces/new",
	"snapshots",  "snapshots/new",	    "conversations",	  "audit",
	"warden",     "conversations/trash"
};
static const char *const files[] = { "registry.db", "registry.db-wal", "registry.db-shm",
				     "registry.db-lock" };

static int data_check_one(const char *path, mode_t type, int mode, struct err *e)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : err_sys(e, errno, "%.120s", path);
	if ((st.st_mode & S_IFMT) != type)
		return err_set(e, ERR_FOLDER, "%.120s is no %s", path,
			       type == S_IFDIR	 ? "folder"
			       : type == S_IFREG ? "regular file"
						 : "socket");
	if (faccessat(AT_FDCWD, path, mode, AT_EACCESS) < 0)
		return err_set(e, ERR_FOLDER, "%.120s can't be read and written: %s", path,
			       strerror(errno));
	return 0;
}

static int data_check_names(const char *const *names, size_t n, mode_t type, struct err *e)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < n; i++) {
		if (home_where(names[i], path, e) < 0 ||
		    data_check_one(path, type, R_OK | W_OK | (type == S_IFDIR ? X_OK : 0), e) < 0)
			return -1;
	}
	return 0;
}

/* Only its first bytes: the hub before has it open, and reads it with its own locks. */
static int data_check_registry(struct err *e)
{
	static const char magic[16] = "SQLite format 3";
	char path[PATH_MAX], begins[sizeof(magic)];
	autoclose int fd = -1;
	ssize_t n;

	if (home_where("registry.db", path, e) < 0)
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : pread(fd, begins, sizeof(begins), 0);
	if (n == 0 || (n == sizeof(magic) && memcmp(begins, magic, sizeof(magic)) == 0))
		return 0;
	return err_set(e, ERR_STORE_CORRUPT, "the registry is damaged: %.120s is no database",
		       path);
}

int data_check(const char *socket, struct err *e)
{
	if (data_check_names(folders, ARRAY_LEN(folders), S_IFDIR, e) < 0 ||
	    data_check_names(files, ARRAY_LEN(files), S_IFREG, e) < 0)
		return -1;
	if (strcmp(socket, "none") != 0 && data_check_one(socket, S_IFSOCK, W_OK, e) < 0)
		return -1;
	return data_check_registry(e);
}
