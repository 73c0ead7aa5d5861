/* ReadFile, WriteFile, List, Stat, Mkdir, Remove. */
#include "door/connect/connect.h"
#include "op/files.h"

enum {
	WRITE_BODY_MAX = 48 << 20, /* a file of 32 MiB in base64, and what is around it */
	WRITE_MAX = 32 << 20,
	MODE_DEFAULT = 0644,
};

struct path_message {
	struct str path;
};
#define PATH_ROW                                                                                   \
	FIELD(struct path_message, path, .flags = FIELD_REQUIRED, .min = 1, .max = API_PATH_MAX,   \
	      .doc = "Absolute, or from the sandbox's working directory on.")
static const struct field path_fields[] = { PATH_ROW };
static const struct field_table path_table = FIELD_TABLE(struct path_message, path_fields);
struct path_params {
	struct connect_header header;
	struct path_message body;
};
static const struct field path_parts[] = {
	CONNECT_HEADER(struct path_params),
	CONNECT_BODY(struct path_params, path_table, "Where."),
};
static const struct field_table path_input = FIELD_TABLE(struct path_params, path_parts);
/* ---- ReadFile ------------------------------------------------------------------------------ */

struct reading {
	struct call *call;
	struct sandbox *sb; /* busy until the call's end */
	struct str path;
	uint64_t offset;
	bool streams, waits;
};

static void read_on(struct reading *r);

static void on_room(void *data)
{
	struct reading *r = data;

	if (r->waits)
		read_on(r);
}

/* The first read decides whether there is a stream at all. */
static void on_read(void *arg, struct str bytes, const struct file_stat *st, const struct err *err)
{
	struct reading *r = arg;
	struct err e = ERR_INIT;

	if (!err && !r->streams && ask_stream_start(r->call, on_room, r, &e) < 0)
		err = &e;
	if (err || call_cancelled(r->call)) {
		if (!err)
			err_set(&e, ERR_CANCELLED, "the client went away");
		call_fail(r->call, err ? err : &e);
		return;
	}
	r->streams = true;
	r->offset += bytes.n;
	connect_send_chunk(r->call, bytes, bytes.n < CONNECT_CHUNK);
	if (bytes.n < CONNECT_CHUNK)
		call_answer(r->call, NULL);
	else if (!ask_stream_full(r->call))
		read_on(r);
	else
		r->waits = true;
}

static void read_on(struct reading *r)
{
	r->waits = false;
	file_read_start(r->sb, r->path, r->offset, CONNECT_CHUNK, on_read, r);
}

/* Nobody makes room any more, so nobody else would end it. */
static void on_cancel(void *data)
{
	struct reading *r = data;

	if (r->waits)
		read_on(r);
}

static void run_read(struct call *c, const void *params)
{
	const struct path_params *p = params;
	struct err e = ERR_INIT;
	struct sandbox *sb = api_enter(c, p->header.sandbox, p->body.path);
	struct reading *r;

	if (!sb)
		return;
	r = arena_alloc(call_arena(c), sizeof(*r), &e);
	if (!r) {
		call_fail(c, &e);
		return;
	}
	*r = (struct reading){ .call = c, .sb = sb, .path = p->body.path };
	call_on_cancel(c, on_cancel, r);
	read_on(r);
}

/* ---- WriteFile ----------------------------------------------------------------------------- */

struct write_open {
	struct str path;
	uint32_t mode;
};
static const struct field open_fields[] = {
	FIELD(struct write_open, path, .flags = FIELD_REQUIRED, .min = 1, .max = API_PATH_MAX,
	      .doc = "The file; directories above it are made."),
	FIELD(struct write_open, mode, .max = 07777,
	      .doc = "Permission bits of a new file, as a number; 0: 0644."),
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
		     .doc = "The file; in the first message."),
	FIELD(struct write_message, data, .has = FIELD_HAS(struct write_message, has_data),
	      .doc = "Its next bytes; in each other."),
};
static const struct field_table write_table = FIELD_TABLE(struct write_message, write_fields);

struct write_params {
	struct connect_header header;
	struct write_message body;
};
static const struct field write_parts[] = {
	CONNECT_HEADER(struct write_params),
	CONNECT_BODY(struct write_params, write_table, "The first message."),
};
static const struct field_table write_input = FIELD_TABLE(struct write_params, write_parts);

struct writing {
	struct call *call;
	struct str bytes;
};

static void on_written(void *arg, const struct err *err)
{
	const struct writing *w = arg;
	const struct connect_written done = { w->bytes.n };

	if (err)
		call_fail(w->call, err);
	else
		connect_answer(w->call, &connect_written_table, &done);
}

