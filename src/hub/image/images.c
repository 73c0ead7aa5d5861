#include "hub/image/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/publish.h"
#include "hub/image/cache.h"

enum { NAMES_MAX_BYTES = 4 << 20, DIGITS_MIN = 12 };

/* ---- documents of the store ------------------------------------------------------------------ */

#define SHORT(S, m, ...) FIELD(S, m, .max = 4096, __VA_ARGS__)
#define WORDS(S, m, ...) FIELD(S, m, .max = 1024, .item_max = 65536, __VA_ARGS__)

static const struct field record_fields[] = {
	FIELD(struct image_record, digest, .flags = FIELD_REQUIRED, .min = HASH_HEX,
	      .max = HASH_HEX, .doc = "What the image is known by: sha256, in hex."),
	SHORT(struct image_record, source, .flags = FIELD_REQUIRED,
	      .doc = "What it was made from: oci, docker, directory, tar or build."),
	FIELD(struct image_record, of_host, .doc = "The host's /usr stands over it."),
	FIELD(struct image_record, recipe, .max = HASH_HEX,
	      .doc = "Of a build: the digest of what it was built from."),
	FIELD(struct image_record, created_ms, .flags = FIELD_REQUIRED,
	      .doc = "When it was imported, milliseconds of Unix time."),
	FIELD(struct image_record, bytes, .flags = FIELD_REQUIRED, .doc = "Of all files."),
	FIELD(struct image_record, entries, .flags = FIELD_REQUIRED,
	      .doc = "Files and directories."),
	WORDS(struct image_record, layers, .doc = "Digests of the layers, the lowest first."),
	SHORT(struct image_record, user, .flags = FIELD_REQUIRED,
	      .doc = "What the sandbox's user is called."),
	SHORT(struct image_record, home, .flags = FIELD_REQUIRED, .doc = "That user's home."),
	SHORT(struct image_record, workdir, .doc = "Where programs start."),
	WORDS(struct image_record, env, .doc = "NAME=VALUE, for every program."),
	WORDS(struct image_record, entrypoint, .doc = "The program that is run by default."),
	WORDS(struct image_record, cmd, .doc = "Its arguments, or the program."),
	FIELD_OBJECTS(struct image_record, network, network_host_table,
		      .max = NETWORK_HOSTS_MAX * 2,
		      .doc = "What its sandboxes may reach, where they don't say."),
};
const struct field_table image_record_table = FIELD_TABLE(struct image_record, record_fields);

static const struct field name_fields[] = {
	FIELD(struct image_name, name, .flags = FIELD_REQUIRED, .min = 1, .max = IMAGE_NAME_MAX,
	      .doc = "NAME:TAG."),
	FIELD(struct image_name, digest, .flags = FIELD_REQUIRED, .min = HASH_HEX, .max = HASH_HEX,
	      .doc = "The image."),
	FIELD_OBJECTS(struct image_name, network, network_host_table, .max = NETWORK_HOSTS_MAX * 2,
		      .has = FIELD_HAS(struct image_name, has_network),
		      .doc = "Instead of the image's."),
};
static const struct field_table name_table = FIELD_TABLE(struct image_name, name_fields);

struct names_doc {
	struct image_names names;
};

static const struct field names_fields[] = {
	FIELD_OBJECTS(struct names_doc, names, name_table, .max = IMAGES_MAX,
		      .flags = FIELD_REQUIRED, .doc = "All names."),
};
static const struct field_table names_table = FIELD_TABLE(struct names_doc, names_fields);

static int images_decode(struct image_doc *doc, struct str text, const struct field_table *t,
			 void *ret, struct err *e)
{
	doc->json = json_parse(text, NULL, e);
	doc->arena = doc->json ? arena_new(NAMES_MAX_BYTES) : NULL;
	if (doc->json && !doc->arena)
		return err_set(e, ERR_LIMIT, "out of memory");
	return doc->json ? field_decode(t, json_root(doc->json), doc->arena, ret, e) : -1;
}

/* ---- files ----------------------------------------------------------------------------------- */

int images_read(int dir, const char *name, size_t max, struct buf *ret, struct err *e)
{
	autoclose int fd = tree_open(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	ssize_t n = 1;
	char *at;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "open %.100s", name);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > max)
		return err_set(e, ERR_IMAGE, "%.100s: no file of at most %zu bytes", name, max);
	while (n > 0) {
		at = buf_reserve(ret, 65536 < max - ret->n ? 65536 : max - ret->n, e);
		n = at ? read(fd, at, 65536 < max - ret->n ? 65536 : max - ret->n) : 0;
		if (!at || n < 0)
			return at ? err_sys(e, errno, "read %.100s", name) : -1;
		buf_advance(ret, (size_t)n);
	}
	return 0;
}

