/*
 * The archive's entries become an array of changes by path, in memory; contents go into objects as
 * they come. Then the array is sorted so that each directory's changes stand together, and merged
 * with the earlier tree, directory by directory: what was not touched is neither read nor written.
 */
#include "hub/workspace/take.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "box/archive/tar.h"
#include "hub/workspace/leave_out.h"
#include "hub/workspace/piece.h"

enum { READ_BYTES = 128 * 1024, TAKE_POLL_MS = 200 };
/* Paths and links of all changes together. */
#define TAKE_TEXT_MAX (192u << 20)

#define GONE ".wh."
#define OPAQUE ".wh..wh..opq"

struct change {
	struct str path; /* never empty */
	enum { CHANGE_ENTRY, CHANGE_GONE, CHANGE_OPAQUE, CHANGE_HARDLINK } what;
	struct tree_entry entry; /* without a name; link: of a hard link the other path */
};

struct take {
	struct take_spec spec;
	struct arena texts;
	struct change *changes;
	size_t n, room;
	uint64_t bytes;
	struct pieces pieces;
	struct tar_reader reader;
	bool taking; /* content of the last entry is wanted */
	bool whole; /* the top was replaced or removed: nothing of the base is left */
	uint32_t left_out;
	struct buf names;
	char buffer[READ_BYTES];
};

struct take *take_new(const struct take_spec *spec, struct err *e)
{
	struct take *t = calloc(1, sizeof(*t));

	if (!t)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	t->spec = *spec;
	if (!t->spec.bytes_max)
		t->spec.bytes_max = WORKSPACE_BYTES_MAX;
	t->names = BUF_INIT(TAKE_NAMES_MAX - 1);
	arena_init(&t->texts, TAKE_TEXT_MAX);
	pieces_init(&t->pieces, spec->objects);
	tar_reader_init(&t->reader);
	return t;
}

void take_free(struct take *t)
{
	if (!t)
		return;
	buf_fini(&t->names);
	arena_fini(&t->texts);
	pieces_fini(&t->pieces);
	free(t->changes);
	free(t);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* The first name of a path, which *path loses. */
static struct str next_name(struct str *path)
{
	const char *slash = memchr(path->p, '/', path->n);
	struct str name = { path->p, slash ? (size_t)(slash - path->p) : path->n };
	size_t n = name.n + (slash != NULL);

	path->p += n;
	path->n -= n;
	return name;
}

static int too_large(struct err *e, const char *what, uint64_t max)
{
	return err_set(e, ERR_WORKSPACE_LARGE, "a workspace has at most %llu %s",
		       (unsigned long long)max, what);
}

static int check_name(struct str name, struct err *e)
{
	return name.n > WORKSPACE_NAME_MAX ? too_large(e, "bytes in a name", WORKSPACE_NAME_MAX)
					   : 0;
}

static bool is_printable(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < ' ' || s.p[i] > '~' || s.p[i] == ',')
			return false;
	}
	return true;
}

/* Counts it, unless it is a directory: these come twice, and what is in them is told anyway. */
static void tell_left_out(struct take *t, struct str path)
{
	struct err ignored = ERR_INIT;

	t->left_out++;
	if (is_printable(path) &&
	    buf_addf(&t->names, &ignored, "%s%.*s", t->names.n ? ", " : "", STR_ARG(path)) < 0)
		return; /* the first names are enough */
}

/* 1: it is to be left out. */
static int judge_path(struct str path, struct err *e)
{
	struct str rest = path, folder = STR_LIT(""), name;
	unsigned depth = 0;

	if (path.n > WORKSPACE_PATH_MAX)
		return too_large(e, "bytes in a path", WORKSPACE_PATH_MAX);
	while (rest.n) {
		name = next_name(&rest);
		if (check_name(name, e) < 0)
			return -1;
		if (++depth > WORKSPACE_DEPTH_MAX)
			return too_large(e, "directories inside each other", WORKSPACE_DEPTH_MAX);
		if (leave_out(folder, name))
			return 1;
		folder = name;
	}
	return 0;
}

/* ---- the stream ------------------------------------------------------------------------------ */

