/* filesystem.Filesystem: what files.stat, files.list and their siblings know, as envd says it. */
#include "door/e2b/internal.h"

#include <stdlib.h>

#include "base/when.h"
#include "op/files.h"

enum {
	ANSWER_MAX = 16 << 20,
	DEPTH_MAX = 32,
	DIRS_MAX = 256, /* that one ListDir looks into */
	ENTRIES_MAX = 10000,
	LINKS_MAX = 64, /* whose target is looked at */
};

/* ---- what an entry looks like -------------------------------------------------------------- */

struct entry {
	struct str path;
	enum file_type type;
	uint64_t size;
	uint32_t mode;
	int64_t modified_at; /* seconds since 1970 */
};

static const char *const types[] = {
	[FILE_REGULAR] = "FILE_TYPE_FILE",
	[FILE_DIRECTORY] = "FILE_TYPE_DIRECTORY",
	[FILE_SYMLINK] = "FILE_TYPE_SYMLINK",
	[FILE_OTHER] = "FILE_TYPE_UNSPECIFIED",
};

static void permissions(const struct entry *n, char ret[11])
{
	static const char letters[] = "rwxrwxrwx";
	static const char kinds[] = { [FILE_REGULAR] = '-',
				      [FILE_DIRECTORY] = 'd',
				      [FILE_SYMLINK] = 'L',
				      [FILE_OTHER] = '?' };

	ret[0] = kinds[n->type];
	for (int i = 0; i < 9; i++)
		ret[i + 1] = n->mode >> (8 - i) & 1 ? letters[i] : '-';
	ret[10] = '\0';
}

/* The owner is not known here: it is the sandbox's user, or shown as it. */
static void write_entry(struct json_writer *w, const struct entry *n, struct arena *arena)
{
	char bits[11], when[WHEN_MAX], *size;
	struct err e;

	permissions(n, bits);
	when_text(when, n->modified_at * 1000);
	size = arena_printf(arena, &e, "%llu", (unsigned long long)n->size);
	json_write_object(w);
	ask_arg_str(w, "name", e2b_base_name(n->path));
	ask_arg_str(w, "type", str_of(types[n->type]));
	ask_arg_str(w, "path", n->path);
	ask_arg_str(w, "size", str_of(size ? size : "0"));
	ask_arg_uint(w, "mode", n->mode);
	ask_arg_str(w, "permissions", str_of(bits));
	ask_arg_str(w, "owner", STR_LIT("user"));
	ask_arg_str(w, "group", STR_LIT("user"));
	ask_arg_str(w, "modifiedTime", str_of(when));
	json_write_object_end(w);
}

static struct entry entry_of(struct str path, const struct file_info *i)
{
	return (struct entry){ path, i->type, i->size, i->mode, i->modified_at };
}

static void reply_entry(struct ask *a, const struct entry *n)
{
	struct buf b = BUF_INIT(ANSWER_MAX);
	struct json_writer w = json_writer(&b);

	json_write_object(&w);
	json_write_key(&w, "entry");
	write_entry(&w, n, a->arena);
	json_write_object_end(&w);
	ask_reply(a, 200, &w);
}

/* A path of the body, as it is meant; STR_NONE: the ask has failed. */
static struct str body_path(struct ask *a, const char *name)
{
	return ask_path(a, ask_str(a->body, name));
}

static void call_path(struct ask *a, const struct op *op, struct str path, ask_then then)
{
	struct ask_args args;

	ask_arg_str(ask_args(a, &args, true), "path", path);
	ask_call(a, op, &args, then);
}

/* ---- Stat ---------------------------------------------------------------------------------- */

static void stat_on_done(struct ask *a, const void *result, const struct err *err)
{
	const struct str *path = a->state;
	struct entry n;

	if (err) {
		ask_fail(a, err);
		return;
	}
	n = entry_of(*path, result);
	reply_entry(a, &n);
}

/* The path is the row's state; NULL: the ask has failed. */
static struct str *keep_path(struct ask *a, struct str path)
{
	struct str *kept = arena_alloc(a->arena, sizeof(*kept), &(struct err){ 0 });

	if (path.p && kept)
		*kept = path;
	else if (path.p)
		ask_fail_with(a, ERR_LIMIT, "out of memory");
	a->state = kept;
	return path.p ? kept : NULL;
}

static void run_stat(struct ask *a)
{
	struct str *path = keep_path(a, body_path(a, "path"));

	if (path)
		call_path(a, &files_stat_op, *path, stat_on_done);
}

/* ---- MakeDir ------------------------------------------------------------------------------- */

static void mkdir_on_made(struct ask *a, const void *result, const struct err *err)
{
	if (err)
		ask_fail(a, err);
	else
		call_path(a, &files_stat_op, *(struct str *)a->state, stat_on_done);
}

