/*
 * Runs the steps of a build one after the other in one sandbox, which has the network that the
 * operator grants, then packs its root as a tar archive. Output of the steps goes to standard error
 * at once; a slow terminal slows them down.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/build/build.h"
#include "cli/build/internal.h"
#include "cli/common/safe.h"
#include "cli/common/worker.h"

static const int signals[STEPS_SIGNALS] = { SIGINT, SIGTERM, SIGHUP };

/* ---- the end ------------------------------------------------------------------------------- */

static void on_closed(void *arg)
{
	struct steps *s = arg;

	for (size_t i = 0; i < ARRAY_LEN(s->signals); i++)
		uv_close((uv_handle_t *)&s->signals[i], NULL);
}

static void on_nets_closed(void *arg)
{
	struct steps *s = arg;

	box_close(s->box, on_closed, s);
}

void steps_finish(struct steps *s, const struct err *e)
{
	if (s->ending)
		return;
	s->ending = true;
	if (e)
		s->err = *e;
	if (s->transfer)
		file_transfer_stop(take_ptr(s->transfer));
	if (s->in)
		loop_reader_close(take_ptr(s->in), NULL);
	steps_keep_stop(s);
	net_free(take_ptr(s->net));
	sandbox_unref(take_ptr(s->sandbox));
	if (s->nets)
		nets_close(s->nets, on_nets_closed, s);
	else
		box_close(s->box, on_closed, s);
}

/* The image can only be removed after the sandbox. */
static void on_signal(uv_signal_t *h, int number)
{
	struct err e = ERR_INIT;

	err_set(&e, ERR_CANCELLED, "interrupted");
	steps_finish(h->data, &e);
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

/* The whole archive has arrived, and init has confirmed its end. */
static void steps_settle(struct steps *s)
{
	if (s->tar.archived && !s->in)
		steps_finish(s, NULL);
}

static void on_archived(void *arg, const struct err *err)
{
	struct steps *s = arg;

	s->transfer = NULL;
	s->tar.archived = true;
	if (err)
		steps_finish(s, err);
	else
		steps_settle(s);
}

/* The sandbox writes to a pipe, not to the file, so the size limit is enforced here. */
static void on_tar(void *owner, struct str bytes)
{
	struct steps *s = owner;
	struct err e = ERR_INIT;

	s->tar.n += bytes.n;
	if (s->tar.n > IMAGE_LIMITS.bytes)
		err_set(&e, ERR_TOO_LARGE, "take over what was built");
	else if (fd_write(s->of->to, bytes.p, bytes.n) < 0)
		err_sys(&e, errno, "write what was built");
	if (e.code)
		steps_finish(s, &e);
	else
		loop_reader_next(s->in);
}

static void on_tar_end(void *owner, const struct err *err)
{
	struct steps *s = owner;

	loop_reader_close(take_ptr(s->in), NULL);
	if (err)
		steps_finish(s, err);
	else
		steps_settle(s);
}

static int take_root(struct steps *s, struct err *e)
{
	static const struct loop_reader_events tar_events = { on_tar, on_tar_end };
	const struct file_archive_opts all = { .n_leave_out = 0 };
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "take over what was built");
	s->in = loop_reader_new(&s->loop, ends[0], &tar_events, s, e);
	if (!s->in) {
		close(ends[1]);
		return -1;
	}
	loop_reader_next(s->in);
	s->transfer = file_archive_start(s->sandbox, STR_LIT("/"), &all, ends[1], on_archived, s);
	return 0;
}

/* ---- the steps ----------------------------------------------------------------------------- */

static struct str line_of(const struct steps *s)
{
	return s->of->spec->run.p[s->at];
}

static void on_output(void *arg, enum exec_stream stream, const char *p, size_t n)
{
	fd_write(STDERR_FILENO, p, n); /* nobody has to read it */
}

