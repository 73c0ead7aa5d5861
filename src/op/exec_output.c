#include "op/exec_output.h"

#include "call/call.h"
#include "call/guard.h"
#include "guard/redact/redact.h"

enum {
	READ_DEFAULT = 1 << 20,
	READ_MAX = 4 << 20,
	CHUNKS_MAX = 4096, /* of one answer */
	WAIT_DEFAULT = 30,
	WAIT_MAX = 86400,
	WAIT_FIRST_MAX = 600,
	LOOK_MS = 1000, /* for a text in what is there */
};

static const char *const stream_names[] = { "stdout", "stderr", "both" };

static unsigned exec_stream_mask(enum exec_streams stream)
{
	return stream == EXEC_STREAMS_BOTH ? 3 : 1u << stream;
}

/* ---- the tables of exec.output ------------------------------------------------------------- */

#define Q struct exec_output_request
static const struct field output_fields[] = {
	OP_JOB_ROWS(Q),
	FIELD(Q, offset,
	      .doc = "Where to start: 0 or a next_offset. It counts bytes of both streams."),
	FIELD(Q, wait_seconds, .max = WAIT_FIRST_MAX,
	      .doc = "Seconds to wait for its end; absent: do not wait."),
	FIELD(Q, wait_for, .min = 1, .max = JOB_TEXT_MAX,
	      .doc = "Wait for this text in the output instead, such as \"ready\"."),
	FIELD(Q, wait_pattern, .min = 1, .max = JOB_PATTERN_MAX,
	      .doc = "Or wait for a line that matches this regular expression, such as \"port "
		     "[0-9]+\"."),
	FIELD(Q, max_bytes, .min = 1, .max = READ_MAX, .def = DEFAULT_INT(READ_DEFAULT),
	      .doc = "Maximum number of bytes to return; has no effect on follow."),
	FIELD(Q, kill, .def = DEFAULT_BOOL(false),
	      .doc = "Kill it first, with all that it started."),
	FIELD_ENUM(Q, stream, stream_names, .def = DEFAULT_ENUM(EXEC_STREAMS_BOTH),
		   .doc = "Which stream to return."),
	FIELD(Q, follow, .doc = "Stream the output as lines until the exec ends."),
};
#undef Q
static const struct field_table output_request = FIELD_TABLE(struct exec_output_request,
							     output_fields);

#define K struct exec_chunk
static const struct field chunk_fields[] = {
	FIELD_ENUM(K, stream, job_stream_names, .flags = FIELD_REQUIRED,
		   .doc = "stdout or stderr."),
	FIELD(K, offset, .flags = FIELD_REQUIRED, .doc = "Offset of its first byte."),
	FIELD_NAMED(K, bytes, "data", .flags = FIELD_REQUIRED | FIELD_BYTES,
		    .doc = "Its bytes in base64."),
};
#undef K
const struct field_table exec_chunk_table = FIELD_TABLE(struct exec_chunk, chunk_fields);

#define O struct exec_output
static const struct field result_fields[] = {
	FIELD(O, exec, .flags = FIELD_REQUIRED, .doc = "Id of the exec."),
	FIELD_OBJECTS(O, chunks, exec_chunk_table, .flags = FIELD_REQUIRED,
		      .doc = "In the order in which they came."),
	FIELD_NAMED(O, out, "stdout", .flags = FIELD_REQUIRED | FIELD_BYTES,
		    .doc = "Output on stdout."),
	FIELD_NAMED(O, err, "stderr", .flags = FIELD_REQUIRED | FIELD_BYTES,
		    .doc = "Output on stderr."),
	FIELD(O, next_offset, .flags = FIELD_REQUIRED, .doc = "Offset to continue from."),
	FIELD(O, dropped_bytes, .flags = FIELD_REQUIRED,
	      .doc = "Bytes at or after offset that are no longer kept, of both streams."),
	FIELD(O, eof, .flags = FIELD_REQUIRED,
	      .doc = "The exec has ended, and this is the last of its output."),
	FIELD(O, found, .flags = FIELD_REQUIRED,
	      .doc = "The text or pattern that was waited for was found."),
	FIELD_ENUM(O, state, job_state_names, .flags = FIELD_REQUIRED, .doc = "State of the exec."),
	FIELD(O, exit_code, .has = FIELD_HAS(O, has_exit_code),
	      .doc = "Exit code of the command, if it has one."),
};
#undef O
const struct field_table exec_output_table = FIELD_TABLE(struct exec_output, result_fields);

