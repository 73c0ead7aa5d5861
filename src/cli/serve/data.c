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
#include "guard/gate/gate.h"

/* As what opens them wants them. */
static const struct data_row {
	const char *name;
	mode_t type;
	bool private; /* nobody else may read it */
	bool link; /* it may be a link to one */
} rows[] = {
	{ "workspaces", S_IFDIR, .private = true },
	{ "workspaces/trees", S_IFDIR, .private = true },
	{ "workspaces/objects", S_IFDIR, .private = true },
	{ "workspaces/new", S_IFDIR, .private = true },
	{ "snapshots", S_IFDIR, .private = true },
	{ "snapshots/new", S_IFDIR, .private = true },
	{ "conversations", S_IFDIR, .private = true, .link = true },
	{ "conversations/trash", S_IFDIR },
	{ "conversations/.lock", S_IFREG },
	{ "audit", S_IFDIR, .link = true }, /* its log may be off */
	{ "warden", S_IFDIR },
	{ "warden/socket", S_IFSOCK, .link = true },
	{ "registry.db", S_IFREG, .private = true },
	{ "registry.db-wal", S_IFREG, .link = true },
	{ "registry.db-shm", S_IFREG, .link = true },
	{ "registry.db-lock", S_IFREG },
};

static int data_check_one(const char *path, const struct data_row *row, struct err *e)
{
	const int mode = R_OK | W_OK | (row->type == S_IFDIR ? X_OK : 0);
	struct stat st;

	if (fstatat(AT_FDCWD, path, &st, row->link ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : err_sys(e, errno, "%.120s", path);
	if ((st.st_mode & S_IFMT) != row->type)
		return err_set(e, ERR_FOLDER, "%.120s is no %s", path,
			       row->type == S_IFDIR   ? "folder"
			       : row->type == S_IFREG ? "regular file"
						      : "socket");
	if (row->private && (st.st_uid != geteuid() || (st.st_mode & 077)))
		return err_set(e, ERR_FOLDER, "%.120s is open to others, or not yours", path);
	/* of a socket, what connects wants only the right to write */
	if (faccessat(AT_FDCWD, path, row->type == S_IFSOCK ? W_OK : mode, AT_EACCESS) < 0)
		return err_set(e, ERR_FOLDER, "%.120s can't be read and written: %s", path,
			       strerror(errno));
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
	if (n < 0) /* it may pass */
		return err_sys(e, errno, "read the registry, %.120s", path);
	if (n == 0 || (n == sizeof(magic) && memcmp(begins, magic, sizeof(magic)) == 0))
		return 0;
	return err_set(e, ERR_STORE_CORRUPT, "the registry is damaged: %.120s is no database",
		       path);
}

static int data_check_audit(const struct config *c, struct err *e)
{
	char path[PATH_MAX];
	const char *folder;

	if (home_audit(path, &folder, e) < 0)
		return -1;
	if (gate_check_audit(c, folder, e) == 0)
		return 0;
	/* the remedies of these are for paths of a sandbox */
	if (e->code == ERR_NOT_A_FILE || e->code == ERR_PATH_DENIED || e->code == ERR_INVALID)
		e->code = ERR_FOLDER;
	return err_wrap(e, "%.120s", path);
}

int data_check(const struct config *c, const char *socket, struct err *e)
{
	const struct data_row row = { .type = S_IFSOCK };
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (home_where(rows[i].name, path, e) < 0 || data_check_one(path, &rows[i], e) < 0)
			return -1;
	}
	if (data_check_audit(c, e) < 0)
		return -1;
	if (strcmp(socket, "none") != 0 && data_check_one(socket, &row, e) < 0)
		return -1;
	return data_check_registry(e);
}
