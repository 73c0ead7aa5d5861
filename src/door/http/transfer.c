#include "door/http/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "door/http/answer_pipe.h"

/* ---- down ---------------------------------------------------------------------------------- */

/* Its memory is the call's. */
struct download {
	struct answer_pipe pipe; /* first: the two are cast */
	struct file_transfer *transfer; /* NULL once it has ended */
	bool sent; /* all that came through the pipe */
};

static void stop_download(struct download *d)
{
	if (d->transfer)
		file_transfer_stop(take_ptr(d->transfer));
	answer_pipe_close(&d->pipe);
}

/* All bytes came, and the sandbox says that these are all. */
static void settle(struct download *d)
{
	struct call *c = d->pipe.call;

	if (d->transfer || !d->sent)
		return;
	d->pipe.send(c, STR_NONE);
	call_answer(c, NULL);
}

static void fail_download(struct download *d, const struct err *e)
{
	stop_download(d);
	call_fail(d->pipe.call, e);
}

static void on_archived(void *arg, const struct err *err)
{
	struct download *d = arg;

	d->transfer = NULL;
	if (err)
		fail_download(d, err);
	else
		settle(d);
}

static void on_sent(struct answer_pipe *p, const struct err *e)
{
	struct download *d = (struct download *)p;

	d->sent = true;
	if (e)
		fail_download(d, e);
	else
		settle(d);
}

static void on_download_cancel(void *data)
{
	struct download *d = data;

	stop_download(d);
	ask_fail_gone(d->pipe.call);
}

void transfer_download(struct call *c, struct sandbox *sb, struct str path,
		       void (*send)(struct call *c, struct str bytes))
{
	static const struct file_archive_opts opts = { .n_leave_out = 0 };
	struct err e = ERR_INIT;
	struct download *d = arena_alloc(call_arena(c), sizeof(*d), &e);
	int ends[2];

	if (d && pipe2(ends, O_CLOEXEC) < 0)
		err_sys(&e, errno, "make a pipe");
	if (e.code != ERR_NONE) {
		call_fail(c, &e);
		return;
	}
	fcntl(ends[0], F_SETPIPE_SZ, BODY_PIPE_BYTES); /* or what the user may have */
	*d = (struct download){ .pipe = { .call = c, .send = send, .on_end = on_sent } };
	if (answer_pipe_start(&d->pipe, ends[0], &e) < 0) {
		close(ends[1]);
		call_fail(c, &e);
		return;
	}
	d->transfer = file_archive_start(sb, path, &opts, ends[1], on_archived, d);
	call_on_cancel(c, on_download_cancel, d);
}

/* ---- up ------------------------------------------------------------------------------------ */

void transfer_upload_stop(struct transfer_upload *u)
{
	if (u->transfer)
		file_transfer_stop(take_ptr(u->transfer));
	body_pipe_close(&u->pipe);
}

static void on_unpacked(void *arg, const struct err *err)
{
	struct transfer_upload *u = arg;

	u->transfer = NULL;
	body_pipe_close(&u->pipe);
	u->on_done(u, err);
}

int transfer_upload_start(struct transfer_upload *u, struct call *c, struct sandbox *sb,
			  struct str path,
			  void (*on_done)(struct transfer_upload *u, const struct err *e),
			  struct err *e)
{
	static const struct file_upload_opts opts = { .changes = false };
	int from = body_pipe_open(&u->pipe, c, e);

	if (from < 0)
		return -1;
	u->call = c;
	u->on_done = on_done;
	u->transfer = file_upload_start(sb, path, &opts, from, on_unpacked, u);
	return 0;
}