static struct change *new_change(struct take *t, struct str path, struct err *e)
{
	const char *copy = arena_dup(&t->texts, path, e);

	if (!copy)
		return NULL;
	if (t->n == t->room) {
		size_t room = t->room ? 2 * t->room : 256;
		struct change *more = realloc(t->changes, room * sizeof(*more));

		if (!more)
			return err_set(e, ERR_LIMIT, "out of memory"), NULL;
		t->changes = more;
		t->room = room;
	}
	/* directories come twice, and whiteouts count, too */
	if (t->n >= 2ull * WORKSPACE_FILES_MAX) {
		too_large(e, "files", WORKSPACE_FILES_MAX);
		return NULL;
	}
	t->changes[t->n] = (struct change){ .path = { copy, path.n } };
	return &t->changes[t->n++];
}

/* The path without the top. 1: the entry is wanted, 0: it is not. */
static int clean_path(const struct take *t, char path[TAR_PATH_MAX], struct str *ret, struct err *e)
{
	struct str rest, top;

	if (!tar_path_clean(path))
		return err_set(e, ERR_INVALID, "a path in the archive leads upwards");
	rest = str_of(path);
	if (t->spec.top) {
		top = next_name(&rest);
		if (!str_is(top, t->spec.top))
			return 0;
	}
	*ret = rest;
	return rest.n > 0 && !str_is(rest, ".");
}

static int take_mark(struct take *t, struct str path, struct err *e)
{
	const char *slash = memrchr(path.p, '/', path.n);
	struct str dir = { path.p, slash ? (size_t)(slash - path.p) : 0 };
	struct str name = { slash ? slash + 1 : path.p, path.n - dir.n - (slash != NULL) };
	char whole[TAR_PATH_MAX];
	struct change *c;

	if (!t->spec.changes) {
		t->left_out++; /* the engine could not tell it from a mark */
		return 0;
	}
	if (str_is(name, OPAQUE)) {
		if (!dir.n) {
			t->whole = true;
			return 0;
		}
		c = new_change(t, dir, e);
		if (c)
			c->what = CHANGE_OPAQUE;
		return c ? 0 : -1;
	}
	snprintf(whole, sizeof(whole), "%.*s%s%.*s", STR_ARG(dir), slash ? "/" : "",
		 (int)(name.n - strlen(GONE)), name.p + strlen(GONE));
	c = new_change(t, str_of(whole), e);
	if (c)
		c->what = CHANGE_GONE;
	return c ? 0 : -1;
}

/* An entry that is not below the top: it may be the top itself, or tell that it is gone. */
static int take_top(struct take *t, const char *path, enum tar_type type, struct err *e)
{
	if (!t->spec.top || !t->spec.changes)
		return 0;
	if (strcmp(path, t->spec.top) == 0 && type != TAR_DIRECTORY)
		return err_set(e, ERR_INVALID,
			       "/%s is no directory any more: make it one, or discard the changes",
			       t->spec.top);
	if (strncmp(path, GONE, strlen(GONE)) == 0 && strcmp(path + strlen(GONE), t->spec.top) == 0)
		t->whole = true;
	return 0;
}

static bool is_mark(struct str path)
{
	const char *slash = memrchr(path.p, '/', path.n);
	const char *name = slash ? slash + 1 : path.p;

	return strncmp(name, GONE, strlen(GONE)) == 0;
}

static int take_link(struct take *t, struct change *c, const struct tar_entry *from, struct err *e)
{
	char path[TAR_PATH_MAX];
	struct str link = str_of(from->link);
	const char *copy;

	if (from->type == TAR_HARDLINK) {
		snprintf(path, sizeof(path), "%s", from->link);
		if (clean_path(t, path, &link, e) <= 0)
			return e->code ? -1
				       : err_set(e, ERR_INVALID,
						 "a hard link in the archive leads outside");
		c->what = CHANGE_HARDLINK;
	}
	if (link.n > WORKSPACE_PATH_MAX)
		return too_large(e, "bytes in a link", WORKSPACE_PATH_MAX);
	copy = arena_dup(&t->texts, link, e);
	c->entry.link = (struct str){ copy, link.n };
	return copy ? 0 : -1;
}

