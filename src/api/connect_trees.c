/* Archive, Upload, Watch. */
#include "api/connect.h"
#include "api/transfer.h"
#include "api/watch.h"
#include "base/base64.h"

enum { CHUNK_MAX = 256 << 10, BODY_MAX = 48 << 20, UPLOAD_MAX = 32 << 20 };

static struct sandbox *enter(struct call *c, const struct connect_header *h, struct str path)
{
	struct err e = ERR_INIT;
	struct sandbox *sb;

	ask_context(c)->path = path;
	sb = ask_sandbox(c, h->sandbox, &e);
	if (!sb)
		call_fail(c, &e);
	return sb;
}

static struct str or_here(struct str path)
{
	return path.n ? path : STR_LIT(".");
}

/* ---- Archive ------------------------------------------------------------------------------- */

struct tree_message {
	struct str path;
	bool recursive;
};
#define PATH_ROW                                                                                   \
	FIELD(struct tree_message, path, .max = API_PATH_MAX,                                      \
	      .doc = "Absent or empty: the sandbox's working directory.")
static const struct field path_fields[] = { PATH_ROW };
static const struct field_table path_table = FIELD_TABLE(struct tree_message, path_fields);
static const struct field watch_fields[] = {
	PATH_ROW,
	FIELD(struct tree_message, recursive, .doc = "All directories below it, too."),
};
static const struct field_table watch_table = FIELD_TABLE(struct tree_message, watch_fields);

struct tree_params {
	struct connect_header header;
	struct tree_message body;
};
static const struct field archive_parts[] = {
	CONNECT_HEADER(struct tree_params),
	CONNECT_BODY(struct tree_params, path_table, "What."),
};
static const struct field_table archive_input = FIELD_TABLE(struct tree_params, archive_parts);
static const struct field watch_parts[] = {
	CONNECT_HEADER(struct tree_params),
	CONNECT_BODY(struct tree_params, watch_table, "What."),
};
static const struct field_table watch_input = FIELD_TABLE(struct tree_params, watch_parts);

struct chunk {
	struct str data;
};
static const struct field chunk_fields[] = {
	FIELD(struct chunk, data, .flags = FIELD_REQUIRED, .doc = "The next bytes of the archive."),
};
static const struct field_table chunk_table = FIELD_TABLE(struct chunk, chunk_fields);

static void send_chunk(struct call *c, struct str bytes)
{
	autobuf struct buf text = BUF_INIT(CHUNK_MAX);
	struct chunk chunk;
	struct err e;

	if (base64_encode(&text, bytes, &e) < 0)
		return;
	chunk.data = buf_str(&text);
	ask_send(c, &chunk_table, &chunk);
}

static void run_archive(struct call *c, const void *params)
{
	const struct tree_params *p = params;
	struct sandbox *sb = enter(c, &p->header, p->body.path);

	if (sb)
		transfer_download(c, sb, or_here(p->body.path), send_chunk);
}

/* ---- Upload -------------------------------------------------------------------------------- */

struct upload_message {
	bool has_open, has_data;
	struct tree_message open;
	struct str data;
};
static const struct field upload_fields[] = {
	FIELD_OBJECT(struct upload_message, open, path_table,
		     .has = FIELD_HAS(struct upload_message, has_open),
		     .doc = "The directory; in the first message."),
	FIELD(struct upload_message, data, .has = FIELD_HAS(struct upload_message, has_data),
	      .doc = "The next bytes of the archive; in each other."),
};
static const struct field_table upload_table = FIELD_TABLE(struct upload_message, upload_fields);

struct upload_params {
	struct connect_header header;
	struct upload_message body;
};
static const struct field upload_parts[] = {
	CONNECT_HEADER(struct upload_params),
	CONNECT_BODY(struct upload_params, upload_table, "The first message."),
};
static const struct field_table upload_input = FIELD_TABLE(struct upload_params, upload_parts);

static const struct field_table empty_table = { .size = sizeof(struct api_nothing) };

static void on_no_room(void *data)
{
}

