/* ReadFile, WriteFile, List, Stat, Mkdir, Remove. */
#include "door/connect/connect.h"

enum { WRITE_BODY_MAX = 48 << 20 }; /* a file of 32 MiB in base64, and what is around it */

/* ---- ReadFile ------------------------------------------------------------------------------ */

static const struct op_member read_members[] = {
	CONNECT_BY_HEADER,
	{ "path", .doc = "Absolute path, or relative to the sandbox's working directory." },
	{ "offset", .in = OP_HIDDEN },
	{ "limit", .in = OP_HIDDEN },
	{ "encoding", .in = OP_HIDDEN },
	{ "raw", .in = OP_HIDDEN },
};

struct read_message {
	struct str path;
};
static const struct field read_fields[] = { FIELD(struct read_message, path) };
static const struct field_table read_proto = FIELD_TABLE(struct read_message, read_fields);

/* ---- WriteFile ----------------------------------------------------------------------------- */

struct write_open {
	struct str path;
	uint32_t mode;
};
static const struct field open_fields[] = {
	FIELD(struct write_open, path, .flags = FIELD_REQUIRED, .min = 1, .max = API_PATH_MAX,
	      .doc = "Path of the file. Missing parent directories are made."),
	FIELD(struct write_open, mode, .max = 07777,
	      .doc = "Permission bits of a new file, as a number; 0 means octal 0644."),
};
static const struct field_table open_table = FIELD_TABLE(struct write_open, open_fields);

struct write_message {
	bool has_open, has_data;
	struct write_open open;
	struct str data;
};
static const struct field write_fields[] = {
	FIELD_OBJECT(struct write_message, open, open_table,
		     .has = FIELD_HAS(struct write_message, has_open),
		     .doc = "The file to write; in the first message only."),
	FIELD(struct write_message, data, .flags = FIELD_BYTES,
	      .has = FIELD_HAS(struct write_message, has_data),
	      .doc = "Next bytes of the file; in every later message."),
};
static const struct field_table write_table = FIELD_TABLE(struct write_message, write_fields);

/* The bytes of all messages behind the first, in the call's arena. */
static int read_data(struct call *c, struct str *ret, struct err *e)
{
	autobuf struct buf data = BUF_INIT(FILES_WRITE_MAX);
	const struct json_val *v;
	struct write_message m;
	char *copy;

	while ((v = exchange_next_message(c, e))) {
		if (field_decode(&write_table, v, call_arena(c), &m, e) < 0)
			return -1;
		if (m.has_open || !m.has_data)
			return err_set(e, ERR_INVALID, "behind the first message, each has data");
		if (connect_bytes(&data, "data", m.data, e) < 0)
			return -1;
	}
	if (e->code != ERR_NONE)
		return -1;
	copy = arena_dup(call_arena(c), buf_str(&data), e);
	*ret = (struct str){ copy, data.n };
	return copy ? 0 : -1;
}

static int read_write(struct call *c, void *request, struct err *e)
{
	struct files_write_request *q = request;
	struct write_message m;

	if (field_decode(&write_table, exchange_body(c), call_arena(c), &m, e) < 0)
		return err_wrap(e, "body");
	if (!m.has_open || m.has_data)
		return err_set(e, ERR_INVALID, "the first message has open, and nothing else");
	q->path = m.open.path;
	q->mode = m.open.mode;
	return read_data(c, &q->content, e);
}

static const struct field written_fields[] = {
	FIELD_NAMED(struct file_written, bytes, "bytesWritten", .flags = FIELD_REQUIRED,
		    .doc = "Number of bytes written."),
};
static const struct field_table written_table = FIELD_TABLE(struct file_written, written_fields);

/* ---- List and Stat ------------------------------------------------------------------------- */

struct info {
	struct str name, path;
	bool is_dir;
	uint64_t size;
	uint32_t mode;
	int64_t modified_at;
};
static const struct field info_fields[] = {
	FIELD(struct info, name, .flags = FIELD_REQUIRED, .doc = "Name without the directory."),
	FIELD(struct info, path, .flags = FIELD_REQUIRED, .doc = "Path with the directory."),
	FIELD_NAMED(struct info, is_dir, "isDir", .flags = FIELD_REQUIRED,
		    .doc = "Whether it is a directory."),
	FIELD(struct info, size, .flags = FIELD_REQUIRED, .doc = "Size in bytes."),
	FIELD(struct info, mode, .flags = FIELD_REQUIRED, .doc = "Permission bits, as a number."),
	FIELD_NAMED(struct info, modified_at, "modifiedAtUnix", .flags = FIELD_REQUIRED,
		    .doc = "Time of the last change, in seconds since 1970."),
};
static const struct field_table info_table = FIELD_TABLE(struct info, info_fields);

