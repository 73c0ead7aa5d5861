/*
 * What execs print: read from an offset on, followed, and waited for. A follower who is slow reads later, from the file of
 * the output; he never holds the program.
 */
#include "door/rest/jobs.h"

#include "base/base64.h"
#include "hub/sandbox/job_wait.h"

enum {
	LIMIT_DEFAULT = 1 << 20,
	LIMIT_MAX = 4 << 20,
	CHUNKS_MAX = 4096, /* of one document */
	FOLLOW_CHUNK = 64 << 10,
	WAIT_DEFAULT = 30,
	WAIT_MAX = 86400,
};

enum stream { STREAM_STDOUT, STREAM_STDERR, STREAM_BOTH };
static const char *const stream_names[] = { "stdout", "stderr", "both" };

static unsigned mask_of(enum stream stream)
{
	return stream == STREAM_BOTH ? 3 : 1u << stream;
}

/* ---- read ---------------------------------------------------------------------------------- */

struct output_query {
	uint32_t limit;
	uint64_t offset;
	enum stream stream;
	bool follow;
};
static const struct field query_fields[] = {
	FIELD_ENUM(struct output_query, stream, stream_names, .def = DEFAULT_ENUM(STREAM_BOTH),
		   .doc = "Of which stream."),
	FIELD(struct output_query, offset,
	      .doc = "Where to begin: a next_offset, or 0; bytes of both streams count."),
	FIELD(struct output_query, limit, .min = 1, .max = LIMIT_MAX,
	      .def = DEFAULT_INT(LIMIT_DEFAULT),
	      .doc = "How many bytes at most; does not hold for follow."),
	FIELD(struct output_query, follow,
	      .doc = "The answer is a stream of lines, until the exec ends."),
};
static const struct field_table query_table = FIELD_TABLE(struct output_query, query_fields);

struct output_params {
	struct job_path path;
	struct output_query query;
};
static const struct field output_parts[] = {
	API_JOB_PATH(struct output_params),
	FIELD_OBJECT(struct output_params, query, query_table, .doc = "What of it."),
};
static const struct field_table output_input = FIELD_TABLE(struct output_params, output_parts);

struct chunk_view {
	struct str stream, data;
	uint64_t offset;
};
static const struct field chunk_fields[] = {
	FIELD(struct chunk_view, stream, .flags = FIELD_REQUIRED, .doc = "stdout or stderr."),
	FIELD(struct chunk_view, offset, .flags = FIELD_REQUIRED, .doc = "Of its first byte."),
	FIELD(struct chunk_view, data, .flags = FIELD_REQUIRED, .doc = "Its bytes in base64."),
};
static const struct field_table chunk_table = FIELD_TABLE(struct chunk_view, chunk_fields);

struct output_view {
	struct {
		struct chunk_view *p;
		size_t n;
	} chunks;
	uint64_t dropped_bytes, next_offset;
	bool eof;
	enum job_state state;
	bool has_exit_code;
	int32_t exit_code;
};
static const struct field output_fields[] = {
	FIELD_OBJECTS(struct output_view, chunks, chunk_table, .flags = FIELD_REQUIRED,
		      .doc = "In the order in which they came."),
	FIELD(struct output_view, dropped_bytes, .flags = FIELD_REQUIRED,
	      .doc = "How many bytes at or behind offset are not kept any more, of both streams."),
	FIELD(struct output_view, next_offset, .flags = FIELD_REQUIRED,
	      .doc = "Where to go on reading."),
	FIELD(struct output_view, eof, .flags = FIELD_REQUIRED,
	      .doc = "That was the last of it: the exec has ended."),
	FIELD_ENUM(struct output_view, state, job_state_names, .flags = FIELD_REQUIRED,
		   .doc = "Of the exec."),
	FIELD(struct output_view, exit_code, .has = FIELD_HAS(struct output_view, has_exit_code),
	      .doc = "Of the command, where it has one."),
};
static const struct field_table output_table = FIELD_TABLE(struct output_view, output_fields);

