/*
 * The six tools that any server has. A server of ours is asked by the routes of door/rest with all
 * arguments; any other as mitos' own MCP server asks it: the newer way first, and where it has no
 * such route, the older one, which is remembered.
 *
 *	create		POST /v1/fork
 *	fork		POST /v1/sandboxes/{id}/fork	else POST /v1/fork
 *	exec		Connect ExecStream		else POST /v1/exec
 *	read, write	Connect ReadFile, WriteFile	else POST /v1/files/read, write
 *	terminate	DELETE /v1/sandboxes/{id}
 */
#include "cli/remote/internal.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/base64.h"
#include "base/id.h"
#include "json/document/utf8.h"
#include "op/exec.h"
#include "op/files.h"
#include "op/sandbox.h"

enum { BODY_MAX = 64 << 20, PIECE = 1 << 20, TEXT_MAX = 256, NOTE_MAX = 4096, COPIES_MAX = 64 };

/* Other servers than ours know few arguments. */
static int check_args(const struct remote_call *c, const char *const *known, struct err *e)
{
	struct json_iter it = json_iter(c->args);

	while (json_next(&it)) {
		size_t i = 0;

		while (known[i] && !str_is(it.key, known[i]))
			i++;
		if (!known[i])
			return err_set(e, ERR_INVALID, "%.*s can't be asked of that server",
				       STR_CUT(it.key, 64));
	}
	return 0;
}

/* An object of texts, by name and value; those that are STR_NONE are left out. */
struct text {
	const char *name;
	struct str value;
};