static void mkdir_on_seen(struct ask *a, const void *result, const struct err *err)
{
	const struct file_info *i = result;

	if (err && err->code != ERR_PATH_NOT_FOUND)
		ask_fail(a, err);
	else if (i && i->type == FILE_DIRECTORY)
		ask_fail_as(a, "already_exists", "the directory is there already");
	else if (i)
		ask_fail_as(a, "invalid_argument", "the path is there, and no directory");
	else
		call_path(a, &files_mkdir_op, *(struct str *)a->state, mkdir_on_made);
}

static void run_mkdir(struct ask *a)
{
	struct str *path = keep_path(a, body_path(a, "path"));

	if (path)
		call_path(a, &files_stat_op, *path, mkdir_on_seen);
}

/* ---- Move ---------------------------------------------------------------------------------- */

struct moving {
	struct str from, to;
	struct entry entry;
};

static void move_on_done(struct ask *a, const void *result, const struct err *err)
{
	struct moving *m = a->state;

	if (err) {
		ask_fail(a, err);
		return;
	}
	m->entry.path = m->to;
	reply_entry(a, &m->entry);
}

static void move_on_parent(struct ask *a, const void *result, const struct err *err)
{
	const struct moving *m = a->state;
	struct ask_args args;
	struct json_writer *w;

	if (err) {
		ask_fail(a, err);
		return;
	}
	w = ask_args(a, &args, true);
	ask_arg_str(w, "path", m->from);
	ask_arg_str(w, "to", m->to);
	ask_call(a, &files_move_op, &args, move_on_done);
}

static void move_on_seen(struct ask *a, const void *result, const struct err *err)
{
	struct moving *m = a->state;

	if (err) {
		ask_fail(a, err);
		return;
	}
	m->entry = entry_of(m->to, result);
	call_path(a, &files_mkdir_op, ask_dup(a, e2b_parent(m->to)), move_on_parent);
}

static void run_move(struct ask *a)
{
	struct moving *m = a->state = arena_alloc(a->arena, sizeof(*m), &(struct err){ 0 });

	if (!m) {
		ask_fail_with(a, ERR_LIMIT, "out of memory");
		return;
	}
	m->from = body_path(a, "source");
	m->to = m->from.p ? body_path(a, "destination") : STR_NONE;
	if (m->to.p)
		call_path(a, &files_stat_op, m->from, move_on_seen);
}

/* ---- Remove -------------------------------------------------------------------------------- */

static void remove_on_done(struct ask *a, const void *result, const struct err *err)
{
	struct buf b = BUF_INIT(64);
	struct json_writer w = json_writer(&b);

	if (err && err->code != ERR_PATH_NOT_FOUND) {
		ask_fail(a, err);
		return;
	}
	json_write_object(&w);
	json_write_object_end(&w);
	ask_reply(a, 200, &w);
}

static void run_remove(struct ask *a)
{
	struct str path = body_path(a, "path");
	struct ask_args args;
	struct json_writer *w;

	if (!path.p)
		return;
	w = ask_args(a, &args, true);
	ask_arg_str(w, "path", path);
	ask_arg_bool(w, "recursive", true);
	ask_call(a, &files_remove_op, &args, remove_on_done);
}

/* ---- ListDir ------------------------------------------------------------------------------- */

/* Directory by directory, the nearest first; then links, whose target's type is theirs. */
struct walk {
	struct entry *p;
	size_t n, room;
	struct {
		struct str path;
		unsigned depth;
	} dirs[DIRS_MAX];
	size_t n_dirs, next_dir;
	size_t links[LINKS_MAX], n_links, next_link;
	unsigned depth;
};

static int by_path(const void *a, const void *b)
{
	struct str x = ((const struct entry *)a)->path, y = ((const struct entry *)b)->path;
	size_t n = x.n < y.n ? x.n : y.n;

	/* The files of a directory follow it. */
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)x.p[i], d = (unsigned char)y.p[i];

		if (c != d)
			return c == '/' ? -1 : d == '/' ? 1 : (int)c - (int)d;
	}
	return (x.n > y.n) - (x.n < y.n);
}

static void list_reply(struct ask *a, struct walk *k)
{
	struct buf b = BUF_INIT(ANSWER_MAX);
	struct json_writer w = json_writer(&b);

	if (k->n)
		qsort(k->p, k->n, sizeof(*k->p), by_path);
	json_write_object(&w);
	json_put_array(&w, "entries");
	for (size_t i = 0; i < k->n; i++)
		write_entry(&w, &k->p[i], a->arena);
	json_write_array_end(&w);
	json_write_object_end(&w);
	ask_reply(a, 200, &w);
}

static void list_next(struct ask *a);

