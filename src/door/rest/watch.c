/* GET /v1/sandboxes/{id}/watch: what happens in a directory, as it happens. */
#include "door/http/watch.h"

#include "base/base64.h"
#include "json/document/utf8.h"

const char *const watch_kind_names[CHANGE_KINDS] = {
	[CHANGE_READY] = "ready",	[CHANGE_CREATED] = "created",
	[CHANGE_MODIFIED] = "modified", [CHANGE_ATTRIBUTES] = "attributes",
	[CHANGE_REMOVED] = "removed",	[CHANGE_MOVED_FROM] = "moved_from",
	[CHANGE_MOVED_TO] = "moved_to", [CHANGE_OVERFLOW] = "overflow",
	[CHANGE_ENDED] = "ended",
};

/* Its memory is the call's. */
struct watch {
	struct call *call;
	struct file_transfer *transfer; /* NULL once it has ended */
	void (*send)(struct call *c, const struct file_change *change);
	bool streams;
};

static void on_room(void *data)
{
	struct watch *w = data;

	if (w->transfer)
		file_watch_hold(w->transfer, false);
}

static void give_up(struct watch *w, const struct err *e)
{
	file_transfer_stop(take_ptr(w->transfer));
	call_fail(w->call, e);
}

/* The first change, which says that the watch begins, decides whether there is a stream at all. */
static void on_change(void *arg, const struct file_change *change)
{
	struct watch *w = arg;
	struct err e;

	if (!w->streams &&
	    (call_waits(w->call, &e) < 0 || ask_stream_start(w->call, on_room, w, &e) < 0)) {
		give_up(w, &e);
		return;
	}
	w->streams = true;
	w->send(w->call, change);
	if (ask_stream_full(w->call))
		file_watch_hold(w->transfer, true);
}

static void on_done(void *arg, const struct err *err)
{
	struct watch *w = arg;

	w->transfer = NULL;
	if (err)
		call_fail(w->call, err);
	else
		call_answer(w->call, NULL);
}

static void on_cancel(void *data)
{
	struct err e;

	err_set(&e, ERR_CANCELLED, "the client went away");
	give_up(data, &e);
}

/* The server goes down. */
static void on_drain(void *data)
{
	struct watch *w = data;

	if (!w->transfer)
		return;
	file_transfer_stop(take_ptr(w->transfer));
	call_answer(w->call, NULL);
}

void watch_speak(struct call *c, struct sandbox *sb, struct str path, bool recursive,
		 void (*send)(struct call *c, const struct file_change *change))
{
	struct err e = ERR_INIT;
	struct watch *w = arena_alloc(call_arena(c), sizeof(*w), &e);

	if (!w) {
		call_fail(c, &e);
		return;
	}
	*w = (struct watch){ .call = c, .send = send };
	w->transfer = file_watch_start(sb, path, recursive, on_change, on_done, w);
	call_on_cancel(c, on_cancel, w);
	ask_on_drain(c, on_drain, w);
}

/* ---- as lines ------------------------------------------------------------------------------ */

struct watch_query {
	struct str path;
	bool recursive;
};
static const struct field query_fields[] = {
	FIELD(struct watch_query, path, .min = 1, .max = API_PATH_MAX,
	      .doc = "A directory. Absent: the sandbox's working directory."),
	FIELD(struct watch_query, recursive, .doc = "All directories below it, too."),
};
static const struct field_table query_table = FIELD_TABLE(struct watch_query, query_fields);

struct watch_params {
	struct id_path path;
	struct watch_query query;
};
static const struct field parts[] = {
	API_ID_PATH(struct watch_params),
	FIELD_OBJECT(struct watch_params, query, query_table, .doc = "What."),
};
static const struct field_table input = FIELD_TABLE(struct watch_params, parts);

struct line {
	enum change_kind kind;
	struct str path, base64;
	bool is_dir, is_move;
	uint32_t cookie;
};
static const struct field line_fields[] = {
	FIELD_ENUM(
		struct line, kind, watch_kind_names, .flags = FIELD_REQUIRED,
		.doc = "ready is the first. overflow: more happened than was told. ended: the directory is "
		       "gone."),
	FIELD(struct line, path, .doc = "Below the directory."),
	FIELD_NAMED(struct line, base64, "path_base64",
		    .doc = "Its bytes, where they are not UTF-8."),
	FIELD(struct line, is_dir, .flags = FIELD_REQUIRED, .doc = "It is a directory."),
	FIELD(struct line, cookie, .has = FIELD_HAS(struct line, is_move),
	      .doc = "Of moved_from and moved_to: the same for both ends of one move."),
};
static const struct field_table line_table = FIELD_TABLE(struct line, line_fields);

static void send_line(struct call *c, const struct file_change *change)
{
	autobuf struct buf base64 = BUF_INIT(2 * API_PATH_MAX);
	struct line l = { .kind = change->kind,
			  .path = change->path.n ? change->path : STR_NONE,
			  .is_dir = change->is_directory,
			  .is_move = change->cookie != 0,
			  .cookie = change->cookie };
	struct err e;

	if (!utf8_valid(change->path) && base64_encode(&base64, change->path, &e) == 0)
		l.base64 = buf_str(&base64);
	ask_send(c, &line_table, &l);
}

static void run(struct call *c, const void *params)
{
	const struct watch_params *p = params;
	struct err e = ERR_INIT;
	struct sandbox *sb;

	call_about(c)->path = p->query.path;
	sb = ask_sandbox(c, p->path.id, &e);
	if (sb)
		watch_speak(c, sb, p->query.path.p ? p->query.path : STR_LIT("."),
			    p->query.recursive, send_line);
	else
		call_fail(c, &e);
}

static const struct api_route rows[] = {
	{ .id = "watch",
	  .op = &(const struct
		  op){ .action = "files.watch",
		       .doc = "What happens in a directory, told as it happens until the client goes away.",
		       .effect = OP_READ,
		       .flags = OP_WAITS,
		       .request = &input,
		       .target = OP_TARGET(struct watch_params, path.id),
		       .result = &line_table,
		       .run = run },
	  .method = HTTP_GET,
	  .path = "/v1/sandboxes/{id}/watch",
	  .shape = API_LINES,
	  .errors = API_MAY_SANDBOX | API_MAY(FILE_FAILED) | API_MAY(FORBIDDEN) |
		    API_MAY(TOO_MANY_STREAMS) },
};
const struct api_resource api_watch = API_RESOURCE(rows);
