#include <inttypes.h>
#include <stdio.h>

#include "base/base64.h"
#include "call/aside.h"
#include "call/call.h"
#include "call/guard.h"
#include "guard/redact/redact.h"
#include "json/document/utf8.h"
#include "op/files.h"

static_assert((int)FILES_READ_MAX + 2 * REDACT_AROUND_MAX < (int)FILE_READ_MAX,
	      "one byte more is read, to see the end, and what stands around");

const char *const file_encoding_names[] = { [FILE_UTF8] = "utf-8", [FILE_BASE64] = "base64" };

/* ---- files.read ---------------------------------------------------------------------------- */

#define Q struct files_read_request
static const struct field read_fields[] = {
	OP_SANDBOX_ROW(Q),
	FIELD(Q, path, .flags = FIELD_REQUIRED | FIELD_PATH, .min = 1, .max = FILES_PATH_MAX,
	      .doc = "Path of a regular file."),
	FIELD(Q, offset, .max = INT64_MAX, .def = DEFAULT_INT(0), .doc = "First byte to read."),
	FIELD(Q, limit, .min = 1, .max = FILES_READ_MAX,
	      .doc = "Maximum number of bytes to read. If absent, the file is read to its "
		     "end, and refused if that is more than 4194304 bytes."),
	FIELD_ENUM(Q, encoding, file_encoding_names, .def = DEFAULT_ENUM(FILE_UTF8),
		   .doc = "How to return the bytes; base64 for what is not UTF-8 text."),
	OP_RAW_ROW(Q),
};
#undef Q
static const struct field_table read_table = FIELD_TABLE(struct files_read_request, read_fields);

/* flags: FIELD_BYTES where it is as the bytes are. */
#define FILE_CONTENT_ROWS(flags_)                                                                  \
	FIELD(struct file_content, content, .flags = FIELD_REQUIRED | FIELD_NUL_OK | (flags_),     \
	      .doc = "The content that was read."),                                                \
		FIELD_ENUM(struct file_content, encoding, file_encoding_names,                     \
			   .flags = FIELD_REQUIRED, .doc = "How content represents the bytes."),   \
		FIELD(struct file_content, size, .flags = FIELD_REQUIRED,                          \
		      .doc = "Size of the whole file in bytes."),                                  \
		FIELD(struct file_content, offset, .flags = FIELD_REQUIRED,                        \
		      .doc = "Offset of the first byte read."),                                    \
		FIELD(struct file_content, bytes, .flags = FIELD_REQUIRED,                         \
		      .doc = "Bytes read; in UTF-8 a few less than asked for where a character "   \
			     "is cut."),                                                           \
		FIELD(struct file_content, eof, .flags = FIELD_REQUIRED,                           \
		      .doc = "The end of the file was reached."),                                  \
		FIELD(struct file_content, next_offset,                                            \
		      .has = FIELD_HAS(struct file_content, has_next),                             \
		      .doc = "Offset to continue from; absent at the end of the file.")
#define MODE_ROW                                                                                   \
	FIELD(struct file_content, mode, .flags = FIELD_REQUIRED,                                  \
	      .doc = "Permission bits of the file in octal, such as 0644.")
