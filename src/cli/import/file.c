#include "cli/import/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common/file.h"
#include "cli/common/safe.h"

enum { STEP = 2 };

int import_path(const char *file, char ret[PATH_MAX], struct err *e)
{
	const char *home = getenv("HOME");
	int n = str_starts(str_of(file), "~/")
		      ? snprintf(ret, PATH_MAX, "%s/%s", home && *home ? home : "/", file + 2)
		      : snprintf(ret, PATH_MAX, "%s", file);

	return n > 0 && n < PATH_MAX ? 0 : err_set(e, ERR_INVALID, "the path is too long");
}

static int make_folders(char *path, struct err *e)
{
	for (char *p = path + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return err_sys(e, errno, "make %.120s", path);
		*p = '/';
	}
	return 0;
}

int import_file_open(const char *file, char ret[PATH_MAX], struct buf *to, struct stat *ret_was,
		     struct err *e)
{
	autoclose int fd = -1;

	*ret_was = (struct stat){ .st_ino = 0 };
	if (realpath(file, ret)) {
		fd = open(ret, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (fd < 0 || fstat(fd, ret_was) < 0)
			return err_sys(e, errno, "open %.120s", ret);
		return file_read_fd(fd, ret, to, e);
	}
	if (errno != ENOENT)
		return err_sys(e, errno, "%.120s", file);
	snprintf(ret, PATH_MAX, "%s", file);
	return make_folders(ret, e);
}

/* Whether it is what was read. */
static bool file_same(const char *path, const struct stat *was)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno == ENOENT && was->st_ino == 0;
	return st.st_dev == was->st_dev && st.st_ino == was->st_ino && st.st_size == was->st_size &&
	       st.st_mtim.tv_sec == was->st_mtim.tv_sec &&
	       st.st_mtim.tv_nsec == was->st_mtim.tv_nsec;
}

static int import_put(const struct file_out *o, mode_t mode, const struct stat *was,
		      struct str text, struct err *e)
{
	if (file_out_lock(o, e) < 0)
		return -1;
	if (mode && fchmod(o->fd, mode) < 0)
		return err_sys(e, errno, "write %.120s", o->path);
	if (file_write_fd(o->fd, o->path, text, e) < 0)
		return -1;
	if (file_same(o->path, was))
		return 0;
	return err_set(e, ERR_CONFLICT, "%.120s was changed meanwhile: try again", o->path);
}

int import_file_write(const char *path, mode_t mode, const struct stat *was, struct str text,
		      struct err *e)
{
	struct file_out o;

	if (file_out_open(&o, path, e) < 0)
		return -1;
	return file_out_end(&o, import_put(&o, mode, was, text, e) == 0, e);
}

int import_lines(struct str json, struct buf *to, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = json_parse(json, NULL, e);
	autofree char *text = NULL;
	size_t n = 0;
	FILE *f = doc ? open_memstream(&text, &n) : NULL;
	int rc;

	if (!doc)
		return -1;
	if (!f)
		return err_set(e, ERR_LIMIT, "out of memory");
	rc = json_len(json_root(doc)) ? safe_json_lines(f, json_root(doc), STEP, e) : 0;
	if (fclose(f) != 0 && rc == 0)
		rc = err_set(e, ERR_LIMIT, "out of memory");
	if (rc < 0 || n < 2)
		return rc;
	for (n--; n > 1 && (text[n - 1] == ' ' || text[n - 1] == '\n');)
		n--;
	return buf_add(to, text + 1, n - 1, e);
}
