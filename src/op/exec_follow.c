/* Followers of what an exec prints, and those among them who also say something: exec.attach. */
#include <stdlib.h>

#include "call/call.h"
#include "op/exec_output.h"

enum { FOLLOW_CHUNK = 64 << 10 };

/* ---- what it is told ----------------------------------------------------------------------- */

static const char *const news_names[] = { "chunk", "dropped", "end", "attached" };

#define N struct exec_news
static const struct field news_fields[] = {
	FIELD_ENUM(N, kind, news_names, .flags = FIELD_REQUIRED,
		   .doc = "Kind of message; end is the last."),
	FIELD(N, offset, .flags = FIELD_REQUIRED,
	      .doc = "Offset of the chunk's first byte; in other messages, the current offset "
		     "in the output."),
	FIELD(N, dropped, .doc = "Bytes of both streams that are no longer kept."),
	FIELD(N, tty, .doc = "When attached: the exec has a terminal."),
	FIELD(N, stdin_open, .doc = "When attached: its standard input is open."),
	FIELD_ENUM(N, state, job_state_names, .doc = "At the end: state of the exec."),
	FIELD_OBJECT(N, event, exec_event_table, .doc = "Output of a chunk, or result at the end."),
};
#undef N
const struct field_table exec_news_table = FIELD_TABLE(struct exec_news, news_fields);

static void exec_tell_end(struct exec_following *f)
{
	struct exec_news n = { .kind = EXEC_NEWS_END, .offset = spool_cursor_at(f->cursor) };
	struct job_info i;

	job_info(f->job, &i);
	if (!i.has_result && i.why)
		f->lost = *i.why;
	else if (!i.has_result)
		err_set(&f->lost, ERR_GUEST, "nobody knows how it ended");
	n.state = i.state;
	exec_end_event(i.has_result ? &i.result : NULL, &f->lost, &n.event);
	call_send(f->call, &n);
}

static void exec_tell_piece(struct exec_following *f, unsigned stream, struct str bytes,
			    enum redact_flush flush)
{
	struct str said = call_redact_piece(f->call, stream ? CALL_STDERR : CALL_STDOUT, bytes,
					    flush);

	if (said.n > 0)
		call_send_redacted(f->call,
				   &(struct exec_news){
					   .kind = EXEC_NEWS_CHUNK,
					   .offset = f->held_at[stream],
					   .event = { .stream = stream ? EXEC_STDERR : EXEC_STDOUT,
						      .bytes = said } });
}

static void exec_tell_held(struct exec_following *f, enum redact_flush flush)
{
	exec_tell_piece(f, 0, STR_NONE, flush);
	exec_tell_piece(f, 1, STR_NONE, flush);
}

/* Bytes before the start are only looked at, for redaction. */
static void exec_tell_bytes(struct exec_following *f, const struct spool_piece *piece)
{
	enum call_stream s = piece->stream ? CALL_STDERR : CALL_STDOUT;
	struct str bytes = exec_bytes_from(f->call, piece, f->from);
	size_t held;

	if (bytes.n == 0)
		return;
	if (call_redact_held(f->call, s) == 0)
		f->held_at[piece->stream] = piece->offset + piece->bytes.n - bytes.n;
	exec_tell_piece(f, piece->stream, bytes, REDACT_MORE);
	held = call_redact_held(f->call, s);
	if (held <= bytes.n)
		f->held_at[piece->stream] = piece->offset + piece->bytes.n - held;
}

static void exec_follow_on_cancel(void *data)
{
	struct exec_following *f = data;
	struct err e;

	if (f->telling)
		return; /* who tells ends it */
	err_set(&e, ERR_CANCELLED, "nobody waits for it any more");
	f->on_end(f, &e);
}

static void exec_follow_on_quiet(void *data)
{
	struct exec_following *f = data;

	/* Then there is more to come, or the client has gone. */
	if (f->telling || call_cancelled(f->call) || call_full(f->call))
		return;
	f->telling = true;
	exec_tell_held(f, REDACT_QUIET);
	f->telling = false;
	if (call_cancelled(f->call))
		exec_follow_on_cancel(f);
}

static enum spool_step exec_tell_next(struct exec_following *f)
{
	struct spool_piece piece;
	enum spool_step step = spool_cursor_next(f->cursor, f->streams, FOLLOW_CHUNK, &piece);
	struct job_info i;