static const struct field stat_fields[] = {
	FIELD(struct file_info, name, .flags = FIELD_REQUIRED,
	      .doc = "Name without the directory."),
	FIELD(struct file_info, path, .flags = FIELD_REQUIRED, .doc = "Path with the directory."),
	FIELD_NAMED(struct file_info, is_dir, "isDir", .flags = FIELD_REQUIRED,
		    .doc = "Whether it is a directory."),
	FIELD(struct file_info, size, .flags = FIELD_REQUIRED, .doc = "Size in bytes."),
	FIELD(struct file_info, mode, .flags = FIELD_REQUIRED,
	      .doc = "Permission bits, as a number."),
	FIELD_NAMED(struct file_info, modified_at, "modifiedAtUnix", .flags = FIELD_REQUIRED,
		    .doc = "Time of the last change, in seconds since 1970."),
};
static const struct field_table stat_table = FIELD_TABLE(struct file_info, stat_fields);

struct list_message {
	struct str parent, page_token, filter;
	int32_t page_size;
};
static const struct field list_fields[] = {
	FIELD(struct list_message, parent, .flags = FIELD_REQUIRED, .min = 1, .max = API_PATH_MAX,
	      .doc = "Path of the directory."),
	FIELD_NAMED(struct list_message, page_size, "pageSize",
		    .doc = "Most entries per page; 0 or less: all."),
	FIELD_NAMED(struct list_message, page_token, "pageToken", .max = 255,
		    .doc = "nextPageToken of the previous page."),
	FIELD(struct list_message, filter, .doc = "Must be empty: filters are not supported."),
};
static const struct field_table list_table = FIELD_TABLE(struct list_message, list_fields);

struct infos {
	struct {
		const struct info *p;
		size_t n;
	} entries;
	struct str next_page_token;
};
static const struct field infos_fields[] = {
	FIELD_OBJECTS(struct infos, entries, info_table, .flags = FIELD_REQUIRED,
		      .doc = "Entries, sorted by name."),
	FIELD_NAMED(struct infos, next_page_token, "nextPageToken",
		    .doc = "Token for the next page; absent on the last page."),
};
static const struct field_table infos_table = FIELD_TABLE(struct infos, infos_fields);

/* mitos' own server reads over the filter. */
static int mend_list(struct mitos *m, const struct principal *who, const struct json_val *body,
		     struct json_writer *w, struct err *e)
{
	static const char *const left_out[] = { "filter" };

	exchange_write_others(w, body, left_out, ARRAY_LEN(left_out));
	return 0;
}

static int read_list(struct call *c, void *request, struct err *e)
{
	struct files_list_request *q = request;
	struct list_message m;

	if (field_decode(&list_table, exchange_body(c), call_arena(c), &m, e) < 0)
		return err_wrap(e, "body");
	if (m.filter.n > 0)
		return err_set(e, ERR_UNSUPPORTED, "filter: there is none in this version");
	q->path = m.parent;
	return 0;
}

/* The entries behind the token, as many as fit on the page. */
static int fill_page(struct arena *a, const struct files_listing *listing,
		     const struct list_message *m, struct infos *ret, struct err *e)
{
	size_t n = listing->entries.n, max = m->page_size > 0 ? (size_t)m->page_size : n;
	struct info *infos = arena_array(a, n, sizeof(*infos), e);
	size_t taken = 0;

	if (!infos)
		return -1;
	for (size_t i = 0; i < n; i++) {
		const struct file_listed *f = &listing->entries.p[i];
		char *path;

		if (str_cmp(f->name, m->page_token) <= 0)
			continue;
		if (taken == max) {
			ret->next_page_token = infos[taken - 1].name;
			break;
		}
		path = arena_printf(a, e, "%.*s%s%.*s", STR_ARG(m->parent),
				    m->parent.p[m->parent.n - 1] == '/' ? "" : "/",
				    STR_ARG(f->name));
		if (!path)
			return -1;
		infos[taken++] = (struct info){ f->name, str_of(path), f->is_dir,
						f->size, f->mode,      f->modified_at };
	}
	ret->entries.p = infos;
	ret->entries.n = taken;
	return 0;
}