static size_t exec_around(struct call *c)
{
	return redactor_around(call_guard(c)->redactor);
}

uint64_t exec_look_from(struct call *c, struct job *j, uint64_t offset)
{
	struct job_info i;
	uint64_t around = exec_around(c), from = offset > around ? offset - around : 0;

	job_info(j, &i);
	if (from < i.output.first)
		from = i.output.first;
	return from < offset ? from : offset;
}

struct str exec_bytes_from(struct call *c, const struct spool_piece *piece, uint64_t offset)
{
	uint64_t before = piece->offset < offset ? offset - piece->offset : 0;
	size_t skip = before < piece->bytes.n ? (size_t)before : piece->bytes.n;

	if (skip > 0)
		call_redact_before(c, piece->stream ? CALL_STDERR : CALL_STDOUT,
				   (struct str){ piece->bytes.p, skip });
	return (struct str){ piece->bytes.p + skip, piece->bytes.n - skip };
}

/* ---- what a wait sees ---------------------------------------------------------------------- */

static struct str exec_show(void *arg, const struct spool_piece *piece, enum job_more more)
{
	static const enum redact_flush flushes[] = {
		[JOB_MORE] = REDACT_MORE,
		[JOB_QUIET] = REDACT_QUIET,
		[JOB_LAST] = REDACT_END,
	};
	const struct exec_sight *s = arg;
	struct str bytes = exec_bytes_from(s->call, piece, s->offset);

	if (bytes.n == 0 && more == JOB_MORE)
		return STR_NONE;
	return call_redact_piece(s->call, piece->stream ? CALL_STDERR : CALL_STDOUT, bytes,
				 flushes[more]);
}

static size_t exec_held(void *arg, unsigned stream)
{
	const struct exec_sight *s = arg;

	return call_redact_held(s->call, stream ? CALL_STDERR : CALL_STDOUT);
}

const struct wait_view exec_view = { exec_show, exec_held, QUIET_MS };

/* ---- read: first it waits, then it takes what is there ------------------------------------- */

/* In the call's arena, but for what it read. */
struct exec_reading {
	struct call *call;
	const struct exec_output_request *request;
	struct job *job; /* a reference */
	struct job_wait *wait; /* NULL: it reads, by the cursor */
	struct exec_sight sight; /* of the wait */
	struct spool_cursor *cursor;
	uint64_t until; /* what comes meanwhile is not waited for */
	/* What was read: around the page, too, for redaction. */
	struct buf streams[SPOOL_STREAMS];
	size_t page[SPOOL_STREAMS], behind[SPOOL_STREAMS]; /* where the page begins and ends */
	uint64_t next; /* offset behind the page */
	bool found;
	uint64_t found_at;
	struct exec_output output;
};

/* Afterwards only the call's memory of r is left. */
static void exec_reading_stop(struct exec_reading *r)
{
	if (r->wait)
		job_wait_cancel(take_ptr(r->wait));
	spool_cursor_close(take_ptr(r->cursor));
	job_unref(take_ptr(r->job));
}

static void exec_reading_fail(struct exec_reading *r, const struct err *e)
{
	exec_reading_stop(r);
	for (size_t i = 0; i < SPOOL_STREAMS; i++)
		buf_fini(&r->streams[i]);
	call_fail(r->call, e);
}

/* A part of what was read of a stream, as redaction lets it: what stands around is looked at. */
static int exec_reading_part(struct exec_reading *r, unsigned stream, size_t from, size_t n,
			     struct str *ret, struct err *e)
{
	const struct buf *b = &r->streams[stream];
	size_t around = exec_around(r->call), before = from < around ? from : around;
	const struct redact_part part = {
		.before = { b->p + from - before, before },
		.text = { b->p + from, n },
		.after = { b->p + from + n, b->n - from - n },
	};

