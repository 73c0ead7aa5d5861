/*
 * files.download and files.watch: what is told of a tree of files as it comes. Nobody ever holds
 * an archive whole; who takes slowly is waited for, and who goes away ends it.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "json/document/utf8.h"
#include "op/answer_pipe.h"
#include "op/files.h"

#define Q struct files_tree_request
static const struct field download_fields[] = {
	OP_SANDBOX_ROW(Q),
	FIELD(Q, path, .flags = FIELD_PATH, .max = FILES_PATH_MAX,
	      .doc = "Directory or file to download. Names in the archive are relative to the "
		     "directory. Default: the sandbox's working directory."),
	FIELD(Q, named,
	      .doc = "Give the directory its name in the archive, in front of all others, as "
		     "docker cp does."),
	OP_RAW_ROW(Q),
};
static const struct field upload_fields[] = {
	OP_SANDBOX_ROW(Q),
	FIELD(Q, path, .flags = FIELD_PATH, .max = FILES_PATH_MAX,
	      .doc = "Existing directory. Default: the sandbox's working directory."),
	FILES_LITERAL_ROW(Q),
};
static const struct field watch_fields[] = {
	OP_SANDBOX_ROW(Q),
	FIELD(Q, path, .flags = FIELD_PATH, .max = FILES_PATH_MAX,
	      .doc = "Directory to watch. Default: the sandbox's working directory."),
	FIELD(Q, recursive, .doc = "Include all directories below it."),
};
#undef Q
static const struct field_table download_table = FIELD_TABLE(struct files_tree_request,
							     download_fields);
const struct field_table files_upload_table = FIELD_TABLE(struct files_tree_request, upload_fields);
static const struct field_table watch_table = FIELD_TABLE(struct files_tree_request, watch_fields);

int files_tree_normalize(void *request, struct arena *a, struct err *e)
{
	struct files_tree_request *q = request;

	if (!q->path.n)
		q->path = STR_LIT(".");
	return 0;
}

static void tree_fail_gone(struct call *c)
{
	struct err e;

	err_set(&e, ERR_CANCELLED, "the client went away");
	call_fail(c, &e);
}

/* ---- files.download ------------------------------------------------------------------------ */

/* Its memory is the call's. */
struct tree_download {
	struct answer_pipe pipe; /* first: the two are cast */
	struct file_transfer *transfer; /* NULL once it has ended */
	bool sent; /* all that came through the pipe */
};

void files_send_archive(struct call *c, struct str bytes, bool eof)
{
	bytes = call_redact_piece(c, CALL_ARCHIVE, bytes, eof ? REDACT_END : REDACT_MORE);
	call_send_redacted(c, &(struct file_chunk){ bytes, eof });
}

static void tree_send(struct call *c, struct str bytes)
{
	call_count_out(c, bytes.n);
	files_send_archive(c, bytes, false);
}

static void tree_stop(struct tree_download *d)
{
	if (d->transfer)
		file_transfer_stop(take_ptr(d->transfer));
	answer_pipe_close(&d->pipe);
}

/* Fails, or ends once all bytes came and the sandbox says that these are all. */
static void tree_settle(struct tree_download *d, const struct err *e)
{
	struct call *c = d->pipe.call;

	if (e) {
		tree_stop(d);
		call_fail(c, e);
	} else if (!d->transfer && d->sent) {
		files_send_archive(c, STR_NONE, true);
		call_answer(c, NULL);
	}
}

static void tree_on_archived(void *arg, const struct err *err)
{
	struct tree_download *d = arg;

	d->transfer = NULL;
	tree_settle(d, err);
}

static void tree_on_sent(struct answer_pipe *p, const struct err *e)
{
	struct tree_download *d = (struct tree_download *)p;

	d->sent = true;
	tree_settle(d, e);
}

static void tree_on_download_cancel(void *data)
{
	struct tree_download *d = data;

	tree_stop(d);
	tree_fail_gone(d->pipe.call);
}

static int tree_start_download(struct call *c, struct sandbox *sb, struct err *e)
{
	const struct files_tree_request *q = call_request(c);
	const struct file_archive_opts opts = { .named = q->named };
	struct tree_download *d = arena_alloc(call_arena(c), sizeof(*d), e);
	int ends[2];

	if (!d)
		return -1;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "make a pipe");
	fcntl(ends[0], F_SETPIPE_SZ, FILES_CHUNK); /* or what the user may have */
	*d = (struct tree_download){ .pipe = { .call = c,
					       .open = call_open,
					       .full = call_full,
					       .send = tree_send,
					       .on_end = tree_on_sent } };
	if (answer_pipe_start(&d->pipe, ends[0], e) < 0) {
		close(ends[1]);
		return -1;
	}
	d->transfer = file_archive_start(sb, q->path, &opts, ends[1], tree_on_archived, d);
	call_on_cancel(c, tree_on_download_cancel, d);
	return 0;
}

