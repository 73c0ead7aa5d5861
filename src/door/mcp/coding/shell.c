/* Bash, BashOutput, KillShell, watch_process, watch_process_events and secrets_available. */
#include <inttypes.h>

#include "door/mcp/tools.h"
#include "op/coding/shell.h"

/* ---- Bash ---------------------------------------------------------------------------------- */

static int shell_add(struct buf *to, struct str s, struct err *e)
{
	return buf_add(to, s.p, s.n, e);
}

/* A text, and an end of line behind it. */
static int add_block(struct buf *to, struct str s, struct err *e)
{
	if (s.n == 0)
		return 0;
	if (shell_add(to, s, e) < 0)
		return -1;
	return s.p[s.n - 1] == '\n' ? 0 : buf_add(to, "\n", 1, e);
}

static int bash_text(const void *result, struct buf *to, struct err *e)
{
	const struct exec_answer *a = result;
	const struct report *r = &a->report;

	if (a->has_job)
		return buf_addf(to, e, "Runs in the background: shell_id %.*s",
				STR_ARG(a->job.exec_id));
	if (add_block(to, r->out, e) < 0)
		return -1;
	if (r->err.n && (buf_addf(to, e, "--- stderr ---\n") < 0 || add_block(to, r->err, e) < 0))
		return -1;
	if (r->timed_out)
		return buf_addf(to, e, "timed out, and killed with all that it started; exit: %d",
				r->exit_code);
	if (r->has_signal)
		return buf_addf(to, e, "killed by signal %d%s; exit: %d", r->signal,
				r->hit_memory ? ", since the sandbox's memory is used up" : "",
				r->exit_code);
	return buf_addf(to, e, "exit: %d%s%s", r->exit_code,
			r->hit_disk ? "; the sandbox's disk is full" : "",
			r->hit_pids ? "; the sandbox's process limit was reached" : "");
}

static int bash_note(const void *result, struct buf *to, struct err *e)
{
	const struct exec_answer *a = result;

	if (!a->report.has_next)
		return 0;
	return buf_addf(to, e,
			"%" PRIu64 " bytes of output are left out; BashOutput has them: shell_id "
			"%.*s, offset %" PRIu64 ".",
			a->report.out_elided + a->report.err_elided, STR_ARG(a->report.exec),
			a->report.next_offset);
}

#define R struct report
static const struct field bash_fields[] = {
	FIELD(R, exit_code, .has = FIELD_HAS(R, has_exit_code), .doc = "Its exit status."),
	FIELD_NAMED(R, exec, "shell_id", .doc = "Shell id for BashOutput."),
	FIELD(R, timed_out, .doc = "Its timeout ended it."),
	FIELD(R, next_offset, .has = FIELD_HAS(R, has_next),
	      .doc = "Offset of the output that was left out."),
};
#undef R
static const struct field_table bash_facts = FIELD_TABLE(struct report, bash_fields);

const struct tool coding_bash_tool = {
	.op = &coding_bash_op,
	.name = "Bash",
	.title = "Run a command",
	.doc = "Runs a shell command in the workspace (/workspace; what is elsewhere "
	       "ends with the sandbox). Shows stdout, stderr and exit "
	       "status; a failing command is no error of the tool. Long output is cut "
	       "in the middle.",
	.text = bash_text,
	.note = bash_note,
	.facts = &bash_facts,
};

/* ---- BashOutput, KillShell ----------------------------------------------------------------- */

static int shell_output_text(const void *result, struct buf *to, struct err *e)
{
	const struct exec_output *o = result;

	for (size_t i = 0; i < o->chunks.n; i++) {
		const struct exec_chunk *k = &o->chunks.p[i];
		bool other = i > 0 ? k->stream != o->chunks.p[i - 1].stream
				   : k->stream == EXEC_CHUNK_ERR;

		if (other && to->n > 0 && to->p[to->n - 1] != '\n' && buf_add(to, "\n", 1, e) < 0)
			return -1;
		if (other && buf_addf(to, e, "--- %s ---\n", job_stream_names[k->stream]) < 0)
			return -1;
		if (shell_add(to, k->bytes, e) < 0)
			return -1;
	}
	if (to->n > 0 && to->p[to->n - 1] != '\n' && buf_add(to, "\n", 1, e) < 0)
		return -1;
	if (o->dropped_bytes && buf_addf(to, e, "%" PRIu64 " bytes before are not kept any more.\n",
					 o->dropped_bytes) < 0)
		return -1;
	if (!o->has_exit_code)
		return buf_addf(to, e, "status: %s; next offset: %" PRIu64,
				job_state_names[o->state], o->next_offset);
	return buf_addf(to, e, "status: %s (exit %d); %s offset: %" PRIu64,
			job_state_names[o->state], o->exit_code, o->eof ? "end at" : "next",
			o->next_offset);
}