struct reading {
	struct call *call;
	struct job *job;
	struct spool_cursor *cursor;
	unsigned streams;
	uint64_t until; /* what comes meanwhile is not waited for */
	size_t left;
	struct output_view view;
};

static void stop_reading(struct reading *r)
{
	spool_cursor_close(take_ptr(r->cursor));
	job_unref(take_ptr(r->job));
}

static void finish_reading(struct reading *r, bool end)
{
	struct job_info i;

	job_info(r->job, &i);
	r->view.next_offset = spool_cursor_at(r->cursor);
	r->view.eof = end || (i.state != JOB_RUNNING && r->view.next_offset >= i.output.end);
	r->view.state = i.state;
	r->view.has_exit_code = i.has_result;
	r->view.exit_code = i.result.exit_code;
	stop_reading(r);
	call_answer(r->call, &r->view);
}

static int add_chunk(struct reading *r, const struct spool_piece *piece, struct err *e)
{
	autobuf struct buf text = BUF_INIT(2 * SPOOL_BLOCK);
	struct chunk_view *to = &r->view.chunks.p[r->view.chunks.n];
	char *kept;

	if (base64_encode(&text, piece->bytes, e) < 0 ||
	    !(kept = arena_dup(call_arena(r->call), buf_str(&text), e)))
		return -1;
	*to = (struct chunk_view){ str_of(job_stream_names[piece->stream]),
				   { kept, text.n },
				   piece->offset };
	r->view.chunks.n++;
	r->left -= piece->bytes.n;
	return 0;
}

static void read_on(void *arg)
{
	struct reading *r = arg;
	struct spool_piece piece;
	struct err e;

	while (r->left > 0 && r->view.chunks.n < CHUNKS_MAX) {
		switch (spool_cursor_next(r->cursor, r->streams, r->left, &piece)) {
		case SPOOL_PIECE:
			if (add_chunk(r, &piece, &e) == 0)
				break;
			stop_reading(r);
			call_fail(r->call, &e);
			return;
		case SPOOL_LOST:
			r->view.dropped_bytes += piece.lost;
			break;
		case SPOOL_LATER:
			if (spool_cursor_at(r->cursor) < r->until)
				return;
			finish_reading(r, false);
			return;
		case SPOOL_END:
			finish_reading(r, true);
			return;
		}
	}
	finish_reading(r, false);
}

static void on_reading_cancelled(void *data)
{
	struct reading *r = data;
	struct err e;

	stop_reading(r);
	err_set(&e, ERR_CANCELLED, "nobody waits for it any more");
	call_fail(r->call, &e);
}

/* Room for the chunks in base64, in the arena and again in the answer. */
static int reserve(struct call *c, size_t limit, struct err *e)
{
	return call_reserve(c, 3 * limit + CHUNKS_MAX * sizeof(struct chunk_view), e);
}

static void begin_reading(struct call *c, struct job *j, const struct output_query *q)
{
	struct err e = ERR_INIT;
	struct reading *r = arena_alloc(call_arena(c), sizeof(*r), &e);
	struct chunk_view *chunks = arena_array(call_arena(c), CHUNKS_MAX, sizeof(*chunks), &e);
	struct job_info i;

	if (r && chunks && reserve(c, q->limit, &e) == 0)
		r->cursor = spool_cursor_new(job_output(j), q->offset, read_on, r, &e);
	if (!r || !chunks || !r->cursor) {
		call_fail(c, &e);
		return;
	}
	job_info(j, &i);
	r->call = c;
	r->job = job_ref(j);
	r->streams = mask_of(q->stream);
	r->until = i.output.end;
	r->left = q->limit;
	r->view.chunks.p = chunks;
	call_on_cancel(c, on_reading_cancelled, r);
	read_on(r);
}