	if (step == SPOOL_PIECE) {
		exec_tell_bytes(f, &piece);
	} else if (step == SPOOL_LOST) {
		exec_tell_held(f, REDACT_END);
		call_send(f->call, &(struct exec_news){ .kind = EXEC_NEWS_DROPPED,
							.offset = piece.offset,
							.dropped = piece.lost });
	} else if (step == SPOOL_END) {
		exec_tell_held(f, REDACT_END);
		exec_tell_end(f);
	} else if (call_redact_held(f->call, CALL_STDOUT) +
		   call_redact_held(f->call, CALL_STDERR)) {
		job_info(f->job, &i);
		call_on_quiet(f->call, i.terminal ? QUIET_TTY_MS : QUIET_MS, exec_follow_on_quiet,
			      f);
	}
	return step;
}

/* As much as the client takes: what is left is read when there is room, or more. */
void exec_follow_on(void *arg)
{
	struct exec_following *f = arg;
	enum spool_step step = SPOOL_PIECE;

	f->telling = true;
	while ((step == SPOOL_PIECE || step == SPOOL_LOST) && !call_cancelled(f->call) &&
	       !call_full(f->call))
		step = exec_tell_next(f);
	f->telling = false;
	if (call_cancelled(f->call))
		exec_follow_on_cancel(f);
	else if (step == SPOOL_END)
		f->on_end(f, NULL);
}

void exec_follow_stop(struct exec_following *f)
{
	spool_cursor_close(take_ptr(f->cursor));
	job_unref(take_ptr(f->job));
}

int exec_follow_start(struct exec_following *f, struct job *j, uint64_t offset, struct err *e)
{
	if (!call_streams(f->call))
		return err_set(e, ERR_INVALID, "this door takes no stream");
	f->lost = (struct err)ERR_INIT;
	f->from = offset;
	f->cursor = spool_cursor_new(job_output(j), exec_look_from(f->call, j, offset),
				     exec_follow_on, f, e);
	if (!f->cursor)
		return -1;
	f->job = job_ref(j);
	if (call_waits(f->call, e) == 0 && call_open(f->call, exec_follow_on, f, e) == 0) {
		call_on_cancel(f->call, exec_follow_on_cancel, f);
		return 0;
	}
	exec_follow_stop(f);
	return -1;
}

/* ---- exec.attach: what the client says ------------------------------------------------------ */

enum {
	/* From where on clients have to wait, and how often it is looked whether they still have:
	 * others who are attached may send, too, so that nobody has the exec's drain for
	 * himself. */
	INPUT_HIGH = 512 << 10,
	KEPT_MAX = 512 << 10, /* with INPUT_HIGH no more than exec_write() takes */
	LOOK_MS = 20,
};

struct exec_attached {
	struct exec_following follow; /* first */
	struct buf kept; /* what was sent and the exec has no room for */
	bool reserved; /* room for that */
	bool ends; /* and the end of input behind that */
	uv_timer_t look; /* while the client is held; its memory goes with it */
};

static bool exec_is_full(const struct exec *x)
{
	return exec_reads(x) && exec_waiting(x) > INPUT_HIGH;
}

/* Hands on what was kept. */
static int exec_pass_on(struct exec_attached *a, struct exec *x, struct err *e)
{
	int rc = exec_write(x, a->kept.p, a->kept.n, e);

	buf_fini(&a->kept);
	if (rc == 0 && a->ends)
		exec_close_stdin(x);
	a->ends = false;
	return rc;
}

/* Nobody waits for one that has ended. */
static void exec_look_again(uv_timer_t *t)
{
	struct exec_attached *a = t->data;
	struct exec *x = job_exec(a->follow.job);
	struct err e;

	if (x && exec_is_full(x))
		return;
	if (x && exec_pass_on(a, x, &e) < 0) {
		a->follow.on_end(&a->follow, &e);
	} else if (!x || !exec_is_full(x)) {
		uv_timer_stop(t);
		call_hold(a->follow.call, false);
	}
}

static int exec_keep(struct exec_attached *a, struct str bytes, struct err *e)
{
	if (!a->reserved && call_reserve(a->follow.call, KEPT_MAX, e) < 0)
		return -1;
	a->reserved = true;
	return buf_add(&a->kept, bytes.p, bytes.n, e);
}

