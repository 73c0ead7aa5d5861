/* Archive and Watch. */
#include "door/connect/connect.h"

#define T struct file_event
static const struct field event_fields[] = {
	FIELD_ENUM(T, kind, file_event_names, .flags = FIELD_REQUIRED,
		   .doc = "ready is the first. overflow: more happened than was told. ended: the "
			  "directory is gone."),
	FIELD(T, path, .doc = "Below the directory."),
	FIELD_NAMED(T, is_dir, "isDir", .flags = FIELD_REQUIRED, .doc = "A directory."),
	FIELD(T, cookie, .flags = FIELD_REQUIRED,
	      .doc = "Of moved_from and moved_to: the same for both ends of one move; else 0."),
};
#undef T
static const struct field_table event_table = FIELD_TABLE(struct file_event, event_fields);

static void tell_event(struct call *c, const void *event)
{
	exchange_write(c, &event_table, event);
}

static const struct op_member members[] = {
	CONNECT_BY_HEADER,
	{ "path", .doc = "Absent or empty: the sandbox's working directory." },
};

static const struct api_route rows[] = {
	CONNECT_PROJECTION("Archive", &files_download_op, members, .shape = API_FRAMES,
			   .answer = &file_chunk_table, .tell = connect_tell_chunk),
	CONNECT_PROJECTION("Watch", &files_watch_op, members,
			   .doc = "What happens in a directory, told as it happens.",
			   .shape = API_FRAMES, .answer = &event_table, .tell = tell_event),
};
const struct api_resource api_connect_trees = API_RESOURCE(rows);
