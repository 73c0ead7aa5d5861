/* Archive and Watch. */
#include "door/connect/connect.h"
#include "door/http/transfer.h"
#include "door/http/watch.h"

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

static void send_piece(struct call *c, struct str bytes)
{
	connect_send_chunk(c, bytes, bytes.n == 0);
}

static void run_archive(struct call *c, const void *params)
{
	const struct tree_params *p = params;
	struct sandbox *sb = api_enter(c, p->header.sandbox, p->body.path);

	if (sb)
		transfer_download(c, sb, or_here(p->body.path), send_piece);
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
	struct sandbox *sb = api_enter(c, p->header.sandbox, p->body.path);

	if (sb)
		watch_speak(c, sb, or_here(p->body.path), p->body.recursive, send_event);
}

/* ---- the rows ------------------------------------------------------------------------------ */

static const struct api_route rows[] = {
	CONNECT_METHOD("Archive", "files.download", OP_READ, API_FRAMES, run_archive,
		       "A directory with all that is in it, or a file, as a tar archive.",
		       archive_input, connect_chunk_table),
	CONNECT_METHOD("Watch", "files.watch", OP_READ, API_FRAMES, run_watch,
		       "What happens in a directory, told as it happens.", watch_input,
		       event_table),
};
const struct api_resource api_connect_trees = API_RESOURCE(rows);