static const void *show_list(struct call *c, const void *result, const struct field_table **t,
			     struct err *e)
{
	const struct files_listing *listing = result;
	struct arena *a = call_arena(c);
	struct infos *infos = arena_alloc(a, sizeof(*infos), e);
	struct list_message m;

	if (!infos || field_decode(&list_table, exchange_body(c), a, &m, e) < 0)
		return NULL;
	if (listing->truncated) {
		err_set(e, ERR_TOO_LARGE,
			"the directory has more than %d entries; list it by ExecStream",
			FILE_LIST_MAX);
		return NULL;
	}
	/* as it was spelt for the operation */
	m.parent = ((const struct files_list_request *)call_request(c))->path;
	infos->next_page_token = STR_NONE;
	*t = &infos_table;
	return fill_page(a, listing, &m, infos, e) < 0 ? NULL : infos;
}

/* ---- the others ---------------------------------------------------------------------------- */

static const struct op_member by_header[] = { CONNECT_BY_HEADER };
/* The clients of mitos count on a tree to go; who says false is asked to mean it. */
static const struct op_member remove_members[] = {
	CONNECT_BY_HEADER,
	{ "recursive", .def = DEFAULT_BOOL(true),
	  .doc = "Also remove the contents of a directory; false: only an empty one." },
};

/* ---- the rows ------------------------------------------------------------------------------ */

static const struct api_route rows[] = {
	CONNECT_PROJECTION("ReadFile", &files_read_op, read_members, .doc = "Reads a whole file.",
			   .shape = API_FRAMES, .answer = &file_chunk_table,
			   .tell = connect_tell_chunk, .proto = &read_proto),
	CONNECT_PROJECTION("WriteFile", &files_write_op, by_header, .shape = API_FRAMES,
			   .proto = &write_table, .body = &write_table, .read = read_write,
			   .answer = &written_table, .messages = true, .body_max = WRITE_BODY_MAX),
	CONNECT_PROJECTION_MAY(API_MAY(UNSUPPORTED) | API_MAY(BODY_TOO_LARGE), "List",
			       &files_list_op, by_header, .body = &list_table, .mend = mend_list,
			       .read = read_list, .answer = &infos_table, .show = show_list),
	CONNECT_PROJECTION("Stat", &files_stat_op, by_header, .answer = &stat_table),
	CONNECT_PROJECTION("Mkdir", &files_mkdir_op, by_header, .answer = &connect_empty_table),
	CONNECT_PROJECTION("Remove", &files_remove_op, remove_members,
			   .answer = &connect_empty_table),
};
const struct api_resource api_connect_files = API_RESOURCE(rows);

/* ---- for clients of mitos -------------------------------------------------------------------- */

/* Its gateway has one path for both ways: who writes begins with "open". */
static bool opens(struct ops *ops, const struct principal *who, const struct json_val *body)
{
	return json_get(body, "open") != NULL;
}

static const struct op_member by_path[] = { API_BY_PATH };
static const struct op_member read_by_path[] = {
	API_BY_PATH,
	{ "path", .doc = "Absolute path, or relative to the sandbox's working directory." },
	{ "offset", .in = OP_HIDDEN },
	{ "limit", .in = OP_HIDDEN },
	{ "encoding", .in = OP_HIDDEN },
	{ "raw", .in = OP_HIDDEN },
};
#define GATEWAY                                                                                    \
	.projected = true, .kind = API_CONNECT, .shape = API_FRAMES, .method = HTTP_POST,          \
	.path = "/v1/sandboxes/{id}/files", .messages = true, .body_max = WRITE_BODY_MAX,          \
	.errors = API_MAY_SANDBOX | API_MAY(FILE_FAILED) | API_MAY(FORBIDDEN) |                    \
		  API_MAY(EXEC_TIMEOUT) | API_MAY(TOO_MANY_STREAMS)

static const struct api_route mitos_write = {
	.id = "WriteFile",
	.op = &files_write_op,
	.members = OP_MEMBERS(by_path),
	.body = &write_table,
	.read = read_write,
	.answer = &written_table,
	GATEWAY,
};
static const struct api_route mitos_rows[] = {
	{ .id = "ReadFile",
	  .op = &files_read_op,
	  .doc = "ReadFile or WriteFile of the sandbox that the path names.",
	  .members = OP_MEMBERS(read_by_path),
	  .answer = &file_chunk_table,
	  .tell = connect_tell_chunk,
	  .is_other = opens,
	  .other = &mitos_write,
	  GATEWAY },
};
const struct api_resource api_mitos_files = API_RESOURCE(mitos_rows);