/* Writes a second file first, always of the same name: it replaces what a killed process left. */
int images_write(int dir, const char *name, struct str text, struct err *e)
{
	char temporary[64];
	autoclose int fd = -1;
	int rc;

	snprintf(temporary, sizeof(temporary), "%s.new", name);
	fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_sys(e, errno, "write %s", name);
	if (fd_write(fd, text.p, text.n) < 0 || fsync(fd) < 0) {
		err_sys(e, errno, "write %s", name);
		unlinkat(dir, temporary, 0);
		return -1;
	}
	rc = publish(dir, temporary, name);
	if (rc == 0)
		return 0;
	err_sys(e, errno, "write %s", name);
	return rc > 0 ? err_unsure(e) : -1;
}

/* ---- the folder ------------------------------------------------------------------------------ */

static int open_folder(int dir, const char *name, struct err *e)
{
	autoclose int fd = -1;
	struct stat st;

	if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "make the store of images");
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "open the store of images");
	if (st.st_uid != geteuid() || (st.st_mode & 077) != 0)
		return err_set(e, ERR_DENIED,
			       "the store of images must be folders of yours that nobody else may "
			       "read or write (chmod 700)");
	return take_fd(&fd);
}

struct images *images_open(const char *path, struct err *e)
{
	AUTO(images_close) struct images *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	s->image = s->new = s->dir = -1;
	if (path[0] != '/' || strlen(path) >= sizeof(s->path))
		return err_set(e, ERR_INVALID, "the path of the store of images is too long"), NULL;
	strcpy(s->path, path);
	s->dir = open_folder(AT_FDCWD, path, e);
	if (s->dir >= 0)
		s->image = open_folder(s->dir, "image", e);
	if (s->image >= 0)
		s->new = open_folder(s->dir, "new", e);
	return s->new < 0 ? NULL : take_ptr(s);
}

struct images *images_look(const char *path, struct err *e)
{
	if (access(path, F_OK) == 0)
		return images_open(path, e);
	return err_set(e, ERR_TEMPLATE_NOT_FOUND, "there is no template but \"host\""), NULL;
}

void images_close(struct images *s)
{
	if (!s)
		return;
	close_fd(&s->dir);
	close_fd(&s->image);
	close_fd(&s->new);
	free(s);
}

