/* Whole files over HTTP: GET and POST /files. */
#include "door/e2b/internal.h"

#include "door/e2b/upload.h"
#include "json/document/utf8.h"
#include "op/files.h"

enum {
	UPLOAD_MAX = FILE_WRITE_MAX, /* bytes of a file, as the engine takes them at once */
	BODY_MAX = UPLOAD_MAX + (1 << 20), /* and what is around it */
	FILES_MAX = 256, /* of a request */
	ANSWER_MAX = 4 << 20,
	UNPACKED_MAX =
		4, /* bodies at once, in all: no budget of the server counts what comes out */
};

/* ---- reading ------------------------------------------------------------------------------- */

static void read_on_chunk(struct ask *a, const void *event)
{
	ask_write(a, ((const struct file_chunk *)event)->data);
}

static void read_on_end(struct ask *a, const void *result, const struct err *err)
{
	if (err)
		ask_fail(a, err);
	else
		ask_end_stream(a);
}

/* That of a signed address is known by its signature alone. */
static void run_read(struct ask *a)
{
	struct str path = http_request_query(a->q, STR_LIT("path"));
	struct ask_args args;

	if (!path.n) {
		ask_fail_with(a, ERR_INVALID, "path: the file to read");
		return;
	}
	path = ask_path(a, path);
	if (!path.p)
		return;
	ask_arg_str(ask_args(a, &args, true), "path", path);
	ask_follow(a, &files_read_op, &args, read_on_chunk, read_on_end);
}

/* ---- writing ------------------------------------------------------------------------------- */

struct writing {
	struct {
		struct str path, bytes;
	} p[FILES_MAX];
	size_t n, next;
	struct buf unpacked;
	bool counted; /* in unpacking */
	uv_work_t work; /* in the pool: to unpack takes time */
	struct ask *ask;
	struct err err;
};

static void write_reply(struct ask *a, const struct writing *w)
{
	struct buf b = BUF_INIT(ANSWER_MAX);
	struct json_writer j = json_writer(&b);

	json_write_array(&j);
	for (size_t i = 0; i < w->n; i++) {
		json_write_object(&j);
		ask_arg_str(&j, "name", e2b_base_name(w->p[i].path));
		ask_arg_str(&j, "type", STR_LIT("file"));
		ask_arg_str(&j, "path", w->p[i].path);
		json_write_object_end(&j);
	}
	json_write_array_end(&j);
	ask_reply(a, 200, &j);
}

/* One after the other; those before a failure stay. */
static void write_next(struct ask *a, const void *result, const struct err *err)
{
	struct writing *w = a->state;
	struct files_write_request q = { .sandbox = a->sandbox, .make_parents = true };

	if (err) {
		ask_fail(a, err);
	} else if (w->next == w->n) {
		write_reply(a, w);
	} else {
		q.path = w->p[w->next].path;
		q.content = w->p[w->next++].bytes;
		ask_call_with(a, &files_write_op, &q, write_next);
	}
}

static void write_free(struct ask *a)
{
	struct writing *w = a->state;

	buf_fini(&w->unpacked);
	a->x->unpacking -= w->counted;
}

static int write_add(struct ask *a, struct writing *w, struct str path, struct str bytes,
		     struct err *e)
{
	if (w->n == FILES_MAX)
		return err_set(e, ERR_TOO_LARGE, "at most %d files at once", FILES_MAX);
	if (!path.n || !utf8_valid(path)) /* the answer and later requests could not name it */
		return err_set(e, ERR_INVALID, "path: where to write, in UTF-8");
	path = ask_path(a, path);
	if (!path.p)
		return err_set(e, ERR_INVALID, "path");
	w->p[w->n].path = path;
	w->p[w->n++].bytes = bytes.p ? bytes : STR_LIT("");
	return 0;
}

/* The name of each is its path, unless the query has one. */
static int write_parts(struct ask *a, struct writing *w, struct str body, struct str boundary,
		       struct str path, struct err *e)
{
	struct upload_parts parts = { .body = body, .boundary = boundary };
	struct upload_part part;
	int n;

	while ((n = upload_next(&parts, &part, a->arena, e)) > 0) {
		if (!part.filename.p)
			continue;
		if (path.n && w->n)
			return err_set(e, ERR_INVALID,
				       "path: several files have paths of their own");
		if (write_add(a, w, path.n ? path : part.filename, part.bytes, e) < 0)
			return -1;
	}
	if (n == 0 && w->n == 0)
		return err_set(e, ERR_INVALID, "the body has no file");
	return n;
}

static bool is_packed(struct ask *a)
{
	return str_is(http_request_header(a->q, STR_LIT("Content-Encoding")), "gzip");
}

static int write_read(struct ask *a, struct writing *w, struct err *e)
{
	struct str path = http_request_query(a->q, STR_LIT("path"));
	struct str type = http_request_header(a->q, STR_LIT("Content-Type"));
	struct str encoding = http_request_header(a->q, STR_LIT("Content-Encoding"));
	struct str body = http_request_body(a->q), boundary = upload_boundary(type);

	if (is_packed(a))
		body = buf_str(&w->unpacked);
	else if (encoding.n && !str_is(encoding, "identity"))
		return err_set(e, ERR_MEDIA_TYPE, "Content-Encoding: gzip, or none");
	if (boundary.p)
		return write_parts(a, w, body, boundary, path, e);
	if (!str_starts(type, "application/octet-stream"))
		return err_set(e, ERR_MEDIA_TYPE,
			       "Content-Type: multipart/form-data or application/octet-stream");
	return write_add(a, w, path, body, e);
}

static void write_start(struct ask *a)
{
	struct writing *w = a->state;

	if (w->err.code != ERR_NONE || write_read(a, w, &w->err) < 0)
		ask_fail(a, &w->err);
	else
		write_next(a, NULL, NULL);
}

static void write_unpack(uv_work_t *work)
{
	struct writing *w = work->data;
	struct err e;

	if (upload_gunzip(http_request_body(w->ask->q), &w->unpacked, &e) < 0)
		w->err = e;
}

static void write_on_unpacked(uv_work_t *work, int status)
{
	struct ask *a = ((struct writing *)work->data)->ask;

	write_start(a);
	ask_leave(a);
}

static void run_write(struct ask *a)
{
	struct writing *w = a->state = arena_alloc(a->arena, sizeof(*w), &(struct err){ 0 });

	if (!w) {
		ask_fail_with(a, ERR_LIMIT, "out of memory");
		return;
	}
	w->unpacked = BUF_INIT(BODY_MAX);
	w->ask = a;
	w->work.data = w;
	a->on_free = write_free;
	if (!is_packed(a)) {
		write_start(a);
	} else if (a->x->unpacking == UNPACKED_MAX) {
		ask_fail_with(a, ERR_LIMIT, "%d packed bodies are written already", UNPACKED_MAX);
	} else { /* the request stays until it is answered, and the ask until it is left */
		w->counted = true;
		a->x->unpacking++;
		ask_enter(a);
		if (uv_queue_work(a->x->o.loop, &w->work, write_unpack, write_on_unpacked) < 0)
			write_on_unpacked(&w->work, UV_ENOMEM);
	}
}

static const struct e2b_row rows[] = {
	{ HTTP_GET, "/files", E2B_HTTP, 0, run_read, "Reads a file.", .is_raw = true },
	{ HTTP_POST, "/files", E2B_HTTP, BODY_MAX, run_write, "Writes files.", .is_raw = true },
};
const struct e2b_rows e2b_files = { rows, ARRAY_LEN(rows) };
