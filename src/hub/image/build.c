/*
 * Builds an image from a folder with holt.json:
 *
 * 	the folder's files ──→ new/ID/files ─┐
 * 	host: a skeleton ────→ new/ID/base ──┤ their digests and holt.json make the recipe:
 * 	image: its digest ───────────────────┘ built before ─→ name that image
 * 	                                       else ─→ new/ID/root: the base, then the files
 *
 * Without steps, root is the image. With steps, a sandbox is made from new/ID, as from any image.
 * It takes the cached results of unchanged steps (cache.h) and runs the others. Its root is then
 * packed as a tar, and unpacked as any untrusted archive: that is the image.
 *
 * Files are copied only from inside the folder: `from` is resolved below it, links are copied as
 * links, and none is followed out of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "box/archive/template_host.h"
#include "box/archive/unpack.h"
#include "hub/image/cache.h"
#include "hub/image/build_doc.h"
#include "hub/image/internal.h"

/* Increase it when the same recipe would give another result. */
#define RECIPE "holt build 1"
#define IGNORE_FILE ".holtignore"

struct building {
	struct image_make make;
	const struct image_build *b;
	struct image_doc doc;
	struct build_spec spec;
	struct image base; /* zeros: the host */
	struct ignore *ignore; /* owned; NULL: there is no such file */
	char base_digest[HASH_HEX + 1], files_digest[HASH_HEX + 1], recipe[HASH_HEX + 1];
	int files; /* open folder with all files at their places */
};

static bool is_of_host(const struct building *m)
{
	return str_is(m->spec.base, "host");
}

static int read_spec(struct building *m, struct err *e)
{
	autobuf struct buf text = BUF_INIT(IMAGE_DOC_MAX);

	if (images_read(m->b->dir, "holt.json", IMAGE_DOC_MAX, &text, e) < 0) {
		e->code = ERR_INVALID;
		return -1;
	}
	return build_read(&m->doc, buf_str(&text), &m->spec, e);
}

static int read_ignore(struct building *m, struct err *e)
{
	autobuf struct buf text = BUF_INIT(IGNORE_BYTES_MAX);

	if (images_read(m->b->dir, IGNORE_FILE, IGNORE_BYTES_MAX, &text, e) < 0) {
		if (e->code == ERR_PATH_NOT_FOUND) {
			*e = ERR_INIT;
			return 0;
		}
		e->code = ERR_INVALID;
		return -1;
	}
	m->ignore = ignore_new(buf_str(&text), e);
	return m->ignore ? 0 : err_wrap(e, IGNORE_FILE);
}

/* ---- the folder's files ---------------------------------------------------------------------- */

