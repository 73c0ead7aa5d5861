/*
 * Folders of the host that requests name. The links of a path are resolved once: for the operator
 * any path, for others below the roots that the operator allowed, which the kernel lets no link
 * lead out of (RESOLVE_BENEATH). The warden opens the result without following links, checks on the
 * descriptor that it neither contains nor lies in one of Holt's folders, and mounts the descriptor.
 * Whoever can write part of the path can make the mount fail, but cannot redirect it. Forked
 * children, and a sandbox that starts again, open the path again in the same way.
 */
#include "hub/sandbox/volumes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/path.h"
#include "base/worktree.h"
#include "json/document/put.h"
#include "json/field/field.h"

enum { ROW_MAX = 1 << 20 };

const char *const volume_mode_names[VOLUME_MODES] = {
	[VOLUME_RO] = "ro", [VOLUME_RW] = "rw", [VOLUME_RW_ALL] = "rw-all"
};

/* As rows of the registry have them. */
static const struct field volume_fields[] = {
	FIELD(struct volume, host, .flags = FIELD_REQUIRED, .doc = "Its path on the host."),
	FIELD(struct volume, inside, .flags = FIELD_REQUIRED, .doc = "Where it stands."),
	FIELD_ENUM(struct volume, mode, volume_mode_names, .doc = "Whether it may be written."),
	FIELD(struct volume, granted, .doc = "It is within what the operator allowed."),
};
static const struct field_table volume_table = FIELD_TABLE(struct volume, volume_fields);

struct row {
	struct {
		const struct volume *p;
		size_t n;
	} volumes;
};
static const struct field row_fields[] = {
	FIELD_OBJECTS(struct row, volumes, volume_table, .max = VOLUMES_MAX, .doc = "All of it."),
};
static const struct field_table row_table = FIELD_TABLE(struct row, row_fields, .open = true);

/* ---- those of a sandbox -------------------------------------------------------------------- */

static struct volumes *volumes_copy(const struct volume *v, size_t n, struct err *e)
{
	size_t bytes = 0;
	struct volumes *s;
	char *at;

	for (size_t i = 0; i < n; i++)
		bytes += v[i].host.n + v[i].inside.n;
	s = malloc(sizeof(*s) + n * sizeof(s->v[0]) + bytes);
	if (!s)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	s->refs = 1;
	s->n = n;
	at = (char *)(s->v + n);
	for (size_t i = 0; i < n; i++) {
		s->v[i] = v[i];
		s->v[i].host = str_put(&at, v[i].host);
		s->v[i].inside = str_put(&at, v[i].inside);
	}
	return s;
}

struct volumes *volumes_ref(struct volumes *s)
{
	if (s)
		s->refs++;
	return s;
}

void volumes_unref(struct volumes *s)
{
	if (s && --s->refs == 0)
		free(s);
}

static_assert(VOLUMES_MAX <= 32, "a set of volumes is 32 bits");

size_t volumes_mounts(const struct volumes *s, uint32_t gone, struct sandbox_mount ret[VOLUMES_MAX])
{
	for (size_t i = 0; s && i < s->n; i++)
		ret[i] = (struct sandbox_mount){ .host = gone >> i & 1 ? STR_NONE : s->v[i].host,
						 .guest = s->v[i].inside,
						 .writable = s->v[i].mode >= VOLUME_RW,
						 .all = s->v[i].mode == VOLUME_RW_ALL,
						 .state = !s->v[i].granted };
	return s ? s->n : 0;
}

bool volumes_written(const struct volumes *s)
{
	for (size_t i = 0; s && i < s->n; i++) {
		if (s->v[i].mode == VOLUME_RW)
			return true;
	}
	return false;
}

void volumes_write(const struct volumes *s, struct json_writer *w)
{
	if (!s)
		return;
	json_put_array(w, "volumes");
	for (size_t i = 0; i < s->n; i++)
		field_encode(&volume_table, &s->v[i], w);
	json_write_array_end(w);
}

int volumes_read(struct str text, struct volumes **ret, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	AUTO(arena_free) struct arena *a = NULL;
	struct row row;

	*ret = NULL;
	if (!memmem(text.p, text.n, "\"volumes\"", strlen("\"volumes\"")))
		return 0; /* as most have none */
	doc = json_parse(text, NULL, e);
	a = doc ? arena_new(ROW_MAX) : NULL;
	if (!a)
		return doc ? err_set(e, ERR_LIMIT, "out of memory") : -1;
	if (field_decode(&row_table, json_root(doc), a, &row, e) < 0)
		return -1;
	if (row.volumes.n)
		*ret = volumes_copy(row.volumes.p, row.volumes.n, e);
	return row.volumes.n && !*ret ? -1 : 0;
}

