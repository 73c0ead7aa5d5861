/*
 * GET /v1/sandboxes/{id}/execs/{exec}/attach, a WebSocket: an exec that runs already, what it prints from an offset on, and what it
 * is sent. Its messages are those of a command over a WebSocket (exec_socket.c), with one before them that tells what it is.
 * It is nobody's in particular: several can be attached at once, who reads slowly reads later what was kept, and who goes away
 * leaves it running.
 */
#include <stdlib.h>

#include "door/rest/jobs.h"
#include "door/rest/exec_end.h"
#include "json/document/json.h"

enum {
	SCRATCH_MAX = 1 << 20,
	CHUNK_MAX = 64 << 10,
	/* From where on clients have to wait, and how often it is looked whether they still have: who else is attached may send, too,
	 * so that nobody has the exec's drain for himself. */
	INPUT_HIGH = 512 << 10,
	KEPT_MAX = 512 << 10, /* with INPUT_HIGH no more than exec_write() takes */
	LOOK_MS = 20,
};

struct attached {
	struct call *call;
	struct job *job; /* a reference */
	struct spool_cursor *cursor;
	struct buf kept; /* what it sent and the exec has no room for */
	bool ends; /* and the end of input behind that */
	uv_timer_t look; /* while the client is held */
};

/* ---- what the client says ------------------------------------------------------------------ */

static void end_input(struct attached *a, struct exec *x)
{
	if (a->kept.n)
		a->ends = true;
	else
		exec_close_stdin(x);
}

static int act(struct attached *a, struct exec *x, const struct exec_word *w, struct err *e)
{
	if (!x)
		return 0; /* it has ended: that is on its way */
	if (w->kind == EXEC_WORD_RESIZE)
		return exec_resize(x, w->cols, w->rows, e);
	if (w->kind == EXEC_WORD_SIGNAL)
		exec_signal(x, w->signal);
	else
		end_input(a, x);
	return 0;
}

static int take_text(struct attached *a, struct exec *x, struct str message, struct err *e)
{
	AUTO(arena_free) struct arena *scratch = arena_new(SCRATCH_MAX);
	AUTO(json_free) struct json_doc *doc = json_parse(message, NULL, e);
	struct socket_word said;
	struct exec_word w;

	if (!scratch)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (!doc || field_decode(&socket_word_table, json_root(doc), scratch, &said, e) < 0 ||
	    socket_word(&said, &w, e) < 0)
		return -1;
	return act(a, x, &w, e);
}

static bool is_full(const struct exec *x)
{
	return exec_reads(x) && exec_waiting(x) > INPUT_HIGH;
}

/* Hands on what was kept. */
static int pass_on(struct attached *a, struct exec *x, struct err *e)
{
	int rc = exec_write(x, a->kept.p, a->kept.n, e);

	buf_fini(&a->kept);
	if (rc == 0 && a->ends)
		exec_close_stdin(x);
	a->ends = false;
	return rc;
}

static void fail(struct attached *a, const struct err *e);

/* Nobody waits for one that has ended. */
static void look_again(uv_timer_t *t)
{
	struct attached *a = t->data;
	struct exec *x = job_exec(a->job);
	struct err e;

	if (x && is_full(x))
		return;
	if (x && pass_on(a, x, &e) < 0) {
		fail(a, &e);
	} else if (!x || !is_full(x)) {
		uv_timer_stop(t);
		ask_socket_hold(a->call, false);
	}
}

/* Behind what others have sent, and in the order in which it came: where the exec has no room, the client has to wait. */
static int send_on(struct attached *a, struct exec *x, struct str bytes, struct err *e)
{
	bool keeps = a->kept.n || is_full(x);
	int rc = keeps ? buf_add(&a->kept, bytes.p, bytes.n, e)
		       : exec_write(x, bytes.p, bytes.n, e);

	if (rc == 0 && is_full(x)) {
		ask_socket_hold(a->call, true);
		uv_timer_start(&a->look, look_again, LOOK_MS, LOOK_MS);
	}
	return rc;
}

