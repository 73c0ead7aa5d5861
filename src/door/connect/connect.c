/* What the methods of Connect share. */
#include "door/connect/connect.h"

#include "base/base64.h"
#include "op/files.h"

/* ---- requests ------------------------------------------------------------------------------ */

static const struct field header_fields[] = {
	FIELD_NAMED(struct connect_header, sandbox, "X-Sandbox-Id", .flags = FIELD_REQUIRED,
		    .min = 1, .max = API_ID_MAX, .doc = "Id of the sandbox."),
};
const struct field_table connect_header_table = FIELD_TABLE(struct connect_header, header_fields);

int connect_bytes(struct buf *to, const char *name, struct str base64, struct err *e)
{
	return base64_decode(to, base64, e) < 0 ? err_wrap(e, "%s", name) : 0;
}

/* ---- answers ------------------------------------------------------------------------------- */

const struct field_table connect_empty_table = { .size = sizeof(struct api_nothing) };

void connect_done(void *arg, const struct err *err)
{
	static const struct api_nothing nothing = { false };

	if (err)
		call_fail(arg, err);
	else
		call_answer(arg, &nothing);
}

static void on_no_room(void *data)
{
}

void connect_answer(struct call *c, const struct field_table *t, const void *from)
{
	struct err e;

	if (ask_stream_start(c, on_no_room, NULL, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	ask_send(c, t, from);
	call_answer(c, NULL);
}

static const struct field chunk_fields[] = {
	FIELD(struct file_chunk, data, .flags = FIELD_BYTES, .doc = "The next bytes."),
	FIELD(struct file_chunk, eof, .flags = FIELD_REQUIRED, .doc = "They are the last."),
};
const struct field_table connect_chunk_table = FIELD_TABLE(struct file_chunk, chunk_fields);

void connect_send_chunk(struct call *c, struct str bytes, bool eof)
{
	ask_send(c, &connect_chunk_table, &(struct file_chunk){ bytes, eof });
}

static const struct field written_fields[] = {
	FIELD_NAMED(struct connect_written, bytes_written, "bytesWritten", .flags = FIELD_REQUIRED,
		    .doc = "How many bytes came."),
};
const struct field_table connect_written_table = FIELD_TABLE(struct connect_written,
							     written_fields);