/* ---- what the operator allows -------------------------------------------------------------- */

struct volume_root {
	char *named, *path; /* as it was given; without links. Neither ends in '/', but "/" does */
	enum volume_mode most; /* that it may be given with */
};

struct volume_roots {
	size_t n;
	struct volume_root v[];
};

void volume_roots_free(struct volume_roots *r)
{
	for (size_t i = 0; r && i < r->n; i++) {
		free(r->v[i].named);
		free(r->v[i].path);
	}
	free(r);
}
AUTO_DEFINE(volume_roots_free, struct volume_roots)

static int read_root(struct volume_root *r, const char *text, struct err *e)
{
	struct str dir = str_of(text);
	char real[PATH_MAX];

	for (size_t i = VOLUME_MODES; i-- > 0;) {
		struct str mode = str_of(volume_mode_names[i]);

		if (dir.n > mode.n && dir.p[dir.n - mode.n - 1] == ':' && str_ends(dir, mode.p)) {
			r->most = (enum volume_mode)i;
			dir.n -= mode.n + 1;
			break;
		}
	}
	while (dir.n > 1 && dir.p[dir.n - 1] == '/')
		dir.n--;
	r->named = strndup(dir.p, dir.n);
	if (!r->named)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (!realpath(r->named, real))
		return err_set(e, ERR_INVALID, "--allow-volumes %.200s: %s", text, strerror(errno));
	r->path = strdup(real);
	return r->path ? 0 : err_set(e, ERR_LIMIT, "out of memory");
}

struct volume_roots *volume_roots_new(const char *const *texts, size_t n, struct err *e)
{
	AUTO(volume_roots_free)
	struct volume_roots *r = calloc(1, sizeof(*r) + n * sizeof(r->v[0]));

	if (!r)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	r->n = n;
	for (size_t i = 0; i < n; i++) {
		if (read_root(&r->v[i], texts[i], e) < 0)
			return NULL;
	}
	return take_ptr(r);
}

/* Whether path is root or below it, by their names; *ret_rest: what follows, relative. */
static bool is_below(struct str path, const char *root, struct str *ret_rest)
{
	size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);

	if (path.n < n || memcmp(path.p, root, n) != 0 || (path.n > n && path.p[n] != '/'))
		return false;
	while (n < path.n && path.p[n] == '/')
		n++;
	*ret_rest = (struct str){ path.p + n, path.n - n };
	return true;
}

static int open_at(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | flags,
				.resolve = RESOLVE_NO_MAGICLINKS | resolve };

	return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

/* Opens rest below the root, which no link leads out of. *ret: its name without links. */
static int open_below(const struct volume_root *r, struct str rest, char ret[PATH_MAX])
{
	autoclose int root = open_at(AT_FDCWD, r->path, O_DIRECTORY, RESOLVE_NO_SYMLINKS);
	autoclose int fd = -1;
	char path[PATH_MAX];
	struct str ignored;

	snprintf(path, sizeof(path), "%.*s", STR_ARG(rest.n ? rest : STR_LIT(".")));
	fd = root < 0 ? -1 : open_at(root, path, 0, RESOLVE_BENEATH);
	if (fd < 0 || path_of_fd(fd, ret) < 0)
		return -1;
	errno = EXDEV; /* it was moved meanwhile */
	return is_below(str_of(ret), r->path, &ignored) ? 0 : -1;
}

static int volumes_explain(int errnum, struct str inside, struct err *e)
{
	if (errnum == EXDEV || errnum == ELOOP)
		return err_set(e, ERR_DENIED,
			       "volume on %.*s: a link leads out of the folder that is allowed",
			       STR_CUT(inside, 200));
	return err_set(e, ERR_INVALID, "volume on %.*s: on the host: %s", STR_CUT(inside, 200),
		       strerror(errnum));
}

/* The path with the name of a root that was given with links replaced by the one without. */
static struct str rename_root(const struct volume_roots *roots, struct str path, char to[PATH_MAX])
{
	struct str rest;

	for (size_t i = 0; roots && i < roots->n; i++) {
		const struct volume_root *r = &roots->v[i];

		if (is_below(path, r->named, &rest) &&
		    snprintf(to, PATH_MAX, "%s/%.*s", r->path, STR_ARG(rest)) < PATH_MAX)
			return str_of(to);
	}
	return path;
}