static int take_bytes(struct attached *a, struct exec *x, struct str message, struct err *e)
{
	struct str bytes;

	if (socket_input(message, &bytes, e) < 0)
		return -1;
	return x && exec_reads(x) ? send_on(a, x, bytes, e) : 0;
}

/* ---- what the client hears ----------------------------------------------------------------- */

struct hello {
	uint64_t offset;
	bool tty, reads;
};
static const struct field hello_fields[] = {
	FIELD(struct hello, offset, .flags = FIELD_REQUIRED,
	      .doc = "Of the first byte that follows."),
	FIELD(struct hello, tty, .flags = FIELD_REQUIRED, .doc = "It has a terminal."),
	FIELD_NAMED(struct hello, reads, "stdin_open", .flags = FIELD_REQUIRED,
		    .doc = "It can be sent input."),
};
static const struct field_table hello_table = FIELD_TABLE(struct hello, hello_fields);

struct gap {
	uint64_t offset, bytes;
};
static const struct field gap_fields[] = {
	FIELD(struct gap, offset, .flags = FIELD_REQUIRED, .doc = "Of the first one."),
	FIELD(struct gap, bytes, .flags = FIELD_REQUIRED,
	      .doc = "How many bytes of both streams are not kept any more."),
};
static const struct field_table gap_table = FIELD_TABLE(struct gap, gap_fields);

struct said {
	bool has_attached, has_dropped, has_exit;
	struct hello attached;
	struct gap dropped;
	struct exit_view exit;
};
static const struct field said_fields[] = {
	FIELD_OBJECT(struct said, attached, hello_table,
		     .has = FIELD_HAS(struct said, has_attached), .doc = "The first message."),
	FIELD_OBJECT(struct said, dropped, gap_table, .has = FIELD_HAS(struct said, has_dropped),
		     .doc = "What is missing of its output, where it is missing."),
	FIELD_OBJECT(struct said, exit, exit_view_table, .has = FIELD_HAS(struct said, has_exit),
		     .doc = "The end; behind it only the error comes, if it is one."),
};
static const struct field_table said_table = FIELD_TABLE(struct said, said_fields,
							 .doc = "One member in each text.");

/* ---- the end ------------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *h)
{
	free(h->data);
}

static void let_go(struct attached *a)
{
	spool_cursor_close(a->cursor);
	job_unref(a->job);
	buf_fini(&a->kept);
	uv_close((uv_handle_t *)&a->look, on_closed);
}

static void fail(struct attached *a, const struct err *e)
{
	struct call *c = a->call;

	let_go(a);
	call_fail(c, e);
}

static void on_cancel(void *data)
{
	struct err e;

	err_set(&e, ERR_CANCELLED, "nobody is attached any more");
	fail(data, &e);
}

/* One that never ran or was lost is a failure, behind its end. */
static void finish(struct attached *a)
{
	struct call *c = a->call;
	struct exec_event end;
	struct job_info i;
	struct err why = ERR_INIT;

	job_info(a->job, &i);
	if (!i.has_result && i.why)
		why = *i.why;
	else if (!i.has_result)
		err_set(&why, ERR_GUEST, "nobody knows how it ended");
	exec_end_event(i.has_result ? &i.result : NULL, &why, &end);
	ask_send(c, &said_table, &(struct said){ .has_exit = true, .exit = exit_view(&end) });
	let_go(a);
	if (why.code != ERR_NONE)
		call_fail(c, &why);
	else
		call_answer(c, NULL);
}

/* ---- as it comes --------------------------------------------------------------------------- */

static void say_gap(struct attached *a, const struct spool_piece *piece)
{
	const struct said s = { .has_dropped = true, .dropped = { piece->offset, piece->lost } };

	ask_send(a->call, &said_table, &s);
}

static void say_piece(struct attached *a, const struct spool_piece *piece)
{
	autobuf struct buf b = BUF_INIT(CHUNK_MAX + 1);

	ask_write_bytes(a->call, socket_output(piece->stream == 0 ? EXEC_STDOUT : EXEC_STDERR,
					       call_redact(a->call, piece->bytes), &b));
}