static int take_entry(struct take *t, struct err *e)
{
	static const enum tree_type types[] = { [TAR_FILE] = TREE_PIECE,
						[TAR_DIRECTORY] = TREE_DIR,
						[TAR_SYMLINK] = TREE_LINK,
						[TAR_HARDLINK] = TREE_PIECE };
	const struct tar_entry *from = &t->reader.entry;
	char path[TAR_PATH_MAX];
	struct str rest;
	struct change *c;
	int wanted;

	t->taking = false;
	snprintf(path, sizeof(path), "%s", from->path);
	wanted = clean_path(t, path, &rest, e);
	if (wanted <= 0)
		return wanted < 0 ? -1 : take_top(t, path, from->type, e);
	if (is_mark(rest))
		return take_mark(t, rest, e);
	wanted = judge_path(rest, e);
	if (wanted > 0 && from->type != TAR_DIRECTORY)
		tell_left_out(t, rest);
	if (wanted != 0)
		return wanted < 0 ? -1 : 0;
	if (from->type == TAR_SYMLINK && !from->link[0])
		return err_set(e, ERR_INVALID, "a link in the archive leads nowhere");
	c = new_change(t, rest, e);
	if (!c)
		return -1;
	c->entry.type = types[from->type];
	c->entry.mode = (uint16_t)(from->type == TAR_SYMLINK ? 0777 : from->mode & 0777);
	c->entry.mtime = from->mtime;
	c->entry.mtime_ns = from->mtime_ns < 1000000000 ? from->mtime_ns : 0;
	if (from->type == TAR_SYMLINK || from->type == TAR_HARDLINK)
		return take_link(t, c, from, e);
	if (from->size > t->spec.bytes_max - t->bytes)
		return too_large(e, "bytes", t->spec.bytes_max);
	t->bytes += from->size;
	t->taking = from->type == TAR_FILE;
	pieces_begin(&t->pieces);
	return 0;
}

static int take_event(struct take *t, enum tar_event event, struct err *e)
{
	switch (event) {
	case TAR_ENTRY:
		return take_entry(t, e);
	case TAR_CONTENT:
		return t->taking
			     ? pieces_add(&t->pieces,
					  (struct str){ t->reader.content, t->reader.content_n }, e)
			     : 0;
	case TAR_ENTRY_END:
		return t->taking ? pieces_end(&t->pieces, &t->changes[t->n - 1].entry, e) : 0;
	case TAR_PASSED:
		return t->spec.strict ? err_set(e, ERR_INVALID,
						"the archive has something that is no file, "
						"directory or link")
				      : 0;
	case TAR_BAD:
		return err_set(e, ERR_INVALID, "the archive: %s", tar_why_text(t->reader.why));
	default:
		return 0;
	}
}

static int take_bytes(struct take *t, const char *p, size_t n, struct err *e)
{
	enum tar_event event;

	do {
		event = tar_read(&t->reader, &p, &n);
		if (take_event(t, event, e) < 0)
			return -1;
	} while (event != TAR_MORE);
	return 0;
}

static int check_stop(const struct take *t, struct err *e)
{
	return t->spec.stop && atomic_load(t->spec.stop)
		     ? err_set(e, ERR_CANCELLED, "the revision was given up")
		     : 0;
}

static int await_input(const struct take *t, int fd, struct err *e)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	while (poll(&p, 1, TAKE_POLL_MS) <= 0) {
		if (check_stop(t, e) < 0)
			return -1;
	}
	return 0;
}

int take_read(struct take *t, int fd, struct err *e)
{
	static const char zeros[TAR_END_BYTES];
	enum tar_why why;
	ssize_t n = 1;

	while (n != 0) {
		if (await_input(t, fd, e) < 0 || check_stop(t, e) < 0)
			return -1;
		n = read(fd, t->buffer, sizeof(t->buffer));
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return err_sys(e, errno, "read the archive");
		if (n > 0 && take_bytes(t, t->buffer, (size_t)n, e) < 0)
			return -1;
	}
	if (t->spec.changes && take_bytes(t, zeros, sizeof(zeros), e) < 0)
		return -1;
	why = tar_reader_end(&t->reader);
	if (why != TAR_FINE)
		return err_set(e, ERR_INVALID, "the archive: %s", tar_why_text(why));
	return 0;
}