/* Opens the file of a row. It must be inside the folder, and no pipe that would block. */
static int open_from(const struct building *m, const char *path, struct stat *ret, struct err *e)
{
	struct open_how how = { .flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	autoclose int fd = (int)syscall(SYS_openat2, m->b->dir, path, &how, sizeof(how));

	if (fd < 0 && (errno == EXDEV || errno == ELOOP))
		return err_set(e, ERR_INVALID, "%.120s: leads out of the folder", path);
	if (fd < 0 || fstat(fd, ret) < 0)
		return err_set(e, ERR_INVALID, "%.120s: %s", path, strerror(errno));
	if (!S_ISREG(ret->st_mode) && !S_ISDIR(ret->st_mode))
		return err_set(e, ERR_INVALID, "%.120s: neither a file nor a folder", path);
	return take_fd(&fd);
}

/* Its place in the image, without the leading slash. A file may be put into a folder under its
 * own name. */
static char *place_of(struct building *m, const struct build_file *f, bool is_file, struct err *e)
{
	const char *slash = memrchr(f->from.p, '/', f->from.n);
	const char *name = slash ? slash + 1 : f->from.p;
	struct str to = f->to;
	bool into = is_file && to.p[to.n - 1] == '/';

	while (to.n > 0 && *to.p == '/') {
		to.p++;
		to.n--;
	}
	return arena_printf(m->doc.arena, e, "%.*s%.*s", STR_ARG(to),
			    into ? (int)(f->from.p + f->from.n - name) : 0, name);
}

static int add_files(struct building *m, const struct build_file *f, struct tree_count *count,
		     struct hash *digest, struct err *e)
{
	char *from = arena_dup(m->doc.arena, f->from, e);
	char *below = from ? arena_dup(m->doc.arena, f->from, e) : NULL;
	struct stat st;
	autoclose int fd = from ? open_from(m, from, &st, e) : -1;
	const char *at = fd < 0 ? NULL : place_of(m, f, S_ISREG(st.st_mode), e);
	const size_t below_n = at && below ? ignore_clean(below) : 0;
	const struct unpack u = { .from = fd,
				  .to = m->files,
				  .limits = m->make.limits,
				  .at = str_of(at),
				  .mode = build_file_mode(f),
				  .ignore = m->ignore,
				  .below = { below, below_n } };
	struct unpacked got;

	if (!below_n)
		return -1;
	if (m->ignore && S_ISREG(st.st_mode) && ignore_has(m->ignore, u.below))
		return err_set(e, ERR_INVALID, "%.120s: left out by " IGNORE_FILE, below);
	if (unpack_copied(&u, count, &got, e) < 0) {
		if (e->code == ERR_IMAGE)
			e->code = ERR_INVALID; /* it is no stranger's */
		return -1;
	}
	*count = got.count;
	hash_add(digest, got.digest, HASH_HEX);
	return 0;
}

static int stage_files(struct building *m, struct err *e)
{
	AUTO(hash_free) struct hash *digest = hash_new(e);
	struct tree_count count = { 0, 0 };

	m->files = digest ? image_make_folder(m->make.dir, "files", 0755, e) : -1;
	if (m->files < 0)
		return -1;
	for (size_t i = 0; i < m->spec.files.n; i++) {
		if (add_files(m, &m->spec.files.p[i], &count, digest, e) < 0)
			return err_wrap(e, "files[%zu]", i);
	}
	hash_end(digest, m->files_digest);
	return 0;
}

/* ---- the base -------------------------------------------------------------------------------- */

static int copy_into_root(struct building *m, int from, bool merge, char ret_digest[HASH_HEX + 1],
			  struct err *e)
{
	const struct unpack u = {
		.from = from, .to = m->make.root, .limits = m->make.limits, .merge = merge
	};
	struct unpacked got;

	if (unpack_copied(&u, &m->make.count, &got, e) < 0)
		return -1;
	m->make.count = got.count;
	if (ret_digest)
		memcpy(ret_digest, got.digest, sizeof(got.digest));
	return 0;
}

/* The host's /etc and everything else that a sandbox of the host starts with, as they are now. */
static int add_host(struct building *m, struct err *e)
{
	autoclose int fd = image_make_folder(m->make.dir, "base", 0755, e);
	mode_t mask = umask(022);
	char path[32];
	int rc;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	rc = fd < 0 ? -1 : template_host_skeleton(path, "");
	umask(mask);
	if (rc < 0)
		return fd < 0 ? -1 : err_sys(e, errno, "copy what sandboxes have of the host");
	return copy_into_root(m, fd, false, m->base_digest, e);
}

static int find_base(struct building *m, struct err *e)
{
	if (is_of_host(m))
		return add_host(m, e);
	if (images_find(m->make.s, m->spec.base, &m->base, e) < 0)
		return -1;
	snprintf(m->base_digest, sizeof(m->base_digest), "%.*s", STR_ARG(m->base.record.digest));
	return 0;
}

/* The image's files. A lock keeps the image from being removed meanwhile. */
static int add_image(struct building *m, struct err *e)
{
	autoclose int folder = openat(m->make.s->image, m->base_digest,
				      O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	autoclose int root = -1;

	if (folder < 0 || flock(folder, LOCK_SH | LOCK_NB) < 0)
		return err_set(e, ERR_TEMPLATE_NOT_FOUND, "the base was removed");
	root = openat(folder, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (root < 0)
		return err_sys(e, errno, "open the base");
	return copy_into_root(m, root, false, NULL, e);
}

/* ---- what was built before ------------------------------------------------------------------- */

static int make_recipe(struct building *m, struct err *e)
{
	AUTO(hash_free) struct hash *h = hash_new(e);
	autofree char *spec = field_encode_text(&build_spec_table, &m->spec, IMAGE_DOC_MAX, e);

	if (!h || !spec)
		return -1;
	hash_add(h, RECIPE, sizeof(RECIPE));
	hash_add(h, m->base_digest, HASH_HEX);
	hash_add(h, m->files_digest, HASH_HEX);
	hash_add(h, spec, strlen(spec));
	if (m->spec.run.n)
		hash_add(h, m->b->network.p, m->b->network.n);
	hash_end(h, m->recipe);
	return 0;
}

/* 1: it is there, and has the name now. */
static int name_it(struct building *m, const char *digest, struct err *e)
{
	autoclose int lock = images_lock(m->make.s, e);

	if (lock < 0)
		return -1;
	if (faccessat(m->make.s->image, digest, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return 0; /* removed a moment ago */
	return images_set_name(m->make.s, str_of(m->b->name), str_of(digest), e) < 0 ? -1 : 1;
}

static int find_built(struct building *m, struct err *e)
{
	autofree char(*all)[HASH_HEX + 1] = NULL;
	ssize_t n = images_list(m->make.s, &all, e);

	for (ssize_t i = 0; i < n; i++) {
		autoimage struct image image = { .record = { .bytes = 0 } };
		struct err ignored; /* removed meanwhile, or of another version: build again */

		if (images_find(m->make.s, str_of(all[i]), &image, &ignored) == 0 &&
		    str_is(image.record.recipe, m->recipe))
			return name_it(m, all[i], e);
	}
	return n < 0 ? -1 : 0;
}

/* ---- how programs are run in it -------------------------------------------------------------- */

static bool is_set_by(const struct build_spec *spec, struct str variable)
{
	for (size_t i = 0; i < spec->env.n; i++) {
		struct str key = spec->env.p[i].key;

		if (variable.n > key.n && variable.p[key.n] == '=' &&
		    memcmp(variable.p, key.p, key.n) == 0)
			return true;
	}
	return false;
}

static int join_env(struct building *m, struct field_strs *ret, struct err *e)
{
	const struct field_strs *base = &m->base.record.env;
	const struct field_map *own = &m->spec.env;
	struct str *all = arena_array(m->doc.arena, base->n + own->n, sizeof(*all), e);
	size_t n = 0;

	if (!all)
		return -1;
	for (size_t i = 0; i < base->n; i++) {
		if (!is_set_by(&m->spec, base->p[i]))
			all[n++] = base->p[i];
	}
	for (size_t i = 0; i < own->n; i++) {
		all[n] = str_of(arena_printf(m->doc.arena, e, "%.*s=%.*s", STR_ARG(own->p[i].key),
					     STR_ARG(own->p[i].value)));
		if (!all[n++].p)
			return -1;
	}
	if (n > IMAGE_ENV_MAX)
		return err_set(e, ERR_INVALID, "env: with the base's over %d variables",
			       IMAGE_ENV_MAX);
	*ret = (struct field_strs){ all, n };
	return 0;
}

/* A new entrypoint does not take the base's arguments. */
static int fill_record(struct building *m, struct err *e)
{
	const struct image_record *base = &m->base.record;
	const struct build_spec *spec = &m->spec;
	struct image_record *r = &m->make.record;

	*r = (struct image_record){
		.source = STR_LIT("build"),
		.of_host = is_of_host(m) || base->of_host,
		.recipe = str_of(m->recipe),
		.workdir = spec->workdir.p ? spec->workdir : base->workdir,
		.entrypoint = spec->has_entrypoint ? spec->entrypoint : base->entrypoint,
		.network = spec->network.allow,
	};
	if (spec->has_cmd)
		r->cmd = spec->cmd;
	else if (!spec->has_entrypoint)
		r->cmd = base->cmd;
	return join_env(m, &r->env, e);
}

/* ---- the root -------------------------------------------------------------------------------- */

/* Directories that the host's cover must be empty: a file in them would never be seen. */
static int check_host_dir(int root, const char *name, struct err *e)
{
	struct stat st;

	if (fstatat(root, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return 0; /* on the host it is a link into another, or missing */
	if (unlinkat(root, name, AT_REMOVEDIR) < 0)
		return err_set(e, ERR_INVALID,
			       "/%s is the host's: put files elsewhere, such as below /opt or "
			       "/workspace, or take an image as base",
			       name);
	return mkdirat(root, name, 0755) < 0 ? err_sys(e, errno, "make /%s", name) : 0;
}

static int check_host_dirs(const struct building *m, struct err *e)
{
	for (size_t i = 0; m->make.record.of_host && i < template_host_n_dirs; i++) {
		if (check_host_dir(m->make.root, template_host_dirs[i] + 1, e) < 0)
			return -1;
	}
	return 0;
}

static int finish_root(struct building *m, struct str user, struct err *e)
{
	struct image_record *r = &m->make.record;

	if (check_host_dirs(m, e) < 0 ||
	    image_root_finish(m->make.root, user, r->workdir, &m->make.user, e) < 0)
		return -1;
	r->user = str_of(m->make.user.name);
	r->home = str_of(m->make.user.home);
	return 0;
}

static int make_root(struct building *m, struct err *e)
{
	struct str user = m->spec.user.p ? m->spec.user
			: is_of_host(m)	 ? STR_LIT("agent")
					 : m->base.record.user;

	if (!is_of_host(m) && add_image(m, e) < 0)
		return -1;
	if (copy_into_root(m, m->files, true, NULL, e) < 0 || finish_root(m, user, e) < 0)
		return -1;
	if (tree_remove(m->make.dir, "files") < 0 || tree_remove(m->make.dir, "base") < 0)
		return err_sys(e, errno, "remove what was copied");
	memcpy(m->make.digest, m->recipe, sizeof(m->recipe));
	return 0;
}

/* ---- the steps ------------------------------------------------------------------------------- */

static int find_self(void *arg, struct str name, box_template_use use, void *to, struct err *e)
{
	const struct building *m = arg;
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%s/new/%s", m->make.s->path, m->make.id);
	return images_use(&m->make.record, folder, use, to, e);
}

/* Lets a sandbox use it. A sweeper holds the store's lock, so it sees the folder before or
 * after. */
static int share_lock(const struct building *m, struct err *e)
{
	autoclose int lock = images_lock(m->make.s, e);

	if (lock < 0)
		return -1;
	return flock(m->make.dir, LOCK_SH) < 0 ? err_sys(e, errno, "share the image") : 0;
}

/* The tar replaces the root. Its digest becomes part of the image's. */
static int replace_root(struct building *m, int tar, struct err *e)
{
	const struct tree_count none = { 0, 0 };
	AUTO(hash_free) struct hash *h = hash_new(e);
	struct unpack u = { .from = tar, .limits = m->make.limits };
	struct unpacked got;

	close_fd(&m->make.root);
	if (!h)
		return -1;
	if (tree_remove(m->make.dir, "root") < 0 || lseek(tar, 0, SEEK_SET) < 0)
		return err_sys(e, errno, "replace the root");
	u.to = m->make.root = image_make_folder(m->make.dir, "root", 0755, e);
	if (u.to < 0 || unpack_archive(&u, &none, &got, e) < 0)
		return -1;
	m->make.count = got.count;
	hash_add(h, m->recipe, HASH_HEX);
	hash_add(h, got.stream, HASH_HEX);
	hash_end(h, m->make.digest);
	return 0;
}

/* Everything that the first step can see, used or not. */
static int digest_begin(const struct building *m, char ret[HASH_HEX + 1], struct err *e)
{
	const struct build_spec found = {
		.base = str_of(m->base_digest),
		.env = m->spec.env,
		.workdir = m->spec.workdir,
		.user = m->spec.user,
		.run_user = m->spec.run_user,
	};
	AUTO(hash_free) struct hash *h = hash_new(e);
	autofree char *spec = field_encode_text(&build_spec_table, &found, IMAGE_DOC_MAX, e);

	if (!h || !spec)
		return -1;
	hash_add(h, RECIPE, sizeof(RECIPE));
	hash_add(h, m->files_digest, HASH_HEX);
	hash_add(h, spec, strlen(spec));
	hash_end(h, ret);
	return 0;
}

static int run_steps(struct building *m, struct err *e)
{
	autoclose int tar = openat(m->make.dir, "tar", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	autocache struct build_cache cache = { .s = m->make.s,
					       .aside = m->make.dir,
					       .lines = &m->spec.run,
					       .network = m->b->network,
					       .forget = m->b->no_cache,
					       .no_keep = m->b->no_keep };
	const struct image_steps steps = {
		.spec = &m->spec, .find = find_self, .find_arg = m, .to = tar, .cache = &cache
	};
	const struct image_user user = m->make.user;
	char begin[HASH_HEX + 1];

	if (digest_begin(m, begin, e) < 0 || build_cache_init(&cache, begin, e) < 0)
		return -1;
	if (tar < 0 || unlinkat(m->make.dir, "tar", 0) < 0)
		return err_sys(e, errno, "make a file for the image");
	if (share_lock(m, e) < 0 || m->b->run(m->b->arg, &steps, e) < 0 ||
	    replace_root(m, tar, e) < 0)
		return -1;
	return finish_root(m, str_of(user.name), e);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int build(struct building *m, bool *ret_cached, struct err *e)
{
	static const struct tree_limits limits = { 0, 0 };
	int found = 0;

	if (read_spec(m, e) < 0 || read_ignore(m, e) < 0 ||
	    image_make_start(&m->make, m->make.s, &limits, e) < 0 || stage_files(m, e) < 0 ||
	    find_base(m, e) < 0 || make_recipe(m, e) < 0)
		return -1;
	if (!m->b->no_cache)
		found = find_built(m, e);
	*ret_cached = found > 0;
	if (found)
		return found < 0 ? -1 : 0;
	if (fill_record(m, e) < 0 || make_root(m, e) < 0 ||
	    (m->spec.run.n > 0 && run_steps(m, e) < 0))
		return -1;
	return image_make_publish(&m->make, m->b->name, e);
}

int images_build(struct images *s, const struct image_build *b, struct image *ret, bool *ret_cached,
		 struct err *e)
{
	autofree struct building *m = calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return err_set(e, ERR_LIMIT, "out of memory");
	m->b = b;
	m->files = -1;
	m->make = (struct image_make){ .s = s, .dir = -1, .root = -1 };
	rc = build(m, ret_cached, e);
	close_fd(&m->files);
	image_make_end(&m->make);
	image_fini(&m->base);
	ignore_free(m->ignore);
	image_doc_fini(&m->doc);
	if (rc == 0)
		return images_find(s, str_of(b->name), ret, e);
	images_retell(e);
	return -1;
}
