/*
 * GET /v1/sandboxes/{id}/execs/{exec}/attach, a WebSocket: a running exec, its output from an
 * offset on, and its input. The messages are those of exec_socket.c, after one that describes the
 * exec. Several clients can be attached at once. A slow reader gets the kept output later, and the
 * exec runs on when a client goes away.
 */
#include "door/rest/exec_end.h"
#include "door/rest/jobs.h"
#include "op/exec_output.h"

enum { CHUNK_MAX = 4 << 20 };

struct hello {
	uint64_t offset;
	bool tty, reads;
};
static const struct field hello_fields[] = {
	FIELD(struct hello, offset, .flags = FIELD_REQUIRED,
	      .doc = "Offset of the first byte that follows."),
	FIELD(struct hello, tty, .flags = FIELD_REQUIRED,
	      .doc = "Whether the exec has a terminal."),
	FIELD_NAMED(struct hello, reads, "stdin_open", .flags = FIELD_REQUIRED,
		    .doc = "Whether the exec accepts input."),
};
static const struct field_table hello_table = FIELD_TABLE(struct hello, hello_fields);

struct gap {
	uint64_t offset, bytes;
};
static const struct field gap_fields[] = {
	FIELD(struct gap, offset, .flags = FIELD_REQUIRED,
	      .doc = "Offset of the first missing byte."),
	FIELD(struct gap, bytes, .flags = FIELD_REQUIRED,
	      .doc = "Number of missing bytes of both streams."),
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
		     .doc = "Output that is no longer kept."),
	FIELD_OBJECT(struct said, exit, exit_view_table, .has = FIELD_HAS(struct said, has_exit),
		     .doc = "How the command ended. Only an error message may follow."),
};
static const struct field_table said_table =
	FIELD_TABLE(struct said, said_fields, .doc = "Each text message has exactly one member.");

static void job_attach_tell(struct call *c, const void *event)
{
	autobuf struct buf b = BUF_INIT(CHUNK_MAX);
	const struct exec_news *n = event;
	struct said s = { .has_attached = n->kind == EXEC_NEWS_ATTACHED,
			  .has_dropped = n->kind == EXEC_NEWS_DROPPED,
			  .has_exit = n->kind == EXEC_NEWS_END,
			  .attached = { n->offset, n->tty, n->stdin_open },
			  .dropped = { n->offset, n->dropped } };

	if (n->kind == EXEC_NEWS_CHUNK) {
		exchange_write_bytes(c, socket_output(n->event.stream, n->event.bytes, &b));
		return;
	}
	if (s.has_exit)
		s.exit = exit_view(&n->event);
	exchange_write(c, &said_table, &s);
}

static const struct op_member members[] = { API_JOB_BY_PATH, { "offset", .in = OP_QUERY } };

static const struct api_route rows[] = {
	{ .id = "execs.attach",
	  .op = &exec_attach_op,
	  .projected = true,
	  .members = OP_MEMBERS(members),
	  .answer = &said_table,
	  .tell = job_attach_tell,
	  .hear = socket_hear,
	  .method = HTTP_GET,
	  .path = "/v1/sandboxes/{id}/execs/{exec}/attach",
	  .shape = API_LINES,
	  .socket = "holt.attach.v1",
	  .listens = true,
	  .heard = &socket_word_table,
	  .errors = API_MAY_SANDBOX | API_MAY(UPGRADE_REQUIRED) | API_MAY(TOO_MANY_STREAMS) },
};
const struct api_resource api_job_attach = API_RESOURCE(rows);