/* ---- sorting --------------------------------------------------------------------------------- */

/* A directory before what is in it, and that before its siblings. */
static int compare_paths(struct str a, struct str b)
{
	while (a.n && b.n) {
		int c = tree_compare(next_name(&a), next_name(&b));

		if (c)
			return c;
	}
	return a.n ? 1 : b.n ? -1 : 0;
}

/* In the order of the stream, which a stable sort keeps among equal paths. */
static int sort_changes(struct take *t, struct err *e)
{
	struct change *from = t->changes, *to;

	to = t->n ? calloc(t->n, sizeof(*to)) : NULL;
	if (t->n && !to)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (size_t width = 1; width < t->n; width *= 2) {
		for (size_t lo = 0; lo < t->n; lo += 2 * width) {
			size_t mid = lo + width < t->n ? lo + width : t->n;
			size_t hi = lo + 2 * width < t->n ? lo + 2 * width : t->n;
			size_t i = lo, j = mid;

			for (size_t k = lo; k < hi; k++) {
				bool left = i < mid &&
					    (j == hi ||
					     compare_paths(from[i].path, from[j].path) <= 0);

				to[k] = left ? from[i++] : from[j++];
			}
		}
		t->changes = to;
		to = from;
		from = t->changes;
	}
	free(to);
	return 0;
}

/* The last entry of this path that is a file. */
static const struct change *find_file(const struct take *t, struct str path)
{
	size_t lo = 0, hi = t->n;
	const struct change *found = NULL;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (compare_paths(t->changes[mid].path, path) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < t->n && compare_paths(t->changes[lo].path, path) == 0; lo++) {
		if (t->changes[lo].what == CHANGE_ENTRY &&
		    (t->changes[lo].entry.type == TREE_PIECE ||
		     t->changes[lo].entry.type == TREE_PIECES))
			found = &t->changes[lo];
	}
	return found;
}

/* Further names of a file become files of their own with the same content. One whose other name
 * was left out is left out, too. */
static int resolve_links(struct take *t, struct err *e)
{
	for (size_t i = 0; i < t->n; i++) {
		struct change *c = &t->changes[i];
		const struct change *of;

		if (c->what != CHANGE_HARDLINK)
			continue;
		of = find_file(t, c->entry.link);
		if (!of && judge_path(c->entry.link, e) == 1) {
			c->what = CHANGE_GONE;
			continue;
		}
		if (!of)
			return e->code ? -1
				       : err_set(e, ERR_INVALID,
						 "a hard link in the archive leads nowhere");
		c->entry = of->entry;
		c->what = CHANGE_ENTRY;
	}
	return 0;
}

/* ---- merging --------------------------------------------------------------------------------- */

static int merge_dir(struct take *t, const struct object_id *base, size_t lo, size_t hi,
		     size_t skip, struct tree_entry *ret, struct err *e);

/* Joins the changes of one name. */
struct verdict {
	bool gone; /* what was there before does not count */
	const struct tree_entry *entry; /* NULL: only something inside it changed */
	size_t inside; /* where the changes inside it begin */
};

static struct str rest_of(const struct change *c, size_t skip)
{
	return (struct str){ c->path.p + skip, c->path.n - skip };
}

static struct verdict take_judge(const struct take *t, size_t lo, size_t hi, size_t length)
{
	struct verdict v = { .inside = lo };

	for (; v.inside < hi && t->changes[v.inside].path.n == length; v.inside++) {
		const struct change *c = &t->changes[v.inside];

		v.gone |= c->what != CHANGE_ENTRY;
		if (c->what == CHANGE_GONE)
			v.entry = NULL;
		else if (c->what == CHANGE_ENTRY)
			v.entry = &c->entry;
	}
	return v;
}

/* One name with its changes lo to hi. was: NULL, or what the base has. 1: *ret is what it has
 * become, 0: there is none. */
