/*
 * The steps of a build: one behind the other in one sandbox, without a network, and then a tar of what its root
 * is. What they print goes to standard error as it comes; a terminal that takes nothing holds them up.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <uv.h>

#include "base/fd.h"
#include "box/box.h"
#include "cli/build.h"
#include "cli/safe.h"
#include "cli/worker.h"

static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

struct steps {
	const struct image_steps *of;
	uv_loop_t loop;
	uv_signal_t signals[ARRAY_LEN(signals)];
	struct box *box;
	struct sandbox *sandbox;
	size_t at; /* the step that runs, from 0 */
	struct {
		int fd; /* what comes of the tar; -1: no more */
		uv_poll_t poll;
		uint64_t n;
		char block[64 * 1024];
	} tar;
	struct file_transfer *transfer; /* while it is written */
	bool archived;
	bool ending;
	struct err err;
};

/* ---- the end ------------------------------------------------------------------------------- */

static void on_closed(void *arg)
{
	struct steps *s = arg;

	for (size_t i = 0; i < ARRAY_LEN(s->signals); i++)
		uv_close((uv_handle_t *)&s->signals[i], NULL);
}

static void stop_reading(struct steps *s)
{
	if (s->tar.fd < 0)
		return;
	uv_close((uv_handle_t *)&s->tar.poll, NULL);
	close_fd(&s->tar.fd);
}

static void finish(struct steps *s, const struct err *e)
{
	if (s->ending)
		return;
	s->ending = true;
	if (e)
		s->err = *e;
	if (s->transfer)
		file_transfer_stop(take_ptr(s->transfer));
	stop_reading(s);
	sandbox_unref(take_ptr(s->sandbox));
	box_close(s->box, on_closed, s);
}

/* The sandbox has to be gone before its image can be removed. */
static void on_signal(uv_signal_t *h, int number)
{
	struct err e = ERR_INIT;

	err_set(&e, ERR_CANCELLED, "interrupted");
	finish(h->data, &e);
}

static void catch_signals(struct steps *s)
{
	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		uv_signal_init(&s->loop, &s->signals[i]);
		s->signals[i].data = s;
		uv_signal_start(&s->signals[i], on_signal, signals[i]);
	}
}

/* ---- the result ---------------------------------------------------------------------------- */

/* All of the tar has come, and init has said that this is all. */
static void settle(struct steps *s)
{
	if (s->archived && s->tar.fd < 0)
		finish(s, NULL);
}

static void on_archived(void *arg, const struct err *err)
{
	struct steps *s = arg;

	s->transfer = NULL;
	s->archived = true;
	if (err)
		finish(s, err);
	else
		settle(s);
}

/* The sandbox has one end of a pipe, not the file: how much there may be of it is decided here. */
static void on_tar(uv_poll_t *h, int status, int ready)
{
	struct steps *s = h->data;
	ssize_t n = read(s->tar.fd, s->tar.block, sizeof(s->tar.block));
	struct err e = ERR_INIT;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == 0) {
		stop_reading(s);
		settle(s);
		return;
	}
	s->tar.n += n > 0 ? (uint64_t)n : 0;
	if (n < 0 || s->tar.n > IMAGE_LIMITS.bytes)
		err_set(&e, n < 0 ? ERR_IO : ERR_TOO_LARGE, "take over what was built");
	else if (fd_write(s->of->to, s->tar.block, (size_t)n) < 0)
		err_sys(&e, errno, "write what was built");
	if (e.code)
		finish(s, &e);
}

static int take_root(struct steps *s, struct err *e)
{
	const struct file_archive_opts all = { .n_leave_out = 0 };
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "take over what was built");
	s->tar.fd = ends[0];
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	uv_poll_init(&s->loop, &s->tar.poll, ends[0]);
	s->tar.poll.data = s;
	uv_poll_start(&s->tar.poll, UV_READABLE, on_tar);
	s->transfer = file_archive_start(s->sandbox, STR_LIT("/"), &all, ends[1], on_archived, s);
	return 0;
}