#define CONTENT_TABLE(name_, flags_)                                                               \
	static const struct field name_##_fields[] = { FILE_CONTENT_ROWS(flags_), MODE_ROW };      \
	static const struct field_table name_ = FIELD_TABLE(struct file_content, name_##_fields)
CONTENT_TABLE(text_table, 0);
CONTENT_TABLE(bytes_table, FIELD_BYTES);
CONTENT_TABLE(raw_text_table, FIELD_PLAIN);
CONTENT_TABLE(raw_bytes_table, FIELD_BYTES | FIELD_PLAIN);

/* [encoding][raw] */
static const struct field_table *const content_tables[2][2] = {
	[FILE_UTF8] = { &text_table, &raw_text_table },
	[FILE_BASE64] = { &bytes_table, &raw_bytes_table },
};

static const struct field chunk_fields[] = {
	FIELD(struct file_chunk, data, .flags = FIELD_BYTES, .doc = "The next bytes."),
	FIELD(struct file_chunk, eof, .flags = FIELD_REQUIRED, .doc = "These are the last bytes."),
};
const struct field_table file_chunk_table = FIELD_TABLE(struct file_chunk, chunk_fields);

/* How much of s is whole characters: all, or up to one that is cut by the end of s, unless that is
 * the end of the file. False where a byte is no UTF-8; *ret_n is before it. */
static bool whole_characters(struct str s, bool eof, size_t *ret_n)
{
	size_t n;

	for (*ret_n = 0; *ret_n < s.n; *ret_n += n) {
		if (!utf8_next((struct str){ s.p + *ret_n, s.n - *ret_n }, &n))
			return !eof && *ret_n + n == s.n;
	}
	return true;
}

static int files_cut_text(struct file_content *ret, struct err *e)
{
	size_t n;

	if (!whole_characters(ret->content, ret->eof, &n))
		return err_set(e, ERR_INVALID,
			       "encoding: byte %" PRIu64
			       " of the file is not UTF-8 text; read it with encoding base64",
			       ret->offset + n);
	if (n == 0 && ret->content.n > 0)
		return err_set(e, ERR_INVALID, "limit: the next %zu bytes are no whole character",
			       ret->content.n);
	ret->content.n = n;
	return 0;
}

/* Where reading begins: what stands before the first byte decides whether a secret is cut. */
static uint64_t files_look_from(struct call *c, uint64_t offset)
{
	size_t around = redactor_around(call_guard(c)->redactor);

	return offset > around ? offset - around : 0;
}

/* bytes: also what stands around those that are asked for. */
static int files_fill_content(struct call *c, struct str bytes, uint64_t size,
			      struct file_content *ret, struct err *e)
{
	const struct files_read_request *q = call_request(c);
	size_t max = q->limit ? q->limit : FILES_READ_MAX;
	size_t before = (size_t)(q->offset - files_look_from(c, q->offset)), left;
	struct redact_part part;

	/* Redaction looks at them later. */
	bytes.p = arena_dup(call_arena(c), bytes, e);
	if (!bytes.p)
		return -1;
	before = before < bytes.n ? before : bytes.n;
	left = bytes.n - before;
	ret->content = (struct str){ bytes.p + before, left < max ? left : max };
	ret->encoding = q->encoding;
	ret->size = size;
	ret->offset = q->offset;
	ret->eof = left <= max;
	if (!ret->eof && !q->limit)
		return err_set(e, ERR_TOO_LARGE,
			       "the file has %" PRIu64
			       " bytes, and %d are read at once: give offset and limit",
			       size, FILES_READ_MAX);
	if (q->encoding == FILE_UTF8 && files_cut_text(ret, e) < 0)
		return -1;
	ret->bytes = ret->content.n;
	ret->has_next = !ret->eof;
	ret->next_offset = ret->offset + ret->bytes;
	if (q->raw)
		return 0;
	part = (struct redact_part){ .before = { bytes.p, before },
				     .text = ret->content,
				     .after = { ret->content.p + ret->content.n,
						left - ret->content.n } };
	return call_answer_part(c, &part, e);
}

static void files_on_read(void *arg, struct str bytes, const struct file_stat *st,
			  const struct err *err)
{
	struct call *c = arg;
	const struct files_read_request *q = call_request(c);
	struct err e = ERR_INIT;
	char mode[8];
	struct file_content result = { .mode = { mode, 4 } };

	if (err) {
		call_fail(c, err);
		return;
	}
	snprintf(mode, sizeof(mode), "%04o", st->mode & 07777);
	if (files_fill_content(c, bytes, st->size, &result, &e) < 0)
		call_fail(c, &e);
	else
		call_answer_by(c, content_tables[q->encoding][q->raw], &result);
}

static void files_read_whole(struct call *c, struct sandbox *sb)
{
	const struct files_read_request *q = call_request(c);
	size_t want = (q->limit ? q->limit : FILES_READ_MAX) + 1u;
	uint64_t from = files_look_from(c, q->offset);
	struct err e = ERR_INIT;

	if (call_reserve(c, want, &e) < 0)
		call_fail(c, &e);
	else
		file_read_start(sb, q->path, from,
				(size_t)(q->offset - from) + want +
					redactor_around(call_guard(c)->redactor),
				files_on_read, c);
}

/* ---- as a stream, to the end ---- */

struct file_reading {
	struct call *call;
	struct sandbox *sb; /* busy until the call's end */
	struct str path;
	uint64_t offset;
	uint64_t first; /* byte that was asked for; those before are looked at only */
	bool streams, waits;
};

static void files_read_on(struct file_reading *r);

static void files_on_room(void *data)
{
	struct file_reading *r = data;

	if (r->waits)
		files_read_on(r);
}

/* The first read decides whether there is a stream at all. */
static void files_on_chunk(void *arg, struct str bytes, const struct file_stat *st,
			   const struct err *err)
{
	struct file_reading *r = arg;
	bool eof = bytes.n < FILES_CHUNK;
	struct err e = ERR_INIT;

	if (!err && !r->streams && call_open(r->call, files_on_room, r, &e) < 0)
		err = &e;
	if (!err && call_cancelled(r->call)) {
		err_set(&e, ERR_CANCELLED, "nobody reads it any more");
		err = &e;
	}
	if (err) {
		call_fail(r->call, err);
		return;
	}
	r->streams = true;
	if (r->offset < r->first) {
		size_t before = (size_t)(r->first - r->offset);

		before = before < bytes.n ? before : bytes.n;
		call_redact_before(r->call, CALL_FILE, (struct str){ bytes.p, before });
		bytes = (struct str){ bytes.p + before, bytes.n - before };
		r->offset += before;
	}
	r->offset += bytes.n;
	bytes = call_redact_piece(r->call, CALL_FILE, bytes, eof ? REDACT_END : REDACT_MORE);
	call_send_redacted(r->call, &(struct file_chunk){ bytes, eof });
	if (eof)
		call_answer(r->call, NULL);
	else if (!call_full(r->call))
		files_read_on(r);
	else
		r->waits = true;
}

static void files_read_on(struct file_reading *r)
{
	r->waits = false;
	file_read_start(r->sb, r->path, r->offset, FILES_CHUNK, files_on_chunk, r);
}

static void files_read_stream(struct call *c, struct sandbox *sb)
{
	const struct files_read_request *q = call_request(c);
	struct err e = ERR_INIT;
	struct file_reading *r = arena_alloc(call_arena(c), sizeof(*r), &e);

	if (!r) {
		call_fail(c, &e);
		return;
	}
	*r = (struct file_reading){ .call = c,
				    .sb = sb,
				    .path = q->path,
				    .offset = files_look_from(c, q->offset),
				    .first = q->offset };
	/* Nobody makes room any more then, so nobody else would end it. */
	call_on_cancel(c, files_on_room, r);
	files_read_on(r);
}

static void files_read_run(struct call *c, const void *request)
{
	const struct files_read_request *q = request;
	struct sandbox *sb = files_enter(c, q->sandbox, q->path);

	if (sb && call_streams(c))
		files_read_stream(c, sb);
	else if (sb)
		files_read_whole(c, sb);
}

const struct op files_read_op = {
	.action = "files.read",
	.doc = "Reads a file, whole or a range of its bytes.",
	.effect = OP_READ,
	.request = &read_table,
	.target = OP_TARGET(struct files_read_request, sandbox),
	.raw = OP_RAW(struct files_read_request, raw),
	.result = &text_table,
	.event = &file_chunk_table,
	.run = files_read_run,
};

/* ---- files.write --------------------------------------------------------------------------- */

enum { MODE_DEFAULT = 0644 };

#define Q struct files_write_request
static const struct field write_fields[] = {
	OP_SANDBOX_ROW(Q),
	FIELD(Q, path, .flags = FIELD_REQUIRED | FIELD_PATH, .min = 1, .max = FILES_PATH_MAX,
	      .doc = "Path of the file; missing parent directories are made."),
	FIELD(Q, content, .flags = FIELD_REQUIRED | FIELD_NUL_OK | FIELD_BYTES,
	      .doc = "The new content."),
	FIELD_ENUM(Q, encoding, file_encoding_names, .def = DEFAULT_ENUM(FILE_UTF8),
		   .doc = "Encoding of content: text, or any bytes in base64."),
	FIELD(Q, mode, .max = 07777, .def = DEFAULT_INT(MODE_DEFAULT),
	      .doc = "Permission bits of a new file, as a number: 420 is 0644. An existing "
		     "file keeps its own."),
	FIELD(Q, mode_octal, .min = 3, .max = 5,
	      .doc = "Permission bits of a new file in octal, such as 0755; 0644 if absent. "
		     "An existing file keeps its own."),
	FIELD(Q, make_parents, .def = DEFAULT_BOOL(true),
	      .doc = "Make missing parent directories."),
};
#undef Q
static const struct field_table write_table = FIELD_TABLE(struct files_write_request, write_fields);

static const struct field written_fields[] = {
	FIELD(struct file_written, sandbox, .flags = FIELD_REQUIRED, .doc = "Id of the sandbox."),
	FIELD(struct file_written, path, .flags = FIELD_REQUIRED, .doc = "Its absolute path."),
	FIELD(struct file_written, bytes, .flags = FIELD_REQUIRED, .doc = "Bytes written."),
};
static const struct field_table written_table = FIELD_TABLE(struct file_written, written_fields);

/* Three or four octal digits, with or without a leading 0 or 0o. */
static int files_parse_mode(struct str text, uint32_t *ret, struct err *e)
{
	uint32_t mode = 0;

	for (size_t i = str_starts(text, "0o") ? 2 : 0; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '7')
			return err_set(e, ERR_INVALID, "mode: octal digits, such as \"0755\"");
		mode = mode * 8 + (uint32_t)(text.p[i] - '0');
	}
	if (mode > 0777 || mode == 0)
		return err_set(e, ERR_INVALID, "mode: from 0001 to 0777");
	*ret = mode;
	return 0;
}

