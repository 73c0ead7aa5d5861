#include "hub/image/job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "loop/reader.h"

enum {
	OUT_MAX = 256 << 10, /* a row of JSON */
	ERR_KEPT = 32 << 10,
	KILL_MS = 5000, /* after the polite signal */
};

struct image_job {
	uv_process_t process;
	uv_timer_t timer;
	struct loop_reader *readers[2];
	struct buf out, err;
	unsigned open; /* handles and readers that are not closed yet */
	bool ended, late;
	int64_t status;
	void (*on_done)(void *arg, const struct image_job_end *end);
	void *arg;
};

static void job_on_closed(void *owner)
{
	struct image_job *j = owner;
	const struct image_job_end end = { .done = j->ended && j->status == 0 && !j->late,
					   .late = j->late,
					   .out = buf_str(&j->out),
					   .err = buf_str(&j->err) };

	if (--j->open > 0)
		return;
	j->on_done(j->arg, &end);
	buf_fini(&j->out);
	buf_fini(&j->err);
	free(j);
}

static void job_on_handle_closed(uv_handle_t *h)
{
	job_on_closed(h->data);
}

/* All that it printed was read, and its status is known. */
static void job_settle(struct image_job *j)
{
	if (!j->ended || j->readers[0] || j->readers[1])
		return;
	uv_close((uv_handle_t *)&j->timer, job_on_handle_closed);
	uv_close((uv_handle_t *)&j->process, job_on_handle_closed);
}

static void job_on_exit(uv_process_t *p, int64_t status, int signal)
{
	struct image_job *j = p->data;

	j->ended = true;
	j->status = signal ? 128 + signal : status;
	uv_timer_stop(&j->timer);
	job_settle(j);
}

static void job_on_kill(uv_timer_t *t)
{
	struct image_job *j = t->data;

	uv_process_kill(&j->process, SIGKILL);
}

void image_job_cancel(struct image_job *j)
{
	if (j->ended)
		return;
	uv_process_kill(&j->process, SIGTERM);
	uv_timer_start(&j->timer, job_on_kill, KILL_MS, 0);
}

static void job_on_late(uv_timer_t *t)
{
	struct image_job *j = t->data;

	j->late = true;
	image_job_cancel(j);
}

/* ---- what it prints -------------------------------------------------------------------------- */

/* Beyond its bound, the result is cut and so no JSON; of the messages the end is kept. */
static void job_on_out(void *owner, struct str bytes)
{
	struct image_job *j = owner;
	struct err ignored;

	if (j->out.n + bytes.n <= OUT_MAX && buf_add(&j->out, bytes.p, bytes.n, &ignored) < 0)
		j->late = true;
	loop_reader_next(j->readers[0]);
}

static void job_on_err(void *owner, struct str bytes)
{
	struct image_job *j = owner;
	struct err ignored;

	if (bytes.n > ERR_KEPT) {
		bytes.p += bytes.n - ERR_KEPT;
		bytes.n = ERR_KEPT;
	}
	if (j->err.n + bytes.n > ERR_KEPT)
		buf_drop(&j->err, j->err.n + bytes.n - ERR_KEPT);
	if (buf_add(&j->err, bytes.p, bytes.n, &ignored) < 0)
		buf_drop(&j->err, j->err.n);
	loop_reader_next(j->readers[1]);
}

static void job_end_reader(struct image_job *j, int which)
{
	loop_reader_close(take_ptr(j->readers[which]), job_on_closed);
	job_settle(j);
}

static void job_on_out_end(void *owner, const struct err *e)
{
	job_end_reader(owner, 0);
}

static void job_on_err_end(void *owner, const struct err *e)
{
	job_end_reader(owner, 1);
}

/* ---- the beginning --------------------------------------------------------------------------- */

static int job_spawn(struct image_job *j, uv_loop_t *loop, const char *const *argv, int out,
		     int err, struct err *e)
{
	const char *words[IMAGE_JOB_WORDS_MAX + 2] = { "holt" };
	uv_stdio_container_t stdio[] = {
		{ .flags = UV_IGNORE },
		{ .flags = UV_INHERIT_FD, .data.fd = out },
		{ .flags = UV_INHERIT_FD, .data.fd = err },
	};
	const uv_process_options_t options = {
		.file = "/proc/self/exe",
		.args = (char **)(uintptr_t)words,
		.stdio = stdio,
		.stdio_count = ARRAY_LEN(stdio),
		.exit_cb = job_on_exit,
	};
	int rc;

	for (size_t i = 0; argv[i]; i++) {
		if (i == IMAGE_JOB_WORDS_MAX)
			return err_set(e, ERR_LIMIT, "more than %d arguments", IMAGE_JOB_WORDS_MAX);
		words[i + 1] = argv[i];
	}
	rc = uv_spawn(loop, &j->process, &options);
	return rc < 0 ? err_sys(e, -rc, "start holt %s", argv[0]) : 0;
}

/* Its pipes: the ends to write go to the program. */
static int job_pipes(struct image_job *j, uv_loop_t *loop, int ends[2], struct err *e)
{
	static const struct loop_reader_events of_out = { job_on_out, job_on_out_end },
					       of_err = { job_on_err, job_on_err_end };
	const struct loop_reader_events *const events[] = { &of_out, &of_err };

	for (int i = 0; i < 2; i++) {
		int both[2];

		if (pipe2(both, O_CLOEXEC) < 0)
			return err_sys(e, errno, "make a pipe");
		ends[i] = both[1];
		j->readers[i] = loop_reader_new(loop, both[0], events[i], j, e);
		if (!j->readers[i])
			return -1;
		j->open++;
	}
	return 0;
}

static void job_nothing(void *arg, const struct image_job_end *end)
{
}

struct image_job *image_job_start(uv_loop_t *loop, const char *const *argv, unsigned timeout_s,
				  void (*on_done)(void *arg, const struct image_job_end *end),
				  void *arg, struct err *e)
{
	struct image_job *j = calloc(1, sizeof(*j));
	int ends[2] = { -1, -1 }, rc;

	if (!j)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	j->out = BUF_INIT(OUT_MAX);
	j->err = BUF_INIT(2 * ERR_KEPT);
	j->on_done = on_done;
	j->arg = arg;
	uv_timer_init(loop, &j->timer);
	j->timer.data = j->process.data = j;
	j->open = 1;
	rc = job_pipes(j, loop, ends, e);
	if (rc == 0) {
		rc = job_spawn(j, loop, argv, ends[0], ends[1], e);
		j->open += j->process.loop != NULL; /* also where it did not start */
	}
	close_fd(&ends[0]);
	close_fd(&ends[1]);
	if (rc == 0) {
		loop_reader_next(j->readers[0]);
		loop_reader_next(j->readers[1]);
		uv_timer_start(&j->timer, job_on_late, timeout_s * 1000ull, 0);
		return j;
	}
	j->on_done = job_nothing;
	for (int i = 0; i < 2; i++) {
		if (j->readers[i])
			loop_reader_close(take_ptr(j->readers[i]), job_on_closed);
	}
	if (j->process.loop)
		uv_close((uv_handle_t *)&j->process, job_on_handle_closed);
	uv_close((uv_handle_t *)&j->timer, job_on_handle_closed);
	return NULL;
}