/* ---- the steps ----------------------------------------------------------------------------- */

static void start_step(struct steps *s);

static struct str line_of(const struct steps *s)
{
	return s->of->spec->run.p[s->at];
}

static void on_output(void *arg, enum exec_stream stream, const char *p, size_t n)
{
	fd_write(STDERR_FILENO, p, n); /* nobody has to read it */
}

static int explain(const struct steps *s, const struct exec_result *r, struct err *e)
{
	const char *why = r->hit_memory ? "; its memory was used up (limits.memory_mb)"
			: r->hit_pids	? "; it had no more processes (limits.pids)"
					: "";

	if (r->end == EXEC_TIMED_OUT)
		return err_set(e, ERR_BUILD, "step %zu took more than %u seconds: %.*s", s->at + 1,
			       s->of->spec->timeout_seconds, STR_CUT(line_of(s), 80));
	return err_set(e, ERR_BUILD, "step %zu ended with status %d%s: %.*s", s->at + 1,
		       r->exit_code, why, STR_CUT(line_of(s), 80));
}

static void on_exit_(void *arg, const struct exec_result *result, const struct err *err)
{
	struct steps *s = arg;
	struct err e = ERR_INIT;

	if (err || s->ending) {
		finish(s, err);
	} else if (result->end != EXEC_EXITED || result->exit_code != 0) {
		explain(s, result, &e);
		finish(s, &e);
	} else {
		s->at++;
		start_step(s);
	}
}

static const struct exec_events events = { .on_output = on_output, .on_exit = on_exit_ };

static void start_step(struct steps *s)
{
	const struct build_spec *spec = s->of->spec;
	struct err e = ERR_INIT;
	struct exec_spec what;

	if (s->at == spec->run.n) {
		if (take_root(s, &e) < 0)
			finish(s, &e);
		return;
	}
	what = (struct exec_spec){
		.shell = line_of(s),
		.timeout_ms = (uint64_t)spec->timeout_seconds * 1000,
	};
	fprintf(stderr, "step %zu of %zu: ", s->at + 1, spec->run.n);
	safe_line(stderr, line_of(s));
	fputc('\n', stderr);
	if (!exec_start(s->sandbox, &what, &events, s, &e))
		finish(s, &e);
}

static void on_created(void *arg, struct sandbox *sb, const struct err *err)
{
	struct steps *s = arg;

	if (err) {
		finish(s, err);
		return;
	}
	s->sandbox = sandbox_ref(sb);
	start_step(s);
}

struct job {
	const struct image_steps *of;
	const char *allow;
};

/* In a process of its own: the engine may have threads, and who unpacks the tar must have none. */
static int run(void *arg, void *out, struct err *e)
{
	const struct job *j = arg;
	struct steps s = { .of = j->of, .tar = { .fd = -1 } };
	const struct box_config config = {
		.allow = j->allow,
		.find_template = j->of->find,
		.find_arg = j->of->find_arg,
	};
	const struct sandbox_spec spec = {
		.template = STR_LIT("build"),
		.limits = build_limits(j->of->spec),
	};

	if (uv_loop_init(&s.loop) < 0)
		return err_set(e, ERR_LIMIT, "out of memory");
	s.box = box_new(&s.loop, &config, e);
	if (!s.box)
		return -1;
	catch_signals(&s);
	sandbox_create_start(s.box, &spec, on_created, &s);
	uv_run(&s.loop, UV_RUN_DEFAULT);
	uv_loop_close(&s.loop);
	*e = s.err;
	return s.err.code ? -1 : 0;
}

int build_steps(void *allow, const struct image_steps *steps, struct err *e)
{
	const struct worker w = { NULL, NULL };
	struct job j = { steps, allow };
	char unused = 0;

	return worker_run(&w, run, &j, &unused, sizeof(unused), e);
}
