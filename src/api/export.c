/* The archive of a snapshot, down and up: GET /v1/snapshots/{id}/export, POST /v1/snapshots. */
#include <fcntl.h>
#include <unistd.h>

#include "api/snapshot_view.h"
#include "base/hash.h"
#include "loop/reader.h"
#include "loop/writer.h"

#define PACKED "application/zstd"

static void fail_cancelled(struct call *c)
{
	struct err e;

	err_set(&e, ERR_CANCELLED, "the client went away");
	call_fail(c, &e);
}

/* ---- down ---------------------------------------------------------------------------------- */

struct export_params {
	struct id_path path;
};
static const struct field export_parts[] = { API_SNAPSHOT_PATH(struct export_params) };
static const struct field_table export_input = FIELD_TABLE(struct export_params, export_parts);

/* Its memory is the call's. */
struct download {
	struct call *call;
	struct loop_reader *reader;
	bool streams, waits;
};

static void end_download(struct download *d, const struct err *err)
{
	loop_reader_close(take_ptr(d->reader), NULL);
	if (err)
		call_fail(d->call, err);
	else
		call_answer(d->call, &(struct call_answer){ .structured = NULL });
}

static void on_room(void *data)
{
	struct download *d = data;

	if (!d->waits || !d->reader)
		return;
	d->waits = false;
	loop_reader_next(d->reader);
}

static void on_piece(void *owner, struct str bytes)
{
	struct download *d = owner;
	struct err e;

	if (!d->streams && ask_stream_start(d->call, on_room, d, &e) < 0) {
		end_download(d, &e);
		return;
	}
	d->streams = true;
	ask_send_bytes(d->call, bytes);
	d->waits = ask_stream_full(d->call);
	if (!d->waits)
		loop_reader_next(d->reader);
}

static void on_last(void *owner, const struct err *e)
{
	end_download(owner, e);
}

static void on_download_cancel(void *data)
{
	struct download *d = data;

	loop_reader_close(take_ptr(d->reader), NULL);
	fail_cancelled(d->call);
}

static void run_export(struct call *c, const void *params)
{
	static const struct loop_reader_events events = { on_piece, on_last };
	const struct export_params *p = params;
	struct err e = ERR_INIT;
	const struct snapshot *s = ask_snapshot(c, p->path.id, &e);
	struct download *d = s ? arena_alloc(call_arena(c), sizeof(*d), &e) : NULL;
	int fd = d ? snapshot_open(s, &e) : -1;

	if (fd >= 0) {
		*d = (struct download){ .call = c };
		d->reader = loop_reader_new(ask_loop(c), fd, &events, d, &e);
	}
	if (fd < 0 || !d->reader) {
		call_fail(c, &e);
		return;
	}
	call_on_cancel(c, on_download_cancel, d);
	loop_reader_next(d->reader);
}

/* ---- up ------------------------------------------------------------------------------------ */

enum { QUEUE_HIGH = 512 << 10, QUEUE_MAX = 64 << 20 };

struct import_query {
	struct str name, digest;
	uint32_t ttl_seconds;
};
static const struct field query_fields[] = {
	FIELD(struct import_query, name, .max = SNAPSHOT_NAME_MAX / 4, .doc = "For people."),
	FIELD(struct import_query, digest, .min = HASH_HEX, .max = HASH_HEX,
	      .doc = "SHA-256 that the archive must have, in hex. Absent: any."),
	FIELD(struct import_query, ttl_seconds, .max = API_SNAPSHOT_TTL_MAX,
	      .doc = "It is deleted so long after; absent or 0: never."),
};
static const struct field_table query_table = FIELD_TABLE(struct import_query, query_fields);

struct import_params {
	struct import_query query;
};
static const struct field import_parts[] = {
	FIELD_OBJECT(struct import_params, query, query_table, .doc = "What to call it."),
};
static const struct field_table import_input = FIELD_TABLE(struct import_params, import_parts);

/* Its memory is the call's. */
struct upload {
	struct call *call;
	struct loop_writer *writer; /* NULL once all is written, or nobody reads */
	bool waits; /* the client does */
	bool whole; /* nothing more is put */
	bool gone; /* the client is */
};

static void close_writer(struct upload *u)
{
	if (u->writer)
		loop_writer_close(take_ptr(u->writer), NULL);
}

