#include "box/archive/image_root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fd.h"
#include "box/archive/confine.h"

enum { PASSWD_MAX = 1 << 20, GUEST_ID = 1000 };

struct job {
	int root;
	struct str user, workdir;
};

/* Removes the image's entries: mount points take their place. */
static const struct {
	const char *path;
	uint32_t mode;
} mounted[] = { { "dev", 0755 }, { "proc", 0555 }, { "sys", 0555 } };

/* These keep what is in them. */
static const struct {
	const char *path;
	uint32_t mode;
} made[] = { { "run", 0755 },  { "run/lock", 01777 }, { "run/shm", 01777 },
	     { "tmp", 01777 }, { "var", 0755 },	      { "var/tmp", 01777 },
	     { "etc", 0755 },  { "home", 0755 },      { "workspace", 0755 } };

static const struct {
	const char *path, *text;
} files[] = {
	{ "etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost sandbox\n" },
	{ "etc/hostname", "sandbox\n" },
	{ "etc/resolv.conf", "# no network is granted to this sandbox\n" },
};

static int put_file(struct tree *t, const char *path, struct str text, struct err *e)
{
	autoclose int fd = tree_file(t, str_of(path), 0644, text.n, e);

	if (fd < 0)
		return -1;
	return fd_write(fd, text.p, text.n) < 0 ? err_sys(e, errno, "write %s", path) : 0;
}

static int put_places(struct tree *t, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(mounted); i++) {
		if (tree_whiteout(t, str_of(mounted[i].path), e) < 0 ||
		    tree_dir(t, str_of(mounted[i].path), mounted[i].mode, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < ARRAY_LEN(made); i++) {
		if (tree_dir(t, str_of(made[i].path), made[i].mode, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		if (put_file(t, files[i].path, str_of(files[i].text), e) < 0)
			return -1;
	}
	return 0;
}

/* ---- who is who ------------------------------------------------------------------------------ */

/* The file as text; empty if it can't be read. */
static int read_text(int root, const char *path, struct buf *ret, struct err *e)
{
	autoclose int fd = tree_open(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	ssize_t n;
	char *at;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size >= PASSWD_MAX)
		return 0;
	at = buf_reserve(ret, (size_t)st.st_size, e);
	if (!at)
		return -1;
	n = read(fd, at, (size_t)st.st_size);
	buf_advance(ret, n > 0 ? (size_t)n : 0);
	return 0;
}

/* Cuts the next line off *text; false at the end. */
static bool next_line(struct str *text, struct str *ret)
{
	const char *end = text->n ? memchr(text->p, '\n', text->n) : NULL;

	*ret = (struct str){ text->p, end ? (size_t)(end - text->p) : text->n };
	text->n -= ret->n + (end != NULL);
	text->p += ret->n + (end != NULL);
	return ret->n > 0 || end;
}

/* The field of a line between colons, from 0. */
static struct str part(struct str line, unsigned i)
{
	const char *colon;

	for (;; i--) {
		colon = line.n ? memchr(line.p, ':', line.n) : NULL;
		if (i == 0)
			return (struct str){ line.p, colon ? (size_t)(colon - line.p) : line.n };
		if (!colon)
			return STR_NONE;
		line.n -= (size_t)(colon - line.p) + 1;
		line.p = colon + 1;
	}
}

/* One that is fit for a line of /etc/passwd. */
static bool is_name(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    (i == 0 || !memchr("-_.", c, 3)))
			return false;
	}
	return s.n > 0 && s.n <= IMAGE_USER_MAX;
}

static bool is_home(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f || s.p[i] == ':')
			return false;
	}
	return s.n > 0 && s.n <= IMAGE_HOME_MAX && s.p[0] == '/';
}

static void set_user(struct image_user *ret, struct str name, struct str home)
{
	*ret = (struct image_user){ .name = "agent", .home = "/home/agent" };
	if (is_name(name) && !str_is(name, "root"))
		snprintf(ret->name, sizeof(ret->name), "%.*s", STR_ARG(name));
	if (is_home(home))
		snprintf(ret->home, sizeof(ret->home), "%.*s", STR_ARG(home));
}