#define O struct exec_output
static const struct field output_fields[] = {
	FIELD_ENUM(O, state, job_state_names, .doc = "State of the shell."),
	FIELD(O, exit_code, .has = FIELD_HAS(O, has_exit_code), .doc = "Exit code of the command."),
	FIELD(O, next_offset, .doc = "Offset to continue from."),
	FIELD(O, dropped_bytes, .doc = "Bytes that are no longer kept."),
	FIELD(O, eof, .doc = "The shell has ended, and this is the last of its output."),
};
#undef O
static const struct field_table output_facts = FIELD_TABLE(struct exec_output, output_fields);

const struct tool coding_output_tool = {
	.op = &coding_output_op,
	.name = "BashOutput",
	.title = "Read a shell's output",
	.doc = "Shows what a shell has printed, from offset on, and how it ended.",
	.text = shell_output_text,
	.facts = &output_facts,
};

const struct tool coding_kill_tool = {
	.op = &coding_kill_op,
	.name = "KillShell",
	.title = "Kill a shell",
	.doc = "Kills a shell with all that it started, and shows the beginning of its output.",
	.text = shell_output_text,
	.facts = &output_facts,
};

/* ---- watches ------------------------------------------------------------------------------- */

const struct tool coding_watch_tool = {
	.op = &coding_watch_op,
	.name = "watch_process",
	.title = "Watch a process",
	.doc = "Runs a command in the background, such as a development server, and notes errors "
	       "that it prints, silence, and its end, for watch_process_events.",
	.says = "Watches shell_id {shell_id}.",
};

static int events_text(const void *result, struct buf *to, struct err *e)
{
	const struct watch_events *v = result;

	if (v->dropped &&
	    buf_addf(to, e, "%" PRIu64 " events before are not kept any more.\n", v->dropped) < 0)
		return -1;
	for (size_t i = 0; i < v->events.n; i++) {
		const struct watch_event *x = &v->events.p[i];

		if (buf_addf(to, e, "[%" PRIu64 "] %.*s %.*s", x->id, STR_ARG(x->at),
			     STR_ARG(x->kind)) < 0 ||
		    (x->pattern.n &&
		     buf_addf(to, e, " (matched \"%.*s\")", STR_ARG(x->pattern)) < 0) ||
		    buf_add(to, " ", 1, e) < 0 || add_block(to, x->text, e) < 0)
			return -1;
	}
	return buf_addf(to, e, "status: %.*s; since_event_id for the next: %" PRIu64,
			STR_ARG(v->state), v->next_event_id);
}

#define V struct watch_events
static const struct field events_fields[] = {
	FIELD(V, state, .doc = "State of the program."),
	FIELD(V, dropped, .doc = "Number of events that are no longer kept."),
	FIELD(V, next_event_id, .doc = "Value of since_event_id for the next call."),
};
#undef V
static const struct field_table events_facts = FIELD_TABLE(struct watch_events, events_fields);

const struct tool coding_events_tool = {
	.op = &coding_events_op,
	.name = "watch_process_events",
	.title = "Events of a watched process",
	.doc = "Shows what has happened to a watched process since an event.",
	.text = events_text,
	.facts = &events_facts,
};

/* ---- secrets ------------------------------------------------------------------------------- */

static int secrets_text(const void *result, struct buf *to, struct err *e)
{
	const struct secret_names *s = result;

	if (s->secrets.n == 0)
		return buf_addf(to, e, "There are no secrets for you here.");
	for (size_t i = 0; i < s->secrets.n; i++) {
		if (buf_addf(to, e, "%s%.*s", i ? "\n" : "", STR_ARG(s->secrets.p[i])) < 0)
			return -1;
	}
	return 0;
}

const struct tool coding_secrets_tool = {
	.op = &coding_secrets_op,
	.name = "secrets_available",
	.title = "List secrets",
	.doc = "Lists the names of secrets that Bash can give to a command (its "
	       "argument secrets); values are never shown.",
	.text = secrets_text,
};