	*ret = n > 0 ? part.text : STR_LIT("");
	return call_answer_part(r->call, &part, e);
}

/* The redacted streams, whole and by chunks. */
static int exec_reading_show(struct exec_reading *r, struct err *e)
{
	size_t at[SPOOL_STREAMS] = { r->page[0], r->page[1] };
	struct exec_output *o = &r->output;

	if (exec_reading_part(r, 0, at[0], r->behind[0] - at[0], &o->out, e) < 0 ||
	    exec_reading_part(r, 1, at[1], r->behind[1] - at[1], &o->err, e) < 0)
		return -1;
	for (size_t k = 0; k < o->chunks.n; k++) {
		struct exec_chunk *chunk = &o->chunks.p[k];
		size_t n = chunk->bytes.n;

		if (exec_reading_part(r, chunk->stream, at[chunk->stream], n, &chunk->bytes, e) < 0)
			return -1;
		at[chunk->stream] += n;
	}
	for (size_t k = 0; k < SPOOL_STREAMS; k++) {
		if (call_keep(r->call, &r->streams[k], e) < 0)
			return -1;
	}
	return 0;
}

static void exec_reading_finish(struct exec_reading *r, bool end)
{
	struct exec_output *o = &r->output;
	struct job_info i;
	struct err e;

	job_info(r->job, &i);
	o->exec = r->request->exec;
	o->next_offset = r->next;
	o->eof = (end || i.state != JOB_RUNNING) && o->next_offset >= i.output.end;
	o->found = r->found && r->found_at <= o->next_offset;
	o->state = i.state;
	o->has_exit_code = i.has_result;
	o->exit_code = i.result.exit_code;
	if (exec_reading_show(r, &e) < 0) {
		exec_reading_fail(r, &e);
		return;
	}
	exec_reading_stop(r);
	call_answer(r->call, o); /* r goes with its call */
}

static size_t exec_reading_room(const struct exec_reading *r)
{
	size_t n = 0;

	for (size_t k = 0; k < SPOOL_STREAMS; k++)
		n += r->behind[k] - r->page[k];
	return r->output.chunks.n < CHUNKS_MAX ? r->request->max_bytes - n : 0;
}

/* A piece that begins where the last chunk ended belongs to that chunk. */
static void exec_reading_add_chunk(struct exec_reading *r, unsigned stream, uint64_t offset,
				   size_t n)
{
	struct exec_output *o = &r->output;
	struct exec_chunk *last = o->chunks.n ? &o->chunks.p[o->chunks.n - 1] : NULL;

	if (last && last->stream == (enum exec_chunk_stream)stream &&
	    last->offset + last->bytes.n == offset)
		last->bytes.n += n;
	else
		o->chunks.p[o->chunks.n++] =
			(struct exec_chunk){ .stream = (enum exec_chunk_stream)stream,
					     .offset = offset,
					     .bytes = { NULL, n } };
}

static int exec_reading_add(struct exec_reading *r, const struct spool_piece *piece, struct err *e)
{
	uint64_t early = piece->offset < r->request->offset ? r->request->offset - piece->offset
							    : 0;
	size_t skip = early < piece->bytes.n ? (size_t)early : piece->bytes.n;
	size_t n = piece->bytes.n - skip, room = exec_reading_room(r);
	struct buf *b = &r->streams[piece->stream];

	if (buf_add(b, piece->bytes.p, piece->bytes.n, e) < 0)
		return -1;
	if (skip > 0) {
		r->page[piece->stream] += skip;
		r->behind[piece->stream] += skip;
	}
	n = n < room ? n : room;
	if (n == 0)
		return 0;
	exec_reading_add_chunk(r, piece->stream, piece->offset + skip, n);
	r->behind[piece->stream] += n;
	r->next = piece->offset + skip + n;
	return 0;
}