static int put_texts(struct buf *to, const struct text *texts, size_t n, struct err *e)
{
	struct json_writer w = json_writer(to);

	json_write_object(&w);
	for (size_t i = 0; i < n; i++) {
		if (!texts[i].value.p)
			continue;
		json_write_key(&w, texts[i].name);
		json_write_str(&w, texts[i].value);
	}
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

/* ---- ids ----------------------------------------------------------------------------------- */

static int make_ids(struct remote_call *c, size_t n, struct err *e)
{
	struct str *ids = arena_array(remote_arena(c), n, sizeof(*ids), e);

	if (!ids)
		return -1;
	for (size_t i = 0; i < n; i++) {
		char id[ID_MAX];
		char *copy;

		id_make(id, "sbx");
		copy = arena_dup(remote_arena(c), str_of(id), e);
		if (!copy)
			return -1;
		ids[i] = str_of(copy);
	}
	c->ids = ids;
	c->n_ids = n;
	return 0;
}

/* The server may call it otherwise, but by an id. */
static int take_id(struct remote_call *c, const struct json_val *v, struct str *id, struct err *e)
{
	struct str said = json_str(json_get(v, "id"));
	char path[REMOTE_PATH_MAX], *copy;

	if (!said.p || str_eq(said, *id))
		return 0;
	if (remote_path(path, said, "", e) < 0)
		return err_set(e, ERR_TRANSPORT, "the server calls the sandbox what is no id");
	copy = arena_dup(remote_arena(c), said, e);
	*id = str_of(copy);
	return copy ? 0 : -1;
}

/* ---- create -------------------------------------------------------------------------------- */

static int created(struct remote_call *c, struct err *e)
{
	const struct json_val *v;
	char text[TEXT_MAX];

	v = remote_answer(c, e);
	if (!v || take_id(c, v, &c->ids[0], e) < 0) {
		if (e->code == ERR_SANDBOX_NOT_FOUND)
			e->code = ERR_TEMPLATE_NOT_FOUND;
		return -1;
	}
	snprintf(text, sizeof(text), "Created sandbox %.*s", STR_ARG(c->ids[0]));
	return remote_end(c, str_of(text), STR_NONE);
}

int six_create(struct remote_call *c, struct err *e)
{
	static const char *const known[] = { "pool", NULL };
	autobuf struct buf body = BUF_INIT(BODY_MAX);
	struct remote_question q = { .method = "POST", .path = "/v1/fork", .once = true };
	int rc;

	if (make_ids(c, 1, e) < 0)
		return -1;
	if (c->r->is_ours) {
		q.path = c->tool->route->path;
		rc = rest_body(c, "id", c->ids[0], &body, e);
	} else {
		const struct text texts[] = { { "template", json_str(json_get(c->args, "pool")) },
					      { "id", c->ids[0] } };

		rc = check_args(c, known, e);
		if (rc == 0)
			rc = put_texts(&body, texts, ARRAY_LEN(texts), e);
	}
	if (rc < 0)
		return -1;
	q.body = buf_str(&body);
	return remote_ask(c, &q, NULL, created, e);
}

/* ---- fork ---------------------------------------------------------------------------------- */

static int fork_next(struct remote_call *c, struct err *e);

static int forks_end(struct remote_call *c, struct err *e)
{
	autobuf struct buf text = BUF_INIT(64 << 10);
	struct json_writer w = json_writer(&text);

	json_write_array(&w);
	for (size_t i = 0; i < c->n_ids; i++)
		json_write_str(&w, c->ids[i]);
	json_write_array_end(&w);
	if (json_write_done(&w, e) < 0)
		return -1;
	return remote_end(c, buf_str(&text), STR_NONE);
}

/* Some of several requests have succeeded: their ids are told, so that they can be
 * ended. */
static int fork_fail(struct remote_call *c, struct err *e)
{
	autobuf struct buf made = BUF_INIT(16 << 10);
	struct err none = ERR_INIT;

	for (size_t i = 0; i < c->made; i++) {
		if (buf_addf(&made, &none, " %.*s", STR_ARG(c->ids[i])) < 0)
			break;
	}
	if (c->made > 0)
		err_wrap(e, "made%.*s, then", STR_CUT(buf_str(&made), 160));
	return -1;
}

static int forked(struct remote_call *c, struct err *e)
{
	const struct json_val *v;

	if (c->r->fork != REMOTE_WAY_OLD && remote_has_no_route(c)) {
		c->r->fork = REMOTE_WAY_OLD;
		return fork_next(c, e);
	}
	v = remote_answer(c, e);
	if (!v || take_id(c, v, &c->ids[c->made], e) < 0)
		return fork_fail(c, e);
	return ++c->made < c->n_ids ? fork_next(c, e) : forks_end(c, e);
}

static int fork_body(struct remote_call *c, struct buf *to, struct err *e)
{
	struct json_writer w = json_writer(to);

	json_write_object(&w);
	json_write_key(&w, "id");
	json_write_str(&w, c->ids[c->made]);
	if (c->r->fork == REMOTE_WAY_OLD) {
		json_write_key(&w, "template");
		json_write_val(&w, json_get(c->args, "sandbox"));
	} else {
		json_write_key(&w, "pause_source");
		json_write_bool(&w, true);
	}
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

static int fork_next(struct remote_call *c, struct err *e)
{
	autobuf struct buf body = BUF_INIT(BODY_MAX);
	char path[REMOTE_PATH_MAX];
	struct remote_question q = { .method = "POST", .path = path, .once = true };

	if (remote_path(path, json_str(json_get(c->args, "sandbox")), "/fork", e) < 0 ||
	    fork_body(c, &body, e) < 0)
		return fork_fail(c, e);
	if (c->r->fork == REMOTE_WAY_OLD)
		q.path = "/v1/fork";
	q.body = buf_str(&body);
	return remote_ask(c, &q, NULL, forked, e);
}

static int forked_all(struct remote_call *c, struct err *e)
{
	const struct json_val *v = remote_answer(c, e);

	if (v && json_len(json_get(v, "sandboxes")) != c->n_ids)
		err_set(e, ERR_TRANSPORT, "the server has made another number of copies");
	if (e->code != ERR_NONE)
		return -1;
	return forks_end(c, e);
}

/* Ours makes all or none. */
static int fork_all(struct remote_call *c, struct err *e)
{
	autobuf struct buf body = BUF_INIT(BODY_MAX);
	struct json_writer w = json_writer(&body);
	char path[REMOTE_PATH_MAX];
	struct remote_question q = { .method = "POST", .path = path, .once = true };

	json_write_object(&w);
	json_write_key(&w, "ids");
	json_write_array(&w);
	for (size_t i = 0; i < c->n_ids; i++)
		json_write_str(&w, c->ids[i]);
	json_write_array_end(&w);
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0 ||
	    remote_path(path, json_str(json_get(c->args, "sandbox")), "/fork", e) < 0)
		return -1;
	q.body = buf_str(&body);
	return remote_ask(c, &q, NULL, forked_all, e);
}

int six_fork(struct remote_call *c, struct err *e)
{
	uint64_t n = 1;

	json_uint64(json_get(c->args, "replicas"), &n);
	if (n < 1 || n > COPIES_MAX)
		return err_set(e, ERR_INVALID, "replicas takes an integer from 1 to 64");
	if (make_ids(c, n, e) < 0)
		return -1;
	return c->r->is_ours ? fork_all(c, e) : fork_next(c, e);
}

/* ---- terminate ----------------------------------------------------------------------------- */

/* A hub names the files that are deleted with the sandbox and that no revision has. */
static void note_left_out(struct remote_call *c, struct buf *to)
{
	const struct json_val *v = remote_document(c);
	struct sandbox_ended r = { .left_out_names = json_str(json_get(v, "left_out_names")) };
	struct err e;
	uint64_t n = 0;

	r.has_left_out = json_uint64(json_get(v, "left_out"), &n) && n > 0 && n <= UINT32_MAX;
	r.left_out = (uint32_t)n;
	if (c->tool->row->tool->note(&r, to, &e) < 0)
		to->n = 0; /* more names than any server of ours tells */
}

static int terminated(struct remote_call *c, struct err *e)
{
	autobuf struct buf note = BUF_INIT(NOTE_MAX);
	char text[TEXT_MAX];

	if (remote_check(c, e) < 0)
		return -1;
	snprintf(text, sizeof(text), "Terminated sandbox %.*s",
		 STR_CUT(json_str(json_get(c->args, "sandbox")), API_ID_MAX));
	note_left_out(c, &note);
	return remote_end(c, str_of(text), note.n ? buf_str(&note) : STR_NONE);
}

int six_terminate(struct remote_call *c, struct err *e)
{
	char path[REMOTE_PATH_MAX];
	const struct remote_question q = { .method = "DELETE", .path = path };

	if (remote_path(path, json_str(json_get(c->args, "sandbox")), "", e) < 0)
		return -1;
	return remote_ask(c, &q, NULL, terminated, e);
}

/* ---- Connect ------------------------------------------------------------------------------- */

/* Asks for a stream, with these messages. c->state begins with a struct remote_stream. */
static int ask_stream(struct remote_call *c, const char *path, struct str sandbox,
		      struct str messages, unsigned seconds, remote_step *then, struct err *e)
{
	const struct http_header headers[] = {
		{ "X-Sandbox-Id", sandbox },
		{ "Connect-Protocol-Version", STR_LIT("1") },
	};
	const struct remote_question q = {
		.method = "POST",
		.path = path,
		.headers = headers,
		.n_headers = ARRAY_LEN(headers),
		.body = messages,
		.type = "application/connect+json",
		.seconds = seconds,
	};
	char checked[REMOTE_PATH_MAX];

	if (remote_path(checked, sandbox, "", e) < 0)
		return -1;
	return remote_ask(c, &q, remote_stream_take, then, e);
}

/* 1: it is the newer way, and this is the answer. Else the older one was tried, or *e. */
static int stream_way(struct remote_call *c, enum remote_way *way, remote_step *old, struct err *e)
{
	/* A server without Connect may answer anything to its paths, but no stream. */
	if (*way == REMOTE_WAY_UNKNOWN && (c->status == 404 || remote_has_no_route(c))) {
		*way = REMOTE_WAY_OLD;
		return old(c, e);
	}
	if (remote_check(c, e) < 0)
		return -1;
	*way = REMOTE_WAY_NEW;
	return 1;
}

/* In the call's arena; each part of what came counts as that. */
static int six_decode(struct str text, struct buf *to, struct err *e)
{
	return base64_decode(to, text, e) < 0 ? err_wrap(e, "the server's stream") : 0;
}

/* ---- exec ---------------------------------------------------------------------------------- */

struct execing {
	struct remote_stream s; /* first */
	struct buf out, err;
	uint64_t out_elided, err_elided;
	bool ended;
	struct exec_answer answer;
};

static void exec_free(struct execing *x)
{
	buf_fini(&x->s.part);
	buf_fini(&x->out);
	buf_fini(&x->err);
}

static int exec_end(struct remote_call *c, const struct exec_answer *a, struct err *e)
{
	autobuf struct buf text = BUF_INIT(REMOTE_TEXT_MAX);

	if (c->tool->row->tool->text(a, &text, e) < 0)
		return -1;
	return remote_end(c, buf_str(&text), STR_NONE);
}

static int keep_output(struct remote_call *c, struct str text, struct buf *to, uint64_t *elided,
		       struct err *e)
{
	const struct exec_request *q = c->request;
	autobuf struct buf bytes = BUF_INIT(REMOTE_ANSWER_MAX);
	size_t room = q->max_output_bytes > to->n ? q->max_output_bytes - to->n : 0;

	if (six_decode(text, &bytes, e) < 0)
		return -1;
	if (bytes.n > room)
		*elided += bytes.n - room;
	return buf_add(to, bytes.p, bytes.n < room ? bytes.n : room, e);
}

static int exec_message(struct remote_call *c, const struct json_val *v, struct err *e)
{
	struct execing *x = c->state;
	struct str out = json_str(json_get(v, "stdout")), err = json_str(json_get(v, "stderr")),
		   why;
	const struct json_val *end = json_get(v, "exit");
	int64_t code = 0;

	if (keep_output(c, out, &x->out, &x->out_elided, e) < 0 ||
	    keep_output(c, err, &x->err, &x->err_elided, e) < 0)
		return -1;
	if (json_type(end) != JSON_OBJECT)
		return 1;
	json_int64(json_get(end, "exitCode"), &code); /* 0 is left out */
	why = json_str(json_get(end, "error"));
	if (why.n && code < 0)
		return err_set(e, ERR_COMMAND_NOT_RUN, "%.*s", STR_CUT(why, 240));
	x->answer.report.timed_out = code == 124 && why.n > 0;
	x->answer.report.exit_code = (int32_t)code;
	x->ended = true;
	return 1;
}

static int exec_old(struct remote_call *c, struct err *e);

static int exec_streamed(struct remote_call *c, struct err *e)
{
	struct execing *x = c->state;
	struct report *r = &x->answer.report;
	int rc = stream_way(c, &c->r->exec, exec_old, e);

	if (rc <= 0)
		return rc;
	if (!x->ended)
		return err_set(e, ERR_TRANSPORT, "the server's stream ended before the command");
	r->has_exit_code = true;
	r->out = buf_str(&x->out);
	r->err = buf_str(&x->err);
	r->out_elided = x->out_elided;
	r->err_elided = x->err_elided;
	r->has_out_elided = x->out_elided > 0;
	r->has_err_elided = x->err_elided > 0;
	return exec_end(c, &x->answer, e);
}

static unsigned exec_seconds(const struct exec_request *q)
{
	return (q->timeout_seconds ? q->timeout_seconds : EXEC_TIMEOUT_DEFAULT) + REMOTE_SLACK_S;
}

static int exec_open(const struct exec_request *q, struct buf *to, struct err *e)
{
	autobuf struct buf json = BUF_INIT(BODY_MAX);
	struct json_writer w = json_writer(&json);

	json_write_object(&w);
	json_write_key(&w, "command");
	json_write_str(&w, q->command);
	if (q->args.n) {
		json_write_key(&w, "args");
		json_write_array(&w);
		for (size_t i = 0; i < q->args.n; i++)
			json_write_str(&w, q->args.p[i]);
		json_write_array_end(&w);
	}
	if (q->env.n) {
		json_write_key(&w, "env");
		json_write_array(&w);
		for (size_t i = 0; i < q->env.n; i++) {
			json_write_object(&w);
			json_write_key(&w, "key");
			json_write_str(&w, q->env.p[i].key);
			json_write_key(&w, "value");
			json_write_str(&w, q->env.p[i].value);
			json_write_object_end(&w);
		}
		json_write_array_end(&w);
	}
	if (q->cwd.n) {
		json_write_key(&w, "cwd");
		json_write_str(&w, q->cwd);
	}
	if (q->timeout_seconds) {
		json_write_key(&w, "timeoutSeconds");
		json_write_uint(&w, q->timeout_seconds);
	}
	json_write_object_end(&w);
	return json_write_done(&w, e) < 0 ? -1 : remote_stream_put(to, buf_str(&json), e);
}

static int exec_new(struct remote_call *c, struct err *e)
{
	const struct exec_request *q = c->request;
	autobuf struct buf body = BUF_INIT(BODY_MAX);
	struct execing *x;

	x = arena_alloc(remote_arena(c), sizeof(*x), e);
	if (!x || exec_open(q, &body, e) < 0)
		return -1;
	*x = (struct execing){ .s = { .part = BUF_INIT(REMOTE_ANSWER_MAX + 5),
				      .on_message = exec_message },
			       .out = BUF_INIT(EXEC_OUTPUT_MAX),
			       .err = BUF_INIT(EXEC_OUTPUT_MAX) };
	x->s.part.of = x->out.of = x->err.of = &c->r->came;
	c->state = x;
	c->free_state = (void (*)(void *))exec_free;
	return ask_stream(c, "/sandbox.v1.Sandbox/ExecStream", q->sandbox, buf_str(&body),
			  exec_seconds(q), exec_streamed, e);
}

/* As the route's table has it, where more and less may be there. */
static int decode_answer(struct remote_call *c, const struct json_val *v,
			 const struct field_table *t, void *ret, struct err *e)
{
	struct field rows[FIELD_ROWS_MAX];
	struct field_table lenient = *t;

	memcpy(rows, t->rows, t->n * sizeof(*rows));
	for (size_t i = 0; i < t->n; i++)
		rows[i].flags &= ~(unsigned)FIELD_REQUIRED;
	lenient.rows = rows;
	lenient.open = true;
	return field_decode(&lenient, v, remote_arena(c), ret, e) < 0
		     ? err_wrap(e, "the server's answer")
		     : 0;
}

static int exec_answered(struct remote_call *c, struct err *e)
{
	struct exec_answer a = { .has_job = false };
	/* one that its timeout ended, of ours */
	const struct json_val *late = c->status == 504 ? json_get(remote_document(c), "result")
						       : NULL;
	const struct json_val *v = late ? late : remote_answer(c, e);

	if (!v || decode_answer(c, v, c->tool->route->answer, &a, e) < 0)
		return -1;
	if (!a.has_job && !a.report.has_exit_code)
		return err_set(e, ERR_TRANSPORT, "the server's answer has no exit_code");
	a.job.exec_id = a.report.exec;
	a.report.timed_out = late != NULL;
	return exec_end(c, &a, e);
}

static int exec_old(struct remote_call *c, struct err *e)
{
	const struct exec_request *q = c->request;
	autobuf struct buf body = BUF_INIT(BODY_MAX);
	struct json_writer w = json_writer(&body);
	const struct remote_question ask = { .method = "POST",
					     .path = "/v1/exec",
					     .seconds = exec_seconds(q) };
	struct remote_question with = ask;

	if (q->has_args)
		return err_set(e, ERR_INVALID, "args can't be asked of that server");
	json_write_object(&w);
	json_write_key(&w, "sandbox");
	json_write_str(&w, q->sandbox);
	json_write_key(&w, "command");
	json_write_str(&w, q->command);
	if (q->cwd.n) {
		json_write_key(&w, "working_dir");
		json_write_str(&w, q->cwd);
	}
	if (q->env.n) {
		json_write_key(&w, "env");
		json_write_val(&w, json_get(c->args, "env"));
	}
	if (q->timeout_seconds) {
		json_write_key(&w, "timeout");
		json_write_uint(&w, q->timeout_seconds);
	}
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0)
		return -1;
	with.body = buf_str(&body);
	return remote_ask(c, &with, NULL, exec_answered, e);
}