/* A link that leads nowhere stays one. */
static void list_on_link(struct ask *a, const void *result, const struct err *err)
{
	struct walk *k = a->state;
	const struct file_info *i = result;
	struct entry *n = &k->p[k->links[k->next_link++]];

	if (err && e2b_is_gone(err->code)) {
		ask_fail(a, err);
		return;
	}
	if (i) {
		n->type = i->type;
		n->mode = i->mode;
	}
	list_next(a);
}

static bool list_room(struct ask *a, struct walk *k, size_t more)
{
	size_t room = k->room ? k->room * 2 : 64;
	struct entry *p;

	while (room < k->n + more)
		room *= 2;
	if (k->n + more > ENTRIES_MAX)
		return false;
	if (k->n + more <= k->room)
		return true;
	p = arena_array(a->arena, room, sizeof(*p), &(struct err){ 0 });
	if (!p)
		return false;
	if (k->n)
		memcpy(p, k->p, k->n * sizeof(*p));
	k->p = p;
	k->room = room;
	return true;
}

static void list_on_dir(struct ask *a, const void *result, const struct err *err)
{
	struct walk *k = a->state;
	const struct files_listing *l = result;
	struct str dir = k->dirs[k->next_dir].path;
	unsigned depth = k->dirs[k->next_dir++].depth;

	/* One of those below may have gone, or be closed. */
	if (err && (depth == 1 || e2b_is_gone(err->code))) {
		ask_fail(a, err);
		return;
	}
	if (l && (l->truncated || !list_room(a, k, l->entries.n))) {
		ask_fail_as(a, "resource_exhausted", "there are too many entries");
		return;
	}
	for (size_t i = 0; l && i < l->entries.n; i++) {
		const struct file_listed *f = &l->entries.p[i];
		struct str path = ask_printf(a, "%.*s%s%.*s", STR_ARG(dir),
					     str_ends(dir, "/") ? "" : "/", STR_ARG(f->name));

		if (f->type == FILE_SYMLINK && k->n_links < LINKS_MAX)
			k->links[k->n_links++] = k->n;
		if (f->type == FILE_DIRECTORY && depth < k->depth && k->n_dirs == DIRS_MAX) {
			ask_fail_as(a, "resource_exhausted", "there are too many directories");
			return;
		}
		if (f->type == FILE_DIRECTORY && depth < k->depth) {
			k->dirs[k->n_dirs].path = path;
			k->dirs[k->n_dirs++].depth = depth + 1;
		}
		k->p[k->n++] = (struct entry){ path, f->type, f->size, f->mode, f->modified_at };
	}
	list_next(a);
}

static void list_next(struct ask *a)
{
	struct walk *k = a->state;

	if (k->next_dir < k->n_dirs)
		call_path(a, &files_list_op, k->dirs[k->next_dir].path, list_on_dir);
	else if (k->next_link < k->n_links)
		call_path(a, &files_stat_op, k->p[k->links[k->next_link]].path, list_on_link);
	else
		list_reply(a, k);
}

static void run_list(struct ask *a)
{
	struct walk *k = a->state = arena_alloc(a->arena, sizeof(*k), &(struct err){ 0 });
	struct str path = body_path(a, "path");
	uint64_t depth = 1;

	if (!path.p)
		return;
	ask_uint(a->body, "depth", &depth);
	if (!k) {
		ask_fail_with(a, ERR_LIMIT, "out of memory");
		return;
	}
	k->depth = depth ? (unsigned)depth : 1;
	k->dirs[0].path = path;
	k->dirs[0].depth = 1;
	k->n_dirs = 1;
	list_next(a);
}

static const struct e2b_member one_path[] = {
	{ "path", JSON_STR },
	{ "depth", JSON_INT, DEPTH_MAX },
	{ 0 },
};
static const struct e2b_member two_paths[] = {
	{ "source", JSON_STR },
	{ "destination", JSON_STR },
	{ 0 },
};

#define AT(name) "/filesystem.Filesystem/" name
static const struct e2b_row rows[] = {
	{ HTTP_POST, AT("Stat"), E2B_UNARY, 0, run_stat, "What a path is.", one_path },
	{ HTTP_POST, AT("MakeDir"), E2B_UNARY, 0, run_mkdir, "Makes a directory.", one_path },
	{ HTTP_POST, AT("Move"), E2B_UNARY, 0, run_move, "Moves a path.", two_paths },
	{ HTTP_POST, AT("Remove"), E2B_UNARY, 0, run_remove, "Removes a path.", one_path },
	{ HTTP_POST, AT("ListDir"), E2B_UNARY, 0, run_list, "What is in a directory.", one_path },
};
const struct e2b_rows e2b_filesystem = { rows, ARRAY_LEN(rows) };