static int files_decode_content(struct files_write_request *q, struct arena *a, struct err *e)
{
	q->encoding = FILE_UTF8;
	return base64_replace(&q->content, a, e) < 0 ? err_wrap(e, "content") : 0;
}

static int files_write_normalize(void *request, struct arena *a, struct err *e)
{
	struct files_write_request *q = request;

	/* Its one spelling has no slash at the end any more, with which it names a directory. */
	if (str_ends(q->path, "/"))
		return err_set(e, ERR_NOT_A_FILE, "%.*s is not a regular file of the sandbox's own",
			       STR_CUT(q->path, 160));
	if (q->mode_octal.p && files_parse_mode(q->mode_octal, &q->mode, e) < 0)
		return -1;
	q->mode_octal = STR_NONE;
	q->mode = q->mode ? q->mode : MODE_DEFAULT;
	return q->encoding == FILE_BASE64 ? files_decode_content(q, a, e) : 0;
}

/* In the call's arena. Content may be long: marks in it are looked for, and put back, in the work
 * pool. */
struct file_writing {
	struct aside_work work; /* first: the two are cast */
	struct call *call;
	struct sandbox *sb;
	bool is_marked;
	struct buf old; /* the file as it is */
	struct buf marked; /* content, with what its marks stand for */
	size_t n;
	struct err err; /* why they can't be put back */
};

