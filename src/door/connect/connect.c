/* Shared by the methods of Connect. */
#include "door/connect/connect.h"

#include "base/base64.h"
#include "door/http/frame.h"
#include "op/files.h"

/* ---- requests ------------------------------------------------------------------------------ */

int connect_bytes(struct buf *to, const char *name, struct str base64, struct err *e)
{
	return base64_decode(to, base64, e) < 0 ? err_wrap(e, "%s", name) : 0;
}

int connect_unpack(bool is_text, struct str message, struct str *ret, struct err *e)
{
	struct frames f = { .left = message };

	if (is_text || message.n == 0)
		return err_set(e, ERR_INVALID, "a message is binary, and holds a frame");
	if (frame_next(&f, ret, e) < 0)
		return -1;
	return f.left.n ? err_set(e, ERR_INVALID, "a message holds one frame") : 0;
}

/* ---- answers ------------------------------------------------------------------------------- */

const struct field_table connect_empty_table = { .size = sizeof(struct op_nothing) };

static void on_no_room(void *data)
{
}

void connect_answer(struct call *c, const struct field_table *t, const void *from)
{
	struct err e;

	if (exchange_stream_start(c, on_no_room, NULL, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	exchange_send(c, t, from);
	call_answer(c, NULL);
}

void connect_tell_chunk(struct call *c, const void *event)
{
	exchange_write(c, &file_chunk_table, event);
}

static const struct field written_fields[] = {
	FIELD_NAMED(struct connect_written, bytes_written, "bytesWritten", .flags = FIELD_REQUIRED,
		    .doc = "Number of bytes received."),
};
const struct field_table connect_written_table = FIELD_TABLE(struct connect_written,
							     written_fields);