/* As much as the client takes. */
static void pump(void *data)
{
	struct attached *a = data;
	struct spool_piece piece;

	while (!ask_stream_full(a->call)) {
		switch (spool_cursor_next(a->cursor, 3, CHUNK_MAX, &piece)) {
		case SPOOL_PIECE:
			say_piece(a, &piece);
			break;
		case SPOOL_LOST:
			say_gap(a, &piece);
			break;
		case SPOOL_LATER:
			return;
		case SPOOL_END:
			finish(a);
			return;
		}
	}
}

static void on_message(void *data, bool is_text, struct str message)
{
	struct attached *a = data;
	struct exec *x = job_exec(a->job);
	struct err e = ERR_INIT;

	if ((is_text ? take_text(a, x, message, &e) : take_bytes(a, x, message, &e)) < 0)
		fail(a, &e);
}

static const struct ask_socket socket_events = { on_message, pump, .listens = true };

/* ---- the route ----------------------------------------------------------------------------- */

struct attach_query {
	bool has_offset;
	uint64_t offset;
};
static const struct field query_fields[] = {
	FIELD(struct attach_query, offset, .has = FIELD_HAS(struct attach_query, has_offset),
	      .doc = "Tells what came behind so many bytes of both streams; absent: only what comes."),
};
static const struct field_table query_table = FIELD_TABLE(struct attach_query, query_fields);

struct attach_params {
	struct job_path path;
	struct attach_query query;
};
static const struct field parts[] = {
	API_JOB_PATH(struct attach_params),
	FIELD_OBJECT(struct attach_params, query, query_table, .doc = "From where on."),
};
static const struct field_table input = FIELD_TABLE(struct attach_params, parts);

static struct attached *attached_new(struct call *c, struct job *j, uint64_t offset, struct err *e)
{
	struct attached *a = calloc(1, sizeof(*a));

	if (!a) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	a->cursor = spool_cursor_new(job_output(j), offset, pump, a, e);
	if (!a->cursor) {
		free(a);
		return NULL;
	}
	a->call = c;
	a->job = job_ref(j);
	a->kept = BUF_INIT(KEPT_MAX);
	a->kept.of = ask_bodies(c);
	uv_timer_init(call_loop(c), &a->look);
	a->look.data = a;
	return a;
}

static void say_hello(struct attached *a, uint64_t offset)
{
	struct said s = { .has_attached = true };
	struct job_info i;

	job_info(a->job, &i);
	s.attached = (struct hello){ offset, i.terminal, i.reads };
	ask_send(a->call, &said_table, &s);
}

static void run(struct call *c, const void *params)
{
	const struct attach_params *p = params;
	struct err e = ERR_INIT;
	struct job *j = call_job(c, p->path.id, p->path.exec, &e);
	struct attached *a = NULL;
	struct job_info i;
	uint64_t offset = 0;

	if (j) {
		job_info(j, &i);
		offset = p->query.has_offset ? p->query.offset : i.output.end;
		a = attached_new(c, j, offset, &e);
	}
	if (a && (call_waits(c, &e) < 0 || ask_socket_start(c, &socket_events, a, &e) < 0))
		let_go(take_ptr(a));
	if (!a) {
		call_fail(c, &e);
		return;
	}
	call_on_cancel(c, on_cancel, a);
	ask_on_drain(c, on_cancel, a);
	say_hello(a, offset);
	pump(a);
}

static const struct api_route rows[] = {
	{ .id = "execs.attach",
	  .op = &(const struct
		  op){ .action = "exec.attach",
		       .doc = "Attaches to an exec over a WebSocket: what it prints, its input, its terminal, until it "
			      "ends. Who goes away leaves it running.",
		       .effect = OP_EXECUTE,
		       .flags = OP_WAITS,
		       .request = &input,
		       .target = OP_TARGET(struct attach_params, path.id),
		       .result = &said_table,
		       .run = run },
	  .method = HTTP_GET,
	  .path = "/v1/sandboxes/{id}/execs/{exec}/attach",
	  .shape = API_LINES,
	  .socket = "holt.attach.v1",
	  .heard = &socket_word_table,
	  .errors = API_MAY_SANDBOX | API_MAY(UPGRADE_REQUIRED) | API_MAY(TOO_MANY_STREAMS) },
};
const struct api_resource api_job_attach = API_RESOURCE(rows);
