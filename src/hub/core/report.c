#include "hub/core/report.h"

#include "json/document/utf8.h"
#include "json/document/put.h"

static const struct field rows[] = {
	FIELD(struct report, exit_code, .has = FIELD_HAS(struct report, has_exit_code),
	      .doc = "The program's exit status; 128 and the signal's number where a signal ended "
		     "it, 124 where its timeout did."),
	FIELD_NAMED(struct report, out, "stdout", .flags = FIELD_REQUIRED | FIELD_NUL_OK,
		    .doc = "Standard output; bytes that are not UTF-8 are shown as U+FFFD."),
	FIELD_NAMED(struct report, err, "stderr", .flags = FIELD_REQUIRED | FIELD_NUL_OK,
		    .doc = "Standard error; bytes that are not UTF-8 are shown as U+FFFD."),
	FIELD(struct report, signal, .has = FIELD_HAS(struct report, has_signal),
	      .doc = "The number of the signal that ended the program."),
	FIELD(struct report, timed_out,
	      .doc = "It ran into its timeout and was killed, descendants too."),
	FIELD(struct report, hit_memory,
	      .doc = "The kernel killed a process of it because the sandbox's memory was used up."),
	FIELD(struct report, hit_pids,
	      .doc = "A process could not be started because the sandbox has no more of them."),
	FIELD(struct report, hit_disk, .doc = "The sandbox's disk was full when it ended."),
	FIELD_NAMED(struct report, out_elided, "stdout_elided_bytes",
		    .has = FIELD_HAS(struct report, has_out_elided),
		    .doc = "Bytes left out in the middle of stdout; a line stands in their place."),
	FIELD_NAMED(struct report, err_elided, "stderr_elided_bytes",
		    .has = FIELD_HAS(struct report, has_err_elided),
		    .doc = "Bytes left out in the middle of stderr; a line stands in their place."),
	FIELD_NAMED(struct report, out_base64, "stdout_base64", .flags = FIELD_BYTES,
		    .doc = "The bytes of stdout in base64, only where they are not UTF-8."),
	FIELD_NAMED(struct report, err_base64, "stderr_base64", .flags = FIELD_BYTES,
		    .doc = "The bytes of stderr in base64, only where they are not UTF-8."),
	FIELD(struct report, exec, .doc = "Its id, for sandbox_exec_output."),
	FIELD(struct report, next_offset, .has = FIELD_HAS(struct report, has_next),
	      .doc = "Where sandbox_exec_output has what is left out."),
	FIELD(struct report, wall_ms, .doc = "How long it ran."),
	FIELD(struct report, cpu_ms, .doc = "Processor time of it and its children."),
	FIELD(struct report, peak_memory_bytes,
	      .doc = "The largest resident size of one of its processes."),
};
const struct field_table report_table = FIELD_TABLE(struct report, rows);

static int take_stream(const struct output *o, struct buf *text, uint64_t *ret_elided,
		       struct err *e)
{
	*text = BUF_INIT(output_text_max(o->head.max + o->tail.max));
	return output_text(o, text, ret_elided, e);
}

static struct str unless_text(struct str bytes)
{
	return utf8_valid(bytes) ? STR_NONE : bytes;
}

int report_init(struct report *r, const struct exec_result *result, const struct output *out,
		const struct output *err, struct err *e)
{
	*r = (struct report){
		.has_exit_code = true,
		.exit_code = result->exit_code,
		.has_signal = result->signal != 0,
		.signal = result->signal,
		.timed_out = result->end == EXEC_TIMED_OUT,
		.hit_memory = result->hit_memory,
		.hit_pids = result->hit_pids,
		.hit_disk = result->hit_disk,
		.wall_ms = (double)result->wall_us / 1000,
		.cpu_ms = (double)result->cpu_us / 1000,
		.peak_memory_bytes = result->peak_bytes,
	};
	if (take_stream(out, &r->out_buf, &r->out_elided, e) < 0 ||
	    take_stream(err, &r->err_buf, &r->err_elided, e) < 0)
		return -1;
	r->out = buf_str(&r->out_buf);
	r->err = buf_str(&r->err_buf);
	r->has_out_elided = r->out_elided > 0;
	r->has_err_elided = r->err_elided > 0;
	r->out_base64 = unless_text(r->out);
	r->err_base64 = unless_text(r->err);
	return 0;
}

void report_fini(struct report *r)
{
	buf_fini(&r->out_buf);
	buf_fini(&r->err_buf);
}

/* Facts that the three main members do not show. */
static void put_oddities(const struct report *r, struct json_writer *w)
{
	const struct {
		const char *name;
		bool is;
	} flags[] = {
		{ "timed_out", r->timed_out },
		{ "hit_memory", r->hit_memory },
		{ "hit_pids", r->hit_pids },
		{ "hit_disk", r->hit_disk },
	};
	const struct {
		const char *name;
		bool is;
		uint64_t n;
	} numbers[] = {
		{ "signal", r->has_signal && !r->timed_out, (uint64_t)r->signal },
		{ "stdout_elided_bytes", r->has_out_elided, r->out_elided },
		{ "stderr_elided_bytes", r->has_err_elided, r->err_elided },
	};

	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		if (!flags[i].is)
			continue;
		json_put_bool(w, flags[i].name, true);
	}
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		if (!numbers[i].is)
			continue;
		json_put_uint(w, numbers[i].name, numbers[i].n);
	}
	if (!r->has_next)
		return;
	json_put_str(w, "exec", r->exec);
	json_put_uint(w, "next_offset", r->next_offset);
}

int report_text(const struct report *r, struct buf *to, struct err *e)
{
	struct json_writer w = json_writer(to);

	json_write_object(&w);
	json_put_int(&w, "exit_code", r->exit_code);
	json_put_str(&w, "stdout", r->out);
	json_put_str(&w, "stderr", r->err);
	put_oddities(r, &w);
	json_write_object_end(&w);
	return json_write_done(&w, e);
}
