#include "cli/verbs/trial.h"

#include <uv.h>

#include "base/clock.h"
#include "cli/common/verb_call.h"
#include "json/field/field.h"

struct trying {
	uv_loop_t loop;
	struct box *box;
	struct trial *t;
	uint64_t since_ns; /* the last step */
	bool over;
};

static void on_closed(void *arg)
{
}

static void trying_end(struct trying *y, const struct err *err)
{
	if (y->over)
		return;
	y->over = true;
	if (err)
		y->t->err = *err;
	box_stats(y->box, &y->t->stats);
	box_close(y->box, on_closed, y);
}

static void trying_step(struct trying *y)
{
	uint64_t now = clock_ns();

	y->t->milliseconds[y->t->done++] = (double)(now - y->since_ns) / 1e6;
	y->since_ns = now;
}

static void on_destroyed(void *arg, struct sandbox *sb, const struct err *err)
{
	struct trying *y = arg;

	if (!err)
		trying_step(y);
	trying_end(y, err);
}

static void on_output(void *arg, enum exec_stream stream, const char *p, size_t n)
{
}

struct trying_exec {
	struct trying *trying;
	struct sandbox *sandbox;
};

static void on_exit_(void *arg, const struct exec_result *result, const struct err *err)
{
	autofree struct trying_exec *x = arg;
	struct err e = ERR_INIT;

	if (!err && result->exit_code != 0) {
		err_set(&e, ERR_GUEST, "its test program ended with status %d", result->exit_code);
		err = &e;
	}
	if (err) {
		trying_end(x->trying, err);
	} else {
		trying_step(x->trying);
		sandbox_destroy_start(x->sandbox, on_destroyed, x->trying);
	}
	sandbox_unref(x->sandbox);
}

static const struct exec_events events = { .on_output = on_output, .on_exit = on_exit_ };

static void on_created(void *arg, struct sandbox *sb, const struct err *err)
{
	static const struct str argv[] = { { "true", 4 } };
	struct exec_spec spec = { .argv = argv, .n_argv = 1, .timeout_ms = 10000 };
	autofree struct trying_exec *x = calloc(1, sizeof(*x));
	struct trying *y = arg;
	struct err e = ERR_INIT;

	if (err || !x) {
		err_set(&e, ERR_LIMIT, "out of memory");
		trying_end(y, err ? err : &e);
		return;
	}
	trying_step(y);
	*x = (struct trying_exec){ .trying = y, .sandbox = sandbox_ref(sb) };
	if (exec_start(sb, &spec, &events, x, &e)) {
		take_ptr(x);
		return;
	}
	sandbox_unref(x->sandbox);
	trying_end(y, &e);
}

static void try_whole(struct trial *t, const char *allow)
{
	struct sandbox_spec spec = { .ttl_ms = 20000 };
	struct trying y = { .t = t, .since_ns = clock_ns() };

	if (uv_loop_init(&y.loop) < 0) {
		err_set(&t->err, ERR_LIMIT, "no event loop");
		return;
	}
	y.box = box_new(&y.loop, &(struct box_config){ .allow = allow }, &t->err);
	if (y.box)
		sandbox_create_start(y.box, &spec, on_created, &y);
	uv_run(&y.loop, UV_RUN_DEFAULT);
	uv_loop_close(&y.loop);
}

/* ---- the call ------------------------------------------------------------------------------ */

struct trial_request {
	struct str allow;
};
static const struct field request_fields[] = {
	FIELD(struct trial_request, allow, .doc = "Isolation features that may be missing."),
};
static const struct field_table request_table = FIELD_TABLE(struct trial_request, request_fields);

static const struct op trial_op = {
	.action = "host.doctor",
	.doc = "Makes a sandbox, runs a program in it, and removes it.",
	.effect = OP_EXECUTE,
	.request = &request_table,
	.run = local_run,
};

void trial_run(struct trial *ret, const struct cli *cli, const char *allow)
{
	const struct trial_request request = { str_of(allow) };
	struct verb_call *call;

	*ret = (struct trial){ .err = ERR_INIT };
	call = verb_call_begin(cli, NULL, &trial_op, &request, &ret->err);
	if (!call)
		return;
	try_whole(ret, allow);
	verb_call_end(call, trial_ok(ret) ? NULL : &ret->err);
}
