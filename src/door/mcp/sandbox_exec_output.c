/*
 * sandbox_exec_output: what a command in the background has printed from an offset on, and whether it has ended. It can
 * wait: for the end, for a text or pattern, or for so much output; whichever comes first, and never longer than asked for.
 */
#include "door/mcp/tools.h"

#include <stdlib.h>

#include "hub/sandbox/job_wait.h"
#include "door/mcp/common.h"

enum {
	OUTPUT_MAX = 1024 * 1024,
	OUTPUT_DEFAULT = 64 * 1024,
	WAIT_MAX = 600,
	FILE_MS = 5000,
	LOOK_MS = 1000, /* for a text in what is there */
};

struct output_params {
	struct str sandbox, exec, wait_for, wait_pattern;
	uint64_t offset;
	uint32_t wait_seconds, max_bytes;
	bool kill;
};
static const struct field output_fields[] = {
	SANDBOX_ROW(struct output_params),
	FIELD(struct output_params, exec, .flags = FIELD_REQUIRED, .min = 1, .max = 64,
	      .doc = "Id that sandbox_exec gave."),
	FIELD(struct output_params, offset, .max = INT64_MAX,
	      .doc = "next_offset of the call before; 0 for the beginning."),
	FIELD(struct output_params, wait_seconds, .max = WAIT_MAX,
	      .doc = "Wait so long for its end; do not wait if absent."),
	FIELD(struct output_params, wait_for, .min = 1, .max = JOB_TEXT_MAX,
	      .doc = "Wait for this text in the output instead, such as \"ready\"."),
	FIELD(struct output_params, wait_pattern, .min = 1, .max = JOB_PATTERN_MAX,
	      .doc = "Or for a line of it that this regular expression matches, such as \"port [0-9]+\"."),
	FIELD(struct output_params, max_bytes, .min = 1024, .max = OUTPUT_MAX,
	      .def = DEFAULT_INT(OUTPUT_DEFAULT), .doc = "How much output to return at most."),
	FIELD(struct output_params, kill, .def = DEFAULT_BOOL(false),
	      .doc = "End it first, with all that it started."),
};
static const struct field_table output_input = FIELD_TABLE(struct output_params, output_fields);

struct output_result {
	struct str exec, out, err;
	enum job_state state;
	bool has_exit_code, found;
	int32_t exit_code;
	uint64_t next_offset, lost_bytes;
};
static const struct field result_fields[] = {
	FIELD(struct output_result, exec, .flags = FIELD_REQUIRED, .doc = "Its id."),
	FIELD_ENUM(struct output_result, state, job_state_names, .flags = FIELD_REQUIRED,
		   .doc = "Whether it runs, and how it ended."),
	FIELD(struct output_result, exit_code,
	      .has = FIELD_HAS(struct output_result, has_exit_code),
	      .doc = "Once it has ended; 128 and the signal's number, 124 at its timeout."),
	FIELD_NAMED(struct output_result, out, "stdout", .flags = FIELD_REQUIRED | FIELD_NUL_OK,
		    .doc = "What it printed since the offset."),
	FIELD_NAMED(struct output_result, err, "stderr", .flags = FIELD_REQUIRED | FIELD_NUL_OK,
		    .doc = "Likewise."),
	FIELD(struct output_result, next_offset, .flags = FIELD_REQUIRED, .doc = "Where to go on."),
	FIELD(struct output_result, lost_bytes, .flags = FIELD_REQUIRED,
	      .doc = "Of it what is not kept any more."),
	FIELD(struct output_result, found, .flags = FIELD_REQUIRED,
	      .doc = "What was waited for is in it."),
};
static const struct field_table output_output = FIELD_TABLE(struct output_result, result_fields);

/* First it waits, then it reads what is there. */
struct reading {
	struct call *call;
	const struct output_params *p;
	struct job *job; /* a reference */
	struct job_wait *wait; /* NULL: it reads, */
	struct spool_cursor *cursor; /* by this */
	struct buf streams[SPOOL_STREAMS];
	uint64_t lost;
	bool found, over;
	uv_timer_t timer; /* for what is read from a file; its memory goes with it, too */
};

static void free_reading(uv_handle_t *h)
{
	struct reading *r = h->data;

	for (size_t i = 0; i < SPOOL_STREAMS; i++)
		buf_fini(&r->streams[i]);
	free(r);
}

static void let_go(struct reading *r)
{
	r->over = true;
	spool_cursor_close(r->cursor);
	job_unref(r->job);
	uv_close((uv_handle_t *)&r->timer, free_reading);
}

static void finish(struct reading *r)
{
	struct job_info i;
	struct output_result out = { .found = r->found, .lost_bytes = r->lost };

	if (r->over)
		return;
	job_info(r->job, &i);
	out.exec = i.id;
	out.state = i.state;
	out.has_exit_code = i.has_result;
	out.exit_code = i.result.exit_code;
	out.out = buf_str(&r->streams[0]);
	out.err = buf_str(&r->streams[1]);
	out.next_offset = r->cursor ? spool_cursor_at(r->cursor) : r->p->offset;
	call_answer(r->call, &out);
	let_go(r);
}