/* Finds a user by name or number in the image's /etc/passwd. */
static void find_user(struct str passwd, struct str user, struct image_user *ret)
{
	struct str who = part(user, 0), line;

	if (who.n == 0)
		who = STR_LIT("root");
	set_user(ret, STR_NONE,
		 str_is(who, "root") || str_is(who, "0") ? STR_LIT("/root") : STR_NONE);
	while (next_line(&passwd, &line)) {
		if (!str_eq(part(line, 0), who) && !str_eq(part(line, 2), who))
			continue;
		set_user(ret, str_is(part(line, 2), "0") ? STR_NONE : part(line, 0), part(line, 5));
		return;
	}
}

/* Writes the sandbox's user first, so that its number resolves to it; then all other users
 * except the one it replaces. */
static int put_names(struct tree *t, const char *path, struct str first, struct str name,
		     struct str old, struct err *e)
{
	autobuf struct buf text = BUF_INIT(2 * PASSWD_MAX);
	struct str line;

	if (buf_add(&text, first.p, first.n, e) < 0)
		return -1;
	while (next_line(&old, &line)) {
		if (line.n > 0 && !str_eq(part(line, 0), name) &&
		    (buf_add(&text, line.p, line.n, e) < 0 || buf_add(&text, "\n", 1, e) < 0))
			return -1;
	}
	return put_file(t, path, buf_str(&text), e);
}

static int put_user(struct tree *t, const struct job *j, struct image_user *u, struct err *e)
{
	autobuf struct buf passwd = BUF_INIT(PASSWD_MAX);
	autobuf struct buf group = BUF_INIT(PASSWD_MAX);
	autoclose int bash = tree_open(j->root, "bin/bash", O_PATH);
	char line[IMAGE_USER_MAX * 3 + IMAGE_HOME_MAX + 64];
	int n;

	if (read_text(j->root, "etc/passwd", &passwd, e) < 0 ||
	    read_text(j->root, "etc/group", &group, e) < 0)
		return -1;
	find_user(buf_str(&passwd), j->user, u);
	n = snprintf(line, sizeof(line), "%s:x:%d:%d:%s:%s:%s\n", u->name, GUEST_ID, GUEST_ID,
		     u->name, u->home, bash < 0 ? "/bin/sh" : "/bin/bash");
	if (put_names(t, "etc/passwd", (struct str){ line, (size_t)n }, str_of(u->name),
		      buf_str(&passwd), e) < 0)
		return -1;
	n = snprintf(line, sizeof(line), "%s:x:%d:\n", u->name, GUEST_ID);
	return put_names(t, "etc/group", (struct str){ line, (size_t)n }, str_of(u->name),
			 buf_str(&group), e);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int put_workdir(struct tree *t, const struct job *j, struct err *e)
{
	struct str at = j->workdir;
	autoclose int there = -1;
	char path[4096];

	if (!at.p)
		return 0;
	while (at.n > 0 && at.p[0] == '/') {
		at.p++;
		at.n--;
	}
	if (at.n == 0)
		return 0;
	if (at.n >= sizeof(path))
		return err_set(e, ERR_IMAGE, "the working directory's path is too long");
	memcpy(path, at.p, at.n);
	path[at.n] = '\0';
	there = tree_open(j->root, path, O_PATH | O_DIRECTORY);
	return there >= 0 ? 0 : tree_dir(t, at, 0755, e);
}

static int finish_here(void *arg, void *out, struct err *e)
{
	static const struct tree_limits limits = { .bytes = 8 * PASSWD_MAX, .entries = 512 };
	const struct tree_count none = { 0, 0 };
	const struct job *j = arg;
	AUTO(tree_free) struct tree *t = tree_new(j->root, &limits, &none, e);

	if (!t || put_places(t, e) < 0 || put_user(t, j, out, e) < 0)
		return -1;
	return put_workdir(t, j, e);
}

int image_root_finish(int root, struct str user, struct str workdir, struct image_user *ret,
		      struct err *e)
{
	const struct confine c = {
		.write = root, .read = -1, .from = -1, .to = -1, .what = "prepare the image"
	};
	struct image_user got = { .name = "" };
	struct job j = { root, user, workdir };

	if (confine_run(&c, finish_here, &j, &got, sizeof(got), e) < 0)
		return -1;
	set_user(ret, (struct str){ got.name, strnlen(got.name, sizeof(got.name)) },
		 (struct str){ got.home, strnlen(got.home, sizeof(got.home)) });
	return 0;
}
