/* Archive and Watch. */
#include "door/connect/connect.h"

#include <stdio.h>

#define T struct file_event
static const struct field event_fields[] = {
	FIELD_ENUM(
		T, kind, file_event_names, .flags = FIELD_REQUIRED,
		.doc = "Kind of event. ready is the first one; overflow: events were lost; ended: "
		       "the directory is gone."),
	FIELD(T, path, .doc = "Path relative to the directory."),
	FIELD_NAMED(T, is_dir, "isDir", .flags = FIELD_REQUIRED,
		    .doc = "Whether it is a directory."),
	FIELD(T, cookie, .flags = FIELD_REQUIRED,
	      .doc = "Number that both parts of a move, moved_from and moved_to, have in common; "
		     "else 0."),
};
#undef T
static const struct field_table event_table = FIELD_TABLE(struct file_event, event_fields);

static void tell_event(struct call *c, const void *event)
{
	exchange_write(c, &event_table, event);
}

#define PATH_MEMBER                                                                                \
	{                                                                                          \
		"path", .doc = "Path of the directory; the sandbox's working directory if absent " \
			       "or empty."                                                         \
	}
static const struct op_member members[] = { CONNECT_BY_HEADER, PATH_MEMBER };
static const struct op_member archive_members[] = {
	CONNECT_BY_HEADER,
	PATH_MEMBER,
	{ "raw", .in = OP_HIDDEN },
};

static const struct api_route rows[] = {
	CONNECT_PROJECTION("Archive", &files_download_op, archive_members, .shape = API_FRAMES,
			   .answer = &file_chunk_table, .tell = connect_tell_chunk),
	CONNECT_PROJECTION("Watch", &files_watch_op, members,
			   .doc = "Reports changes in a directory as they happen.",
			   .shape = API_FRAMES, .answer = &event_table, .tell = tell_event),
};
const struct api_resource api_connect_trees = API_RESOURCE(rows);

/* ---- for clients of mitos -------------------------------------------------------------------- */

/* A download is what it is anyway; another direction is not read over. */
static int mend_archive(struct mitos *m, const struct principal *who, const struct json_val *body,
			struct json_writer *w, struct err *e)
{
	static const char *const left_out[] = { "direction" };
	const struct json_val *v = json_get(body, "direction");
	struct str name = json_str(v);
	uint64_t n = 2;
	bool is_download = str_is(name, "DOWNLOAD") || str_is(name, "DIRECTION_UNSPECIFIED") ||
			   (json_uint64(v, &n) && n < 2);

	exchange_write_others(w, body, left_out, is_download);
	return 0;
}

/* Both ends of a move are one event there. */
struct mitos_event {
	struct str kind, path, new_path;
};
static const struct field mitos_event_fields[] = {
	FIELD(struct mitos_event, kind, .flags = FIELD_REQUIRED,
	      .doc = "Kind of change: CREATE, MODIFY, DELETE or RENAME."),
	FIELD(struct mitos_event, path, .flags = FIELD_REQUIRED,
	      .doc = "Path relative to the directory."),
	FIELD_NAMED(struct mitos_event, new_path, "newPath", .doc = "New path, for RENAME."),
};
static const struct field_table mitos_event_table = FIELD_TABLE(struct mitos_event,
								mitos_event_fields);

/* A move of which only one end was told yet. */
struct moving {
	bool is_open, lost; /* lost: so were events */
	uint32_t cookie;
	char path[API_PATH_MAX + 1];
};

enum { MOVE_MS = 50 }; /* in which the other end comes, if it is watched */

static void tell_mitos(struct call *c, const char *kind, struct str path, struct str new_path)
{
	struct str dir = ((const struct files_tree_request *)call_request(c))->path;
	const char *slash = dir.n && dir.p[dir.n - 1] == '/' ? "" : "/";
	char from[2 * API_PATH_MAX + 2], to[2 * API_PATH_MAX + 2];
	struct mitos_event ev = { .kind = str_of(kind), .path = str_of(from) };

	snprintf(from, sizeof(from), "%.*s%s%.*s", STR_CUT(dir, API_PATH_MAX), slash,
		 STR_CUT(path, API_PATH_MAX));
	snprintf(to, sizeof(to), "%.*s%s%.*s", STR_CUT(dir, API_PATH_MAX), slash,
		 STR_CUT(new_path, API_PATH_MAX));
	ev.path = str_of(from);
	ev.new_path = new_path.p ? str_of(to) : STR_NONE;
	exchange_write(c, &mitos_event_table, &ev);
}

/* The other end of an open move is elsewhere. */
static void settle_move(struct call *c)
{
	struct moving *m = *exchange_state(c);

	if (!m || !m->is_open)
		return;
	m->is_open = false;
	tell_mitos(c, "DELETE", str_of(m->path), STR_NONE);
}

static void on_later(struct call *c)
{
	const struct moving *m = *exchange_state(c);
	struct err e;

	settle_move(c);
	if (!m->lost)
		return;
	err_set(&e, ERR_LIMIT, "events were lost: watch again");
	exchange_end_with(c, &e);
}

/* A move begins, or events were lost. */
static void mark_move(struct call *c, const struct file_event *ev)
{
	struct moving *m = *exchange_state(c);
	struct err e;

	if (!m)
		*exchange_state(c) = m = arena_alloc(call_arena(c), sizeof(*m), &e);
	if (!m)
		return;
	if (ev->kind == CHANGE_OVERFLOW) {
		m->lost = true;
	} else {
		m->is_open = true;
		m->cookie = ev->cookie;
		snprintf(m->path, sizeof(m->path), "%.*s", STR_CUT(ev->path, API_PATH_MAX));
	}
	exchange_later(c, m->lost ? 0 : MOVE_MS, on_later);
}

static void tell_mitos_event(struct call *c, const void *event)
{
	const struct file_event *ev = event;
	const struct moving *m = *exchange_state(c);

	if (ev->kind == CHANGE_MOVED_TO && m && m->is_open && m->cookie == ev->cookie) {
		((struct moving *)*exchange_state(c))->is_open = false;
		tell_mitos(c, "RENAME", str_of(m->path), ev->path);
		return;
	}
	settle_move(c);
	switch (ev->kind) {
	case CHANGE_CREATED:
	case CHANGE_MOVED_TO:
		tell_mitos(c, "CREATE", ev->path, STR_NONE);
		break;
	case CHANGE_MODIFIED:
	case CHANGE_ATTRIBUTES:
		tell_mitos(c, "MODIFY", ev->path, STR_NONE);
		break;
	case CHANGE_REMOVED:
		tell_mitos(c, "DELETE", ev->path, STR_NONE);
		break;
	case CHANGE_MOVED_FROM:
	case CHANGE_OVERFLOW:
		mark_move(c, ev);
		break;
	default: /* the beginning and the end say themselves */
		break;
	}
}

static const struct api_route mitos_rows[] = {
	CONNECT_PROJECTION("Archive", &files_download_op, archive_members, .shape = API_FRAMES,
			   .mend = mend_archive, .answer = &file_chunk_table,
			   .tell = connect_tell_chunk),
	CONNECT_PROJECTION(
		"Watch", &files_watch_op, members,
		.doc = "Reports changes in a directory as they happen, as clients of mitos expect.",
		.shape = API_FRAMES, .answer = &mitos_event_table, .tell = tell_mitos_event),
};
const struct api_resource api_mitos_trees = API_RESOURCE(mitos_rows);