static int steps_explain(const struct steps *s, const struct exec_result *r, struct err *e)
{
	const char *why = r->hit_memory ? "; the memory limit was reached (limits.memory_mb)"
			: r->hit_pids	? "; the process limit was reached (limits.pids)"
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
		steps_finish(s, err);
	} else if (result->end != EXEC_EXITED || result->exit_code != 0) {
		steps_explain(s, result, &e);
		steps_finish(s, &e);
	} else {
		steps_keep(s);
	}
}

static const struct exec_events events = { .on_output = on_output, .on_exit = on_exit_ };

void steps_next(struct steps *s)
{
	const struct build_spec *spec = s->of->spec;
	struct err e = ERR_INIT;
	struct exec_spec what;

	if (s->at == spec->run.n) {
		if (take_root(s, &e) < 0)
			steps_finish(s, &e);
		return;
	}
	what = (struct exec_spec){
		.shell = line_of(s),
		.timeout_ms = (uint64_t)spec->timeout_seconds * 1000,
	};
	fprintf(stderr, "step %zu of %zu: ", s->at + 1, spec->run.n);
	safe_puts(stderr, line_of(s));
	if (!exec_start(s->sandbox, &what, &events, s, &e))
		steps_finish(s, &e);
}

static void on_granted(void *arg, const struct err *err)
{
	struct steps *s = arg;

	if (s->ending)
		return;
	if (err)
		steps_finish(s, err);
	else
		steps_restore(s);
}

static void on_created(void *arg, struct sandbox *sb, const struct err *err)
{
	struct steps *s = arg;
	const struct grants_to to = { &s->loop, s->box, sb };
	struct err e = ERR_INIT;

	if (err) {
		steps_finish(s, err);
		return;
	}
	s->sandbox = sandbox_ref(sb);
	if (s->place->grants.allow.n == 0)
		steps_restore(s);
	else if (grants_give(&s->place->grants, &to, &s->nets, &s->net, on_granted, s, &e) < 0)
		steps_finish(s, &e);
}

static void steps_create(struct steps *s)
{
	const struct sandbox_spec spec = {
		.template = STR_LIT("build"),
		.limits = build_limits(s->of->spec),
	};

	sandbox_create_start(s->box, &spec, on_created, s);
}

static void on_dropped(void *arg, struct sandbox *sb, const struct err *err)
{
	struct steps *s = arg;

	if (s->ending)
		return;
	sandbox_unref(take_ptr(s->sandbox));
	if (err)
		steps_finish(s, err);
	else
		steps_create(s);
}

void steps_anew(struct steps *s)
{
	net_free(take_ptr(s->net));
	sandbox_destroy_start(s->sandbox, on_dropped, s);
}

struct job {
	const struct image_steps *of;
	const struct build_place *place;
};

/* In a separate process: the engine may have threads, and the process that unpacks the tar must
 * have none. */
static int steps_run(void *arg, void *out, struct err *e)
{
	const struct job *j = arg;
	struct steps s = { .of = j->of, .place = j->place, .back = { .file = -1 } };
	const struct box_config config = {
		.allow = j->place->allow,
		.find_template = j->of->find,
		.root = j->of->spec->run_user == BUILD_ROOT,
		.find_arg = j->of->find_arg,
	};

	if (uv_loop_init(&s.loop) < 0)
		return err_set(e, ERR_LIMIT, "out of memory");
	s.box = box_new(&s.loop, &config, e);
	if (!s.box)
		return -1;
	catch_signals(&s);
	s.back.file = build_cache_find(j->of->cache, &s.back.done, &s.back.left);
	steps_create(&s);
	uv_run(&s.loop, UV_RUN_DEFAULT);
	uv_loop_close(&s.loop);
	*e = s.err;
	return s.err.code ? -1 : 0;
}

int build_steps(void *place, const struct image_steps *steps, struct err *e)
{
	const struct worker w = { NULL, NULL };
	struct job j = { steps, place };
	char unused = 0;

	return worker_run(&w, steps_run, &j, &unused, sizeof(unused), e);
}
