#include <inttypes.h>

#include "base/base64.h"
#include "door/mcp/common.h"
#include "door/mcp/tools.h"
#include "op/files.h"

/* Most texts are whole with it. */
enum { LIMIT_DEFAULT = 64 << 10 };

static int text_of(const void *result, struct buf *to, struct err *e)
{
	const struct file_content *r = result;

	if (r->encoding == FILE_BASE64)
		return base64_encode(to, r->content, e);
	return buf_add(to, r->content.p, r->content.n, e);
}

static const struct op_member members[] = {
	TOOL_SANDBOX,
	{ "path", .doc = "A regular file." },
	{ "limit", .def = DEFAULT_INT(LIMIT_DEFAULT), .doc = "Bytes to read at most." },
	{ "encoding", .doc = "base64 for what is not UTF-8." },
	{ "raw", .in = OP_HIDDEN },
};

/* Where there is more. */
static int note_of(const void *result, struct buf *to, struct err *e)
{
	const struct file_content *r = result;

	return r->has_next ? buf_addf(to, e,
				      "{\"truncated\":true,\"size\":%" PRIu64
				      ",\"next_offset\":%" PRIu64 "}",
				      r->size, r->next_offset)
			   : 0;
}

#define C struct file_content
static const struct field facts_fields[] = {
	FIELD_ENUM(C, encoding, file_encoding_names, .doc = "How the text represents the bytes."),
	FIELD(C, size, .doc = "Size of the whole file in bytes."),
	FIELD(C, offset, .doc = "Offset of the first byte read."),
	FIELD(C, bytes, .doc = "Bytes read."),
	FIELD(C, eof, .doc = "The end of the file was reached."),
	FIELD(C, next_offset, .has = FIELD_HAS(C, has_next), .doc = "Offset to continue from."),
	FIELD(C, mode, .doc = "Permission bits in octal."),
};
#undef C
static const struct field_table facts = FIELD_TABLE(struct file_content, facts_fields);

const struct tool sandbox_read_file_tool = {
	.op = &files_read_op,
	.name = "sandbox_read_file",
	.title = "Read a file",
	.doc = "Reads a file; returns size and next_offset if there is more.",
	.members = OP_MEMBERS(members),
	.text = text_of,
	.note = note_of,
	.facts = &facts,
};