int six_exec(struct remote_call *c, struct err *e)
{
	static const char *const known[] = {
		"sandbox",	   "command",	       "args", "cwd", "env",
		"timeout_seconds", "max_output_bytes", NULL
	};
	const struct exec_request *q = c->request;
	autobuf struct buf body = BUF_INIT(BODY_MAX);
	struct remote_question ask = { .method = "POST",
				       .path = "/v1/exec",
				       .seconds = exec_seconds(q) };

	if (!c->r->is_ours && check_args(c, known, e) < 0)
		return -1;
	if (!c->r->is_ours)
		return c->r->exec == REMOTE_WAY_OLD ? exec_old(c, e) : exec_new(c, e);
	if (rest_body(c, NULL, STR_NONE, &body, e) < 0)
		return -1;
	ask.body = buf_str(&body);
	return remote_ask(c, &ask, NULL, exec_answered, e);
}

/* ---- read ---------------------------------------------------------------------------------- */

struct reading {
	struct remote_stream s; /* first */
	struct buf bytes;
	uint64_t passed; /* bytes before the offset */
	bool more;
};

static void read_free(struct reading *x)
{
	buf_fini(&x->s.part);
	buf_fini(&x->bytes);
}

/* Up to a character that is cut by the end of what is shown. False: a byte is no UTF-8. */
static bool whole_text(struct str *s, bool more)
{
	for (size_t at = 0, n; at < s->n; at += n) {
		if (utf8_next((struct str){ s->p + at, s->n - at }, &n))
			continue;
		if (!more || at + n < s->n)
			return false;
		s->n = at;
		break;
	}
	return true;
}