static void files_write_end(struct file_writing *w, const struct err *err)
{
	const struct files_write_request *q = call_request(w->call);

	buf_wipe(&w->old);
	buf_wipe(&w->marked);
	if (err)
		call_fail(w->call, err);
	else
		call_answer(w->call,
			    &(struct file_written){ q->sandbox, q->path, STR_LIT("ok"), w->n });
}

static void files_on_written(void *arg, const struct err *err)
{
	files_write_end(arg, err);
}

static void files_write(struct file_writing *w, struct str content)
{
	const struct files_write_request *q = call_request(w->call);
	const struct file_write_opts opts = { .mode = q->mode, .make_parents = q->make_parents };

	w->n = content.n;
	file_write_start(w->sb, q->path, content, &opts, files_on_written, w);
}

static void files_write_put_back(struct aside_work *work)
{
	struct file_writing *w = (struct file_writing *)work;
	const struct files_write_request *q = call_request(w->call);
	const struct files_marked t = { .old = buf_str(&w->old),
					.text = q->content,
					.by_agent = call_by_agent(w->call) };

	if (files_put_back(work->redactor, &t, &w->marked, &w->err) == 0)
		w->err.code = ERR_NONE;
}

static void files_write_marked(struct aside_work *work)
{
	struct file_writing *w = (struct file_writing *)work;

	if (w->err.code != ERR_NONE)
		files_write_end(w, &w->err);
	else
		files_write(w, buf_str(&w->marked));
}