/* How much to read on: the page, and what stands behind it. */
static size_t exec_reading_wants(const struct exec_reading *r)
{
	uint64_t at = spool_cursor_at(r->cursor), from = r->request->offset;
	size_t room = exec_reading_room(r), around = exec_around(r->call);

	if (at < from)
		return (size_t)(from - at); /* a piece is of one side of the page's begin */
	if (room > 0)
		return room;
	return at < r->next + around ? (size_t)(r->next + around - at) : 0;
}

/* With room left, what is of the other stream is behind it, too. */
static void exec_reading_pass_others(struct exec_reading *r)
{
	uint64_t at = spool_cursor_at(r->cursor);

	if (exec_reading_room(r) > 0 && at > r->next)
		r->next = at;
}

static void exec_read_on(void *arg)
{
	struct exec_reading *r = arg;
	unsigned mask = exec_stream_mask(r->request->stream);
	struct spool_piece piece;
	struct err e;

	while (exec_reading_wants(r) > 0) {
		switch (spool_cursor_next(r->cursor, mask, exec_reading_wants(r), &piece)) {
		case SPOOL_PIECE:
			if (exec_reading_add(r, &piece, &e) == 0)
				break;
			exec_reading_fail(r, &e);
			return;
		case SPOOL_LOST:
			if (exec_reading_room(r) > 0)
				r->output.dropped_bytes += piece.lost;
			break;
		case SPOOL_LATER:
			if (spool_cursor_at(r->cursor) < r->until)
				return;
			exec_reading_pass_others(r);
			exec_reading_finish(r, false);
			return;
		case SPOOL_END:
			exec_reading_pass_others(r);
			exec_reading_finish(r, true);
			return;
		}
	}
	exec_reading_finish(r, false);
}

static void exec_read_begin(struct exec_reading *r)
{
	struct job_info i;
	struct err e;

	job_info(r->job, &i);
	r->until = i.output.end;
	r->next = r->request->offset;
	r->cursor = spool_cursor_new(job_output(r->job), exec_look_from(r->call, r->job, r->next),
				     exec_read_on, r, &e);
	if (r->cursor)
		exec_read_on(r);
	else
		exec_reading_fail(r, &e);
}

static void exec_reading_on_waited(void *arg, enum job_waited how, uint64_t offset,
				   const struct err *err)
{
	struct exec_reading *r = arg;

	r->wait = NULL;
	r->found = how == JOB_MATCHED;
	r->found_at = offset;
	if (err)
		exec_reading_fail(r, err);
	else
		exec_read_begin(r);
}

static void exec_reading_on_cancel(void *data)
{
	struct err e;

	err_set(&e, ERR_CANCELLED, "nobody waits for it any more");
	exec_reading_fail(data, &e);
}

/* Without wait_seconds what is there is looked at, and no more is waited for. */
static int exec_reading_wait(struct exec_reading *r, struct err *e)
{
	const struct exec_output_request *q = r->request;
	const struct job_wait_options o = {
		.text = q->wait_for,
		.pattern = q->wait_pattern,
		.streams = exec_stream_mask(q->stream),
		.offset = q->offset,
		.from = exec_look_from(r->call, r->job, q->offset),
		.view = &exec_view,
		.view_arg = &r->sight,
		.most = q->max_bytes,
		.timeout_ms = q->wait_seconds ? q->wait_seconds * 1000ull : LOOK_MS,
	};

	if (!q->wait_for.n && !q->wait_pattern.n && !q->wait_seconds)
		return 0;
	if (call_waits(r->call, e) < 0)
		return -1;
	r->sight = (struct exec_sight){ r->call, q->offset };
	r->wait = job_wait_start(r->job, &o, exec_reading_on_waited, r, e);
	return r->wait ? 0 : -1;
}

