/*
 * Transfers: init starts a process inside that holds one end of a pipe until it is done, and then
 * reports the result. What it says is hostile.
 *
 * A stopped transfer is killed. It lives on here until init has answered, since its id must not be
 * used again before that.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "box/host/internal.h"
#include "box/archive/tree_error.h"

enum { LEAVE_OUT_MAX = 64, LEAVE_OUT_BYTES = 4096, CHANGES_BYTES = 64 * 1024 };

struct file_transfer {
	struct init_call call; /* first: the two are cast */
	enum file_op op;
	char path[PATH_MAX];
	file_cb on_done; /* NULL: it was stopped */
	void *arg;
	struct err err; /* why it could not be started */
	/* for a watch: */
	void (*on_change)(void *arg, const struct file_change *c);
	int fd;
	uv_poll_t *poll;
	struct buf came;
	bool answered, drained; /* a watch has ended when both are true */
	bool failed;
	bool telling; /* on_change is on the stack */
};

static void free_transfer(struct file_transfer *t)
{
	if (t->poll) {
		uv_poll_stop(t->poll);
		box_close_handle(t->poll);
	}
	close_fd(&t->fd);
	buf_fini(&t->came);
	sandbox_file_ended(t->call.sb);
	sandbox_unref(t->call.sb);
	free(t);
}

static void transfer_finish(struct file_transfer *t, const struct err *err)
{
	if (t->on_done)
		t->on_done(t->arg, err);
	free_transfer(t);
}

/* ---- how it went ----------------------------------------------------------------------------- */

static int answer_error(const struct file_transfer *t, const struct im_tree_done *m, size_t n,
			struct err *e)
{
	if (m->d.not_a_file)
		return err_set(e, ERR_NOT_A_FILE, "%.160s is not a %s of the sandbox's own",
			       t->path,
			       t->op == FILE_OP_ARCHIVE ? "file or directory" : "directory");
	if (m->d.errnum)
		return err_sys(e, m->d.errnum, "%.160s", t->path);
	if (n < sizeof(*m))
		return err_set(e, ERR_GUEST,
			       "the sandbox's first process did not say how it ended");
	if (m->failure.what == TREE_MANY && t->op == FILE_OP_WATCH)
		return err_set(e, ERR_TOO_LARGE, "there are more directories than can be watched");
	return m->failure.what != TREE_FINE ? tree_error(&m->failure, t->path, e) : 0;
}

/* The reported changes are delivered before the end. */
static void on_answer(struct init_call *c, const void *answer, size_t n, int fd,
		      const struct err *err)
{
	struct file_transfer *t = (struct file_transfer *)c;

	close_fd(&fd); /* there is none */
	t->answered = true;
	if (err)
		t->err = *err;
	else
		t->failed = answer_error(t, answer, n, &t->err) < 0;
	if (t->failed)
		own_disk(&t->err);
	t->failed |= err != NULL;
	if (err || t->fd < 0 || t->drained || !t->on_done)
		transfer_finish(t, t->failed ? &t->err : NULL);
}

/* ---- the beginning --------------------------------------------------------------------------- */

static void on_late_error(void *arg)
{
	struct file_transfer *t = arg;

	transfer_finish(t, &t->err);
}

static struct file_transfer *new_transfer(struct sandbox *sb, enum file_op op, file_cb on_done,
					  void *arg)
{
	struct file_transfer *t = calloc(1, sizeof(*t));

	if (!t)
		abort(); /* without memory, no promise of an answer can be kept */
	t->call = (struct init_call){ .sb = sandbox_ref(sb),
				      .answer = IM_FILE_DONE,
				      .answer_size = sizeof(struct im_file_done),
				      .on_reply = on_answer };
	sb->n_files++;
	t->op = op;
	t->on_done = on_done;
	t->arg = arg;
	t->fd = -1;
	t->came = BUF_INIT(CHANGES_BYTES);
	return t;
}

static int send_start(struct file_transfer *t, struct str path, uint32_t flags,
		      const struct file_archive_opts *o, int fd, struct err *e)
{
	autobuf struct buf b = BUF_INIT(sizeof(struct im_file) + PATH_MAX + LEAVE_OUT_BYTES);
	const struct im_file m = { .h.type = IM_FILE, .op = t->op, .flags = flags };

	if (fd < 0)
		return err_set(e, ERR_LIMIT, "too many files are open");
	if (o && o->n_leave_out > LEAVE_OUT_MAX)
		return err_set(e, ERR_INVALID, "at most %d names are left out", LEAVE_OUT_MAX);
	if (sandbox_path(t->call.sb, path, t->path, e) < 0 || buf_add(&b, &m, sizeof(m), e) < 0 ||
	    buf_add(&b, t->path, strlen(t->path) + 1, e) < 0)
		return -1;
	for (size_t i = 0; o && i < o->n_leave_out; i++) {
		if (buf_add(&b, o->leave_out[i].p, o->leave_out[i].n, e) < 0 ||
		    buf_add(&b, "", 1, e) < 0)
			return -1;
	}
	return init_call_send_fd(&t->call, (struct im_head *)b.p, b.n, fd, e);
}