/* ---- follow -------------------------------------------------------------------------------- */

enum line_kind { LINE_CHUNK, LINE_DROPPED, LINE_EXIT };
static const char *const line_names[] = {
	[LINE_CHUNK] = "chunk",
	[LINE_DROPPED] = "dropped",
	[LINE_EXIT] = "exit",
};

struct line {
	enum line_kind kind;
	struct str stream, data;
	uint64_t offset;
	bool has_bytes;
	uint64_t bytes;
	struct str state, error;
	bool has_exit_code;
	int32_t exit_code;
	double exec_time_ms;
};
static const struct field line_fields[] = {
	FIELD_ENUM(struct line, kind, line_names, .flags = FIELD_REQUIRED,
		   .doc = "exit is the last."),
	FIELD(struct line, offset, .flags = FIELD_REQUIRED,
	      .doc = "Of its first byte; of an exit: behind the last one."),
	FIELD(struct line, stream, .doc = "Of a chunk: stdout or stderr."),
	FIELD(struct line, data, .doc = "Of a chunk: its bytes in base64."),
	FIELD(struct line, bytes, .has = FIELD_HAS(struct line, has_bytes),
	      .doc = "Of dropped: how many bytes of both streams are not kept any more."),
	FIELD(struct line, state, .doc = "Of an exit: that of the exec."),
	FIELD(struct line, exit_code, .has = FIELD_HAS(struct line, has_exit_code),
	      .doc = "Of an exit: that of the command, where it has one."),
	FIELD(struct line, exec_time_ms, .has = FIELD_HAS(struct line, has_exit_code),
	      .doc = "How long it ran."),
	FIELD(struct line, error, .doc = "Of an exit: why it never ran, or was lost."),
};
static const struct field_table line_table = FIELD_TABLE(struct line, line_fields);

struct following {
	struct call *call;
	struct job *job;
	struct spool_cursor *cursor;
	unsigned streams;
};

static void stop_following(struct following *f)
{
	spool_cursor_close(take_ptr(f->cursor));
	job_unref(take_ptr(f->job));
}

static void say_piece(struct following *f, const struct spool_piece *piece)
{
	autobuf struct buf text = BUF_INIT(2 * SPOOL_BLOCK);
	struct line line = { .kind = LINE_CHUNK,
			     .offset = piece->offset,
			     .stream = str_of(job_stream_names[piece->stream]) };
	struct err e;

	if (base64_encode(&text, piece->bytes, &e) < 0) {
		line = (struct line){ .kind = LINE_DROPPED,
				      .offset = piece->offset,
				      .has_bytes = true,
				      .bytes = piece->bytes.n };
	}
	line.data = line.kind == LINE_CHUNK ? buf_str(&text) : STR_NONE;
	ask_send(f->call, &line_table, &line);
}

static void say_dropped(struct following *f, const struct spool_piece *piece)
{
	const struct line line = { .kind = LINE_DROPPED,
				   .offset = piece->offset,
				   .has_bytes = true,
				   .bytes = piece->lost };

	ask_send(f->call, &line_table, &line);
}

static void say_exit(struct following *f)
{
	struct job_info i;
	struct line line = { .kind = LINE_EXIT, .offset = spool_cursor_at(f->cursor) };

	job_info(f->job, &i);
	line.state = str_of(job_state_names[i.state]);
	line.has_exit_code = i.has_result;
	line.exit_code = i.result.exit_code;
	line.exec_time_ms = (double)i.result.wall_us / 1000;
	line.error = i.why ? str_of(i.why->msg) : STR_NONE;
	ask_send(f->call, &line_table, &line);
}