/* The bytes of all messages behind the first, in the call's arena. */
static int read_data(struct call *c, struct str *ret, struct err *e)
{
	autobuf struct buf data = BUF_INIT(WRITE_MAX);
	const struct json_val *v;
	struct write_message m;
	char *copy;

	while ((v = ask_next_message(c, e))) {
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

static void run_write(struct call *c, const void *params)
{
	const struct write_params *p = params;
	const struct write_open *o = &p->body.open;
	const struct file_write_opts opts = { .mode = o->mode ? o->mode : MODE_DEFAULT,
					      .make_parents = true };
	struct err e = ERR_INIT;
	struct writing *w = arena_alloc(call_arena(c), sizeof(*w), &e);
	struct sandbox *sb;

	if (w && (!p->body.has_open || p->body.has_data)) {
		err_set(&e, ERR_INVALID, "the first message has open, and nothing else");
		w = NULL;
	}
	if (!w || read_data(c, &w->bytes, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	w->call = c;
	sb = api_enter(c, p->header.sandbox, o->path);
	if (sb)
		file_write_start(sb, o->path, w->bytes, &opts, on_written, w);
}

/* ---- List and Stat ------------------------------------------------------------------------- */

struct info {
	struct str name, path;
	bool is_dir;
	uint64_t size;
	uint32_t mode;
	int64_t modified_at;
};
static const struct field info_fields[] = {
	FIELD(struct info, name, .flags = FIELD_REQUIRED, .doc = "Without the directory."),
	FIELD(struct info, path, .flags = FIELD_REQUIRED, .doc = "With it."),
	FIELD_NAMED(struct info, is_dir, "isDir", .flags = FIELD_REQUIRED, .doc = "A directory."),
	FIELD(struct info, size, .flags = FIELD_REQUIRED, .doc = "Bytes."),
	FIELD(struct info, mode, .flags = FIELD_REQUIRED, .doc = "Permission bits, as a number."),
	FIELD_NAMED(struct info, modified_at, "modifiedAtUnix", .flags = FIELD_REQUIRED,
		    .doc = "Seconds since 1970."),
};
static const struct field_table info_table = FIELD_TABLE(struct info, info_fields);

static struct info info_of(struct str name, struct str path, const struct file_stat *st)
{
	return (struct info){ name,	path,	  st->type == FILE_DIRECTORY,
			      st->size, st->mode, st->mtime_ms / 1000 };
}

static const struct field stat_fields[] = {
	FIELD(struct file_info, name, .flags = FIELD_REQUIRED, .doc = "Without the directory."),
	FIELD(struct file_info, path, .flags = FIELD_REQUIRED, .doc = "With it."),
	FIELD_NAMED(struct file_info, is_dir, "isDir", .flags = FIELD_REQUIRED,
		    .doc = "A directory."),
	FIELD(struct file_info, size, .flags = FIELD_REQUIRED, .doc = "Bytes."),
	FIELD(struct file_info, mode, .flags = FIELD_REQUIRED,
	      .doc = "Permission bits, as a number."),
	FIELD_NAMED(struct file_info, modified_at, "modifiedAtUnix", .flags = FIELD_REQUIRED,
		    .doc = "Seconds since 1970."),
};
static const struct field_table stat_table = FIELD_TABLE(struct file_info, stat_fields);

struct list_message {
	struct str parent, page_token, filter;
	int32_t page_size;
};
static const struct field list_fields[] = {
	FIELD(struct list_message, parent, .flags = FIELD_REQUIRED, .min = 1, .max = API_PATH_MAX,
	      .doc = "The directory."),
	FIELD_NAMED(struct list_message, page_size, "pageSize",
		    .doc = "How many at once; 0 or less: all."),
	FIELD_NAMED(struct list_message, page_token, "pageToken", .max = 255,
		    .doc = "nextPageToken of the page before."),
	FIELD(struct list_message, filter, .doc = "Must be empty: there is no filter."),
};
static const struct field_table list_table = FIELD_TABLE(struct list_message, list_fields);

struct list_params {
	struct connect_header header;
	struct list_message body;
};
static const struct field list_parts[] = {
	CONNECT_HEADER(struct list_params),
	CONNECT_BODY(struct list_params, list_table, "The directory."),
};
static const struct field_table list_input = FIELD_TABLE(struct list_params, list_parts);

struct infos {
	struct {
		const struct info *p;
		size_t n;
	} entries;
	struct str next_page_token;
};
static const struct field infos_fields[] = {
	FIELD_OBJECTS(struct infos, entries, info_table, .flags = FIELD_REQUIRED,
		      .doc = "By name."),
	FIELD_NAMED(struct infos, next_page_token, "nextPageToken",
		    .doc = "Where the next page begins; absent: this is the last."),
};
static const struct field_table infos_table = FIELD_TABLE(struct infos, infos_fields);

struct listing {
	struct call *call;
	const struct list_message *p;
};

/* The entries behind the token, as many as fit on the page. */
static int shape(const struct listing *l, const struct file_entry *entries, size_t n,
		 struct infos *ret, struct err *e)
{
	struct arena *a = call_arena(l->call);
	struct info *infos = arena_array(a, n, sizeof(*infos), e);
	size_t max = l->p->page_size > 0 ? (size_t)l->p->page_size : n, taken = 0;
	struct str parent = l->p->parent;

	if (!infos)
		return -1;
	for (size_t i = 0; i < n; i++) {
		char *path;

		if (str_cmp(entries[i].name, l->p->page_token) <= 0)
			continue;
		if (taken == max) {
			ret->next_page_token = infos[taken - 1].name;
			break;
		}
		path = arena_printf(a, e, "%.*s%s%.*s", STR_ARG(parent),
				    parent.p[parent.n - 1] == '/' ? "" : "/",
				    STR_ARG(entries[i].name));
		if (!path)
			return -1;
		infos[taken++] = info_of(entries[i].name, str_of(path), &entries[i].st);
	}
	ret->entries.p = infos;
	ret->entries.n = taken;
	return 0;
}

static void on_list(void *arg, const struct file_entry *entries, size_t n, bool truncated,
		    const struct err *err)
{
	const struct listing *l = arg;
	struct infos answer = { .next_page_token = STR_NONE };
	struct err e = ERR_INIT;

	if (!err && truncated)
		err_set(&e, ERR_TOO_LARGE,
			"the directory has more than %d entries; list it by "
			"ExecStream",
			FILE_LIST_MAX);
	if (err || truncated || shape(l, entries, n, &answer, &e) < 0)
		call_fail(l->call, err ? err : &e);
	else
		call_answer(l->call, &answer);
}

static void run_list(struct call *c, const void *params)
{
	const struct list_params *p = params;
	struct sandbox *sb;
	struct err e = ERR_INIT;
	struct listing *l;

	if (p->body.filter.n > 0) {
		err_set(&e, ERR_UNSUPPORTED, "filter: there is none in this version");
		call_fail(c, &e);
		return;
	}
	sb = api_enter(c, p->header.sandbox, p->body.parent);
	if (!sb)
		return;
	l = arena_alloc(call_arena(c), sizeof(*l), &e);
	if (!l) {
		call_fail(c, &e);
		return;
	}
	*l = (struct listing){ c, &p->body };
	file_list_start(sb, p->body.parent, on_list, l);
}

/* ---- those of op/files.h ------------------------------------------------------------------- */

static const struct op_member by_header[] = { CONNECT_BY_HEADER };
/* The clients of mitos count on a tree to go; who says false is asked to mean it. */
static const struct op_member remove_members[] = {
	CONNECT_BY_HEADER,
	{ "recursive", .def = DEFAULT_BOOL(true),
	  .doc = "A directory with all that is in it; false: only an empty one." },
};

/* ---- the rows ------------------------------------------------------------------------------ */

static const struct api_route rows[] = {
	CONNECT_METHOD("ReadFile", "files.read", OP_READ, API_FRAMES, run_read,
		       "Reads a file to its end.", path_input, connect_chunk_table),
	CONNECT_METHOD("WriteFile", "files.write", OP_WRITE, API_FRAMES, run_write,
		       "Writes a file: others see the old content or the new, never a part.",
		       write_input, connect_written_table, .messages = true,
		       .body_max = WRITE_BODY_MAX),
	CONNECT_METHOD("List", "files.list", OP_READ, API_OBJECT, run_list,
		       "What is in a directory.", list_input, infos_table),
	CONNECT_PROJECTION("Stat", &files_stat_op, by_header, .answer = &stat_table),
	CONNECT_PROJECTION("Mkdir", &files_mkdir_op, by_header, .answer = &connect_empty_table),
	CONNECT_PROJECTION("Remove", &files_remove_op, remove_members,
			   .answer = &connect_empty_table),
};
const struct api_resource api_connect_files = API_RESOURCE(rows);
