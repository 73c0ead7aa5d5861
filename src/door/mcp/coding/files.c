/* Read, Write and Edit. */
#include <inttypes.h>

#include "door/mcp/tools.h"
#include "op/coding/coding.h"

static int read_text(const void *result, struct buf *to, struct err *e)
{
	const struct coding_text *r = result;

	if (r->binary)
		return buf_addf(to, e,
				"%.*s is binary, %" PRIu64 " bytes, and not shown; look at it by a "
				"program, such as xxd, in Bash.",
				STR_ARG(r->path), r->size);
	if (r->size == 0)
		return buf_addf(to, e, "%.*s is empty.", STR_ARG(r->path));
	return buf_add(to, r->text.p, r->text.n, e);
}

/* Notes that the lines themselves do not have. */
static int read_note(const void *result, struct buf *to, struct err *e)
{
	const struct coding_text *r = result;

	if (r->bad &&
	    buf_addf(to, e, "%" PRIu64 " bytes are no UTF-8 and shown as U+FFFD. ", r->bad) < 0)
		return -1;
	if (!r->has_next)
		return 0;
	if (r->has_total)
		return buf_addf(to, e,
				"Lines %" PRIu64 " to %" PRIu64 " of %" PRIu64
				"; read on with offset %" PRIu64 ".",
				r->first, r->first + r->lines - 1, r->total, r->next);
	return buf_addf(to, e, "Lines %" PRIu64 " to %" PRIu64 "; read on with offset %" PRIu64 ".",
			r->first, r->first + r->lines - 1, r->next);
}

#define R struct coding_text
static const struct field facts_fields[] = {
	FIELD(R, size, .doc = "Size of the file in bytes."),
	FIELD(R, first, .doc = "The first line shown."),
	FIELD(R, lines, .doc = "Number of lines shown."),
	FIELD_NAMED(R, total, "total_lines", .has = FIELD_HAS(R, has_total),
		    .doc = "Number of lines of the file."),
	FIELD_NAMED(R, next, "next_offset", .has = FIELD_HAS(R, has_next),
		    .doc = "Line to continue from."),
	FIELD(R, binary, .doc = "Not a text file."),
};
#undef R
static const struct field_table read_facts = FIELD_TABLE(struct coding_text, facts_fields);

/* As agents that write code know it. */
static const struct op_member file_members[] = { { "path", .as = "file_path" } };

const struct tool coding_read_tool = {
	.op = &coding_read_op,
	.members = OP_MEMBERS(file_members),
	.name = "Read",
	.title = "Read a file",
	.doc = "Shows a text file with line numbers, from offset on. Read a file before you edit "
	       "or replace it.",
	.text = read_text,
	.note = read_note,
	.facts = &read_facts,
};

static int write_text(const void *result, struct buf *to, struct err *e)
{
	const struct coding_written *r = result;
	bool outside = str_starts(r->path, "/") || str_starts(r->path, "file:///");

	return buf_addf(to, e, "Wrote %" PRIu64 " bytes to %s%.*s%s", r->bytes,
			r->is_new ? "the new file " : "", STR_ARG(r->path),
			outside && !str_starts(r->path, "file:///workspace/")
				? ", outside of /workspace: it ends with the sandbox"
				: "");
}

const struct tool coding_write_tool = {
	.op = &coding_write_op,
	.members = OP_MEMBERS(file_members),
	.name = "Write",
	.title = "Write a file",
	.doc = "Writes a whole file. An existing file must have been read before; to "
	       "change a part of it use Edit.",
	.text = write_text,
};

static int edit_text(const void *result, struct buf *to, struct err *e)
{
	const struct coding_written *r = result;

	return buf_addf(to, e, "Replaced %" PRIu64 " %s in %.*s", r->replaced,
			r->replaced == 1 ? "place" : "places", STR_ARG(r->path));
}

const struct tool coding_edit_tool = {
	.op = &coding_edit_op,
	.members = OP_MEMBERS(file_members),
	.name = "Edit",
	.title = "Edit a file",
	.doc = "Replaces old_string with new_string in a file that was read. If the "
	       "file has changed since, nothing is written, and the error shows its "
	       "current content.",
	.text = edit_text,
};
