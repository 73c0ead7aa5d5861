#include "op/files.h"

#include "call/call.h"

#define FILES_PATH_ROW(S, m, doc_)                                                                 \
	FIELD(S, m, .flags = FIELD_REQUIRED | FIELD_PATH, .min = 1, .max = FILES_PATH_MAX,         \
	      .doc = doc_)

struct path_request {
	struct str sandbox, path;
};
static const struct field path_fields[] = {
	OP_SANDBOX_ROW(struct path_request),
	FILES_PATH_ROW(struct path_request, path,
		       "Absolute, or relative to the sandbox's working directory."),
};
static const struct field_table path_table = FIELD_TABLE(struct path_request, path_fields);

static const struct field done_fields[] = {
	FIELD(struct files_done, sandbox, .flags = FIELD_REQUIRED, .doc = "Id of the sandbox."),
	FIELD(struct files_done, path, .flags = FIELD_REQUIRED, .doc = "Its absolute path."),
};
static const struct field_table done_table = FIELD_TABLE(struct files_done, done_fields);

struct sandbox *files_enter(struct call *c, struct str sandbox, struct str path)
{
	struct err e = ERR_INIT;
	struct sandbox *sb;

	call_about(c)->path = path;
	sb = call_sandbox(c, sandbox, &e);
	if (!sb)
		call_fail(c, &e);
	return sb;
}

/* ---- files.stat ---------------------------------------------------------------------------- */

const char *const file_type_names[] = {
	[FILE_REGULAR] = "file",
	[FILE_DIRECTORY] = "directory",
	[FILE_SYMLINK] = "symlink",
	[FILE_OTHER] = "other",
};

static const struct field info_fields[] = {
	FIELD(struct file_info, path, .flags = FIELD_REQUIRED, .doc = "Its absolute path."),
	FIELD(struct file_info, name, .flags = FIELD_REQUIRED,
	      .doc = "Last component of the path."),
	FIELD(struct file_info, is_dir, .flags = FIELD_REQUIRED, .doc = "It is a directory."),
	FIELD_ENUM(struct file_info, type, file_type_names, .flags = FIELD_REQUIRED,
		   .doc = "Type of the file."),
	FIELD(struct file_info, size, .flags = FIELD_REQUIRED, .doc = "Size in bytes."),
	FIELD(struct file_info, mode, .flags = FIELD_REQUIRED,
	      .doc = "Permission bits, as a number."),
	FIELD(struct file_info, modified_at, .flags = FIELD_REQUIRED,
	      .doc = "Time of modification, in seconds since 1970."),
};
static const struct field_table info_table = FIELD_TABLE(struct file_info, info_fields);

static struct str files_base(struct str path)
{
	while (path.n > 1 && path.p[path.n - 1] == '/')
		path.n--;
	for (size_t i = path.n; i > 0; i--) {
		if (path.p[i - 1] == '/' && i < path.n)
			return (struct str){ path.p + i, path.n - i };
	}
	return path;
}

static void files_on_stat(void *arg, const struct file_stat *st, const struct err *err)
{
	struct call *c = arg;
	const struct path_request *q = call_request(c);

	if (err)
		call_fail(c, err);
	else
		call_answer(c, &(struct file_info){ .path = q->path,
						    .name = files_base(q->path),
						    .is_dir = st->type == FILE_DIRECTORY,
						    .type = st->type,
						    .size = st->size,
						    .mode = st->mode,
						    .modified_at = st->mtime_ms / 1000 });
}

static void files_stat_run(struct call *c, const void *request)
{
	const struct path_request *q = request;
	struct sandbox *sb = files_enter(c, q->sandbox, q->path);

	if (sb)
		file_stat_start(sb, q->path, files_on_stat, c);
}

const struct op files_stat_op = {
	.action = "files.stat",
	.doc = "Describes a path: its type, size, permissions and time of modification.",
	.effect = OP_READ,
	.request = &path_table,
	.target = OP_TARGET(struct path_request, sandbox),
	.result = &info_table,
	.run = files_stat_run,
};