/* Bytes from the offset on; more: there are others behind them. */
static int read_end(struct remote_call *c, struct str bytes, bool more, struct err *e)
{
	const struct files_read_request *q = c->request;
	autobuf struct buf text = BUF_INIT(REMOTE_TEXT_MAX);
	char note[TEXT_MAX];

	if (bytes.n > q->limit) {
		bytes.n = q->limit;
		more = true;
	}
	if (q->encoding == FILE_UTF8 && !whole_text(&bytes, more))
		return err_set(e, ERR_INVALID,
			       "the file is not UTF-8 text; read it with encoding base64");
	if ((q->encoding == FILE_UTF8 ? buf_add(&text, bytes.p, bytes.n, e)
				      : base64_encode(&text, bytes, e)) < 0)
		return -1;
	snprintf(note, sizeof(note), "{\"truncated\":true,\"next_offset\":%" PRIu64 "}",
		 q->offset + bytes.n);
	return remote_end(c, buf_str(&text), more ? str_of(note) : STR_NONE);
}

static int read_message(struct remote_call *c, const struct json_val *v, struct err *e)
{
	const struct files_read_request *q = c->request;
	struct reading *x = c->state;
	autobuf struct buf bytes = BUF_INIT(REMOTE_ANSWER_MAX);
	size_t skip, room = q->limit - x->bytes.n, n;

	if (six_decode(json_str(json_get(v, "data")), &bytes, e) < 0)
		return -1;
	skip = q->offset - x->passed < bytes.n ? (size_t)(q->offset - x->passed) : bytes.n;
	x->passed += skip;
	n = bytes.n - skip;
	x->more = n > room;
	if (buf_add(&x->bytes, bytes.p + skip, n < room ? n : room, e) < 0)
		return -1;
	return x->more ? 0 : 1;
}

