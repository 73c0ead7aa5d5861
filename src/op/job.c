#include "op/job.h"

#define V struct job_view
#define WITH_RESULT .has = FIELD_HAS(V, has_result)
static const struct field view_fields[] = {
	FIELD(V, exec_id, .flags = FIELD_REQUIRED, .doc = "Its id among those of its sandbox."),
	FIELD(V, sandbox, .flags = FIELD_REQUIRED, .doc = "Id of the sandbox."),
	FIELD(V, command, .flags = FIELD_REQUIRED, .doc = "What was run, at most 512 bytes of it."),
	FIELD_ENUM(
		V, state, job_state_names, .flags = FIELD_REQUIRED,
		.doc = "running; exited, signaled or timed_out with a result; failed: it never ran; "
		       "lost: its sandbox ended, or the server was killed, and it with it."),
	FIELD(V, background, .flags = FIELD_REQUIRED,
	      .doc = "It outlives the request that started it."),
	FIELD(V, tty, .flags = FIELD_REQUIRED,
	      .doc = "It was started on a terminal; not known of one of an earlier server."),
	FIELD(V, stdin_open, .flags = FIELD_REQUIRED, .doc = "It can be sent input."),
	FIELD(V, started_at, .flags = FIELD_REQUIRED, .doc = "When, by RFC 3339."),
	FIELD(V, ended_at, .doc = "Likewise."),
	FIELD(V, exit_code, WITH_RESULT,
	      .doc = "Of the command; 128 and its number where a signal ended it."),
	FIELD(V, signal, .has = FIELD_HAS(V, has_signal), .doc = "The signal that ended it."),
	FIELD(V, exec_time_ms, WITH_RESULT, .doc = "How long it ran."),
	FIELD(V, hit_memory, WITH_RESULT,
	      .doc = "A process of it was killed for the sandbox's memory limit."),
	FIELD(V, hit_pids, WITH_RESULT,
	      .doc = "It could not start a process for the sandbox's limit of them."),
	FIELD(V, first_offset, .flags = FIELD_REQUIRED,
	      .doc = "Offset of the oldest byte of its output that is kept."),
	FIELD(V, next_offset, .flags = FIELD_REQUIRED,
	      .doc = "Offset behind the newest one: how many bytes came."),
	FIELD(V, stdout_bytes, .flags = FIELD_REQUIRED, .doc = "Of them on stdout."),
	FIELD(V, stderr_bytes, .flags = FIELD_REQUIRED, .doc = "Of them on stderr."),
	FIELD(V, error, .doc = "Failed or lost: what happened."),
	FIELD(V, output_error, .doc = "Why less of the output is kept than was asked for."),
};
#undef WITH_RESULT
#undef V
const struct field_table job_view_table = FIELD_TABLE(struct job_view, view_fields);

void job_view(const struct job *j, struct job_view *ret)
{
	struct job_info i;

	job_info(j, &i);
	*ret = (struct job_view){
		.exec_id = i.id,
		.sandbox = i.sandbox,
		.command = i.command,
		.state = i.state,
		.background = i.background,
		.tty = i.terminal,
		.stdin_open = i.reads,
		.has_result = i.has_result,
		.exit_code = i.result.exit_code,
		.has_signal = i.has_result && i.result.signal != 0,
		.signal = i.result.signal,
		.exec_time_ms = (double)i.result.wall_us / 1000,
		.hit_memory = i.result.hit_memory,
		.hit_pids = i.result.hit_pids,
		.first_offset = i.output.first,
		.next_offset = i.output.end,
		.stdout_bytes = i.output.came[0],
		.stderr_bytes = i.output.came[1],
		.error = i.why ? str_of(i.why->msg) : STR_NONE,
		.output_error = i.output.trouble ? str_of(i.output.trouble->msg) : STR_NONE,
	};
	when_text(ret->started, i.started_ms);
	ret->started_at = str_of(ret->started);
	if (i.ended_ms) {
		when_text(ret->ended, i.ended_ms);
		ret->ended_at = str_of(ret->ended);
	}
}