int images_lock(const struct images *s, struct err *e)
{
	autoclose int fd = openat(s->dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	int rc = fd < 0 ? -1 : 0;

	while (fd >= 0 && (rc = flock(fd, LOCK_EX)) < 0 && errno == EINTR)
		continue;
	return rc < 0 ? err_sys(e, errno, "lock the store of images") : take_fd(&fd);
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool among(char c, bool capitals, const char *more)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       (capitals && c >= 'A' && c <= 'Z') || (c && strchr(more, c));
}

static bool all_among(struct str s, bool capitals, const char *more)
{
	for (size_t i = 0; i < s.n; i++) {
		if (!among(s.p[i], capitals, more))
			return false;
	}
	return s.n > 0 && among(s.p[0], capitals, "") && among(s.p[s.n - 1], capitals, more);
}

static bool images_skip(struct str *s, const char *prefix)
{
	size_t n = strlen(prefix);

	if (!str_starts(*s, prefix))
		return false;
	*s = (struct str){ s->p + n, s->n - n };
	return true;
}

/* As Docker shows names: without its own registry, and there without the folder of the official
 * images. */
static struct str familiar(struct str name)
{
	if (!images_skip(&name, "docker.io/"))
		images_skip(&name, "index.docker.io/");
	if (str_starts(name, "library/") && !memchr(name.p + 8, '/', name.n - 8))
		images_skip(&name, "library/");
	return name;
}

int image_name(struct str text, char ret[IMAGE_NAME_MAX + 1], struct err *e)
{
	const char *colon = text.n ? memrchr(text.p, ':', text.n) : NULL;
	struct str name = text, tag = STR_LIT("latest");

	if (colon && !memchr(colon, '/', text.n - (size_t)(colon - text.p))) {
		name.n = (size_t)(colon - text.p);
		tag = (struct str){ colon + 1, text.n - name.n - 1 };
	}
	name = familiar(name);
	if (!all_among(name, false, "._-/:") || !all_among(tag, true, "._-") ||
	    memmem(name.p, name.n, "//", 2) || memmem(name.p, name.n, "..", 2) ||
	    name.n + 1 + tag.n > IMAGE_NAME_MAX)
		return err_set(e, ERR_INVALID,
			       "\"%.*s\" is no name of an image: NAME or NAME:TAG, of lower-case "
			       "letters, digits and ._-/",
			       STR_CUT(text, 80));
	if (str_is(name, "host"))
		return err_set(e, ERR_INVALID, "\"host\" is the template that is always there");
	snprintf(ret, IMAGE_NAME_MAX + 1, "%.*s:%.*s", STR_ARG(name), STR_ARG(tag));
	return 0;
}

int images_names(const struct images *s, struct image_doc *doc, struct image_names *ret,
		 struct err *e)
{
	autobuf struct buf text = BUF_INIT(NAMES_MAX_BYTES);
	struct names_doc names = { { NULL, 0 } };

	*ret = (struct image_names){ NULL, 0 };
	if (images_read(s->dir, "names.json", NAMES_MAX_BYTES, &text, e) < 0) {
		if (e->code != ERR_PATH_NOT_FOUND)
			return -1;
		*e = ERR_INIT;
		return 0;
	}
	if (images_decode(doc, buf_str(&text), &names_table, &names, e) < 0)
		return err_wrap(e, "names.json of the store of images");
	for (size_t i = 0; i < names.names.n; i++) {
		struct str *name = &names.names.p[i].name;

		*name = familiar(*name); /* older stores have others */
	}
	*ret = names.names;
	return 0;
}

static int write_names(const struct images *s, const struct image_names *names, struct err *e)
{
	const struct names_doc doc = { *names };
	autofree char *text = field_encode_text(&names_table, &doc, NAMES_MAX_BYTES, e);

	return text ? images_write(s->dir, "names.json", str_of(text), e) : -1;
}

static int by_name(const void *a, const void *b)
{
	const struct image_name *x = a, *y = b;
	size_t n = x->name.n < y->name.n ? x->name.n : y->name.n;
	int order = memcmp(x->name.p, y->name.p, n);

	return order ? order : (x->name.n > y->name.n) - (x->name.n < y->name.n);
}

int images_set_name(const struct images *s, struct str name, struct str digest, struct err *e)
{
	autodoc struct image_doc doc = { NULL, NULL };
	struct image_names old, names = { NULL, 0 };
	struct image_name one = { .name = name, .digest = digest };
	int rc;

	if (images_names(s, &doc, &old, e) < 0)
		return -1;
	names.p = calloc(old.n + 1, sizeof(*names.p));
	if (!names.p)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (size_t i = 0; i < old.n; i++) {
		if (!str_eq(old.p[i].name, name))
			names.p[names.n++] = old.p[i];
		else if (str_eq(old.p[i].digest, digest))
			one = old.p[i];
	}
	names.p[names.n++] = one;
	qsort(names.p, names.n, sizeof(*names.p), by_name);
	rc = names.n > IMAGES_MAX
		   ? err_set(e, ERR_LIMIT, "there are %d names of images", IMAGES_MAX)
		   : write_names(s, &names, e);
	free(names.p);
	return rc;
}

int images_tag(struct images *s, struct str name, struct str digest, struct err *e)
{
	autoclose int lock = images_lock(s, e);
	char full[IMAGE_NAME_MAX + 1];

	return lock < 0 || image_name(name, full, e) < 0
		     ? -1
		     : images_set_name(s, str_of(full), digest, e);
}

/* ---- finding --------------------------------------------------------------------------------- */

static int by_digest(const void *a, const void *b)
{
	return memcmp(a, b, HASH_HEX);
}

ssize_t images_list(const struct images *s, char (**ret)[HASH_HEX + 1], struct err *e)
{
	autofree char(*all)[HASH_HEX + 1] = calloc(IMAGES_MAX, sizeof(*all));
	autofolder struct folder f = folder_at(s->image, ".");
	int more = 0;
	ssize_t n = 0;

	while (all && n < IMAGES_MAX && (more = folder_next(&f)) > 0) {
		if (hash_is_hex(str_of(f.entry->d_name)))
			memcpy(all[n++], f.entry->d_name, HASH_HEX + 1);
	}
	if (!all || more < 0)
		return err_sys(e, all ? f.errnum : ENOMEM, "look for images");
	qsort(all, (size_t)n, sizeof(*all), by_digest);
	*ret = take_ptr(all);
	return n;
}

void image_fini(struct image *i)
{
	image_doc_fini(&i->doc);
	image_doc_fini(&i->names);
}

static int not_there(struct str name, struct err *e)
{
	return err_set(e, ERR_TEMPLATE_NOT_FOUND, "there is no template \"%.*s\"",
		       STR_CUT(name, 80));
}

static int read_record(const struct images *s, const char *digest, struct image *ret, struct err *e)
{
	autobuf struct buf text = BUF_INIT(IMAGE_DOC_MAX);
	char path[HASH_HEX + 16];

	snprintf(path, sizeof(path), "%s/image.json", digest);
	if (images_read(s->image, path, IMAGE_DOC_MAX, &text, e) < 0 ||
	    images_decode(&ret->doc, buf_str(&text), &image_record_table, &ret->record, e) < 0)
		return e->code == ERR_PATH_NOT_FOUND ? not_there(str_of(digest), e)
						     : err_wrap(e, "image %.12s", digest);
	return 0;
}

/* The one image whose digest begins so. */
static int find_digits(const struct images *s, struct str digits, char ret[HASH_HEX + 1],
		       struct err *e)
{
	autofree char(*all)[HASH_HEX + 1] = NULL;
	ssize_t n, found = 0;

	snprintf(ret, HASH_HEX + 1, "%.*s", STR_ARG(digits));
	if (digits.n == HASH_HEX)
		return faccessat(s->image, ret, F_OK, AT_SYMLINK_NOFOLLOW) == 0
			     ? 0
			     : not_there(digits, e);
	n = images_list(s, &all, e);
	for (ssize_t i = 0; i < n; i++) {
		if (memcmp(all[i], digits.p, digits.n) == 0 && found++ == 0)
			memcpy(ret, all[i], HASH_HEX + 1);
	}
	if (n < 0)
		return -1;
	if (found > 1)
		return err_set(e, ERR_INVALID, "%zd images begin with %.*s", found,
			       STR_ARG(digits));
	return found ? 0 : not_there(digits, e);
}

/* 1: found by name, which *ret_name is then, of *doc; 0: by digest. */
static int find_digest(const struct images *s, struct str name, struct image_doc *doc,
		       struct image_name *ret_name, char ret[HASH_HEX + 1], struct err *e)
{
	char full[IMAGE_NAME_MAX + 1];
	struct str digits = name;
	struct image_names names;

	if (str_starts(name, "sha256:")) {
		digits.p += 7;
		digits.n -= 7;
	} else if (image_name(name, full, e) < 0) {
		return not_there(name, e);
	} else if (images_names(s, doc, &names, e) < 0) {
		return -1;
	} else {
		for (size_t i = 0; i < names.n; i++) {
			if (!str_is(names.p[i].name, full))
				continue;
			*ret_name = names.p[i];
			snprintf(ret, HASH_HEX + 1, "%.*s", STR_ARG(ret_name->digest));
			return 1;
		}
	}
	if (digits.n < DIGITS_MIN || digits.n > HASH_HEX || !all_among(digits, false, ""))
		return not_there(name, e);
	return find_digits(s, digits, ret, e);
}

int images_find(const struct images *s, struct str name, struct image *ret, struct err *e)
{
	struct image_name named = { .has_network = false };
	char digest[HASH_HEX + 1];
	int by_name = find_digest(s, name, &ret->names, &named, digest, e);

	if (by_name < 0)
		return -1;
	if (read_record(s, digest, ret, e) < 0)
		return by_name && e->code == ERR_TEMPLATE_NOT_FOUND
			     ? err_set(e, ERR_DATA_MISSING,
				       "images/image/%s, the image of %.*s, is not in the data "
				       "folder now: mount its disk, restore it, or import it again",
				       digest, STR_CUT(name, 80))
			     : -1;
	if (named.has_network)
		ret->record.network = named.network;
	return 0;
}

int images_set_network(struct images *s, struct str name, const struct network_hosts *network,
		       struct err *e)
{
	autoclose int lock = images_lock(s, e);
	autodoc struct image_doc doc = { NULL, NULL };
	char full[IMAGE_NAME_MAX + 1];
	struct image_names names;

	if (lock < 0 || image_name(name, full, e) < 0 || images_names(s, &doc, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.n; i++) {
		if (!str_is(names.p[i].name, full))
			continue;
		names.p[i].has_network = true;
		names.p[i].network = *network;
		return write_names(s, &names, e);
	}
	return not_there(name, e);
}

int images_file(const char *store, const char *digest, const char *path, size_t max,
		struct buf *ret, struct err *e)
{
	AUTO(images_close) struct images *s = images_look(store, e);
	char root[HASH_HEX + 8];
	autoclose int fd = -1;

	if (!s)
		return e->code == ERR_TEMPLATE_NOT_FOUND
			     ? err_set(e, ERR_PATH_NOT_FOUND, "there are no images")
			     : -1;
	snprintf(root, sizeof(root), "%.64s/root", digest);
	fd = openat(s->image, root, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? err_sys(e, errno, "open image %.12s", digest)
		      : images_read(fd, path, max, ret, e);
}

/* ---- what sandboxes are made from ------------------------------------------------------------ */

static struct env_var env_of(struct str text)
{
	const char *sign = memchr(text.p, '=', text.n);
	size_t n = sign ? (size_t)(sign - text.p) : text.n;

	return (struct env_var){ { text.p, n },
				 sign ? (struct str){ sign + 1, text.n - n - 1 } : STR_LIT("") };
}

/* The entrypoint followed by the command, as arguments or as the program itself. */
static size_t join_argv(const struct image_record *r, struct str argv[static EXEC_ARGS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < r->entrypoint.n && n < EXEC_ARGS_MAX; i++)
		argv[n++] = r->entrypoint.p[i];
	for (size_t i = 0; i < r->cmd.n && n < EXEC_ARGS_MAX; i++)
		argv[n++] = r->cmd.p[i];
	return n;
}

int images_use(const struct image_record *r, const char *folder, box_template_use use, void *to,
	       struct err *e)
{
	struct env_var env[IMAGE_ENV_MAX + 3];
	autofree struct str *argv = calloc(EXEC_ARGS_MAX, sizeof(*argv));
	struct box_template t = {
		.folder = folder, .of_host = r->of_host, .env = env, .argv = argv, .cwd = r->workdir
	};

	if (!argv)
		return err_set(e, ERR_LIMIT, "out of memory");
	env[t.n_env++] = (struct env_var){ STR_LIT("HOME"), r->home };
	env[t.n_env++] = (struct env_var){ STR_LIT("USER"), r->user };
	env[t.n_env++] = (struct env_var){ STR_LIT("LOGNAME"), r->user };
	for (size_t k = 0; k < r->env.n && k < IMAGE_ENV_MAX; k++)
		env[t.n_env++] = env_of(r->env.p[k]);
	t.n_argv = join_argv(r, argv);
	return use(to, &t, e);
}

int images_template(void *arg, struct str name, box_template_use use, void *to, struct err *e)
{
	AUTO(images_close) struct images *s = images_look(arg, e);
	autoimage struct image i = { .record = { .bytes = 0 } };
	char folder[PATH_MAX];

	if (!s && e->code == ERR_TEMPLATE_NOT_FOUND)
		return not_there(name, e);
	if (!s || images_find(s, name, &i, e) < 0)
		return -1;
	snprintf(folder, sizeof(folder), "%s/image/%.*s", s->path, STR_ARG(i.record.digest));
	return images_use(&i.record, folder, use, to, e);
}

/* ---- removing -------------------------------------------------------------------------------- */

/* Locks the image for removal, in *ret_fd; -1 if it does not exist. 1: sandboxes use it. */
static int hold_image(const struct images *s, const char *digest, int *ret_fd, struct err *e)
{
	autoclose int fd = openat(s->image, digest,
				  O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	int kept;

	*ret_fd = -1;
	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, errno, "open the image");
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return 1;
	/* A running sandbox has the lock until it is kept. */
	kept = s->kept ? s->kept(digest, e) : 0;
	if (kept == 0)
		*ret_fd = take_fd(&fd);
	return kept;
}

void images_keep_by(struct images *s, images_kept_fn kept)
{
	s->kept = kept;
}

/* Removes a locked image: hidden in one step, then deleted file by file. */
static int drop_image(const struct images *s, const char *digest, struct err *e)
{
	char id[ID_MAX];

	id_make(id, "old");
	if (renameat(s->image, digest, s->new, id) < 0 || fsync(s->image) < 0 ||
	    tree_remove(s->new, id) < 0)
		return err_sys(e, errno, "remove the image");
	return 0;
}

/* 1: sandboxes stand on it. */
static int remove_image(const struct images *s, const char *digest, struct err *e)
{
	autoclose int held = -1;
	int used = hold_image(s, digest, &held, e);

	return used || held < 0 ? used : drop_image(s, digest, e);
}

/* Whether the image has a name other than that one (NULL: any). */
static bool is_named(const struct image_names *names, const char *digest, const char *but)
{
	for (size_t i = 0; i < names->n; i++) {
		if (str_is(names->p[i].digest, digest) && !(but && str_is(names->p[i].name, but)))
			return true;
	}
	return false;
}

/* The names without `full`, or without all that mean the digest. */
static int forget_name(const struct images *s, struct image_names *names, const char *full,
		       const char *digest, struct err *e)
{
	size_t left = 0;

	for (size_t i = 0; i < names->n; i++) {
		if (full ? !str_is(names->p[i].name, full) : !str_is(names->p[i].digest, digest))
			names->p[left++] = names->p[i];
	}
	names->n = left;
	return write_names(s, names, e);
}

/* The name goes first. If the process is killed in between, an image without a name is left,
 * which prune removes, and never a name without an image. */
int images_remove(struct images *s, struct str name, struct err *e)
{
	autoclose int lock = images_lock(s, e);
	autoclose int held = -1;
	autodoc struct image_doc doc = { NULL, NULL }, found = { NULL, NULL };
	struct image_name name_of = { .has_network = false };
	char full[IMAGE_NAME_MAX + 1], digest[HASH_HEX + 1];
	struct image_names names;
	int named, used = 0;
	bool last;

	if (lock < 0 || images_names(s, &doc, &names, e) < 0)
		return -1;
	named = find_digest(s, name, &found, &name_of, digest, e);
	if (named < 0)
		return -1;
	snprintf(full, sizeof(full), "%.*s", STR_ARG(name_of.name));
	last = !named || !is_named(&names, digest, full);
	if (last)
		used = hold_image(s, digest, &held, e);
	if (used)
		return used < 0 ? -1
				: err_set(e, ERR_CONFLICT,
					  "sandboxes use image %.12s, stopped ones among them, or "
					  "snapshots do",
					  digest);
	if (forget_name(s, &names, named ? full : NULL, digest, e) < 0)
		return -1;
	return held < 0 ? 0 : drop_image(s, digest, e);
}

int images_sweep(const struct images *s, uint32_t *ret_n, struct err *e)
{
	autofolder struct folder f = folder_at(s->new, ".");
	int rc = 0, more = 0;

	while (rc == 0 && (more = folder_next(&f)) > 0) {
		const char *name = f.entry->d_name;
		autoclose int it = -1;

		if (name[0] == '.')
			continue;
		it = openat(s->new, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (it >= 0 && flock(it, LOCK_EX | LOCK_NB) < 0)
			continue;
		rc = tree_remove(s->new, name) < 0 ? err_sys(e, errno, "remove leftovers") : 0;
		*ret_n += rc == 0;
	}
	return more < 0 ? err_sys(e, f.errnum, "look for leftovers") : rc;
}

int images_tidy(struct images *s, struct err *e)
{
	autoclose int lock = images_lock(s, e);
	uint32_t swept = 0;

	return lock < 0 ? -1 : images_sweep(s, &swept, e);
}

int images_prune(struct images *s, bool all_steps, void (*on_image)(const char *digest),
		 struct images_pruned *ret, struct err *e)
{
	autofree char(*all)[HASH_HEX + 1] = NULL;
	autodoc struct image_doc doc = { NULL, NULL };
	autoclose int lock = images_lock(s, e);
	struct image_names names;
	ssize_t n;

	*ret = (struct images_pruned){ .images = 0 };
	if (lock < 0 || images_names(s, &doc, &names, e) < 0)
		return -1;
	n = images_list(s, &all, e);
	for (ssize_t i = 0; i < n; i++) {
		int used = is_named(&names, all[i], NULL) ? -2 : remove_image(s, all[i], e);

		if (used == -1)
			return -1;
		if (used == 0)
			on_image(all[i]);
		ret->images += used == 0;
		ret->in_use += used == 1;
	}
	if (n < 0 || build_cache_prune(s, all_steps, &ret->steps, e) < 0)
		return -1;
	return images_sweep(s, &ret->leftovers, e);
}