/* As much as the client takes: what is left is read when there is room, or more. */
static void follow_on(void *arg)
{
	struct following *f = arg;
	struct spool_piece piece;

	while (!ask_stream_full(f->call)) {
		switch (spool_cursor_next(f->cursor, f->streams, FOLLOW_CHUNK, &piece)) {
		case SPOOL_PIECE:
			say_piece(f, &piece);
			break;
		case SPOOL_LOST:
			say_dropped(f, &piece);
			break;
		case SPOOL_LATER:
			return;
		case SPOOL_END:
			say_exit(f);
			stop_following(f);
			call_answer(f->call, NULL);
			return;
		}
	}
}

static void on_following_cancelled(void *data)
{
	struct following *f = data;
	struct err e;

	stop_following(f);
	err_set(&e, ERR_CANCELLED, "nobody waits for it any more");
	call_fail(f->call, &e);
}

static int follow(struct call *c, struct job *j, const struct output_query *q, struct following *f,
		  struct err *e)
{
	f->cursor = spool_cursor_new(job_output(j), q->offset, follow_on, f, e);
	if (!f->cursor)
		return -1;
	f->call = c;
	f->job = job_ref(j);
	f->streams = mask_of(q->stream);
	if (call_waits(c, e) == 0 && ask_stream_start(c, follow_on, f, e) == 0)
		return 0;
	stop_following(f);
	return -1;
}

