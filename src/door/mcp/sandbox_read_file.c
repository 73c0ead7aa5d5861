#include "door/mcp/tools.h"

#include <inttypes.h>

#include "base/base64.h"
#include "json/document/utf8.h"
#include "door/mcp/common.h"

/* One answer holds the content twice, each character as up to six: far below what the protocol
 * sends as one message. */
enum { READ_MAX = 4 * 1024 * 1024 };
static_assert((int)READ_MAX < (int)FILE_READ_MAX,
	      "the engine is asked for one byte more, to see the end");

struct read_params {
	struct str sandbox, path;
	uint64_t offset;
	bool has_limit;
	uint32_t limit;
	enum encoding encoding;
};

static const struct field read_fields[] = {
	SANDBOX_ROW(struct read_params),
	FIELD(struct read_params, path, .flags = FIELD_REQUIRED, .min = 1, .max = TOOL_PATH_MAX,
	      .doc = "Path of a regular file inside; relative ones start at the sandbox's working "
		     "directory."),
	FIELD(struct read_params, offset, .max = INT64_MAX, .def = DEFAULT_INT(0),
	      .doc = "First byte to read."),
	FIELD(struct read_params, limit, .min = 1, .max = READ_MAX,
	      .has = FIELD_HAS(struct read_params, has_limit),
	      .doc = "Bytes to read at most. If absent the file is read to its end, and refused if "
		     "that is more than 4194304 bytes."),
	FIELD_ENUM(struct read_params, encoding, encoding_names, .def = DEFAULT_ENUM(ENCODING_UTF8),
		   .doc = "How to return the bytes; base64 for what is not UTF-8 text."),
};
static const struct field_table read_input = FIELD_TABLE(struct read_params, read_fields);

struct read_result {
	struct str content;
	enum encoding encoding;
	uint64_t size, offset, bytes;
	bool eof;
	bool has_next;
	uint64_t next_offset;
	struct str mode;
};

static const struct field result_fields[] = {
	FIELD(struct read_result, content, .flags = FIELD_REQUIRED | FIELD_NUL_OK,
	      .doc = "What was read."),
	FIELD_ENUM(struct read_result, encoding, encoding_names, .flags = FIELD_REQUIRED,
		   .doc = "How content stands for the bytes."),
	FIELD(struct read_result, size, .flags = FIELD_REQUIRED, .doc = "Bytes of the whole file."),
	FIELD(struct read_result, offset, .flags = FIELD_REQUIRED, .doc = "First byte read."),
	FIELD(struct read_result, bytes, .flags = FIELD_REQUIRED,
	      .doc = "Bytes read; in UTF-8 it may be a few less than asked for, to cut no character."),
	FIELD(struct read_result, eof, .flags = FIELD_REQUIRED,
	      .doc = "The end of the file was read."),
	FIELD(struct read_result, next_offset, .has = FIELD_HAS(struct read_result, has_next),
	      .doc = "Where to read on; absent at the end of the file."),
	FIELD(struct read_result, mode, .flags = FIELD_REQUIRED,
	      .doc = "Permission bits of the file in octal, such as 0644."),
};
static const struct field_table read_output = FIELD_TABLE(struct read_result, result_fields);

struct read_run {
	struct call *call;
	const struct read_params *params;
};

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

static int shape_text(struct str bytes, struct read_result *ret, struct err *e)
{
	size_t n;

	if (!whole_characters(bytes, ret->eof, &n))
		return err_set(e, ERR_INVALID,
			       "encoding: byte %" PRIu64
			       " of the file is not UTF-8 text; read it with "
			       "encoding base64",
			       ret->offset + n);
	if (n == 0 && bytes.n > 0)
		return err_set(e, ERR_INVALID, "limit: the next %zu bytes are no whole character",
			       bytes.n);
	ret->content = (struct str){ bytes.p, n };
	ret->bytes = n;
	return 0;
}

static int shape(const struct read_run *r, struct str bytes, const struct file_stat *st,
		 struct buf *base64, struct read_result *ret, struct err *e)
{
	size_t max = r->params->has_limit ? r->params->limit : READ_MAX;

	ret->size = st->size;
	ret->eof = bytes.n <= max;
	if (!ret->eof && !r->params->has_limit)
		return err_set(e, ERR_TOO_LARGE,
			       "the file has %" PRIu64
			       " bytes, and %d are read at once: give offset and "
			       "limit",
			       st->size, READ_MAX);
	if (!ret->eof)
		bytes.n = max;
	ret->bytes = bytes.n;
	if (r->params->encoding == ENCODING_UTF8) {
		if (shape_text(bytes, ret, e) < 0)
			return -1;
	} else {
		if (base64_encode(base64, bytes, e) < 0)
			return -1;
		ret->content = buf_str(base64);
	}
	ret->has_next = !ret->eof;
	ret->next_offset = ret->offset + ret->bytes;
	return 0;
}

static void on_read(void *arg, struct str bytes, const struct file_stat *st, const struct err *err)
{
	struct read_run *r = arg;
	autobuf struct buf base64 = BUF_INIT(READ_MAX / 3 * 4 + 8);
	struct err e = ERR_INIT;
	char mode[8];
	struct read_result result = {
		.encoding = r->params->encoding,
		.offset = r->params->offset,
		.mode = { mode, 4 },
	};

	if (err) {
		call_fail(r->call, err);
		return;
	}
	snprintf(mode, sizeof(mode), "%04o", st->mode & 07777);
	if (shape(r, bytes, st, &base64, &result, &e) < 0)
		call_fail(r->call, &e);
	else
		call_answer(r->call, &result);
}

static void run(struct call *c, const void *params)
{
	const struct read_params *p = params;
	struct err e = ERR_INIT;
	struct sandbox *sb = call_sandbox(c, p->sandbox, &e);
	struct read_run *r = sb ? arena_alloc(call_arena(c), sizeof(*r), &e) : NULL;
	size_t want = (p->has_limit ? p->limit : READ_MAX) + 1u;

	if (!r || call_reserve(c, want, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	*r = (struct read_run){ .call = c, .params = p };
	file_read_start(sb, p->path, p->offset, want, on_read, r);
}

const struct tool sandbox_read_file_tool = {
	.op =
		&(const struct op){
			.action = "files.read",
			.effect = OP_READ,
			.request = &read_input,
			.target = OP_TARGET(struct read_params, sandbox),
			.result = &read_output,
			.run = run,
		},
	.name = "sandbox_read_file",
	.title = "Read a file",
	.doc = "Reads a file of a sandbox, whole or a range of bytes.",
	.says = "{content}",
};
