/*
 * sandbox_exec_output: what a command in the background has printed from an offset on, and whether it has ended. It can
 * wait: for the end, for a text, or for so much output; whichever comes first, and never longer than asked for.
 */
#include "tools/tools.h"

#include <stdlib.h>

#include "hub/job.h"
#include "tools/common.h"

enum {
	OUTPUT_MAX = 1024 * 1024,
	OUTPUT_DEFAULT = 64 * 1024,
	WAIT_MAX = 600,
	TEXT_MAX = 1024,
	FILE_MS = 5000
};

struct output_params {
	struct str sandbox, exec, wait_for;
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
	FIELD(struct output_params, wait_for, .min = 1, .max = TEXT_MAX,
	      .doc = "Wait for this text in the output instead, such as \"ready\"."),
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
	      .doc = "The text that was waited for is in it."),
};
static const struct field_table output_output = FIELD_TABLE(struct output_result, result_fields);

struct reading {
	struct call *call;
	const struct output_params *p;
	struct job *job; /* a reference */
	struct spool_cursor *cursor;
	struct buf streams[SPOOL_STREAMS];
	size_t looked[SPOOL_STREAMS]; /* where the text may still begin */
	uint64_t lost;
	bool found, late, over;
	uv_timer_t timer; /* until it has waited long enough; also what its memory goes with */
};

static void free_reading(uv_handle_t *h)
{
	struct reading *r = h->data;

	for (size_t i = 0; i < SPOOL_STREAMS; i++)
		buf_fini(&r->streams[i]);
	free(r);
}

static void answer(struct reading *r)
{
	struct job_info i;
	struct output_result out = { .found = r->found, .lost_bytes = r->lost };

	job_info(r->job, &i);
	out.exec = i.id;
	out.state = i.state;
	out.has_exit_code = i.has_result;
	out.exit_code = i.result.exit_code;
	out.out = buf_str(&r->streams[0]);
	out.err = buf_str(&r->streams[1]);
	out.next_offset = spool_cursor_at(r->cursor);
	call_answer(r->call, &(struct call_answer){ .structured = &out });
}

static void finish(struct reading *r)
{
	if (r->over)
		return;
	r->over = true;
	answer(r);
	spool_cursor_close(r->cursor);
	job_unref(r->job);
	uv_close((uv_handle_t *)&r->timer, free_reading);
}

/* Looks at what is new, and at as much before it as may be the text's beginning. */
static void look(struct reading *r, unsigned stream)
{
	const struct buf *b = &r->streams[stream];
	struct str text = r->p->wait_for;
	size_t from = r->looked[stream];

	if (!text.p || b->n < text.n)
		return;
	if (memmem(b->p + from, b->n - from, text.p, text.n))
		r->found = true;
	r->looked[stream] = b->n - text.n + 1;
}

/* Takes what there is; true when it is enough. */
static bool take(struct reading *r)
{
	struct spool_piece piece;
	struct err e;

	while (!r->found) {
		size_t room = r->p->max_bytes - r->streams[0].n - r->streams[1].n;

		if (room == 0)
			return true;
		switch (spool_cursor_next(r->cursor, 3, room, &piece)) {
		case SPOOL_PIECE:
			if (buf_add(&r->streams[piece.stream], piece.bytes.p, piece.bytes.n, &e) <
			    0)
				return true;
			look(r, piece.stream);
			break;
		case SPOOL_LOST:
			r->lost += piece.lost;
			break;
		case SPOOL_END:
			return true;
		default:
			return false;
		}
	}
	return true;
}

static void on_more(void *arg)
{
	struct reading *r = arg;

	if (!r->over && take(r))
		finish(r);
}

/* What is there, but still on its way from a file. */
static bool is_behind(const struct reading *r)
{
	struct spool_stats stats;

	spool_stats(job_output(r->job), &stats);
	return spool_cursor_at(r->cursor) < stats.end;
}

static void on_timer(uv_timer_t *t)
{
	struct reading *r = t->data;

	if (r->late || r->streams[0].n + r->streams[1].n > 0 || !is_behind(r)) {
		finish(r);
		return;
	}
	r->late = true;
	uv_timer_start(t, on_timer, FILE_MS, 0);
}

static void on_cancel(void *data)
{
	finish(data);
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
	r->cursor = spool_cursor_new(job_output(j), p->offset, on_more, r, e);
	if (!r->cursor) {
		free(r);
		return NULL;
	}
	r->job = job_ref(j);
	uv_timer_init(call_loop(c), &r->timer);
	r->timer.data = r;
	return r;
}

static void run(struct call *c, const void *params)
{
	const struct output_params *p = params;
	struct err e = ERR_INIT;
	struct life *l = lives_find(call_lives(c), p->sandbox, &e);
	struct job *j = l ? job_find(l, p->exec, &e) : NULL;
	struct reading *r;

	if (!j || call_reserve(c, p->max_bytes, &e) < 0 || !(r = reading_new(c, p, j, &e))) {
		call_fail(c, &e);
		return;
	}
	if (p->kill && job_exec(j))
		exec_kill(job_exec(j));
	if (take(r)) {
		finish(r);
		return;
	}
	uv_timer_start(&r->timer, on_timer, p->wait_seconds * 1000ull, 0);
	call_on_cancel(c, on_cancel, r);
}

const struct tool sandbox_exec_output_tool = {
	.name = "sandbox_exec_output",
	.title = "Output of a background command",
	.doc = "Returns what a command that sandbox_exec runs in the background has printed since an offset, and "
	       "how it ended; can wait for its end or for a text, and can kill it.",
	.input = &output_input,
	.output = &output_output,
	.read_only = MCP_NO,
	.destructive = MCP_NO,
	.idempotent = MCP_NO,
	.open_world = MCP_NO,
	.run = run,
};