/* ---- files.list ---------------------------------------------------------------------------- */

static const struct field list_fields[] = {
	OP_SANDBOX_ROW(struct files_list_request),
	FIELD(struct files_list_request, path, .flags = FIELD_PATH, .min = 1, .max = FILES_PATH_MAX,
	      .def = DEFAULT_STR("."),
	      .doc = "Directory to list. Default: the sandbox's working directory."),
	FIELD(struct files_list_request, limit, .min = 1, .max = FILE_LIST_MAX,
	      .def = DEFAULT_INT(FILE_LIST_MAX), .doc = "Maximum number of entries to return."),
};
static const struct field_table list_table = FIELD_TABLE(struct files_list_request, list_fields);

#define L struct file_listed
static const struct field listed_fields[] = {
	FIELD(L, name, .flags = FIELD_REQUIRED, .doc = "Name within the directory."),
	FIELD(L, is_dir, .flags = FIELD_REQUIRED, .doc = "It is a directory."),
	FIELD_ENUM(L, type, file_type_names, .flags = FIELD_REQUIRED,
		   .doc = "Type of the file; a symlink is not followed."),
	FIELD(L, size, .flags = FIELD_REQUIRED, .doc = "Size in bytes."),
	FIELD(L, mode, .flags = FIELD_REQUIRED, .doc = "Permission bits, as a number."),
	FIELD(L, modified_at, .flags = FIELD_REQUIRED,
	      .doc = "Time of modification, in seconds since 1970."),
	FIELD(L, mode_text, .flags = FIELD_REQUIRED, .doc = "Permission bits in octal."),
	FIELD(L, modified_text, .flags = FIELD_REQUIRED, .doc = "Time of modification, RFC 3339."),
};
#undef L
static const struct field_table listed_table = FIELD_TABLE(struct file_listed, listed_fields);
static const struct field listing_fields[] = {
	FIELD_OBJECTS(struct files_listing, entries, listed_table, .flags = FIELD_REQUIRED,
		      .doc = "Sorted by name."),
	FIELD(struct files_listing, truncated, .flags = FIELD_REQUIRED,
	      .doc = "There are more entries."),
};
static const struct field_table listing_table = FIELD_TABLE(struct files_listing, listing_fields);

static int files_list_entry(struct arena *a, const struct file_entry *from, struct file_listed *to,
			    struct err *e)
{
	const struct file_stat *st = &from->st;
	char *modified = arena_alloc(a, WHEN_MAX, e);
	char *mode = arena_printf(a, e, "%04o", st->mode & 07777);

	if (!modified || !mode)
		return -1;
	when_text(modified, st->mtime_ms);
	*to = (struct file_listed){ .name = from->name,
				    .is_dir = st->type == FILE_DIRECTORY,
				    .type = st->type,
				    .size = st->size,
				    .mode = st->mode,
				    .modified_at = st->mtime_ms / 1000,
				    .mode_text = str_of(mode),
				    .modified_text = str_of(modified) };
	return 0;
}

static void files_on_listed(void *arg, const struct file_entry *entries, size_t n, bool truncated,
			    const struct err *err)
{
	struct call *c = arg;
	const struct files_list_request *q = call_request(c);
	size_t shown = n < q->limit ? n : q->limit;
	struct err e = ERR_INIT;
	struct file_listed *p = err ? NULL : arena_array(call_arena(c), shown, sizeof(*p), &e);
	const struct files_listing listing = { { p, shown }, truncated || shown < n };

	for (size_t i = 0; p && i < shown; i++) {
		if (files_list_entry(call_arena(c), &entries[i], &p[i], &e) < 0)
			p = NULL;
	}
	if (p)
		call_answer(c, &listing);
	else
		call_fail(c, err ? err : &e);
}

static void files_list_run(struct call *c, const void *request)
{
	const struct files_list_request *q = request;
	struct sandbox *sb = files_enter(c, q->sandbox, q->path);

	if (sb)
		file_list_start(sb, q->path, files_on_listed, c);
}