static void on_uploaded(struct call *c)
{
	static const struct api_nothing nothing = { false };
	struct err e;

	if (ask_stream_start(c, on_no_room, NULL, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	ask_send(c, &empty_table, &nothing);
	call_answer(c, &(struct call_answer){ .structured = NULL });
}

/* The bytes of all messages behind the first, in the call's arena. */
static int read_data(struct call *c, struct str *ret, struct err *e)
{
	autobuf struct buf data = BUF_INIT(UPLOAD_MAX);
	const struct json_val *v;
	struct upload_message m;
	char *copy;

	while ((v = ask_next_message(c, e))) {
		if (field_decode(&upload_table, v, call_arena(c), &m, e) < 0)
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

static void run_upload(struct call *c, const void *params)
{
	const struct upload_params *p = params;
	struct err e = ERR_INIT;
	struct sandbox *sb;
	struct str bytes;

	if (!p->body.has_open || p->body.has_data)
		err_set(&e, ERR_INVALID, "the first message has open, and nothing else");
	if (e.code != ERR_NONE || read_data(c, &bytes, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	sb = enter(c, &p->header, p->body.open.path);
	if (sb)
		transfer_upload(c, sb, or_here(p->body.open.path), &bytes, on_uploaded);
}

/* ---- Watch --------------------------------------------------------------------------------- */

struct event {
	enum change_kind kind;
	struct str path;
	bool is_dir;
	uint32_t cookie;
};
static const struct field event_fields[] = {
	FIELD_ENUM(
		struct event, kind, watch_kind_names, .flags = FIELD_REQUIRED,
		.doc = "ready is the first. overflow: more happened than was told. ended: the directory is "
		       "gone."),
	FIELD(struct event, path, .doc = "Below the directory."),
	FIELD_NAMED(struct event, is_dir, "isDir", .flags = FIELD_REQUIRED, .doc = "A directory."),
	FIELD(struct event, cookie, .flags = FIELD_REQUIRED,
	      .doc = "Of moved_from and moved_to: the same for both ends of one move; else 0."),
};
static const struct field_table event_table = FIELD_TABLE(struct event, event_fields);

static void send_event(struct call *c, const struct file_change *change)
{
	const struct event ev = { change->kind, change->path.n ? change->path : STR_NONE,
				  change->is_directory, change->cookie };

	ask_send(c, &event_table, &ev);
}

static void run_watch(struct call *c, const void *params)
{
	const struct tree_params *p = params;
	struct sandbox *sb = enter(c, &p->header, p->body.path);

	if (sb)
		watch_speak(c, sb, or_here(p->body.path), p->body.recursive, send_event);
}

/* ---- the rows ------------------------------------------------------------------------------ */

#define METHOD(name_, run_, doc_, input_, output_, ...)                                            \
	{                                                                                          \
		.tool = { .name = name_,                                                           \
			  .doc = doc_,                                                             \
			  .input = &(input_),                                                      \
			  .output = &(output_),                                                    \
			  .run = run_ },                                                           \
		.kind = API_CONNECT, .method = HTTP_POST, .path = CONNECT_PATH name_,              \
		.shape = API_FRAMES,                                                               \
		.errors = API_MAY_SANDBOX | API_MAY(FILE_FAILED) | API_MAY(FORBIDDEN) |            \
			  API_MAY(EXEC_TIMEOUT) | API_MAY(TOO_MANY_STREAMS),                       \
		__VA_ARGS__                                                                        \
	}

static const struct api_route rows[] = {
	METHOD("Archive", run_archive,
	       "A directory with all that is in it, or a file, as a tar archive.", archive_input,
	       chunk_table),
	METHOD("Upload", run_upload, "Unpacks a tar archive of at most 32 MiB in a directory.",
	       upload_input, empty_table, .messages = true, .body_max = BODY_MAX),
	METHOD("Watch", run_watch, "What happens in a directory, told as it happens.", watch_input,
	       event_table),
};
const struct api_resource api_connect_trees = API_RESOURCE(rows);
