#include "api/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "loop/reader.h"
#include "loop/writer.h"

enum { PIPE_BYTES = 256 << 10, QUEUE_HIGH = 512 << 10, QUEUE_MAX = 64 << 20 };

static int open_pipe(int ends[2], struct err *e)
{
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "pipe");
	fcntl(ends[0], F_SETPIPE_SZ, PIPE_BYTES); /* or what the user may have */
	return 0;
}

static void fail_cancelled(struct call *c)
{
	struct err e;

	err_set(&e, ERR_CANCELLED, "the client went away");
	call_fail(c, &e);
}

/* ---- down ---------------------------------------------------------------------------------- */

/* Its memory is the call's. */
struct download {
	struct call *call;
	void (*send)(struct call *c, struct str bytes);
	struct file_transfer *transfer; /* NULL once it has ended */
	struct loop_reader *reader; /* NULL behind the last byte */
	bool streams, waits;
};

static void end_download(struct download *d, const struct err *err)
{
	if (d->transfer)
		file_transfer_stop(take_ptr(d->transfer));
	if (d->reader)
		loop_reader_close(take_ptr(d->reader), NULL);
	if (err)
		call_fail(d->call, err);
	else
		call_answer(d->call, &(struct call_answer){ .structured = NULL });
}

/* All bytes came, and the sandbox says that these are all. */
static void settle(struct download *d)
{
	if (!d->transfer && !d->reader)
		end_download(d, NULL);
}

static void on_archived(void *arg, const struct err *err)
{
	struct download *d = arg;

	d->transfer = NULL;
	if (err)
		end_download(d, err);
	else
		settle(d);
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
	d->send(d->call, bytes);
	d->waits = ask_stream_full(d->call);
	if (!d->waits)
		loop_reader_next(d->reader);
}

static void on_last(void *owner, const struct err *e)
{
	struct download *d = owner;

	loop_reader_close(take_ptr(d->reader), NULL);
	if (e)
		end_download(d, e);
	else
		settle(d);
}

static void on_download_cancel(void *data)
{
	struct download *d = data;

	if (d->transfer)
		file_transfer_stop(take_ptr(d->transfer));
	if (d->reader)
		loop_reader_close(take_ptr(d->reader), NULL);
	fail_cancelled(d->call);
}

void transfer_download(struct call *c, struct sandbox *sb, struct str path,
		       void (*send)(struct call *c, struct str bytes))
{
	static const struct loop_reader_events events = { on_piece, on_last };
	static const struct file_archive_opts opts = { .n_leave_out = 0 };
	struct err e = ERR_INIT;
	struct download *d = arena_alloc(call_arena(c), sizeof(*d), &e);
	int ends[2];

	if (!d || open_pipe(ends, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	*d = (struct download){ .call = c, .send = send };
	d->reader = loop_reader_new(ask_loop(c), ends[0], &events, d, &e);
	if (!d->reader) {
		close(ends[1]);
		call_fail(c, &e);
		return;
	}
	d->transfer = file_archive_start(sb, path, &opts, ends[1], on_archived, d);
	call_on_cancel(c, on_download_cancel, d);
	loop_reader_next(d->reader);
}

/* ---- up ------------------------------------------------------------------------------------ */

struct upload {
	struct call *call;
	void (*done)(struct call *c);
	struct file_transfer *transfer;
	struct loop_writer *writer; /* NULL once all is written, or nobody reads */
	bool waits; /* the client does */
	bool whole; /* nothing more is put */
};

static void close_writer(struct upload *u)
{
	if (u->writer)
		loop_writer_close(take_ptr(u->writer), NULL);
}

static void on_unpacked(void *arg, const struct err *err)
{
	struct upload *u = arg;

	u->transfer = NULL;
	close_writer(u);
	if (err)
		call_fail(u->call, err);
	else
		u->done(u->call);
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

/* The sandbox has ended it, and says why. */
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

static void on_upload_cancel(void *data)
{
	struct upload *u = data;

	if (u->transfer)
		file_transfer_stop(take_ptr(u->transfer));
	close_writer(u);
	fail_cancelled(u->call);
}

void transfer_upload(struct call *c, struct sandbox *sb, struct str path, const struct str *bytes,
		     void (*done)(struct call *c))
{
	static const struct loop_writer_events events = { on_written, on_broken };
	static const struct ask_body_events body = { on_bytes, on_whole };
	static const struct file_upload_opts opts = { .changes = false };
	struct err e = ERR_INIT;
	struct upload *u = arena_alloc(call_arena(c), sizeof(*u), &e);
	int ends[2];

	if (!u || open_pipe(ends, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	*u = (struct upload){ .call = c, .done = done };
	u->writer = loop_writer_new(ask_loop(c), ends[1], QUEUE_MAX, &events, u, &e);
	if (!u->writer) {
		close(ends[0]);
		call_fail(c, &e);
		return;
	}
	u->transfer = file_upload_start(sb, path, &opts, ends[0], on_unpacked, u);
	call_on_cancel(c, on_upload_cancel, u);
	if (!bytes) {
		ask_body_start(c, &body, u);
		return;
	}
	loop_writer_put(u->writer, *bytes);
	on_whole(u);
}