/* Takes fd. A failure is reported in the loop's next turn. */
static struct file_transfer *transfer_start(struct file_transfer *t, struct str path,
					    uint32_t flags, const struct file_archive_opts *o,
					    int fd)
{
	autoclose int owned = fd;

	if (t->err.code == ERR_NONE && send_start(t, path, flags, o, owned, &t->err) == 0)
		return t;
	if (box_later(t->call.sb->box, on_late_error, t, &t->err) < 0)
		abort();
	return t;
}

struct file_transfer *file_archive_start(struct sandbox *sb, struct str path,
					 const struct file_archive_opts *opts, int to,
					 file_cb on_done, void *arg)
{
	return transfer_start(new_transfer(sb, FILE_OP_ARCHIVE, on_done, arg), path,
			      (opts->exact ? FILE_FLAG_EXACT : 0) |
				      (opts->named ? FILE_FLAG_NAMED : 0),
			      opts, to);
}

struct file_transfer *file_upload_start(struct sandbox *sb, struct str path,
					const struct file_upload_opts *opts, int from,
					file_cb on_done, void *arg)
{
	return transfer_start(new_transfer(sb, FILE_OP_UPLOAD, on_done, arg), path,
			      (opts->changes || opts->exact ? FILE_FLAG_CHANGES : 0) |
				      (opts->exact ? FILE_FLAG_EXACT : 0) |
				      (opts->pass_mounts ? FILE_FLAG_PASS_MOUNTS : 0),
			      NULL, from);
}

void file_transfer_stop(struct file_transfer *t)
{
	const struct im_file m = { .h.type = IM_FILE, .op = FILE_OP_STOP, .token = t->call.id };
	struct err e = ERR_INIT;

	t->on_done = NULL;
	t->on_change = NULL;
	if (t->poll) {
		uv_poll_stop(t->poll);
		box_close_handle(take_ptr(t->poll));
	}
	close_fd(&t->fd);
	if (t->answered && !t->telling)
		free_transfer(t);
	else if (!t->answered && t->err.code == ERR_NONE &&
		 sandbox_send(t->call.sb, &m, sizeof(m), NULL, 0, &e) < 0)
		t->err = e; /* the sandbox ends soon, or its pipe does */
}

/* ---- watches --------------------------------------------------------------------------------- */

/* Parses one change at the front of the received bytes. Returns its length; 0: it is incomplete;
 * -1: it is invalid. */
static ssize_t take_change(struct file_transfer *t)
{
	struct im_change c;
	struct file_change change;

	if (t->came.n < sizeof(c))
		return 0;
	memcpy(&c, t->came.p, sizeof(c));
	if (c.kind >= CHANGE_KINDS || c.path_len >= TAR_PATH_MAX)
		return -1;
	if (t->came.n < sizeof(c) + c.path_len)
		return 0;
	change = (struct file_change){ (enum change_kind)c.kind,
				       c.cookie,
				       c.is_directory != 0,
				       { t->came.p + sizeof(c), c.path_len } };
	if (t->on_change)
		t->on_change(t->arg, &change);
	return (ssize_t)(sizeof(c) + c.path_len);
}

static void drained(struct file_transfer *t)
{
	t->drained = true;
	uv_poll_stop(t->poll);
	if (t->answered)
		transfer_finish(t, t->failed ? &t->err : NULL);
}

static void on_changes(uv_poll_t *poll, int status, int events)
{
	struct file_transfer *t = poll->data;
	struct err e = ERR_INIT;
	char *room = buf_reserve(&t->came, CHANGES_BYTES - t->came.n, &e);
	ssize_t n = room ? read(t->fd, room, CHANGES_BYTES - t->came.n) : 0, used = 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		drained(t);
		return;
	}
	buf_advance(&t->came, (size_t)n);
	sandbox_count(t->call.sb, 0, (uint64_t)n);
	t->telling = true;
	while (t->on_done && (used = take_change(t)) > 0)
		buf_drop(&t->came, (size_t)used);
	t->telling = false;
	if (!t->on_done && t->answered)
		free_transfer(t);
	else if (t->on_done && used < 0)
		drained(t);
}

void file_watch_hold(struct file_transfer *t, bool hold)
{
	if (!t->poll || t->drained)
		return;
	if (hold)
		uv_poll_stop(t->poll);
	else
		uv_poll_start(t->poll, UV_READABLE, on_changes);
}

/* Makes a pipe and keeps one end; returns the other end, or -1. */
static int open_pipe(struct file_transfer *t, struct err *e)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "watch");
	t->fd = ends[0];
	t->poll = calloc(1, sizeof(*t->poll));
	if (t->poll && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 &&
	    uv_poll_init(t->call.sb->box->loop, t->poll, ends[0]) == 0) {
		t->poll->data = t;
		uv_poll_start(t->poll, UV_READABLE, on_changes);
		return ends[1];
	}
	free(take_ptr(t->poll));
	close(ends[1]);
	return err_set(e, ERR_LIMIT, "out of memory");
}

struct file_transfer *file_watch_start(struct sandbox *sb, struct str path, bool recursive,
				       void (*on_change)(void *arg, const struct file_change *c),
				       file_cb on_done, void *arg)
{
	struct file_transfer *t = new_transfer(sb, FILE_OP_WATCH, on_done, arg);

	t->on_change = on_change;
	return transfer_start(t, path, recursive ? FILE_FLAG_RECURSIVE : 0, NULL,
			      open_pipe(t, &t->err));
}