/* Whether part of a folder is, by one of its names, what programs of the host act on: that stays as
 * it is where the folder is given, so it is not given by itself. */
static bool is_of_project(struct str rest)
{
	struct str names[PROJECT_NAMES_MAX];
	size_t n = box_project_names(names), step;

	for (; rest.n > 0; rest.p += step, rest.n -= step) {
		const char *slash = memchr(rest.p, '/', rest.n);
		size_t len = slash ? (size_t)(slash - rest.p) : rest.n;

		for (size_t i = 0; i < n; i++) {
			if (len == names[i].n && strncasecmp(rest.p, names[i].p, len) == 0)
				return true;
		}
		step = len + (slash != NULL);
	}
	return false;
}

/* If several roots hold it, the one that gives most counts. */
static int find_granted(const struct volume_roots *roots, const struct volume *v,
			char ret[PATH_MAX], struct err *e)
{
	char renamed[PATH_MAX];
	struct str path = rename_root(roots, v->host, renamed), rest;
	bool is_less = false;

	for (size_t i = 0; roots && i < roots->n; i++) {
		const struct volume_root *r = &roots->v[i];

		if (!is_below(path, r->path, &rest))
			continue;
		if (v->mode > r->most) {
			is_less = true;
			continue;
		}
		if (open_below(r, rest, ret) < 0)
			return volumes_explain(errno, v->inside, e);
		if (v->mode != VOLUME_RW || r->most == VOLUME_RW_ALL ||
		    !is_below(str_of(ret), r->path, &rest) || !is_of_project(rest))
			return 0;
		return err_set(e, ERR_DENIED,
			       "volume on %.*s: programs of the host act on it, so it is given as "
			       "ro, or with holt serve --allow-volumes DIR:rw-all",
			       STR_CUT(v->inside, 200));
	}
	if (is_less)
		return err_set(e, ERR_DENIED,
			       "volume on %.*s: that folder is not given as %s; its operator "
			       "allows that by holt serve --allow-volumes DIR:%s",
			       STR_CUT(v->inside, 200), volume_mode_names[v->mode],
			       volume_mode_names[v->mode]);
	return err_set(e, ERR_DENIED,
		       "volume on %.*s: it is in no folder that the operator of this hub allows "
		       "(holt serve --allow-volumes DIR)",
		       STR_CUT(v->inside, 200));
}

/* Whether a root gives that folder, also one that is of a project. */
static bool is_granted(const struct volume_roots *roots, const char *path, enum volume_mode mode)
{
	struct str rest;

	for (size_t i = 0; roots && i < roots->n; i++) {
		if (roots->v[i].most >= mode && is_below(str_of(path), roots->v[i].path, &rest))
			return true;
	}
	return false;
}

static int find_any(const struct volume *v, char ret[PATH_MAX], struct err *e)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.*s", STR_ARG(v->host));
	if (path_resolve(path, ret) == 0)
		return 0;
	if (errno == ELOOP)
		return err_set(e, ERR_DENIED,
			       "volume on %.*s: a link in its path may have been put there by a "
			       "sandbox, so it is not followed: name where it leads",
			       STR_CUT(v->inside, 200));
	return volumes_explain(errno, v->inside, e);
}

static bool is_absolute(struct str path)
{
	return path.n > 0 && path.n < PATH_MAX && path.p[0] == '/' && !memchr(path.p, '\0', path.n);
}

static bool has_volume(const struct volume *v, size_t n, const char *path)
{
	struct str rest;

	for (size_t i = 0; i < n; i++) {
		char host[PATH_MAX];

		snprintf(host, sizeof(host), "%.*s", STR_ARG(v[i].host));
		if (is_below(str_of(path), host, &rest) || str_is(v[i].inside, path))
			return true;
	}
	return false;
}

/* Git in a worktree needs the repository that it is of, at the same path: the warden keeps what
 * programs of the host act on there (box/warden/project.h). A client that may not have it gets the
 * worktree alone. -1: out of memory. */