static int merge_name(struct take *t, const struct tree_entry *was, size_t lo, size_t hi,
		      size_t skip, struct str name, struct tree_entry *ret, struct err *e)
{
	const struct verdict v = take_judge(t, lo, hi, skip + name.n);
	const struct object_id *base = was && !v.gone && was->type == TREE_DIR ? &was->id : NULL;

	if (v.entry && v.entry->type != TREE_DIR) {
		*ret = *v.entry;
	} else if (v.entry || v.inside < hi) {
		*ret = (struct tree_entry){ .type = TREE_DIR, .mode = 0755 };
		if (was && was->type == TREE_DIR)
			*ret = *was;
		if (v.entry)
			*ret = *v.entry;
		if (merge_dir(t, base, v.inside, hi, skip + name.n + 1, ret, e) < 0)
			return -1;
	} else if (!was || v.gone) {
		return 0;
	} else {
		*ret = *was;
	}
	ret->name = name;
	return 1;
}

static int merge_put(struct buf *to, const struct tree_entry *made, struct tree_entry *dir,
		     struct err *e)
{
	uint64_t count = (uint64_t)dir->count + made->count + 1;

	if (count > WORKSPACE_FILES_MAX)
		return too_large(e, "files", WORKSPACE_FILES_MAX);
	if (made->type != TREE_LINK && made->bytes > WORKSPACE_BYTES_MAX - dir->bytes)
		return too_large(e, "bytes", WORKSPACE_BYTES_MAX);
	dir->count = (uint32_t)count;
	dir->bytes += made->type == TREE_LINK ? 0 : made->bytes;
	return tree_write(to, made, e);
}

/* The changes of the same first name as that of lo end before this. */
static size_t group_end(const struct take *t, size_t lo, size_t hi, size_t skip, struct str *ret)
{
	struct str rest = rest_of(&t->changes[lo], skip), other;

	*ret = next_name(&rest);
	while (++lo < hi) {
		other = rest_of(&t->changes[lo], skip);
		if (tree_compare(next_name(&other), *ret) != 0)
			break;
	}
	return lo;
}

static int merge_entries(struct take *t, const struct tree *base, size_t lo, size_t hi, size_t skip,
			 struct buf *to, struct tree_entry *dir, struct err *e)
{
	size_t at = 0;

	while (at < base->n || lo < hi) {
		struct tree_entry made;
		struct str name = STR_NONE;
		size_t end = lo < hi ? group_end(t, lo, hi, skip, &name) : lo;
		int c = at == base->n ? 1
		      : lo == hi      ? -1
				      : tree_compare(base->entries[at].name, name);
		int there = 1;

		if (c < 0) {
			made = base->entries[at++];
		} else {
			there = merge_name(t, c == 0 ? &base->entries[at++] : NULL, lo, end, skip,
					   name, &made, e);
			lo = end;
		}
		if (there < 0 || (there && merge_put(to, &made, dir, e) < 0))
			return -1;
	}
	return 0;
}

/* Sets id, bytes and count of the directory whose changes are lo to hi; their paths have `skip`
 * bytes before what is in it. */
static int merge_dir(struct take *t, const struct object_id *base, size_t lo, size_t hi,
		     size_t skip, struct tree_entry *ret, struct err *e)
{
	autobuf struct buf bytes = BUF_INIT(OBJECT_MAX);
	struct tree old = { .n = 0 };
	int result = 0;

	ret->bytes = ret->count = 0;
	if (base)
		result = tree_load(t->spec.objects, base, &old, e);
	if (result == 0)
		result = merge_entries(t, &old, lo, hi, skip, &bytes, ret, e);
	if (result == 0)
		result = objects_put(t->spec.objects, OBJECT_TREE, buf_str(&bytes), &ret->id, e);
	tree_fini(&old);
	return result;
}

int take_tree(struct take *t, const struct object_id *base, struct take_result *ret, struct err *e)
{
	struct tree_entry top = { .type = TREE_DIR };

	if (sort_changes(t, e) < 0 || resolve_links(t, e) < 0 ||
	    merge_dir(t, t->whole ? NULL : base, 0, t->n, 0, &top, e) < 0)
		return -1;
	*ret = (struct take_result){
		.tree = top.id, .count = top.count, .bytes = top.bytes, .left_out = t->left_out
	};
	snprintf(ret->names, sizeof(ret->names), "%.*s", STR_ARG(buf_str(&t->names)));
	return 0;
}