static void tree_download_run(struct call *c, const void *request)
{
	const struct files_tree_request *q = request;
	struct sandbox *sb = files_enter(c, q->sandbox, q->path);
	struct err e = ERR_INIT;

	if (sb && tree_start_download(c, sb, &e) < 0)
		call_fail(c, &e);
}

const struct op files_download_op = {
	.action = "files.download",
	.doc = "Downloads a directory with all its contents, or a file, as a tar archive.",
	.effect = OP_READ,
	.flags = OP_ARCHIVE,
	.request = &download_table,
	.target = OP_TARGET(struct files_tree_request, sandbox),
	.raw = OP_RAW(struct files_tree_request, raw),
	.event = &file_chunk_table,
	.normalize = files_tree_normalize,
	.run = tree_download_run,
};

/* ---- files.watch --------------------------------------------------------------------------- */

const char *const file_event_names[CHANGE_KINDS] = {
	[CHANGE_READY] = "ready",	[CHANGE_CREATED] = "created",
	[CHANGE_MODIFIED] = "modified", [CHANGE_ATTRIBUTES] = "attributes",
	[CHANGE_REMOVED] = "removed",	[CHANGE_MOVED_FROM] = "moved_from",
	[CHANGE_MOVED_TO] = "moved_to", [CHANGE_OVERFLOW] = "overflow",
	[CHANGE_ENDED] = "ended",
};

#define T struct file_event
static const struct field event_fields[] = {
	FIELD_ENUM(T, kind, file_event_names, .flags = FIELD_REQUIRED, .doc = "What happened."),
	FIELD(T, path, .doc = "Path relative to the directory."),
	FIELD(T, path_bytes, .flags = FIELD_BYTES,
	      .doc = "Bytes of the path, if they are not UTF-8."),
	FIELD(T, is_dir, .flags = FIELD_REQUIRED, .doc = "It is a directory."),
	FIELD(T, cookie, .has = FIELD_HAS(T, is_move), .doc = "Equal for both ends of a move."),
};
#undef T
static const struct field_table event_table = FIELD_TABLE(struct file_event, event_fields);

/* Its memory is the call's. */
struct tree_watch {
	struct call *call;
	struct file_transfer *transfer; /* NULL once it has ended */
	bool streams;
};

static void tree_on_room(void *data)
{
	struct tree_watch *w = data;

	if (w->transfer)
		file_watch_hold(w->transfer, false);
}

/* The first change, which says that the watch begins, decides whether there is a stream at all. */
static void tree_on_change(void *arg, const struct file_change *change)
{
	struct str path = change->path.n ? change->path : STR_NONE;
	const struct file_event ev = { .kind = change->kind,
				       .path = path,
				       .path_bytes = utf8_valid(path) ? STR_NONE : path,
				       .is_dir = change->is_directory,
				       .is_move = change->cookie != 0,
				       .cookie = change->cookie };
	struct tree_watch *w = arg;
	struct err e;

	if (!w->streams &&
	    (call_waits(w->call, &e) < 0 || call_open(w->call, tree_on_room, w, &e) < 0)) {
		file_transfer_stop(take_ptr(w->transfer));
		call_fail(w->call, &e);
		return;
	}
	w->streams = true;
	call_send(w->call, &ev);
	if (call_full(w->call))
		file_watch_hold(w->transfer, true);
}

static void tree_on_watched(void *arg, const struct err *err)
{
	struct tree_watch *w = arg;

	w->transfer = NULL;
	if (err)
		call_fail(w->call, err);
	else
		call_answer(w->call, NULL);
}

static void tree_on_watch_cancel(void *data)
{
	struct tree_watch *w = data;

	file_transfer_stop(take_ptr(w->transfer));
	tree_fail_gone(w->call);
}

static void tree_watch_run(struct call *c, const void *request)
{
	const struct files_tree_request *q = request;
	struct sandbox *sb = files_enter(c, q->sandbox, q->path);
	struct err e = ERR_INIT;
	struct tree_watch *w = sb ? arena_alloc(call_arena(c), sizeof(*w), &e) : NULL;

	if (!sb)
		return;
	if (!w) {
		call_fail(c, &e);
		return;
	}
	*w = (struct tree_watch){ .call = c };
	w->transfer = file_watch_start(sb, q->path, q->recursive, tree_on_change, tree_on_watched,
				       w);
	call_on_cancel(c, tree_on_watch_cancel, w);
}

const struct op files_watch_op = {
	.action = "files.watch",
	.doc = "Streams changes in a directory as they happen, until the client disconnects.",
	.effect = OP_READ,
	.flags = OP_WAITS,
	.request = &watch_table,
	.target = OP_TARGET(struct files_tree_request, sandbox),
	.event = &event_table,
	.normalize = files_tree_normalize,
	.run = tree_watch_run,
};