static int add_common(const struct volume_roots *roots, struct volume *v, size_t *n, size_t asked,
		      struct arena *a, struct err *e)
{
	for (size_t i = 0; i < asked && *n < VOLUMES_MAX; i++) {
		struct volume more = { .granted = v[i].granted,
				       .mode = v[i].mode == VOLUME_RO ? VOLUME_RO : VOLUME_RW };
		char top[PATH_MAX], common[PATH_MAX];
		const char *path;

		snprintf(top, sizeof(top), "%.*s", STR_ARG(v[i].host));
		if (!worktree_common(top, common) || has_volume(v, *n, common))
			continue;
		if (more.granted && !is_granted(roots, common, more.mode))
			continue;
		path = arena_dup(a, str_of(common), e);
		if (!path)
			return -1;
		more.host = more.inside = str_of(path);
		v[(*n)++] = more;
	}
	return 0;
}

struct given {
	const struct volume *v;
	size_t n;
};

/* worktree_given.has */
static bool has_path(const void *data, const char *path)
{
	const struct given *all = data;
	struct str rest;

	for (size_t i = 0; i < all->n; i++) {
		char host[PATH_MAX];

		snprintf(host, sizeof(host), "%.*s", STR_ARG(all->v[i].host));
		if (str_eq(all->v[i].host, all->v[i].inside) && is_below(str_of(path), host, &rest))
			return true;
	}
	return false;
}

static void tell_of_git(const struct volume *v, size_t n, size_t asked)
{
	const struct given all = { v, n };

	for (size_t i = 0; i < asked; i++) {
		char top[PATH_MAX], why[WORKTREE_WHY_MAX];
		const struct worktree_given g = {
			.top = top, .inside = v[i].inside, .has = has_path, .data = &all
		};

		snprintf(top, sizeof(top), "%.*s", STR_ARG(v[i].host));
		if (worktree_explain(&g, why))
			log_warn("git does not work in the volume %.300s: %s", top, why);
	}
}

struct volumes *volumes_find(const struct volume_roots *roots, const struct volume *asked, size_t n,
			     bool by_operator, struct err *e)
{
	AUTO(arena_free) struct arena *a = arena_new(ROW_MAX);
	struct volume v[VOLUMES_MAX];
	size_t n_asked = n;
	char path[PATH_MAX];

	if (!a || n > VOLUMES_MAX) {
		err_set(e, a ? ERR_INVALID : ERR_LIMIT, "at most %d volumes", VOLUMES_MAX);
		return NULL;
	}
	for (size_t i = 0; i < n; i++) {
		const char *host;

		v[i] = asked[i];
		v[i].granted = !by_operator;
		if (!is_absolute(v[i].host) || !is_absolute(v[i].inside)) {
			err_set(e, ERR_INVALID, "a volume has two absolute paths, host and inside");
			return NULL;
		}
		if ((by_operator ? find_any(&v[i], path, e) : find_granted(roots, &v[i], path, e)) <
		    0)
			return NULL;
		host = arena_dup(a, str_of(path), e);
		if (!host)
			return NULL;
		v[i].host = str_of(host);
	}
	if (add_common(roots, v, &n, n_asked, a, e) < 0)
		return NULL;
	tell_of_git(v, n, n_asked);
	return volumes_copy(v, n, e);
}

/* Whether it came with a worktree, and is still given. */
static bool came_along(const struct volume_roots *roots, const struct volumes *s, size_t at)
{
	char top[PATH_MAX], common[PATH_MAX];

	for (size_t i = 0; i < s->n; i++) {
		snprintf(top, sizeof(top), "%.*s", STR_ARG(s->v[i].host));
		if (i != at && worktree_common(top, common) && str_is(s->v[at].host, common) &&
		    is_granted(roots, common, s->v[at].mode))
			return true;
	}
	return false;
}

/* A link in the path is another matter, wherever it leads: nobody learns what is there. */
static bool is_gone(const struct volume *v)
{
	char path[PATH_MAX];
	autoclose int fd = -1;

	snprintf(path, sizeof(path), "%.*s", STR_ARG(v->host));
	fd = open_at(AT_FDCWD, path, 0, RESOLVE_NO_SYMLINKS);
	return fd < 0 && (errno == ENOENT || errno == ENOTDIR);
}

int volumes_check(const struct volume_roots *roots, const struct volumes *s, uint32_t *ret_gone,
		  struct err *e)
{
	char ignored[PATH_MAX];

	*ret_gone = 0;
	for (size_t i = 0; s && i < s->n; i++) {
		if (is_gone(&s->v[i]))
			*ret_gone |= 1u << i;
		else if (s->v[i].granted && !came_along(roots, s, i) &&
			 find_granted(roots, &s->v[i], ignored, e) < 0)
			return -1;
	}
	return 0;
}