static int read_old(struct remote_call *c, struct err *e);

static int read_streamed(struct remote_call *c, struct err *e)
{
	struct reading *x = c->state;
	int rc = stream_way(c, &c->r->files, read_old, e);

	if (rc <= 0)
		return rc;
	if (!x->more && !x->s.ended)
		return err_set(e, ERR_TRANSPORT, "the server's stream ended before the file");
	return read_end(c, buf_str(&x->bytes), x->more, e);
}

static int read_new(struct remote_call *c, struct err *e)
{
	const struct files_read_request *q = c->request;
	const struct text path = { "path", q->path };
	autobuf struct buf json = BUF_INIT(BODY_MAX), body = BUF_INIT(BODY_MAX);
	struct reading *x;

	x = arena_alloc(remote_arena(c), sizeof(*x), e);
	if (!x || put_texts(&json, &path, 1, e) < 0 ||
	    remote_stream_put(&body, buf_str(&json), e) < 0)
		return -1;
	*x = (struct reading){ .s = { .part = BUF_INIT(REMOTE_ANSWER_MAX + 5),
				      .on_message = read_message },
			       .bytes = BUF_INIT(FILES_READ_MAX) };
	x->s.part.of = x->bytes.of = &c->r->came;
	c->state = x;
	c->free_state = (void (*)(void *))read_free;
	return ask_stream(c, "/sandbox.v1.Sandbox/ReadFile", q->sandbox, buf_str(&body), 0,
			  read_streamed, e);
}

