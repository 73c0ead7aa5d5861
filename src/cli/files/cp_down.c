/* `holt cp` from a sandbox. The archive is hostile: box/archive/tar_tree.h unpacks it below one
 * directory. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "box/archive/tree_error.h"
#include "cli/files/cp.h"
#include "cli/common/file.h"

static int take_raw(void *arg, struct str bytes, struct err *e)
{
	return file_write_fd(STDOUT_FILENO, "standard output", bytes, e);
}

static int take_tree(void *arg, struct str bytes, struct err *e)
{
	struct tar_unpack *u = arg;

	return tar_unpack_take(u, bytes.p, bytes.n) < 0 ? tree_error(&u->failure, "", e) : 0;
}

static enum cp_kind look_here(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 ? CP_NOTHING : S_ISDIR(st.st_mode) ? CP_DIRECTORY : CP_FILE;
}

/* Opens a directory in dir, and creates it if needed. *ret_new: it was missing. */
static int open_top(const char *dir, const char *name, bool of_directory, bool *ret_new,
		    struct err *e)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	autoclose int at = open(dir, flags);
	int fd;

	*ret_new = false;
	if (at < 0)
		return err_sys(e, errno, "%.160s", dir);
	if (!of_directory || strcmp(name, ".") == 0)
		return take_fd(&at);
	*ret_new = mkdirat(at, name, 0700) == 0;
	if (!*ret_new && errno != EEXIST)
		return err_sys(e, errno, "%.160s", name);
	fd = openat(at, name, flags | O_NOFOLLOW);
	return fd < 0 ? err_sys(e, errno, "%.160s", name) : fd;
}

static int unpack(struct hub_link *l, const char *url, int top, const struct tar_unpack_opts *o,
		  struct err *e)
{
	autofree struct tar_unpack *u = malloc(sizeof(*u));
	int rc;

	if (!u)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (tar_unpack_init(u, top, o) < 0)
		return tree_error(&u->failure, ".", e);
	rc = hub_link_download(l, url, take_tree, u, e);
	if (tar_unpack_end(u, rc == 0) < 0 && rc == 0)
		rc = tree_error(&u->failure, ".", e);
	return rc;
}

int cp_down(struct hub_link *l, const struct cp_end *from, const char *to, struct err *e)
{
	char url[CP_URL_MAX], own[CP_PATH_MAX], dir[CP_PATH_MAX], name[CP_PATH_MAX];
	struct tar_unpack_opts o = { .skip_zeros = true };
	enum cp_kind kind;
	autoclose int top = -1;
	bool is_new;

	if (cp_url(url, from->name, from->path, e) < 0)
		return -1;
	if (strcmp(to, "-") == 0)
		return hub_link_download(l, url, take_raw, NULL, e);
	cp_own_name(from->path, own);
	if (cp_look(l, from, &kind, e) < 0 ||
	    cp_place(to, look_here(to), own, kind == CP_DIRECTORY, dir, name, e) < 0)
		return -1;
	top = open_top(dir, name, kind == CP_DIRECTORY, &is_new, e);
	if (top < 0)
		return -1;
	o.keep_top = !is_new;
	o.as = kind == CP_DIRECTORY ? NULL : name;
	return unpack(l, url, top, &o, e);
}