static void begin_following(struct call *c, struct job *j, const struct output_query *q)
{
	struct err e = ERR_INIT;
	struct following *f = arena_alloc(call_arena(c), sizeof(*f), &e);

	if (!f || follow(c, j, q, f, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	call_on_cancel(c, on_following_cancelled, f);
	ask_on_drain(c, on_following_cancelled, f);
	follow_on(f);
}

static void run_output(struct call *c, const void *params)
{
	const struct output_params *p = params;
	struct err e = ERR_INIT;
	struct job *j = call_job(c, p->path.id, p->path.exec, &e);

	if (!j)
		call_fail(c, &e);
	else if (p->query.follow)
		begin_following(c, j, &p->query);
	else
		begin_reading(c, j, &p->query);
}

/* ---- wait ---------------------------------------------------------------------------------- */

struct wait_body {
	struct str text, pattern;
	enum stream stream;
	uint32_t timeout_seconds;
	uint64_t offset;
};
static const struct field wait_fields[] = {
	FIELD(struct wait_body, text, .flags = FIELD_NUL_OK, .min = 1, .max = JOB_TEXT_MAX,
	      .doc = "Waits until this was printed on one of the streams, at most 1024 bytes; absent: until the exec ends."),
	FIELD(struct wait_body, pattern, .min = 1, .max = JOB_PATTERN_MAX,
	      .doc = "Instead of text: until this regular expression (ECMA-262, flag u) matches in a line, at most 1024 bytes."),
	FIELD_ENUM(struct wait_body, stream, stream_names, .def = DEFAULT_ENUM(STREAM_BOTH),
		   .doc = "Where to look."),
	FIELD(struct wait_body, offset, .doc = "Where in the output to begin to look."),
	FIELD(struct wait_body, timeout_seconds, .max = WAIT_MAX, .def = DEFAULT_INT(WAIT_DEFAULT),
	      .doc = "How long to wait; the exec goes on. 0: as long as the client does."),
};
static const struct field_table wait_body = FIELD_TABLE(struct wait_body, wait_fields);

struct wait_params {
	struct job_path path;
	struct wait_body body;
};
static const struct field wait_parts[] = {
	API_JOB_PATH(struct wait_params),
	FIELD_OBJECT(struct wait_params, body, wait_body, .flags = FIELD_REQUIRED,
		     .doc = "What to wait for."),
};
static const struct field_table wait_input = FIELD_TABLE(struct wait_params, wait_parts);

struct waited_view {
	enum job_waited result;
	uint64_t offset;
	enum job_state state;
	bool has_exit_code;
	int32_t exit_code;
};
static const struct field waited_fields[] = {
	FIELD_ENUM(struct waited_view, result, job_waited_names, .flags = FIELD_REQUIRED,
		   .doc = "matched: the text came; ended: the exec has, and it did not come; "
			  "timeout: neither."),
	FIELD(struct waited_view, offset, .flags = FIELD_REQUIRED,
	      .doc = "Behind the text or match; else how far it was looked for: where another wait goes on."),
	FIELD_ENUM(struct waited_view, state, job_state_names, .flags = FIELD_REQUIRED,
		   .doc = "Of the exec."),
	FIELD(struct waited_view, exit_code, .has = FIELD_HAS(struct waited_view, has_exit_code),
	      .doc = "Of the command, where it has one."),
};
static const struct field_table waited_table = FIELD_TABLE(struct waited_view, waited_fields);

struct waiting {
	struct call *call;
	struct job *job;
	struct job_wait *wait;
};

static void on_waited(void *arg, enum job_waited how, uint64_t offset, const struct err *err)
{
	struct waiting *w = arg;
	struct waited_view view = { .result = how, .offset = offset };
	struct job_info i;

	job_info(w->job, &i);
	view.state = i.state;
	view.has_exit_code = i.has_result;
	view.exit_code = i.result.exit_code;
	job_unref(w->job);
	if (err)
		call_fail(w->call, err);
	else
		call_answer(w->call, &view);
}

static void on_waiting_cancelled(void *data)
{
	struct waiting *w = data;
	struct err e;

	job_wait_cancel(w->wait);
	job_unref(w->job);
	err_set(&e, ERR_CANCELLED, "nobody waits for it any more");
	call_fail(w->call, &e);
}

static void run_wait(struct call *c, const void *params)
{
	const struct wait_params *p = params;
	struct err e = ERR_INIT;
	struct job *j = call_job(c, p->path.id, p->path.exec, &e);
	struct waiting *w = j ? arena_alloc(call_arena(c), sizeof(*w), &e) : NULL;
	const struct job_wait_options o = {
		.text = p->body.text,
		.pattern = p->body.pattern,
		.streams = mask_of(p->body.stream),
		.offset = p->body.offset,
		.timeout_ms = p->body.timeout_seconds * 1000ull,
	};

	if (w && call_waits(c, &e) == 0)
		w->wait = job_wait_start(j, &o, on_waited, w, &e);
	if (!w || !w->wait) {
		call_fail(c, &e);
		return;
	}
	w->call = c;
	w->job = job_ref(j);
	call_on_cancel(c, on_waiting_cancelled, w);
	ask_on_drain(c, on_waiting_cancelled, w);
}

/* ---- the rows ------------------------------------------------------------------------------ */

#define BASE "/v1/sandboxes/{id}/execs/{exec}"

static const struct api_route rows[] = {
	{ .id = "execs.output",
	  .op = &(const struct
		  op){ .action = "exec.output",
		       .doc = "What an exec has printed, from an offset on: now, or with follow until its end.",
		       .effect = OP_READ,
		       .flags = OP_WAITS,
		       .request = &output_input,
		       .target = OP_TARGET(struct output_params, path.id),
		       .result = &output_table,
		       .run = run_output },
	  .method = HTTP_GET,
	  .path = BASE "/output",
	  .lines = &line_table,
	  .errors = API_MAY_SANDBOX | API_MAY(TOO_MANY_STREAMS) },
	{ .id = "execs.wait",
	  .op =
		  &(const struct op){
			  .action = "exec.wait",
			  .doc = "Waits for a text or pattern in an exec's output, or for its end.",
			  .effect = OP_READ,
			  .flags = OP_WAITS,
			  .request = &wait_input,
			  .target = OP_TARGET(struct wait_params, path.id),
			  .result = &waited_table,
			  .run = run_wait },
	  .method = HTTP_POST,
	  .path = BASE "/wait",
	  .errors = API_MAY_SANDBOX },
};
const struct api_resource api_job_output = API_RESOURCE(rows);
