#include "door/http/transfer.h"

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