/* Room for the bytes as they grow, and in base64 in the answer. */
static int exec_reading_init(struct exec_reading *r, struct call *c,
			     const struct exec_output_request *q, struct job *j, struct err *e)
{
	struct exec_chunk *chunks = arena_array(call_arena(c), CHUNKS_MAX, sizeof(*chunks), e);

	*r = (struct exec_reading){ .call = c, .request = q };
	if (!chunks ||
	    call_reserve(c, 3 * (size_t)q->max_bytes + CHUNKS_MAX * sizeof(*chunks), e) < 0)
		return -1;
	for (size_t i = 0; i < SPOOL_STREAMS; i++)
		r->streams[i] = BUF_INIT(READ_MAX + 2 * REDACT_AROUND_MAX);
	r->output.chunks.p = chunks;
	r->job = job_ref(j);
	return 0;
}

static void exec_read(struct call *c, const struct exec_output_request *q, struct job *j, bool kill)
{
	struct err e = ERR_INIT;
	struct exec_reading *r = arena_alloc(call_arena(c), sizeof(*r), &e);

	if (!r || exec_reading_init(r, c, q, j, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	if (exec_reading_wait(r, &e) < 0) {
		exec_reading_fail(r, &e);
		return;
	}
	if (kill && job_exec(j))
		exec_kill(job_exec(j));
	call_on_cancel(c, exec_reading_on_cancel, r);
	if (!r->wait)
		exec_read_begin(r);
}

/* ---- follow -------------------------------------------------------------------------------- */

static void exec_on_followed(struct exec_following *f, const struct err *err)
{
	struct call *c = f->call;

	exec_follow_stop(f);
	if (err)
		call_fail(c, err);
	else
		call_answer(c, NULL);
}

static void exec_output_follow(struct call *c, const struct exec_output_request *q, struct job *j)
{
	struct err e = ERR_INIT;
	struct exec_following *f = arena_alloc(call_arena(c), sizeof(*f), &e);

	if (f)
		*f = (struct exec_following){ .call = c,
					      .streams = exec_stream_mask(q->stream),
					      .on_end = exec_on_followed };
	if (f && exec_follow_start(f, j, q->offset, &e) == 0)
		exec_follow_on(f);
	else
		call_fail(c, &e);
}

/* ---- exec.output and exec.kill ------------------------------------------------------------- */

static void exec_output_run(struct call *c, const void *request)
{
	const struct exec_output_request *q = request;
	struct err e = ERR_INIT;
	struct job *j = call_job(c, q->sandbox, q->exec, &e);

	if (!j)
		call_fail(c, &e);
	else if (q->follow)
		exec_output_follow(c, q, j);
	else
		exec_read(c, q, j, false);
}

const struct op exec_output_op = {
	.action = "exec.output",
	.doc = "Returns what an exec has printed from an offset: now, or with follow "
	       "until it ends.",
	.effect = OP_READ,
	.flags = OP_WAITS | OP_NO_WAKE,
	.request = &output_request,
	.target = OP_TARGET(struct exec_output_request, sandbox),
	.result = &exec_output_table,
	.event = &exec_news_table,
	.run = exec_output_run,
};

static void exec_kill_run(struct call *c, const void *request)
{
	const struct exec_output_request *q = request;
	struct err e = ERR_INIT;
	struct job *j = call_job(c, q->sandbox, q->exec, &e);

	if (j)
		exec_read(c, q, j, true);
	else
		call_fail(c, &e);
}

const struct op exec_kill_op = {
	.action = "exec.kill",
	.doc = "Kills an exec with all that it started, and returns what it has printed.",
	.effect = OP_WRITE,
	.flags = OP_WAITS,
	.request = &output_request,
	.target = OP_TARGET(struct exec_output_request, sandbox),
	.result = &exec_output_table,
	.run = exec_kill_run,
};

/* ---- exec.wait ----------------------------------------------------------------------------- */

struct wait_request {
	struct str sandbox, exec, text, pattern;
	enum exec_streams stream;
	uint32_t timeout_seconds;
	uint64_t offset;
};
#define Q struct wait_request
static const struct field wait_fields[] = {
	OP_JOB_ROWS(Q),
	FIELD(Q, text, .flags = FIELD_NUL_OK, .min = 1, .max = JOB_TEXT_MAX,
	      .doc = "Wait until this text, at most 1024 bytes, was printed on one of the "
		     "streams; absent: until the exec ends."),
	FIELD(Q, pattern, .min = 1, .max = JOB_PATTERN_MAX,
	      .doc = "Instead of text: wait until this regular expression (ECMA-262, flag u), "
		     "at most 1024 bytes, matches a line."),
	FIELD_ENUM(Q, stream, stream_names, .def = DEFAULT_ENUM(EXEC_STREAMS_BOTH),
		   .doc = "Which stream to search."),
	FIELD(Q, offset, .doc = "Offset in the output to search from."),
	FIELD(Q, timeout_seconds, .max = WAIT_MAX, .def = DEFAULT_INT(WAIT_DEFAULT),
	      .doc = "Seconds to wait; the exec goes on after that. 0: as long as the client "
		     "is connected."),
};
#undef Q
static const struct field_table wait_table = FIELD_TABLE(struct wait_request, wait_fields);

#define V struct exec_waited
static const struct field waited_fields[] = {
	FIELD_ENUM(V, result, job_waited_names, .flags = FIELD_REQUIRED,
		   .doc = "matched: the text or pattern was found; ended: the exec ended without "
			  "it; timeout: neither."),
	FIELD(V, offset, .flags = FIELD_REQUIRED,
	      .doc = "Offset after the match; without one, the offset from which to wait again."),
	FIELD_ENUM(V, state, job_state_names, .flags = FIELD_REQUIRED, .doc = "State of the exec."),
	FIELD(V, exit_code, .has = FIELD_HAS(V, has_exit_code),
	      .doc = "Exit code of the command, if it has one."),
};
#undef V
static const struct field_table waited_table = FIELD_TABLE(struct exec_waited, waited_fields);

struct exec_waiting {
	struct call *call;
	struct job *job; /* a reference */
	struct job_wait *wait;
	struct exec_sight sight;
};

static void exec_on_waited(void *arg, enum job_waited how, uint64_t offset, const struct err *err)
{
	struct exec_waiting *w = arg;
	struct exec_waited r = { .result = how, .offset = offset };
	struct job_info i;

	job_info(w->job, &i);
	r.state = i.state;
	r.has_exit_code = i.has_result;
	r.exit_code = i.result.exit_code;
	job_unref(w->job);
	if (err)
		call_fail(w->call, err);
	else
		call_answer(w->call, &r);
}

static void exec_waiting_on_cancel(void *data)
{
	struct exec_waiting *w = data;
	struct err e;

	job_wait_cancel(w->wait);
	job_unref(w->job);
	err_set(&e, ERR_CANCELLED, "nobody waits for it any more");
	call_fail(w->call, &e);
}

static void exec_wait_run(struct call *c, const void *request)
{
	const struct wait_request *q = request;
	struct err e = ERR_INIT;
	struct job *j = call_job(c, q->sandbox, q->exec, &e);
	struct exec_waiting *w = j ? arena_alloc(call_arena(c), sizeof(*w), &e) : NULL;
	struct job_wait_options o = {
		.text = q->text,
		.pattern = q->pattern,
		.streams = exec_stream_mask(q->stream),
		.offset = q->offset,
		.view = &exec_view,
		.timeout_ms = q->timeout_seconds * 1000ull,
	};

	if (w && call_waits(c, &e) == 0) {
		w->sight = (struct exec_sight){ c, q->offset };
		o.from = exec_look_from(c, j, q->offset);
		o.view_arg = &w->sight;
		w->wait = job_wait_start(j, &o, exec_on_waited, w, &e);
	}
	if (!w || !w->wait) {
		call_fail(c, &e);
		return;
	}
	w->call = c;
	w->job = job_ref(j);
	call_on_cancel(c, exec_waiting_on_cancel, w);
}

const struct op exec_wait_op = {
	.action = "exec.wait",
	.doc = "Waits for a text or pattern in an exec's output, or for its end.",
	.effect = OP_READ,
	.flags = OP_WAITS | OP_NO_WAKE,
	.request = &wait_table,
	.target = OP_TARGET(struct wait_request, sandbox),
	.result = &waited_table,
	.run = exec_wait_run,
};