/* The whole file, unless the server is ours, which gives what was asked for. */
static int read_answered(struct remote_call *c, struct err *e)
{
	const struct files_read_request *q = c->request;
	const struct json_val *v = remote_answer(c, e);
	struct str text = json_str(json_get(v, "content"));
	autobuf struct buf bytes = BUF_INIT(REMOTE_ANSWER_MAX);
	bool coded = str_is(json_str(json_get(v, "encoding")), "base64");

	if (v && !text.p)
		err_set(e, ERR_TRANSPORT, "the server's answer has no content");
	if (e->code == ERR_NONE && coded && base64_decode(&bytes, text, e) == 0)
		text = buf_str(&bytes);
	if (e->code != ERR_NONE)
		return -1;
	if (!c->r->is_ours && q->offset >= text.n)
		text = STR_LIT("");
	else if (!c->r->is_ours)
		text = (struct str){ text.p + q->offset, text.n - (size_t)q->offset };
	return read_end(c, text, json_get(v, "next_offset") != NULL, e);
}

static int read_old(struct remote_call *c, struct err *e)
{
	const struct files_read_request *q = c->request;
	const struct text texts[] = { { "sandbox", q->sandbox }, { "path", q->path } };
	autobuf struct buf body = BUF_INIT(BODY_MAX);
	struct remote_question ask = { .method = "POST", .path = "/v1/files/read" };

	if (put_texts(&body, texts, ARRAY_LEN(texts), e) < 0)
		return -1;
	ask.body = buf_str(&body);
	return remote_ask(c, &ask, NULL, read_answered, e);
}