static void on_imported(void *arg, const struct snapshot *s, const struct err *err)
{
	struct upload *u = arg;
	struct snapshot_view view;
	struct err e = ERR_INIT;

	close_writer(u);
	if (u->gone)
		fail_cancelled(u->call);
	else if (err || snapshot_view(u->call, s, &view, &e) < 0)
		call_fail(u->call, err ? err : &e);
	else
		call_answer(u->call, &(struct call_answer){ .structured = &view });
}

static void on_written(void *owner)
{
	struct upload *u = owner;

	if (u->whole && loop_writer_queued(u->writer) == 0)
		close_writer(u);
	else if (u->waits && loop_writer_queued(u->writer) <= QUEUE_HIGH / 2) {
		u->waits = false;
		ask_body_resume(u->call);
	}
}

/* Who reads has ended, and says why. */
static void on_broken(void *owner, const struct err *e)
{
	struct upload *u = owner;

	close_writer(u);
	if (u->waits)
		ask_body_resume(u->call);
	u->waits = false;
}

static size_t on_bytes(void *data, struct str bytes)
{
	struct upload *u = data;

	if (!u->writer)
		return bytes.n;
	u->waits = loop_writer_queued(u->writer) >= QUEUE_HIGH;
	if (u->waits)
		return 0;
	loop_writer_put(u->writer, bytes);
	return bytes.n;
}

static void on_whole(void *data)
{
	struct upload *u = data;

	u->whole = true;
	if (u->writer && loop_writer_queued(u->writer) == 0)
		close_writer(u);
}

/* What came so far is no whole archive: the end of it tells that, and then the call ends. */
static void on_upload_cancel(void *data)
{
	struct upload *u = data;

	u->gone = true;
	close_writer(u);
}

static void run_import(struct call *c, const void *params)
{
	static const struct loop_writer_events events = { on_written, on_broken };
	static const struct ask_body_events body = { on_bytes, on_whole };
	const struct import_query *q = &((const struct import_params *)params)->query;
	const struct snapshot_spec spec = { .name = q->name, .ttl_ms = q->ttl_seconds * 1000ull };
	struct err e = ERR_INIT;
	struct upload *u = arena_alloc(call_arena(c), sizeof(*u), &e);
	int ends[2];

	if (u && pipe2(ends, O_CLOEXEC) < 0)
		err_set(&e, ERR_LIMIT, "make a pipe");
	if (!u || e.code) {
		call_fail(c, &e);
		return;
	}
	*u = (struct upload){ .call = c };
	u->writer = loop_writer_new(ask_loop(c), ends[1], QUEUE_MAX, &events, u, &e);
	if (!u->writer) {
		close(ends[0]);
		call_fail(c, &e);
		return;
	}
	snapshot_import_start(call_lives(c), ends[0], q->digest, &spec, on_imported, u);
	call_on_cancel(c, on_upload_cancel, u);
	ask_body_start(c, &body, u);
}

static const struct api_route rows[] = {
	{ .tool = { .name = "snapshots.export",
		    .doc = "The archive of a snapshot (tar with zstd), which can be imported anywhere. One that "
			   "fails in the middle has no end, and the connection is cut.",
		    .input = &export_input,
		    .output = &api_nothing_table,
		    .run = run_export },
	  .method = HTTP_GET,
	  .path = "/v1/snapshots/{id}/export",
	  .shape = API_TAR,
	  .bytes_type = PACKED,
	  .errors = API_MAY(NOT_FOUND) | API_MAY(CANCELED) | API_MAY(TOO_MANY_STREAMS) },
	{ .tool = { .name = "snapshots.import",
		    .doc = "A snapshot of an archive that was exported, which is read to its end and checked "
			   "before anything of it is kept.",
		    .input = &import_input,
		    .output = &snapshot_view_table,
		    .run = run_import },
	  .method = HTTP_POST,
	  .path = "/v1/snapshots",
	  .streams = true,
	  .bytes_type = PACKED,
	  .errors = API_MAY(CANCELED) | API_MAY(BODY_TOO_LARGE) | API_MAY(UNSUPPORTED) |
		    API_MAY(QUOTA_EXCEEDED) },
};
const struct api_resource api_export = API_RESOURCE(rows);