const struct op files_list_op = {
	.action = "files.list",
	.doc = "Lists a directory.",
	.effect = OP_READ,
	.request = &list_table,
	.target = OP_TARGET(struct files_list_request, sandbox),
	.result = &listing_table,
	.run = files_list_run,
};

/* ---- files.mkdir --------------------------------------------------------------------------- */

static void files_on_done(struct call *c, struct str sandbox, struct str path,
			  const struct err *err)
{
	if (err)
		call_fail(c, err);
	else
		call_answer(c, &(struct files_done){ sandbox, path, STR_LIT("ok") });
}

static void files_on_made(void *arg, const struct err *err)
{
	const struct path_request *q = call_request(arg);

	files_on_done(arg, q->sandbox, q->path, err);
}

static void files_mkdir_run(struct call *c, const void *request)
{
	const struct path_request *q = request;
	struct sandbox *sb = files_enter(c, q->sandbox, q->path);

	if (sb)
		file_mkdir_start(sb, q->path, true, files_on_made, c);
}

const struct op files_mkdir_op = {
	.action = "files.mkdir",
	.doc = "Makes a directory and its missing parents. If it exists already, nothing happens.",
	.effect = OP_WRITE,
	.flags = OP_IDEMPOTENT,
	.request = &path_table,
	.target = OP_TARGET(struct path_request, sandbox),
	.result = &done_table,
	.run = files_mkdir_run,
};

/* ---- files.remove -------------------------------------------------------------------------- */

struct remove_request {
	struct str sandbox, path;
	bool recursive;
};
static const struct field remove_fields[] = {
	OP_SANDBOX_ROW(struct remove_request),
	FILES_PATH_ROW(struct remove_request, path, "What to remove."),
	FIELD(struct remove_request, recursive, .def = DEFAULT_BOOL(false),
	      .doc = "Remove a directory with all its contents; otherwise it must be empty."),
};
static const struct field_table remove_table = FIELD_TABLE(struct remove_request, remove_fields);

static void files_on_removed(void *arg, const struct err *err)
{
	const struct remove_request *q = call_request(arg);

	files_on_done(arg, q->sandbox, q->path, err);
}

static void files_remove_run(struct call *c, const void *request)
{
	const struct remove_request *q = request;
	struct sandbox *sb = files_enter(c, q->sandbox, q->path);

	if (sb)
		file_remove_start(sb, q->path, q->recursive, files_on_removed, c);
}

const struct op files_remove_op = {
	.action = "files.remove",
	.doc = "Removes a file or an empty directory; with recursive, any directory.",
	.effect = OP_DESTROY,
	.request = &remove_table,
	.target = OP_TARGET(struct remove_request, sandbox),
	.result = &done_table,
	.run = files_remove_run,
};

/* ---- files.move ---------------------------------------------------------------------------- */

struct move_request {
	struct str sandbox, path, to;
};
static const struct field move_fields[] = {
	OP_SANDBOX_ROW(struct move_request),
	FILES_PATH_ROW(struct move_request, path, "What to move."),
	FILES_PATH_ROW(struct move_request, to, "New path; an existing file is replaced."),
};
static const struct field_table move_table = FIELD_TABLE(struct move_request, move_fields);

static void files_on_moved(void *arg, const struct err *err)
{
	const struct move_request *q = call_request(arg);

	files_on_done(arg, q->sandbox, q->to, err);
}

static void files_move_run(struct call *c, const void *request)
{
	const struct move_request *q = request;
	struct sandbox *sb = files_enter(c, q->sandbox, q->path);

	if (sb)
		file_move_start(sb, q->path, q->to, files_on_moved, c);
}

const struct op files_move_op = {
	.action = "files.move",
	.doc = "Moves or renames a file or directory.",
	.effect = OP_WRITE,
	.flags = OP_REPLACES,
	.request = &move_table,
	.target = OP_TARGET(struct move_request, sandbox),
	.result = &done_table,
	.run = files_move_run,
};