int six_read(struct remote_call *c, struct err *e)
{
	autobuf struct buf body = BUF_INIT(BODY_MAX);
	struct remote_question ask = { .method = "POST", .path = "/v1/files/read" };

	if (!c->r->is_ours)
		return c->r->files == REMOTE_WAY_OLD ? read_old(c, e) : read_new(c, e);
	if (rest_body(c, NULL, STR_NONE, &body, e) < 0)
		return -1;
	ask.body = buf_str(&body);
	return remote_ask(c, &ask, NULL, read_answered, e);
}

/* ---- write --------------------------------------------------------------------------------- */

struct writing {
	struct remote_stream s; /* first */
};

static void write_free(struct writing *x)
{
	buf_fini(&x->s.part);
}

static int write_end(struct remote_call *c, struct err *e)
{
	const struct files_write_request *q = c->request;
	autobuf struct buf text = BUF_INIT(REMOTE_PATH_MAX);

	if (buf_addf(&text, e, "Wrote %zu bytes to %.*s in sandbox %.*s", q->content.n,
		     STR_ARG(q->path), STR_ARG(q->sandbox)) < 0)
		return -1;
	return remote_end(c, buf_str(&text), STR_NONE);
}

static int written(struct remote_call *c, struct err *e)
{
	if (remote_check(c, e) < 0)
		return -1;
	return write_end(c, e);
}

