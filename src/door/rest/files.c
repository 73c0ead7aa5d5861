/* /v1/files/…: what is in a sandbox, by path. */
#include "door/http/common.h"

#include <inttypes.h>

#include "base/base64.h"
#include "json/document/utf8.h"
#include "op/files.h"

enum { READ_MAX = 4 << 20, WRITE_MAX = 32 << 20, MODE_DEFAULT = 0644 };
static_assert((int)READ_MAX < (int)FILE_READ_MAX, "one byte more is read, to see the end");

enum encoding { ENCODING_UTF8, ENCODING_BASE64 };
static const char *const encoding_names[] = {
	[ENCODING_UTF8] = "utf-8",
	[ENCODING_BASE64] = "base64",
};

#define PATH_ROW(S, doc_)                                                                          \
	FIELD(S, path, .flags = FIELD_REQUIRED, .min = 1, .max = API_PATH_MAX, .doc = doc_)
#define BODY(S, table_, doc_) FIELD_OBJECT(S, body, table_, .flags = FIELD_REQUIRED, .doc = doc_)

/* ---- read ---------------------------------------------------------------------------------- */

struct read_body {
	struct str sandbox, path;
	uint64_t offset;
	bool has_limit;
	uint32_t limit;
	enum encoding encoding;
};
static const struct field read_fields[] = {
	API_SANDBOX_ROW(struct read_body),
	PATH_ROW(struct read_body, "A regular file."),
	FIELD(struct read_body, offset, .max = INT64_MAX, .doc = "First byte to read."),
	FIELD(struct read_body, limit, .min = 1, .max = READ_MAX,
	      .has = FIELD_HAS(struct read_body, has_limit),
	      .doc = "Bytes to read at most. Absent: to the end, which is refused where that is more "
		     "than 4194304."),
	FIELD_ENUM(struct read_body, encoding, encoding_names, .def = DEFAULT_ENUM(ENCODING_UTF8),
		   .doc = "How content stands for the bytes; what is not UTF-8 wants base64."),
};
static const struct field_table read_body = FIELD_TABLE(struct read_body, read_fields);
struct read_params {
	struct read_body body;
};
static const struct field read_parts[] = { BODY(struct read_params, read_body, "The file.") };
static const struct field_table read_input = FIELD_TABLE(struct read_params, read_parts);

struct content {
	struct str content;
	enum encoding encoding;
	uint64_t size;
	bool eof;
};
static const struct field content_fields[] = {
	FIELD(struct content, content, .flags = FIELD_REQUIRED | FIELD_NUL_OK,
	      .doc = "What was read."),
	FIELD(struct content, size, .flags = FIELD_REQUIRED, .doc = "Bytes of the whole file."),
	FIELD_ENUM(struct content, encoding, encoding_names, .flags = FIELD_REQUIRED,
		   .doc = "How content stands for the bytes."),
	FIELD(struct content, eof, .flags = FIELD_REQUIRED, .doc = "The end of the file was read."),
};
static const struct field_table content_table = FIELD_TABLE(struct content, content_fields);

struct reading {
	struct call *call;
	const struct read_body *p;
};

static int shape(const struct read_body *p, struct str bytes, uint64_t size, struct buf *base64,
		 struct content *ret, struct err *e)
{
	size_t max = p->has_limit ? p->limit : READ_MAX;

	*ret = (struct content){ bytes, p->encoding, size, bytes.n <= max };
	if (!ret->eof && !p->has_limit)
		return err_set(e, ERR_TOO_LARGE,
			       "the file has %" PRIu64 " bytes, and %d are read at once: give "
			       "offset and limit",
			       size, READ_MAX);
	if (!ret->eof)
		ret->content.n = max;
	if (p->encoding == ENCODING_BASE64) {
		if (base64_encode(base64, ret->content, e) < 0)
			return -1;
		ret->content = buf_str(base64);
	} else if (!utf8_valid(ret->content)) {
		return err_set(e, ERR_INVALID, "encoding: this is not UTF-8 text; ask for base64");
	}
	return 0;
}

static void on_read(void *arg, struct str bytes, const struct file_stat *st, const struct err *err)
{
	const struct reading *r = arg;
	autobuf struct buf base64 = BUF_INIT(READ_MAX / 3 * 4 + 8);
	struct err e = ERR_INIT;
	struct content content;

	if (err)
		call_fail(r->call, err);
	else if (shape(r->p, bytes, st->size, &base64, &content, &e) < 0)
		call_fail(r->call, &e);
	else
		call_answer(r->call, &content);
}