/* ---- reading ------------------------------------------------------------------------------- */

/* What is there, but still on its way from a file. */
static bool is_behind(const struct reading *r)
{
	struct spool_stats stats;

	spool_stats(job_output(r->job), &stats);
	return spool_cursor_at(r->cursor) < stats.end;
}

/* Takes what there is; true when that is all. */
static bool take(struct reading *r)
{
	struct spool_piece piece;
	struct err e;

	for (;;) {
		size_t room = r->p->max_bytes - r->streams[0].n - r->streams[1].n;

		if (room == 0)
			return true;
		switch (spool_cursor_next(r->cursor, 3, room, &piece)) {
		case SPOOL_PIECE:
			if (buf_add(&r->streams[piece.stream], piece.bytes.p, piece.bytes.n, &e) <
			    0)
				return true;
			break;
		case SPOOL_LOST:
			r->lost += piece.lost;
			break;
		case SPOOL_LATER:
			return !is_behind(r);
		case SPOOL_END:
			return true;
		}
	}
}

static void on_more(void *arg)
{
	struct reading *r = arg;

	if (!r->over && take(r))
		finish(r);
}

static void on_timer(uv_timer_t *t)
{
	finish(t->data);
}

static void begin(struct reading *r)
{
	struct err e;

	r->cursor = spool_cursor_new(job_output(r->job), r->p->offset, on_more, r, &e);
	if (!r->cursor) {
		call_fail(r->call, &e);
		let_go(r);
	} else if (take(r)) {
		finish(r);
	} else {
		uv_timer_start(&r->timer, on_timer, FILE_MS, 0);
	}
}

/* ---- waiting ------------------------------------------------------------------------------- */

static void on_waited(void *arg, enum job_waited how, uint64_t offset, const struct err *err)
{
	struct reading *r = arg;

	r->wait = NULL;
	r->found = how == JOB_MATCHED && !err;
	if (err) {
		call_fail(r->call, err);
		let_go(r);
	} else {
		begin(r);
	}
}

static void on_cancel(void *data)
{
	struct reading *r = data;

	if (r->wait)
		job_wait_cancel(take_ptr(r->wait));
	finish(r);
}

static bool waits(const struct output_params *p)
{
	return p->wait_for.n || p->wait_pattern.n || p->wait_seconds;
}

/* Without wait_seconds what is there is looked at, and no more is waited for. */
static int start_waiting(struct reading *r, struct err *e)
{
	const struct job_wait_options o = {
		.text = r->p->wait_for,
		.pattern = r->p->wait_pattern,
		.streams = 3,
		.offset = r->p->offset,
		.most = r->p->max_bytes,
		.timeout_ms = r->p->wait_seconds ? r->p->wait_seconds * 1000ull : LOOK_MS,
	};

	if (call_waits(r->call, e) < 0)
		return -1;
	r->wait = job_wait_start(r->job, &o, on_waited, r, e);
	return r->wait ? 0 : -1;
}

static struct reading *reading_new(struct call *c, const struct output_params *p, struct job *j,
				   struct err *e)
{
	struct reading *r = calloc(1, sizeof(*r));

	if (!r) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	r->call = c;
	r->p = p;
	for (size_t i = 0; i < SPOOL_STREAMS; i++)
		r->streams[i] = BUF_INIT(OUTPUT_MAX);
	r->job = job_ref(j);
	uv_timer_init(call_loop(c), &r->timer);
	r->timer.data = r;
	return r;
}

static void run(struct call *c, const void *params)
{
	const struct output_params *p = params;
	struct err e = ERR_INIT;
	struct life *l = call_life(c, p->sandbox, &e);
	struct job *j = l ? job_find(l, p->exec, &e) : NULL;
	struct reading *r;

	if (!j || call_reserve(c, p->max_bytes, &e) < 0 || !(r = reading_new(c, p, j, &e))) {
		call_fail(c, &e);
		return;
	}
	if (waits(p) && start_waiting(r, &e) < 0) {
		let_go(r);
		call_fail(c, &e);
		return;
	}
	if (p->kill && job_exec(j))
		exec_kill(job_exec(j));
	call_on_cancel(c, on_cancel, r);
	if (!r->wait)
		begin(r);
}

const struct tool sandbox_exec_output_tool = {
	.op =
		&(const struct op){
			.action = "exec.output",
			.effect = OP_WRITE,
			.request = &output_input,
			.target = OP_TARGET(struct output_params, sandbox),
			.result = &output_output,
			.run = run,
		},
	.name = "sandbox_exec_output",
	.title = "Output of a background command",
	.doc = "Returns what a command that sandbox_exec runs in the background has printed since an offset, and "
	       "how it ended; can wait for its end, a text or a pattern, and can kill it.",
};