/* Bytes that are no text go as base64, which only ours knows. */
static int write_old(struct remote_call *c, struct err *e)
{
	const struct files_write_request *q = c->request;
	autobuf struct buf body = BUF_INIT(BODY_MAX);
	struct json_writer w = json_writer(&body);
	struct remote_question ask = { .method = "POST", .path = "/v1/files/write" };
	bool text = utf8_valid(q->content);

	if (!text && !c->r->is_ours)
		return err_set(e, ERR_INVALID, "that server takes UTF-8 text alone");
	json_write_object(&w);
	json_write_key(&w, "sandbox");
	json_write_str(&w, q->sandbox);
	json_write_key(&w, "path");
	json_write_str(&w, q->path);
	json_write_key(&w, "content");
	if (text)
		json_write_str(&w, q->content);
	else
		json_write_base64(&w, q->content);
	if (!text) {
		json_write_key(&w, "encoding");
		json_write_text(&w, file_encoding_names[FILE_BASE64]);
	}
	json_write_key(&w, "mode");
	json_write_uint(&w, q->mode);
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0)
		return -1;
	ask.body = buf_str(&body);
	return remote_ask(c, &ask, NULL, written, e);
}

static int write_message(struct remote_call *c, const struct json_val *v, struct err *e)
{
	return 1;
}

static int write_streamed(struct remote_call *c, struct err *e)
{
	int rc = stream_way(c, &c->r->files, write_old, e);

	if (rc <= 0)
		return rc;
	if (!((struct writing *)c->state)->s.ended)
		return err_set(e, ERR_TRANSPORT, "the server's stream ended before its answer");
	return write_end(c, e);
}

static int write_messages(const struct files_write_request *q, struct buf *to, struct err *e)
{
	autobuf struct buf json = BUF_INIT(BODY_MAX);
	struct json_writer w = json_writer(&json);

	json_write_object(&w);
	json_write_key(&w, "open");
	json_write_object(&w);
	json_write_key(&w, "path");
	json_write_str(&w, q->path);
	json_write_key(&w, "mode");
	json_write_uint(&w, q->mode);
	json_write_object_end(&w);
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0 || remote_stream_put(to, buf_str(&json), e) < 0)
		return -1;
	for (size_t at = 0; at < q->content.n; at += PIECE) {
		size_t left = q->content.n - at;

		json.n = 0;
		w = json_writer(&json);
		json_write_object(&w);
		json_write_key(&w, "data");
		json_write_base64(&w,
				  (struct str){ q->content.p + at, left < PIECE ? left : PIECE });
		json_write_object_end(&w);
		if (json_write_done(&w, e) < 0 || remote_stream_put(to, buf_str(&json), e) < 0)
			return -1;
	}
	return 0;
}

static int write_new(struct remote_call *c, struct err *e)
{
	const struct files_write_request *q = c->request;
	autobuf struct buf body = BUF_INIT(BODY_MAX);
	struct writing *x;

	x = arena_alloc(remote_arena(c), sizeof(*x), e);
	if (!x || write_messages(q, &body, e) < 0)
		return -1;
	*x = (struct writing){ .s = { .part = BUF_INIT(REMOTE_ANSWER_MAX + 5),
				      .on_message = write_message } };
	x->s.part.of = &c->r->came;
	c->state = x;
	c->free_state = (void (*)(void *))write_free;
	return ask_stream(c, "/sandbox.v1.Sandbox/WriteFile", q->sandbox, buf_str(&body), 0,
			  write_streamed, e);
}

int six_write(struct remote_call *c, struct err *e)
{
	struct files_write_request *q = c->request;

	/* the bytes and the mode, however they were said */
	if (c->tool->row->tool->op->normalize(q, remote_arena(c), e) < 0)
		return -1;
	if (!q->make_parents)
		return err_set(e, ERR_INVALID, "make_parents can't be asked of that server");
	return c->r->is_ours || c->r->files == REMOTE_WAY_OLD ? write_old(c, e) : write_new(c, e);
}