/* Where there is no file that can be read, the write says why. */
static void files_on_old(void *arg, struct str bytes, const struct file_stat *st,
			 const struct err *err)
{
	struct file_writing *w = arg;
	const struct files_write_request *q = call_request(w->call);
	struct err e;

	w->work.run = files_write_put_back;
	w->work.then = files_write_marked;
	if ((!err && buf_add(&w->old, bytes.p, bytes.n, &e) < 0) ||
	    aside_work_start(&w->work, call_loop(w->call), call_guard(w->call)->redactor,
			     w->old.n + q->content.n, &e) < 0)
		files_write_end(w, &e);
}

static void files_write_look(struct aside_work *work)
{
	struct file_writing *w = (struct file_writing *)work;
	const struct files_write_request *q = call_request(w->call);

	w->is_marked = files_has_marks(q->content);
}

static void files_write_looked(struct aside_work *work)
{
	struct file_writing *w = (struct file_writing *)work;
	const struct files_write_request *q = call_request(w->call);
	struct err e;

	if (!w->is_marked)
		files_write(w, q->content);
	else if (call_reserve(w->call, 4 * FILES_READ_MAX, &e) < 0)
		files_write_end(w, &e);
	else
		file_read_start(w->sb, q->path, 0, FILES_READ_MAX, files_on_old, w);
}

static void files_write_run(struct call *c, const void *request)
{
	const struct files_write_request *q = request;
	struct sandbox *sb = files_enter(c, q->sandbox, q->path);
	struct err e = ERR_INIT;
	struct file_writing *w = sb ? arena_alloc(call_arena(c), sizeof(*w), &e) : NULL;

	if (!sb)
		return;
	if (!w) {
		call_fail(c, &e);
		return;
	}
	*w = (struct file_writing){ .work = { .run = files_write_look, .then = files_write_looked },
				    .call = c,
				    .sb = sb,
				    .old = BUF_INIT(FILES_READ_MAX),
				    .marked = BUF_INIT(FILE_WRITE_MAX),
				    .err = ERR_INIT };
	if (aside_work_start(&w->work, call_loop(c), NULL, q->content.n, &e) < 0)
		files_write_end(w, &e);
}

const struct op files_write_op = {
	.action = "files.write",
	.doc = "Writes a file atomically: readers see the old content or the new, never a part.",
	.effect = OP_WRITE,
	.flags = OP_REPLACES | OP_IDEMPOTENT,
	.request = &write_table,
	.target = OP_TARGET(struct files_write_request, sandbox),
	.result = &written_table,
	.normalize = files_write_normalize,
	.run = files_write_run,
};
