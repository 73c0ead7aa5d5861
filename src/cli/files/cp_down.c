/* `holt cp` from a sandbox. The archive is hostile: box/archive/tar_tree.h unpacks it below one
 * directory. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "box/archive/tree_error.h"
#include "cli/files/cp.h"
#include "cli/common/file.h"
#include "cli/common/safe.h"
#include "box/host/box.h"

/* It is looked at for its comment alone. */
static int take_raw(void *arg, struct str bytes, struct err *e)
{
	struct str rest = bytes;
	enum tar_event step;

	do {
		step = tar_read(arg, &rest.p, &rest.n);
	} while (step != TAR_MORE && step != TAR_BAD);
	return file_write_fd(STDOUT_FILENO, "standard output", bytes, e);
}

static int take_tree(void *arg, struct str bytes, struct err *e)
{
	struct tar_unpack *u = arg;

	return tar_unpack_take(u, bytes.p, bytes.n) < 0 ? tree_error(&u->failure, "", e) : 0;
}

/* The content of the one file of an archive, into what is no regular file. */
struct cp_pour {
	struct tar_reader reader;
	struct file_out out;
	bool ended;
};

static int take_content(void *arg, struct str bytes, struct err *e)
{
	struct cp_pour *p = arg;
	enum tar_event step;

	while ((step = tar_read(&p->reader, &bytes.p, &bytes.n)) != TAR_MORE) {
		if (step == TAR_BAD || step == TAR_PASSED)
			return err_set(e, ERR_TRANSPORT, "the hub's archive: %s",
				       tar_why_text(p->reader.why));
		if (step == TAR_END)
			p->ended = true;
		if (step == TAR_CONTENT &&
		    file_write_fd(p->out.fd, p->out.path,
				  (struct str){ p->reader.content, p->reader.content_n }, e) < 0)
			return -1;
	}
	return 0;
}

static int pour(struct hub_link *l, const char *url, const char *to, struct err *e)
{
	struct cp_pour p = { .ended = false };
	int rc;

	tar_reader_init(&p.reader);
	if (file_out_open(&p.out, to, e) < 0)
		return -1;
	rc = hub_link_download(l, url, take_content, &p, e);
	if (rc == 0 && !p.ended)
		rc = err_set(e, ERR_TRANSPORT, "the hub's archive has no end");
	return file_out_end(&p.out, rc == 0, e);
}

static enum cp_kind look_here(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 ? CP_NOTHING : S_ISDIR(st.st_mode) ? CP_DIRECTORY : CP_FILE;
}

/* A pipe, a device and /dev/stdout are written into and never replaced. Another link is replaced: a
 * sandbox may have made it, in a folder that it was given. */
static bool is_special_here(const char *to)
{
	static const char own[] = "/proc/self/fd/";
	char link[sizeof(own)] = "";
	struct stat st;

	return (stat(to, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) ||
	       (readlink(to, link, sizeof(own) - 1) > 0 && strcmp(link, own) == 0);
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

/* ---- what programs of this machine act on --------------------------------------------------- */

enum { ACTS_TOLD = 20 };

struct acts {
	int top;
	unsigned n;
};

static bool acts_has(void *arg, const char *path)
{
	return faccessat(((const struct acts *)arg)->top, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Not each file of such a directory, which is told itself. */
static void tell_acts(void *arg, const char *path)
{
	struct acts *a = arg;
	const char *slash = strrchr(path, '/');
	char above[CP_PATH_MAX] = "";

	if (slash)
		snprintf(above, sizeof(above), "%.*s", (int)(slash - path), path);
	if (!box_project_acts(path, acts_has, a) || box_project_acts(above, acts_has, a) ||
	    a->n++ >= ACTS_TOLD)
		return;
	fputs("holt: programs of this machine act on what this says: ", stderr);
	safe_puts(stderr, str_of(path));
}

static int cp_down_unpack(struct hub_link *l, const char *url, int top,
			  const struct tar_unpack_opts *o, struct err *e)
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
	if (rc == 0)
		cp_tell_left_out(u->reader.comment);
	return rc;
}

int cp_down(struct hub_link *l, const struct cp_end *from, const char *to, struct err *e)
{
	char url[CP_URL_MAX], own[CP_PATH_MAX], dir[CP_PATH_MAX], name[CP_PATH_MAX];
	struct tar_unpack_opts o = { .skip_zeros = true };
	struct tar_reader reader;
	enum cp_kind kind;
	autoclose int top = -1;
	struct acts acts = { .n = 0 };
	bool is_new;
	int rc;

	cp_own_name(from->path, own);
	if (cp_url(url, from->name, from->path, e) < 0 ||
	    (strcmp(to, "-") == 0 && strcmp(own, ".") != 0 &&
	     hub_link_query(url, sizeof(url), "named", "true", e) < 0) ||
	    hub_link_raw(url, sizeof(url), strcmp(to, "-") == 0, e) < 0)
		return -1;
	if (strcmp(to, "-") == 0) {
		tar_reader_init(&reader);
		if (hub_link_download(l, url, take_raw, &reader, e) < 0)
			return -1;
		cp_tell_left_out(reader.comment);
		return 0;
	}
	if (cp_look(l, from, &kind, e) < 0)
		return -1;
	if (kind == CP_FILE && is_special_here(to))
		return pour(l, url, to, e);
	if (cp_place(to, look_here(to), own, kind == CP_DIRECTORY, dir, name, e) < 0)
		return -1;
	top = open_top(dir, name, kind == CP_DIRECTORY, &is_new, e);
	if (top < 0)
		return -1;
	o.keep_top = !is_new;
	if (kind == CP_DIRECTORY) { /* a file was named, and its new name, too */
		o.on_entry = tell_acts;
		o.arg = &acts;
		acts.top = top;
	} else {
		o.as = name;
	}
	rc = cp_down_unpack(l, url, top, &o, e);
	if (acts.n > ACTS_TOLD)
		fprintf(stderr, "holt: and on %u more\n", acts.n - ACTS_TOLD);
	return rc;
}