static void run_read(struct call *c, const void *params)
{
	const struct read_body *p = &((const struct read_params *)params)->body;
	struct err e = ERR_INIT;
	struct sandbox *sb = api_enter(c, p->sandbox, p->path);
	struct reading *r;
	size_t want;

	if (!sb)
		return; /* and p is gone with the call */
	want = (p->has_limit ? p->limit : READ_MAX) + 1u;
	r = arena_alloc(call_arena(c), sizeof(*r), &e);
	if (!r || call_reserve(c, want, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	*r = (struct reading){ c, p };
	file_read_start(sb, p->path, p->offset, want, on_read, r);
}

/* ---- write --------------------------------------------------------------------------------- */

struct write_body {
	struct str sandbox, path, content;
	enum encoding encoding;
	uint32_t mode;
};
static const struct field write_fields[] = {
	API_SANDBOX_ROW(struct write_body),
	PATH_ROW(struct write_body, "The file; directories above it are made."),
	FIELD(struct write_body, content, .flags = FIELD_REQUIRED | FIELD_NUL_OK,
	      .doc = "All that is in it then."),
	FIELD(struct write_body, mode, .max = 07777, .def = DEFAULT_INT(MODE_DEFAULT),
	      .doc = "Permission bits of a new file, as a number: 420 is 0644. One that is there "
		     "keeps its own."),
	FIELD_ENUM(struct write_body, encoding, encoding_names, .def = DEFAULT_ENUM(ENCODING_UTF8),
		   .doc = "How content stands for the bytes."),
};
static const struct field_table write_body = FIELD_TABLE(struct write_body, write_fields);
struct write_params {
	struct write_body body;
};
static const struct field write_parts[] = { BODY(struct write_params, write_body, "The file.") };
static const struct field_table write_input = FIELD_TABLE(struct write_params, write_parts);

/* The bytes that content stands for, in the call's arena where they are others. */
static int bytes_of(struct call *c, const struct write_body *p, struct str *ret, struct err *e)
{
	autobuf struct buf bytes = BUF_INIT(p->content.n);
	char *room;

	*ret = p->content;
	if (p->encoding != ENCODING_BASE64 || p->content.n == 0)
		return 0;
	if (base64_decode(&bytes, p->content, e) < 0)
		return err_wrap(e, "content");
	room = arena_dup(call_arena(c), buf_str(&bytes), e);
	if (!room)
		return -1;
	*ret = (struct str){ room, bytes.n };
	return 0;
}

static void run_write(struct call *c, const void *params)
{
	const struct write_body *p = &((const struct write_params *)params)->body;
	const struct file_write_opts opts = { .mode = p->mode, .make_parents = true };
	struct sandbox *sb = api_enter(c, p->sandbox, p->path);
	struct err e = ERR_INIT;
	struct str bytes;

	if (!sb)
		return;
	if (bytes_of(c, p, &bytes, &e) < 0)
		call_fail(c, &e);
	else
		file_write_start(sb, p->path, bytes, &opts, api_done, c);
}

/* ---- list and stat ------------------------------------------------------------------------- */

struct path_body {
	struct str sandbox, path;
};
static const struct field path_fields[] = {
	API_SANDBOX_ROW(struct path_body),
	PATH_ROW(struct path_body, "Absolute, or from the sandbox's working directory on."),
};
static const struct field_table path_body = FIELD_TABLE(struct path_body, path_fields);
struct path_params {
	struct path_body body;
};
static const struct field path_parts[] = { BODY(struct path_params, path_body, "Where.") };
static const struct field_table path_input = FIELD_TABLE(struct path_params, path_parts);

static const char *const type_names[] = {
	[FILE_REGULAR] = "file",
	[FILE_DIRECTORY] = "directory",
	[FILE_SYMLINK] = "symlink",
	[FILE_OTHER] = "other",
};

struct entry {
	struct str name;
	bool is_dir;
	enum file_type type;
	uint64_t size;
	uint32_t mode;
	int64_t modified_at;
};
#define ENTRY_ROWS                                                                                 \
	FIELD(struct entry, is_dir, .flags = FIELD_REQUIRED, .doc = "It is a directory."),         \
		FIELD_ENUM(struct entry, type, type_names, .flags = FIELD_REQUIRED,                \
			   .doc = "What it is."),                                                  \
		FIELD(struct entry, size, .flags = FIELD_REQUIRED, .doc = "Bytes."),               \
		FIELD(struct entry, mode, .flags = FIELD_REQUIRED,                                 \
		      .doc = "Permission bits, as a number."),                                     \
		FIELD(struct entry, modified_at, .flags = FIELD_REQUIRED,                          \
		      .doc = "Seconds since 1970.")

static const struct field entry_fields[] = {
	FIELD(struct entry, name, .flags = FIELD_REQUIRED, .doc = "Without the directory."),
	ENTRY_ROWS,
};
static const struct field_table entry_table = FIELD_TABLE(struct entry, entry_fields);
static struct entry entry_of(struct str name, const struct file_stat *st)
{
	return (struct entry){ .name = name,
			       .is_dir = st->type == FILE_DIRECTORY,
			       .type = st->type,
			       .size = st->size,
			       .mode = st->mode,
			       .modified_at = st->mtime_ms / 1000 };
}

struct listing {
	struct {
		const struct entry *p;
		size_t n;
	} entries;
	bool truncated;
};
static const struct field listing_fields[] = {
	FIELD_OBJECTS(struct listing, entries, entry_table, .flags = FIELD_REQUIRED,
		      .doc = "By name."),
	FIELD(struct listing, truncated, .flags = FIELD_REQUIRED, .doc = "There are more."),
};
static const struct field_table listing_table = FIELD_TABLE(struct listing, listing_fields);

static void on_list(void *arg, const struct file_entry *entries, size_t n, bool truncated,
		    const struct err *err)
{
	struct call *c = arg;
	struct err e = ERR_INIT;
	struct entry *p = err ? NULL : arena_array(call_arena(c), n, sizeof(*p), &e);
	const struct listing answer = { { p, n }, truncated };

	if (!p) {
		call_fail(c, err ? err : &e);
		return;
	}
	for (size_t i = 0; i < n; i++)
		p[i] = entry_of(entries[i].name, &entries[i].st);
	call_answer(c, &answer);
}

static void run_list(struct call *c, const void *params)
{
	const struct path_body *p = &((const struct path_params *)params)->body;
	struct sandbox *sb = api_enter(c, p->sandbox, p->path);

	if (sb)
		file_list_start(sb, p->path, on_list, c);
}

/* ---- those of op/files.h ------------------------------------------------------------------- */

static const struct field done_fields[] = {
	FIELD(struct files_done, status, .flags = FIELD_REQUIRED, .doc = "ok"),
};
static const struct field_table done_table = FIELD_TABLE(struct files_done, done_fields);

static const struct field info_fields[] = {
	FIELD(struct file_info, path, .flags = FIELD_REQUIRED, .doc = "As it was sent."),
	FIELD(struct file_info, is_dir, .flags = FIELD_REQUIRED, .doc = "It is a directory."),
	FIELD_ENUM(struct file_info, type, file_type_names, .flags = FIELD_REQUIRED,
		   .doc = "What it is."),
	FIELD(struct file_info, size, .flags = FIELD_REQUIRED, .doc = "Bytes."),
	FIELD(struct file_info, mode, .flags = FIELD_REQUIRED,
	      .doc = "Permission bits, as a number."),
	FIELD(struct file_info, modified_at, .flags = FIELD_REQUIRED, .doc = "Seconds since 1970."),
};
static const struct field_table info_table = FIELD_TABLE(struct file_info, info_fields);

/* ---- the rows ------------------------------------------------------------------------------ */

#define FILE_ROUTE(name_, effect_, doc_, input_, output_, ...)                                     \
	{                                                                                          \
		.id = "files." #name_,                                                             \
		.op = &(const struct op){ .action = "files." #name_,                               \
					  .doc = doc_,                                             \
					  .effect = effect_,                                       \
					  .request = &(input_),                                    \
					  .target = 1 + offsetof(struct read_body, sandbox),       \
					  .result = &(output_),                                    \
					  .run = run_##name_ },                                    \
		.method = HTTP_POST, .path = "/v1/files/" #name_,                                  \
		.errors = API_MAY_SANDBOX | API_MAY(FILE_FAILED) | API_MAY(FORBIDDEN), __VA_ARGS__ \
	}

#define FILE_PROJECTION(name_, ...)                                                                \
	{                                                                                          \
		.id = "files." #name_, .op = &files_##name_##_op, .projected = true,               \
		.method = HTTP_POST, .path = "/v1/files/" #name_,                                  \
		.errors = API_MAY_SANDBOX | API_MAY(FILE_FAILED) | API_MAY(FORBIDDEN), __VA_ARGS__ \
	}

static const struct api_route rows[] = {
	FILE_ROUTE(read, OP_READ, "Reads a file, whole or a range of its bytes.", read_input,
		   content_table),
	FILE_ROUTE(write, OP_WRITE,
		   "Writes a file: others see the old content or the new, never a part.",
		   write_input, api_status_table, .body_max = WRITE_MAX),
	FILE_ROUTE(list, OP_READ, "What is in a directory.", path_input, listing_table),
	FILE_PROJECTION(stat, .answer = &info_table),
	FILE_PROJECTION(mkdir, .answer = &done_table),
	FILE_PROJECTION(remove, .answer = &done_table),
	FILE_PROJECTION(move, .answer = &done_table),
};
const struct api_resource api_files = API_RESOURCE(rows);
