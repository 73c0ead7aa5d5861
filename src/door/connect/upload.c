/*
 * Upload: an archive in messages, unpacked as they come. Only one message of the request is stored
 * at a time, and the part of earlier ones that the sandbox has not taken yet. A sandbox that takes
 * nothing stalls the client.
 *
 * The answer is a stream, which can only start after the end of the request. A failure waits for
 * that too, but the rest of the archive is then dropped.
 */
#include "door/connect/connect.h"
#include "door/http/frame.h"
#include "door/http/transfer.h"
#include "json/document/json.h"
#include "op/files.h"

enum {
	CHUNK_MAX = 4 << 20, /* bytes of the archive in one message */
	MESSAGE_MAX = CHUNK_MAX / 3 * 4 + 1024,
};

struct open {
	struct str dest;
};
static const struct field open_fields[] = {
	FIELD(struct open, dest, .max = API_PATH_MAX,
	      .doc = "Existing directory; the sandbox's working directory if absent or empty."),
};
static const struct field_table open_table = FIELD_TABLE(struct open, open_fields);

struct message {
	bool has_open, has_chunk;
	struct open open;
	struct str chunk;
};
static const struct field message_fields[] = {
	FIELD_OBJECT(struct message, open, open_table, .has = FIELD_HAS(struct message, has_open),
		     .doc = "The directory; in the first message only."),
	FIELD(struct message, chunk, .has = FIELD_HAS(struct message, has_chunk),
	      .doc = "Next bytes of the archive, at most 4 MiB; in every later message."),
};
static const struct field_table message_table = FIELD_TABLE(
	struct message, message_fields,
	.doc = "Each message has exactly one member: open in the first, chunk in all others.");

/* Allocated from the call's arena. */
struct upload {
	struct transfer_upload to; /* first: the two are cast; without a call until it is opened */
	struct call *call;
	struct str sandbox;
	struct frame_in in;
	struct connect_written written;
	bool unpacked, whole; /* the upload ends when both are true */
};

static void upload_fail(struct upload *u, const struct err *e)
{
	frame_in_fini(&u->in);
	if (u->to.call)
		transfer_upload_stop(&u->to);
	call_fail(u->call, e);
}

static void upload_settle(struct upload *u)
{
	if (!u->unpacked || !u->whole)
		return;
	frame_in_fini(&u->in);
	connect_answer(u->call, &connect_written_table, &u->written);
}

static void on_unpacked(struct transfer_upload *to, const struct err *e)
{
	struct upload *u = (struct upload *)to;

	u->unpacked = true;
	if (e)
		upload_fail(u, e);
	else
		upload_settle(u);
}

/* ---- messages -------------------------------------------------------------------------------- */

static int open_it(struct upload *u, const struct message *m, struct err *e)
{
	struct str dest = m->open.dest.n ? m->open.dest : STR_LIT(".");
	char *copy = arena_dup(call_arena(u->call), dest, e);
	struct sandbox *sb;

	if (!copy)
		return -1;
	call_about(u->call)->path = str_of(copy);
	sb = exchange_sandbox(u->call, u->sandbox, e);
	return sb ? transfer_upload_start(&u->to, u->call, sb, str_of(copy), on_unpacked, e) : -1;
}

static int upload_put(struct upload *u, const struct message *m, struct err *e)
{
	autobuf struct buf bytes = BUF_INIT(CHUNK_MAX);

	if (connect_bytes(&bytes, "chunk", m->chunk, e) < 0)
		return -1;
	u->written.bytes_written += bytes.n;
	return transfer_upload_put(&u->to, buf_str(&bytes), e);
}

static int upload_take(struct upload *u, struct str text, struct err *e)
{
	AUTO(arena_free) struct arena *scratch = arena_new(2 * MESSAGE_MAX);
	AUTO(json_free) struct json_doc *doc = exchange_parse(u->call, text, e);
	struct message m;

	if (!scratch)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (!doc || field_decode(&message_table, json_root(doc), scratch, &m, e) < 0)
		return -1;
	if (!u->to.call && (!m.has_open || m.has_chunk))
		return err_set(e, ERR_INVALID, "the first message has open, and nothing else");
	if (u->to.call && (m.has_open || !m.has_chunk))
		return err_set(e, ERR_INVALID, "behind the first message, each has chunk");
	return u->to.call ? upload_put(u, &m, e) : open_it(u, &m, e);
}

/* Takes the whole piece or nothing. */
static size_t on_bytes(void *data, struct str bytes)
{
	struct upload *u = data;
	struct str left = bytes, text;
	struct err e = ERR_INIT;
	int got;

	if (u->to.call && transfer_upload_holds(&u->to))
		return 0;
	while ((got = frame_in_next(&u->in, &left, &text, &e)) > 0) {
		if (upload_take(u, text, &e) < 0) {
			got = -1;
			break;
		}
	}
	if (got < 0)
		upload_fail(u, &e);
	else if (frame_in_whole(&u->in))
		frame_in_fini(&u->in); /* nothing of it is stored or counted between two messages */
	return bytes.n;
}

static void on_end(void *data)
{
	struct upload *u = data;
	struct err e = ERR_INIT;

	u->whole = true;
	if (!frame_in_whole(&u->in))
		err_set(&e, ERR_INVALID, "the last message is not whole");
	else if (!u->to.call)
		err_set(&e, ERR_INVALID, "the request has no message");
	if (e.code != ERR_NONE) {
		upload_fail(u, &e);
		return;
	}
	transfer_upload_end(&u->to);
	upload_settle(u);
}

static void on_cancel(void *data)
{
	struct upload *u = data;
	struct err e;

	err_set(&e, ERR_CANCELLED, "the client went away");
	upload_fail(u, &e);
}

/* ---- the row --------------------------------------------------------------------------------- */

static void run_upload(struct call *c, const void *params)
{
	static const struct exchange_body_events body = { on_bytes, on_end };
	const struct files_tree_request *q = params;
	struct err e = ERR_INIT;
	struct upload *u = arena_alloc(call_arena(c), sizeof(*u), &e);

	if (!u) {
		call_fail(c, &e);
		return;
	}
	*u = (struct upload){ .call = c,
			      .sandbox = q->sandbox,
			      .in = FRAME_IN_INIT(MESSAGE_MAX, exchange_bodies(c)) };
	call_on_cancel(c, on_cancel, u);
	exchange_body_start(c, &body, u);
}

static const struct op_member members[] = { CONNECT_BY_HEADER,
					    { "path", .in = OP_HIDDEN },
					    { "literal", .in = OP_HIDDEN } };
static const struct op upload_op = {
	.action = "files.upload",
	.doc = "Unpacks a tar archive of any size in a directory, as it comes.",
	.effect = OP_WRITE,
	.request = &files_upload_table,
	.target = OP_TARGET(struct files_tree_request, sandbox),
	.later = "/path",
	.result = &connect_written_table,
	.run = run_upload,
};

static const struct api_route rows[] = {
	CONNECT_PROJECTION("Upload", &upload_op, members, .shape = API_FRAMES, .streams = true,
			   .heard = &message_table),
};
const struct api_resource api_connect_upload = API_RESOURCE(rows);
