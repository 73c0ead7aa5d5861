/* The output of execs over REST: read, followed as lines, and waited for. */
#include "door/rest/jobs.h"
#include "op/exec_output.h"

#define O struct exec_output
static const struct field output_fields[] = {
	FIELD_OBJECTS(O, chunks, exec_chunk_table, .flags = FIELD_REQUIRED,
		      .doc = "Chunks of output, in the order in which they came."),
	FIELD(O, dropped_bytes, .flags = FIELD_REQUIRED,
	      .doc = "Number of bytes from offset on that are no longer kept, of both streams."),
	FIELD(O, next_offset, .flags = FIELD_REQUIRED,
	      .doc = "Offset at which to continue reading."),
	FIELD(O, eof, .flags = FIELD_REQUIRED,
	      .doc = "Whether this is the end of the output: the exec has ended."),
	FIELD_ENUM(O, state, job_state_names, .flags = FIELD_REQUIRED, .doc = "State of the exec."),
	FIELD(O, exit_code, .has = FIELD_HAS(O, has_exit_code),
	      .doc = "Exit code of the command, if it has one."),
};
#undef O
static const struct field_table output_table = FIELD_TABLE(struct exec_output, output_fields);

static const char *const line_names[] = {
	[EXEC_NEWS_CHUNK] = "chunk",
	[EXEC_NEWS_DROPPED] = "dropped",
	[EXEC_NEWS_END] = "exit",
};

struct line {
	enum exec_news_kind kind;
	struct str stream, data;
	uint64_t offset;
	bool has_bytes;
	uint64_t bytes;
	struct str state, error;
	bool has_exit_code;
	int32_t exit_code;
	double exec_time_ms;
};
static const struct field line_fields[] = {
	FIELD_ENUM(struct line, kind, line_names, .flags = FIELD_REQUIRED,
		   .doc = "Kind of the line; exit is the last one."),
	FIELD(struct line, offset, .flags = FIELD_REQUIRED,
	      .doc = "Offset of the first byte; in an exit, the offset after the last byte."),
	FIELD(struct line, stream, .doc = "Stream of a chunk: stdout or stderr."),
	FIELD(struct line, data, .flags = FIELD_BYTES, .doc = "Bytes of a chunk, in base64."),
	FIELD(struct line, bytes, .has = FIELD_HAS(struct line, has_bytes),
	      .doc = "In dropped: number of bytes that are no longer kept, of both streams."),
	FIELD(struct line, state, .doc = "In an exit: state of the exec."),
	FIELD(struct line, exit_code, .has = FIELD_HAS(struct line, has_exit_code),
	      .doc = "In an exit: exit code of the command, if it has one."),
	FIELD(struct line, exec_time_ms, .has = FIELD_HAS(struct line, has_exit_code),
	      .doc = "In an exit: duration in milliseconds."),
	FIELD(struct line, error,
	      .doc = "In an exit: what went wrong, if the command did not end normally."),
};
static const struct field_table line_table = FIELD_TABLE(struct line, line_fields);

static void job_output_tell(struct call *c, const void *event)
{
	const struct exec_news *n = event;
	struct line l = { .kind = n->kind, .offset = n->offset };

	switch (n->kind) {
	case EXEC_NEWS_CHUNK:
		l.stream = str_of(job_stream_names[n->event.stream == EXEC_STDERR]);
		l.data = n->event.bytes;
		break;
	case EXEC_NEWS_DROPPED:
		l.has_bytes = true;
		l.bytes = n->dropped;
		break;
	case EXEC_NEWS_END:
		l.state = str_of(job_state_names[n->state]);
		l.has_exit_code = n->event.failed == ERR_NONE;
		l.exit_code = n->event.exit_code;
		l.exec_time_ms = n->event.exec_time_ms;
		l.error = n->event.error;
		break;
	case EXEC_NEWS_ATTACHED:
		return;
	}
	exchange_write(c, &line_table, &l);
}

static const struct op_member output_members[] = { API_JOB_BY_PATH,
						   { "max_bytes", .as = "limit", .in = OP_QUERY },
						   { "wait_seconds", .in = OP_HIDDEN },
						   { "wait_for", .in = OP_HIDDEN },
						   { "wait_pattern", .in = OP_HIDDEN },
						   { "kill", .in = OP_HIDDEN } };
static const struct op_member wait_members[] = { API_JOB_BY_PATH };

static const struct api_route rows[] = {
	{ .id = "execs.output",
	  .op = &exec_output_op,
	  .projected = true,
	  .members = OP_MEMBERS(output_members),
	  .answer = &output_table,
	  .tell = job_output_tell,
	  .method = HTTP_GET,
	  .path = "/v1/sandboxes/{id}/execs/{exec}/output",
	  .lines = &line_table,
	  .errors = API_MAY_SANDBOX | API_MAY(TOO_MANY_STREAMS) },
	{ .id = "execs.wait",
	  .op = &exec_wait_op,
	  .projected = true,
	  .members = OP_MEMBERS(wait_members),
	  .method = HTTP_POST,
	  .path = "/v1/sandboxes/{id}/execs/{exec}/wait",
	  .errors = API_MAY_SANDBOX },
};
const struct api_resource api_job_output = API_RESOURCE(rows);