/* Behind what others have sent, and in the order in which it came: where the exec has no room, the
 * client has to wait. */
static int exec_send_on(struct exec_attached *a, struct exec *x, struct str bytes, struct err *e)
{
	bool keeps = a->kept.n || exec_is_full(x);
	int rc = keeps ? exec_keep(a, bytes, e) : exec_write(x, bytes.p, bytes.n, e);

	if (rc == 0 && exec_is_full(x)) {
		call_hold(a->follow.call, true);
		uv_timer_start(&a->look, exec_look_again, LOOK_MS, LOOK_MS);
	}
	return rc;
}

static int exec_attached_hear(void *data, const void *message, struct err *e)
{
	const struct exec_word *w = message;
	struct exec_attached *a = data;
	struct exec *x = job_exec(a->follow.job);

	if (!x)
		return 0; /* it has ended: that is on its way */
	if (w->kind == EXEC_WORD_INPUT)
		return exec_reads(x) ? exec_send_on(a, x, w->bytes, e) : 0;
	if (w->kind != EXEC_WORD_INPUT_END)
		return exec_obey(x, w, e);
	if (a->kept.n)
		a->ends = true;
	else
		exec_close_stdin(x);
	return 0;
}

/* ---- exec.attach --------------------------------------------------------------------------- */

struct attach_request {
	struct str sandbox, exec;
	bool has_offset;
	uint64_t offset;
};
static const struct field attach_fields[] = {
	OP_JOB_ROWS(struct attach_request),
	FIELD(struct attach_request, offset, .has = FIELD_HAS(struct attach_request, has_offset),
	      .doc = "Start with the output from this offset, which counts bytes of both "
		     "streams; absent: only new output."),
};
static const struct field_table attach_table = FIELD_TABLE(struct attach_request, attach_fields);

static void exec_on_timer_closed(uv_handle_t *h)
{
	free(h->data);
}

/* One that never ran or was lost is a failure, behind its end. */
static void exec_attached_on_end(struct exec_following *f, const struct err *err)
{
	struct exec_attached *a = (struct exec_attached *)f;
	struct call *c = f->call;
	struct err why = err ? *err : f->lost;

	exec_follow_stop(f);
	buf_fini(&a->kept);
	uv_close((uv_handle_t *)&a->look, exec_on_timer_closed);
	if (why.code != ERR_NONE)
		call_fail(c, &why);
	else
		call_answer(c, NULL);
}

static struct exec_attached *exec_attached_new(struct call *c, struct job *j, uint64_t offset,
					       struct err *e)
{
	struct exec_attached *a = calloc(1, sizeof(*a));

	if (!a)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	a->follow =
		(struct exec_following){ .call = c, .streams = 3, .on_end = exec_attached_on_end };
	if (exec_follow_start(&a->follow, j, offset, e) < 0) {
		free(a);
		return NULL;
	}
	a->kept = BUF_INIT(KEPT_MAX);
	uv_timer_init(call_loop(c), &a->look);
	a->look.data = a;
	return a;
}

static void exec_attach_run(struct call *c, const void *request)
{
	const struct attach_request *q = request;
	struct exec_news hello = { .kind = EXEC_NEWS_ATTACHED };
	struct err e = ERR_INIT;
	struct job *j = call_job(c, q->sandbox, q->exec, &e);
	struct exec_attached *a = NULL;
	struct job_info i;

	if (j) {
		job_info(j, &i);
		hello.offset = q->has_offset ? q->offset : i.output.end;
		hello.tty = i.terminal;
		hello.stdin_open = i.reads;
		a = exec_attached_new(c, j, hello.offset, &e);
	}
	if (!a) {
		call_fail(c, &e);
		return;
	}
	a->follow.telling = true;
	call_send(c, &hello);
	call_listen(c, exec_attached_hear, a);
	exec_follow_on(&a->follow);
}

const struct op exec_attach_op = {
	.action = "exec.attach",
	.doc = "Attaches to an exec over a WebSocket: its output, input and terminal, "
	       "until it ends. A client that disconnects leaves it running.",
	.effect = OP_EXECUTE,
	.flags = OP_WAITS | OP_COMMANDS,
	.request = &attach_table,
	.target = OP_TARGET(struct attach_request, sandbox),
	.event = &exec_news_table,
	.run = exec_attach_run,
};
