#include "door/http/transfer.h"

#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "op/files.h"

/* Nothing more goes to the sandbox; what still comes is dropped, but it must be received. */
static void transfer_close(struct transfer_upload *u)
{
	bool held = u->held;

	u->held = false;
	files_return_free(take_ptr(u->marks));
	body_pipe_close(&u->pipe);
	if (held)
		exchange_body_resume(u->call);
}

void transfer_upload_stop(struct transfer_upload *u)
{
	if (u->transfer)
		file_transfer_stop(take_ptr(u->transfer));
	transfer_close(u);
}

static void on_unpacked(void *arg, const struct err *err)
{
	struct transfer_upload *u = arg;

	u->transfer = NULL;
	transfer_close(u);
	u->on_done(u, err);
}

static int on_put(void *owner, struct str bytes, struct err *e)
{
	struct transfer_upload *u = owner;

	return body_pipe_put_counted(&u->pipe, bytes, e);
}

static void on_ready(void *owner, const struct err *err)
{
	struct transfer_upload *u = owner;
	bool held = u->held;

	u->held = false;
	if (err) {
		transfer_upload_stop(u);
		u->on_done(u, err);
	} else if (u->whole) {
		body_pipe_end(&u->pipe);
	}
	if (!err && held)
		exchange_body_resume(u->call);
}

int transfer_upload_open(struct transfer_upload *u, struct call *c,
			 void (*read)(void *u, const char *name, uint64_t offset, size_t max,
				      file_read_cb on_done, void *arg),
			 void (*on_done)(struct transfer_upload *u, const struct err *e),
			 struct err *e)
{
	const struct files_return_spec marks = { .call = c,
						 .of = exchange_bodies(c),
						 .literal = u->literal,
						 .read = read,
						 .put = on_put,
						 .on_ready = on_ready,
						 .owner = u };
	autoclose int from = body_pipe_open(&u->pipe, c, e);

	if (from < 0)
		return -1;
	u->call = c;
	u->on_done = on_done;
	u->held = u->whole = false;
	u->transfer = NULL;
	u->marks = files_return_new(&marks, e);
	if (!u->marks) {
		body_pipe_close(&u->pipe);
		return -1;
	}
	return take_fd(&from);
}

/* files_return_spec.read */
static void read_sandbox(void *owner, const char *name, uint64_t offset, size_t max,
			 file_read_cb on_done, void *arg)
{
	const struct transfer_upload *u = owner;
	char path[2 * (FILES_PATH_MAX + 1)];

	snprintf(path, sizeof(path), "%.*s/%s", STR_CUT(u->path, FILES_PATH_MAX), name);
	file_read_start(u->sb, str_of(path), offset, max, on_done, arg);
}

int transfer_upload_start(struct transfer_upload *u, struct call *c, struct sandbox *sb,
			  struct str path,
			  void (*on_done)(struct transfer_upload *u, const struct err *e),
			  struct err *e)
{
	static const struct file_upload_opts opts = { .changes = false };
	int from = transfer_upload_open(u, c, read_sandbox, on_done, e);

	if (from < 0)
		return -1;
	u->sb = sb;
	u->path = path;
	u->transfer = file_upload_start(sb, path, &opts, from, on_unpacked, u);
	return 0;
}

bool transfer_upload_holds(struct transfer_upload *u)
{
	u->held = u->marks && files_return_waits(u->marks);
	return u->held || body_pipe_holds(&u->pipe);
}

int transfer_upload_put(struct transfer_upload *u, struct str bytes, struct err *e)
{
	return u->marks ? files_return_take(u->marks, bytes, e) : 0;
}

void transfer_upload_end(struct transfer_upload *u)
{
	u->whole = true;
	if (!u->marks || !files_return_waits(u->marks))
		body_pipe_end(&u->pipe);
}

/* ---- the body as it is ----------------------------------------------------------------------- */

static size_t on_bytes(void *data, struct str bytes)
{
	struct transfer_upload *u = data;
	struct err e = ERR_INIT;

	if (transfer_upload_holds(u))
		return 0;
	if (transfer_upload_put(u, bytes, &e) < 0) {
		transfer_upload_stop(u);
		u->on_done(u, &e);
	}
	return bytes.n;
}

static void on_end(void *data)
{
	transfer_upload_end(data);
}

void transfer_upload_body(struct transfer_upload *u)
{
	static const struct exchange_body_events body = { on_bytes, on_end };

	exchange_body_start(u->call, &body, u);
}
